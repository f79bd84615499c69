//! Makes the runs of an experiment, one after the other, and judges them.

mod life;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::{json, Value};
use toml::Table;

use crate::done::Done;
use crate::error::ExperimentError;
use crate::machine::{self, Disturbance, Ticks, Withheld};
use crate::measure::figure::{self, Choice};
use crate::observed::Observed;
use crate::pace;
use crate::plan::{self, Only, Run};
use crate::player::Player;
use crate::program::{self, Host};
use crate::server::check::{self, Answer};
use crate::server::config;
use crate::server::pin::{self, Pinned};
use crate::simulated;
use crate::spec::merge::lay_over;
use crate::spec::{self, Experiment, Point, Reading, Variant, Yardstick};
use crate::verdict::{self, Extent, Runs};
use crate::way::{self, Way};

/// Runs whose problems are shown.
const PROBLEMS_MAX: usize = 4;
/// Times that a run is made in the hope that the host leaves the machine its processors.
const TRIES: usize = 3;

/// How experiments are to be run.
#[derive(Clone)]
pub struct Setup<'a> {
    /// The entremet binary.
    pub binary: &'a Path,
    /// The short form.
    pub quick: bool,
    /// Instead of the experiment's own number.
    pub repeats: Option<usize>,
    /// Leaves runs out.
    pub only: Option<Only>,
    /// Processors of this machine that may be used.
    pub processors: &'a [usize],
    /// What the host withholds of processors.
    pub withheld: &'a Ticks<'a>,
    /// Loads the servers.
    pub player: &'a dyn Player,
    /// Set to end early.
    pub stop: &'a AtomicBool,
    /// The command that repeats this.
    pub command: String,
}

/// Runs and judges. `tell` hears of every run that is done: which, of how many, and what it
/// observed.
///
/// An error, or an interrupt, after some runs ends it with these: hours of them are worth keeping.
///
/// # Errors
/// [`ExperimentError`] before the first run is done, or in judging.
pub fn run(
    experiment: &Experiment,
    setup: &Setup,
    tell: &mut dyn FnMut(usize, usize, &Run, &Observed),
) -> Result<Done, ExperimentError> {
    let begun = Instant::now();
    let plan = plan::runs(experiment, setup.quick, setup.repeats, setup.only.as_ref());
    if plan.is_empty() {
        let what = "nothing to run: --only and --quick leave nothing of it";
        return Err(ExperimentError::Usage(format!(
            "{}: {what}",
            experiment.name
        )));
    }
    let idle = check(experiment, setup, &plan)?;
    let pinned = pin::pinned(&experiment.pin, setup.processors);
    let scenarios = || {
        let of = |run: &Run| experiment.scenario(run.variant, run.point, setup.quick);
        plan.iter().map(of)
    };
    let mut notes: Vec<String> = idle.into_iter().collect();
    let by_a_server = |scenario: &Table| matches!(Way::of(scenario), Way::Server | Way::Redis);
    if scenarios().any(|scenario| by_a_server(&scenario)) {
        pin::to(&pinned.load)?;
        notes.extend(pinned.note());
    }
    let mut runner = Runner {
        experiment,
        setup,
        pinned,
        told: Table::new(),
    };
    let made = runner.all(&plan, tell)?;
    notes.extend(made.notes);
    // Simulated time does not mind who else is there.
    if !scenarios().all(|scenario| simulated::is(&scenario)) {
        let load = machine::load_average();
        notes.extend(load.and_then(|load| machine::note(load, setup.processors.len())));
    }
    // Before what the generator says of single runs: this explains it, and few notes are printed.
    notes.splice(0..0, made.disturbance.note());
    let extent = Extent {
        quick: setup.quick,
        partial: setup.only.is_some() || made.cut.is_some(),
    };
    let judged = verdict::judge(experiment, &made.runs, extent)?;
    Ok(Done {
        judged,
        runs: made.runs,
        yardsticks: made.yardsticks,
        notes,
        quick: setup.quick,
        seed: seed(&experiment.base),
        processors: setup.processors.len(),
        elapsed_s: begun.elapsed().as_secs_f64(),
        command: setup.command.clone(),
        cut: made.cut,
    })
}

/// Runs that were made.
#[derive(Default)]
struct Made {
    runs: Runs,
    /// What was measured before them.
    yardsticks: Vec<(String, Value)>,
    notes: Vec<String>,
    disturbance: Disturbance,
    /// What ended them early.
    cut: Option<ExperimentError>,
}

