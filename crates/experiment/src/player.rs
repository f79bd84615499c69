//! What loads a server: the seam between making runs and playing scenarios.

use std::sync::atomic::AtomicBool;

use toml::Table;
use workload::client::{Goal, Target};
use workload::report;
use workload::scenario::{self, RunOptions, Scenario};
use workload::WorkloadError;

use crate::observed::Observed;

/// Plays scenarios against a server.
pub trait Player {
    /// What is wrong with a scenario, if anything; `origin` is what the text calls it.
    fn problem(&self, scenario: &Table, origin: &str) -> Option<String>;

    /// Plays one. `stop` ends it early with what there is; `at` hears several times a second how
    /// far it is, in seconds from the end of the warm-up.
    ///
    /// # Errors
    /// Why it could not be played; a server that went away is one reason.
    fn play(
        &self,
        scenario: &Table,
        goal: Goal,
        stop: &AtomicBool,
        at: &mut dyn FnMut(f64),
    ) -> Result<Observed, WorkloadError>;
}

/// The load client, in this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadClient;

/// Any will do: tenants of an experiment have none unless their scenario says so, because logging
/// in must not be what is measured.
const PASSWORD: &str = "none";

impl Player for LoadClient {
    fn problem(&self, scenario: &Table, origin: &str) -> Option<String> {
        let read = Scenario::from_table(scenario.clone(), origin);
        read.err().map(|error| error.to_string())
    }

    fn play(
        &self,
        scenario: &Table,
        goal: Goal,
        stop: &AtomicBool,
        at: &mut dyn FnMut(f64),
    ) -> Result<Observed, WorkloadError> {
        let scenario = Scenario::from_table(scenario.clone(), "the scenario")?;
        let target = Target {
            password: Some(PASSWORD.into()),
            ..Target::new(goal)
        };
        let mut tell = |event: scenario::Event<'_>| {
            if let scenario::Event::Running(progress) = event {
                at(progress.at_s);
            }
        };
        let outcome = scenario::run(&scenario, &target, &mut RunOptions::new(&mut tell), stop)?;
        if let Some(why) = &outcome.cut_short {
            return Err(WorkloadError::Usage(format!("the load ended early: {why}")));
        }
        let of = |name: &str| scenario.tenants.iter().find(|tenant| tenant.name == name);
        let figures = report::figures(&outcome, |name| {
            of(name).map_or(1.0, |one| one.terms.settings.weight)
        });
        let group = |name: &str| of(name).map_or_else(|| name.into(), |one| one.group.clone());
        Ok(Observed {
            pace: outcome.pace,
            ..Observed::new(figures, group)
        })
    }
}
