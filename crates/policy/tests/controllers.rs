//! Controllers as pure steps: published algorithms line by line, and what must hold of all.

use policy::dispatch::{LaneId, Others};
use policy::slo::control::{
    Auto, AutoOptions, Cake, CakeOptions, Controller, Fixed, Frosting, FrostingOptions, Given,
    Held, Policy, PromiseSeen, Seen, ShareGiven, DEVICE, HANDLERS,
};
use policy::slo::{Counts, Latency, Objective, Tail};
use policy::words::Words as _;
use policy::PrincipalId;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn held(tenant: u32, at_most_ms: Option<u64>, rate: Option<f64>, importance: u32) -> Held {
    Held {
        principal: PrincipalId(tenant),
        lane: LaneId::REST,
        objective: Objective {
            latency: at_most_ms.map(|ms| Latency {
                percentile: 99.0,
                at_most_ns: ms * MS,
            }),
            throughput_per_s: rate,
            contract_per_s: None,
            importance,
            window_ns: 10 * S,
        },
    }
}

/// This many requests, this many of them late, and a percentile of this value.
fn latency(requests: u64, late: u64, ms: u64) -> PromiseSeen {
    let mut latencies = Tail::default();
    latencies.record_many(ms * MS, requests);
    PromiseSeen {
        counts: Counts {
            requests,
            late,
            ..Counts::default()
        },
        latencies,
        ..PromiseSeen::default()
    }
}

fn seen(elapsed_ns: u64, promises: Vec<PromiseSeen>) -> Seen {
    Seen {
        elapsed_ns,
        promises,
        ..Seen::default()
    }
}

/// One step of ten seconds: the share of the device of tenant 0, its reserved permits there and of
/// the handlers.
fn cake_step(cake: &mut Controller, wanted_ms: u64, ms: u64, occupied: [f64; 2]) -> [f64; 3] {
    let promise = PromiseSeen {
        occupied,
        ..latency(1_000, 0, ms)
    };
    let all = [
        held(0, Some(wanted_ms), None, 80),
        held(1, None, Some(1e6), 1),
    ];
    let given = cake.step(&all, &seen(10 * S, vec![promise, PromiseSeen::default()]));
    let [own] = <[_; 1]>::try_from(given.shares).expect("one");
    assert_eq!(own.principal, PrincipalId(0));
    assert!((own.share[DEVICE] + given.rest[DEVICE] - 1.0).abs() < 1e-9);
    assert_eq!(
        own.share[HANDLERS], own.share[DEVICE],
        "algorithm 2, line 4"
    );
    [
        own.share[DEVICE],
        f64::from(own.reserved[DEVICE]),
        f64::from(own.reserved[HANDLERS]),
    ]
}

fn cake() -> Controller {
    let drive_permits = 6;
    Controller::Cake(Box::new(Cake::new(CakeOptions {
        drive_permits,
        ..CakeOptions::default()
    })))
}

#[test]
fn cake_moves_a_share_by_a_tenth_of_itself_towards_the_target() {
    let mut cake = cake();
    let same = [0.5, 0.5];
    // Line 9 and 19: 200 ms of 100 wanted; the target is all of it, the step 10 % of .5.
    assert_eq!(cake_step(&mut cake, 100, 200, same)[0], 0.55);
    // Between 1.0 and 1.2 nothing moves.
    assert_eq!(cake_step(&mut cake, 100, 90, same)[0], 0.55);
    // Line 15: .55 / 1.25 is more than 10 % away.
    let [share, ..] = cake_step(&mut cake, 100, 80, same);
    assert!((share - 0.495).abs() < 1e-9, "{share}");
    // A small miss moves to the target and no further.
    let [share, ..] = cake_step(&mut cake, 100, 102, same);
    let measured_ns = latency(1, 0, 102).latencies.quantile(0.99).expect("one");
    let target = 0.495 * measured_ns as f64 / 1e8;
    assert!((share - target).abs() < 1e-9, "{share}");
}

