//! What cannot be seen from outside: steps of a decision, and the state of the rounds.

use super::*;
use crate::PrincipalId;

fn dispatch() -> Dispatch<u32, 1> {
    let meter = Meter {
        requests: 0,
        bytes: [false],
    };
    Dispatch::new(DispatchOptions::new([1_000_000], meter))
}

/// Heap steps for 10,000 turns of `active` principals out of `configured`.
fn steps(configured: u32, active: u32) -> u64 {
    let mut dispatch = dispatch();
    for id in 0..configured {
        let weight = f64::from(id % 7 + 1);
        dispatch.configure(0, PrincipalId(id), &Allocation::share(weight));
    }
    let stride = configured / active;
    for id in 0..active {
        dispatch
            .enqueue(0, PrincipalId(id * stride), 1)
            .expect("room");
    }
    let before = dispatch.ready.steps();
    for turn in 0..10_000 {
        let now = turn * 10_000;
        let Next::Grant(grant) = dispatch.next(now) else {
            panic!("work")
        };
        dispatch.settle(now, grant.ticket, Cost([10]));
        dispatch.enqueue(now, grant.principal, 1).expect("room");
    }
    dispatch.ready.steps() - before
}

#[test]
fn idle_principals_cost_nothing() {
    let (few, many) = (steps(100, 100), steps(10_000, 100));
    // Not the same numbers, because principals of other weights are active.
    assert!(many <= few + few / 10, "{many} {few}");
    // And a decision is logarithmic in those that are active.
    let (ten, thousand) = (steps(10, 10), steps(10_000, 1_000));
    assert!(thousand <= ten * 4, "{thousand} {ten}");
}

#[test]
fn a_piece_of_work_is_charged_in_full_whatever_it_costs() {
    let meter = Meter {
        requests: 0,
        bytes: [false],
    };
    let usual = DispatchOptions::new([1_000_000], meter);
    let id = PrincipalId(0);
    // Ten seconds of the resource, of a weight that is due a hundredth of it: 100 million rounds'
    // worth of waiting.
    let (costs_ns, charged_ns) = (Cost([10_000_000]), 10_000_000_000);
    for (charge_max_ns, forgiven_ns) in [(0, charged_ns - 100_000_000), (charged_ns, 0)] {
        let options = DispatchOptions {
            charge_max_ns,
            ..usual
        };
        let mut dispatch: Dispatch<u32, 1> = Dispatch::new(options.clone());
        dispatch.configure(0, id, &Allocation::default());
        dispatch.configure(0, PrincipalId(1), &Allocation::share(99.0));
        dispatch.charge(0, id, costs_ns);
        let seen = dispatch.observe(0, id).expect("configured");
        assert_eq!(seen.forgiven_ns, forgiven_ns);
        assert_eq!(seen.debt_ns, charged_ns - forgiven_ns);

        // What another core tells is bounded all the same, and was charged there.
        let mut report = Vec::new();
        dispatch.report(&mut report);
        let mut other: Dispatch<u32, 1> = Dispatch::new(options);
        other.configure(0, id, &Allocation::default());
        other.absorb(0, &report);
        let seen = other.observe(0, id).expect("configured");
        assert_eq!(seen.debt_ns, 100_000_000);
    }
}

#[test]
fn rounds_pass_in_one_step_when_everybody_is_exhausted() {
    let mut dispatch = dispatch();
    let id = PrincipalId(0);
    dispatch.configure(0, id, &Allocation::default());
    dispatch.enqueue(0, id, 1).expect("room");
    dispatch.enqueue(0, id, 2).expect("room");
    let Next::Grant(grant) = dispatch.next(0) else {
        panic!("work")
    };
    // 50 ms of the resource: 50 rounds of 1 ms.
    dispatch.settle(0, grant.ticket, Cost([50_000]));
    assert_eq!(
        dispatch.observe(0, id).map(|o| o.state),
        Some(State::Exhausted)
    );
    assert_eq!(dispatch.round(), 0);
    let before = dispatch.ready.steps();
    assert!(matches!(dispatch.next(0), Next::Grant(_)));
    assert_eq!(dispatch.round(), 50);
    assert!(dispatch.ready.steps() - before <= 2);
    assert_eq!(
        dispatch.observe(0, id).map(|o| o.state),
        Some(State::Active)
    );
}

