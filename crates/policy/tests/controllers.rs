//! Controllers as pure steps: published algorithms line by line, and what must hold of all.

mod common;

use common::promised::{held, latency, seen};
use common::{MS, S};
use policy::slo::control::{
    Cake, CakeOptions, Controller, Fixed, Frosting, FrostingOptions, Given, Held, Piece, Policy,
    PromiseSeen, Seen, ShareGiven, DEVICE, HANDLERS,
};
use policy::slo::Counts;
use policy::words::Words as _;
use policy::PrincipalId;
use proptest::prelude::*;

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

/// Every promise is missed differently, and the slopes of 500 clients differ.
#[test]
fn five_hundred_promises_are_no_trouble_to_any_controller() {
    let all: Vec<Held> = (0..500)
        .map(|tenant| match tenant % 2 {
            0 => held(tenant, Some(100), None, 1 + tenant % 100),
            _ => held(tenant, None, Some(40.0), 1 + tenant % 100),
        })
        .collect();
    for (policy, (word, _)) in Policy::ALL {
        let mut controller = Controller::new(*policy);
        let mut shares = Vec::new();
        for step in 0..5u64 {
            let one = |at: u64| latency(1_000, at % 200, 50 + (at * 7 + step * at) % 200);
            let given = controller.step(&all, &seen(10 * S, (0..500).map(one).collect()));
            assert_eq!(given.promises.len(), 500, "{word}");
            let mut parts = given.promises.iter().flat_map(|one| [one.part, one.device]);
            assert!(parts.all(|part| (0.0..=1.0).contains(&part)), "{word}");
            shares = given.shares.iter().map(|one| one.share[HANDLERS]).collect();
            let whole: f64 = shares.iter().sum::<f64>()
                + match policy {
                    Policy::Cake => given.rest[HANDLERS],
                    _ => 0.0,
                };
            assert!(
                shares.is_empty() || (whole - 1.0).abs() < 1e-6,
                "{word} {whole}"
            );
            assert!(
                shares.iter().all(|share| *share > 0.0 && *share <= 1.0),
                "{word}"
            );
        }
        let moved = shares.iter().any(|share| (share - 0.002).abs() > 1e-4);
        assert!(
            *policy != Policy::Frosting || moved,
            "shares follow: {shares:?}"
        );
    }
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
                others_piece: Piece::mean(1, 1 << 20, 10 * MS),
                compaction: (elapsed_ns % 11) as f64 / 10.0,
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
    let mut controller = Controller::Static(Box::new(Fixed { given }));
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