#[test]
fn cake_reserves_permits_when_shares_do_not_suffice_and_gives_them_back() {
    let mut cake = cake();
    let mut step = |ms| cake_step(&mut cake, 100, ms, [0.5, 0.5]);
    let mut last = [0.5, 0.0, 0.0];
    while last[1] == 0.0 {
        let next = step(1_000);
        if next[1] == 0.0 {
            assert!(next[0] > last[0]);
        } else {
            // Lines 6 and 7: one of six reserved, a sixth of the share released.
            assert!(last[0] > 0.99 && (next[0] - (last[0] - 1.0 / 6.0)).abs() < 1e-9);
        }
        last = next;
    }
    for _ in 0..100 {
        last = step(1_000);
    }
    assert_eq!(last[1], 5.0, "the last one is never reserved");
    for _ in 0..400 {
        last = step(10);
    }
    assert_eq!(last[1], 0.0, "lines 12 and 13");
}

#[test]
fn cake_balances_reserved_handlers_by_occupancy() {
    let mut cake = cake();
    // Algorithm 2, lines 6 to 8: it waits for handlers rather than for the device.
    assert_eq!(cake_step(&mut cake, 100, 90, [0.6, 0.5])[2], 1.0);
    assert_eq!(cake_step(&mut cake, 100, 90, [0.6, 0.5])[2], 2.0);
    // Line 9: not before the device is waited for half as often again.
    assert_eq!(cake_step(&mut cake, 100, 90, [0.4, 0.5])[2], 2.0);
    assert_eq!(cake_step(&mut cake, 100, 90, [0.3, 0.5])[2], 1.0);
    assert_eq!(cake_step(&mut cake, 100, 90, [0.3, 0.5])[2], 0.0);
}

#[test]
fn cake_gathers_until_its_interval_is_over() {
    let mut cake = cake();
    let all = [held(0, Some(100), None, 80)];
    let mut shares = Vec::new();
    for _ in 0..20 {
        let given = cake.step(&all, &seen(S, vec![latency(100, 100, 200)]));
        shares.push(given.shares[0].share[DEVICE]);
    }
    assert_eq!(shares[..9], [0.5; 9]);
    assert_eq!(shares[9..19], [0.55; 10]);
}

#[test]
fn frosting_gives_the_share_to_whom_matters_more_and_no_faster_than_its_step() {
    let mut frosting = Controller::Frosting(Box::new(Frosting::new(FrostingOptions::default())));
    let all = [held(0, Some(100), None, 80), held(1, None, Some(40.0), 1)];
    let mut last = 0.5;
    for step in 0..9 {
        // Latency falls as its share grows, and the batch client's rate with it.
        let ms = (180.0 - 100.0 * last) as u64;
        let rate = PromiseSeen {
            counts: Counts {
                requests: (400.0 * (1.0 - last)) as u64,
                ..Counts::default()
            },
            ..PromiseSeen::default()
        };
        let given = frosting.step(&all, &seen(10 * S, vec![latency(1_000, 0, ms), rate]));
        let share = given.shares[0].share[HANDLERS];
        let sum: f64 = given.shares.iter().map(|given| given.share[HANDLERS]).sum();
        assert!(
            (sum - 1.0).abs() < 1e-9 && (share - last).abs() <= 0.05 + 1e-9,
            "{step} {share}"
        );
        last = share;
    }
    assert!((0.75..0.9).contains(&last), "{last}");
}

/// What the step says, with requests that need so long after they are due.
fn auto_step(auto: &mut Controller, all: &[Held], requests: (u64, u64), ms: u64) -> Given {
    auto_beside(auto, all, requests, ms, 1e8)
}

/// The same beside others that get so many bytes a second.
fn auto_beside(
    auto: &mut Controller,
    all: &[Held],
    (requests, late): (u64, u64),
    ms: u64,
    others_per_s: f64,
) -> Given {
    let mut promise = latency(requests, late, ms);
    let mut tail = Tail::default();
    (0..requests).for_each(|_| tail.record(ms * MS));
    promise.after = [tail.clone(), tail];
    let mut seen = seen(S, vec![promise; all.len()]);
    (seen.others_occupied, seen.others_bytes_per_s) = (1.0, others_per_s);
    seen.others_piece_ns = Some(40 * MS);
    auto.step(all, &seen)
}

fn auto() -> Controller {
    Controller::Auto(Box::new(Auto::new(AutoOptions::default())))
}

