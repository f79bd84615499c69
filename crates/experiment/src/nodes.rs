//! Scenarios with `nodes`: played on a cluster of real nodes on this machine, each an engine with a
//! front before it, by loads that know of the cluster.

use serde::Deserialize;
use toml::Table;

use crate::player::Player;

/// What they are called in a scenario.
const NODES: &str = "nodes";

/// What `nodes` says.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// Masters, and as many fronts.
    pub count: u16,
    /// Replicas of each master.
    #[serde(default)]
    pub replicas: u16,
    /// The part of a processor that each engine may use: what a node can serve.
    pub processor: f64,
    /// How often partitions are placed anew, as "3s"; none: they stay where they are.
    pub control: Option<String>,
}

impl Nodes {
    /// Those of a scenario.
    ///
    /// # Errors
    /// What is wrong with what it says of them.
    pub fn of(scenario: &Table) -> Result<Self, String> {
        let said = scenario.get(NODES).cloned().ok_or("there are no nodes")?;
        said.try_into()
            .map_err(|why: toml::de::Error| format!("{NODES}: {}", why.message()))
    }

    /// The words that follow `entremet cluster dev`.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![
            format!("--nodes={}", self.count),
            format!("--replicas={}", self.replicas),
            format!("--processor={}", self.processor),
        ];
        words.extend(
            self.control
                .iter()
                .map(|every| format!("--control={every}")),
        );
        words
    }
}

/// Whether a scenario is played on nodes.
pub fn is(scenario: &Table) -> bool {
    scenario.contains_key(NODES)
}

/// What its loads are told of it.
pub fn without(scenario: &Table) -> Table {
    let mut played = scenario.clone();
    played.remove(NODES);
    played
}

/// What is wrong with a scenario, if anything; `origin` is what the text calls it.
pub fn problem(player: &dyn Player, scenario: &Table, origin: &str) -> Option<String> {
    let wrong = Nodes::of(scenario).err();
    wrong
        .map(|why| format!("{origin}: {why}"))
        .or_else(|| player.problem(&without(scenario), origin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::LoadClient;

    #[test]
    fn a_scenario_says_what_nodes_there_are() {
        let load = "[[tenant]]\nname = 'web'\n[[tenant.load]]\nloop = 'closed'\n";
        let table = |nodes: &str| -> Table { format!("{nodes}\n{load}").parse().expect("TOML") };
        let scenario = table("nodes = { count = 4, processor = 0.05, control = '3s' }");
        assert!(is(&scenario) && !is(&without(&scenario)));
        assert_eq!(problem(&LoadClient, &scenario, "it"), None);
        let nodes = Nodes::of(&scenario).expect("nodes");
        let words = [
            "--nodes=4",
            "--replicas=0",
            "--processor=0.05",
            "--control=3s",
        ];
        assert_eq!(nodes.words(), words);
        let wrong = table("nodes = { count = 4, processor = 1, speed = 3 }");
        let said = problem(&LoadClient, &wrong, "it").expect("a problem");
        assert!(said.contains("speed"), "{said}");
    }
}
