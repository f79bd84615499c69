//! Lanes and due times: who is served when, and that nobody pays for it beyond a bound.

mod common;

use common::{options, out, request, MS, R, S, US};
use policy::dispatch::{
    Allocation, Dispatch, DispatchOptions, Grant, LaneAllocation, LaneId, Next, Others, Terms,
};
use policy::{Nanos, PrincipalId};
use proptest::prelude::*;

const FRONT: PrincipalId = PrincipalId(0);
const BATCH: PrincipalId = PrincipalId(1);

fn dispatch(options: DispatchOptions<R>, others: Others) -> Dispatch<u64, R> {
    let mut dispatch = Dispatch::new(options);
    for id in [FRONT, BATCH] {
        dispatch.configure(0, id, &Allocation::share(1.0));
    }
    dispatch.set_others(0, others);
    dispatch
}

fn due(lane: u8, due_at: Nanos) -> Terms {
    Terms {
        lane: LaneId(lane),
        due_at: Some(due_at),
        ..Terms::default()
    }
}

fn contract(per_s: f64) -> LaneAllocation {
    LaneAllocation {
        contract_per_s: Some(per_s),
        ..LaneAllocation::default()
    }
}

fn grant(dispatch: &mut Dispatch<u64, R>, now: Nanos) -> Option<Grant<u64, R>> {
    match dispatch.next(now) {
        Next::Grant(grant) => Some(grant),
        _ => None,
    }
}

