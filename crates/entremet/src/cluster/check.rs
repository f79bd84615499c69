//! `entremet cluster check`.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use front::{Space, SLOTS};

use super::book::Book;
use super::intent::{slots_of, Intent, LEASE_NS};
use super::nodes::{Open, Views};
use super::reach::Nodes;
use super::slots::Slots;
use super::strays::{are_left_over, strays, Stray};
use super::what::slots_with;
use super::{AtArgs, Failure};

/// What does not agree for a moment need not be wrong.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Says what is wrong.
///
/// # Errors
/// Something is, or the cluster cannot be asked.
pub fn run(at: &AtArgs) -> Result<(), Failure> {
    let mut nodes = Nodes::new(&at.reach()?);
    let mut views = nodes.views()?;
    let mut book = Book::find(&views)?;
    let tenants = book.tenants(&mut nodes)?;
    let before = book.moves(&mut nodes)?;
    // Whoever is at a move says so within this time; and news has gone round.
    let until = Instant::now() + Duration::from_nanos(LEASE_NS);
    let mut moves = before.clone();
    let mut astray = strays(&mut nodes, &views, Slots::all())?;
    let settled = |moves: &[Intent], views: &Views, astray: &[Stray]| {
        moves.is_empty() && views.dispute(&[]).is_none() && astray.is_empty()
    };
    while !settled(&moves, &views, &astray) && Instant::now() < until {
        thread::sleep(LOOK_EVERY);
        views = nodes.views()?;
        moves = book.moves(&mut nodes)?;
        astray = strays(&mut nodes, &views, Slots::all())?;
    }
    let at_work = |begun: &Intent| {
        let old = before.iter().find(|old| old.slots == begun.slots);
        begun.mover.is_some() && old != Some(begun)
    };
    let (going, left): (Vec<Intent>, Vec<Intent>) = moves.into_iter().partition(at_work);
    let mut wrong = wrong(&views, &going, &left, &tenants);
    let moving = |slot| going.iter().any(|begun| begun.slots.has(slot));
    for stray in astray.iter().filter(|stray| !moving(stray.slot)) {
        wrong.extend(match are_left_over(&mut nodes, &views, stray)? {
            true => Some(left_over_says(stray, &views, &tenants)),
            false => stray_says(stray, &views, &left, &tenants),
        });
    }
    let mut out = io::stdout().lock();
    for begun in &going {
        writeln!(
            out,
            "{} {} being moved",
            slots_with(begun.slots, &tenants),
            begun.slots.are()
        )?;
    }
    for line in &wrong {
        writeln!(out, "{line}")?;
    }
    match wrong.len() {
        0 => Ok(writeln!(out, "nothing is wrong")?),
        1 => Err("one thing is wrong".into()),
        many => Err(format!("{many} things are wrong").into()),
    }
}

/// A line for each thing; of the slots of `going` nothing: they are being moved.
fn wrong(
    views: &Views,
    going: &[Intent],
    left: &[Intent],
    tenants: &[(String, Space)],
) -> Vec<String> {
    let mut wrong = Vec::new();
    wrong.extend(views.dispute(&slots_of(going)));
    for node in views.first.nodes.values() {
        if node.gone {
            wrong.push(format!("{} is away", node.at));
        }
    }
    let nobodys = (0..SLOTS).filter(|slot| views.owner(*slot).is_none());
    let nobodys: Vec<u16> = nobodys.collect();
    if let Some(first) = nobodys.first() {
        wrong.push(format!(
            "{} slots are at no node, the first is {first}: redis-cli --cluster fix gives them to some",
            nobodys.len()
        ));
    }
    let away = (0..SLOTS).filter_map(|slot| views.owner(slot).filter(|node| node.gone));
    let away: BTreeSet<&str> = away.map(|node| node.at.as_str()).collect();
    wrong.extend(
        away.into_iter()
            .map(|at| format!("the slots of {at} are served by nobody")),
    );
    for begun in left {
        wrong.push(format!(
            "{} {} on the way from {} to {}, and nobody is at it: entremet cluster move --resume",
            slots_with(begun.slots, tenants),
            begun.slots.are(),
            views.at(&begun.from),
            views.at(&begun.to)
        ));
    }
    let written = |slot: u16| going.iter().chain(left).any(|begun| begun.slots.has(slot));
    let open = views.open().filter(|(slot, ..)| !written(*slot));
    wrong.extend(open.map(|(slot, id, open)| open_says(slot, id, open, views, tenants)));
    wrong
}

