//! Rein's experiments, small: the workloads are what they say, and the order of the contenders
//! holds.

use sim::rein::{log_normal, sessions, soundcloud, Contender, Setting};
use sim::{run, CostKnown};
use workload::trace::multiget::Lists;

fn share_above_one(sizes: &[(u32, f64)]) -> f64 {
    let total: f64 = sizes.iter().map(|(_, w)| w).sum();
    let above = sizes.iter().filter(|(n, _)| *n > 1).map(|(_, w)| w);
    above.sum::<f64>() / total
}

fn mean(sizes: &[(u32, f64)]) -> f64 {
    let total: f64 = sizes.iter().map(|(_, w)| w).sum();
    sizes.iter().map(|(n, w)| f64::from(*n) * w).sum::<f64>() / total
}

#[test]
fn sizes_have_their_published_facts() {
    let sizes = soundcloud();
    assert!((mean(&sizes) - 8.6).abs() < 0.01, "{}", mean(&sizes));
    assert!((share_above_one(&sizes) - 0.4).abs() < 1e-6);
    assert_eq!(sizes.iter().map(|(n, _)| *n).max(), Some(2_000));
    let mut lists = Lists::default();
    for size in [1, 2, 1, 7] {
        lists.push(0..size);
    }
    assert!((share_above_one(&sessions(&lists)) - 0.4).abs() < 1e-6);
    assert!((mean(&sessions(&lists)) - (0.6 + 0.4 * 4.5)).abs() < 1e-6);
    // exp(2.5 + 1.25² / 2) = 26.6
    assert!((mean(&log_normal(2.5, 1.25)) / 26.6 - 1.0).abs() < 0.03);
}

/// As its senders are: they know of costs what replies told them.
const OURS: Contender = Contender::Ours(CostKnown::Learnt);

/// p50, p95 and p99 in ms.
fn latencies(setting: &Setting, who: Contender) -> [f64; 3] {
    let spec = setting.spec(11).expect("a distribution");
    let outcome = run(&who.apply(&spec));
    assert!(
        (outcome.utilisation - 0.75).abs() < 0.06,
        "{}",
        outcome.utilisation
    );
    [0.5, 0.95, 0.99].map(|p| outcome.tenants[0].quantile_ns(p) as f64 / 1e6)
}

#[test]
fn ours_halves_every_percentile_of_arrival_order_on_a_heavy_tail() {
    let setting = Setting {
        nodes: 32,
        permits: 1,
        ..Setting::published(soundcloud(), 3_000_000_000)
    };
    let base = latencies(&setting, Contender::Baseline);
    let ours = latencies(&setting, OURS);
    let tuned = latencies(&setting, Contender::ReinTuned);
    for p in 0..3 {
        assert!(base[p] > 2.0 * ours[p], "{base:?} {ours:?}");
        assert!(tuned[p] < base[p], "{base:?} {tuned:?}");
    }
}

#[test]
fn equal_sizes_are_not_made_worse() {
    let setting = Setting {
        nodes: 16,
        ..Setting::published(vec![(50, 1.0)], 5_000_000_000)
    };
    let base = latencies(&setting, Contender::Baseline);
    let ours = latencies(&setting, OURS);
    assert!(ours[0] < base[0] && ours[1] < base[1], "{base:?} {ours:?}");
}

fn of_32(permits: u32) -> Setting {
    Setting {
        nodes: 32,
        permits,
        ..Setting::published(soundcloud(), 4_000_000_000)
    }
}

#[test]
fn nobody_who_knows_less_is_faster_than_all_oracles() {
    use Contender::{
        Baseline, Oracle, OracleInTurn, OracleSlack, OracleStretched, Rein, ShortestBottleneck,
        SlackDriven,
    };
    for permits in [1, 8] {
        let oracles = [Oracle, OracleSlack, OracleStretched, OracleInTurn];
        let oracles = oracles.map(|who| latencies(&of_32(permits), who));
        for who in [Baseline, Rein, ShortestBottleneck, SlackDriven, OURS] {
            let other = latencies(&of_32(permits), who);
            for p in 0..3 {
                let best = oracles.iter().map(|of| of[p]).fold(f64::INFINITY, f64::min);
                assert!(
                    best <= 1.01 * other[p],
                    "{} of {permits}: {other:?}, oracles {oracles:?}",
                    who.name()
                );
            }
        }
    }
}

#[test]
fn rein_s_ratio_makes_an_oracle_worse() {
    // It puts an opset off by more than its slack, so that it becomes the bottleneck.
    let spec = of_32(1).spec(11).expect("a distribution");
    let oracle = Contender::OracleInTurn.apply(&spec);
    let mut with_ratio = oracle.clone();
    with_ratio.scheduler.strategy = policy::multiget::Strategy::Rein;
    let p99 = |spec| run(spec).tenants[0].quantile_ns(0.99);
    let (without, with) = (p99(&oracle), p99(&with_ratio));
    assert!(with as f64 > 1.5 * without as f64, "{without} {with}");
}
