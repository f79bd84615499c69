//! Fronts that stand before one cluster: who they are, by what each says of itself, and which of
//! them is the home of what.
//!
//! Each front writes an entry several times a second, with a number that grows. Who reads the
//! entries takes a front to be gone when its number has not changed for [`SILENT_NS`], by the
//! reader's own clock: no two clocks need agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::elsewhere::Topology;
use crate::peer::{Endpoint, Peer};
use crate::slot::{first, SLOTS};
use crate::space::Space;
use crate::value::Value;

/// A front that has been silent for so long is gone: ten of its entries are missing.
pub const SILENT_NS: u64 = 2_500_000_000;

/// Its entry is taken out of the way then.
const FORGET_NS: u64 = 60_000_000_000;

/// Between two readings no front is taken to have been silent for longer: if the entries could not
/// be read, they could not be written either. Once they can, all have the rest of [`SILENT_NS`] to
/// write theirs.
const GAP_NS: u64 = 500_000_000;

/// After a change all fronts know of it within less than this. A client is sent on only then, so
/// that no two fronts send it to each other.
pub const AGREED_NS: u64 = 5_000_000_000;

/// A front that has not read the entries for so long sends nobody on.
const FRESH_NS: u64 = 2_500_000_000;

/// What was read of all fronts.
#[derive(Debug, Default)]
pub struct Fronts {
    /// By name.
    seen: BTreeMap<String, Seen>,
    read_at: u64,
}

#[derive(Debug)]
struct Seen {
    peer: Peer,
    beat: String,
    silent_ns: u64,
}

impl Fronts {
    /// All entries, as they were read at `now`: names and texts by turns.
    pub fn hear(&mut self, entries: &Value, now: u64) {
        let passed = now.saturating_sub(self.read_at).min(GAP_NS);
        self.read_at = now;
        let pairs = entries.items().chunks_exact(2);
        let read = pairs.filter_map(|pair| Peer::read(pair[0].text()?, pair[1].text()?));
        let seen = read.map(|(peer, beat)| {
            let before = self.seen.get(&peer.id).filter(|seen| seen.beat == beat);
            let silent_ns = before.map_or(0, |seen| seen.silent_ns.saturating_add(passed));
            let id = peer.id.clone();
            (
                id,
                Seen {
                    peer,
                    beat,
                    silent_ns,
                },
            )
        });
        self.seen = seen.collect();
    }

    /// Those that are there, in the order of their names.
    pub fn there(&self) -> Vec<Peer> {
        let there = self.seen.values().filter(|seen| seen.silent_ns < SILENT_NS);
        there.map(|seen| seen.peer.clone()).collect()
    }

    /// Names of those that have been gone for long: their entries may be deleted.
    pub fn gone(&self) -> Vec<String> {
        let gone = self.seen.values().filter(|seen| seen.silent_ns > FORGET_NS);
        gone.map(|seen| seen.peer.id.clone()).collect()
    }
}

/// One front, as clients see it that all have TLS, or all have not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its name.
    pub id: String,
    /// Where they reach it.
    pub at: Endpoint,
    /// Its port for the others, if that is at the same host.
    pub other_port: Option<u16>,
    /// The node that it stands before.
    pub node: Option<String>,
}

impl Home {
    /// None: they do not reach it.
    fn of(peer: &Peer, tls: bool) -> Option<Self> {
        let at = peer.at.of(tls).clone()?;
        let other = peer.at.of(!tls).as_ref();
        let other = other.filter(|other| other.host == at.host);
        Some(Self {
            id: peer.id.clone(),
            other_port: other.map(|other| other.port),
            at,
            node: peer.node.clone(),
        })
    }
}

/// What cluster-aware clients of a tenant see of one front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its place in [`Homes::fronts`].
    pub front: usize,
    /// The first and the last of each range of virtual slots that it is the home of.
    pub ranges: Vec<(u16, u16)>,
    /// Places of fronts that are the home of none: they are shown as this one's replicas.
    pub others: Vec<usize>,
    /// The nodes of the cluster that have them.
    pub nodes: Vec<String>,
}

/// Which front is the home of each node's slots, for clients that all have TLS, or all have not. A
/// front that they do not reach is the home of nothing: what its node has is at another, as if no
/// front stood before that node.
#[derive(Clone, Debug)]
pub struct Homes {
    /// In the order of their names; one at least.
    fronts: Vec<Home>,
    topology: Arc<Topology>,
    /// By place of a node, the place of its front.
    by_node: Vec<usize>,
    /// The place of this front; none: they do not reach it.
    me: Option<usize>,
    /// By slot, since when it has been so.
    since: Box<[u64]>,
}

