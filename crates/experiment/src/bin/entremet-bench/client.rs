//! The client itself: it must cost less than redis-benchmark, or it would be what is measured.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use experiment::ExperimentError;
use serde_json::json;
use workload::client::plan::{KeyText, Pace, Period, Plan, Stream};
use workload::client::{drive, process, Identity};
use workload::draw::{Asks, Mixture, Shares, Sizes};
use workload::report::rate;
use workload::rng::Rng;
use workload::source::{Curve, CurveSource};

use crate::load::{fill, shoot, stream, ClosedStream, GETS, KEY_BYTES, PUTS};
use crate::rows::{median, Bound, Row, Rows};
use crate::server::{pin_client, pinned, Server, REDIS};
use crate::Setup;

const KEYS: u64 = 100_000;
const CONNECTIONS: usize = 50;
/// What one core must be able to offer, requests per second.
const OPEN_PER_S: f64 = 300_000.0;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    let redis = Server::redis(Path::new(REDIS), setup.server_core, &[])?;
    pin_client(&[setup.client_core]);
    let of = |shares, depth| {
        let (identity, value) = (Identity::default(), Sizes::Constant(1024));
        vec![stream(identity, CONNECTIONS, depth, shares, KEYS, value)]
    };
    fill(setup, &redis, &of(GETS, 1))?;
    // redis-benchmark reads keys of its own: five times as many random puts as keys leave 1 % out.
    redis_benchmark(setup, &redis, "set", 16, 5 * KEYS)?;
    let cases: [(&str, Shares, usize); 4] = [
        ("get", GETS, 1),
        ("get", GETS, 16),
        ("set", PUTS, 1),
        ("set", PUTS, 16),
    ];
    for (test, shares, depth) in cases {
        let name = format!("CPU per {test}, P={depth} / redis-benchmark");
        if rows.wants(&name) {
            cost(setup, rows, &redis, &name, test, depth, &of(shares, depth))?;
        }
    }
    let name = "open loop, 300,000/s offered, sent in time";
    if rows.wants(name) {
        open_loop(setup, rows, &redis, name)?;
    }
    Ok(())
}

fn cost(
    setup: &Setup,
    rows: &mut Rows,
    redis: &Server,
    name: &str,
    test: &str,
    depth: usize,
    streams: &[ClosedStream],
) -> Result<(), ExperimentError> {
    let (mut ours, mut theirs, mut our_rate, mut their_rate) = (vec![], vec![], vec![], vec![]);
    for _ in 0..setup.repeats {
        let shot = shoot(setup, redis, streams)?;
        ours.push(shot.client_us);
        our_rate.push(shot.rate());
        // About as many requests as ours made.
        let requests = (shot.rate() * setup.run.as_secs_f64()) as u64 + 1_000;
        let (cpu_us, per_s) = redis_benchmark(setup, redis, test, depth, requests)?;
        theirs.push(cpu_us);
        their_rate.push(per_s);
    }
    let ratios = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
    let sides = format!(
        "ours {:.2} µs at {}/s; redis-benchmark {:.2} µs at {}/s",
        median(&ours),
        rate(median(&our_rate)),
        median(&theirs),
        rate(median(&their_rate))
    );
    let figures = json!({ "ours_us": ours, "redis_benchmark_us": theirs });
    rows.add(
        Row::new(name, Bound::AtMost(1.0), ratios)
            .sides(sides)
            .figures(figures),
    );
    Ok(())
}

/// Runs redis-benchmark; returns its CPU time per request (µs) and its rate.
fn redis_benchmark(
    setup: &Setup,
    redis: &Server,
    test: &str,
    depth: usize,
    requests: u64,
) -> Result<(f64, f64), ExperimentError> {
    let mut command = pinned(&[setup.client_core], Path::new("redis-benchmark"));
    command
        .args([
            "-p",
            &redis.address.port().to_string(),
            "-t",
            test,
            "-d",
            "1024",
            "-q",
        ])
        .args(["-c", &CONNECTIONS.to_string(), "-P", &depth.to_string()])
        .args(["-n", &requests.to_string(), "-r", &KEYS.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let begun = Instant::now();
    let mut child = command.spawn().map_err(|source| ExperimentError::System {
        what: "starting redis-benchmark",
        source,
    })?;
    let cpu_s = wait_for_cpu(&mut child, begun + 20 * setup.run + Duration::from_secs(10));
    let elapsed_s = begun.elapsed().as_secs_f64();
    Ok((cpu_s * 1e6 / requests as f64, requests as f64 / elapsed_s))
}

/// CPU time of a child, read between its end and its being waited for: then the figure is final and
/// still there.
fn wait_for_cpu(child: &mut Child, deadline: Instant) -> f64 {
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
        let ended = stat.map_or(true, |stat| stat.contains(") Z "));
        if ended || Instant::now() > deadline {
            let cpu_s = process::cpu_s(child.id()).unwrap_or(0.0);
            let _ = child.kill();
            let _ = child.wait();
            return cpu_s;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Offers more than most servers can take and asks whether it all left in time.
fn open_loop(
    setup: &Setup,
    rows: &mut Rows,
    redis: &Server,
    name: &str,
) -> Result<(), ExperimentError> {
    let (mut shares_sent, mut lags, mut busy) = (Vec::new(), Vec::new(), Vec::new());
    for repeat in 0..setup.repeats {
        let mixture = Mixture::new(setup.seed, repeat as u64, Asks::gets(KEYS));
        let curve = Curve {
            rates_per_s: vec![OPEN_PER_S],
            step_s: 1.0,
        };
        let rng = Rng::new(setup.seed, 100 + repeat as u64);
        let source = CurveSource::new(curve, vec![GETS], mixture, rng);
        let text = KeyText::new(setup.seed, KEY_BYTES);
        let period = Period::new(8, text, Pace::open(Box::new(source)));
        let plan = Plan {
            goal: redis.address.into(),
            streams: vec![Stream::new(Identity::default(), period)],
            warm_up: Duration::ZERO,
            duration: setup.run,
            drain: Duration::from_secs(5),
            threads: 1,
            spin: false,
        };
        let outcome = drive::run(plan, &AtomicBool::new(false), &mut |_| {})?;
        let offered = outcome.tenants[0].total().offered as f64;
        shares_sent.push(offered / outcome.elapsed_s / OPEN_PER_S);
        lags.push(outcome.generator.lag.percentile_ns(99.0) as f64 / 1e3);
        busy.push(outcome.generator.busy);
    }
    let sides = format!(
        "p99 lag {:.0} µs, CPU {:.0} % busy",
        median(&lags),
        median(&busy) * 100.0
    );
    let figures = json!({ "lag_us_p99": lags, "busy": busy });
    rows.add(
        Row::new(name, Bound::AtLeast(0.99), shares_sent)
            .sides(sides)
            .figures(figures),
    );
    Ok(())
}