#[test]
fn auto_has_a_margin_before_anything_is_learnt_and_then_what_it_measured() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let margin = |given: &Given| given.promises[0].margin_ns.expect("due times")[DEVICE];
    let first = auto.step(&all, &seen(0, vec![PromiseSeen::default()]));
    assert_eq!(margin(&first), 100 * MS);
    let Others {
        permits,
        beside,
        first: yields,
        ..
    } = first.others[DEVICE];
    assert_eq!((permits, beside, yields), (1, 0, true));
    // Up at once, to what is seen, an eighth too much at most.
    let up = margin(&auto_step(&mut auto, &all, (200, 0), 120));
    assert!((120 * MS..135 * MS).contains(&up), "{up}");
    // Down when that is forgotten and something was learnt of it, slowly.
    let mut settled = up;
    for _ in 0..300 {
        let next = margin(&auto_step(&mut auto, &all, (200, 0), 20));
        assert!(next > settled * 8 / 10, "{next} {settled}");
        settled = next;
    }
    assert!((20 * MS..26 * MS).contains(&settled), "{settled}");
    // And never so much that what is promised goes before others from the start.
    let capped = margin(&auto_step(&mut auto, &all, (200, 0), 190));
    assert_eq!(capped, 170 * MS);
}

#[test]
fn auto_lets_more_out_while_requests_are_in_time_and_less_as_soon_as_they_are_late() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let first = auto_step(&mut auto, &all, (200, 0), 20);
    assert_eq!(
        (first.others[DEVICE].permits, first.chunk_bytes),
        (1, Some(2 << 20))
    );
    let mut most = first;
    for _ in 0..100 {
        most = auto_step(&mut auto, &all, (200, 0), 20);
    }
    assert_eq!(
        (most.others[DEVICE].permits, most.chunk_bytes),
        (3, Some(4 << 20))
    );
    let permits = |given: &Given| given.others[DEVICE].permits;
    let mut late = || auto_step(&mut auto, &all, (200, 50), 20);
    assert_eq!(permits(&late()), 2, "at once");
    assert_eq!(
        permits(&late()),
        2,
        "what was late before the change says nothing of it"
    );
    assert_eq!(permits(&late()), 1);
    let chunks: Vec<_> = (0..8).map(|_| late().chunk_bytes).collect();
    assert!(chunks.last() < chunks.first(), "{chunks:?}");
}

#[test]
fn auto_takes_one_step_for_a_moment_in_which_requests_were_late_and_none_if_no_stage_did_it() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    assert_eq!(chunk(auto_step(&mut auto, &all, (100, 0), 20)), 2 << 20);
    let opening = PromiseSeen {
        held: 20,
        ..latency(100, 20, 20)
    };
    let opened = auto.step(&all, &seen(S, vec![opening]));
    assert_eq!(chunk(opened), 2 << 20, "no stage's doing");
    let mut step = |late| chunk(auto_step(&mut auto, &all, (100, late), 20));
    let chunks: Vec<_> = [20].into_iter().chain([0; 30]).map(&mut step).collect();
    assert_eq!(chunks.iter().min(), Some(&(1 << 20)), "{chunks:?}");
    assert!(chunks.last() >= Some(&(2 << 20)), "forgotten: {chunks:?}");
}

#[test]
fn auto_keeps_handlers_free_when_others_hold_them_all() {
    let all = [held(0, Some(5), None, 80)];
    let options = AutoOptions {
        seeks: false,
        ..AutoOptions::default()
    };
    let mut auto = Controller::Auto(Box::new(Auto::new(options)));
    let mut step = |late, unhandled| {
        let promise = PromiseSeen {
            unhandled,
            ..latency(1_000, late, 1)
        };
        let mut seen = seen(S, vec![promise]);
        // A quarter of a handler is at work for them.
        (seen.handled, seen.handled_ns) = (1_000, 250 * MS);
        let given = auto.step(&all, &seen);
        let [handlers, device] = [HANDLERS, DEVICE].map(|stage| given.others[stage]);
        (handlers.kept, device.permits, given.why)
    };
    let (first, out, _) = step(0, 0);
    // One, one to begin with, and a quarter and three times its root.
    assert_eq!(first, 4);
    let (more, same, why) = step(200, 200);
    assert_eq!(
        (more, same),
        (5, out),
        "slower scans would hold them longer"
    );
    assert!(
        why.iter().any(|why| why.contains("5 are kept free")),
        "{why:?}"
    );
    // What else is late asks for less at the device, and no more than half of all are kept.
    let (_, less, _) = (0..4).map(|_| step(200, 0)).last().expect("steps");
    assert!(less < out, "{less} {out}");
    let (most, ..) = (0..40).map(|_| step(200, 200)).last().expect("steps");
    assert_eq!(most, 8);
}

