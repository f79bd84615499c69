//! The line before the slow check of passwords, against those who fill it.

use std::collections::{BTreeMap, BTreeSet};

use policy::login::{Asked, Checks, ChecksOptions, Entered, Line, LineOptions};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn line(entries_max: usize, pair_entries_max: usize) -> Line<u32, u32, u32> {
    Line::new(LineOptions {
        entries_max,
        pair_entries_max,
    })
}

fn order(line: &mut Line<u32, u32, u32>) -> Vec<u32> {
    std::iter::from_fn(|| line.pop().map(|(_, _, entry)| entry)).collect()
}

#[test]
fn one_pair_is_served_as_it_came_and_pairs_take_turns() {
    let mut line = line(100, 100);
    for entry in 0..4 {
        assert_eq!(line.enter(1, 1, entry), Entered::Yes);
    }
    assert_eq!(line.enter(2, 1, 10), Entered::Yes);
    assert_eq!(line.enter(1, 2, 20), Entered::Yes);
    // Round over peers: 1 (for 1), 2; round over tenants: 1 (from 1), 2.
    assert_eq!(order(&mut line), [0, 1, 10, 20, 2, 3]);
    assert!(line.is_empty());
}

/// The case of the trial: one address guesses a tenant's password while an operator logs in from
/// another.
#[test]
fn beside_a_thousand_guesses_from_one_address_an_operator_waits_for_one() {
    let mut line = line(1_024, 1_024);
    for guess in 0..1_024 {
        assert_eq!(line.enter(1, 1, guess), Entered::Yes);
    }
    assert_eq!(line.enter(2, 9, 5_000), Entered::InPlaceOf(1, 1, 1_023));
    assert_eq!(
        line.enter(1, 1, 6_000),
        Entered::No,
        "who has most comes last"
    );
    let place = order(&mut line).iter().position(|entry| *entry == 5_000);
    assert!(place.is_some_and(|place| place <= 3), "{place:?}");
}

