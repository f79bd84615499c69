//! What the hook under RocksDB and the stage before the device cost: point gets of a server on a
//! calibrated device against one without.
//!
//! The parts without a server around them: `cargo run --release -p entremet-server --example
//! bench_device`.

use std::path::Path;
use std::process::Command;

use experiment::ExperimentError;
use toml::Table;
use workload::draw::Sizes;

use crate::load::{fill, shoot, stream, ClosedStream, GETS};
use crate::overhead::{compare, Side};
use crate::rows::{Bound, Row, Rows};
use crate::server::{identity, pin_client, Entremet, Server};
use crate::Setup;

const TENANT: &str = "bench";
/// Fifty times the block cache where gets go to the disk, and an object cache of next to nothing.
const KEYS: u64 = 400_000;
const VALUE: Sizes = Sizes::Constant(1024);
/// Runs in which every block of the data is read several times.
const WARM_UPS: u32 = 2;
/// Times that the disk is calibrated at most: a machine that does something else meanwhile has no
/// plausible results.
const TRIES: u32 = 3;

/// Name, size of the block cache, connections, least ratio.
const CASES: [(&str, &str, &[usize], f64); 2] = [
    ("from the disk", "8MiB", &[8, 32], 0.97),
    ("from the block cache", "2GiB", &[32], 0.99),
];

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    pin_client(&[setup.client_core]);
    let name = |place: &str, connections: usize| {
        format!("device stage / none, GET 1 KiB {place}, {connections} connections")
    };
    let folder = tempfile::tempdir().map_err(|source| ExperimentError::System {
        what: "making a temporary folder",
        source,
    })?;
    let profile = folder.path().join("device.toml");
    for (place, block_cache, connections, least) in CASES {
        let wanted = |many: &&usize| rows.wants(&name(place, **many));
        let wanted: Vec<usize> = connections.iter().filter(wanted).copied().collect();
        if wanted.is_empty() {
            continue;
        }
        if !profile.exists() {
            calibrate(setup, folder.path(), &profile)?;
        }
        // The same files for both: how many a get looks into, and what is in memtables, is worth
        // several percent.
        let mut filled = start(setup, "entremet", block_cache, None, None)?;
        fill(setup, &filled, &streams(8, 1))?;
        // Behind a stage compaction takes longer, and the processor it takes would count as a cost
        // of gets.
        filled.settle();
        filled.end();
        let begin = |label, profile| {
            let server = start(setup, label, block_cache, profile, Some(&filled.data()))?;
            server.settle();
            // Brings into the block cache what fits there: a get that goes to the disk costs as
            // much as five that do not.
            for _ in 0..WARM_UPS {
                shoot(setup, &server, &streams(32, 16))?;
            }
            Ok::<_, ExperimentError>(server)
        };
        let mut pairs: Vec<Vec<Row>> = wanted.iter().map(|_| Vec::new()).collect();
        let once = Setup {
            repeats: 1,
            ..setup.clone()
        };
        // Where in memory a process happens to lie is worth ten percent for as long as it lives, so
        // there are several of each, and either is the first in turn.
        for pair in 0..setup.repeats {
            let staged = || begin("entremet (device stage)", Some(&*profile));
            let bare = || begin("entremet", None);
            let (staged, bare) = if pair % 2 == 0 {
                let first = staged()?;
                (first, bare()?)
            } else {
                let first = bare()?;
                (staged()?, first)
            };
            for (pair, &connections) in pairs.iter_mut().zip(&wanted) {
                let row = Row::new(name(place, connections), Bound::AtLeast(least), Vec::new());
                let streams = &streams(connections, 1);
                let side = |word, server| Side {
                    word,
                    shoot: move |setup: &Setup| shoot(setup, server, streams),
                };
                let (with, without) = (side("with", &staged), side("without", &bare));
                pair.push(compare(&once, row, with, without)?);
            }
        }
        let figures = pairs.into_iter().filter_map(of_pairs);
        figures.for_each(|row| rows.add(row));
    }
    Ok(())
}

/// One row of those that pairs of servers gave: each pair is one sample.
fn of_pairs(pairs: Vec<Row>) -> Option<Row> {
    let samples = pairs.iter().map(|row| row.measured).collect();
    let figures = pairs.iter().map(|row| row.figures.clone()).collect();
    let last = pairs.into_iter().next_back()?;
    let row = Row::new(last.name, last.bound, samples);
    Some(row.sides(last.sides).figures(figures))
}

/// The disk under the servers' folders.
fn calibrate(setup: &Setup, folder: &Path, profile: &Path) -> Result<(), ExperimentError> {
    let mut said = String::new();
    for _ in 0..TRIES {
        println!("calibrating the disk, up to a minute");
        let mut command = Command::new(&setup.binary);
        command.arg("calibrate").arg(folder).arg("--quick");
        let output = command.arg("--out").arg(profile).output();
        let output = output.map_err(|source| ExperimentError::System {
            what: "calibrating the disk",
            source,
        })?;
        if output.status.success() {
            let told = String::from_utf8_lossy(&output.stdout);
            // The line with the depth: with more connections than that, gets also pay for waiting.
            let floor = told.lines().find(|line| line.starts_with("floor "));
            println!("{}", floor.unwrap_or_default());
            return Ok(());
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    let why = said.trim().lines().last().unwrap_or_default();
    Err(ExperimentError::Usage(format!(
        "the disk could not be calibrated in {TRIES} tries: {why}"
    )))
}

fn start(
    setup: &Setup,
    label: &'static str,
    block_cache: &str,
    profile: Option<&Path>,
    data: Option<&Path>,
) -> Result<Server, ExperimentError> {
    let mut more = Table::new();
    let engine = [
        ("object_cache".to_string(), "1MiB".into()),
        ("block_cache".to_string(), block_cache.into()),
        ("handlers".to_string(), 32.into()),
    ];
    more.insert("engine".into(), Table::from_iter(engine).into());
    if let Some(profile) = profile {
        let profile = profile.display().to_string();
        let device = [("profile".to_string(), profile.into())];
        more.insert("device".into(), Table::from_iter(device).into());
    }
    let entremet = Entremet {
        label,
        request: "fair",
        cores: vec![setup.server_core],
        tenants: vec![(TENANT.to_string(), 1)],
        cache_mib: 0,
    };
    entremet.start_with(setup, &more, data)
}

fn streams(connections: usize, depth: usize) -> Vec<ClosedStream> {
    vec![stream(
        identity(TENANT),
        connections,
        depth,
        GETS,
        KEYS,
        VALUE,
    )]
}