#[test]
fn auto_moves_what_is_out_by_parts_of_it_where_nothing_seeks() {
    let all = [held(0, Some(500), None, 80)];
    let options = AutoOptions {
        seeks: false,
        ..AutoOptions::default()
    };
    let mut auto = Controller::Auto(Box::new(Auto::new(options)));
    let mut out = |late| {
        let given = auto_step(&mut auto, &all, (1_000, late), 1);
        given.others[DEVICE].permits
    };
    let fewest = (0..12).map(|_| out(500)).last().expect("steps");
    assert!(fewest < 8, "{fewest}");
    let intervals = (0..2_000).position(|_| out(0) == 32);
    // One by one it would take a step of 17 intervals for each permit.
    assert!(intervals.is_some_and(|after| after < 200), "{intervals:?}");
}

fn chunk(given: Given) -> u64 {
    given.chunk_bytes.expect("pieces")
}

#[test]
fn auto_lets_no_more_out_while_nobody_asks() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let first = chunk(auto_step(&mut auto, &all, (200, 0), 20));
    let idle = (0..100).map(|_| chunk(auto_step(&mut auto, &all, (0, 0), 20)));
    assert_eq!(idle.max(), Some(first));
    let asked = (0..20).map(|_| chunk(auto_step(&mut auto, &all, (200, 0), 20)));
    assert!(asked.max() > Some(first));
}

#[test]
fn auto_takes_back_what_others_lost_by() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let mut out = Vec::new();
    let mut permits = 1;
    for _ in 0..100 {
        // Two pieces at a time are a seek for each.
        let per_s = if permits > 1 { 5e7 } else { 1e8 };
        permits = auto_beside(&mut auto, &all, (200, 0), 20, per_s).others[DEVICE].permits;
        out.push(permits);
    }
    assert_eq!(out.iter().max(), Some(&2), "tried: {out:?}");
    assert_eq!(out.last(), Some(&1), "taken back: {out:?}");
    assert!(
        out.iter().filter(|out| **out == 2).count() <= 12,
        "and not tried again: {out:?}"
    );
}

#[test]
fn auto_never_lets_so_much_out_that_a_request_may_wait_for_it_too_long() {
    let (mut auto, all) = (auto(), [held(0, Some(50), None, 80)]);
    let mut given = Given::default();
    for _ in 0..200 {
        given = auto_step(&mut auto, &all, (200, 0), 20);
    }
    // A piece twice as large would take 40 ms more.
    assert_eq!(
        (given.others[DEVICE].permits, given.chunk_bytes),
        (1, Some(512 << 10))
    );
}

#[test]
fn promises_give_way_by_importance_when_not_all_can_be_kept() {
    let all = [held(0, Some(100), None, 80), held(1, Some(100), None, 20)];
    let mut auto = auto();
    let mut given = Given::default();
    for _ in 0..60 {
        given = auto_step(&mut auto, &all, (200, 100), 200);
    }
    let parts: Vec<f64> = given.promises.iter().map(|given| given.part).collect();
    let badness = |at: usize, importance: f64| importance * (1.0 - parts[at]);
    assert!(parts[0] > parts[1], "{parts:?}");
    assert!(
        parts[1] == 0.0 || (badness(0, 80.0) - badness(1, 20.0)).abs() < 1e-6,
        "{parts:?}"
    );
    for _ in 0..200 {
        given = auto_step(&mut auto, &all, (200, 0), 20);
    }
    assert!(
        given.promises.iter().all(|given| given.part == 1.0),
        "{given:?}"
    );
}

