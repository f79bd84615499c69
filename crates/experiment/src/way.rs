//! Who plays a scenario: a server, the simulator, or a program.

use toml::Table;

use crate::player::Player;
use crate::{program, simulated};

/// Where a scenario is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On a server of its own.
    Server,
    /// In the simulator.
    Simulated,
    /// By a program.
    Program,
}

impl Way {
    /// Who plays it.
    pub fn of(scenario: &Table) -> Self {
        if simulated::is(scenario) {
            Self::Simulated
        } else if program::is(scenario) {
            Self::Program
        } else {
            Self::Server
        }
    }
}

/// What is wrong with a scenario for who is to play it, if anything; `origin` is what the text calls it.
pub fn problem(player: &dyn Player, scenario: &Table, origin: &str) -> Option<String> {
    match Way::of(scenario) {
        Way::Server => player.problem(scenario, origin),
        Way::Simulated => simulated::problem(scenario, origin),
        Way::Program => program::problem(scenario, origin),
    }
}

/// Whether a scenario is played on a server.
pub fn takes_a_server(scenario: &Table) -> bool {
    Way::of(scenario) == Way::Server
}
