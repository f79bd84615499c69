//! Costs that a sender learns from replies.

use policy::multiget::Costs;
use proptest::prelude::*;

/// A thousand keys whose values grow, asked in turn: `fixed` and `slope` are what the server takes.
fn learnt(fixed: u64, slope: u64, times: u64) -> Costs {
    let mut costs = Costs::default();
    for number in 0..times {
        let key = number % 1_000;
        let bytes = 10 + key as u32;
        costs.observe(key, bytes, fixed + slope * u64::from(bytes));
    }
    costs
}

proptest! {
    #[test]
    fn a_line_is_found_and_sizes_are_remembered(fixed in 1_000u64..1_000_000, slope in 0u64..1_000, key in 0u64..1_000) {
        let costs = learnt(fixed, slope, 10_000);
        let right = (fixed + slope * (10 + key)) as f64;
        // Two keys in one place: the other one's size was told last, and this one's is a mean one.
        // Which mean that is depends on how much of the last turn of keys has faded.
        let mean = (fixed + slope * 510) as f64;
        let expected = costs.expected_ns(key) as f64;
        let near = |other: f64, part: f64| (expected / other - 1.0).abs() < part;
        prop_assert!(near(right, 0.01) || near(mean, 0.05), "{expected}, {right} or {mean}");
        // Nobody asked for this one before.
        let unknown = costs.expected_ns(1 << 40) as f64;
        prop_assert!((unknown / mean - 1.0).abs() < 0.05, "{unknown} {mean}");
    }

    #[test]
    fn what_is_expected_is_a_time(seen in prop::collection::vec((any::<u64>(), any::<u32>(), any::<u64>()), 0..50), key: u64) {
        let mut costs = Costs::default();
        for (key, bytes, ns) in seen {
            costs.observe(key, bytes, ns);
        }
        prop_assert!(costs.expected_ns(key) >= 1);
    }
}

#[test]
fn most_sizes_are_remembered() {
    let costs = learnt(1_000, 100, 5_000);
    let right = |key: &u64| costs.expected_ns(*key).abs_diff(1_000 + 100 * (10 + key)) < 600;
    let known = (0..1_000).filter(right).count();
    assert!(known > 930, "{known}");
}

#[test]
fn a_server_that_becomes_slow_is_noticed() {
    let mut costs = learnt(1_000, 0, 10_000);
    for key in 0..10_000 {
        costs.observe(key, 100, 5_000);
    }
    let expected = costs.expected_ns(1 << 40);
    assert!((4_500..=5_000).contains(&expected), "{expected}");
}

#[test]
fn nothing_is_known_at_first() {
    assert_eq!(Costs::default().expected_ns(7), 1);
}
