//! What is read agrees with the statistics in the READMEs of the trace collection, and what is
//! synthesised agrees with what is read. Tests that need the collection say so and pass without it.

use std::collections::HashMap;
use std::path::PathBuf;

use workload::draw::Class;
use workload::rng::Rng;
use workload::trace::multiget::Lists;
use workload::trace::{folder, meta, multiget, synthetic, twitter};

fn collection(sub: &str) -> Option<PathBuf> {
    // Tests run in the crate's folder, two below the project's.
    let found = [folder(), PathBuf::from("../..").join(folder())];
    let found = found.into_iter().find(|folder| folder.join(sub).is_dir());
    if found.is_none() {
        eprintln!("no {sub} here: not compared");
    }
    found
}

#[track_caller]
fn near(measured: f64, stated: f64, tolerance: f64) {
    let off = (measured / stated - 1.0).abs();
    assert!(off <= tolerance, "measured {measured}, stated {stated}");
}

fn twitter_agrees(cluster: &twitter::Cluster, tolerance: f64) {
    let (rate, requests, gets, adds, day_ratio) = match cluster.number {
        1 => (10_469.8, 6_461_081_324.0, 0.9950, 0.0050, 1.201),
        2 => (11_785.3, 7_226_679_214.0, 0.9986, 0.0014, 2.658),
        _ => (225.362, 139_150_615.0, 0.5003, 0.4997, 3.399),
    };
    near(cluster.rate_per_s(), rate, tolerance);
    assert_eq!(cluster.hours.len(), 168);
    let sum: f64 = cluster.hours.iter().map(|hour| hour.requests as f64).sum();
    assert!(
        sum <= requests && sum > 0.9 * requests,
        "{sum} of {requests}"
    );
    let shares = |pick: fn(&twitter::Hour) -> f64| {
        cluster
            .hours
            .iter()
            .map(|hour| pick(hour) * hour.requests as f64)
            .sum::<f64>()
            / sum
    };
    let total = |hour: &twitter::Hour| hour.shares.get + hour.shares.put + hour.shares.delete;
    assert!(cluster.hours.iter().all(|hour| total(hour) > 0.0));
    let put = shares(|h| h.shares.put / (h.shares.get + h.shares.put + h.shares.delete));
    assert!(
        (put - adds).abs() < 0.002 && (1.0 - put - gets).abs() < 0.002,
        "{put}"
    );
    let mut day = [0u64; 24];
    for (i, hour) in cluster.hours.iter().enumerate() {
        day[i % 24] += hour.requests;
    }
    let (most, least) = (
        day.iter().max().expect("day"),
        day.iter().min().expect("day"),
    );
    near(*most as f64 / *least as f64, day_ratio, tolerance);
}

#[test]
fn twitter_clusters() {
    for number in twitter::CLUSTERS {
        twitter_agrees(&synthetic::twitter(number), 0.02);
        if let Some(folder) = collection("kv-twitter-hourly") {
            let cluster = twitter::read(&folder, number).expect("readable");
            twitter_agrees(&cluster, 0.001);
            let made = synthetic::twitter(number);
            near(cluster.key_bytes, made.key_bytes, 0.01);
            near(cluster.value_bytes, made.value_bytes, 0.01);
            near(cluster.ttl_s, made.ttl_s, 0.01);
        }
    }
}

fn share_of_top(distribution: &meta::Distribution, keys: u64) -> f64 {
    let total: f64 = distribution
        .popularity
        .iter()
        .map(|(_, weight)| weight)
        .sum();
    let (mut seen, mut weight) = (0, 0.0);
    for (count, accesses) in &distribution.popularity {
        if seen + count > keys {
            break;
        }
        (seen, weight) = (seen + count, weight + accesses);
    }
    weight / total
}

#[test]
fn meta_distributions() {
    let measured = [
        ("kvcache_reg", 335.2, 0.408),
        ("graph_cache_follower_assocs", 567.7, 0.199),
        ("graph_cache_leader_fbobj", 341.2, 0.004),
    ];
    for (workload, mean_bytes, top) in measured {
        let made = synthetic::meta(workload);
        near(made.mean_bytes(), mean_bytes, 0.1);
        assert!(
            (share_of_top(&made, 1_000) - top).abs() < 0.08,
            "{}",
            share_of_top(&made, 1_000)
        );
        if let Some(folder) = collection("kv-meta-cachelib") {
            let read = meta::read(&folder, workload).expect("readable");
            near(read.mean_bytes(), mean_bytes, 0.001);
            assert!((share_of_top(&read, 1_000) - top).abs() < 0.002);
            // What is drawn has the histogram's mean, and the hottest key its share.
            let sizes = read.sizes();
            let drawn = (0..200_000)
                .map(|key| f64::from(sizes.of(key, 1)))
                .sum::<f64>()
                / 2e5;
            near(drawn, mean_bytes, 0.1);
            let (mut popularity, mut rng) = (read.popularity(100_000), Rng::new(1, 1));
            let hot = (0..200_000)
                .filter(|_| popularity.pick(&mut rng, 0) == 0)
                .count();
            assert!((hot as f64 / 2e5 - share_of_top(&read, 1)).abs() < 0.003);
        }
    }
}

