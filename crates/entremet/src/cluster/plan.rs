//! What a move comes to, as nodes and the catalogue show it: nothing is known of it that they do
//! not show, so that whoever goes on with a move that was broken off does what is left.

use super::intent::Intent;
use super::nodes::{Node, Open, Views};

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
    pub slot: u16,
    /// The name of the node that has it; of one that goes back, that has keys of it.
    pub from: String,
    /// The name of the node that is to have it.
    pub to: String,
    /// Which way.
    pub way: Way,
}

/// The node that was meant by an address, or by the first digits of its name.
///
/// # Errors
/// It is none, or no master that is there.
pub fn named<'v>(views: &'v Views, text: &str) -> Result<&'v Node, String> {
    let is_meant = |node: &&Node| node.at == text || text.len() >= 4 && node.id.starts_with(text);
    let mut meant = views.first.nodes.values().filter(is_meant);
    let known = || -> Vec<&str> { views.first.masters().map(|node| node.at.as_str()).collect() };
    match (meant.next(), meant.next()) {
        (None, _) => Err(format!(
            "{text} is no node of the cluster: its masters are {}",
            known().join(", ")
        )),
        (Some(_), Some(_)) => Err(format!("{text} is the beginning of several nodes' names")),
        (Some(node), None) if node.gone => Err(format!("{text} is away: the cluster says so")),
        (Some(node), None) if !node.master => Err(format!(
            "{text} is a replica: slots are at masters, which are {}",
            known().join(", ")
        )),
        (Some(node), None) => Ok(node),
    }
}

/// What it comes to that a slot is to be at the node `to`; `moves` were begun.
///
/// # Errors
/// Why it cannot be.
pub fn plan(slot: u16, to: &str, views: &Views, moves: &[Intent]) -> Result<Plan, String> {
    let owner = views.owner(slot);
    let owner = owner.ok_or_else(|| format!("no node has slot {slot}"))?;
    let begun = moves.iter().find(|begun| begun.slot == slot);
    let (from, way) = match owner.id == to {
        true => left_behind(slot, to, views, begun)
            .ok_or_else(|| format!("slot {slot} is at {} already", views.at(to)))?,
        false => {
            let open = match views.open_at(&owner.id, slot) {
                Some(Open::Out(other)) => Some(other.as_str()),
                _ => None,
            };
            let meant = begun.map(|begun| [begun.from.as_str(), begun.to.as_str()]);
            let meant = meant.into_iter().flatten().filter(|node| *node != owner.id);
            let mut on_its_way = open.into_iter().chain(meant);
            // What was on its way to a node that is gone may go to another.
            if let Some(other) = on_its_way.find(|node| *node != to && views.master(node).is_some())
            {
                let (at, here) = (views.at(other), &owner.at);
                return Err(format!(
                    "slot {slot} is on its way from {here} to {at}: first let it arrive (--to {at}), or take it back (--to {here})"
                ));
            }
            if views.master(&owner.id).is_none() {
                return Err(format!("{} has slot {slot}, and is away", owner.at));
            }
            (owner.id.clone(), Way::On)
        }
    };
    for (other, id, _) in views.open() {
        if other != slot && (id == from || id == to) {
            return Err(format!(
                "slot {other} is in the middle of a move at {}: bring that to its end first, see `entremet cluster check`",
                views.at(id)
            ));
        }
    }
    Ok(Plan {
        slot,
        from,
        to: to.to_owned(),
        way,
    })
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

/// What is to be done next of one that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The target is told that the slot comes.
    Import,
    /// The source is told that it goes.
    Migrate,
    /// Keys go over, and when the source has none the target has the slot.
    Carry,
    /// A node that does not say so yet is told that the target has it.
    Tell(String),
    /// A node forgets another move of this slot.
    Clear(String),
    /// All know it.
    Done,
}

/// The next step of a plan that goes on. The target takes the slot first: it has all keys by then,
/// and a source that gave it away first would have nobody to send requests to.
pub fn next(plan: &Plan, views: &Views) -> Step {
    let (slot, from, to) = (plan.slot, plan.from.as_str(), plan.to.as_str());
    let says = |id: &str| {
        let view = views.by_master.get(id)?;
        view.owner(slot).map(|node| node.id.as_str())
    };
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
