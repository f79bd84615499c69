//! `entremet sim`: the command line of the simulator.

use crate::error::SimError;
use crate::outcome::Outcome;
use crate::scenario::Plan;
use crate::summary::Summary;
use crate::world::World;
use clap::Args;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

const AFTER_HELP: &str = "\
Plays a scenario (the language of `entremet load`; docs/reference/simulator.md has what is added and what is left
out) against a simulated cluster that runs the policies of the server. The same seed gives the same result, to
the byte, on every machine.

Examples:
  entremet sim scenarios/simulated/cluster.toml
  entremet sim scenarios/simulated/cluster.toml --seed 7 --out result";

/// `entremet sim`.
#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct SimArgs {
    /// Scenario file (TOML)
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,

    /// Seed instead of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Folder for result.json and report.html, made if it is missing
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Writes the report of a run: what was played, what came of it, the scenario's text.
pub type Page = dyn Fn(&Plan, &Outcome, &str) -> String;

/// Runs the command: a table on standard output, `result.json` and, by `page`, `report.html` in the
/// folder.
///
/// # Errors
/// [`SimError`]: a scenario that cannot be simulated, a result that cannot be written.
pub fn run(args: &SimArgs, page: &Page) -> Result<(), SimError> {
    let (mut plan, text) = Plan::load(&args.scenario)?;
    if let Some(seed) = args.seed {
        plan.spec.seed = seed;
    }
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(|source| written(folder, source))?;
    }
    let mut world = World::new(&plan.spec);
    let mut progress = Progress::new(plan.spec.duration_ns);
    while world.step() {
        progress.show(world.now());
    }
    progress.end();
    let outcome = world.outcome();
    let summary = Summary::new(&plan, &outcome);
    let table = summary.table();
    let standard = Path::new("standard output");
    std::io::stdout()
        .write_all(table.as_bytes())
        .map_err(|source| written(standard, source))?;
    if let Some(folder) = &args.out {
        let path = folder.join("result.json");
        let json = serde_json::to_string_pretty(&summary)
            .map_err(|error| written(&path, std::io::Error::other(error)))?;
        std::fs::write(&path, json + "\n").map_err(|source| written(&path, source))?;
        let path = folder.join("report.html");
        std::fs::write(&path, page(&plan, &outcome, &text))
            .map_err(|source| written(&path, source))?;
    }
    Ok(())
}

fn written(path: &Path, source: std::io::Error) -> SimError {
    SimError::Output {
        path: path.into(),
        source,
    }
}

/// A line on a terminal that says how far the run is.
struct Progress {
    end_ns: u64,
    shown: u64,
    terminal: bool,
}

impl Progress {
    fn new(end_ns: u64) -> Self {
        Progress {
            end_ns: end_ns.max(1),
            shown: 0,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    #[inline]
    fn show(&mut self, now_ns: u64) {
        let percent = (u128::from(now_ns) * 100 / u128::from(self.end_ns)) as u64;
        if percent > self.shown && self.terminal {
            self.shown = percent;
            eprint!("\r{percent:>3} %");
        }
    }

    fn end(&self) {
        if self.terminal {
            eprint!("\r     \r");
        }
    }
}
