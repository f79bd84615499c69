//! Levels that tune themselves.

use policy::multiget::{Levels, Rates, Strategy, Tuner, LEVELS_MAX};
use proptest::prelude::{prop, prop_assert, prop_oneof, proptest, Just};

fn tuner(seen: &[(u64, u64)]) -> Tuner {
    let mut tuner = Tuner::default();
    for (bottleneck, total) in seen {
        tuner.observe(*bottleneck, *total);
    }
    tuner
}

proptest! {
    /// No K up to 8 and no R of Rein's figure 8 would have given a mean wait shorter by more than 3
    /// %.
    #[test]
    fn nothing_in_the_sweep_is_better(
        seen in prop::collection::vec((1u64..2_000, 1u64..20), 1..300),
        load in 0.1f64..0.95,
    ) {
        let seen: Vec<_> = seen.into_iter().map(|(b, f)| (b, b * f)).collect();
        let tuner = tuner(&seen);
        let tuned = tuner.choose(load).expect("something was seen");
        prop_assert!((tuner.mean_wait(&tuned.levels, load) - tuned.wait).abs() < 1e-9);
        for count in 1..=8 {
            for range in [1.5, 2.0, 3.0, 4.0, 5.0, 8.0] {
                let other = Levels::exponential(count, range, 1, Rates::Linear);
                let wait = tuner.mean_wait(&other, load);
                prop_assert!(tuned.wait <= wait * 1.03, "K {count} R {range}: {wait} < {}", tuned.wait);
            }
        }
    }

    /// One level is the unit, and levels never make the mean request wait longer than that when
    /// small bottlenecks belong to small requests.
    #[test]
    fn levels_pay(seen in prop::collection::vec(1u64..2_000, 1..300), load in 0.1f64..0.95) {
        let seen: Vec<_> = seen.into_iter().map(|b| (b, b * 8)).collect();
        let tuner = tuner(&seen);
        let single = tuner.mean_wait(&Levels::exponential(1, 2.0, 1, Rates::Linear), load);
        prop_assert!((single - 1.0).abs() < 1e-9);
        prop_assert!(tuner.choose(load).expect("something was seen").wait <= 1.0 + 1e-9);
    }
}

proptest! {
    /// What a lane's queue gives away that goes by levels which are always the same (`level_of`),
    /// in place of those that are best for what was seen: some of the mean wait, where all sizes
    /// lie close together.
    #[test]
    fn levels_that_need_no_tuning_are_nearly_as_good(
        seen in prop::collection::vec(prop_oneof![Just(1u64), 1u64..20, 1u64..2_000], 1..300),
        load in 0.1f64..0.95,
    ) {
        let seen: Vec<_> = seen.into_iter().map(|size| (size, size)).collect();
        let tuner = tuner(&seen);
        let tuned = tuner.choose(load).expect("something was seen");
        let fixed = Levels::exponential(LEVELS_MAX, 2.0, 1, Rates::Linear);
        let wait = tuner.mean_wait(&fixed, load);
        prop_assert!(wait <= tuned.wait * 1.25, "{wait}, tuned {}", tuned.wait);
    }
}

#[test]
fn equal_multigets_get_one_level() {
    let tuned = tuner(&[(50, 400); 100]).choose(0.75).expect("seen");
    assert_eq!(tuned.levels.count(), 1);
    assert_eq!(Tuner::default().choose(0.75), None);
}

#[test]
fn a_heavy_tail_gets_several_and_they_span_it() {
    let seen: Vec<_> = (0..2_000u64)
        .map(|n| 2_000 / (n + 1))
        .map(|b| (b.max(1), 8 * b.max(1)))
        .collect();
    let tuned = tuner(&seen).choose(0.75).expect("seen");
    assert!(tuned.levels.count() >= 4, "{tuned:?}");
    assert!(
        tuned.levels.of(2_000) > tuned.levels.of(20) && tuned.levels.of(20) > 0,
        "{tuned:?}"
    );
}