/// The same from a thousand addresses: log-ins for another tenant are out of their way.
#[test]
fn beside_guesses_from_a_thousand_addresses_an_operator_of_another_tenant_waits_for_three() {
    let mut line = line(1_024, 16);
    for peer in 0..1_024 {
        assert_eq!(line.enter(peer, 1, peer), Entered::Yes);
    }
    assert!(matches!(
        line.enter(9_999, 9, 5_000),
        Entered::InPlaceOf(_, 1, _)
    ));
    let place = order(&mut line).iter().position(|entry| *entry == 5_000);
    assert!(place.is_some_and(|place| place <= 4), "{place:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Enter(u32, u32),
    Next,
    /// Takes out the entry with this number among those that are in line.
    Remove(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u32..6, 0u32..6).prop_map(|(peer, tenant)| Step::Enter(peer, tenant)),
        3 => Just(Step::Next),
        1 => any::<usize>().prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    /// What came leaves once, a pair's entries leave in their order, bounds hold, and nobody is
    /// displaced for one who has as many.
    #[test]
    fn nothing_is_lost_and_bounds_hold(steps in steps(), entries_max in 1usize..40, pair_max in 1usize..8) {
        let mut line = line(entries_max, pair_max);
        let mut inside: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        let count = |inside: &BTreeMap<(u32, u32), Vec<u32>>, of: &dyn Fn(&(u32, u32)) -> bool| -> usize {
            inside.iter().filter(|(pair, _)| of(pair)).map(|(_, entries)| entries.len()).sum()
        };
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Enter(peer, tenant) => {
                    let entry = number as u32;
                    let of_peer = count(&inside, &|pair| pair.0 == peer);
                    let of_tenant = count(&inside, &|pair| pair.1 == tenant);
                    match line.enter(peer, tenant, entry) {
                        Entered::Yes => {}
                        Entered::InPlaceOf(p, t, last) => {
                            let theirs = count(&inside, &|pair| pair.0 == p) > of_peer + 1
                                || count(&inside, &|pair| pair.1 == t) > of_tenant + 1;
                            prop_assert!(theirs, "they had as many");
                            prop_assert_eq!(inside.get_mut(&(p, t)).and_then(Vec::pop), Some(last));
                        }
                        Entered::No => {
                            let all = count(&inside, &|_| true);
                            let pair = inside.get(&(peer, tenant)).map_or(0, Vec::len);
                            prop_assert!(pair == pair_max || all == entries_max);
                            continue;
                        }
                    }
                    inside.entry((peer, tenant)).or_default().push(entry);
                }
                Step::Next => {
                    let all = count(&inside, &|_| true);
                    match line.pop() {
                        Some((p, t, entry)) => {
                            let pair = inside.get_mut(&(p, t)).expect("somebody is there");
                            prop_assert_eq!(pair.remove(0), entry);
                        }
                        None => prop_assert_eq!(all, 0),
                    }
                }
                Step::Remove(at) => {
                    let all: Vec<_> = inside.iter().flat_map(|(pair, entries)| entries.iter().map(|entry| (*pair, *entry))).collect();
                    if !all.is_empty() {
                        let ((p, t), entry) = all[at % all.len()];
                        prop_assert!(line.remove(p, t, entry));
                        prop_assert!(!line.remove(p, t, entry));
                        inside.get_mut(&(p, t)).expect("it was there").retain(|other| *other != entry);
                    }
                }
            }
            prop_assert_eq!(line.len(), count(&inside, &|_| true));
            prop_assert!(line.len() <= entries_max);
        }
    }

    /// Whatever comes after it, an entry waits for at most two turns for each peer that was there
    /// before it, and for each tenant that was: here for the lesser of both, and its own pair's.
    #[test]
    fn nobody_waits_for_those_who_come_later(
        before in prop::collection::vec((0u32..9, 0u32..9), 0..60),
        after in prop::collection::vec((0u32..200, 0u32..200), 0..400),
    ) {
        let mut line = line(100_000, 100_000);
        for (number, (peer, tenant)) in before.iter().enumerate() {
            line.enter(*peer, *tenant, number as u32);
        }
        const VICTIM: u32 = 1_000_000;
        line.enter(500, 500, VICTIM);
        let peers: BTreeSet<u32> = before.iter().map(|(peer, _)| *peer).collect();
        let tenants: BTreeSet<u32> = before.iter().map(|(_, tenant)| *tenant).collect();
        let most = 2 * (peers.len().min(tenants.len()) + 1);
        let mut later = after.into_iter();
        for turn in 1..=most {
            // Two come for each that is served.
            for (peer, tenant) in later.by_ref().take(2) {
                line.enter(1_000 + peer, 1_000 + tenant, 2_000_000 + turn as u32);
            }
            if line.pop().map(|(_, _, entry)| entry) == Some(VICTIM) {
                return Ok(());
            }
        }
        prop_assert!(false, "not served in {} turns", most);
    }
}

type Desk = Checks<u32, u32, u32, (), u32>;

fn desk(entries_max: usize, pair_entries_max: usize) -> Desk {
    let line = LineOptions {
        entries_max,
        pair_entries_max,
    };
    Checks::new(ChecksOptions {
        line,
        wrong_ns: 5 * SECOND,
        wrong_max: 4,
    })
}

#[test]
fn two_hundred_that_ask_the_same_cost_one_check() {
    let mut desk = desk(8, 2);
    for waiter in 0..200 {
        assert_eq!(
            desk.ask(0, waiter % 3, 7, 70, (), waiter),
            Asked::Waits(Vec::new())
        );
    }
    assert_eq!(desk.pop(), Some((70, ())));
    assert_eq!(desk.pop(), None, "it is under way once");
    // Also who comes while it is under way.
    assert_eq!(desk.ask(0, 9, 7, 70, (), 200), Asked::Waits(Vec::new()));
    let mut answered = desk.done(1, 70, false);
    answered.sort_unstable();
    assert_eq!(answered, (0..=200).collect::<Vec<_>>());
    // What was right is no business of this desk any more.
    assert_eq!(desk.ask(2, 9, 7, 70, (), 201), Asked::Waits(Vec::new()));
    assert_eq!(desk.pop(), Some((70, ())));
}

