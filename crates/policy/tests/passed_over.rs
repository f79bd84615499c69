//! What a tenant has beside its due work, while that uses more than the tenant's share.

mod common;

use common::{options, out, R, S, US};
use policy::dispatch::{Allocation, Dispatch, LaneAllocation, LaneId, Next, Others, Terms};
use policy::{Nanos, PrincipalId};
use proptest::prelude::*;

const FRONT: PrincipalId = PrincipalId(0);
const BATCH: PrincipalId = PrincipalId(1);
/// The lane of what is due.
const PAGE: LaneId = LaneId(1);
/// An item that is looked for among the others, which are 0.
const MARKED: u64 = 1;
/// Items that a principal always has waiting.
const BACKLOG: u64 = 4;

/// What a principal always has waiting.
#[derive(Clone, Copy)]
struct Work {
    due: bool,
    turn_us: u64,
}

/// Whose turn it was, and with what.
struct Turn {
    principal: PrincipalId,
    item: u64,
}

fn dispatch(others: Others) -> Dispatch<u64, R> {
    let mut dispatch = Dispatch::new(options());
    for id in [FRONT, BATCH] {
        dispatch.configure(0, id, &Allocation::share(1.0));
    }
    dispatch.configure_lane(0, FRONT, PAGE, &LaneAllocation::default());
    dispatch.set_others(0, others);
    dispatch
}

/// One turn, from its beginning to its end, of [`FRONT`] or [`BATCH`], which have this work.
fn turn(dispatch: &mut Dispatch<u64, R>, now: &mut Nanos, work: [Work; 2]) -> Turn {
    for (id, work) in [FRONT, BATCH].into_iter().zip(work) {
        let due = Terms {
            lane: PAGE,
            due_at: Some(*now),
            ..Terms::default()
        };
        let terms = if work.due { due } else { Terms::default() };
        while dispatch.queued_of(id) < BACKLOG {
            dispatch.enqueue_on(*now, id, terms, 0).expect("room");
        }
    }
    let Next::Grant(grant) = dispatch.next(*now) else {
        panic!("there is work, and a permit");
    };
    let (item, principal) = (grant.item, grant.principal);
    let ns = work[principal.index()].turn_us * US;
    *now += ns;
    dispatch.settle(*now, grant.ticket, out(ns));
    Turn { principal, item }
}

/// A scan of the tenant's own that is passed over has a piece at a time, not all that follow it.
#[test]
fn a_stream_that_is_passed_over_does_not_go_on() {
    let others = Others {
        linger_ns: 10_000_000,
        run_ns: 400_000_000,
        ..Others::default()
    };
    let mut dispatch = dispatch(others);
    let scan = Terms {
        stream: 7,
        ..Terms::default()
    };
    let (mut now, mut due_at, mut waiting, mut pieces, mut last) = (0, 0, 0u32, 0, BATCH);
    while now < 5 * S {
        // Two thirds of the time are for what is due; the others have the gaps between.
        while due_at <= now {
            let due = Terms {
                lane: PAGE,
                due_at: Some(due_at),
                ..Terms::default()
            };
            dispatch.enqueue_on(now, FRONT, due, 0).expect("room");
            due_at += 3_000 * US;
        }
        while now > S && waiting < 2 {
            dispatch.enqueue_on(now, FRONT, scan, MARKED).expect("room");
            waiting += 1;
        }
        if dispatch.queued_of(BATCH) == 0 {
            dispatch.enqueue(now, BATCH, 0).expect("room");
        }
        let Next::Grant(grant) = dispatch.next(now) else {
            panic!("there is work, and a permit");
        };
        let (marked, whose) = (grant.item == MARKED, grant.principal);
        let ns = if grant.ticket.timed() { 2_000 } else { 1_000 } * US;
        now += ns;
        dispatch.settle(now, grant.ticket, out(ns));
        if marked || whose == BATCH {
            assert!(last == BATCH || whose == BATCH, "two in a row");
            last = whose;
        }
        (waiting, pieces) = (waiting - u32::from(marked), pieces + u32::from(marked));
    }
    assert!((30..41).contains(&pieces), "{pieces}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// What is not due has one of the next turns that others have after 100 ms, in whichever lane,
    /// beside another tenant that always has work and has every second turn.
    #[test]
    fn what_is_not_due_is_not_passed_over_for_long(
        floor in 0.05f64..0.5,
        beside in 0u32..2,
        first: bool,
        lane in 0u8..2,
        front_us in 100u64..5_000,
        batch_us in 100u64..5_000,
    ) {
        let others = Others { permits: 1, beside, floor, first, ..Others::default() };
        let mut dispatch = dispatch(others);
        let front = Work { due: true, turn_us: front_us };
        let batch = Work { due: false, turn_us: batch_us };
        let (mut now, mut came, mut waited, mut last) = (0, None, 0, BATCH);
        while now < 8 * S {
            if came.is_none() && now > S {
                let terms = Terms { lane: LaneId(lane), ..Terms::default() };
                dispatch.enqueue_on(now, FRONT, terms, MARKED).expect("room");
                came = Some(now);
            }
            let turn = turn(&mut dispatch, &mut now, [front, batch]);
            if turn.item == MARKED {
                waited = waited.max(now - came.take().expect("it came"));
            }
            if turn.item == MARKED || turn.principal == BATCH {
                prop_assert!(last == BATCH || turn.principal == BATCH, "two in a row");
                last = turn.principal;
            }
        }
        waited = waited.max(came.map_or(0, |came| now - came));
        // Then it is the next of the others, whose turns may be as far apart as the floor says.
        let most = S / 10 + (4.0 * (front_us + batch_us) as f64 * 1e3 / floor) as Nanos;
        prop_assert!(waited > 0 && waited <= most, "{waited} {most}");
    }

    /// Due work may use nearly all for as long as it likes: its tenant has its share again ten
    /// seconds after it ends.
    #[test]
    fn due_work_is_not_held_against_its_tenant_for_ever(
        turn_us in 200u64..2_000,
        due_s in 20u64..60,
    ) {
        let mut dispatch = dispatch(Others::default());
        let [due, other] = [true, false].map(|due| Work { due, turn_us });
        let mut now = 0;
        while now < due_s * S {
            turn(&mut dispatch, &mut now, [due, other]);
        }
        let (from, until) = (now + 11 * S, now + 13 * S);
        let (mut front, mut all) = (0, 0);
        while now < until {
            let turn = turn(&mut dispatch, &mut now, [other, other]);
            if now > from {
                (front, all) = (front + u32::from(turn.principal == FRONT), all + 1);
            }
        }
        let part = f64::from(front) / f64::from(all);
        prop_assert!((0.45..0.55).contains(&part), "{part}");
    }
}
