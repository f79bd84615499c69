//! Fairness on one node: MMR, the least share-normalised rate over the greatest (DESIGN §8), with the
//! same load under `fifo` beside it.
//!
//! The server has one core and the client another; every tenant keeps more requests outstanding
//! than its share can serve, so the server is what limits, except where a row says otherwise.

use experiment::ExperimentError;
use serde_json::json;
use workload::draw::{Shares, Sizes, VALUE_BYTES_MAX};
use workload::report::rate;

use crate::load::{fill, shoot, stream, ClosedStream, Shot, GETS};
use crate::rows::{median, Bound, Row, Rows};
use crate::server::{identity, pin_client, Entremet, Server, Tenant};
use crate::Setup;

const KEYS: u64 = 1_000;
/// Outstanding requests of a tenant with an ordinary demand: connections and pipeline depth.
const DEMAND: (usize, usize) = (16, 8);
const TWICE: (usize, usize) = (32, 8);
const KIB: Sizes = Sizes::Constant(1024);

/// A fair and a fifo server with every tenant that a row may need.
pub struct Pair {
    fair: Server,
    fifo: Server,
}

/// One tenant of a row: its weight and its load.
type Member = (u32, ClosedStream);

/// Object cache of each tenant, MiB: everything fits.
const CACHE_MIB: u64 = 8;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    let pair = Pair::start(setup)?;
    pin_client(&[setup.client_core]);
    let equal = || {
        (0..8)
            .map(|i| member("equal", i, 1, DEMAND, GETS, KIB))
            .collect::<Vec<_>>()
    };
    pair.mmr(setup, rows, "8 equal tenants, MMR", 0.99, &equal())?;
    twice_the_demand(setup, rows, &pair, &equal())?;
    let weighted: Vec<Member> = [4, 3, 2, 1]
        .map(|weight| member("weight", weight, weight, (16, 8), GETS, KIB))
        .into();
    pair.mmr(setup, rows, "weights 4:3:2:1, MMR", 0.98, &weighted)?;
    pair.mmr(setup, rows, "64 tenants at 100:10:1, MMR", 0.98, &skewed())?;
    for (mix, shares) in mixes() {
        for (size, mean_bytes) in [("10 B", 10.0), ("1 KiB", 1024.0)] {
            for sigma in [0.0, 0.5, 1.0] {
                let name = format!("{mix}, {size}, sigma {sigma}, MMR");
                let sizes = Sizes::LogNormal {
                    mean_bytes,
                    sigma,
                    within_bytes: (1, VALUE_BYTES_MAX),
                };
                let one = |i| member("equal", i, 1, DEMAND, shares[i as usize], sizes.clone());
                let members: Vec<Member> = (0..8).map(one).collect();
                pair.mmr(setup, rows, &name, 0.97, &members)?;
            }
        }
    }
    Ok(())
}