fn sample_agrees(rows: &[meta::Row], exact: bool) {
    let requests = |keep: fn(&&meta::Row) -> bool| -> f64 {
        rows.iter()
            .filter(keep)
            .map(|row| f64::from(row.count))
            .sum()
    };
    assert_eq!(requests(|_| true), 691.0);
    let reads = requests(|row| row.class == Class::Get) / 691.0;
    assert!(
        (reads - 0.981).abs() < if exact { 0.001 } else { 0.02 },
        "{reads}"
    );
    assert_eq!(rows.last().expect("rows").at_s, 8);
    let distinct: std::collections::HashSet<u64> = rows.iter().map(|row| row.key).collect();
    assert!(distinct.len() <= 52);
    if exact {
        assert_eq!((rows.len(), distinct.len()), (99, 52));
        near(
            rows.iter().map(|r| f64::from(r.key_bytes)).sum::<f64>() / 99.0,
            59.455,
            0.001,
        );
        let sized: Vec<f64> = rows
            .iter()
            .filter(|r| r.value_bytes > 0)
            .map(|r| f64::from(r.value_bytes))
            .collect();
        near(
            sized.iter().sum::<f64>() / sized.len() as f64,
            584.12,
            0.001,
        );
    }
}

#[test]
fn meta_sample() {
    sample_agrees(&synthetic::meta_sample(), false);
    if let Some(folder) = collection("kv-meta-cachelib") {
        sample_agrees(&meta::sample(&folder).expect("readable"), true);
    }
}

struct Sizes {
    mean: f64,
    cv: f64,
    percentiles: [usize; 4],
    multi: f64,
}

fn list_sizes(lists: &Lists) -> Sizes {
    let mut sizes: Vec<usize> = (0..lists.len()).map(|i| lists.get(i).len()).collect();
    sizes.sort_unstable();
    let n = sizes.len() as f64;
    let mean = lists.mean_keys();
    let variance = sizes
        .iter()
        .map(|s| (*s as f64 - mean).powi(2))
        .sum::<f64>()
        / n;
    let at = |percent: usize| sizes[(sizes.len() * percent).div_ceil(100) - 1];
    Sizes {
        mean,
        cv: variance.sqrt() / mean,
        percentiles: [at(50), at(90), at(99), at(100)],
        multi: sizes.iter().filter(|s| **s > 1).count() as f64 / n,
    }
}

#[test]
fn mooncake() {
    let made = synthetic::mooncake();
    let sizes = list_sizes(&made.lists);
    assert_eq!(made.lists.len(), 7_851);
    near(sizes.mean, 24.746, 0.1);
    near(sizes.cv, 1.284, 0.15);
    near(*made.at_ms.last().expect("times") as f64, 2_397_000.0, 0.01);
    let Some(folder) = collection("multiget-mooncake") else {
        return;
    };
    let read = multiget::mooncake(&folder).expect("readable");
    let sizes = list_sizes(&read.lists);
    assert_eq!(
        (read.lists.len(), read.lists.distinct().len()),
        (7_851, 126_103)
    );
    assert_eq!(read.at_ms.last(), Some(&2_397_000));
    near(sizes.mean, 24.746, 0.001);
    near(sizes.cv, 1.284, 0.001);
    assert_eq!((sizes.percentiles, sizes.multi), ([15, 55, 176, 244], 1.0));
}

fn top_share(lists: &Lists) -> f64 {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for i in 0..lists.len() {
        lists
            .get(i)
            .iter()
            .for_each(|key| *counts.entry(*key).or_default() += 1);
    }
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let top: u64 = counts.iter().take(counts.len() / 100).sum();
    top as f64 / counts.iter().sum::<u64>() as f64
}

#[test]
fn kosarak() {
    let made = synthetic::kosarak();
    let sizes = list_sizes(&made);
    assert_eq!(made.len(), 24_000);
    near(sizes.mean, 8.041, 0.15);
    near(sizes.cv, 2.575, 0.3);
    assert!(
        (top_share(&made) - 0.447).abs() < 0.08,
        "{}",
        top_share(&made)
    );
    let Some(folder) = collection("multiget-kosarak") else {
        return;
    };
    let read = multiget::kosarak(&folder).expect("readable");
    let sizes = list_sizes(&read);
    assert_eq!((read.len(), read.distinct().len()), (24_000, 14_573));
    near(sizes.mean, 8.041, 0.001);
    near(sizes.cv, 2.575, 0.001);
    assert_eq!(sizes.percentiles, [3, 15, 94, 608]);
    assert!((sizes.multi - 0.848).abs() < 0.001);
    assert!((top_share(&read) - 0.447).abs() < 0.002);
}
