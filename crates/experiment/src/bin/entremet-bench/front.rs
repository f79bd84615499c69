//! What a front costs: requests through it against the same asked of the engine directly, with
//! nutcracker beside it where it is found.
//!
//! The engine is a redis-server that is the only node of a cluster, on a processor of its own. The
//! front shares the other one with the client, as far as there are two: what it could serve with
//! one of its own follows from the processor time that a request takes. Where a request is divided
//! over two nodes, these share the engine's processor.

use std::path::Path;

use experiment::ExperimentError;
use serde_json::json;
use toml::{Table, Value};
use workload::client::Identity;
use workload::draw::{Shares, Sizes};
use workload::report::rate;

use crate::load::{fill, shoot, stream, ClosedStream, Shot, GETS, PUTS};
use crate::rows::{median, Bound, Row, Rows};
use crate::server::{identity, on_path, pin_client, Entremet, Server, REDIS};
use crate::Setup;

const KEYS: u64 = 100_000;
const VALUE_BYTES: u32 = 100;
const TENANT: &str = "bench";
const CLASSES: [(&str, Shares); 2] = [("GET", GETS), ("SET", PUTS)];

/// What a front may cost: µs at the median when requests come one by one, its processor time a
/// request over the engine's, and what is served over what is without it.
const LATER_US_MAX: f64 = 60.0;
const CPU_MAX: f64 = 1.0;
const RATE_MIN: f64 = 1.0;
/// And µs at the median where it divides a request over nodes.
const DIVIDED_US_MAX: f64 = 120.0;

/// Partitions of the tenant, of which each node has half where there are two.
const PARTITIONS: i64 = 16;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    pin_client(&[setup.client_core]);
    whole(setup, rows)?;
    divided(setup, rows)
}

/// Requests that one node answers.
fn whole(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    let engines = Server::redis_cluster(setup.server_core, 1)?;
    let [engine] = &engines[..] else {
        unreachable!("one was asked for")
    };
    let front = front(setup, engine)?;
    let direct = Way::new(engine, &engines, Identity::default());
    let ours = Way::new(&front, &engines, identity(TENANT));
    for way in [&direct, &ours] {
        fill(setup, way.server, &[way.stream(GETS, 1)])?;
    }
    let judged = [
        Bound::AtMost(LATER_US_MAX),
        Bound::AtMost(CPU_MAX),
        Bound::AtLeast(RATE_MIN),
    ];
    compare(setup, rows, &direct, ("a front", &ours), judged)?;
    let Some(program) = on_path("nutcracker") else {
        println!("nutcracker is not there: not compared");
        return Ok(());
    };
    let other = Server::nutcracker(&program, setup.client_core, engine.address)?;
    let resp2 = Identity {
        resp2: true,
        ..Identity::default()
    };
    let theirs = Way::new(&other, &engines, resp2);
    let shown = [Bound::Shown; 3];
    compare(setup, rows, &direct, ("nutcracker", &theirs), shown)
}

/// Requests whose parts two nodes answer, against the same asked of one engine that has all keys.
fn divided(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    let name = "MGET of 10 over 2 nodes, 1 conn.: a front later than one engine, p50, µs";
    if !rows.wants(name) {
        return Ok(());
    }
    let engines = [Server::redis(Path::new(REDIS), setup.server_core, &[])?];
    let nodes = Server::redis_cluster(setup.server_core, 2)?;
    let front = front(setup, &nodes[0])?;
    let direct = Way::new(&engines[0], &engines, Identity::default());
    let ours = Way::new(&front, &nodes, identity(TENANT));
    for way in [&direct, &ours] {
        fill(setup, way.server, &[way.stream(GETS, 1)])?;
    }
    let multigets = Shares {
        multiget: 1.0,
        ..Shares::NONE
    };
    let pairs = pairs(setup, &direct, &ours, (multigets, 1))?;
    let later = pairs.iter().map(|(d, t)| p50_us(t) - p50_us(d)).collect();
    rows.add(
        Row::new(name, Bound::AtMost(DIVIDED_US_MAX), later)
            .sides(sides(&pairs))
            .figures(figures(&pairs)),
    );
    Ok(())
}

fn front(setup: &Setup, engine: &Server) -> Result<Server, ExperimentError> {
    let options = Entremet {
        label: "front",
        request: "fair",
        cores: vec![setup.client_core],
        tenants: vec![(TENANT.to_string(), 1)],
        cache_mib: 0,
    };
    let url = format!("redis-cluster://{}", engine.address);
    let behind = [("kind", "redis-cluster".to_string()), ("url", url)];
    let behind = behind.map(|(key, value)| (key.to_string(), Value::String(value)));
    let partitions = [("partitions".to_string(), Value::Integer(PARTITIONS))];
    let more = Table::from_iter([
        ("engine".to_string(), Value::Table(Table::from_iter(behind))),
        (
            "tenant".to_string(),
            Value::Table(Table::from_iter(partitions)),
        ),
    ]);
    options.start_with(setup, &more, None)
}

/// Whom requests are sent to, and by whom.
struct Way<'a> {
    server: &'a Server,
    /// The engines that answer in the end.
    engines: &'a [Server],
    identity: Identity,
}

/// One run, with the processor time that engines used for a request of it, µs.
struct Sample {
    shot: Shot,
    engine_us: f64,
}

