//! `entremet experiment`: the command line.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use device::Profile;
use settings::units::Time;
use signal_hook::consts::{SIGINT, SIGTERM};
use workload::client::process;
use workload::report::rate;

use crate::done::Done;
use crate::error::ExperimentError;
use crate::kept::{self, Again, Kept};
use crate::observed::Observed;
use crate::plan::{self, Only, Run};
use crate::player::LoadClient;
use crate::runner::{self, Setup};
use crate::server::pin;
use crate::spec::Experiment;
use crate::{examples, find, list, machine, report, result, summary, table};

/// Notes that are printed.
const NOTES_MAX: usize = 5;

const AFTER_HELP: &str = "\
Each experiment is a folder (docs/reference/experiment.md) that shows a published result again: the real server
is started for every run, on processors of its own, baselines and ours in turn; what takes many machines is
played by the simulator. The verdicts are printed, and written with all figures to DIR/NAME/result.json and, with
pictures, to DIR/NAME/report.html; DIR/summary.html and DIR/summary.svg have the verdicts of all.

Every run is kept in DIR/NAME/runs, and is not made again for the same binary and scenario, unless --again asks
for it. So a long experiment can be run in slices (--within).

Exit status: 0 every judged target was met, 1 one was missed or could not be judged, 2 wrong usage, 3 --within
was up before all runs were made. With --quick a target that a short run cannot tell is `not judged`, which is
no failure.

Examples:
  entremet experiment list
  entremet experiment pisces-fairness
  entremet experiment all --quick
  entremet experiment all --within 8min
  entremet experiment summary
  entremet experiment pisces-workloads --only fair/'mixed, 1 KiB, sigma 1' --repeats 3";

/// Run published results again, and judge them.
#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct ExperimentArgs {
    /// `list`, `summary` (of the results in DIR), `all`, or names of experiments
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,

    /// Run each for a few seconds only: a first look, too short for some verdicts
    #[arg(long)]
    pub quick: bool,

    /// Run only this variant and this point of one experiment; either may be left out
    #[arg(long, value_name = "VARIANT/POINT")]
    pub only: Option<String>,

    /// Runs of each variant at each point [default: the experiment's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeats: Option<u16>,

    /// Make runs again that were made before: all, or those that were disturbed
    #[arg(long, value_name = "WHICH", default_value = "none", default_missing_value = "all", num_args = 0..=1)]
    pub again: Again,

    /// Begin no run that would not end in this time, such as 8min; the same command goes on later
    #[arg(long, value_name = "TIME")]
    pub within: Option<Time>,

    /// Use the disk that `entremet calibrate` measured in FILE instead of an emulated one; data
    /// lies in the temporary directory (TMPDIR), which must be on that disk
    #[arg(long, value_name = "FILE")]
    pub device: Option<PathBuf>,

    /// Folder for results
    #[arg(long, value_name = "DIR", default_value = "experiment-results")]
    pub out: PathBuf,

    /// Folder of the experiments
    #[arg(long, value_name = "DIR", default_value = "experiments")]
    pub experiments: PathBuf,

    /// The binary whose server is measured [default: this one]
    #[arg(long, value_name = "FILE")]
    pub server: Option<PathBuf>,
}

/// Runs `entremet experiment`; failures of single experiments are printed and make the status 1.
///
/// # Errors
/// What keeps it from running anything. [`ExperimentError::exit_status`] says which status it
/// stands for.
pub fn run(args: &ExperimentArgs) -> Result<ExitCode, ExperimentError> {
    let (experiments, out) = (&args.experiments, &args.out);
    if args.names == ["list"] {
        print!("{}", list::text(experiments)?);
        return Ok(ExitCode::SUCCESS);
    }
    if args.names == ["summary"] {
        print!("{}", summary::text(experiments, out)?);
        println!("{}", summary::write(experiments, out)?.display());
        return Ok(ExitCode::SUCCESS);
    }
    let until = args.within.map(|time| Instant::now() + time.duration());
    let mut experiments = find::read(&args.experiments, &args.names)?;
    if let Some(profile) = &args.device {
        on_disk(&mut experiments, profile)?;
    }
    if args.only.is_some() && experiments.len() != 1 {
        let what = "--only goes with the name of one experiment";
        return Err(ExperimentError::Usage(what.into()));
    }
    let binary = match &args.server {
        Some(binary) => binary.clone(),
        None => std::env::current_exe().map_err(|source| ExperimentError::System {
            what: "finding this binary, which is the server under test",
            source,
        })?,
    };
    process::raise_file_limit();
    let processors = pin::available()?;
    let stop = watch_interrupt()?;
    let build = build(&binary);
    let usual = Setup {
        binary: &binary,
        quick: args.quick,
        repeats: args.repeats.map(usize::from),
        only: None,
        processors: &processors,
        meter: &machine::ticks,
        kept: None,
        until,
        player: &LoadClient,
        stop: &stop,
        command: String::new(),
    };
    all(args, &experiments, &usual, &build)
}