#[test]
fn a_wrong_password_is_remembered_for_a_while_and_not_too_many_are() {
    let mut desk = desk(100, 100);
    for key in 0..6 {
        desk.ask(0, 1, 1, key, (), key);
        assert_eq!(desk.pop(), Some((key, ())));
        assert_eq!(desk.done(u64::from(key), key, true), [key]);
    }
    assert_eq!(desk.ask(SECOND, 2, 1, 5, (), 50), Asked::Wrong(50));
    assert_eq!(
        desk.ask(SECOND, 2, 1, 1, (), 51),
        Asked::Waits(Vec::new()),
        "the oldest were forgotten"
    );
    assert_eq!(desk.ask(5 * SECOND + 4, 2, 1, 5, (), 52), Asked::Wrong(52));
    assert_eq!(
        desk.ask(5 * SECOND + 5, 2, 1, 5, (), 53),
        Asked::Waits(Vec::new()),
        "its time is over"
    );
}

#[test]
fn who_is_displaced_is_told_and_who_has_others_places_is_not() {
    let mut desk = desk(2, 2);
    assert_eq!(desk.ask(0, 1, 1, 10, (), 1), Asked::Waits(Vec::new()));
    assert_eq!(desk.ask(0, 1, 1, 11, (), 2), Asked::Waits(Vec::new()));
    assert_eq!(
        desk.ask(0, 1, 1, 12, (), 3),
        Asked::Refused(3),
        "the pair is full"
    );
    // The line is full, and peer 1 has most.
    assert_eq!(desk.ask(0, 2, 2, 20, (), 4), Asked::Waits(vec![2]));
    assert_eq!(
        desk.ask(0, 3, 3, 30, (), 5),
        Asked::Refused(5),
        "all have as many"
    );
    // It joins without a place.
    assert_eq!(desk.ask(0, 3, 1, 10, (), 6), Asked::Waits(Vec::new()));
    assert_eq!(desk.pop(), Some((10, ())));
    assert_eq!(desk.done(0, 10, false), [1, 6]);
}

proptest! {
    /// Everybody who asks is answered once, and each key is under way at most once at a time.
    #[test]
    fn everybody_is_answered_once(
        asked in prop::collection::vec((0u32..5, 0u32..3, 0u32..4, any::<bool>(), 0u64..3), 1..200),
        entries_max in 1usize..12,
    ) {
        let mut desk = desk(entries_max, 3);
        let (mut now, mut answered) = (0, Vec::new());
        let mut under_way: Option<u32> = None;
        for (waiter, (peer, tenant, password, wrong, seconds)) in asked.iter().enumerate() {
            now += seconds * SECOND;
            let key = 10 * tenant + password;
            match desk.ask(now, *peer, *tenant, key, (), waiter as u32) {
                Asked::Waits(displaced) => answered.extend(displaced),
                Asked::Wrong(waiter) | Asked::Refused(waiter) => answered.push(waiter),
            }
            if waiter % 3 == 0 {
                if let Some(key) = under_way.take() {
                    answered.extend(desk.done(now, key, *wrong));
                }
                under_way = desk.pop().map(|(key, ())| key);
            }
        }
        // Nothing may be under way now although somebody waits.
        while let Some(key) = under_way.take().or_else(|| Some(desk.pop()?.0)) {
            answered.extend(desk.done(now, key, true));
        }
        answered.sort_unstable();
        prop_assert_eq!(answered, (0..asked.len() as u32).collect::<Vec<_>>());
        prop_assert!(desk.is_empty());
    }
}
