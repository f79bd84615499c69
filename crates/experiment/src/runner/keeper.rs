//! What is done about every run, however it is made: it is found among those that were made
//! before, or begins if it still may, and is kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use toml::Table;

use super::make::Ready;
use super::Setup;
use crate::error::ExperimentError;
use crate::kept::Kept;
use crate::observed::Observed;
use crate::plan;

/// Finds, begins and keeps runs.
#[derive(Clone, Copy)]
pub(super) struct Keeper<'a> {
    kept: Option<&'a Kept>,
    until: Option<Instant>,
    /// Set to end early.
    pub stop: &'a AtomicBool,
}

impl<'a> Keeper<'a> {
    pub fn new(setup: &'a Setup) -> Self {
        Self {
            kept: setup.kept.as_ref(),
            until: setup.until,
            stop: setup.stop,
        }
    }

    /// A run that was made before, or is now.
    pub fn run(
        &self,
        ready: &Ready,
        make: impl FnOnce() -> Result<Observed, ExperimentError>,
    ) -> Result<Observed, ExperimentError> {
        if let Some(observed) = self.kept.and_then(|kept| kept.find(&ready.depends_on)) {
            return Ok(observed);
        }
        self.goes_on()?;
        if self.time_is_up(&ready.scenario) {
            return Err(ExperimentError::TimeIsUp);
        }
        let begun = Instant::now();
        let mut observed = make()?;
        observed.took_s = begun.elapsed().as_secs_f64();
        if let Some(kept) = self.kept {
            kept.keep(&ready.depends_on, &observed)?;
        }
        Ok(observed)
    }

    /// Whether a run would not end in the time that there is.
    pub fn time_is_up(&self, scenario: &Table) -> bool {
        let expected = Duration::from_secs_f64(plan::seconds(scenario));
        let up = |until: Instant| Instant::now() + expected > until;
        self.until.is_some_and(up)
    }

    /// Fails once it was asked to end.
    pub fn goes_on(&self) -> Result<(), ExperimentError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(ExperimentError::Interrupted),
            false => Ok(()),
        }
    }
}
