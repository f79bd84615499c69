//! Who plays a scenario: a server, the simulator, or a program.

use toml::{Table, Value};

use crate::player::Player;
use crate::{nodes, program, simulated};

/// A server that is not ours, in the place of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// redis-server.
    Redis,
    /// A small store, an example of this project: queues behind locks that its threads share.
    LockedStore,
    /// The same with a stage for each thread.
    OwnedStore,
}

impl Rival {
    /// The words for them under `server`.
    const WORDS: [(&'static str, Self); 3] = [
        ("redis-server", Self::Redis),
        ("locked-store", Self::LockedStore),
        ("owned-store", Self::OwnedStore),
    ];
}

/// Where a scenario is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On a server of its own.
    Server,
    /// On a cluster of real nodes.
    Nodes,
    /// On a rival in its place.
    Rival(Rival),
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
        } else if nodes::is(scenario) {
            Self::Nodes
        } else {
            let word = scenario.get("server").and_then(Value::as_str);
            let rival = Rival::WORDS.iter().find(|(name, _)| Some(*name) == word);
            rival.map_or(Self::Server, |(_, rival)| Self::Rival(*rival))
        }
    }
}

/// What is wrong with a scenario for who is to play it, if anything; `origin` is what the text
/// calls it.
pub fn problem(player: &dyn Player, scenario: &Table, origin: &str) -> Option<String> {
    match Way::of(scenario) {
        Way::Server => player.problem(scenario, origin),
        Way::Nodes => nodes::problem(player, scenario, origin),
        Way::Rival(_) => player.problem(&without_server(scenario), origin),
        Way::Simulated => simulated::problem(scenario, origin),
        Way::Program => program::problem(scenario, origin),
    }
}

/// Whether a scenario is played in simulated time, whose figures nothing on the machine disturbs.
pub fn is_exact(scenario: &Table) -> bool {
    match Way::of(scenario) {
        Way::Simulated => true,
        Way::Program => !program::is_timed(scenario),
        Way::Server | Way::Nodes | Way::Rival(_) => false,
    }
}

/// What is played on a rival: in the place of a configuration, `server` has its name.
pub fn without_server(scenario: &Table) -> Table {
    let mut played = scenario.clone();
    played.remove("server");
    played
}

/// Whether a scenario is played on a server, or several, that have a configuration.
pub fn takes_a_server(scenario: &Table) -> bool {
    matches!(Way::of(scenario), Way::Server | Way::Nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::LoadClient;

    const LOAD: &str = "[[tenant]]\nname = 'web'\n[[tenant.load]]\nloop = 'closed'\n";

    #[test]
    fn a_scenario_names_a_rival_in_the_place_of_a_configuration() {
        let scenario =
            |server: &str| -> Table { format!("{server}\n{LOAD}").parse().expect("toml") };
        let redis = scenario("server = 'redis-server'");
        assert_eq!(Way::of(&redis), Way::Rival(Rival::Redis));
        let locked = Way::of(&scenario("server = 'locked-store'"));
        assert_eq!(locked, Way::Rival(Rival::LockedStore));
        assert_eq!(problem(&LoadClient, &redis, "it"), None);
        assert!(!takes_a_server(&redis) && !without_server(&redis).contains_key("server"));
        let ours = scenario("server.scheduler.request = 'fair'");
        assert_eq!(Way::of(&ours), Way::Server);
        let other = problem(&LoadClient, &scenario("server = 'memcached'"), "it");
        assert!(other.is_some(), "nobody knows how to start that");
    }
}