/// What each of eight tenants asks (Pisces 5.2.6 and table 5.1): all only read; all read nine times of
/// ten; or some only read, some mostly read, some mostly write.
fn mixes() -> [(&'static str, [Shares; 8]); 3] {
    let share = |get, put| Shares {
        get,
        put,
        ..Shares::default()
    };
    let (heavy, writes) = (share(0.9, 0.1), share(0.1, 0.9));
    let mixed = [GETS, GETS, GETS, heavy, heavy, heavy, writes, writes];
    [
        ("read-only", [GETS; 8]),
        ("read-heavy", [heavy; 8]),
        ("mixed", mixed),
    ]
}

fn member(
    kind: &str,
    index: u32,
    weight: u32,
    demand: (usize, usize),
    shares: Shares,
    sizes: Sizes,
) -> Member {
    (
        weight,
        stream(
            identity(&format!("{kind}{index}")),
            demand,
            shares,
            KEYS,
            sizes,
        ),
    )
}

/// 4 tenants of weight 100, 20 of 10 and 40 of 1. Demand follows the weights: a tenant must keep
/// its queue filled for as long as its quantum lasts.
fn skewed() -> Vec<Member> {
    let kinds = [
        ("big", 4, 100, (64, 8)),
        ("middle", 20, 10, (16, 8)),
        ("small", 40, 1, (4, 8)),
    ];
    let mut members = Vec::new();
    for (kind, count, weight, demand) in kinds {
        members.extend((0..count).map(|i| member(kind, i, weight, demand, GETS, KIB)));
    }
    members
}

/// Half of the tenants at twice the demand: they must not gain, and the others' latency must stay
/// what it is when nobody asks for more than the others (the same total: the server is saturated
/// either way).
fn twice_the_demand(
    setup: &Setup,
    rows: &mut Rows,
    pair: &Pair,
    equal: &[Member],
) -> Result<(), ExperimentError> {
    let name = "half at twice the demand, MMR";
    let latency = "half at twice the demand, others' p95 / alone";
    let greedy: Vec<Member> = equal
        .iter()
        .enumerate()
        .map(|(i, (weight, stream))| {
            let mut stream = stream.clone();
            if i >= equal.len() / 2 {
                (stream.connections, stream.depth) = TWICE;
            }
            (*weight, stream)
        })
        .collect();
    pair.mmr(setup, rows, name, 0.99, &greedy)?;
    if !rows.wants(latency) {
        return Ok(());
    }
    pair.fill(setup, equal)?;
    let (mut ratios, mut baseline, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setup.repeats {
        let with = p95_us(&shoot(setup, &pair.fair, &streams(&greedy))?);
        let alone = p95_us(&shoot(setup, &pair.fair, &streams(equal))?);
        let fifo_with = p95_us(&shoot(setup, &pair.fifo, &streams(&greedy))?);
        let fifo_alone = p95_us(&shoot(setup, &pair.fifo, &streams(equal))?);
        ratios.push(with / alone);
        baseline.push(fifo_with / fifo_alone);
        pairs.push(json!({ "with_us": with, "alone_us": alone }));
    }
    let sides = format!("fifo {:.3}", median(&baseline));
    let row = Row::new(latency, Bound::AtMost(1.1), ratios).sides(sides);
    rows.add(row.figures(json!({ "fair": pairs, "fifo_ratios": baseline })));
    Ok(())
}

/// The worst p95 among the first half of the tenants, µs.
fn p95_us(shot: &Shot) -> f64 {
    let half = shot.outcome.tenants.len() / 2;
    let p95 = |s: &workload::stats::TenantStats| s.total().latency().percentile_ns(95.0) as f64;
    shot.outcome.tenants[..half]
        .iter()
        .map(p95)
        .fold(0.0, f64::max)
        / 1e3
}

fn streams(members: &[Member]) -> Vec<ClosedStream> {
    members.iter().map(|(_, stream)| stream.clone()).collect()
}

/// Least over greatest of rate / weight.
fn mmr(shot: &Shot, members: &[Member]) -> f64 {
    let rates = shot.rates();
    let normalised = rates
        .iter()
        .zip(members)
        .map(|(rate, (weight, _))| rate / f64::from(*weight));
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    for value in normalised {
        (least, most) = (least.min(value), most.max(value));
    }
    least / most.max(1e-9)
}

impl Pair {
    pub fn start(setup: &Setup) -> Result<Self, ExperimentError> {
        let mut tenants: Vec<Tenant> = (0..8).map(|i| (format!("equal{i}"), 1)).collect();
        tenants.extend((1..=4).map(|weight| (format!("weight{weight}"), weight)));
        for (kind, count, weight) in [("big", 4, 100), ("middle", 20, 10), ("small", 40, 1)] {
            tenants.extend((0..count).map(|i| (format!("{kind}{i}"), weight)));
        }
        let start = |label, request| {
            let (cores, tenants) = (vec![setup.server_core], tenants.clone());
            Entremet {
                label,
                request,
                cores,
                tenants,
                cache_mib: CACHE_MIB,
                scheduler: toml::Table::new(),
            }
            .start(setup)
        };
        Ok(Self {
            fair: start("entremet (fair)", "fair")?,
            fifo: start("entremet (fifo)", "fifo")?,
        })
    }

    fn fill(&self, setup: &Setup, members: &[Member]) -> Result<(), ExperimentError> {
        fill(setup, &self.fair, &streams(members))?;
        fill(setup, &self.fifo, &streams(members))
    }

    /// One row: MMR of this load under `fair`, and under `fifo` beside it.
    fn mmr(
        &self,
        setup: &Setup,
        rows: &mut Rows,
        name: &str,
        least: f64,
        members: &[Member],
    ) -> Result<(), ExperimentError> {
        if !rows.wants(name) {
            return Ok(());
        }
        self.fill(setup, members)?;
        let streams = streams(members);
        let (mut ours, mut theirs, mut fair_rate, mut fifo_rate) = (vec![], vec![], vec![], vec![]);
        let (mut last_rates, mut remark) = (Vec::new(), "");
        for _ in 0..setup.repeats {
            let shot = shoot(setup, &self.fair, &streams)?;
            ours.push(mmr(&shot, members));
            fair_rate.push(shot.rate());
            (last_rates, remark) = (shot.rates(), shot.remark());
            let shot = shoot(setup, &self.fifo, &streams)?;
            theirs.push(mmr(&shot, members));
            fifo_rate.push(shot.rate());
        }
        let sides = format!(
            "fifo {:.3}; {}/s against {}/s{remark}",
            median(&theirs),
            rate(median(&fair_rate)),
            rate(median(&fifo_rate))
        );
        let figures = json!({ "fifo_mmr": theirs, "last_rates_per_s": last_rates });
        rows.add(
            Row::new(name, Bound::AtLeast(least), ours)
                .sides(sides)
                .figures(figures),
        );
        Ok(())
    }
}
