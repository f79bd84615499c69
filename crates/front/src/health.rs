//! How the nodes of a cluster are, as the cluster itself says.

use std::collections::BTreeMap;

use crate::elsewhere::place;
use crate::value::Value;

/// Of a node that serves its slots.
pub const ONLINE: &str = "online";

/// The word of the cluster for each node: `online`, `fail`, or `loading` of a replica that has no
/// data yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health(BTreeMap<String, String>);

impl Health {
    /// Reads the answer of a node at `host` to `CLUSTER SHARDS`, asked by `tls` or not: a node may
    /// have a port for either. What is not understood is left out.
    pub fn read(value: &Value, host: &str, tls: bool) -> Self {
        let ports = match tls {
            true => ["tls-port", "port"],
            false => ["port", "tls-port"],
        };
        let shards = value.items().iter().filter_map(|shard| shard.get("nodes"));
        let nodes = shards.flat_map(Value::items);
        let read = nodes.filter_map(|node| {
            let its_host = node.get("endpoint").and_then(Value::text);
            let port = ports.iter().find_map(|name| node.get(name))?.int()?;
            let word = node.get("health")?.text()?;
            Some((place(its_host, host, port), word.to_owned()))
        });
        Self(read.collect())
    }

    /// How a node is, `host:port` as in [`crate::Topology::nodes`]; one of which nothing is known
    /// is taken to serve.
    pub fn of(&self, node: &str) -> &str {
        self.0.get(node).map_or(ONLINE, String::as_str)
    }

    /// How those are together that have the slots of one shard: as long as one serves, they do.
    pub fn of_all<'h>(&'h self, nodes: &[String]) -> &'h str {
        let mut words = nodes.iter().map(|node| self.of(node));
        let first = words.next().unwrap_or(ONLINE);
        words.find(|word| *word == ONLINE).unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn node(endpoint: &str, port: i64, health: &str) -> Value {
        Value::List(vec![
            text("id"),
            text("a"),
            text("port"),
            Value::Int(port),
            text("endpoint"),
            text(endpoint),
            text("health"),
            text(health),
        ])
    }

    #[test]
    fn nodes_are_as_the_cluster_says() {
        let shard = |nodes: Vec<Value>| {
            let slots = Value::List(vec![Value::Int(0), Value::Int(1)]);
            Value::List(vec![
                text("slots"),
                slots,
                text("nodes"),
                Value::List(nodes),
            ])
        };
        let value = Value::List(vec![
            shard(vec![node("a", 1, "fail"), node("::1", 2, "loading")]),
            shard(vec![node("", 3, "online"), Value::Int(1)]),
        ]);
        let health = Health::read(&value, "seed", false);
        let words = ["a:1", "[::1]:2", "seed:3", "b:1"].map(|node| health.of(node));
        assert_eq!(words, ["fail", "loading", "online", "online"]);
        let all = |nodes: &[&str]| {
            let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
            health.of_all(&nodes).to_owned()
        };
        assert_eq!(all(&["a:1"]), "fail");
        assert_eq!(all(&["a:1", "seed:3"]), "online");
        assert_eq!(all(&["a:1", "[::1]:2"]), "fail");
        assert_eq!(all(&[]), "online");
        let both = Value::List(vec![
            text("port"),
            Value::Int(1),
            text("tls-port"),
            Value::Int(2),
            text("endpoint"),
            text("a"),
            text("health"),
            text("loading"),
        ]);
        let value = Value::List(vec![shard(vec![both])]);
        for (tls, node, other) in [(false, "a:1", "a:2"), (true, "a:2", "a:1")] {
            let health = Health::read(&value, "seed", tls);
            assert_eq!((health.of(node), health.of(other)), ("loading", "online"));
        }
        assert_eq!(
            Health::read(&Value::Int(1), "seed", true),
            Health::default()
        );
    }
}
