//! Where in a cluster a request belongs: which node has which slot, and what a node answers that
//! has it no longer.

use crate::slot::{slot, SLOTS};
use crate::value::Value;

/// What a node says that did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// Another node has the slot for good.
    Moved {
        /// Which.
        slot: u16,
        /// That node; empty host: the same as that of the node that says so.
        node: String,
    },
    /// The slot is on its way to another node, and this key is there or new.
    Ask {
        /// That node.
        node: String,
    },
    /// The keys of the request are on both sides of a move.
    TryAgain,
    /// The slot, or the cluster, is not served.
    Down(String),
}

impl Elsewhere {
    /// None: a reply of another kind.
    pub fn read(reply: &[u8]) -> Option<Self> {
        let line = reply.strip_prefix(b"-")?;
        let line = std::str::from_utf8(line).ok()?.trim_end();
        let (code, rest) = line.split_once(' ').unwrap_or((line, ""));
        let to = || {
            let (slot, node) = rest.split_once(' ')?;
            Some((slot.parse().ok().filter(|slot| *slot < SLOTS)?, node.into()))
        };
        match code {
            "MOVED" => to().map(|(slot, node)| Self::Moved { slot, node }),
            "ASK" => to().map(|(_, node)| Self::Ask { node }),
            "TRYAGAIN" => Some(Self::TryAgain),
            "CLUSTERDOWN" => Some(Self::Down(rest.into())),
            _ => None,
        }
    }
}

/// Which node has which slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// `host:port` of the nodes that have slots.
    pub nodes: Vec<String>,
    /// By slot, the place of its node.
    owners: Vec<Option<u16>>,
}

impl Topology {
    /// One engine that has all of them.
    pub fn one(node: String) -> Self {
        Self {
            nodes: vec![node],
            owners: vec![Some(0); SLOTS.into()],
        }
    }

    /// Reads the answer of a node at `host` to `CLUSTER SLOTS`. None: it is none.
    pub fn read(value: &Value, host: &str) -> Option<Self> {
        let Value::List(ranges) = value else {
            return None;
        };
        let mut topology = Self {
            nodes: Vec::new(),
            owners: vec![None; SLOTS.into()],
        };
        for range in ranges {
            let [from, to, master, ..] = range.items() else {
                return None;
            };
            let node = node_of(master, host)?;
            let place = match topology.nodes.iter().position(|known| *known == node) {
                Some(place) => place,
                None => {
                    topology.nodes.push(node);
                    topology.nodes.len() - 1
                }
            };
            let (from, to) = (from.int()?.try_into().ok()?, to.int()?.try_into().ok()?);
            let owners = topology
                .owners
                .get_mut::<std::ops::RangeInclusive<usize>>(from..=to)?;
            owners.fill(Some(place as u16));
        }
        Some(topology)
    }

    /// The node that has a slot; none: no node serves it.
    pub fn owner(&self, slot: u16) -> Option<&str> {
        let place = self.owners[usize::from(slot)]?;
        Some(&self.nodes[usize::from(place)])
    }

    /// The place in [`Topology::nodes`] of the node that has a slot.
    pub fn place(&self, slot: u16) -> Option<usize> {
        self.owners[usize::from(slot)].map(usize::from)
    }

    /// The node that has a key.
    pub fn owner_of(&self, key: &[u8]) -> Option<&str> {
        self.owner(slot(key))
    }

    /// How many slots each node has, in the order of [`Topology::nodes`].
    pub fn slots(&self) -> Vec<u32> {
        let mut slots = vec![0; self.nodes.len()];
        for place in self.owners.iter().flatten() {
            slots[usize::from(*place)] += 1;
        }
        slots
    }

    /// The same, but for slots that nobody is to be asked for.
    #[must_use]
    pub fn without(&self, slots: &[u16]) -> Self {
        let mut left = self.clone();
        for slot in slots {
            left.owners[usize::from(*slot)] = None;
        }
        left
    }

    /// Slots that nobody serves.
    pub fn unserved(&self) -> usize {
        self.owners.iter().filter(|owner| owner.is_none()).count()
    }
}

/// A node that copies what a master has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// `host:port`.
    pub node: String,
    /// That of its master.
    pub master: String,
}

impl Replica {
    /// All that the answer of a node at `host` to `CLUSTER SLOTS` names: those that are there.
    pub fn all(value: &Value, host: &str) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for range in value.items() {
            let nodes = range.items().get(2..).unwrap_or_default();
            let mut nodes = nodes.iter().filter_map(|node| node_of(node, host));
            let Some(master) = nodes.next() else { continue };
            for node in nodes {
                if !all.iter().any(|known| known.node == node) {
                    let master = master.clone();
                    all.push(Self { node, master });
                }
            }
        }
        all
    }
}

/// `host:port` of a node, as `CLUSTER SLOTS` of a node at `host` has it.
fn node_of(node: &Value, host: &str) -> Option<String> {
    let [its_host, port, ..] = node.items() else {
        return None;
    };
    Some(place(its_host.text(), host, port.int()?))
}

