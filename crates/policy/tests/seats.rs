//! Who may hold a connection, against those who want them all.

use std::collections::BTreeMap;

use policy::seats::{Arrivals, Claim, Newcomer, Newcomers, Seat, Seats, SeatsOptions, Welcome};
use policy::PrincipalId;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn seats(tenants: usize, operators: usize, claims: &[Claim]) -> Seats {
    let mut seats = Seats::default();
    seats.set(SeatsOptions { tenants, operators });
    for (id, claim) in (0..).map(PrincipalId).zip(claims) {
        seats.enter(id, *claim);
    }
    seats
}

fn take_all(seats: &mut Seats, tenant: u32) -> usize {
    std::iter::from_fn(|| seats.take(PrincipalId(tenant))).count()
}

const ANY: Claim = Claim {
    connections_max: None,
    operator: false,
};
const OPERATOR: Claim = Claim {
    connections_max: None,
    operator: true,
};

#[test]
fn whatever_two_tenants_take_the_third_has_its_part() {
    let mut seats = seats(60, 4, &[ANY, ANY, ANY]);
    // Ten are kept for each, thirty are shared.
    assert_eq!(seats.connections_max(PrincipalId(0)), 40);
    assert_eq!(take_all(&mut seats, 0), 40);
    assert_eq!(take_all(&mut seats, 1), 10);
    assert_eq!(take_all(&mut seats, 2), 10);
    assert_eq!(seats.taken(), 60);
    // One of the first leaves: whoever comes has its seat.
    seats.leave(Seat::Tenant(PrincipalId(0)));
    assert_eq!(take_all(&mut seats, 2), 1);
}

#[test]
fn one_tenant_alone_has_all_and_an_operator_some_more() {
    assert_eq!(take_all(&mut seats(60, 4, &[ANY]), 0), 60);
    let mut seats = seats(60, 4, &[OPERATOR, ANY]);
    assert_eq!(take_all(&mut seats, 1), 45);
    assert_eq!(take_all(&mut seats, 0), 15 + 4);
    seats.leave(Seat::Operator);
    assert_eq!(take_all(&mut seats, 1), 0);
    assert_eq!(seats.take(PrincipalId(0)), Some(Seat::Operator));
}

#[test]
fn a_maximum_holds_and_what_it_leaves_is_the_others() {
    let few = Claim {
        connections_max: Some(3),
        ..ANY
    };
    let mut seats = seats(60, 0, &[few, ANY]);
    assert_eq!(seats.connections_max(PrincipalId(0)), 3);
    assert_eq!(seats.connections_max(PrincipalId(1)), 57);
    assert_eq!(take_all(&mut seats, 0), 3);
    assert_eq!(take_all(&mut seats, 1), 57);
    assert_eq!(take_all(&mut seats, 9), 0, "nobody knows it");
}

#[test]
fn tenants_come_and_go_beside_those_who_are_seated() {
    let mut seats = seats(60, 0, &[ANY, ANY]);
    assert_eq!(take_all(&mut seats, 0), 45);
    seats.enter(PrincipalId(2), ANY);
    // The first has more than it would get now, and gets no more; the others have their parts.
    assert_eq!(take_all(&mut seats, 0), 0);
    assert_eq!((take_all(&mut seats, 1), take_all(&mut seats, 2)), (10, 10));
    // It is removed: what it holds is still held.
    seats.remove(PrincipalId(0));
    assert_eq!(take_all(&mut seats, 0), 0);
    for _ in 0..45 {
        seats.leave(Seat::Tenant(PrincipalId(0)));
    }
    assert_eq!(seats.taken(), 20);
    assert_eq!(take_all(&mut seats, 1) + take_all(&mut seats, 2), 40);
    // More seats, and a claim that changes.
    seats.set(SeatsOptions {
        tenants: 100,
        operators: 0,
    });
    assert_eq!((take_all(&mut seats, 1), take_all(&mut seats, 2)), (30, 10));
    let few = Claim {
        connections_max: Some(1),
        ..ANY
    };
    seats.enter(PrincipalId(1), few);
    assert_eq!(
        (
            seats.connections_max(PrincipalId(1)),
            seats.connections_max(PrincipalId(2))
        ),
        (1, 99)
    );
}