/// Runs them, one after the other. Of `usual` each has its own extent, folder and command.
fn all(
    args: &ExperimentArgs,
    experiments: &[Experiment],
    usual: &Setup,
    build: &str,
) -> Result<ExitCode, ExperimentError> {
    let (mut failed, mut more) = (Vec::new(), false);
    for experiment in experiments {
        let only = args.only.as_deref();
        let runs = args.out.join(&experiment.name).join("runs");
        let setup = Setup {
            only: only.map(|only| Only::parse(only, experiment)).transpose()?,
            kept: Some(Kept::new(runs, build, args.again)),
            command: command(args, experiment),
            ..usual.clone()
        };
        let fits = args
            .within
            .map_or(Ok(()), |slice| fits(slice, experiment, &setup));
        match fits.and_then(|()| one(experiment, &setup, &args.out)) {
            Ok(true) => {}
            Ok(false) => failed.push(experiment.name.as_str()),
            Err(ExperimentError::TimeIsUp) => {
                println!("{}: {}", experiment.name, ExperimentError::TimeIsUp);
                more = true;
            }
            Err(error)
                if matches!(error, ExperimentError::Interrupted) || experiments.len() == 1 =>
            {
                return Err(error);
            }
            Err(error) => {
                eprintln!("entremet: {}: {error}", experiment.name);
                failed.push(experiment.name.as_str());
            }
        }
    }
    let page = summary::write(&args.experiments, &args.out)?;
    println!("all results: {}", page.display());
    if experiments.len() > 1 && !failed.is_empty() {
        let (count, all) = (failed.len(), experiments.len());
        println!("{count} of {all} experiments failed: {}", failed.join(", "));
    }
    Ok(match (more, failed.is_empty()) {
        (true, _) => ExitCode::from(ExperimentError::TimeIsUp.exit_status()),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

/// A run that is longer than a slice would never begin, however often the command is repeated. A
/// slice of no time is another thing: it asks for what was kept.
fn fits(slice: Time, experiment: &Experiment, setup: &Setup) -> Result<(), ExperimentError> {
    let runs = plan::runs(experiment, setup.quick, setup.repeats, setup.only.as_ref());
    let seconds = |run: &Run| run.seconds(experiment, setup.quick).ceil();
    let longest = runs.iter().map(seconds).fold(0.0, f64::max);
    let slice_s = slice.duration().as_secs_f64();
    if slice_s == 0.0 || longest <= slice_s {
        return Ok(());
    }
    Err(ExperimentError::Usage(format!(
        "{}: a run of it takes {longest} s, and none begins that does not end in the {slice} of --within: give it more",
        experiment.name
    )))
}

/// Everything that measures: this process, the server, and what programs start.
fn build(server: &Path) -> String {
    let this = std::env::current_exe().unwrap_or_default();
    let examples = examples::ALL.map(|name| examples::path(server, name));
    let binaries = [this.as_path(), server];
    let all = binaries
        .into_iter()
        .chain(examples.iter().map(AsRef::as_ref));
    kept::build(all)
}

/// Has all of them use that disk, and says so here and where readers of their reports begin.
fn on_disk(experiments: &mut [Experiment], profile: &Path) -> Result<(), ExperimentError> {
    let wrong =
        |what: String| ExperimentError::Usage(format!("--device {}: {what}", profile.display()));
    let device = Profile::load(profile).map_err(|error| wrong(error.to_string()))?;
    // The servers have working directories of their own.
    let path = std::path::absolute(profile).map_err(|error| wrong(error.to_string()))?;
    let (disk, measured) = (&device.machine.disk, &device.measured);
    let note = format!(
        "On {disk}, calibrated to {:.0} VOP/s and {} I/Os at a time, in the place of the emulated device that the texts speak of.",
        measured.floor_per_s, measured.depth
    );
    for experiment in experiments {
        if !experiment.on_disk(&path) {
            let name = &experiment.name;
            return Err(wrong(format!(
                "{name} has no emulated device in whose place it could be"
            )));
        }
        experiment.shows += &format!(" {note}");
    }
    println!("{note}");
    Ok(())
}

/// Runs one, prints its verdicts, writes its results. True if no target was missed.
fn one(experiment: &Experiment, setup: &Setup, out: &Path) -> Result<bool, ExperimentError> {
    println!("== {}: {}", experiment.name, experiment.title);
    let mut teller =
        |at: usize, of: usize, run: &Run, observed: &Observed| tell(at, of, run, observed);
    let done = runner::run(experiment, setup, &mut teller)?;
    print!("{}", table::verdicts(&done.judged));
    for note in done.notes.iter().take(NOTES_MAX) {
        println!("note: {note}");
    }
    if done.notes.len() > NOTES_MAX {
        println!(
            "note: and {} more, in the report",
            done.notes.len() - NOTES_MAX
        );
    }
    println!("{}: {}", experiment.name, table::summary(&done.judged));
    write(experiment, &done, out)?;
    let passed = done.passed();
    done.cut.map_or(Ok(passed), Err)
}

fn write(experiment: &Experiment, done: &Done, out: &Path) -> Result<(), ExperimentError> {
    let folder = out.join(&experiment.name);
    let outcome = result::of(experiment, done);
    let page = report::page(experiment, done, &outcome);
    result::write(&folder, "result.json", &format!("{outcome:#}\n"))?;
    let path = result::write(&folder, "report.html", &page)?;
    println!("{}: {}", experiment.name, path.display());
    Ok(())
}

/// One line a run, to standard error: what is going on.
fn tell(at: usize, of: usize, run: &Run, observed: &Observed) {
    let said = if observed.tenants.is_empty() {
        let each = observed.figures.iter();
        let figures = each.map(|(name, value)| format!("{name} {}", table::number(*value)));
        figures.collect::<Vec<String>>().join(", ")
    } else {
        answered(observed)
    };
    let kept = if observed.kept { " (kept)" } else { "" };
    // A reader that is gone has seen enough.
    let _ = writeln!(
        std::io::stderr(),
        "{at:>4}/{of} {}: {said}{kept}",
        run.label()
    );
}

/// What all tenants got.
fn answered(observed: &Observed) -> String {
    let per_s: f64 = observed
        .tenants
        .iter()
        .map(|tenant| tenant.load.total.rate_per_s)
        .sum();
    let failures: u64 = observed
        .tenants
        .iter()
        .map(|tenant| tenant.load.total.failed)
        .sum();
    let failures = match failures {
        0 => String::new(),
        some => format!(", {some} failed"),
    };
    format!("{}/s{failures}", rate(per_s))
}

/// As a user would type it again.
fn command(args: &ExperimentArgs, experiment: &Experiment) -> String {
    let mut words = vec!["entremet experiment".to_string(), experiment.name.clone()];
    if args.quick {
        words.push("--quick".into());
    }
    if let Some(only) = &args.only {
        words.push(format!("--only '{only}'"));
    }
    if let Some(repeats) = args.repeats {
        words.push(format!("--repeats {repeats}"));
    }
    if let Some(device) = &args.device {
        words.push(format!("--device {}", device.display()));
    }
    if let Some(server) = &args.server {
        words.push(format!("--server {}", server.display()));
    }
    words.join(" ")
}

/// The first Ctrl-C ends the run in order, the second at once; either way no server stays behind.
fn watch_interrupt() -> Result<Arc<AtomicBool>, ExperimentError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let failed = |source| ExperimentError::System {
            what: "waiting for Ctrl-C",
            source,
        };
        // In this order: the first signal finds the flag still down.
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone())
            .map_err(failed)?;
        signal_hook::flag::register(signal, stop.clone()).map_err(failed)?;
    }
    Ok(stop)
}
