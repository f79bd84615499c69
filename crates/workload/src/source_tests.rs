use super::*;
use crate::draw::Asks;

fn curve(rates_per_s: &[f64]) -> Curve {
    Curve {
        rates_per_s: rates_per_s.to_vec(),
        step_s: 1.0,
    }
}

fn lists(lists: &[&[u32]]) -> Lists {
    let mut all = Lists::default();
    lists.iter().for_each(|list| all.push(list.iter().copied()));
    all
}

fn take(source: &mut dyn Source, n: usize) -> Vec<(Arrival, Vec<u64>)> {
    let mut keys = Vec::new();
    (0..n)
        .map(|_| (source.next(&mut keys), keys.clone()))
        .collect()
}

fn mixed(seed: u64) -> CurveSource {
    let shares = [
        Shares {
            get: 1.0,
            ..Shares::default()
        },
        Shares {
            put: 1.0,
            ..Shares::default()
        },
    ];
    let asks = Asks {
        sizes: Sizes::Constant(8),
        ..Asks::gets(10)
    };
    let mixture = Mixture::new(seed, 1, asks);
    CurveSource::new(
        curve(&[1_000.0, 3_000.0]),
        shares.to_vec(),
        mixture,
        Rng::new(seed, 2),
    )
}

#[test]
fn arrivals_follow_the_curve_and_its_mix() {
    let arrivals = take(&mut mixed(1), 40_000);
    // 20 s at a mean of 2,000/s, a quarter of it gets.
    let last_s = arrivals.last().expect("arrivals").0.at_ns as f64 / 1e9;
    assert!((last_s - 20.0).abs() < 0.5, "{last_s}");
    for (arrival, _) in &arrivals {
        let odd = (arrival.at_ns / 1_000_000_000) % 2 == 1;
        assert_eq!(
            arrival.draw.class,
            if odd { Class::Put } else { Class::Get }
        );
    }
    assert!(arrivals
        .windows(2)
        .all(|pair| pair[0].0.at_ns <= pair[1].0.at_ns));
    let gets = arrivals
        .iter()
        .filter(|(a, _)| a.draw.class == Class::Get)
        .count();
    assert!((gets as f64 / 40_000.0 - 0.25).abs() < 0.02);
}

#[test]
fn equal_seeds_give_equal_requests() {
    assert_eq!(take(&mut mixed(4), 1_000), take(&mut mixed(4), 1_000));
    assert_ne!(take(&mut mixed(4), 1_000), take(&mut mixed(5), 1_000));
}

#[test]
fn timed_lists_keep_their_times_and_start_again() {
    let timed = Timed {
        at_ms: vec![0, 1_000],
        lists: lists(&[&[1, 2], &[3]]),
    };
    let mut source = TimedLists::new(timed, 10, 10.0, Sizes::Constant(5), 1);
    let arrivals = take(&mut source, 4);
    let classes: Vec<_> = arrivals
        .iter()
        .map(|(arrival, _)| arrival.draw.class)
        .collect();
    assert_eq!(
        classes,
        [Class::Multiget, Class::Get, Class::Multiget, Class::Get]
    );
    assert_eq!(arrivals[0].1, [1, 2]);
    // 1,000 ms at ten times the speed, spread over the clock's 10 ms (1 ms after speed-up).
    assert!((100_000_000..101_000_001).contains(&arrivals[1].0.at_ns));
    assert_eq!(arrivals[2].0.at_ns - arrivals[0].0.at_ns, 101_000_000);
    assert_eq!(source.population(), [(1, 5), (2, 5), (3, 5)]);
}

#[test]
fn single_gets_are_mixed_in() {
    let all = lists(&[&[1, 2], &[3, 4, 5], &[6]]);
    let mut source = PacedLists::new(all, curve(&[10.0]), 0.4, Sizes::Constant(5), 1);
    let multi = take(&mut source, 20_000)
        .iter()
        .filter(|(_, keys)| keys.len() > 1)
        .count();
    assert!((multi as f64 / 20_000.0 - 0.4).abs() < 0.02);
}

#[test]
fn a_sample_repeats_its_rows() {
    let row = |at_s, class, count, value_bytes| Row {
        at_s,
        key: 7,
        key_bytes: 16,
        class,
        count,
        value_bytes,
        ttl_s: 9,
    };
    let rows = vec![row(0, Class::Get, 2, 30), row(3, Class::Put, 1, 40)];
    let mut source = SampleSource::new(rows, 2.0, 1);
    let arrivals = take(&mut source, 6);
    let put = arrivals[2].0;
    assert_eq!(put.draw, Draw::put(40, Ttl::Ms(9_000)));
    assert!((1_500_000_000..2_000_000_000).contains(&put.at_ns));
    assert_eq!(arrivals[5].0.at_ns - put.at_ns, 2_000_000_000);
    assert_eq!(source.population(), [(7, 30)]);
}
