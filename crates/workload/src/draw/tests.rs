use super::*;
use crate::rng::Rng;

#[test]
fn a_multiget_names_no_key_twice() {
    let mut rng = Rng::new(1, 2);
    let mut zipf = Popularity::zipf(0.99, 1_000).expect("a distribution");
    let mut ranks = vec![7, 7];
    zipf.pick_distinct(&mut rng, 0, 200, &mut ranks);
    assert_eq!((ranks.len(), &ranks[..2]), (202, &[7, 7][..]));
    assert!(ranks[2..].windows(2).all(|pair| pair[0] < pair[1]));
    ranks.clear();
    Popularity::Uniform(5).pick_distinct(&mut rng, 0, 9, &mut ranks);
    assert_eq!(ranks, [0, 1, 2, 3, 4]);
}

#[test]
fn alias_follows_its_weights() {
    let weights = [1.0, 0.0, 3.0, 6.0];
    let alias = Alias::new(&weights).expect("weights");
    let mut rng = Rng::new(3, 0);
    let mut counts = [0u32; 4];
    for _ in 0..100_000 {
        counts[alias.pick(rng.bits())] += 1;
    }
    for (count, weight) in counts.iter().zip(weights) {
        assert!((f64::from(*count) / 100_000.0 - weight / 10.0).abs() < 0.01);
    }
    assert_eq!(counts[1], 0);
}

#[test]
fn alias_refuses_what_it_cannot_sample() {
    assert!(Alias::new(&[]).is_none());
    assert!(Alias::new(&[0.0, 0.0]).is_none());
    assert!(Alias::new(&[1.0, -1.0]).is_none());
    assert!(Alias::new(&[f64::NAN]).is_none());
}

#[test]
fn folding_keeps_the_head_and_stays_in_range() {
    let buckets = [(1, 50.0), (9, 30.0), (1_000_000, 20.0)];
    let mut popularity = Popularity::buckets(&buckets, 1_000).expect("buckets");
    assert_eq!(popularity.keys(), 1_000);
    let mut rng = Rng::new(5, 0);
    let (mut first, n) = (0, 50_000);
    for _ in 0..n {
        let rank = popularity.pick(&mut rng, 0);
        assert!(rank < 1_000);
        first += u32::from(rank == 0);
    }
    assert!((f64::from(first) / f64::from(n) - 0.5).abs() < 0.01);
}

#[test]
fn zipf_is_skewed_as_asked() {
    let keys = 10_000u64;
    let mut popularity = Popularity::zipf(1.0, keys).expect("zipf");
    assert_eq!(popularity.keys(), keys);
    let mut rng = Rng::new(5, 0);
    let n = 100_000;
    let top = (0..n)
        .filter(|_| popularity.pick(&mut rng, 0) < 100)
        .count();
    // H(100) / H(10,000) = 5.187 / 9.788
    assert!((top as f64 / f64::from(n) - 0.530).abs() < 0.01);
}

#[test]
fn sizes_belong_to_the_key_and_have_their_mean() {
    let sizes = Sizes::LogNormal {
        mean_bytes: 1024.0,
        sigma: 0.5,
        within_bytes: (1, VALUE_BYTES_MAX),
    };
    let mean = (0..100_000)
        .map(|key| f64::from(sizes.of(key, 9)))
        .sum::<f64>()
        / 100_000.0;
    assert!((mean / 1024.0 - 1.0).abs() < 0.02);
    assert_eq!(sizes.of(17, 9), sizes.of(17, 9));
    assert_eq!(
        Sizes::LogNormal {
            mean_bytes: 10.0,
            sigma: 0.0,
            within_bytes: (1, 100),
        }
        .of(1, 1),
        10
    );
    let alias = Alias::new(&[1.0, 1.0]).expect("weights");
    let sizes = Sizes::Histogram {
        alias,
        sizes_bytes: vec![10, 30],
    };
    let mean = (0..100_000)
        .map(|key| f64::from(sizes.of(key, 9)))
        .sum::<f64>()
        / 100_000.0;
    assert!((mean / 20.0 - 1.0).abs() < 0.02);
}

#[test]
fn a_mixture_keeps_its_shares_and_repeats() {
    let shares = Shares {
        get: 0.5,
        put: 0.3,
        multiget: 0.15,
        delete: 0.05,
        ..Shares::default()
    };
    let new = || {
        let asks = Asks {
            shares,
            sizes: Sizes::Constant(10),
            multiget: Counts::Constant(4),
            ..Asks::gets(100)
        };
        Mixture::new(1, 2, asks)
    };
    let (mut one, mut two) = (new(), new());
    let (mut keys, mut other) = (Vec::new(), Vec::new());
    let mut counts = [0u32; CLASSES];
    for _ in 0..100_000 {
        let draw = one.draw(0, &mut keys);
        assert_eq!(draw, two.draw(0, &mut other));
        assert_eq!(keys, other);
        assert_eq!(
            keys.len(),
            if draw.class == Class::Multiget { 4 } else { 1 }
        );
        assert_eq!(
            draw.value_bytes,
            if draw.class == Class::Put { 10 } else { 0 }
        );
        counts[draw.class as usize] += 1;
    }
    for (count, share) in counts.iter().zip([0.5, 0.3, 0.15, 0.0, 0.05]) {
        assert!((f64::from(*count) / 100_000.0 - share).abs() < 0.01);
    }
}