#[test]
fn a_change_is_followed() {
    let mut tuner = tuner(&vec![(1_000, 1_000); 100_000]);
    for n in 0..900_000u64 {
        let bottleneck = if n % 10 == 0 { 40 } else { 1 };
        tuner.observe(bottleneck, bottleneck);
    }
    let tuned = tuner.choose(0.75).expect("seen");
    assert!(tuned.levels.of(40) > tuned.levels.of(1), "{tuned:?}");
}

#[test]
fn small_ones_pass_only_where_sizes_vary() {
    let stretch = |seen: &[(u64, u64)]| match tuner(seen).deadline() {
        Strategy::Deadline {
            stretch_quarters,
            tail,
            ..
        } => (stretch_quarters, tail),
        other => panic!("{other:?}"),
    };
    assert_eq!(stretch(&[(6, 50); 100]), (0, u64::MAX));
    let mixed: Vec<_> = (0..100)
        .map(|n| if n < 90 { (1, 1) } else { (30, 900) })
        .collect();
    // All of the large ones are more than one in a hundred: nobody is so rare as to be put off.
    let (quarters, tail) = stretch(&mixed);
    assert!(quarters > 0 && tail > 30, "{quarters} {tail}");
    let rare: Vec<_> = (0..1_000)
        .map(|n| if n < 992 { (1, 1) } else { (3_000, 90_000) })
        .collect();
    let (quarters, tail) = stretch(&rare);
    assert!(
        quarters > 0 && (2..=3_000).contains(&tail),
        "{quarters} {tail}"
    );
}

#[test]
fn the_largest_costs_have_no_tail_beyond() {
    let seen: Vec<_> = (0..200)
        .map(|n| (if n < 150 { 1 } else { u64::MAX }, 1 << (n / 4)))
        .collect();
    match tuner(&seen).deadline() {
        Strategy::Deadline { tail, .. } => assert_eq!(tail, u64::MAX),
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_differ_by_their_work_and_not_by_the_mean_of_their_bottlenecks() {
    // One of a hundred multigets is a thousand times the others' work, spread so well that its
    // bottleneck is no larger.
    let seen: Vec<_> = (0..10_000)
        .map(|n| (100, if n % 100 == 0 { 100_000 } else { 100 }))
        .collect();
    let Strategy::Deadline {
        stretch_quarters, ..
    } = tuner(&seen).deadline()
    else {
        panic!("ours")
    };
    assert_eq!(stretch_quarters, 4, "sizes vary");
    let alike: Vec<_> = (0..10_000).map(|n| (100 + n % 3, 800)).collect();
    let Strategy::Deadline {
        stretch_quarters, ..
    } = tuner(&alike).deadline()
    else {
        panic!("ours")
    };
    assert_eq!(stretch_quarters, 0, "sizes are alike");
}

#[test]
fn a_tail_of_which_each_size_was_seen_once_is_remembered() {
    // 160 sizes from 2^16 to 2^55, each once among 100,000: after that old ones count half.
    let mut seen = vec![(1, 1); 100_000 - 160];
    seen.extend(
        (64..224u32)
            .map(|at| (1u64 << (at / 4)) + (u64::from(at % 4) << (at / 4 - 2)))
            .map(|cost| (cost, cost)),
    );
    let mut tuner = tuner(&seen);
    let varies = |tuner: &Tuner| {
        matches!(
            tuner.deadline(),
            Strategy::Deadline {
                stretch_quarters: 4,
                ..
            }
        )
    };
    assert!(varies(&tuner), "the tail is most of the work");
    // It fades, as everything does, and is gone in the end.
    for _ in 0..100_000 {
        tuner.observe(1, 1);
    }
    assert!(varies(&tuner));
    for _ in 0..1_000_000 {
        tuner.observe(1, 1);
    }
    assert!(!varies(&tuner));
    assert_eq!(tuner.choose(0.75).expect("seen").levels.count(), 1);
}
