//! Scenarios with `nodes`: played on a cluster of real nodes on this machine, each an engine with a
//! front before it, by loads that know of the cluster.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};
use workload::client::Goal;

use crate::player::Player;
use crate::server::config;

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
    /// Who asks.
    #[serde(default)]
    pub clients: Clients,
    /// How long a key may hold nodes up in a move, as "20ms"; none: as `cluster move` has it.
    pub allow_stall: Option<String>,
    /// How much of the time of nodes a move may take, in percent; none: as `cluster move` has it.
    pub allow_part: Option<u8>,
    /// Partitions that are moved during the run, in this order.
    #[serde(default, rename = "move")]
    moves: Vec<OneMove>,
    /// By tenant or group, the nodes, from 1, at which its partitions lie at first, in turn.
    #[serde(default)]
    place: BTreeMap<String, Vec<u16>>,
    /// The same for each tenant, as `TENANT=NODE,NODE`: a node for each partition.
    #[serde(skip)]
    placed: Vec<String>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Clients {
    /// Those that know of the cluster: each request goes to the front that is its home.
    #[default]
    Aware,
    /// Those that do not: each has one front, which sends on what is elsewhere, in parts where keys
    /// are at several nodes.
    Plain,
}

/// A partition that is moved during the run.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct OneMove {
    /// When, from the end of the warm-up, s, or when the one before is at its end.
    at_s: f64,
    /// As `cluster move` has it: `TENANT:NUMBER`.
    what: String,
    /// The node, from 1.
    to: usize,
}

impl Nodes {
    /// Moves: when, s, of what, and to which node, from 0.
    pub fn moves(&self) -> impl Iterator<Item = (f64, &str, usize)> {
        let moves = self.moves.iter();
        moves.map(|one| (one.at_s, one.what.as_str(), one.to - 1))
    }

    /// Those of a scenario.
    ///
    /// # Errors
    /// What is wrong with what it says of them.
    pub fn of(scenario: &Table) -> Result<Self, String> {
        let said = scenario.get(NODES).cloned().ok_or("there are no nodes")?;
        let wrong = |why: toml::de::Error| format!("{NODES}: {}", why.message());
        let mut nodes: Self = said.try_into().map_err(wrong)?;
        nodes.placed = nodes.placed(scenario)?;
        let there = 1..=usize::from(nodes.count);
        match nodes.moves.iter().find(|one| !there.contains(&one.to)) {
            Some(one) => Err(format!("{NODES}.move: there is no node {}", one.to)),
            None => Ok(nodes),
        }
    }

    fn placed(&self, scenario: &Table) -> Result<Vec<String>, String> {
        let (mut placed, mut unknown) = (Vec::new(), self.place.clone());
        for (name, group, settings) in config::tenants(scenario) {
            let of_tenant = self.place.get(&name).map(|at| (&name, at));
            let Some((known, at)) = of_tenant.or(self.place.get(&group).map(|at| (&group, at)))
            else {
                continue;
            };
            unknown.remove(known);
            if at.is_empty() || at.iter().any(|node| !(1..=self.count).contains(node)) {
                return Err(format!(
                    "{NODES}.place.{known}: nodes are 1 to {}",
                    self.count
                ));
            }
            let parts = settings.get("partitions").and_then(Value::as_integer);
            let parts = usize::try_from(parts.unwrap_or(1)).unwrap_or(1);
            let each: Vec<String> = at.iter().map(u16::to_string).cycle().take(parts).collect();
            placed.push(format!("{name}={}", each.join(",")));
        }
        match unknown.keys().next() {
            None => Ok(placed),
            Some(name) => Err(format!("{NODES}.place.{name}: there is no such tenant")),
        }
    }

    /// Where loads go, as the log of `entremet cluster dev` has it; none: it does not say.
    pub fn goal(&self, log: &str) -> Option<Goal> {
        match self.clients {
            Clients::Aware => config::aware_address(log).map(Goal::Cluster),
            Clients::Plain => {
                let fronts = config::front_addresses(log);
                (!fronts.is_empty()).then_some(Goal::Servers(fronts))
            }
        }
    }

    /// What `entremet cluster move` is told of how nodes may be held up.
    pub fn allows(&self) -> Vec<String> {
        let stall = self.allow_stall.iter();
        let stall = stall.map(|stall| format!("--allow-stall={stall}"));
        let part = self.allow_part.iter();
        stall
            .chain(part.map(|part| format!("--allow-part={part}")))
            .collect()
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
        words.extend(self.placed.iter().map(|place| format!("--place={place}")));
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
    use std::net::SocketAddr;

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
        let two = |place: &str| -> Table {
            let nodes = format!("nodes = {{ count = 3, processor = 1, place = {{ {place} }} }}");
            let tenants = "[[tenant]]\nname = 'a'\ncount = 2\npartitions = 4\n";
            format!("{nodes}\n{tenants}").parse().expect("TOML")
        };
        let nodes = Nodes::of(&two("a = [3, 1], a-2 = [2]")).expect("nodes");
        let words = ["--place=a-1=3,1,3,1", "--place=a-2=2,2,2,2"];
        assert_eq!(nodes.words()[3..], words);
        for (wrong, why) in [
            ("b = [1]", "no such"),
            ("a = [4]", "1 to 3"),
            ("a = []", "1 to 3"),
        ] {
            let said = Nodes::of(&two(wrong)).expect_err(wrong);
            assert!(said.contains(why), "{said}");
        }
        let moved = |to: usize| {
            let moves = format!("[{{ at_s = 2.5, what = 'web:0', to = {to} }}]");
            Nodes::of(&table(&format!(
                "nodes = {{ count = 2, processor = 1, move = {moves} }}"
            )))
        };
        let allows = "nodes = { count = 4, processor = 1, allow_stall = '3s', allow_part = 50 }";
        let allows = Nodes::of(&table(allows)).expect("nodes").allows();
        assert_eq!(allows, ["--allow-stall=3s", "--allow-part=50"]);
        let nodes = moved(2).expect("nodes");
        assert!(nodes.moves().eq([(2.5, "web:0", 1)]));
        for to in [0, 3] {
            assert!(moved(to).expect_err("far").contains("no node"), "{to}");
        }
        let log =
            "clients on 127.0.0.1:1, clients of the cluster at 127.0.0.1:2, admin; engines at a";
        let goal = |clients: &str| {
            let nodes = format!("nodes = {{ count = 1, processor = 1{clients} }}");
            Nodes::of(&table(&nodes)).expect("nodes").goal(log)
        };
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(goal(""), Some(Goal::Cluster(at(2))));
        assert_eq!(goal(", clients = 'plain'"), Some(at(1).into()));
        let wrong = table("nodes = { count = 4, processor = 1, speed = 3 }");
        let said = problem(&LoadClient, &wrong, "it").expect("a problem");
        assert!(said.contains("speed"), "{said}");
    }
}