proptest! {
    /// Nobody is beyond the server's number or its own, whoever is below its part is let in, and
    /// all leave nothing.
    #[test]
    fn parts_are_kept_and_bounds_hold(
        total in 0usize..50, operators in 0usize..4,
        claims in prop::collection::vec((prop::option::of(0usize..20), any::<bool>()), 1..6),
        steps in prop::collection::vec((0usize..6, any::<bool>()), 0..300),
    ) {
        let claims: Vec<Claim> = claims.into_iter()
            .map(|(connections_max, operator)| Claim { connections_max, operator })
            .collect();
        let mut seats = seats(total, operators, &claims);
        let part = total / (2 * claims.len());
        let mut held: Vec<Vec<Seat>> = vec![Vec::new(); claims.len()];
        let own = |held: &[Vec<Seat>], tenant: usize| held[tenant].iter().filter(|seat| **seat != Seat::Operator).count();
        for (tenant, comes) in steps {
            let tenant = tenant % claims.len();
            if comes {
                let before = own(&held, tenant);
                let kept = claims[tenant].connections_max.map_or(part, |max| max.min(part));
                let seat = seats.take(PrincipalId(tenant as u32));
                prop_assert!(seat.is_some() || before >= kept, "its part was kept for it");
                if let Some(Seat::Tenant(_)) = seat {
                    prop_assert!(before < claims[tenant].connections_max.unwrap_or(total));
                }
                prop_assert!(seat != Some(Seat::Operator) || claims[tenant].operator);
                held[tenant].extend(seat);
            } else if let Some(seat) = held[tenant].pop() {
                seats.leave(seat);
            }
            let all: usize = (0..claims.len()).map(|tenant| own(&held, tenant)).sum();
            let theirs: usize = held.iter().map(Vec::len).sum::<usize>() - all;
            prop_assert!(all <= total && theirs <= operators);
            prop_assert_eq!(seats.taken(), all + theirs);
        }
        held.into_iter().flatten().for_each(|seat| seats.leave(seat));
        prop_assert_eq!(seats.taken(), 0);
        // Nothing is lost: one alone with no maximum has all but what is kept for the others.
        let max = seats.connections_max(PrincipalId(0));
        prop_assert_eq!(take_all(&mut seats, 0), max + if claims[0].operator { operators } else { 0 });
    }
}

type Crowd = Newcomers<u32, &'static str>;

fn come(
    crowd: &mut Crowd,
    peer: u32,
    client: &'static str,
) -> (Option<Newcomer>, Option<&'static str>) {
    match crowd.come(crowd.len() as u64, peer, 4, client) {
        Welcome::Seated(newcomer) => (Some(newcomer), None),
        Welcome::InPlaceOf(newcomer, gone) => (Some(newcomer), Some(gone)),
        Welcome::Full => (None, None),
    }
}

#[test]
fn silent_ones_go_first_and_of_those_who_have_most() {
    let mut crowd = Crowd::default();
    let a = come(&mut crowd, 1, "a").0.expect("a seat");
    let names = ["b", "c"];
    let _ = names.map(|name| come(&mut crowd, 2, name));
    let _ = come(&mut crowd, 3, "d");
    // The second peer has most.
    assert_eq!(come(&mut crowd, 4, "e").1, Some("b"));
    // All have one: the oldest goes, unless its password is being checked.
    crowd.checked(a, true);
    assert_eq!(come(&mut crowd, 5, "f").1, Some("c"));
    crowd.checked(a, false);
    assert_eq!(come(&mut crowd, 6, "g").1, Some("a"));
}

#[test]
fn who_has_spoken_stays_longer_than_who_has_not() {
    let mut crowd = Crowd::default();
    let first = come(&mut crowd, 1, "a").0.expect("a seat");
    crowd.heard(first);
    let _ = ["b", "c", "d"].map(|name| come(&mut crowd, 1, name));
    assert_eq!(come(&mut crowd, 2, "e").1, Some("b"));
    assert_eq!(come(&mut crowd, 2, "f").1, Some("c"));
    // Both have two: the oldest goes.
    assert_eq!(come(&mut crowd, 3, "g").1, Some("d"));
    assert_eq!(crowd.leave(first), Some("a"));
    assert_eq!(crowd.leave(first), None);
}

/// Whoever fills the seats with log-ins that take long loses them to who comes from elsewhere.
#[test]
fn checks_of_one_peer_do_not_keep_another_out() {
    let mut crowd = Crowd::default();
    for name in ["a", "b", "c", "d"] {
        let newcomer = come(&mut crowd, 1, name).0.expect("a seat");
        crowd.checked(newcomer, true);
    }
    assert_eq!(come(&mut crowd, 1, "e"), (None, None), "it has most itself");
    let (e, gone) = come(&mut crowd, 2, "e");
    assert_eq!(gone, Some("a"));
    crowd.checked(e.expect("a seat"), true);
    assert_eq!(come(&mut crowd, 2, "f").1, Some("b"));
}

