//! What a move comes to, as nodes and the catalogue show it: nothing is known of it that they do
//! not show, so that whoever goes on with a move that was broken off does what is left.

use std::collections::BTreeMap;

use super::intent::Intent;
use super::nodes::{Node, Open, Views};
use super::slots::Slots;

/// Which way keys go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the node that is to have the slot.
    On,
    /// Back to the node that has it: it was on its way to another.
    Back,
}

/// A move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Of the engine.
    pub slots: Slots,
    /// The name of the node that has them; of one that goes back, that has keys of it.
    pub from: String,
    /// The name of the node that is to have them.
    pub to: String,
    /// Which way.
    pub way: Way,
}

/// The node that was meant by an address, or by the first digits of its name.
///
/// # Errors
/// It is none.
pub fn meant<'v>(views: &'v Views, text: &str) -> Result<&'v Node, String> {
    let is_meant = |node: &&Node| node.at == text || text.len() >= 4 && node.id.starts_with(text);
    let mut meant = views.first.nodes.values().filter(is_meant);
    match (meant.next(), meant.next()) {
        (None, _) => Err(format!(
            "{text} is no node of the cluster: its masters are {}",
            masters(views)
        )),
        (Some(_), Some(_)) => Err(format!("{text} is the beginning of several nodes' names")),
        (Some(node), None) => Ok(node),
    }
}

/// The same, of a master that is there.
///
/// # Errors
/// It is none.
pub fn named<'v>(views: &'v Views, text: &str) -> Result<&'v Node, String> {
    match meant(views, text)? {
        node if node.gone => Err(format!("{text} is away: the cluster says so")),
        node if !node.master => Err(format!(
            "{text} is a replica: slots are at masters, which are {}",
            masters(views)
        )),
        node => Ok(node),
    }
}

fn masters(views: &Views) -> String {
    let all: Vec<&str> = views.first.masters().map(|node| node.at.as_str()).collect();
    all.join(", ")
}

/// What it comes to that slots are to be at the node `to`; `moves` were begun.
///
/// # Errors
/// Why they cannot be.
pub fn plan(slots: Slots, to: &str, views: &Views, moves: &[Intent]) -> Result<Plan, String> {
    let begun = moves.iter().find(|begun| begun.slots == slots);
    let (from, way) = match slots.is_one() {
        true => of_one(slots.first(), to, views, begun)?,
        false => (of_several(slots, to, views, begun)?, Way::On),
    };
    for (other, id, _) in views.open() {
        if !slots.has(other) && (id == from || id == to) {
            return Err(format!(
                "slot {other} is in the middle of a move at {}: bring that to its end first, see `entremet cluster check`",
                views.at(id)
            ));
        }
    }
    Ok(Plan {
        slots,
        from,
        to: to.to_owned(),
        way,
    })
}

/// The node from which several go: who has those of them that are not at the node `to`. Those that
/// others have stay there.
fn of_several(
    slots: Slots,
    to: &str,
    views: &Views,
    begun: Option<&Intent>,
) -> Result<String, String> {
    for (slot, id, open) in views.open().filter(|(slot, ..)| slots.has(*slot)) {
        let other = match open {
            Open::Out(other) => other,
            Open::In(_) => id,
        };
        if other != to && views.master(other).is_some() {
            let at = views.at(other);
            return Err(format!(
                "slot {slot} is on its way to {at}: first let it arrive, entremet cluster move {slot} --to {at}"
            ));
        }
    }
    let owners = slots.each().filter_map(|slot| views.owner(slot));
    let elsewhere = owners.map(|owner| owner.id.as_str()).find(|id| *id != to);
    let from = elsewhere.or(begun.map(|begun| begun.from.as_str()));
    let from = from.ok_or_else(|| format!("{slots} are at {} already", views.at(to)))?;
    match elsewhere.is_none() || views.master(from).is_some() {
        true => Ok(from.to_owned()),
        false => Err(format!("{} has {slots}, and is away", views.at(from))),
    }
}

/// The node from which one slot goes, and which way.
fn of_one(
    slot: u16,
    to: &str,
    views: &Views,
    begun: Option<&Intent>,
) -> Result<(String, Way), String> {
    let owner = views.owner(slot);
    let owner = owner.ok_or_else(|| format!("no node has slot {slot}"))?;
    if owner.id == to {
        let left = left_behind(slot, to, views, begun);
        return left.ok_or_else(|| format!("slot {slot} is at {} already", views.at(to)));
    }
    let open = match views.open_at(&owner.id, slot) {
        Some(Open::Out(other)) => Some(other.as_str()),
        _ => None,
    };
    let meant = begun.map(|begun| [begun.from.as_str(), begun.to.as_str()]);
    let meant = meant.into_iter().flatten().filter(|node| *node != owner.id);
    let mut on_its_way = open.into_iter().chain(meant);
    // What was on its way to a node that is gone may go to another.
    if let Some(other) = on_its_way.find(|node| *node != to && views.master(node).is_some()) {
        let (at, here) = (views.at(other), &owner.at);
        return Err(format!(
            "slot {slot} is on its way from {here} to {at}: first let it arrive (--to {at}), or take it back (--to {here})"
        ));
    }
    match views.master(&owner.id) {
        Some(_) => Ok((owner.id.clone(), Way::On)),
        None => Err(format!("{} has slot {slot}, and is away", owner.at)),
    }
}

