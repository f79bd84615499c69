//! Scenarios with a `[cluster]`: played by the simulator, in this process, in simulated time.

use std::sync::atomic::{AtomicBool, Ordering};

use sim::scenario::Plan;
use sim::{Outcome, SimError, Summary, World};
use toml::Table;

use crate::observed::{left, Observed, Tenant};

/// Events between two looks at whether to end early.
const LOOK_EVERY: u32 = 1 << 16;

/// Whether a scenario is one for the simulator.
pub fn is(scenario: &Table) -> bool {
    scenario.contains_key("cluster")
}

/// What is wrong with a scenario, if anything; `origin` is what the text calls it.
pub fn problem(scenario: &Table, origin: &str) -> Option<String> {
    let read = Plan::from_table(scenario.clone(), origin);
    read.err().map(|error| error.to_string())
}

/// Plays one. `stop` ends it early, with nothing to be judged.
///
/// # Errors
/// As [`problem`].
pub fn play(scenario: &Table, stop: &AtomicBool) -> Result<Observed, SimError> {
    let plan = Plan::from_table(scenario.clone(), "the scenario")?;
    let mut world = World::new(&plan.spec);
    let mut events = 0u32;
    while world.step() {
        events = events.wrapping_add(1);
        if events % LOOK_EVERY == 0 && stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(observed(&plan, &world.outcome()))
}

/// What a simulated run comes to.
pub fn observed(plan: &Plan, outcome: &Outcome) -> Observed {
    let summary = Summary::new(plan, outcome);
    let whole = [
        ("events".into(), summary.events as f64),
        ("utilisation".into(), summary.utilisation),
    ];
    let specs = plan.spec.tenants.iter().zip(&outcome.tenants);
    let tenants = summary.tenants.into_iter().zip(specs);
    Observed {
        elapsed_s: summary.elapsed_s,
        tenants: tenants
            .map(|(load, (spec, outcome))| Tenant {
                group: spec.group.clone(),
                windows: spec
                    .objective
                    .map_or_else(Vec::new, |promised| outcome.windows_kept(&promised)),
                badness: spec
                    .objective
                    .and_then(|promised| outcome.badness(&promised)),
                load,
                ..Tenant::default()
            })
            .collect(),
        figures: whole.into_iter().chain(left(outcome.left)).collect(),
        ..Observed::default()
    }
}
