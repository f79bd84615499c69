//! Keys of slots at masters that do not have these slots: no client sees them there. A move that
//! was broken off leaves some where its target was lost and a replica took its place.

use super::intent::Intent;
use super::nodes::{Node, Open, Views};
use super::plan::{plan, Plan};
use super::reach::Nodes;
use super::slots::Slots;
use super::survey::{counts, keys_of};
use super::Failure;
use crate::client::Reply;

/// Of more keys it is not looked whether they are copies.
const COPIES_MAX: u64 = 10_000;

/// Keys that are where their slot is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// Their slot.
    pub slot: u16,
    /// The name of the master that has them.
    pub at: String,
    /// How many there are.
    pub keys: u64,
}

impl Stray {
    /// What there is, and what is to be done.
    fn says(&self, views: &Views) -> String {
        let (slot, at) = (self.slot, views.at(&self.at));
        format!(
            "{} keys of slot {slot} are at {at}: first let all of it arrive there, entremet cluster move {slot} --to {at}",
            self.keys
        )
    }
}

/// All keys of `slots` at masters that do not have these slots.
///
/// # Errors
/// A master does not say.
pub fn strays(nodes: &mut Nodes, views: &Views, slots: Slots) -> Result<Vec<Stray>, Failure> {
    let owner = |slot: u16| (slot, views.owner(slot).map(|node| node.id.as_str()));
    let owners: Vec<(u16, Option<&str>)> = slots.each().map(owner).collect();
    let mut strays = Vec::new();
    for node in views.first.masters() {
        let others = owners
            .iter()
            .filter(|(_, id)| *id != Some(node.id.as_str()));
        let others: Vec<u16> = others.map(|(slot, _)| *slot).collect();
        let counts = counts(nodes, &node.at, &others)?;
        let found = others.into_iter().zip(counts).filter(|(_, keys)| *keys > 0);
        strays.extend(found.map(|(slot, keys)| Stray {
            slot,
            at: node.id.clone(),
            keys,
        }));
    }
    Ok(strays)
}

/// Whether these are copies that nobody needs: their master has no slots, as one that was replaced
/// and has not become a replica, and the one that has the slot has all of them.
///
/// # Errors
/// A master does not say.
pub fn are_left_over(nodes: &mut Nodes, views: &Views, stray: &Stray) -> Result<bool, Failure> {
    let slot = stray.slot;
    let has_nothing = views
        .master(&stray.at)
        .is_some_and(|node| node.slots() == 0);
    let Some(owner) = views.owner(slot).filter(|_| has_nothing) else {
        return Ok(false);
    };
    if stray.keys > COPIES_MAX || views.open_at(&stray.at, slot).is_some() {
        return Ok(false);
    }
    let keys = keys_of(nodes, views.at(&stray.at), slot, COPIES_MAX as usize)?;
    let asked: Vec<_> = (keys.iter())
        .map(|key| vec![&b"EXISTS"[..], key.as_slice()])
        .collect();
    let there = nodes.try_all(&owner.at, &asked)?;
    Ok(there.iter().all(|there| *there == Reply::Integer(1)))
}

/// The node to which a move that was begun goes on: the one that was named, or, where that is gone,
/// the one that has the keys that went there. None: there are none.
///
/// # Errors
/// It is not known yet who will have them, or a master does not say.
pub fn heir(nodes: &mut Nodes, views: &Views, begun: &Intent) -> Result<Option<String>, Failure> {
    if views.master(&begun.to).is_some() {
        return Ok(Some(begun.to.clone()));
    }
    refuse_unsettled(views, begun.slots, [begun.to.as_str()])?;
    // Valkey tells the source itself who has taken the target's place, whether keys went or not.
    let named = views.open().find_map(|(slot, _, open)| match open {
        Open::Out(other) if begun.slots.has(slot) => views.master(other),
        _ => None,
    });
    if let Some(node) = named {
        return Ok(Some(node.id.clone()));
    }
    for stray in strays(nodes, views, begun.slots)? {
        if !are_left_over(nodes, views, &stray)? {
            return Ok(Some(stray.at));
        }
    }
    Ok(None)
}

/// What it comes to that slots are to be at the node `to`, as [`plan`] has it, if no key of them
/// would be left behind at a third one.
///
/// # Errors
/// Why they cannot be there.
pub fn planned(
    nodes: &mut Nodes,
    (slots, to): (Slots, &str),
    views: &Views,
    moves: &[Intent],
) -> Result<Plan, Failure> {
    let made = plan(slots, to, views, moves);
    let from = made.as_ref().ok().map(|made| made.from.as_str());
    let begun = moves.iter().filter(|begun| begun.slots == slots);
    let open = views.open().filter_map(|(slot, _, open)| match open {
        Open::Out(other) if slots.has(slot) => Some(other.as_str()),
        _ => None,
    });
    let comes_to = begun.map(|begun| begun.to.as_str()).chain(open);
    let comes_to: Vec<&str> = comes_to.collect();
    refuse_unsettled(views, slots, comes_to.iter().copied())?;
    // What is on its way to a node is known of, and the plan says what becomes of it.
    let known = |at: &str| at == to || Some(at) == from || comes_to.contains(&at);
    for stray in strays(nodes, views, slots)? {
        if !known(&stray.at) && !are_left_over(nodes, views, &stray)? {
            return Err(stray.says(views).into());
        }
    }
    Ok(made?)
}

/// Refuses what went to a node that is gone, as long as a replica may still take its place.
fn refuse_unsettled<'v>(
    views: &Views,
    slots: Slots,
    targets: impl IntoIterator<Item = &'v str>,
) -> Result<(), Failure> {
    for target in targets {
        let copies = |node: &&Node| !node.gone && node.replica_of.as_deref() == Some(target);
        let copy = views.first.nodes.values().find(copies);
        if let (None, Some(copy)) = (views.master(target), copy) {
            return Err(format!(
                "{} went to {}, which is away, and its replica {} has not taken its place: wait until it has, or have it do so, with CLUSTER FAILOVER TAKEOVER",
                slots,
                views.at(target),
                copy.at
            )
            .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::nodes::View;
    use super::*;

    #[test]
    fn what_went_to_a_node_that_is_gone_waits_for_its_replica() {
        let [a, b, c] = ["a", "b", "c"].map(|digit| digit.repeat(40));
        let views = |second: &str, copy: &str| {
            let text = format!(
                "{a} h:1@9 myself,master - 0 0 1 connected 0-16383\n{b} h:2@9 {second} - 0 0 2 connected\n{c} h:3@9 {copy} 0 0 3 connected\n"
            );
            Views {
                first: View::read(&text, "h").expect("nodes"),
                by_master: BTreeMap::new(),
            }
        };
        let refused = |second: &str, copy: &str| {
            refuse_unsettled(&views(second, copy), 7.into(), [b.as_str()]).is_err()
        };
        let (its, own) = (format!("slave {b}"), "master -");
        assert!(refused("master,fail", &its));
        assert!(!refused("master", &its));
        assert!(!refused("master,fail", own));
        assert!(!refused("master,fail", &format!("slave,fail {b}")));
        assert!(!refused("master,fail", &format!("slave {a}")));
        let why = refuse_unsettled(&views("master,fail", &its), 7.into(), [b.as_str()]);
        let why = why.expect_err("refused").to_string();
        assert!(why.starts_with("slot 7 went to h:2"), "{why}");
        assert!(why.contains("its replica h:3"), "{why}");
    }
}