#[test]
fn states_follow_algorithm_4() {
    let mut dispatch = dispatch();
    let [a, b] = [PrincipalId(0), PrincipalId(1)];
    dispatch.configure(0, a, &Allocation::default());
    dispatch.configure(0, b, &Allocation::default());
    let state = |d: &Dispatch<u32, 1>, id| d.observe(0, id).map(|o| o.state);
    assert_eq!(state(&dispatch, a), Some(State::Inactive));
    for id in [a, a, a, b] {
        dispatch.enqueue(0, id, 0).expect("room");
    }
    let Next::Grant(grant) = dispatch.next(0) else {
        panic!("work")
    };
    assert_eq!(grant.principal, a);
    dispatch.settle(0, grant.ticket, Cost([2_000]));
    assert_eq!(state(&dispatch, a), Some(State::Exhausted));
    assert_eq!(state(&dispatch, b), Some(State::Active));
    // The round does not end while somebody has quanta left.
    let Next::Grant(grant) = dispatch.next(0) else {
        panic!("work")
    };
    assert_eq!((grant.principal, dispatch.round()), (b, 0));
    dispatch.settle(0, grant.ticket, Cost([10]));
    assert_eq!(state(&dispatch, b), Some(State::Inactive));
}

#[test]
fn unused_quanta_are_kept_for_a_round_and_no_longer() {
    let mut dispatch = dispatch();
    let [late, other] = [PrincipalId(0), PrincipalId(1)];
    dispatch.configure(0, late, &Allocation::default());
    dispatch.configure(0, other, &Allocation::default());
    // The other has 100 ms of the resource to itself, in turns of 10 µs.
    let mut turn = |late_too: bool| {
        for id in [late, other] {
            if (id == other || late_too) && dispatch.observe(0, id).is_some_and(|o| o.queued == 0) {
                dispatch.enqueue(0, id, 0).expect("room");
            }
        }
        let Next::Grant(grant) = dispatch.next(0) else {
            panic!("work")
        };
        let id = grant.principal;
        dispatch.settle(0, grant.ticket, Cost([10]));
        id
    };
    for _ in 0..10_000 {
        assert_eq!(turn(false), other);
    }
    // A round is 1 ms: the late one may catch up by 100 turns, not by the 10,000 it did not ask
    // for.
    let ahead = (0..1000).take_while(|_| turn(true) == late).count();
    assert!((98..=102).contains(&ahead), "{ahead}");
}

#[test]
fn a_principal_is_small() {
    // With the request stage's four resources; docs of `PrincipalId::END` and the bound of 64 KiB
    // per idle tenant rely on it.
    let size = size_of::<Slot<u64, 4>>();
    assert!(size <= 400, "{size}");
}

/// One that always has work and one that seldom has, before two permits and this many extra ones.
fn greedy_and_modest(extra_permits: u32) -> (Dispatch<u32, 1>, PrincipalId, PrincipalId) {
    let meter = Meter {
        requests: 0,
        bytes: [false],
    };
    let options = DispatchOptions {
        permits: 2,
        extra_permits,
        ..DispatchOptions::new([1_000_000], meter)
    };
    let (mut dispatch, greedy, modest) = (Dispatch::new(options), PrincipalId(0), PrincipalId(1));
    for id in [greedy, modest] {
        dispatch.configure(0, id, &Allocation::share(1.0));
    }
    // Some turns each, so that what a turn costs is known.
    for turn in 0..100 {
        for (id, every) in [(greedy, 1), (modest, 10)] {
            if turn % every == 0 {
                dispatch.enqueue(turn * 1_000, id, 1).expect("room");
            }
        }
        while let Next::Grant(grant) = dispatch.next(turn * 1_000) {
            dispatch.settle(turn * 1_000, grant.ticket, Cost([100]));
        }
    }
    for _ in 0..10 {
        dispatch.enqueue(100_000, greedy, 1).expect("room");
    }
    (dispatch, greedy, modest)
}

fn granted(dispatch: &mut Dispatch<u32, 1>) -> Vec<Grant<u32, 1>> {
    granted_at(dispatch, 100_000)
}

