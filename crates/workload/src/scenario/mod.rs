//! Scenarios: who asks what of a server, when, and what changes on the way, as a text.
//!
//! ```text
//! text or table ──▶ read (language of `schema`, all errors at once) ──▶ Scenario ──▶ words: said back
//!                                                                          └──▶ build ──▶ client::drive
//! ```
//!
//! docs/reference/scenario.md describes the language; it is written from [`schema`]. A scenario
//! also says what the tenants were promised and how the server is set up: whoever starts the server
//! (an experiment) uses that, the load client only if it is told to.

mod behaviour;
pub mod build;
mod drawn;
pub mod misbehave;
pub mod promise;
mod provision;
mod read;
pub mod reference;
mod run;
pub mod schema;
#[cfg(test)]
mod tests;
mod words;

use std::path::Path;
use std::time::Duration;

use settings::tenant::Terms;
use settings::Report;

pub use behaviour::{
    Arrivals, Behaviour, Counts, CurveFrom, Curved, Favour, Handshake, Keys, Pace, Replayed, Scale,
    Spike, Values,
};
pub use provision::provision;
pub use run::{run, Event, RunOptions};
pub use words::words;

use crate::error::WorkloadError;

/// A scenario that passed all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What results call it.
    pub name: String,
    /// One line on what it is for; may be empty.
    pub about: String,
    /// Fixes everything random.
    pub seed: u64,
    /// Measured.
    pub duration: Duration,
    /// Run before that and not measured; all other times count from its end.
    pub warm_up: Duration,
    /// How long the last replies are waited for.
    pub drain: Duration,
    /// Threads of the load generator, at least 1.
    pub threads: usize,
    /// They never sleep.
    pub spin: bool,
    /// `[server]`, in the language of `entremet.toml`, as it was written; empty when absent.
    pub server: toml::Table,
    /// At least one, names unique; `count` is spelt out.
    pub tenants: Vec<Tenant>,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its own name: `web`, or `web-3` of `count = 4`.
    pub name: String,
    /// The name in the file: `web`.
    pub group: String,
    /// Its password, if the scenario says it.
    pub password: Option<String>,
    /// Workload tag; may be empty.
    pub tag: String,
    /// What it was promised, as it was written.
    pub terms: Terms,
    /// What it asks, all at once; at least one.
    pub loads: Vec<Load>,
}

/// A stream of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Its name; its number, from 1, where the file gives none.
    pub name: String,
    /// When it joins; `None`: it is there from the warm-up on.
    pub from: Option<Duration>,
    /// When it leaves; `None`: it stays.
    pub until: Option<Duration>,
    /// The generator's thread that plays it; `None`: it is dealt to all.
    pub thread: Option<usize>,
    /// What it sends in all; `None`: there is no end.
    pub requests: Option<u64>,
    /// How it behaves until the first phase.
    pub first: Behaviour,
    /// What changes, in order of time.
    pub phases: Vec<Phase>,
}

/// How a load behaves from some time on.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// When it begins, from the end of the warm-up.
    pub at: Duration,
    /// The whole behaviour, not only what changes.
    pub behaviour: Behaviour,
}

impl Load {
    /// The first behaviour and those of the phases.
    pub fn behaviours(&self) -> impl Iterator<Item = &Behaviour> {
        std::iter::once(&self.first).chain(self.phases.iter().map(|phase| &phase.behaviour))
    }
}

/// A good scenario, and the warnings about it.
#[derive(Debug)]
pub struct Loaded {
    /// The scenario.
    pub scenario: Scenario,
    /// Warnings only; print them.
    pub report: Report,
}

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// [`WorkloadError::Scenario`] with everything that is wrong, each with line, column and key;
    /// [`WorkloadError::Input`] if the file cannot be read.
    pub fn load(file: &Path) -> Result<Loaded, WorkloadError> {
        let text = std::fs::read_to_string(file).map_err(|source| WorkloadError::Input {
            path: file.into(),
            source,
        })?;
        Self::from_text(&text, &file.display().to_string())
    }

    /// Reads a text; `origin` is what problems call it.
    ///
    /// # Errors
    /// [`WorkloadError::Scenario`] with everything that is wrong.
    pub fn from_text(text: &str, origin: &str) -> Result<Loaded, WorkloadError> {
        read::read(text, Report::new(origin, text))
    }

    /// Reads a table, perhaps one put together from several files; `origin` is what problems call
    /// it. They name the keys, because there is no text to point into.
    ///
    /// # Errors
    /// [`WorkloadError::Scenario`] with everything that is wrong.
    pub fn from_table(table: toml::Table, origin: &str) -> Result<Self, WorkloadError> {
        let text = table.to_string();
        read::read(&text, Report::placeless(origin, &text)).map(|loaded| loaded.scenario)
    }
}
