//! One run: its scenario made ready, and played.

use toml::Table;

use super::exact;
use super::{seed, Runner};
use crate::error::ExperimentError;
use crate::machine::Watched;
use crate::observed::Observed;
use crate::program::Host;
use crate::spec::merge::lay_over;
use crate::spec::{Point, Variant};
use crate::way::{self, Way};

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

/// A run that can begin.
pub(super) struct Ready {
    /// With all that was laid over it, and the repeat's seed.
    pub scenario: Table,
    /// Who plays it.
    pub way: Way,
    /// As messages call it.
    pub label: String,
    /// All that the run depends on, besides the build.
    pub depends_on: String,
}

impl Runner<'_> {
    /// One run.
    pub(super) fn one(&self, asked: &Asked) -> Result<Observed, ExperimentError> {
        let ready = self.ready(asked);
        self.keeper.run(&ready, || self.make(&ready, asked))
    }

    /// One run's scenario.
    pub(super) fn ready(&self, asked: &Asked) -> Ready {
        let mut scenario = (self.experiment).scenario(asked.variant, asked.point, self.setup.quick);
        let way = Way::of(&scenario);
        lay_over(&mut scenario, &self.told_to(way, asked.point));
        let seed = seed(&scenario) + asked.repeat as u64;
        // A seed that wraps is as good as another.
        let seed = i64::try_from(seed).unwrap_or(0);
        scenario.insert("seed".into(), toml::Value::Integer(seed));
        Ready {
            way,
            label: asked.label.into(),
            depends_on: self.depends_on(&scenario, asked),
            scenario,
        }
    }

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

    fn make(&self, ready: &Ready, asked: &Asked) -> Result<Observed, ExperimentError> {
        let scenario = &ready.scenario;
        if way::is_exact(scenario) {
            return exact::play(ready, &self.host(), &self.keeper);
        }
        let program = ready.way == Way::Program;
        let processors = match program {
            true => self.setup.processors.to_vec(),
            false => self.pinned.all(),
        };
        self.undisturbed(scenario, processors, || match program {
            true => exact::program(ready, &self.host()),
            false => self.serve(scenario, asked),
        })
    }

    /// What programs may use.
    pub(super) fn host(&self) -> Host<'_> {
        Host {
            binary: self.setup.binary,
            cores: &self.pinned.server,
        }
    }

    /// What yardsticks said, as far as it is for who plays: a `cluster` would make a server's run a
    /// simulated one.
    fn told_to(&self, way: Way, point: &Point) -> Table {
        let mut told = self.told_at(point.x);
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
            if !found.too_much() || self.keeper.time_is_up(scenario) {
                break;
            }
        }
        last.ok_or(ExperimentError::Interrupted)
    }
}
