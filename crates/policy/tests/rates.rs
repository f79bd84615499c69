//! Reservations, limits and contracts.

mod common;

use common::{options, out, request, Backlogged, MS, R, S, US};
use policy::dispatch::{Allocation, Dispatch, DispatchOptions, Limit, Next, Verdict};
use policy::{Cost, PrincipalId};
use proptest::prelude::*;

fn limited(requests_per_s: f64, burst_ns: u64, max_wait_ns: u64) -> Allocation {
    Allocation {
        limit: Limit {
            requests_per_s: Some(requests_per_s),
            burst_ns,
            max_wait_ns,
            ..Limit::default()
        },
        ..Allocation::default()
    }
}

fn allocations(list: &[Allocation]) -> Backlogged {
    Backlogged::new(options(), list)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Over any interval no more than the rate and one burst (and the turn that began with nothing
    /// left).
    #[test]
    fn a_limit_is_exceeded_by_no_more_than_a_burst(
        per_s in 100.0f64..20_000.0,
        burst_ns in 0u64..50 * MS,
        pauses in prop::collection::vec(0u64..3 * MS, 300),
        asks in prop::collection::vec(1u64..200, 300),
        least in prop::sample::select(vec![0, 32]),
    ) {
        let allocation = limited(per_s, burst_ns, S);
        let turn_least = Cost([least, 0, 0, 0]);
        let mut world = Backlogged::new(DispatchOptions { turn_least, ..options() }, &[allocation]);
        world.now = S;
        let mut served: Vec<(u64, u64)> = Vec::new();
        for (pause, ask) in pauses.iter().zip(&asks) {
            world.now += pause;
            world.fill();
            if let Next::Grant(grant) = world.dispatch.next(world.now) {
                prop_assert_eq!(grant.verdict, Verdict::Serve);
                let n = (*ask).min(grant.budget.0[0]);
                served.push((world.now, n));
                world.now += 5 * US * n;
                world.dispatch.settle(world.now, grant.ticket, Cost([n, 10, 10, 0]));
            }
        }
        for from in 0..served.len() {
            let mut sum = 0;
            for to in &served[from..] {
                sum += to.1;
                let interval = (to.0 - served[from].0) as f64;
                let most = per_s * (interval + burst_ns as f64) / 1e9 + 2.0;
                prop_assert!(sum as f64 <= most, "{sum} in {interval} ns, at most {most}");
            }
        }
    }

    /// Reservations that fit are met in every window, however small the weight.
    #[test]
    fn a_feasible_reservation_is_met(
        parts in prop::collection::vec((0.02f64..0.3, 0.001f64..10.0), 1..4),
        rivals in prop::collection::vec(0.1f64..1000.0, 1..5),
    ) {
        // A turn is one request of 10 µs: 100,000 a second; at most 90 % is reserved.
        let mut list: Vec<Allocation> = parts.iter().map(|&(part, weight)| Allocation {
            weight,
            reservation_per_s: Some(part * 100_000.0),
            ..Allocation::default()
        }).collect();
        list.extend(rivals.iter().map(|&w| Allocation::share(w)));
        let mut world = allocations(&list);
        let windows = 10;
        for window in 1..=windows {
            let before = world.turns.clone();
            world.run(window * 20 * MS, |_| request(10 * US));
            for (id, (part, _)) in parts.iter().enumerate() {
                let got = world.turns[id] - before[id];
                let reserved = part * 2000.0;
                // One turn in progress, one of rounding, and those who are further behind go first.
                prop_assert!(got as f64 >= reserved - 2.0 - parts.len() as f64, "{got} of {reserved}");
            }
        }
    }
}

#[test]
fn a_reservation_is_not_paid_on_top_of_the_share() {
    let list = [
        Allocation {
            reservation_per_s: Some(10_000.0),
            ..Allocation::default()
        },
        Allocation::share(1.0),
    ];
    let mut world = allocations(&list);
    world.run(S, |_| request(10 * US));
    let [with, without] = [world.turns[0] as f64, world.turns[1] as f64];
    assert!((0.99..1.01).contains(&(with / without)), "{with} {without}");
}

#[test]
fn past_excess_does_not_cost_a_reservation() {
    // Alone, it gets far more than is reserved; when the others come it still has its reservation
    // at once.
    let list = [
        Allocation {
            weight: 0.001,
            reservation_per_s: Some(20_000.0),
            ..Allocation::default()
        },
        Allocation::share(100.0),
    ];
    let mut world = allocations(&list);
    world.keep[1] = false;
    world.run(S, |_| request(10 * US));
    world.keep[1] = true;
    let before = world.turns[0];
    world.run(S + 10 * MS, |_| request(10 * US));
    assert!(
        world.turns[0] - before >= 198,
        "{}",
        world.turns[0] - before
    );
}

#[test]
fn above_its_limit_a_principal_is_told_when_to_come_back() {
    let mut world = allocations(&[limited(1000.0, 0, 5 * MS), Allocation::default()]);
    world.keep[1] = false;
    world.now = S;
    assert_eq!(world.turn(|_, g| Cost([g.budget.0[0], 0, 0, 0])), Some(0));
    // A turn of 40 requests: the next may come 40 ms later, but an item waits no longer than 5 ms.
    assert_eq!(world.turn(|_, _| Cost([40, 0, 0, 0])), None);
    world.now += MS;
    assert_eq!(world.turn(|_, _| Cost([40, 0, 0, 0])), Some(0));
    world.now = S + 2 * MS;
    world.fill();
    let Next::At(at) = world.dispatch.next(world.now) else {
        panic!("it is above its limit")
    };
    assert_eq!(at, S + US + 5 * MS);
    world.now = at;
    let Next::Grant(grant) = world.dispatch.next(at) else {
        panic!("its wait is over")
    };
    let Verdict::Refuse {
        limit,
        retry_after_ns,
    } = grant.verdict
    else {
        panic!("refused")
    };
    assert_eq!(limit, policy::dispatch::Limited::Requests);
    assert!(
        (30 * MS..40 * MS).contains(&retry_after_ns),
        "{retry_after_ns}"
    );
    world
        .dispatch
        .settle(at, grant.ticket, Cost([1, 10, 10, 0]));
    let seen = world.dispatch.observe(at, PrincipalId(0)).expect("known");
    assert_eq!((seen.refused, seen.granted), (1, 2));
}

#[test]
fn a_limited_principal_does_not_hold_up_the_others() {
    let mut world = allocations(&[limited(1000.0, 0, S), Allocation::default()]);
    world.run(S, |_| request(10 * US));
    assert!((995..=1002).contains(&world.turns[0]), "{:?}", world.turns);
    assert!(world.turns[1] >= 98_900, "{:?}", world.turns);
}

#[test]
fn bytes_are_limited_too() {
    let mut allocation = Allocation::default();
    allocation.limit.bytes_per_s = Some(10e6);
    allocation.limit.max_wait_ns = S;
    let mut world = allocations(&[allocation, Allocation::default()]);
    world.now = S;
    world.run(2 * S, |_| Cost([1, 1000, 9000, 0]));
    let bytes = world.used[0].0[1] + world.used[0].0[2];
    // A second's worth and the burst of 100 ms.
    assert!((10_900_000..11_030_000).contains(&bytes), "{bytes}");
}

#[test]
fn beyond_its_contract_a_principal_takes_only_what_is_left() {
    let contract = Allocation {
        weight: 100.0,
        contract_per_s: Some(10_000.0),
        ..Allocation::default()
    };
    let mut world = allocations(&[contract, Allocation::share(1.0)]);
    world.run(S, |_| request(10 * US));
    // The contract's burst is 100 ms at its rate, less what had not passed at the start.
    assert!(
        (9_900..=10_100).contains(&world.turns[0]),
        "{:?}",
        world.turns
    );
    // When the other has nothing to do, it gets everything; and is in contract again when it comes
    // back.
    world.keep[1] = false;
    let before = world.turns[0];
    world.run(2 * S, |_| request(10 * US));
    assert!(world.turns[0] - before > 99_000);
    world.keep[1] = true;
    let before = world.turns[0];
    world.run(3 * S, |_| request(10 * US));
    let got = world.turns[0] - before;
    assert!((9_900..=11_200).contains(&got), "{got}");
}

#[test]
fn best_effort_for_ever() {
    let none = Allocation {
        contract_per_s: Some(0.0),
        ..Allocation::default()
    };
    let mut world = allocations(&[none, Allocation::share(1.0)]);
    world.run(100 * MS, |_| out(10 * US));
    assert_eq!(world.turns[0], 0);
    world.keep[1] = false;
    world.run(200 * MS, |_| out(10 * US));
    assert!(world.turns[0] > 9_000);
}

#[test]
fn limits_change_without_a_pause() {
    let mut world = allocations(&[limited(1000.0, 0, S)]);
    world.now = S;
    world.fill();
    world.turn(|_, _| Cost([40, 0, 0, 0]));
    world
        .dispatch
        .configure(world.now, PrincipalId(0), &Allocation::default());
    for _ in 0..100 {
        assert_eq!(world.turn(|_, _| Cost([1, 0, 0, 0])), Some(0));
    }
    world
        .dispatch
        .configure(world.now, PrincipalId(0), &limited(1000.0, 0, S));
    let served = (0..100)
        .filter(|_| world.turn(|_, _| Cost([1, 0, 0, 0])).is_some())
        .count();
    assert!(served <= 2, "{served}");
}

#[test]
fn consumption_elsewhere_counts_against_a_limit() {
    let mut here: Dispatch<(), R> = Dispatch::new(options());
    let principal = PrincipalId(0);
    here.configure(S, principal, &limited(1000.0, 0, 0));
    here.charge(S, principal, Cost([20, 0, 0, 0]));
    here.enqueue(S, principal, ()).expect("room");
    let Next::Grant(grant) = here.next(S) else {
        panic!("a refusal")
    };
    assert!(
        matches!(grant.verdict, Verdict::Refuse { retry_after_ns, .. } if retry_after_ns == 20 * MS)
    );
    here.settle(S, grant.ticket, Cost::ZERO);
}