impl Homes {
    /// As `peers` stand before the nodes of a cluster, seen by the one that is called `me`. None:
    /// that is not one of them, or clients reach none.
    pub fn new(
        peers: &[Peer],
        topology: Arc<Topology>,
        me: &str,
        tls: bool,
        now: u64,
    ) -> Option<Self> {
        peers.iter().find(|peer| peer.id == me)?;
        let fronts = peers.iter().filter_map(|peer| Home::of(peer, tls));
        let fronts: Vec<Home> = fronts.collect();
        fronts.first()?;
        let me = fronts.iter().position(|front| front.id == me);
        let by_node = topology.nodes.iter().map(|node| home(&fronts, Some(node)));
        Some(Self {
            by_node: by_node.collect(),
            fronts,
            topology,
            me,
            since: vec![now; SLOTS.into()].into(),
        })
    }

    /// After `before`: slots whose home is the same have it since then.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        for slot in 0..SLOTS {
            let [home, known] = [&self, before].map(|one| &one.fronts[one.of_slot(slot)]);
            if home == known {
                self.since[usize::from(slot)] = before.since[usize::from(slot)];
            }
        }
        self
    }

    /// Whether the same fronts are the homes of the same slots.
    pub fn same_as(&self, other: &Self) -> bool {
        self.fronts == other.fronts
            && self.by_node == other.by_node
            && self.topology == other.topology
    }

    /// All that clients reach.
    pub fn fronts(&self) -> &[Home] {
        &self.fronts
    }

    /// The place of this front among them; none: it is not.
    pub fn me(&self) -> Option<usize> {
        self.me
    }

    /// The home of a slot of the cluster, if it is another front.
    pub fn elsewhere(&self, slot: u16) -> Option<&Home> {
        let front = self.of_slot(slot);
        (Some(front) != self.me).then(|| &self.fronts[front])
    }

    /// Whether this front is the home of what a node of the cluster has.
    pub fn mine(&self, node: &str) -> bool {
        let place = self.topology.nodes.iter().position(|known| known == node);
        let front = match place {
            Some(place) => self.by_node[place],
            None => home(&self.fronts, Some(node)),
        };
        Some(front) == self.me
    }

    /// Whether all fronts know the home of a slot by `now`, where the entries were last read at
    /// `read_at`.
    pub fn agreed(&self, slot: u16, read_at: u64, now: u64) -> bool {
        let since = self.since[usize::from(slot)];
        now.saturating_sub(since) >= AGREED_NS && now.saturating_sub(read_at) <= FRESH_NS
    }

    /// What clients of a tenant see: its partitions at their homes, in the order of slots.
    pub fn shards(&self, space: &Space) -> Vec<Shard> {
        let parts = space.parts();
        let mut shards: Vec<Shard> = Vec::new();
        for part in 0..parts {
            let front = self.of_slot(space.slot(part));
            let node = self.topology.owner(space.slot(part));
            let (from, to) = (first(part, parts), first(part + 1, parts) - 1);
            let Some(shard) = shards.iter_mut().find(|shard| shard.front == front) else {
                shards.push(Shard {
                    front,
                    ranges: vec![(from, to)],
                    others: Vec::new(),
                    nodes: node.into_iter().map(str::to_owned).collect(),
                });
                continue;
            };
            if let Some(node) = node.filter(|node| shard.nodes.iter().all(|known| known != node)) {
                shard.nodes.push(node.to_owned());
            }
            match shard.ranges.last_mut() {
                Some(last) if last.1 + 1 == from => last.1 = to,
                _ => shard.ranges.push((from, to)),
            }
        }
        for (place, idle) in self.fronts.iter().enumerate() {
            if shards.iter().all(|shard| shard.front != place) {
                let at = |shard: &&mut Shard| weight(&self.fronts[shard.front], &idle.id);
                if let Some(shard) = shards.iter_mut().max_by_key(at) {
                    shard.others.push(place);
                }
            }
        }
        shards
    }

    /// The place of the front that is the home of a slot of the cluster.
    fn of_slot(&self, slot: u16) -> usize {
        match self.topology.place(slot) {
            Some(place) => self.by_node[place],
            // Nobody serves it: any front can say so.
            None => home(&self.fronts, None),
        }
    }
}

/// The place of the front that is the home of a node's slots: one that stands before it, or any.
/// Each of several has the largest weight for some nodes, so that one that goes takes only its own
/// away (rendezvous hashing).
fn home(fronts: &[Home], node: Option<&str>) -> usize {
    let before = |front: &Home| node.is_some() && front.node.as_deref() == node;
    let of = |front: &Home| (before(front), weight(front, node.unwrap_or_default()));
    let places = 0..fronts.len();
    places
        .max_by_key(|place| of(&fronts[*place]))
        .unwrap_or_default()
}

/// FNV-1a of both names, its bits mixed as MurmurHash3 does at its end: the same at all fronts.
fn weight(front: &Home, name: &str) -> u64 {
    let bytes = front.id.bytes().chain([0]).chain(name.bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests;
