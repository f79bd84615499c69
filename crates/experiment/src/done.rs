//! What comes of running an experiment: everything that tables, results and reports are made from.

use serde_json::Value;

use crate::error::ExperimentError;
use crate::verdict::{Judged, Judgement, Runs};

/// An experiment that was run and judged.
#[derive(Debug)]
pub struct Done {
    /// What every run observed.
    pub runs: Runs,
    /// The verdicts.
    pub judged: Vec<Judged>,
    /// What was measured first and told to the servers: key and value.
    pub yardsticks: Vec<(String, Value)>,
    /// What to know about the figures.
    pub notes: Vec<String>,
    /// The short form.
    pub quick: bool,
    /// Seed of the first repeat; the others follow.
    pub seed: u64,
    /// Processors of the machine that could be used.
    pub processors: usize,
    /// What all runs took, starts and preloads and tries included, seconds.
    pub took_s: f64,
    /// The command that repeats it.
    pub command: String,
    /// What ended it before all runs were made, if anything did.
    pub cut: Option<ExperimentError>,
}

impl Done {
    /// Whether no target was missed, left open by what disturbed the runs, or met by a verdict that
    /// shows nothing.
    pub fn passed(&self) -> bool {
        let mut judged = self.judged.iter();
        judged.all(|one| {
            !matches!(
                one.judgement,
                Judgement::Miss | Judgement::Disturbed(_) | Judgement::Idle(_)
            )
        })
    }

    /// Whether every target was judged and met. Where none has a bound, there is nothing that could
    /// have been.
    pub fn all_met(&self) -> bool {
        let mut targets = self.judged.iter().filter(|one| one.bound.is_some());
        let some = targets.clone().next().is_some();
        some && targets.all(|one| one.judgement == Judgement::Pass) && self.cut.is_none()
    }
}