/// The line for a slot that is open at the node `id`, of whose move nothing is written down.
fn open_says(
    slot: u16,
    id: &str,
    open: &Open,
    views: &Views,
    tenants: &[(String, Space)],
) -> String {
    let (at, slots) = (views.at(id), slots_with(slot.into(), tenants));
    let owner = views.owner(slot).map_or("", |node| &node.id);
    let to = match open {
        // It was cut off, or stood still, when the move went on without it.
        Open::In(from) if owner != from && owner != id => {
            let from = views.at(from);
            return format!("{at} waits for {slots} from {from}, which does not have it any more: CLUSTER SETSLOT {slot} STABLE there");
        }
        Open::In(_) => id,
        Open::Out(to) => to,
    };
    format!(
        "{slots} is in the middle of a move at {at}, and nothing is written down of it: if no other tool is at it, entremet cluster move {slot} --to {}",
        views.at(to)
    )
}

/// The line for keys that no client sees; none: they are on their way to where they are, which has
/// a line already.
fn stray_says(
    stray: &Stray,
    views: &Views,
    left: &[Intent],
    tenants: &[(String, Space)],
) -> Option<String> {
    let (slot, at) = (stray.slot, views.at(&stray.at));
    let comes = |begun: &Intent| begun.slots.has(slot) && begun.to == stray.at;
    let known = left.iter().any(comes) || views.open_at(&stray.at, slot).is_some();
    (!known).then(|| {
        format!(
            "{} keys of {} are at {at}, which does not have it: clients do not see them, until entremet cluster move {slot} --to {at}",
            stray.keys,
            slots_with(slot.into(), tenants)
        )
    })
}

/// The line for copies of keys at a master without slots.
fn left_over_says(stray: &Stray, views: &Views, tenants: &[(String, Space)]) -> String {
    let owner = views.owner(stray.slot).map_or("", |node| &node.at);
    format!(
        "{} keys of {} are at {}, which has no slots, and {owner} has all of them: FLUSHALL there, and then CLUSTER REPLICATE, or take it away",
        stray.keys,
        slots_with(stray.slot.into(), tenants),
        views.at(&stray.at)
    )
}

#[cfg(test)]
mod tests {
    use super::super::nodes::View;
    use super::*;

    #[test]
    fn each_thing_that_is_wrong_has_a_line() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let view = |me: &str, slots_of_b: &str, open: &str| {
            let own = |id: &str| if id == me { "myself,master" } else { "master" };
            let text = format!(
                "{a} h:1@2 {} - 0 0 1 connected 0-8191 {open}\n{b} h:2@3 {} - 0 0 2 connected {slots_of_b}\n",
                own(&a),
                own(&b)
            );
            View::read(&text, "h").expect("nodes")
        };
        let views = |slots: &str, open: &str| Views {
            first: view(&a, slots, open),
            by_master: [
                (a.clone(), view(&a, slots, open)),
                (b.clone(), view(&b, slots, "")),
            ]
            .into(),
        };
        let good = views("8192-16383", "");
        assert!(wrong(&good, &[], &[], &[]).is_empty());
        let open = views("8192-16383", &format!("[7->-{b}]"));
        let said = wrong(&open, &[], &[], &[]);
        assert_eq!(said.len(), 1);
        assert!(
            said[0].ends_with("entremet cluster move 7 --to h:2"),
            "{said:?}"
        );
        let waits = Views {
            by_master: [(b.clone(), view(&b, &format!("8192-16383 [7-<-{b}]"), ""))].into(),
            ..views("8192-16383", "")
        };
        let said = wrong(&waits, &[], &[], &[]);
        assert!(
            said.len() == 1 && said[0].ends_with("CLUSTER SETSLOT 7 STABLE there"),
            "{said:?}"
        );
        let begun = Intent::read("7", &format!("{a} {b} 1 - 0")).expect("an intent");
        assert!(wrong(&open, std::slice::from_ref(&begun), &[], &[]).is_empty());
        let said = wrong(&open, &[], &[begun], &[]);
        assert!(said.len() == 1 && said[0].contains("--resume"), "{said:?}");
        let stray = |at: &String| Stray {
            slot: 7,
            at: at.clone(),
            keys: 3,
        };
        let said = stray_says(&stray(&b), &good, &[], &[]).expect("a line");
        assert!(said.starts_with("3 keys of slot 7 are at h:2"), "{said}");
        assert!(said.ends_with("entremet cluster move 7 --to h:2"), "{said}");
        let begun = Intent::read("7", &format!("{a} {b} 1 - 0")).expect("an intent");
        assert_eq!(stray_says(&stray(&b), &good, &[begun], &[]), None);
        let said = wrong(&views("8193-16383", ""), &[], &[], &[]);
        assert!(
            said[0].starts_with("1 slots are at no node, the first is 8192"),
            "{said:?}"
        );
    }
}
