//! What loads a server: the seam between making runs and playing scenarios.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use toml::Table;
use workload::WorkloadError;

use crate::observed::Observed;

/// Plays scenarios against a server.
pub trait Player {
    /// What is wrong with a scenario, if anything; `origin` is what the text calls it.
    fn problem(&self, scenario: &Table, origin: &str) -> Option<String>;

    /// Plays one. `stop` ends it early with what there is.
    ///
    /// # Errors
    /// Why it could not be played; a server that went away is one reason.
    fn play(
        &self,
        scenario: &Table,
        target: SocketAddr,
        stop: &AtomicBool,
    ) -> Result<Observed, WorkloadError>;
}
