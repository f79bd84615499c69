//! One run: found among those that were made before, or made.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use toml::Table;

use super::{seed, Runner};
use crate::error::ExperimentError;
use crate::machine::Watched;
use crate::observed::Observed;
use crate::plan;
use crate::program::{self, Host};
use crate::simulated;
use crate::spec::merge::lay_over;
use crate::spec::{Point, Variant};
use crate::way::Way;

/// Times that a run is made in the hope that the machine is left to it.
const TRIES: usize = 3;

/// Which run.
pub(super) struct Asked<'a> {
    pub variant: &'a Variant,
    pub point: &'a Point,
    /// From 0.
    pub repeat: usize,
    /// As messages call it.
    pub label: &'a str,
}

impl Runner<'_> {
    /// One run.
    pub(super) fn one(&self, asked: &Asked) -> Result<Observed, ExperimentError> {
        let experiment = self.experiment;
        let mut scenario = experiment.scenario(asked.variant, asked.point, self.setup.quick);
        let way = Way::of(&scenario);
        lay_over(&mut scenario, &self.told_to(way));
        let seed = seed(&scenario) + asked.repeat as u64;
        // A seed that wraps is as good as another.
        let seed = i64::try_from(seed).unwrap_or(0);
        scenario.insert("seed".into(), toml::Value::Integer(seed));
        let what = self.depends_on(&scenario, asked);
        let kept = self.setup.kept.as_ref();
        if let Some(observed) = kept.and_then(|kept| kept.find(&what)) {
            return Ok(observed);
        }
        if self.setup.stop.load(Ordering::Relaxed) {
            return Err(ExperimentError::Interrupted);
        }
        if self.time_is_up(&scenario) {
            return Err(ExperimentError::TimeIsUp);
        }
        let begun = Instant::now();
        let mut observed = self.make(&scenario, way, asked)?;
        observed.took_s = begun.elapsed().as_secs_f64();
        kept.map_or(Ok(()), |kept| kept.keep(&what, &observed))?;
        Ok(observed)
    }

    /// Whether a run would not end in the time that there is.
    fn time_is_up(&self, scenario: &Table) -> bool {
        let expected = Duration::from_secs_f64(plan::seconds(scenario));
        let up = |until: Instant| Instant::now() + expected > until;
        self.setup.until.is_some_and(up)
    }

    /// All that a run depends on, besides the build.
    fn depends_on(&self, scenario: &Table, asked: &Asked) -> String {
        let (experiment, label) = (self.experiment, asked.label);
        let changes = experiment.changes_of(&asked.variant.name);
        let changes: Vec<String> = changes
            .map(|change| format!("at {} s:\n{}", change.at_s, change.scenario))
            .collect();
        let (name, pinned, quick) = (&experiment.name, &self.pinned, self.setup.quick);
        let watched = self.looks();
        format!(
            "{name}, {label}; quick {quick}; {pinned:?}; watched {watched}\n{scenario}\n{}",
            changes.concat()
        )
    }

    fn make(&self, scenario: &Table, way: Way, asked: &Asked) -> Result<Observed, ExperimentError> {
        let (stop, label) = (self.setup.stop, asked.label);
        let observed = match way {
            Way::Server | Way::Nodes | Way::Rival(_) => {
                let processors = self.pinned.all();
                return self.undisturbed(scenario, processors, || self.serve(scenario, asked));
            }
            Way::Simulated => simulated::play(scenario, stop).map_err(|source| {
                let label = label.into();
                ExperimentError::Simulated { label, source }
            })?,
            Way::Program if program::is_timed(scenario) => {
                let processors = self.setup.processors.to_vec();
                return self.undisturbed(scenario, processors, || self.program(scenario, label));
            }
            Way::Program => self.program(scenario, label)?,
        };
        if stop.load(Ordering::Relaxed) {
            return Err(ExperimentError::Interrupted);
        }
        Ok(observed)
    }

    fn program(&self, scenario: &Table, label: &str) -> Result<Observed, ExperimentError> {
        let host = Host {
            binary: self.setup.binary,
            cores: &self.pinned.server,
        };
        program::play(scenario, &host).map_err(|problems| {
            let label = label.into();
            ExperimentError::Program { label, problems }
        })
    }

    /// What yardsticks said, as far as it is for who plays: a `cluster` would make a server's run a
    /// simulated one.
    fn told_to(&self, way: Way) -> Table {
        let mut told = self.told.clone();
        let others: &[&str] = match way {
            Way::Simulated => &["server"],
            Way::Server | Way::Nodes | Way::Program => &["cluster", "fault"],
            Way::Rival(_) => &["server", "cluster", "fault"],
        };
        told.retain(|key, _| !others.contains(&key));
        told
    }

    /// A run again while it is disturbed. The last one counts, whatever it measured and however
    /// disturbed the others were: to take the least disturbed would favour runs that use less of
    /// the processors.
    fn undisturbed(
        &self,
        scenario: &Table,
        processors: Vec<usize>,
        make: impl Fn() -> Result<Observed, ExperimentError>,
    ) -> Result<Observed, ExperimentError> {
        let tries = if self.setup.quick { 1 } else { TRIES };
        let mut last: Option<Observed> = None;
        for tried in 1..=tries {
            let watched = Watched::begin(self.setup.meter, processors.clone());
            let mut observed = match make() {
                Ok(observed) => observed,
                // Disturbed, but made.
                Err(ExperimentError::Interrupted) if last.is_some() => break,
                Err(error) => return Err(error),
            };
            let found = watched.end();
            (observed.withheld, observed.others) = (found.withheld, found.others);
            observed.tried = tried;
            last = Some(observed);
            if !found.too_much() || self.time_is_up(scenario) {
                break;
            }
        }
        last.ok_or(ExperimentError::Interrupted)
    }
}
