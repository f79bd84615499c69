//! Speed on the same cores as redis-server, and Valkey where it is found, under the same promise,
//! data in memory.

use std::path::{Path, PathBuf};

use experiment::ExperimentError;
use serde_json::json;
use workload::draw::{Shares, Sizes};
use workload::report::rate;

use crate::load::{fill, shoot, stream, ClosedStream, Shot, GETS, PUTS};
use crate::rows::{median, Bound, Row, Rows};
use crate::server::{identity, on_path, pin_client, Entremet, Server, REDIS};
use crate::Setup;

const KEYS: u64 = 100_000;
const CONNECTIONS: usize = 50;
const TENANT: &str = "bench";

/// One cell: what is asked, how many requests are sent at once, and bytes of a value.
struct Case {
    class: &'static str,
    shares: Shares,
    depth: usize,
    value_bytes: u32,
    /// Least ratio of our rate to the other's.
    least: f64,
}

const DEPTHS: [usize; 2] = [1, 16];
const SIZES: [u32; 2] = [3, 1024];
const CLASSES: [(&str, Shares); 2] = [("GET", GETS), ("SET", PUTS)];

/// Object cache of each tenant, MiB: everything fits.
const CACHE_MIB: u64 = 512;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    let mut rivals = vec![("redis", PathBuf::from(REDIS))];
    rivals.extend(valkey().map(|program| ("valkey", program)));
    for (rival, program) in &rivals {
        for value_bytes in SIZES {
            one_core(setup, rows, (rival, program), value_bytes)?;
        }
    }
    two_cores(setup, rows)
}

fn one_core(
    setup: &Setup,
    rows: &mut Rows,
    (rival, program): (&str, &Path),
    value_bytes: u32,
) -> Result<(), ExperimentError> {
    let cells = DEPTHS.map(|depth| CLASSES.map(|class| Case::of(class, depth, value_bytes)));
    let cases = cells.as_flattened().iter();
    let wanted: Vec<&Case> = cases.filter(|case| rows.wants(&case.name(rival))).collect();
    let Some(any) = wanted.first() else {
        return Ok(());
    };
    let theirs = Server::redis(program, setup.server_core, &[])?;
    fill(setup, &theirs, &any.streams(true))?;
    let ours = start(setup, vec![setup.server_core], any)?;
    let client = &[setup.client_core];
    for case in wanted {
        let [ours, theirs] = [("entremet", &ours), (rival, &theirs)].map(|(label, server)| Side {
            label,
            server,
            client,
        });
        compare(setup, rows, case, &case.name(rival), ours, theirs)?;
    }
    Ok(())
}

/// Two cores are all that a small machine has: the client shares them with the server, so that the
/// ratio understates what the server could do with both.
fn two_cores(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    let case = Case {
        least: 1.6,
        ..Case::of(CLASSES[0], 1, 1024)
    };
    let name = "GET P=1 1024 B, 2 cores / redis";
    if !rows.wants(name) || setup.server_core == setup.client_core {
        return Ok(());
    }
    let cores = vec![setup.server_core, setup.client_core];
    let redis = Server::redis(Path::new(REDIS), setup.server_core, &[])?;
    fill(setup, &redis, &case.streams(true))?;
    let ours = start(setup, cores.clone(), &case)?;
    let ours = Side {
        label: "entremet",
        server: &ours,
        client: &cores,
    };
    let redis = Side {
        label: "redis",
        server: &redis,
        client: &[setup.client_core],
    };
    compare(setup, rows, &case, name, ours, redis)
}

/// Where Valkey is, if it is on this machine: `$VALKEY_SERVER`, or on the path.
fn valkey() -> Option<PathBuf> {
    let named = std::env::var_os("VALKEY_SERVER").map(PathBuf::from);
    let there = named.or_else(|| on_path("valkey-server"));
    if there.is_none() {
        println!("valkey-server is not there: not compared (say where it is in VALKEY_SERVER)");
    }
    there
}

impl Case {
    fn of((class, shares): (&'static str, Shares), depth: usize, value_bytes: u32) -> Self {
        Self {
            class,
            shares,
            depth,
            value_bytes,
            least: 1.0,
        }
    }

    fn name(&self, rival: &str) -> String {
        let Self {
            class,
            depth,
            value_bytes,
            ..
        } = self;
        format!("{class} P={depth} {value_bytes} B, 1 core / {rival}")
    }

    /// `redis`: without tenants.
    fn streams(&self, redis: bool) -> Vec<ClosedStream> {
        let identity = if redis {
            Default::default()
        } else {
            identity(TENANT)
        };
        let value = Sizes::Constant(self.value_bytes);
        vec![stream(
            identity,
            CONNECTIONS,
            self.depth,
            self.shares,
            KEYS,
            value,
        )]
    }
}

fn start(setup: &Setup, cores: Vec<usize>, case: &Case) -> Result<Server, ExperimentError> {
    let tenants = vec![(TENANT.to_string(), 1)];
    let options = Entremet {
        label: "entremet",
        request: "fair",
        cores,
        tenants,
        cache_mib: CACHE_MIB,
    };
    let server = options.start(setup)?;
    fill(setup, &server, &case.streams(false))?;
    Ok(server)
}

/// A server, and the cores that its client runs on.
struct Side<'a> {
    label: &'a str,
    server: &'a Server,
    client: &'a [usize],
}

fn compare(
    setup: &Setup,
    rows: &mut Rows,
    case: &Case,
    name: &str,
    ours: Side<'_>,
    theirs: Side<'_>,
) -> Result<(), ExperimentError> {
    let (mut shots, mut baseline) = (Vec::new(), Vec::new());
    for _ in 0..setup.repeats {
        pin_client(ours.client);
        shots.push(shoot(setup, ours.server, &case.streams(false))?);
        pin_client(theirs.client);
        baseline.push(shoot(setup, theirs.server, &case.streams(true))?);
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
            of(shots, |shot| shot.percentile_us(99.0)),
            shots.last().map_or("", Shot::remark),
        )
    };
    let figures = |shots: &[Shot]| {
        json!({
            "rate_per_s": of(shots, Shot::rate),
            "server_cpu_us": of(shots, |shot| shot.server_us),
            "client_cpu_us": of(shots, |shot| shot.client_us),
            "client_busy": of(shots, |shot| shot.outcome.generator.busy),
            "p99_us": of(shots, |shot| shot.percentile_us(99.0)),
        })
    };
    let sides = [(ours.label, &shots), (theirs.label, &baseline)];
    let figures = sides.map(|(label, shots)| (label.to_owned(), figures(shots)));
    let figures = serde_json::Value::from_iter(figures);
    let sides = sides.map(|(label, shots)| side(label, shots)).join("; ");
    rows.add(
        Row::new(name, Bound::AtLeast(case.least), ratios)
            .sides(sides)
            .figures(figures),
    );
    if ours.client.len() > 1 {
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