/// Reads every scenario and has every configuration checked before anything runs. Returns what has
/// no effect.
fn check(
    experiment: &Experiment,
    setup: &Setup,
    plan: &[Run],
) -> Result<BTreeSet<String>, ExperimentError> {
    let (mut idle, mut problems, mut seen) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
    for run in plan {
        let place = plan::place(&run.variant.name, &run.point.name);
        if !seen.insert(place.clone()) {
            continue;
        }
        let scenario = experiment.scenario(run.variant, run.point, setup.quick);
        problems.extend(way::problem(setup.player, &scenario, &place));
        if !way::takes_a_server(&scenario) {
            continue;
        }
        match check::ask(setup.binary, &config::of_scenario(&scenario))? {
            Answer::Good(said) => idle.extend(said),
            Answer::Bad(said) => {
                problems.push(format!("{place}, the server's configuration:\n{said}"))
            }
        }
    }
    if problems.is_empty() {
        return Ok(idle);
    }
    // The same mistake in the base is found under every variant and point.
    let shown = problems.len().min(PROBLEMS_MAX);
    let mut text = problems[..shown].join("\n");
    if problems.len() > shown {
        text += &format!("\n... and of {} other runs", problems.len() - shown);
    }
    Err(ExperimentError::Spec {
        path: experiment.folder.join(spec::FILE),
        problems: text,
    })
}

/// The scenario's seed.
fn seed(scenario: &Table) -> u64 {
    let seed = scenario.get("seed").and_then(toml::Value::as_integer);
    seed.and_then(|seed| u64::try_from(seed).ok()).unwrap_or(1)
}

struct Runner<'a> {
    experiment: &'a Experiment,
    setup: &'a Setup<'a>,
    pinned: Pinned,
    /// What yardsticks said, to be laid over scenarios.
    told: Table,
}

