//! Speed on the same cores as redis-server under the same promise, data in memory.

use experiment::ExperimentError;
use serde_json::json;
use workload::draw::{Shares, Sizes};
use workload::report::rate;

use crate::load::{fill, shoot, stream, ClosedStream, Shot, GETS, PUTS};
use crate::rows::{median, Bound, Row, Rows};
use crate::server::{identity, pin_client, Entremet, Server};
use crate::Setup;

const KEYS: u64 = 100_000;
const CONNECTIONS: usize = 50;
const VALUE: Sizes = Sizes::Constant(1024);
const TENANT: &str = "bench";

/// Name, class, depth, least ratio.
type Case = (&'static str, Shares, usize, f64);

const ONE_CORE: [Case; 4] = [
    ("GET P=1, 1 core", GETS, 1, 1.0),
    ("GET P=16, 1 core", GETS, 16, 0.6),
    ("SET P=1, 1 core", PUTS, 1, 0.8),
    ("SET P=16, 1 core", PUTS, 16, 0.5),
];
const TWO_CORES: Case = ("GET P=1, 2 cores", GETS, 1, 1.6);

/// Object cache of each tenant, MiB: everything fits.
const CACHE_MIB: u64 = 512;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    let redis = Server::redis(setup.server_core, &[])?;
    fill(setup, &redis, &streams(true, GETS, 1))?;
    let wanted: Vec<&Case> = ONE_CORE.iter().filter(|case| rows.wants(case.0)).collect();
    if !wanted.is_empty() {
        let ours = start(setup, vec![setup.server_core])?;
        for case in wanted {
            let both = [setup.client_core];
            compare(setup, rows, case, (&ours, &redis), (&both, &both))?;
        }
    }
    if rows.wants(TWO_CORES.0) && setup.server_core != setup.client_core {
        // Two cores are all that a small machine has: the client shares them with the server, so
        // that the ratio understates what the server could do with both.
        let cores = vec![setup.server_core, setup.client_core];
        let ours = start(setup, cores.clone())?;
        compare(
            setup,
            rows,
            &TWO_CORES,
            (&ours, &redis),
            (&cores, &[setup.client_core]),
        )?;
    }
    Ok(())
}

fn start(setup: &Setup, cores: Vec<usize>) -> Result<Server, ExperimentError> {
    let tenants = vec![(TENANT.to_string(), 1)];
    let options = Entremet {
        label: "entremet",
        request: "fair",
        cores,
        tenants,
        cache_mib: CACHE_MIB,
    };
    let server = options.start(setup)?;
    fill(setup, &server, &streams(false, GETS, 1))?;
    Ok(server)
}

fn streams(redis: bool, shares: Shares, depth: usize) -> Vec<ClosedStream> {
    let identity = if redis {
        Default::default()
    } else {
        identity(TENANT)
    };
    vec![stream(identity, (CONNECTIONS, depth), shares, KEYS, VALUE)]
}

fn compare(
    setup: &Setup,
    rows: &mut Rows,
    (name, shares, depth, least): &Case,
    (ours, redis): (&Server, &Server),
    (our_client, redis_client): (&[usize], &[usize]),
) -> Result<(), ExperimentError> {
    let (mut shots, mut baseline) = (Vec::new(), Vec::new());
    for _ in 0..setup.repeats {
        pin_client(our_client);
        shots.push(shoot(setup, ours, &streams(false, *shares, *depth))?);
        pin_client(redis_client);
        baseline.push(shoot(setup, redis, &streams(true, *shares, *depth))?);
    }
    let ratios = shots
        .iter()
        .zip(&baseline)
        .map(|(a, b)| a.rate() / b.rate())
        .collect();
    let of = |shots: &[Shot], pick: fn(&Shot) -> f64| {
        median(&shots.iter().map(pick).collect::<Vec<_>>())
    };
    let side = |label: &str, shots: &[Shot]| {
        format!(
            "{label} {}/s, {:.2} µs CPU each, p99 {:.0} µs{}",
            rate(of(shots, Shot::rate)),
            of(shots, |shot| shot.server_us),
            of(shots, p99_us),
            shots.last().map_or("", Shot::remark),
        )
    };
    let figures = |shots: &[Shot]| {
        json!({
            "rate_per_s": of(shots, Shot::rate),
            "server_cpu_us": of(shots, |shot| shot.server_us),
            "client_cpu_us": of(shots, |shot| shot.client_us),
            "client_busy": of(shots, |shot| shot.outcome.generator.busy),
            "p99_us": of(shots, p99_us),
        })
    };
    let sides = format!("{}; {}", side("entremet", &shots), side("redis", &baseline));
    let figures = json!({ "entremet": figures(&shots), "redis": figures(&baseline) });
    rows.add(
        Row::new(*name, Bound::AtLeast(*least), ratios)
            .sides(sides)
            .figures(figures),
    );
    if our_client.len() > 1 {
        // What two cores would serve if the client did not need its part of them.
        let pairs = shots.iter().zip(&baseline);
        let by_cpu = pairs
            .map(|(a, b)| 2.0 * b.server_us / a.server_us)
            .collect();
        let name = format!("{name}, by CPU time per request");
        rows.add(
            Row::new(name, Bound::Shown, by_cpu).sides("as if the client had cores of its own"),
        );
    }
    Ok(())
}

fn p99_us(shot: &Shot) -> f64 {
    let latency = shot.outcome.tenants[0].total().latency();
    latency.percentile_ns(99.0) as f64 / 1e3
}
