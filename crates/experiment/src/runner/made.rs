//! Runs that were made.

use serde_json::Value;

use super::Tell;
use crate::error::ExperimentError;
use crate::machine::{Disturbance, Disturbances};
use crate::observed::Observed;
use crate::plan::Run;
use crate::verdict::Runs;

/// Runs that were made.
#[derive(Default)]
pub(super) struct Made {
    pub runs: Runs,
    /// What was measured before them.
    pub yardsticks: Vec<(String, Value)>,
    pub notes: Vec<String>,
    pub disturbances: Disturbances,
    /// What all of them took, in whichever invocation they were made, seconds.
    pub took_s: f64,
    /// What ended them early.
    pub cut: Option<ExperimentError>,
}

impl Made {
    /// Adds the next run of a plan, and tells of it; `false`: it failed, and is the end of those
    /// that were made.
    ///
    /// # Errors
    /// That of the first.
    pub fn take(
        &mut self,
        plan: &[Run],
        index: usize,
        became: Result<Observed, ExperimentError>,
        told_in: Disturbance,
        tell: Tell,
    ) -> Result<bool, ExperimentError> {
        let observed = match became {
            Ok(observed) => observed,
            Err(error) if index == 0 => return Err(error),
            Err(error) => {
                let note = format!("{index} of {} runs were made: {error}", plan.len());
                self.notes.insert(0, note);
                self.cut = Some(error);
                return Ok(false);
            }
        };
        let run = &plan[index];
        if let Some(complaint) = &observed.generator.complaint {
            self.notes.push(format!("{}: {complaint}", run.label()));
        }
        self.disturbances
            .add(observed.tried, observed.disturbance());
        self.took_s += observed.took_s;
        let observed = observed.told_in(told_in);
        tell(index + 1, plan.len(), run, &observed);
        self.runs
            .add(run.repeat, &run.variant.name, &run.point.name, observed);
        Ok(true)
    }
}
