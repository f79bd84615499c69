//! `make bench`: speed, memory and cost, each row with its baseline beside it. Fairness and
//! isolation are experiments (`entremet experiment`).
//!
//! Every comparison runs both servers in one session and takes turns (ABAB…), because machines are
//! shared and noisy: a row is the median of the ratios of neighbouring runs. Server and client are
//! pinned to different cores; nothing else should run meanwhile.

mod client;
mod device;
mod front;
mod load;
mod memory;
mod overhead;
mod rows;
mod server;
mod speed;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use experiment::spec::merge::lay_over;
use experiment::ExperimentError;
use rows::Rows;

/// Groups in the order in which they run, and whether they need Entremet itself.
const GROUPS: [(&str, Group, bool); 6] = [
    ("client", client::run, false),
    ("speed", speed::run, true),
    ("overhead", overhead::run, true),
    ("device", device::run, true),
    ("memory", memory::run, true),
    ("front", front::run, true),
];

type Group = fn(&Setup, &mut Rows) -> Result<(), ExperimentError>;

/// Benchmarks of Entremet against redis-server and against its own baselines.
#[derive(Parser)]
#[command(name = "entremet-bench", version)]
struct Arguments {
    /// The entremet binary; without it only what needs none runs
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,

    /// Shorter and fewer runs: for a first look, not for a verdict
    #[arg(long)]
    quick: bool,

    /// Only groups and rows whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// Seconds per run
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,

    /// Runs of each side of a comparison
    #[arg(long, value_name = "N")]
    repeats: Option<usize>,

    /// Adds a line to the server's configuration, for example engine.cache="1 GiB"
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,

    /// Folder for result.json
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Fixes keys, sizes and mixes
    #[arg(long, default_value = "1")]
    seed: u64,
}

/// What every group works with.
#[derive(Clone)]
pub struct Setup {
    /// The entremet binary; groups that need it are not called without it.
    pub binary: PathBuf,
    /// Length of one measured run.
    pub run: Duration,
    /// Length of what comes before it.
    pub warm_up: Duration,
    /// Runs of each side, at least 1.
    pub repeats: usize,
    /// First look rather than verdict.
    pub quick: bool,
    /// Laid over the server's configuration.
    pub set: toml::Table,
    /// Fixes keys, sizes and mixes.
    pub seed: u64,
    /// The core of the server under test.
    pub server_core: usize,
    /// The core of the client.
    pub client_core: usize,
}

fn setup(arguments: &Arguments) -> Result<Setup, ExperimentError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        println!("NOTE: one core only: client and server share it, speeds mean little");
    }
    let (run_s, repeats) = if arguments.quick { (1.0, 3) } else { (3.0, 5) };
    Ok(Setup {
        binary: arguments.server.clone().unwrap_or_default(),
        run: Duration::from_secs_f64(arguments.seconds.unwrap_or(run_s).clamp(0.05, 3600.0)),
        warm_up: Duration::from_millis(if arguments.quick { 200 } else { 500 }),
        repeats: arguments.repeats.unwrap_or(repeats).max(1),
        quick: arguments.quick,
        set: settings(&arguments.set)?,
        seed: arguments.seed,
        server_core: 0,
        client_core: cores - 1,
    })
}

fn settings(lines: &[String]) -> Result<toml::Table, ExperimentError> {
    let mut all = toml::Table::new();
    for line in lines {
        let one: toml::Table = line.parse().map_err(|error| {
            ExperimentError::Usage(format!("--set {line}: expected SECTION.KEY=VALUE: {error}"))
        })?;
        lay_over(&mut all, &one);
    }
    Ok(all)
}

fn bench(arguments: &Arguments) -> Result<bool, ExperimentError> {
    let setup = setup(arguments)?;
    workload::client::process::raise_file_limit();
    let mut rows = Rows::new(arguments.only.clone());
    for (name, group, needs_binary) in GROUPS {
        if !rows.wants_group(name) {
            continue;
        }
        if needs_binary && arguments.server.is_none() {
            println!("{name}: not run, it needs --server");
            continue;
        }
        rows.begin(name);
        group(&setup, &mut rows)?;
    }
    rows.finish(arguments.out.as_deref(), arguments.seed)
}

fn main() -> ExitCode {
    match bench(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("entremet-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