/// `host:port` of a node as the one at `host` says it: it may know of no host.
pub fn place(its_host: Option<&str>, host: &str, port: i64) -> String {
    let its_host = its_host.filter(|host| !matches!(*host, "" | "?"));
    format!("{}:{port}", bracketed(its_host.unwrap_or(host)))
}

/// What a node says in `CLUSTER NODES` of its own slots: another text, when they change. None:
/// some of them are on their way to it or from it, or it says nothing of that kind.
pub fn settled_slots(nodes: &str) -> Option<&str> {
    let own = nodes.lines().find(|line| {
        let flags = line.split(' ').nth(2).unwrap_or_default();
        flags.split(',').any(|flag| flag == "myself")
    })?;
    let slots = own.splitn(9, ' ').nth(8).unwrap_or_default();
    (!slots.contains('[')).then_some(slots)
}

/// The host of `host:port`.
pub fn host_of(place: &str) -> &str {
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    let bare = host.strip_prefix('[').and_then(|v6| v6.strip_suffix(']'));
    bare.unwrap_or(host)
}

/// A host as it stands before a port.
pub fn bracketed(host: &str) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_did_nothing_is_understood() {
        let read = |text: &str| Elsewhere::read(format!("{text}\r\n").as_bytes());
        let node = || "127.0.0.1:6381".to_owned();
        let moved = Elsewhere::Moved {
            slot: 3_999,
            node: node(),
        };
        assert_eq!(read("-MOVED 3999 127.0.0.1:6381"), Some(moved));
        let ask = Elsewhere::Ask { node: node() };
        assert_eq!(read("-ASK 3999 127.0.0.1:6381"), Some(ask));
        let again = read("-TRYAGAIN Multiple keys request during rehashing of slot");
        assert_eq!(again, Some(Elsewhere::TryAgain));
        let down = read("-CLUSTERDOWN Hash slot not served");
        assert_eq!(down, Some(Elsewhere::Down("Hash slot not served".into())));
        for other in [
            "+MOVED 1 a:1",
            "-ERR MOVED 1 a:1",
            "-MOVED 16384 a:1",
            "-MOVED",
            "-ASK x a:1",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn slots_have_the_nodes_that_the_cluster_says() {
        let node = |host: &str, port: i64| {
            Value::List(vec![
                Value::Text(host.into()),
                Value::Int(port),
                Value::Text(b"id".to_vec()),
            ])
        };
        let range = |from, to, nodes: Vec<Value>| {
            Value::List([vec![Value::Int(from), Value::Int(to)], nodes].concat())
        };
        let slots = Value::List(vec![
            range(0, 99, vec![node("::1", 1), node("::1", 9)]),
            range(100, 100, vec![node("", 2)]),
            range(200, 16_383, vec![node("::1", 1)]),
        ]);
        let topology = Topology::read(&slots, "seed").expect("slots");
        assert_eq!(topology.nodes, ["[::1]:1", "seed:2"]);
        assert_eq!(topology.owner(99), Some("[::1]:1"));
        assert_eq!(topology.owner(100), Some("seed:2"));
        assert_eq!((topology.owner(101), topology.unserved()), (None, 99));
        assert_eq!(topology.place(16_383), Some(0));
        let left = topology.without(&[99]);
        assert_eq!((left.owner(98), left.owner(99)), (Some("[::1]:1"), None));
        let wrong = Value::List(vec![range(0, 16_384, vec![node("a", 1)])]);
        assert_eq!(Topology::read(&wrong, "seed"), None);
        assert_eq!(Topology::read(&Value::Int(1), "seed"), None);
        let replica = Replica {
            node: "[::1]:9".into(),
            master: "[::1]:1".into(),
        };
        assert_eq!(Replica::all(&slots, "seed"), [replica]);
        assert_eq!(Replica::all(&Value::Int(1), "seed"), []);
    }

    #[test]
    fn a_host_has_brackets_before_a_port_only() {
        for (place, host) in [
            ("a.b:1", "a.b"),
            ("[::1]:1", "::1"),
            ("10.0.0.1:1", "10.0.0.1"),
        ] {
            assert_eq!(host_of(place), host);
            assert_eq!(format!("{}:1", bracketed(host)), place);
        }
    }

    #[test]
    fn slots_that_move_are_told_from_those_that_do_not() {
        let says = |flags: &str, slots: &str| {
            format!(
                "a 127.0.0.1:1@11 master - 0 1 2 connected 0-9 [5->-b]\n\
                 b 127.0.0.1:2@12 {flags} - 0 0 1 connected{slots}\n"
            )
        };
        let settled = |flags, slots| settled_slots(&says(flags, slots)).map(str::to_owned);
        let plain = settled("myself,master", " 100-200 300");
        assert_eq!(plain.as_deref(), Some("100-200 300"));
        assert_eq!(settled("myself,master", "").as_deref(), Some(""));
        assert_eq!(settled("myself,master", " 100-200 [100->-a]"), None);
        assert_eq!(settled("myself,master", " 100-200 [9-<-a]"), None);
        assert_eq!(settled("master", " 100-200"), None);
        assert_eq!(settled_slots(""), None);
    }
}
