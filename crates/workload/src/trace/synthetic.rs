//! Stand-ins for the traces, made from the statistics in their READMEs.
//!
//! They keep rate, day curve, mix, sizes, skew and spread of request sizes; they do not keep what
//! only the real data have: oddities of single hours, correlations between requests, reuse
//! patterns.

use std::collections::HashSet;

use super::meta::{Distribution, Row};
use super::multiget::{Lists, Timed, MOONCAKE_STEP_MS};
use super::twitter::{Cluster, Hour};
use crate::draw::{Class, Popularity, Shares};
use crate::rng::Rng;
use crate::source::Curve;

/// One cluster of `kv-twitter-hourly`: mean rate, ratio of busiest to quietest hour of the mean
/// day, mix, mean key, value and time to live, as in its README and mix files.
pub fn twitter(number: u32) -> Cluster {
    let (rate_per_s, day_ratio, put, key_bytes, value_bytes, ttl_s) = match number {
        1 => (10_469.8, 1.201, 0.005, 58.6, 258.6, 240.0),
        2 => (11_785.3, 2.658, 0.0014, 21.9, 75.9, 273_021.7),
        _ => (225.362, 3.399, 0.4997, 22.0, 2_557.0, 7_200.0),
    };
    // A sine with the given ratio of highest to lowest: 1 + a sin, (1 + a) / (1 - a) = ratio.
    let amplitude = (day_ratio - 1.0) / (day_ratio + 1.0);
    let shares = Shares {
        get: 1.0 - put,
        put,
        ..Shares::default()
    };
    let hours = (0..168)
        .map(|hour| {
            let phase = f64::from(hour % 24) / 24.0 * std::f64::consts::TAU;
            let requests = rate_per_s * 3600.0 * (1.0 + amplitude * phase.sin());
            Hour {
                requests: requests as u64,
                shares,
            }
        })
        .collect();
    Cluster {
        number,
        hours,
        key_bytes,
        value_bytes,
        ttl_s,
    }
}

/// A series of request rates: mean, ratio of busiest to quietest hour of the mean day, step and
/// length as in the READMEs; a sine with that ratio, and for the World Cup a crowd of four times
/// the usual at every second day's match.
pub fn rate(name: &str) -> Curve {
    let (mean_per_s, day_ratio, step_s, days) = match name {
        "rate-worldcup98" => (172.66, 3.9, 60.0, 58),
        "rate-nasa-http" => (0.794, 4.0, 60.0, 27),
        "rate-azure-llm" => (5.53, 2.65, 60.0, 1),
        "rate-nab/elb" => (61.837 / 300.0, 4.0, 300.0, 14),
        "rate-nab/taxi" => (15_137.6 / 1_800.0, 6.0, 1_800.0, 215),
        "rate-nab/tweets" => (85.552 / 300.0, 3.0, 300.0, 55),
        _ => {
            let number = name.rsplit('/').next().and_then(|n| n.parse().ok());
            return twitter(number.unwrap_or(1)).curve();
        }
    };
    let amplitude = (day_ratio - 1.0) / (day_ratio + 1.0);
    let steps_per_day = (86_400.0 / step_s) as u32;
    let at = |step: u32| {
        let (day, hour) = (
            step / steps_per_day,
            step % steps_per_day * 24 / steps_per_day,
        );
        let phase = f64::from(step % steps_per_day) / f64::from(steps_per_day);
        let match_day = name == "rate-worldcup98" && day % 2 == 1 && (15..17).contains(&hour);
        let crowd = if match_day { 4.0 } else { 1.0 };
        mean_per_s * crowd * (1.0 + amplitude * (phase * std::f64::consts::TAU).sin())
    };
    Curve {
        rates_per_s: (0..days * steps_per_day).map(at).collect(),
        step_s,
    }
}

