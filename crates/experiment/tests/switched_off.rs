//! For every verdict about a simulated run: one in which the mechanism is off, and the verdict is
//! missed. A verdict that a run without the mechanism meets shows nothing.
//!
//! `switched/table.rs` says what stands in the mechanism's place. Where the verdict is met with
//! it, the same short run must show that, too, so that it is the mechanism and not the run that
//! decides.

#[path = "switched/table.rs"]
mod table;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use experiment::find;
use experiment::measure::figure::Figure;
use experiment::observed::Observed;
use experiment::program::{self, Host};
use experiment::simulated;
use experiment::spec::merge::lay_over;
use experiment::spec::{Experiment, Query, Verdict};
use table::{Row, Stands, EXEMPT, EXPERIMENTS};
use toml::Table;

fn experiments() -> Vec<Experiment> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let names: Vec<String> = EXPERIMENTS.iter().map(ToString::to_string).collect();
    find::read(&folder, &names).expect("all can be used")
}

/// Runs of one experiment with one scenario laid over it last, each made once.
struct Runs<'e> {
    experiment: &'e Experiment,
    over: Table,
    made: RefCell<BTreeMap<(String, String), &'static Observed>>,
}

impl<'e> Runs<'e> {
    fn new(experiment: &'e Experiment, over: &str) -> Self {
        Runs {
            experiment,
            over: over.parse().expect("TOML"),
            made: RefCell::default(),
        }
    }

    fn run(&self, variant: &str, point: &str) -> Option<&'static Observed> {
        let key = (variant.to_string(), point.to_string());
        if let Some(made) = self.made.borrow().get(&key) {
            return Some(made);
        }
        let experiment = self.experiment;
        let (with, at) = (experiment.variant(variant)?, experiment.point(point)?);
        let mut scenario = experiment.scenario(with, at, false);
        lay_over(&mut scenario, &self.over);
        let observed = if program::is(&scenario) {
            let host = Host {
                binary: std::path::Path::new("none"),
                cores: &[],
            };
            program::play(&scenario, &host).expect("plays")
        } else {
            simulated::play(&scenario, &AtomicBool::new(false)).expect("plays")
        };
        let observed: &'static Observed = Box::leak(Box::new(observed));
        self.made.borrow_mut().insert(key, observed);
        Some(observed)
    }

    fn answer(&self, query: &Query, variant: &str, point: &str) -> f64 {
        let run = |variant: &str, point: &str| self.run(variant, point);
        let answer = query.answer(&run, variant, point);
        answer.unwrap_or_else(|why| panic!("{} {variant}/{point}: {why}", self.experiment.name))
    }
}

/// The verdict's question with another variant in the mechanism's place.
fn without(verdict: &Verdict, off: Stands) -> (String, Query) {
    let (on, off) = off;
    let mut query = verdict.query.clone();
    let mut variant = verdict.variant.clone();
    if variant == on {
        variant = off.into();
    }
    let side = query
        .against
        .as_mut()
        .and_then(|side| side.variant.as_mut());
    if let Some(other) = side.filter(|other| *other == on) {
        *other = off.into();
    }
    (variant, query)
}

fn check(runs: &Runs, row: &Row, target: &str) -> Result<(), String> {
    let mut verdicts = runs.experiment.verdicts.iter();
    let verdict = verdicts.find(|one| one.target == target);
    let verdict = verdict.ok_or_else(|| format!("there is no verdict {target:?}"))?;
    let bound = verdict.bound.ok_or("it is not judged")?;
    let point = row.point.unwrap_or(&verdict.points[0]);
    let (variant, query) = without(verdict, row.off);
    let off = runs.answer(&query, &variant, point);
    let said = format!("{}: {target:?} at {point}", runs.experiment.name);
    if bound.met_by(off) {
        return Err(format!(
            "{said} is met without the mechanism: {off} {bound}"
        ));
    }
    if row.met {
        let on = runs.answer(&verdict.query, &verdict.variant, point);
        if !bound.met_by(on) {
            return Err(format!(
                "{said} is missed with it: {on} {bound}, without {off}"
            ));
        }
    }
    println!("{said}: {off:.4} without, bound {bound}");
    Ok(())
}

#[test]
fn every_verdict_fails_without_its_mechanism() {
    let mut wrong = Vec::new();
    for experiment in &experiments() {
        let mut by_scenario: BTreeMap<&str, Runs> = BTreeMap::new();
        for row in table::ROWS
            .iter()
            .filter(|row| row.experiment == experiment.name)
        {
            let runs = by_scenario
                .entry(row.over)
                .or_insert_with(|| Runs::new(experiment, row.over));
            for target in row.targets {
                wrong.extend(check(runs, row, target).err());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_verdict_is_left_out() {
    for experiment in &experiments() {
        for verdict in experiment.verdicts.iter().filter(|one| one.bound.is_some()) {
            let has =
                |name: &str, target: &str| name == experiment.name && target == verdict.target;
            let mut rows = table::ROWS.iter();
            let row = rows.any(|row| {
                let mut targets = row.targets.iter();
                targets.any(|target| has(row.experiment, target))
            });
            let exempt = EXEMPT.iter().any(|(name, target, _)| has(name, target));
            assert!(row != exempt, "{}: {:?}", experiment.name, verdict.target);
        }
    }
}

/// Whoever adds an experiment that the simulator plays adds it to the table.
#[test]
fn every_simulated_experiment_is_in_the_table() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    for experiment in find::read(&folder, &["all".to_string()]).expect("all can be used") {
        let named = |name: &str| {
            let program = experiment.base.get("program").and_then(|one| one.as_str());
            program == Some(name)
        };
        let exact = experiment.base.contains_key("cluster")
            || ["rein", "rein-queues", "pisces-plan"]
                .into_iter()
                .any(named);
        let listed = EXPERIMENTS.contains(&experiment.name.as_str());
        // Its own file may say what switches each verdict off, and its short form asks for that.
        let says = |one: &Verdict| {
            one.off.is_some() || !one.no_off.is_empty() || one.query.choice.figure == Figure::Failed
        };
        let all_say = experiment
            .verdicts
            .iter()
            .all(|one| one.bound.is_none() || says(one));
        assert!(exact || !listed, "{} is not simulated", experiment.name);
        assert!(
            !exact || listed || all_say,
            "{} is missing",
            experiment.name
        );
    }
}