fn any_seen() -> impl Strategy<Value = (u64, Vec<(u64, u64, u64, f64)>)> {
    let promise = (0u64..2_000, 0u64..2_000, 0u64..100_000, 0.0f64..1.0);
    let elapsed = prop_oneof![Just(0), Just(u64::MAX), Just(3600 * S), 1u64..20 * S];
    (elapsed, prop::collection::vec(promise, 0..4))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is said to have been seen, at whatever intervals, with promises that come and go:
    /// what is given is in range, and there is something given to every promise.
    #[test]
    fn nothing_that_is_seen_makes_a_controller_fail(
        steps in prop::collection::vec((any_seen(), 1usize..5), 1..60),
        policy in 0..Policy::ALL.len(),
    ) {
        let mut controller = Controller::new(Policy::ALL[policy].0);
        for ((elapsed_ns, all), count) in steps {
            let held: Vec<Held> = (0..count as u32)
                .map(|tenant| match tenant % 3 {
                    0 => held(tenant, Some(100), None, 80),
                    1 => held(tenant, None, Some(40.0), 1),
                    _ => held(tenant, Some(20), Some(10.0), 30),
                })
                .collect();
            let promise = |(requests, late, ms, part): (u64, u64, u64, f64)| PromiseSeen {
                occupied: [part, 1.0 - part],
                device: part,
                ..latency(requests, late.min(requests), ms)
            };
            let seen = Seen {
                elapsed_ns,
                promises: all.into_iter().map(promise).collect(),
                handled: elapsed_ns % 3,
                handled_ns: elapsed_ns % 20 * MS,
                others_bytes_per_s: 1e8,
                others_occupied: 1.0,
                others_piece_ns: Some(10 * MS),
            };
            let given = controller.step(&held, &seen);
            prop_assert_eq!(given.promises.len(), held.len());
            for (given, held) in given.promises.iter().zip(&held) {
                prop_assert!((0.0..=1.0).contains(&given.part) && (0.0..=1.0).contains(&given.device));
                let at_most_ns = held.objective.latency.map_or(0, |latency| latency.at_most_ns);
                let margins = given.margin_ns.unwrap_or_default();
                let aimed_ns = at_most_ns as f64 / given.part.max(f64::MIN_POSITIVE);
                prop_assert!(margins.iter().all(|ns| *ns as f64 <= aimed_ns));
            }
            if !given.shares.is_empty() {
                for stage in [HANDLERS, DEVICE] {
                    let all = given.shares.iter().map(|given| given.share[stage]);
                    prop_assert!(all.clone().all(|share| (0.0..=1.0).contains(&share)));
                    let sum: f64 = all.sum();
                    let rest = match controller.policy() {
                        Policy::Cake => given.rest[stage],
                        _ => 0.0,
                    };
                    prop_assert!((sum + rest - 1.0).abs() < 1e-6, "{sum}");
                }
            }
            prop_assert!(given.permits.iter().flatten().all(|permits| *permits > 0));
            prop_assert!(given.others.iter().all(|others| others.permits > 0 && others.floor > 0.0));
        }
    }

    /// The words choose what they say.
    #[test]
    fn words_choose(policy in 0..Policy::ALL.len()) {
        let (policy, (word, _)) = Policy::ALL[policy];
        prop_assert_eq!(Policy::from_word(word), Some(policy));
        prop_assert_eq!(Controller::new(policy).policy(), policy);
    }
}

#[test]
fn what_is_fixed_stays() {
    let given = Given {
        permits: [Some(3), None],
        ..Given::default()
    };
    let mut controller = Controller::Static(Fixed { given });
    let given = controller.step(&[held(0, Some(10), None, 1)], &Seen::default());
    assert_eq!((given.permits, given.promises.len()), ([Some(3), None], 1));
    assert_eq!(given.promises[0].margin_ns, None);
}

#[test]
fn who_is_not_listed_divides_the_rest_by_weight() {
    let one = |principal, share, reserved| ShareGiven {
        principal: PrincipalId(principal),
        share: [share; 2],
        reserved: [reserved, 0],
    };
    let mut given = Given::default();
    let set = one(2, 3.0, 1);
    assert_eq!(given.share(&set, 4.0), None, "as it was set");
    given.shares = vec![one(1, 0.6, 5)];
    given.rest = [0.4; 2];
    assert_eq!(given.share(&one(1, 7.0, 0), 4.0), Some(one(1, 0.6, 5)));
    let [front, back] = given.share(&set, 4.0).expect("a part of the rest").share;
    assert!((front - 0.3).abs() < 1e-9 && (back - 0.3).abs() < 1e-9);
    assert_eq!(given.share(&set, 4.0).map(|own| own.reserved), Some([1, 0]));
    assert!(given.lists(PrincipalId(1)) && !given.lists(PrincipalId(2)));
}
