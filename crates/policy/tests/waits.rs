//! Who is told to ask again at a time need not ask before: threads that wait sleep until then.

mod common;

use common::{options, request, MS, R, S, US};
use policy::dispatch::{
    Allocation, Dispatch, DispatchOptions, Grant, LaneAllocation, LaneId, Limit, Next, Others,
    Terms,
};
use policy::{Nanos, PrincipalId};
use proptest::prelude::*;

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// Work comes.
    Comes {
        principal: u32,
        lane: u8,
        due_in_us: Option<u64>,
        stream: u32,
    },
    /// The piece of work that has been out longest ends.
    Ends,
    /// A stream has no more pieces.
    Over { principal: u32, stream: u32 },
}

fn happens() -> impl Strategy<Value = Happens> {
    let due = prop::option::of(0u64..5_000);
    prop_oneof![
        (0u32..3, 0u8..2, due, 0u32..3).prop_map(|(principal, lane, due_in_us, stream)| {
            Happens::Comes {
                principal,
                lane,
                due_in_us,
                stream,
            }
        }),
        Just(Happens::Ends),
        (0u32..3, 1u32..3).prop_map(|(principal, stream)| Happens::Over { principal, stream }),
    ]
}

fn others() -> impl Strategy<Value = Others> {
    let numbers = (1u32..4, 0u32..3, 0u32..3, 0.01f64..0.3);
    let times = (
        prop_oneof![Just(0), 1u64..3_000],
        prop_oneof![Just(0), 1u64..9_000],
    );
    (numbers, any::<[bool; 2]>(), times).prop_map(
        |((permits, beside, kept, floor), [first, between], (linger_us, run_us))| Others {
            permits,
            beside,
            kept,
            floor,
            first,
            between,
            linger_ns: linger_us * US,
            run_ns: run_us * US,
        },
    )
}

fn allocation() -> impl Strategy<Value = Allocation> {
    let rate = || prop::option::of(100.0f64..5_000.0);
    (0u32..2, rate(), rate(), rate()).prop_map(
        |(reserved_permits, reservation, limit, contract)| Allocation {
            reserved_permits,
            reservation_per_s: reservation,
            contract_per_s: contract,
            limit: Limit {
                requests_per_s: limit,
                burst_ns: MS,
                max_wait_ns: 20 * MS,
                ..Limit::default()
            },
            ..Allocation::share(1.0)
        },
    )
}

/// Lets everything go that may; says when to ask again, [`Nanos::MAX`] for nothing but events.
fn all(dispatch: &mut Dispatch<(), R>, now: Nanos, out: &mut Vec<Grant<(), R>>) -> Nanos {
    loop {
        match dispatch.next(now) {
            Next::Grant(grant) => out.push(grant),
            Next::At(at) => return at,
            Next::Idle => return Nanos::MAX,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn nothing_can_go_before_the_time_that_was_told(
        permits in 1u32..4,
        others in others(),
        allocations in prop::collection::vec(allocation(), 3),
        contracts in prop::collection::vec(prop::option::of(100.0f64..3_000.0), 2),
        steps in prop::collection::vec((happens(), 0u64..3_000, 0.0f64..1.0), 1..120),
    ) {
        let mut dispatch = Dispatch::new(DispatchOptions { permits, ..options() });
        for (id, allocation) in (0..).zip(&allocations) {
            dispatch.configure(0, PrincipalId(id), allocation);
        }
        for (lane, contract_per_s) in (0..).zip(contracts) {
            let allocation = LaneAllocation { contract_per_s, ..LaneAllocation::default() };
            dispatch.configure_lane(0, PrincipalId(0), LaneId(lane), &allocation);
        }
        dispatch.set_others(0, others);
        let (mut now, mut out) = (S, Vec::new());
        for (happens, later_us, part) in steps {
            match happens {
                Happens::Comes { principal, lane, due_in_us, stream } => {
                    let terms = Terms {
                        lane: LaneId(lane),
                        due_at: due_in_us.map(|us| now + us * US),
                        stream,
                        level: stream as u8,
                    };
                    let _ = dispatch.enqueue_on(now, PrincipalId(principal), terms, ());
                }
                Happens::Ends if out.is_empty() => {}
                Happens::Ends => {
                    let grant: Grant<(), R> = out.remove(0);
                    dispatch.settle(now, grant.ticket, request(100 * US));
                }
                Happens::Over { principal, stream } => {
                    dispatch.end_stream(PrincipalId(principal), stream);
                }
            }
            let mut ask_at = all(&mut dispatch, now, &mut out);
            let next = now + later_us * US;
            while ask_at <= next {
                prop_assert!(ask_at > now, "time goes on");
                // A curious one, and then the one that was told.
                let early = now + ((ask_at - 1 - now) as f64 * part) as Nanos;
                let before = out.len();
                all(&mut dispatch, early, &mut out);
                prop_assert_eq!(out.len(), before, "at {} of {}..{}", early, now, ask_at);
                now = ask_at;
                ask_at = all(&mut dispatch, now, &mut out);
            }
            let before = out.len();
            all(&mut dispatch, next, &mut out);
            prop_assert_eq!(out.len(), before, "at {} of {}..{}", next, now, ask_at);
            now = next;
        }
        // Nothing is out, so it is time alone that all the rest waits for.
        for grant in out.drain(..) {
            dispatch.settle(now, grant.ticket, request(100 * US));
        }
        while dispatch.queued() > 0 {
            let ask_at = all(&mut dispatch, now, &mut out);
            prop_assert!(!out.is_empty() || ask_at < Nanos::MAX, "it waits for nothing");
            now = if out.is_empty() { ask_at } else { now + 100 * US };
            for grant in out.drain(..) {
                dispatch.settle(now, grant.ticket, request(100 * US));
            }
        }
    }
}