/// The slot is where it is to be. What may be left of a move: at which node, and which way its keys
/// go. None: nothing.
fn left_behind(
    slot: u16,
    to: &str,
    views: &Views,
    begun: Option<&Intent>,
) -> Option<(String, Way)> {
    if let Some(Open::Out(other)) = views.open_at(to, slot) {
        return Some((other.clone(), Way::Back));
    }
    let mut open = views
        .open()
        .filter(|(open, id, _)| *open == slot && *id != to);
    if let Some((_, id, open)) = open.next() {
        let way = match open {
            Open::In(_) => Way::Back,
            Open::Out(_) => Way::On,
        };
        return Some((id.to_owned(), way));
    }
    if let Some(Open::In(source)) = views.open_at(to, slot) {
        return Some((source.clone(), Way::On));
    }
    let begun = begun?;
    let other = if begun.from == to {
        &begun.to
    } else {
        &begun.from
    };
    Some((other.clone(), Way::On))
}

/// What is to be done next of one that goes on. Of several slots the first of these goes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A node forgets another move of this slot.
    Clear(String),
    /// The target is told that the source has the slot. It heeds no news of a slot that it waits
    /// for, so it takes the node for its owner from which it was to come first; once that is back
    /// as a replica of the one that has taken its place, it knows no owner, and takes no key in
    /// (`CLUSTERDOWN`).
    Owner,
    /// The target is told that the slot comes.
    Import,
    /// The source is told that it goes.
    Migrate,
    /// Keys go over, and when the source has none the target has the slot.
    Carry,
    /// A node that does not say so yet is told that the target has it.
    Tell(String),
    /// All know it.
    Done,
}

/// The name of the node that has a slot, as the master `id` says.
pub fn says<'v>(views: &'v Views, id: &str, slot: u16) -> Option<&'v str> {
    let owner = views.by_master.get(id)?.owner(slot)?;
    Some(owner.id.as_str())
}

/// Refuses to go on with what another node has come to have than those that the plan is about, or
/// may come to have: who takes the place of a source has the keys that have not gone.
///
/// # Errors
/// Who has it.
pub fn refuse_replaced(plan: &Plan, views: &Views) -> Result<(), String> {
    for slot in plan.slots.each() {
        let Some(owner) = views.owner(slot).filter(|owner| owner.id != plan.to) else {
            continue;
        };
        let is_source = owner.id == plan.from;
        if is_source && views.master(&owner.id).is_none() {
            return Err(format!("{} has slot {slot}, and is away", owner.at));
        }
        // Of several, what others have stays there.
        if !is_source && plan.slots.is_one() {
            let from = views.at(&plan.from);
            return Err(format!(
                "{} has slot {slot} now, which {from} had",
                owner.at
            ));
        }
    }
    Ok(())
}

/// The next step of a plan that goes on, and the slots that need it. Slots that neither node has
/// are no part of it any more, unless it is about one.
pub fn next(plan: &Plan, views: &Views) -> (Step, Vec<u16>) {
    let mut steps: BTreeMap<Step, Vec<u16>> = BTreeMap::new();
    let part = |slot: &u16| {
        let owner = views.owner(*slot).map(|node| node.id.as_str());
        plan.slots.is_one() || owner.is_some_and(|id| id == plan.from || id == plan.to)
    };
    for slot in plan.slots.each().filter(part) {
        steps.entry(step(slot, plan, views)).or_default().push(slot);
    }
    steps.pop_first().unwrap_or((Step::Done, Vec::new()))
}

/// The next step of one slot. The target takes the slot first: it has all keys by then, and a
/// source that gave it away first would have nobody to send requests to.
fn step(slot: u16, plan: &Plan, views: &Views) -> Step {
    let (from, to) = (plan.from.as_str(), plan.to.as_str());
    let says = |id: &str| says(views, id, slot);
    if let Some(Open::Out(_)) = views.open_at(to, slot) {
        return Step::Clear(to.to_owned());
    }
    if says(to) == Some(to) {
        if views.open_at(to, slot).is_some() {
            // It takes the slot once more, and is not open then.
            return Step::Carry;
        }
        let mut ids: Vec<&String> = views.by_master.keys().collect();
        // The source first: it alone may send requests elsewhere.
        ids.sort_by_key(|id| *id != from);
        for id in ids.into_iter().filter(|id| *id != to) {
            if says(id) != Some(to) {
                return Step::Tell(id.clone());
            }
            if views.open_at(id, slot).is_some() {
                return Step::Clear(id.clone());
            }
        }
        return Step::Done;
    }
    if says(from) == Some(from) && says(to) != Some(from) {
        return Step::Owner;
    }
    match (views.open_at(to, slot), views.open_at(from, slot)) {
        (Some(Open::In(source)), Some(Open::Out(target))) if source == from && target == to => {
            Step::Carry
        }
        (Some(Open::In(source)), _) if source == from => match says(from) == Some(from) {
            true => Step::Migrate,
            // It has given the slot away, and so has no keys of it.
            false => Step::Carry,
        },
        _ => Step::Import,
    }
}

#[cfg(test)]
mod tests;