/// Lets everything go that may; those granted are out until they are settled.
fn all(dispatch: &mut Dispatch<u64, R>, now: Nanos) -> Vec<Grant<u64, R>> {
    std::iter::from_fn(|| grant(dispatch, now)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Work with due times that alone would use everything leaves the floor to the other work,
    /// whatever turns cost and whether or not it is held back beside due work.
    #[test]
    fn other_work_never_starves(
        floor in 0.01f64..0.5,
        permits in 1u32..4,
        beside in 0u32..2,
        first: bool,
        front_us in 20u64..5_000,
        batch_us in 20u64..20_000,
    ) {
        let options = DispatchOptions { permits, ..options() };
        let others = Others { beside, floor, first, ..Others::default() };
        let mut dispatch = dispatch(options, others);
        let (mut now, mut had_ns) = (0, 0);
        let mut out_until: Vec<(Nanos, Grant<u64, R>)> = Vec::new();
        while now < 2 * S {
            while dispatch.queued_of(FRONT) < 4 {
                dispatch.enqueue_on(now, FRONT, due(0, now), 0).expect("room");
            }
            while dispatch.queued_of(BATCH) < 4 {
                dispatch.enqueue(now, BATCH, 0).expect("room");
            }
            for grant in all(&mut dispatch, now) {
                let us = if grant.principal == BATCH { batch_us } else { front_us };
                out_until.push((now + us * US, grant));
            }
            let at = out_until.iter().enumerate().min_by_key(|(_, (at, _))| *at);
            let (index, _) = at.expect("something is always out");
            let (ends_at, grant) = out_until.swap_remove(index);
            let batch_out = grant.principal == BATCH
                || out_until.iter().any(|(_, grant)| grant.principal == BATCH);
            had_ns += if batch_out { ends_at - now } else { 0 };
            now = ends_at;
            let us = if grant.principal == BATCH { batch_us } else { front_us };
            dispatch.settle(now, grant.ticket, request(us * US));
        }
        // What it had too much before, up to 100 ms, is set off.
        let least = floor * now as f64 - (batch_us + front_us) as f64 * 1e3 - 1e8;
        prop_assert!(had_ns as f64 >= least, "{had_ns} of {now}, floor {floor}");
    }

    /// What is due begins as soon as one turn of the others ends (and one that they are owed), if
    /// nothing else is due.
    #[test]
    fn what_is_due_begins_within_a_turn_of_the_others(
        slack_us in 0u64..50_000,
        batch_us in 20u64..5_000,
        first: bool,
        tenants in 2u32..6,
    ) {
        let others = Others { first, ..Others::default() };
        let mut dispatch = dispatch(options(), others);
        for id in 2..tenants {
            dispatch.configure(0, PrincipalId(id), &Allocation::share(100.0));
        }
        let (mut now, mut next_at) = (0, 0);
        for _ in 0..1_000 {
            if now >= next_at {
                let due_at = now + slack_us * US;
                dispatch.enqueue_on(now, FRONT, due(0, due_at), due_at).expect("room");
                next_at = now + 100 * MS;
            }
            for id in 1..tenants {
                if dispatch.queued_of(PrincipalId(id)) == 0 {
                    dispatch.enqueue(now, PrincipalId(id), 0).expect("room");
                }
            }
            let grant = grant(&mut dispatch, now).expect("work");
            if grant.principal == FRONT {
                prop_assert!(now <= grant.item + 2 * batch_us * US, "{now} {}", grant.item);
                prop_assert!(!first || now >= grant.item, "it waits as long as it may");
            }
            now += batch_us * US;
            dispatch.settle(now, grant.ticket, out(batch_us * US));
        }
    }

    /// Other work leaves free what is kept, though it is there first and wants all; whoever has a
    /// due time finds it at once. It has one permit, whatever is kept.
    #[test]
    fn what_is_kept_is_free_for_what_is_due(permits in 1u32..9, kept in 0u32..12) {
        let others = Others { kept, ..Others::default() };
        let options = DispatchOptions { permits, ..options() };
        let mut dispatch = dispatch(options, others);
        for item in 0..20 {
            dispatch.enqueue(0, BATCH, item).expect("room");
        }
        let most = permits.saturating_sub(kept).max(1);
        prop_assert_eq!(all(&mut dispatch, 0).len() as u32, most);
        for item in 0..20 {
            dispatch.enqueue_on(0, FRONT, due(0, 0), item).expect("room");
        }
        let due = all(&mut dispatch, 0);
        prop_assert!(due.iter().all(|grant| grant.principal == FRONT));
        prop_assert_eq!(due.len() as u32, permits - most);
        // What is kept is not lent either, and what is needed for that is asked for.
        let need = dispatch.need();
        prop_assert_eq!(need.keeps, kept + 1);
        prop_assert!(need.useful >= permits.saturating_add(kept));
    }

    /// However much comes, due times are kept for the contract's rate and no more; what is beyond
    /// it has its tenant's share, and the others have theirs.
    #[test]
    fn a_contract_buys_its_rate_and_no_more(per_s in 100.0f64..6_000.0, first: bool) {
        let others = Others { first, ..Others::default() };
        let mut dispatch = dispatch(options(), others);
        dispatch.configure(0, PrincipalId(2), &Allocation::share(1.0));
        dispatch.configure_lane(0, FRONT, LaneId(0), &contract(per_s));
        let (mut now, mut timed, mut used) = (0, 0u64, [0u64; 3]);
        while now < 2 * S {
            for id in 0..3 {
                while dispatch.queued_of(PrincipalId(id)) < 2 {
                    let terms = if id == 0 { due(0, now) } else { Terms::default() };
                    dispatch.enqueue_on(now, PrincipalId(id), terms, 0).expect("room");
                }
            }
            let grant = grant(&mut dispatch, now).expect("work");
            timed += u64::from(grant.ticket.timed());
            used[grant.principal.index()] += 100 * US;
            now += 100 * US;
            dispatch.settle(now, grant.ticket, request(100 * US));
        }
        let seconds = now as f64 / 1e9;
        let most = per_s * (seconds + 0.1) + 2.0;
        prop_assert!(timed as f64 <= most, "{timed} {most}");
        // The front-end has its share or its contract, whichever is more.
        let promised = (per_s * 1e-4).max(1.0 / 3.0);
        let part = used[0] as f64 / now as f64;
        prop_assert!(part <= promised + 0.06 && part >= promised.min(0.9) - 0.06, "{part} {promised}");
        prop_assert!(used[1].abs_diff(used[2]) <= 2 * MS, "{used:?}");
    }

    /// Lanes have their weights' part of what their tenant gets, and change nothing of that.
    #[test]
    fn lanes_divide_what_is_their_tenants(weights in prop::collection::vec(0.1f64..10.0, 2..5)) {
        let mut dispatch = dispatch(options(), Others::default());
        for (lane, weight) in weights.iter().enumerate() {
            let allocation = LaneAllocation { weight: *weight, ..LaneAllocation::default() };
            dispatch.configure_lane(0, FRONT, LaneId(lane as u8), &allocation);
        }
        let (mut now, mut used, mut batch) = (0, vec![0u64; weights.len()], 0);
        while now < 2 * S {
            for lane in 0..weights.len() {
                let terms = Terms { lane: LaneId(lane as u8), ..Terms::default() };
                let seen = dispatch.observe_lane(now, FRONT, terms.lane);
                if seen.is_none_or(|seen| seen.queued == 0) {
                    dispatch.enqueue_on(now, FRONT, terms, 0).expect("room");
                }
            }
            if dispatch.queued_of(BATCH) == 0 {
                dispatch.enqueue(now, BATCH, 0).expect("room");
            }
            let grant = grant(&mut dispatch, now).expect("work");
            let ns = (20 + u64::from(grant.ticket.lane().0) * 15) * US;
            now += ns;
            match grant.principal {
                FRONT => used[usize::from(grant.ticket.lane().0)] += ns,
                _ => batch += ns,
            }
            dispatch.settle(now, grant.ticket, out(ns));
        }
        let front: u64 = used.iter().sum();
        prop_assert!(front.abs_diff(batch) <= MS, "{front} {batch}");
        let sum: f64 = weights.iter().sum();
        for (ns, weight) in used.iter().zip(&weights) {
            let part = *ns as f64 / front as f64;
            prop_assert!((part - weight / sum).abs() < 0.01, "{part} {} {used:?}", weight / sum);
        }
    }
}

#[test]
fn contracts_hold_over_all_cores() {
    // Two cores, each with the full contract, exchange every millisecond.
    let mut cores: Vec<_> = (0..2)
        .map(|_| {
            let mut dispatch = dispatch(options(), Others::default());
            dispatch.configure_lane(0, FRONT, LaneId(1), &contract(1_000.0));
            dispatch
        })
        .collect();
    let (mut timed, mut now) = (0, 0);
    while now < 2 * S {
        let mut reports = Vec::new();
        for core in &mut cores {
            for _ in 0..10 {
                while core.queued_of(FRONT) < 2 {
                    core.enqueue_on(now, FRONT, due(1, now), 0).expect("room");
                }
                let grant = grant(core, now).expect("work");
                timed += u64::from(grant.ticket.timed());
                core.settle(now, grant.ticket, request(100 * US));
            }
            let mut report = Vec::new();
            core.report(&mut report);
            reports.push(report);
        }
        cores[0].absorb(now, &reports[1]);
        cores[1].absorb(now, &reports[0]);
        now += MS;
    }
    // The burst of 100 ms once, and what both serve between two exchanges.
    assert!((2_000..=2_130).contains(&timed), "{timed}");
}

#[test]
fn what_is_due_takes_along_what_waits_behind_it() {
    let others = Others {
        permits: 1,
        first: true,
        ..Others::default()
    };
    let permits = 8;
    let mut dispatch = dispatch(
        DispatchOptions {
            permits,
            ..options()
        },
        others,
    );
    for item in 0..3 {
        dispatch.enqueue(0, BATCH, item).expect("room");
    }
    for item in 0..5 {
        let terms = due(0, (10 + item) * MS);
        dispatch
            .enqueue_on(0, FRONT, terms, 10 + item)
            .expect("room");
    }
    let [scan] = <[_; 1]>::try_from(all(&mut dispatch, 0)).expect("one other");
    assert_eq!(scan.item, 0);
    // Soon enough for the four that wait behind the first, 100 us each.
    assert!(matches!(dispatch.next(9 * MS), Next::At(at) if at == 9_600_000));
    // More than is due at 10 ms goes; what comes afterwards waits for its own time.
    let group: Vec<_> = all(&mut dispatch, 10 * MS);
    let items: Vec<_> = group.iter().map(|grant| grant.item).collect();
    assert_eq!(items, [10, 11, 12, 13, 14]);
    dispatch
        .enqueue_on(10 * MS, FRONT, due(0, 30 * MS), 15)
        .expect("room");
    assert!(grant(&mut dispatch, 10 * MS).is_none());
}

#[test]
fn a_reserved_permit_is_its_owners_whatever_is_due_elsewhere() {
    let permits = 2;
    let mut dispatch = dispatch(
        DispatchOptions {
            permits,
            ..options()
        },
        Others::default(),
    );
    let reserved = Allocation {
        reserved_permits: 1,
        ..Allocation::default()
    };
    dispatch.configure(0, BATCH, &reserved);
    for item in 0..3 {
        dispatch
            .enqueue_on(0, FRONT, due(0, 0), item)
            .expect("room");
    }
    let first = all(&mut dispatch, 0);
    assert_eq!(first.len(), 1, "the other one is reserved");
    dispatch.enqueue(0, BATCH, 9).expect("room");
    let own = grant(&mut dispatch, 0).expect("its own permit");
    assert_eq!((own.principal, own.item), (BATCH, 9));
    // And one of whose own is free goes with it when it is due, though no shared one is.
    dispatch.configure(0, FRONT, &reserved);
    dispatch.configure(0, BATCH, &Allocation::default());
    dispatch.set_permits(3);
    dispatch.enqueue(0, BATCH, 10).expect("room");
    let items: Vec<_> = all(&mut dispatch, 0)
        .iter()
        .map(|grant| grant.item)
        .collect();
    assert_eq!(items, [1]);
}

#[test]
fn a_limit_stands_before_a_due_time() {
    let mut dispatch = dispatch(options(), Others::default());
    let mut limited = Allocation::default();
    limited.limit.requests_per_s = Some(10.0);
    limited.limit.burst_ns = 0;
    dispatch.configure(S, FRONT, &limited);
    for item in 0..2 {
        dispatch
            .enqueue_on(S, FRONT, due(0, S), item)
            .expect("room");
    }
    let first = grant(&mut dispatch, S).expect("the first");
    dispatch.settle(S, first.ticket, request(US));
    assert!(grant(&mut dispatch, S).is_none());
    assert!(grant(&mut dispatch, S + 100 * MS).is_some());
}

#[test]
fn no_permit_is_idle_while_anything_may_go() {
    // Nothing is deferred: what has a due time goes at once if permits are free.
    let permits = 4;
    let mut dispatch = dispatch(
        DispatchOptions {
            permits,
            ..options()
        },
        Others {
            permits: 2,
            beside: 0,
            ..Others::default()
        },
    );
    for item in 0..6 {
        dispatch.enqueue(0, BATCH, item).expect("room");
    }
    assert_eq!(all(&mut dispatch, 0).len(), 2, "others have two");
    for item in 0..6 {
        dispatch
            .enqueue_on(0, FRONT, due(0, S), item)
            .expect("room");
    }
    let front = all(&mut dispatch, 0);
    assert_eq!(front.len(), 2, "and the rest is for work with due times");
    assert!(front.iter().all(|grant| grant.principal == FRONT));
}

/// Lanes are made when the first item comes that needs them, also when there is no room for it.
#[test]
fn what_is_queued_goes_on_when_the_first_item_with_a_due_time_finds_no_room() {
    let mut options = options();
    (options.queue_max, options.permits) = (2, 2);
    let mut dispatch = dispatch(options, Others::default());
    for item in [1, 2] {
        dispatch.enqueue(0, FRONT, item).expect("room");
    }
    assert_eq!(dispatch.enqueue_on(0, FRONT, due(0, MS), 3), Err(3));
    let granted: Vec<u64> = all(&mut dispatch, 0).iter().map(|g| g.item).collect();
    assert_eq!(granted, [1, 2]);
}
