//! What nodes of a cluster say of each other: `CLUSTER NODES`, of each of them.

use std::collections::BTreeMap;

use front::SLOTS;
pub use front::{Node, Open, View};

use super::slots::Slots;

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
