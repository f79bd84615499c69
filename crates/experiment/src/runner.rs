//! Makes the runs of an experiment and judges them: one after the other, but for those in simulated
//! time.

mod exact;
mod keeper;
mod life;
mod made;
mod make;
mod moves;
mod stored;
mod yardstick;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use toml::Table;

use crate::done::Done;
use crate::error::ExperimentError;
use crate::kept::Kept;
use crate::machine::{Disturbance, Meter};
use crate::observed::Observed;
use crate::plan::{self, Only, Run};
use crate::player::Player;
use crate::server::check::{self, Answer};
use crate::server::config;
use crate::server::pin::{self, Pinned};
use crate::server::Server;
use crate::spec::{self, Experiment};
use crate::verdict::{self, Extent};
use crate::way::{self, Way};

use keeper::Keeper;
use made::Made;
use make::{Asked, Ready};
use yardstick::Said;

/// Runs whose problems are shown.
const PROBLEMS_MAX: usize = 4;

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
    /// What the host and other processes take of processors.
    pub meter: &'a Meter<'a>,
    /// Runs that were made before, and those to come; `None`: nothing is kept.
    pub kept: Option<Kept>,
    /// No run begins that would not have ended by then.
    pub until: Option<Instant>,
    /// Loads the servers.
    pub player: &'a dyn Player,
    /// Set to end early.
    pub stop: &'a AtomicBool,
    /// The command that repeats this.
    pub command: String,
}

/// Hears of every run that is done: which, of how many, and what it observed.
pub type Tell<'a> = &'a mut dyn FnMut(usize, usize, &Run, &Observed);

/// Runs and judges.
///
/// An error, or an interrupt, after some runs ends it with these: hours of them are worth keeping.
///
/// # Errors
/// [`ExperimentError`] before the first run is done, or in judging.
pub fn run(experiment: &Experiment, setup: &Setup, tell: Tell) -> Result<Done, ExperimentError> {
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
    let loaded = |scenario: &Table| !matches!(Way::of(scenario), Way::Simulated | Way::Program);
    if scenarios().any(|scenario| loaded(&scenario)) {
        pin::to(&pinned.load)?;
        notes.extend(pinned.note());
    }
    let mut runner = Runner {
        experiment,
        setup,
        keeper: Keeper::new(setup),
        pinned,
        told: BTreeMap::new(),
        told_in: Disturbance::default(),
        filled: RefCell::default(),
    };
    let made = runner.all(&plan, tell)?;
    notes.extend(made.notes);
    // Before what the generator says of single runs: this explains it, and few notes are printed.
    notes.splice(0..0, made.disturbances.note());
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
        took_s: made.took_s,
        command: setup.command.clone(),
        cut: made.cut,
    })
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
        let changes = experiment.changes_of(&run.variant.name).count();
        if Way::of(&scenario) == Way::Nodes && changes > 0 {
            problems.push(format!(
                "{place}: nodes do not change while they are loaded"
            ));
        }
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
    let more = problems.len() - shown;
    problems.truncate(shown);
    if more > 0 {
        problems.push(format!("... and of {more} other runs"));
    }
    Err(ExperimentError::Spec {
        path: experiment.folder.join(spec::FILE),
        problems,
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
    keeper: Keeper<'a>,
    pinned: Pinned,
    /// What yardsticks said, by the key that it sets.
    told: BTreeMap<String, Said>,
    /// What disturbed them.
    told_in: Disturbance,
    /// Servers that have ended, by what they were filled with: see [`stored`].
    filled: RefCell<BTreeMap<String, Server>>,
}

impl Runner<'_> {
    /// Makes the runs of a plan, and tells of each.
    fn all(&mut self, plan: &[Run], tell: Tell) -> Result<Made, ExperimentError> {
        if self.are_exact(plan) {
            return self.side_by_side(plan, tell);
        }
        let mut made = Made::default();
        made.yardsticks = self.yardsticks(0, &mut made.disturbances)?;
        let mut repeat = 0;
        for (index, run) in plan.iter().enumerate() {
            let mut next = || {
                if std::mem::replace(&mut repeat, run.repeat) != run.repeat {
                    let anew = self.yardsticks(run.repeat, &mut made.disturbances)?;
                    made.yardsticks.extend(anew);
                }
                self.one(&asked(run, &run.label()))
            };
            let became = next();
            if !made.take(plan, index, became, self.told_in, tell)? {
                break;
            }
        }
        Ok(made)
    }

    /// Whether nothing on the machine disturbs any of them, so that they may disturb each other.
    fn are_exact(&self, plan: &[Run]) -> bool {
        let of = |run: &Run| (self.experiment).scenario(run.variant, run.point, self.setup.quick);
        self.experiment.yardsticks.is_empty() && plan.iter().all(|run| way::is_exact(&of(run)))
    }

    /// The same, on all processors.
    fn side_by_side(&self, plan: &[Run], tell: Tell) -> Result<Made, ExperimentError> {
        let ready = |run: &Run| self.ready(&asked(run, &run.label()));
        let runs: Vec<Ready> = plan.iter().map(ready).collect();
        let (keeper, host) = (self.keeper, self.host());
        let make = |run: &Ready| keeper.run(run, || exact::play(run, &host, &keeper));
        let mut made = Made::default();
        exact::each(self.setup.processors.len(), &runs, make, |index, became| {
            made.take(plan, index, became, Disturbance::default(), tell)
        })?;
        Ok(made)
    }
}

fn asked<'a>(run: &Run<'a>, label: &'a str) -> Asked<'a> {
    Asked {
        variant: run.variant,
        point: run.point,
        repeat: run.repeat,
        label,
    }
}
