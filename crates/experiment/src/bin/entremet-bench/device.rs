//! What the hook under RocksDB and the stage before the device cost: point gets of a server on a calibrated device
//! against one without.
//!
//! The parts without a server around them: `cargo run --release -p entremet-server --example bench_device`.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use experiment::ExperimentError;
use toml::Table;
use workload::draw::Sizes;

use crate::load::{fill, shoot, stream, ClosedStream, GETS};
use crate::overhead::compare;
use crate::rows::{Bound, Row, Rows};
use crate::server::{identity, pin_client, Entremet, Server};
use crate::Setup;

const TENANT: &str = "bench";
/// Fifty times the block cache where gets go to the disk, and an object cache of next to nothing.
const KEYS: u64 = 400_000;
const VALUE: Sizes = Sizes::Constant(1024);
/// A server that uses less of a processor than this does nothing.
const QUIET: f64 = 0.02;
/// Seconds after which one that is never quiet is taken as it is.
const SETTLE_S: u32 = 60;

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
        let staged = start(
            setup,
            "entremet (device stage)",
            block_cache,
            Some(&profile),
        )?;
        let bare = start(setup, "entremet", block_cache, None)?;
        for connections in wanted {
            let row = Row::new(name(place, connections), Bound::AtLeast(least), Vec::new());
            let streams = streams(connections);
            let of = |server| {
                let streams = &streams;
                move |setup: &Setup| shoot(setup, server, streams)
            };
            let both = (of(&staged), of(&bare));
            rows.add(compare(setup, row, both, ("with", "without"))?);
        }
    }
    Ok(())
}

/// The disk under the servers' folders.
fn calibrate(setup: &Setup, folder: &Path, profile: &Path) -> Result<(), ExperimentError> {
    println!("calibrating the disk, up to a minute");
    let mut command = Command::new(&setup.binary);
    command.arg("calibrate").arg(folder).arg("--quick");
    let output = command.arg("--out").arg(profile).output();
    let output = output.map_err(|source| ExperimentError::System {
        what: "calibrating the disk",
        source,
    })?;
    if output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        // The line with the depth: with more connections than that, gets also pay for waiting.
        let floor = said.lines().find(|line| line.starts_with("floor "));
        println!("{}", floor.unwrap_or_default());
        return Ok(());
    }
    Err(ExperimentError::Usage(format!(
        "the disk could not be calibrated: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

fn start(
    setup: &Setup,
    label: &'static str,
    block_cache: &str,
    profile: Option<&Path>,
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
    let server = entremet.start_with(setup, &more)?;
    fill(setup, &server, &streams(8))?;
    settle(&server);
    // Brings into the block cache what fits there.
    shoot(setup, &server, &streams(32))?;
    Ok(server)
}

/// Waits until what was stored is compacted: behind a stage that takes longer, and the processor it takes would count as a
/// cost of gets.
fn settle(server: &Server) {
    let mut before = server.cpu_s();
    for _ in 0..SETTLE_S {
        sleep(Duration::from_secs(1));
        let now = server.cpu_s();
        if now - before < QUIET {
            return;
        }
        before = now;
    }
}

fn streams(connections: usize) -> Vec<ClosedStream> {
    vec![stream(
        identity(TENANT),
        (connections, 1),
        GETS,
        KEYS,
        VALUE,
    )]
}