/// One workload of `kv-meta-cachelib`: mean value size and sigma of its logarithm, and the Zipf
/// exponent whose top 1,000 of ten million keys take the measured share of accesses.
pub fn meta(workload: &str) -> Distribution {
    let (mean_bytes, sigma, alpha) = match workload {
        "kvcache_reg" => (335.2, 1.2, 0.95),
        "graph_cache_follower_assocs" => (567.7, 1.5, 0.85),
        _ => (341.2, 0.94, 0.45),
    };
    // 1,000 equally likely sizes, read off the log-normal, are as good as its formula.
    let mut rng = Rng::new(0, 0);
    let sizes = (0..1_000)
        .map(|_| {
            let size: f64 = mean_bytes * (sigma * rng.normal() - sigma * sigma / 2.0).exp();
            (size.clamp(1.0, 1e6) as u32, 1.0)
        })
        .collect();
    let (keys, mut from, mut popularity) = (10_000_000u64, 0u64, Vec::new());
    while from < keys {
        let count = (from / 16).clamp(1, keys - from);
        let middle = from as f64 + (count as f64 + 1.0) / 2.0;
        popularity.push((count, count as f64 * f64::powf(middle, -alpha)));
        from += count;
    }
    Distribution { sizes, popularity }
}

/// The request sample of `kv-meta-cachelib`: 691 requests in 8 s, 98.1 % reads, 52 keys.
pub fn meta_sample() -> Vec<Row> {
    let mut rng = Rng::new(0, 1);
    let mut keys = Popularity::zipf(1.0, 52).unwrap_or(Popularity::Uniform(52));
    let mut rows: Vec<Row> = (0..691)
        .map(|_| {
            let class = match rng.below(1_000) {
                0..981 => Class::Get,
                981..996 => Class::Put,
                _ => Class::Delete,
            };
            let key = keys.pick(&mut rng, 0);
            // Median 41 bytes, 1 % above 7,933: sigma = ln(7933 / 41) / 2.326.
            let size = 41.0 * (2.26 * Rng::new(2, key).normal()).exp();
            let value_bytes = if class == Class::Delete {
                0
            } else {
                size.clamp(1.0, 1e5) as u32
            };
            Row {
                at_s: rng.below(9),
                key,
                key_bytes: 38,
                class,
                count: 1,
                value_bytes,
                ttl_s: 0,
            }
        })
        .collect();
    rows.sort_by_key(|row| row.at_s);
    rows
}

/// `multiget-mooncake`: 7,851 requests in 40 minutes stamped every 3 s; keys per request log-normal
/// with mean 24.7 and CV 1.28 (1 to 244); 35 % of the keys were seen before.
pub fn mooncake() -> Timed {
    let mut rng = Rng::new(0, 2);
    let (mut timed, mut next_key) = (Timed::default(), 0u32);
    let mut at_ms: Vec<u64> = (0..7_851).map(|_| rng.below(2_397_000)).collect();
    at_ms.sort_unstable();
    for at_ms in at_ms {
        let count = log_normal(&mut rng, 24.746, 1.284).clamp(1.0, 244.0) as u32;
        // Conversations go on: a request repeats the prefix of an earlier one and adds to it.
        let seen = (0.351 * f64::from(count)) as u32;
        let from = rng.below(u64::from(next_key).max(1)) as u32;
        let fresh = next_key..next_key + (count - seen);
        next_key = fresh.end;
        timed.lists.push((from..from + seen).chain(fresh));
        timed
            .at_ms
            .push(at_ms / MOONCAKE_STEP_MS * MOONCAKE_STEP_MS);
    }
    timed
}

/// `multiget-kosarak`: 24,000 sessions, keys per session log-normal with mean 8.04 and CV 2.575 (1
/// to 608), 14,573 keys of which the top 1 % take 45 % of the accesses.
pub fn kosarak() -> Lists {
    let mut rng = Rng::new(0, 3);
    let (mut lists, mut seen) = (Lists::default(), HashSet::new());
    // Over 14,573 keys, exponent 0.93 gives the top 1 % 45 % of the accesses.
    let mut keys = Popularity::zipf(0.93, 14_573).unwrap_or(Popularity::Uniform(14_573));
    for _ in 0..24_000 {
        let count = log_normal(&mut rng, 8.041, 2.575).round().clamp(1.0, 608.0) as usize;
        let mut list = Vec::with_capacity(count);
        seen.clear();
        // A session names a page once. The bound ends long sessions that meet only hot pages.
        for _ in 0..20 * count {
            let key = keys.pick(&mut rng, 0) as u32;
            if seen.insert(key) {
                list.push(key);
            }
            if list.len() == count {
                break;
            }
        }
        lists.push(list.into_iter());
    }
    lists
}

/// Log-normal with this mean and coefficient of variation.
fn log_normal(rng: &mut Rng, mean: f64, cv: f64) -> f64 {
    let variance = (1.0 + cv * cv).ln();
    mean * (variance.sqrt() * rng.normal() - variance / 2.0).exp()
}
