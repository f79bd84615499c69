//! What nodes of a cluster say of each other: `CLUSTER NODES`, of each of them.

use std::collections::BTreeMap;

use front::{bracketed, SLOTS};

use super::slots::Slots;

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
    pub fn has(&self, slot: u16) -> bool {
        (self.ranges.iter()).any(|(from, to)| (*from..=*to).contains(&slot))
    }

    /// How many slots it has.
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

/// What all masters know that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Views {
    /// What the node says that was asked first.
    pub first: View,
    /// By the name of a master, what it says.
    pub by_master: BTreeMap<String, View>,
}

impl Views {
    /// The node that has a slot: who says so itself, with the largest epoch, is believed by all
    /// soon.
    pub fn owner(&self, slot: u16) -> Option<&Node> {
        let claims = self.by_master.iter();
        let claims = claims.filter_map(|(id, view)| view.owner(slot).filter(|it| it.id == *id));
        let owner = claims.max_by_key(|node| node.epoch);
        owner.or_else(|| self.first.owner(slot))
    }

    /// A master that is there.
    pub fn master(&self, id: &str) -> Option<&Node> {
        self.first.masters().find(|node| node.id == id)
    }

    /// Whether a master has replicas, or may have.
    pub fn has_replicas(&self, id: &str) -> bool {
        let mut all = self.first.nodes.values();
        all.any(|node| node.replica_of.as_deref() == Some(id))
    }

    /// Where a node is; what is not known has its name.
    pub fn at<'v>(&'v self, id: &'v str) -> &'v str {
        self.first.nodes.get(id).map_or(id, |node| &node.at)
    }

    /// Whether a slot is open at a master.
    pub fn open_at(&self, id: &str, slot: u16) -> Option<&Open> {
        self.by_master.get(id)?.open.get(&slot)
    }

    /// All open slots: slot, at whom, how.
    pub fn open(&self) -> impl Iterator<Item = (u16, &str, &Open)> {
        let views = self.by_master.iter();
        views.flat_map(|(id, view)| {
            let open = view.open.iter();
            open.map(move |(slot, open)| (*slot, id.as_str(), open))
        })
    }

    /// In what masters do not agree; none: they agree. Of the slots `moving` they need not: they
    /// are on their way.
    pub fn dispute(&self, moving: &[Slots]) -> Option<String> {
        let expected = Config::of(&self.first, moving);
        for (id, view) in &self.by_master {
            if let Some(what) = expected.differs(&Config::of(view, moving)) {
                let (one, other) = (self.at(&self.first.me), self.at(id));
                return Some(format!("{one} and {other} say different things of {what}"));
            }
        }
        let mut by_epoch = BTreeMap::new();
        for (id, epoch) in &expected.epochs {
            if let Some(other) = by_epoch.insert(epoch, *id) {
                let (one, other) = (self.at(other), self.at(id));
                return Some(format!("{one} and {other} have the same epoch, {epoch}"));
            }
        }
        None
    }
}

/// What masters must agree in.
#[derive(PartialEq, Eq)]
struct Config<'v> {
    /// Of nodes that have slots, by name.
    epochs: BTreeMap<&'v str, u64>,
    /// By slot, the name of its node.
    owners: Vec<Option<&'v str>>,
}

impl<'v> Config<'v> {
    fn of(view: &'v View, moving: &[Slots]) -> Self {
        let mut epochs = BTreeMap::new();
        let mut owners = vec![None; SLOTS.into()];
        for node in view.nodes.values() {
            let slots = node.ranges.iter().flat_map(|(from, to)| *from..=*to);
            for slot in slots.filter(|slot| moving.iter().all(|moving| !moving.has(*slot))) {
                if let Some(owner) = owners.get_mut(usize::from(slot)) {
                    *owner = Some(node.id.as_str());
                }
                epochs.insert(node.id.as_str(), node.epoch);
            }
        }
        Self { epochs, owners }
    }

    fn differs(&self, other: &Self) -> Option<String> {
        let mut pairs = self.owners.iter().zip(&other.owners);
        if let Some(slot) = pairs.position(|(one, other)| one != other) {
            return Some(format!("slot {slot}"));
        }
        let mut epochs = self.epochs.iter();
        let other = epochs.find(|(id, epoch)| other.epochs.get(*id) != Some(epoch));
        other.map(|(id, _)| format!("the epoch of node {id}"))
    }
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

    #[test]
    fn masters_that_do_not_agree_are_named() {
        let view = |me: &str, of_a: &str, of_b: &str| {
            let own = |id| if id == me { "myself,master" } else { "master" };
            let text = format!(
                "{A} a:1@2 {} - 0 0 {of_a}\n{B} b:1@2 {} - 0 0 {of_b}\n",
                own(A),
                own(B)
            );
            View::read(&text, "x").expect("nodes")
        };
        let views = |a: View, b: View| Views {
            first: a.clone(),
            by_master: [(A.to_owned(), a), (B.to_owned(), b)].into(),
        };
        let good = |me| view(me, "1 connected 0-9", "2 connected 10-19");
        assert_eq!(views(good(A), good(B)).dispute(&[]), None);
        let other = view(B, "1 connected 0-8", "3 connected 9-19");
        let said = views(good(A), other).dispute(&[]).expect("a dispute");
        assert!(said.contains("a:1 and b:1"), "{said}");
        let same = |me| view(me, "1 connected 0-9", "1 connected 10-19");
        let said = views(same(A), same(B)).dispute(&[]).expect("a dispute");
        assert!(said.contains("the same epoch, 1"), "{said}");
    }
}
