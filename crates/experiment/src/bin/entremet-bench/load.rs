//! Closed loops against the servers of a bench.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use experiment::ExperimentError;
use workload::client::drive;
use workload::client::plan::{KeyText, Pace, Period, Plan, Stream};
use workload::client::preload::{self, Keyspace};
use workload::client::Identity;
use workload::draw::{Asks, Mixture, Shares, Sizes};
use workload::stats::Outcome;

use crate::server::Server;
use crate::Setup;

/// Length of keys, bytes; redis-benchmark's `key:000000012345` is as long.
pub const KEY_BYTES: u16 = 16;

/// How long the last replies are waited for.
const DRAIN: Duration = Duration::from_secs(5);

static RUNNING: AtomicBool = AtomicBool::new(false);

/// Reads only.
pub const GETS: Shares = Shares::GETS;
/// Writes only.
pub const PUTS: Shares = Shares::PUTS;

/// One tenant's closed loop.
#[derive(Clone, Debug)]
pub struct ClosedStream {
    /// Who it is.
    pub identity: Identity,
    /// Connections, at least 1.
    pub connections: usize,
    /// Requests outstanding per connection, at least 1.
    pub depth: usize,
    /// Length of keys, bytes.
    pub key_bytes: u16,
    /// What it asks.
    pub asks: Asks,
}

/// One run's result, with what it cost the server.
pub struct Shot {
    /// What the client measured.
    pub outcome: Outcome,
    /// Requests that were completed, those of the warm-up with them.
    pub requests: f64,
    /// Server CPU time per completed request, µs.
    pub server_us: f64,
    /// Client CPU time per completed request, µs.
    pub client_us: f64,
}

impl Shot {
    /// Of the latency of the first stream, µs.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        let latency = self.outcome.tenants[0].total().latency();
        latency.percentile_ns(percent) as f64 / 1e3
    }

    /// All streams together.
    pub fn rate(&self) -> f64 {
        self.outcome.rate_per_s()
    }

    /// A remark when the client had no CPU time to spare.
    pub fn remark(&self) -> &'static str {
        if self.outcome.generator.busy > 0.95 {
            " (client-bound)"
        } else {
            ""
        }
    }
}

/// One stream with uniform keys.
pub fn stream(
    identity: Identity,
    connections: usize,
    depth: usize,
    shares: Shares,
    keys: u64,
    sizes: Sizes,
) -> ClosedStream {
    let asks = Asks {
        shares,
        sizes,
        ..Asks::gets(keys)
    };
    ClosedStream {
        identity,
        connections,
        depth,
        key_bytes: KEY_BYTES,
        asks,
    }
}

/// Stores all keys of the streams.
pub fn fill(
    setup: &Setup,
    server: &Server,
    streams: &[ClosedStream],
) -> Result<(), ExperimentError> {
    let keyspace = |stream: &ClosedStream| {
        let mixture = Mixture::new(setup.seed, 0, stream.asks.clone());
        let text = KeyText::new(setup.seed, stream.key_bytes);
        Keyspace::of(&stream.identity, text, &mixture)
    };
    // One after the other, so that a thousand tenants do not need thousands of connections.
    for stream in streams {
        preload::run(&server.address.into(), vec![keyspace(stream)], &RUNNING)?;
    }
    Ok(())
}

/// Runs the streams on one client thread.
pub fn shoot(
    setup: &Setup,
    server: &Server,
    streams: &[ClosedStream],
) -> Result<Shot, ExperimentError> {
    let loop_of = |(index, stream): (usize, &ClosedStream)| {
        let mixture = Mixture::new(setup.seed, index as u64, stream.asks.clone());
        let pace = Pace::closed(mixture, stream.depth);
        let text = KeyText::new(setup.seed, stream.key_bytes);
        Stream::new(
            stream.identity.clone(),
            Period::new(stream.connections, text, pace),
        )
    };
    let plan = Plan {
        goal: server.address.into(),
        streams: streams.iter().enumerate().map(loop_of).collect(),
        warm_up: setup.warm_up,
        duration: setup.run,
        drain: DRAIN,
        threads: 1,
        spin: false,
    };
    let cpu_from_s = server.cpu_s();
    let outcome = drive::run(plan, &RUNNING, &mut |_| {})?;
    let server_cpu_s = server.cpu_s() - cpu_from_s;
    if let Some(why) = &outcome.cut_short {
        return Err(ExperimentError::Usage(format!(
            "a bench run ended early: {why}"
        )));
    }
    let errors = outcome
        .tenants
        .iter()
        .find_map(|s| s.errors.values().next());
    if let Some(error) = errors {
        return Err(ExperimentError::Usage(format!(
            "a bench run met an error: {}",
            error.example
        )));
    }
    let total: u64 = outcome.tenants.iter().map(|s| s.total().completed).sum();
    // The server's time covers the warm-up as well, so its requests are scaled to it.
    let whole = (setup.warm_up + setup.run).as_secs_f64() / setup.run.as_secs_f64();
    let measured = (total as f64).max(1.0);
    let requests = measured * whole;
    Ok(Shot {
        server_us: server_cpu_s * 1e6 / requests,
        client_us: outcome.generator.cpu_s * 1e6 / measured,
        requests,
        outcome,
    })
}