#[test]
fn who_is_late_is_named_once() {
    let mut crowd = Crowd::default();
    for (now, name) in [(0, "a"), (5, "b"), (10, "c")] {
        let Welcome::Seated(newcomer) = crowd.come(now, 1, 9, name) else {
            panic!("there is room")
        };
        crowd.checked(newcomer, name == "b");
    }
    assert_eq!(crowd.overdue(8), ["a"]);
    assert!(crowd.overdue(8).is_empty());
    assert_eq!(crowd.len(), 2);
}

#[derive(Clone, Debug)]
enum Step {
    Come(u32),
    Heard(usize),
    Checked(usize, bool),
    Leave(usize),
}

proptest! {
    /// There are never more than seats, whoever goes is of a peer that nobody has more than, and
    /// nobody is lost.
    #[test]
    fn newcomers_are_bounded_and_fair(
        seats in 1usize..12,
        steps in prop::collection::vec(prop_oneof![
            6 => (0u32..5).prop_map(Step::Come),
            2 => any::<usize>().prop_map(Step::Heard),
            2 => (any::<usize>(), any::<bool>()).prop_map(|(at, under_way)| Step::Checked(at, under_way)),
            2 => any::<usize>().prop_map(Step::Leave),
        ], 0..200),
    ) {
        let mut crowd: Newcomers<u32, u64> = Newcomers::default();
        // By the number that they are known by here: number, peer, whether a password is being
        // checked.
        let mut inside: BTreeMap<u64, (Newcomer, u32, bool)> = BTreeMap::new();
        for (number, step) in (0u64..).zip(steps) {
            let at = |at: usize| inside.keys().nth(at % inside.len().max(1)).copied();
            match step {
                Step::Come(peer) => {
                    let of = |peer: u32| inside.values().filter(|(_, other, _)| *other == peer).count();
                    let most = (0..5).map(of).max().unwrap_or(0);
                    match crowd.come(number, peer, seats, number) {
                        Welcome::Seated(newcomer) => {
                            inside.insert(number, (newcomer, peer, false));
                        }
                        Welcome::InPlaceOf(newcomer, gone) => {
                            let (_, theirs, checked) = inside[&gone];
                            prop_assert!(!checked || of(theirs) >= of(peer) + 2);
                            let all_checked = inside.values().all(|(_, other, checked)| of(*other) < most || *checked);
                            prop_assert!(of(theirs) == most || all_checked);
                            inside.remove(&gone);
                            inside.insert(number, (newcomer, peer, false));
                        }
                        Welcome::Full => prop_assert!(inside.len() == seats && inside.values().all(|(_, _, checked)| *checked)),
                    }
                }
                Step::Heard(index) => {
                    if let Some(known) = at(index) {
                        crowd.heard(inside[&known].0);
                    }
                }
                Step::Checked(index, under_way) => {
                    if let Some(known) = at(index) {
                        let entry = inside.get_mut(&known).expect("inside");
                        entry.2 = under_way;
                        crowd.checked(entry.0, under_way);
                    }
                }
                Step::Leave(index) => {
                    if let Some(known) = at(index) {
                        let (newcomer, _, _) = inside.remove(&known).expect("inside");
                        prop_assert_eq!(crowd.leave(newcomer), Some(known));
                    }
                }
            }
            prop_assert!(crowd.len() == inside.len() && crowd.len() <= seats);
        }
    }
}

#[test]
fn a_peer_has_a_burst_and_then_its_rate_and_the_others_have_theirs() {
    let mut arrivals = Arrivals::new(100);
    let mut come = |now, peer| arrivals.come(now, peer, 10.0, 2.0);
    assert_eq!((0..50).filter(|_| come(0, 1)).count(), 20);
    assert!(come(0, 2));
    assert!(!come(SECOND / 10 - 1, 1) && come(SECOND / 10, 1) && !come(SECOND / 10, 1));
    assert_eq!((0..50).filter(|_| come(9 * SECOND, 1)).count(), 20);
}

proptest! {
    /// However peers come, the table is bounded and a peer that is not forgotten gets no more than
    /// burst and rate.
    #[test]
    fn the_table_is_bounded(coming in prop::collection::vec((0u64..SECOND, 0u32..40), 0..500)) {
        let mut arrivals = Arrivals::new(16);
        let mut few = Arrivals::new(1_000);
        let (mut now, mut admitted) = (0, BTreeMap::<u32, usize>::new());
        for (pause, peer) in coming {
            now += pause;
            arrivals.come(now, peer, 2.0, 3.0);
            prop_assert!(arrivals.len() <= 16);
            *admitted.entry(peer).or_default() += usize::from(few.come(now, peer, 2.0, 3.0));
        }
        let most = 6 + (2 * now / SECOND) as usize + 1;
        prop_assert!(admitted.values().all(|count| *count <= most));
    }
}