impl<'a> Way<'a> {
    fn new(server: &'a Server, engines: &'a [Server], identity: Identity) -> Self {
        Self {
            server,
            engines,
            identity,
        }
    }

    fn stream(&self, shares: Shares, connections: usize) -> ClosedStream {
        let sizes = Sizes::Constant(VALUE_BYTES);
        stream(self.identity.clone(), connections, 1, shares, KEYS, sizes)
    }

    fn ask(&self, setup: &Setup, stream: &ClosedStream) -> Result<Sample, ExperimentError> {
        let engines_s = || self.engines.iter().map(Server::cpu_s).sum::<f64>();
        let from_s = engines_s();
        let shot = shoot(setup, self.server, std::slice::from_ref(stream))?;
        let engine_us = (engines_s() - from_s) * 1e6 / shot.requests;
        Ok(Sample { shot, engine_us })
    }
}

/// Rows of a way through a proxy: how much later, by connections one by one; what it uses of a
/// processor, with as many as keep an engine busy; what is served, with as many as services have.
fn compare(
    setup: &Setup,
    rows: &mut Rows,
    direct: &Way<'_>,
    (label, through): (&str, &Way<'_>),
    [later, cpu, rate]: [Bound; 3],
) -> Result<(), ExperimentError> {
    let kinds: [(usize, String, Bound, Figure); 4] = [
        (
            1,
            format!("{label} later than direct, p50, µs"),
            later,
            |d, t| p50_us(t) - p50_us(d),
        ),
        (
            50,
            format!("CPU of {label} / engine's, direct"),
            cpu,
            |d, t| t.shot.server_us / d.engine_us,
        ),
        (
            500,
            format!("{label} / direct, rate by CPU"),
            rate,
            |d, t| d.engine_us / t.engine_us.max(t.shot.server_us),
        ),
        (
            500,
            format!("{label} / direct, client beside it"),
            Bound::Shown,
            |d, t| t.shot.rate() / d.shot.rate(),
        ),
    ];
    for (class, shares) in CLASSES {
        for connections in [1, 50, 500] {
            let kinds = kinds.iter().filter(|kind| kind.0 == connections);
            let named = kinds.map(|(_, what, bound, figure)| {
                (
                    format!("{class}, {connections} conn.: {what}"),
                    *bound,
                    *figure,
                )
            });
            let wanted: Vec<_> = named.filter(|(name, ..)| rows.wants(name)).collect();
            if wanted.is_empty() {
                continue;
            }
            let pairs = pairs(setup, direct, through, (shares, connections))?;
            for (name, bound, figure) in wanted {
                let samples = pairs.iter().map(|(d, t)| figure(d, t)).collect();
                rows.add(
                    Row::new(name, bound, samples)
                        .sides(sides(&pairs))
                        .figures(figures(&pairs)),
                );
            }
        }
    }
    Ok(())
}

/// What a row says of a run without and one with the proxy.
type Figure = fn(&Sample, &Sample) -> f64;

/// Runs of both ways, in turns.
fn pairs(
    setup: &Setup,
    direct: &Way<'_>,
    through: &Way<'_>,
    (shares, connections): (Shares, usize),
) -> Result<Vec<(Sample, Sample)>, ExperimentError> {
    let one = |way: &Way<'_>| way.ask(setup, &way.stream(shares, connections));
    (0..setup.repeats)
        .map(|_| Ok((one(direct)?, one(through)?)))
        .collect()
}

fn sides(pairs: &[(Sample, Sample)]) -> String {
    let direct = side(pairs, |(direct, _)| direct);
    let through = side(pairs, |(_, through)| through);
    let proxy_us: Vec<_> = pairs
        .iter()
        .map(|(_, through)| through.shot.server_us)
        .collect();
    let (proxy_us, remark) = (median(&proxy_us), pairs[0].1.shot.remark());
    format!("direct {direct}; through {through}, proxy {proxy_us:.1} µs{remark}")
}

fn side(pairs: &[(Sample, Sample)], pick: fn(&(Sample, Sample)) -> &Sample) -> String {
    let of = |figure: fn(&Sample) -> f64| {
        let figures: Vec<_> = pairs.iter().map(|pair| figure(pick(pair))).collect();
        median(&figures)
    };
    format!(
        "{}/s, p50 {:.0} p99 {:.0} µs, engine {:.1} µs CPU each",
        rate(of(|sample| sample.shot.rate())),
        of(p50_us),
        of(p99_us),
        of(|sample| sample.engine_us),
    )
}

fn figures(pairs: &[(Sample, Sample)]) -> serde_json::Value {
    let one = |sample: &Sample| {
        json!({
            "rate_per_s": sample.shot.rate(),
            "p50_us": p50_us(sample),
            "p99_us": p99_us(sample),
            "engine_cpu_us": sample.engine_us,
            "asked_cpu_us": sample.shot.server_us,
            "client_cpu_us": sample.shot.client_us,
        })
    };
    let both = |(direct, through): &(Sample, Sample)| json!([one(direct), one(through)]);
    json!({ "direct, through": pairs.iter().map(both).collect::<Vec<_>>() })
}

fn p50_us(sample: &Sample) -> f64 {
    sample.shot.percentile_us(50.0)
}

fn p99_us(sample: &Sample) -> f64 {
    sample.shot.percentile_us(99.0)
}