impl Runner<'_> {
    /// Makes the runs of a plan, and tells of each. What fails after the first of them is the end
    /// of those that were made.
    fn all(
        &mut self,
        plan: &[Run],
        tell: &mut dyn FnMut(usize, usize, &Run, &Observed),
    ) -> Result<Made, ExperimentError> {
        let mut made = Made {
            yardsticks: self.yardsticks(|_| true)?,
            ..Made::default()
        };
        let mut repeat = 0;
        for (index, run) in plan.iter().enumerate() {
            let mut next = || {
                if std::mem::replace(&mut repeat, run.repeat) != run.repeat {
                    let anew = self.yardsticks(|yardstick| yardstick.each)?;
                    made.yardsticks.extend(anew);
                }
                self.one(run.variant, run.point, run.repeat, &run.label())
            };
            let observed = match next() {
                Ok(observed) => observed,
                Err(error) if index == 0 => return Err(error),
                Err(error) => {
                    let note = format!("{index} of {} runs were made: {error}", plan.len());
                    made.notes.insert(0, note);
                    made.cut = Some(error);
                    break;
                }
            };
            if let Some(complaint) = &observed.generator.complaint {
                made.notes.push(format!("{}: {complaint}", run.label()));
            }
            made.disturbance.add(observed.tried, observed.withheld);
            tell(index + 1, plan.len(), run, &observed);
            made.runs
                .add(run.repeat, &run.variant.name, &run.point.name, observed);
        }
        Ok(made)
    }

    /// Measures those yardsticks, in order; a later one's run has what the earlier ones told.
    fn yardsticks(
        &mut self,
        which: impl Fn(&Yardstick) -> bool,
    ) -> Result<Vec<(String, Value)>, ExperimentError> {
        let (mut said, mut ran) = (Vec::new(), Vec::new());
        let experiment = self.experiment;
        for yardstick in experiment.yardsticks.iter().filter(|one| which(one)) {
            let value = self.yardstick(yardstick, &mut ran)?;
            said.push((yardstick.sets.clone(), json!(value)));
            let mut inner = value;
            for key in yardstick.sets.rsplit('.') {
                inner = toml::Value::Table(Table::from_iter([(key.to_string(), inner)]));
            }
            if let toml::Value::Table(table) = inner {
                lay_over(&mut self.told, &table);
            }
        }
        Ok(said)
    }

    /// `ran` has the runs of this round: figures of one variant and point are of one run, so that
    /// they go together.
    fn yardstick(
        &self,
        yardstick: &Yardstick,
        ran: &mut Vec<(String, Observed)>,
    ) -> Result<toml::Value, ExperimentError> {
        let label = format!("the yardstick for {}", yardstick.sets);
        let missing = |why: String| ExperimentError::Verdict {
            target: label.clone(),
            why,
        };
        let variant = self.experiment.variant(&yardstick.variant);
        let point = self.experiment.point(&yardstick.point);
        let (Some(variant), Some(point)) = (variant, point) else {
            return Err(missing("its variant or point is missing".into()));
        };
        let place = plan::place(&variant.name, &point.name);
        let known = ran.iter().position(|(other, _)| *other == place);
        let at = match known {
            Some(at) => at,
            None => {
                ran.push((place, self.one(variant, point, 0, &label)?));
                ran.len() - 1
            }
        };
        let observed = &ran[at].1;
        match &yardstick.reading {
            Reading::Pace if observed.pace.windows().is_empty() => Err(missing(
                "its run has no pace: only one that a server answers has".into(),
            )),
            Reading::Pace => Ok(pace::faults(&observed.pace)),
            Reading::Figure(figure, unit) => {
                let choice = Choice {
                    figure: *figure,
                    ..Choice::default()
                };
                let value = figure::value(observed, &choice).map_err(missing)?;
                Ok(toml::Value::String(format!("{value:.0}{unit}")))
            }
        }
    }

    /// One run.
    fn one(
        &self,
        variant: &Variant,
        point: &Point,
        repeat: usize,
        label: &str,
    ) -> Result<Observed, ExperimentError> {
        let mut scenario = self.experiment.scenario(variant, point, self.setup.quick);
        let way = Way::of(&scenario);
        lay_over(&mut scenario, &self.told_to(way));
        let seed = seed(&scenario) + repeat as u64;
        // A seed that wraps is as good as another.
        let seed = i64::try_from(seed).unwrap_or(0);
        scenario.insert("seed".into(), toml::Value::Integer(seed));
        let stop = self.setup.stop;
        if stop.load(Ordering::Relaxed) {
            return Err(ExperimentError::Interrupted);
        }
        let observed = match way {
            Way::Server | Way::Redis => return self.serve_undisturbed(&scenario, label),
            Way::Simulated => simulated::play(&scenario, stop).map_err(|source| {
                let label = label.into();
                ExperimentError::Simulated { label, source }
            })?,
            Way::Program => {
                let host = Host {
                    binary: self.setup.binary,
                    cores: &self.pinned.server,
                };
                program::play(&scenario, &host).map_err(|problems| {
                    let label = label.into();
                    ExperimentError::Program { label, problems }
                })?
            }
        };
        if stop.load(Ordering::Relaxed) {
            return Err(ExperimentError::Interrupted);
        }
        Ok(observed)
    }

    /// What yardsticks said, as far as it is for who plays: a `cluster` would make a server's run a
    /// simulated one.
    fn told_to(&self, way: Way) -> Table {
        let mut told = self.told.clone();
        let others: &[&str] = match way {
            Way::Simulated => &["server"],
            Way::Server | Way::Program => &["cluster", "fault"],
            Way::Redis => &["server", "cluster", "fault"],
        };
        told.retain(|key, _| !others.contains(&key));
        told
    }

    /// A run again while the host withholds much of the processors; the least disturbed one counts,
    /// whatever it measured.
    fn serve_undisturbed(
        &self,
        scenario: &Table,
        label: &str,
    ) -> Result<Observed, ExperimentError> {
        let tries = if self.setup.quick { 1 } else { TRIES };
        let mut best: Option<Observed> = None;
        for tried in 1..=tries {
            let withheld = Withheld::begin(self.setup.withheld, self.pinned.all());
            let mut observed = match self.serve(scenario, label) {
                Ok(observed) => observed,
                // Disturbed, but made.
                Err(ExperimentError::Interrupted) if best.is_some() => break,
                Err(error) => return Err(error),
            };
            observed.withheld = withheld.part();
            observed.tried = tried;
            let done = !machine::disturbed(observed.withheld);
            best = match best {
                Some(best) if best.withheld <= observed.withheld => {
                    Some(Observed { tried, ..best })
                }
                _ => Some(observed),
            };
            if done {
                break;
            }
        }
        best.ok_or(ExperimentError::Interrupted)
    }
}
