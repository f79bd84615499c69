//! What one node of a cluster says of all: `CLUSTER NODES`.

use std::collections::BTreeMap;

use crate::elsewhere::bracketed;

/// A node, as some node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name: 40 hexadecimal digits.
    pub id: String,
    /// `host:port`, where clients reach it.
    pub at: String,
    /// The port of the cluster's bus there.
    pub bus: u16,
    /// It has slots, or may have.
    pub master: bool,
    /// The cluster takes it to be gone, or it was never reached.
    pub gone: bool,
    /// The master whose replica it is.
    pub replica_of: Option<String>,
    /// Who has a slot is decided by the larger one.
    pub epoch: u64,
    /// First and last of each range of slots that it has.
    pub ranges: Vec<(u16, u16)>,
}

impl Node {
    /// Whether it has a slot.
    #[must_use]
    pub fn has(&self, slot: u16) -> bool {
        (self.ranges.iter()).any(|(from, to)| (*from..=*to).contains(&slot))
    }

    /// How many slots it has.
    #[must_use]
    pub fn slots(&self) -> u32 {
        let sizes = self
            .ranges
            .iter()
            .map(|(from, to)| u32::from(to - from) + 1);
        sizes.sum()
    }
}

/// A slot that moves, as one node says of it: it is open there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// On its way to the node of this name: who has no such key here is sent there.
    Out(String),
    /// On its way here, from the node of this name.
    In(String),
}

/// What one node knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its own name.
    pub me: String,
    /// All nodes, by name.
    pub nodes: BTreeMap<String, Node>,
    /// Its open slots.
    pub open: BTreeMap<u16, Open>,
}

impl View {
    /// Reads what a node that was reached at `host` says. None: it is nothing of that kind.
    #[must_use]
    pub fn read(text: &str, host: &str) -> Option<Self> {
        let mut view = Self {
            me: String::new(),
            nodes: BTreeMap::new(),
            open: BTreeMap::new(),
        };
        for line in text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [id, place, flags, master, _, _, epoch, _, slots @ ..] = &words[..] else {
                return None;
            };
            let flag = |name: &str| flags.split(',').any(|flag| flag == name);
            if flag("myself") {
                view.me = (*id).to_owned();
            }
            let mut node = Node {
                id: (*id).to_owned(),
                at: address(place, host)?,
                bus: bus(place)?,
                master: flag("master"),
                gone: ["fail", "noaddr", "handshake"].into_iter().any(flag),
                replica_of: (*master != "-").then(|| (*master).to_owned()),
                epoch: epoch.parse().ok()?,
                ranges: Vec::new(),
            };
            for word in slots {
                match word.strip_prefix('[') {
                    Some(open) => {
                        let (slot, open) = open_slot(open.strip_suffix(']')?)?;
                        view.open.insert(slot, open);
                    }
                    None => {
                        let (from, to) = word.split_once('-').unwrap_or((word, word));
                        node.ranges.push((from.parse().ok()?, to.parse().ok()?));
                    }
                }
            }
            view.nodes.insert(node.id.clone(), node);
        }
        (!view.me.is_empty()).then_some(view)
    }

    /// The node that has a slot.
    #[must_use]
    pub fn owner(&self, slot: u16) -> Option<&Node> {
        self.nodes.values().find(|node| node.has(slot))
    }

    /// Masters that are there.
    pub fn masters(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(|node| node.master && !node.gone)
    }
}

/// `host:port@bus[,name…]` as `host:port`. A node that knows no address of its own leaves it out.
fn address(place: &str, host: &str) -> Option<String> {
    let place = place.split([',', '@']).next()?;
    let (its_host, port) = place.rsplit_once(':')?;
    let its_host = if its_host.is_empty() { host } else { its_host };
    Some(format!("{}:{port}", bracketed(its_host)))
}

/// The port of the bus in that.
fn bus(place: &str) -> Option<u16> {
    let (_, bus) = place.split_once('@')?;
    bus.split(',').next()?.parse().ok()
}

/// `SLOT->-NODE` or `SLOT-<-NODE`.
fn open_slot(text: &str) -> Option<(u16, Open)> {
    let (slot, open) = match (text.split_once("->-"), text.split_once("-<-")) {
        (Some((slot, node)), _) => (slot, Open::Out(node.to_owned())),
        (None, Some((slot, node))) => (slot, Open::In(node.to_owned())),
        (None, None) => return None,
    };
    Some((slot.parse().ok()?, open))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    #[test]
    fn what_a_node_says_is_read() {
        let text = format!(
            "{A} :7000@17000,name.example myself,master - 0 0 3 connected 0-99 200 [7->-{B}] [300-<-{B}]\n\
             {B} ::1:7001@17001 master,fail - 0 0 2 disconnected 100-199\n\
             cccccccccccccccccccccccccccccccccccccccc 10.0.0.3:7002@17002 slave {A} 0 0 3 connected\n"
        );
        let view = View::read(&text, "127.0.0.1").expect("nodes");
        assert_eq!(view.me, A);
        let node = &view.nodes[A];
        assert_eq!(
            (node.at.as_str(), node.epoch, node.slots()),
            ("127.0.0.1:7000", 3, 101)
        );
        assert_eq!(node.bus, 17_000);
        assert_eq!(
            view.owner(150).map(|node| node.at.as_str()),
            Some("[::1]:7001")
        );
        assert_eq!(view.owner(201), None);
        assert_eq!(view.masters().count(), 1);
        assert_eq!(view.open[&7], Open::Out(B.to_owned()));
        assert_eq!(view.open[&300], Open::In(B.to_owned()));
        assert!(View::read("", "a").is_none() && View::read("what", "a").is_none());
        assert!(View::read(&text.replace("->-", ">"), "a").is_none());
    }
}
