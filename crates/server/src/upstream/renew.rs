//! Slots that were on their way when another took the place of the node that had them.
//!
//! A replica of Redis 7.0 does not know what is on its way from its master, for it may not be told
//! (`CLUSTER SETSLOT`). When it takes the master's place it serves such a slot as if all keys were
//! there: who asks for one that has gone hears that there is none, and what is written to it is
//! another. Engines are reached by fronts only, and each move is written down before its first key
//! goes. So a front sends nothing to a master that is new to it before it has had that master know
//! what is on its way from there. To say so twice does no harm.

use std::collections::BTreeSet;

use front::{begun, host_of, Begun, Open, Topology, View, MOVES};

use super::catalogue::Book;
use super::talk::Talk;
use super::UpstreamOptions;

/// Masters that know what is on their way from them.
#[derive(Default)]
pub(super) struct Renewals {
    told: BTreeSet<String>,
}

impl Renewals {
    /// Has masters know what is on its way from them that have slots now and had none in the last
    /// look. Returns the slots that nobody is to be asked for, because one could not be told.
    pub fn look(&mut self, topology: &Topology, options: &UpstreamOptions) -> Vec<u16> {
        let nodes = &topology.nodes;
        self.told.retain(|node| nodes.contains(node));
        let new: Vec<&String> = (nodes.iter())
            .filter(|node| !self.told.contains(*node))
            .collect();
        if new.is_empty() {
            return Vec::new();
        }
        let entries =
            Book::open(topology, options).and_then(|mut book| book.ask(&[b"HGETALL", MOVES]));
        let moves = match entries {
            Ok(entries) => begun(&entries),
            Err(why) => {
                tracing::debug!("it is not known which slots are on their way: {why}");
                return Vec::new();
            }
        };
        let mut held = Vec::new();
        for node in new {
            match tell(node, &moves, options) {
                Ok(()) => drop(self.told.insert(node.clone())),
                Err(why) => {
                    tracing::warn!("node {node} is not asked for slots that were on their way, for it cannot be told so: {why}");
                    let slots = moves.iter().flat_map(|begun| begun.slots.clone());
                    held.extend(slots.filter(|slot| topology.owner(*slot) == Some(node)));
                }
            }
        }
        held
    }
}

/// Has a master know which of its slots are on their way, if that began at another. Which it has,
/// it says itself: the target of a move does not hear who has the slot that it waits for.
fn tell(node: &str, moves: &[Begun], options: &UpstreamOptions) -> Result<(), String> {
    if moves.is_empty() {
        return Ok(());
    }
    let mut talk = Talk::begin(node, options)?;
    let view = view_of(&mut talk)?;
    let has = |slot: &u16| view.owner(*slot).is_some_and(|owner| owner.id == view.me);
    let others = moves
        .iter()
        .filter(|begun| begun.from != view.me && begun.to != view.me);
    for begun in others {
        let slots: Vec<u16> = begun.slots.clone().filter(has).collect();
        // Who is not known any more has nothing.
        let Some(target) = view.nodes.get(&begun.to).filter(|_| !slots.is_empty()) else {
            continue;
        };
        // If the target is away, who asks for a key that went there must not hear that there is
        // none.
        let there = Talk::begin(&target.at, options);
        let mut there = there
            .and_then(|mut talk| Ok((view_of(&mut talk)?, talk)))
            .ok();
        for slot in slots {
            let waits = |view: &View| matches!(view.open.get(&slot), Some(Open::In(_)));
            if there.as_ref().is_some_and(|(view, _)| !waits(view)) {
                // No key of it has gone, or all have.
                continue;
            }
            if set(&mut talk, slot, b"MIGRATING", &begun.to)? {
                tracing::info!(
                    "slot {slot} is on its way to {} still: {node}, which has it now, was told",
                    target.at
                );
            }
            if let Some((view_there, talk)) = &mut there {
                renew_target(talk, view_there, slot, &view.me)?;
            }
        }
    }
    Ok(())
}

/// The target waits for the slot from a node that is no master any more; once that is a replica,
/// it knows no owner of the slot, and serves none of its keys (`CLUSTERDOWN`).
fn renew_target(talk: &mut Talk, view: &View, slot: u16, source: &str) -> Result<(), String> {
    // Refused if it has the slot by now.
    let waits = set(talk, slot, b"IMPORTING", source)?;
    if waits && view.owner(slot).is_none_or(|owner| owner.id != source) {
        set(talk, slot, b"NODE", source)?;
    }
    Ok(())
}

/// Tells a node something of a slot. False: it refuses.
fn set(talk: &mut Talk, slot: u16, what: &[u8], other: &str) -> Result<bool, String> {
    let slot = slot.to_string();
    let words = [
        b"CLUSTER",
        b"SETSLOT",
        slot.as_bytes(),
        what,
        other.as_bytes(),
    ];
    match talk.ask(&words) {
        Ok(_) => Ok(true),
        Err(why) if why.starts_with(super::talk::SAYS) => {
            tracing::info!("{} about slot {slot}: {why}", talk.node);
            Ok(false)
        }
        Err(why) => Err(why),
    }
}

fn view_of(talk: &mut Talk) -> Result<View, String> {
    let said = talk.ask(&[b"CLUSTER", b"NODES"])?;
    let view = (said.text()).and_then(|text| View::read(text, host_of(&talk.node)));
    view.ok_or_else(|| "its answer to CLUSTER NODES is not understood".into())
}
