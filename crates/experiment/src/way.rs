//! Who plays a scenario: a server, the simulator, or a program.

use toml::{Table, Value};

use crate::player::Player;
use crate::{program, simulated};

/// The word for it under `server`.
const REDIS: &str = "redis-server";

/// Where a scenario is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On a server of its own.
    Server,
    /// On a redis-server in its place.
    Redis,
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
        } else if scenario.get("server").and_then(Value::as_str) == Some(REDIS) {
            Self::Redis
        } else {
            Self::Server
        }
    }
}

/// What is wrong with a scenario for who is to play it, if anything; `origin` is what the text
/// calls it.
pub fn problem(player: &dyn Player, scenario: &Table, origin: &str) -> Option<String> {
    match Way::of(scenario) {
        Way::Server => player.problem(scenario, origin),
        Way::Redis => player.problem(&without_server(scenario), origin),
        Way::Simulated => simulated::problem(scenario, origin),
        Way::Program => program::problem(scenario, origin),
    }
}

/// What is played on a redis-server: in the place of a configuration, `server` has its name.
pub fn without_server(scenario: &Table) -> Table {
    let mut played = scenario.clone();
    played.remove("server");
    played
}

/// Whether a scenario is played on a server that has a configuration.
pub fn takes_a_server(scenario: &Table) -> bool {
    Way::of(scenario) == Way::Server
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::LoadClient;

    const LOAD: &str = "[[tenant]]\nname = 'web'\n[[tenant.load]]\nloop = 'closed'\n";

    #[test]
    fn a_scenario_names_redis_in_the_place_of_a_configuration() {
        let scenario =
            |server: &str| -> Table { format!("{server}\n{LOAD}").parse().expect("toml") };
        let redis = scenario("server = 'redis-server'");
        assert_eq!(Way::of(&redis), Way::Redis);
        assert_eq!(problem(&LoadClient, &redis, "it"), None);
        assert!(!takes_a_server(&redis) && !without_server(&redis).contains_key("server"));
        let ours = scenario("server.scheduler.request = 'fair'");
        assert_eq!(Way::of(&ours), Way::Server);
        let other = problem(&LoadClient, &scenario("server = 'memcached'"), "it");
        assert!(other.is_some(), "nobody knows how to start that");
    }
}