fn granted_at(dispatch: &mut Dispatch<u32, 1>, now: Nanos) -> Vec<Grant<u32, 1>> {
    let grants = std::iter::from_fn(|| match dispatch.next(now) {
        Next::Grant(grant) => Some(grant),
        _ => None,
    });
    grants.collect()
}

#[test]
fn who_is_in_credit_does_not_wait_for_what_others_have_outstanding() {
    for extra_permits in [0, 3] {
        let (mut dispatch, greedy, modest) = greedy_and_modest(extra_permits);
        let of_greedy = granted(&mut dispatch);
        assert_eq!(
            of_greedy.len(),
            2,
            "extra permits are not for who has had its share"
        );
        for _ in 0..5 {
            dispatch.enqueue(100_000, modest, 1).expect("room");
        }
        let extra = granted(&mut dispatch);
        assert_eq!(extra.len(), extra_permits as usize);
        assert!(extra
            .iter()
            .all(|grant| grant.principal == modest && grant.in_credit));
        assert_eq!(dispatch.in_flight(), 2 + extra_permits);
        // A usual permit comes free: it is still the first to have it. Then extra ones do.
        let [one, _other] = <[_; 2]>::try_from(of_greedy).expect("two");
        assert_eq!(one.principal, greedy);
        dispatch.settle(100_000, one.ticket, Cost([100]));
        assert_eq!(granted(&mut dispatch).len(), 1);
        for grant in extra {
            dispatch.settle(100_000, grant.ticket, Cost([100]));
        }
        assert_eq!(dispatch.in_flight(), 2);
    }
}

#[test]
fn who_has_had_more_than_its_share_gets_no_extra_permit() {
    let (mut dispatch, _, modest) = greedy_and_modest(3);
    assert_eq!(granted(&mut dispatch).len(), 2);
    dispatch.charge(100_000, modest, Cost([1_000_000]));
    dispatch.enqueue(100_000, modest, 1).expect("room");
    assert!(granted(&mut dispatch).is_empty());
}

#[test]
fn a_turn_may_take_the_least_of_one_where_a_quantum_is_less() {
    let meter = Meter {
        requests: 0,
        bytes: [false, true],
    };
    let turn_least = Cost([32, 0]);
    let mut dispatch = Dispatch::new(DispatchOptions {
        turn_least,
        ..DispatchOptions::new([100_000, 1_000_000_000], meter)
    });
    dispatch.configure(0, PrincipalId(0), &Allocation::share(1.0));
    dispatch.enqueue(0, PrincipalId(0), ()).expect("room");
    let Next::Grant(grant) = dispatch.next(0) else {
        panic!("work")
    };
    assert_eq!(grant.budget, Cost([32, 100_000]));
}

#[test]
fn permits_are_averaged_over_the_time_for_which_they_were_held() {
    let (id, mut dispatch) = (PrincipalId(0), dispatch());
    dispatch.set_permits(2);
    dispatch.configure(0, id, &Allocation::share(1.0));
    for item in 0..3 {
        dispatch.enqueue(0, id, item).expect("room");
    }
    let mut grants = granted_at(&mut dispatch, 100);
    assert_eq!(grants.len(), 2);
    let busy = |dispatch: &Dispatch<u32, 1>, now| dispatch.observe(now, id).expect("known").busy_ns;
    assert_eq!(busy(&dispatch, 150), 2 * 50, "while they are held");
    dispatch.settle(200, grants.remove(0).ticket, Cost([10]));
    dispatch.settle(250, grants.remove(0).ticket, Cost([10]));
    assert_eq!(busy(&dispatch, 1_000), 100 + 150, "and afterwards");
    // Between two turns none is held, whenever one looks: the last lasted from 1000 to 1400.
    let last = granted_at(&mut dispatch, 1_000).remove(0);
    dispatch.remove(1_200, id);
    dispatch.configure(1_300, id, &Allocation::share(1.0));
    dispatch.settle(1_400, last.ticket, Cost([10]));
    assert_eq!(
        busy(&dispatch, 2_000),
        200,
        "what a removed one still holds counts from then on"
    );
}
