//! A script in the server's place, and a player that makes its figures up.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use experiment::done::Done;
use experiment::machine::Ticks;
use experiment::observed::{Observed, Tenant};
use experiment::player::Player;
use experiment::runner::{self, Setup};
use experiment::spec::{Experiment, FILE};
use experiment::ExperimentError;
use toml::Table;
use workload::client::Goal;
use workload::report::figures::{LoadFigures, TenantFigures};
use workload::stats::Pace;
use workload::WorkloadError;

pub const TEXT: &str = r#"
title = "T"
source = "S"
shows = "W"
paper = "P"
repeats = 2
quick.scenario.duration = "1s"
scenario = { duration = "10s", seed = 40, tenant = [{ name = "web", load = [{}] }] }
[[variant]]
name = "fifo"
scenario.server.scheduler.request = "fifo"
[[variant]]
name = "fair"
scenario.server.scheduler.request = "fair"
[[point]]
name = "alone"
[[point]]
name = "together"
[[verdict]]
target = "rate against alone"
variant = "fair"
point = "together"
measure = "value"
against = { point = "alone" }
bound = ">= 1"
"#;

/// Written before any is started, as in `server.rs`: one that serves, one that crashes when loaded.
pub static SCRIPTS: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("folder");
    let ready = "[ \"$1\" = check ] && exit 0\n\
                 echo 'entremet is ready: clients on 127.0.0.1:4711, admin on http://127.0.0.1:1'";
    // Keeps what it reads anew beside itself; before it says that it is ready, or the signal would
    // end it. A shell cannot trap what was ignored when it began, as under `nohup`.
    let rereads = "[ -n \"$HEARS\" ] || HEARS=1 exec env --default-signal=HUP \"$0\" \"$@\"\n\
         trap 'cat \"$3\" > \"$0.new\" && mv \"$0.new\" \"$0.seen\"' HUP";
    for (name, first, then) in [
        ("serves", "", "exec sleep 1000"),
        ("crashes", "", "echo I am done >&2; exit 7"),
        // Its admin address is the test's.
        ("tells", "", "exec sleep 1000"),
        ("rereads", rereads, "while :; do sleep 0.01; done"),
    ] {
        let path = folder.path().join(name);
        let ready = match name {
            "tells" => ready.replace("http://127.0.0.1:1'", "http://'$(cat \"$0.admin\")"),
            _ => ready.to_string(),
        };
        fs::write(&path, format!("#!/bin/sh\n{first}\n{ready}\n{then}\n")).expect("script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode");
    }
    folder
});

pub fn script(name: &str) -> PathBuf {
    SCRIPTS.path().join(name)
}

pub fn experiment(rest: &str) -> Experiment {
    let folder = tempfile::tempdir().expect("folder");
    fs::write(folder.path().join(FILE), format!("{TEXT}{rest}")).expect("file");
    Experiment::read(folder.path()).expect("a good one")
}

/// What a player was asked to play, and how it answers.
#[derive(Default)]
pub struct Made {
    pub played: RefCell<Vec<Table>>,
    pub refuses: Option<&'static str>,
    pub loses: bool,
    /// What Ctrl-C sets, in the run of this number.
    pub interrupts: Option<(&'static AtomicBool, usize)>,
    /// A file to wait for, when all is played.
    pub awaits: Option<PathBuf>,
    pub pace: Pace,
}

impl Player for Made {
    fn problem(&self, _: &Table, origin: &str) -> Option<String> {
        Some(format!("{origin}: {}", self.refuses?))
    }

    fn play(
        &self,
        scenario: &Table,
        goal: Goal,
        _: &AtomicBool,
        at: &mut dyn FnMut(f64),
    ) -> Result<Observed, WorkloadError> {
        [-0.5, 0.0, 0.9, 1.1, 2.0].into_iter().for_each(at);
        let patience = Instant::now() + Duration::from_secs(20);
        while self.awaits.as_ref().is_some_and(|file| !file.exists()) && Instant::now() < patience {
            std::thread::yield_now();
        }
        self.played.borrow_mut().push(scenario.clone());
        if let Some((stop, at)) = self.interrupts {
            stop.store(self.played.borrow().len() == at, Ordering::Relaxed);
        }
        if self.loses {
            let reason = "reset".to_string();
            return Err(WorkloadError::ServerGone {
                target: goal.first(),
                reason,
                completed: 3,
            });
        }
        let rate = 100.0 + self.played.borrow().len() as f64;
        let total = LoadFigures {
            rate_per_s: rate,
            ..LoadFigures::default()
        };
        let load = TenantFigures {
            name: "web".into(),
            weight: 1.0,
            total,
            ..TenantFigures::default()
        };
        let tenant = Tenant {
            group: "web".into(),
            load,
            ..Tenant::default()
        };
        Ok(Observed {
            tenants: vec![tenant],
            pace: self.pace.clone(),
            ..Observed::default()
        })
    }
}

pub static NEVER: AtomicBool = AtomicBool::new(false);

pub fn setup<'a>(binary: &'a Path, player: &'a Made, stop: &'a AtomicBool) -> Setup<'a> {
    Setup {
        binary,
        quick: false,
        repeats: None,
        only: None,
        processors: &[0],
        meter: &|_| Ticks::default(),
        kept: None,
        until: None,
        player,
        stop,
        command: "entremet experiment made".into(),
    }
}

pub fn run(experiment: &Experiment, setup: &Setup) -> Result<(Vec<String>, Done), ExperimentError> {
    let mut told = Vec::new();
    let done = runner::run(experiment, setup, &mut |at, of, run, _| {
        told.push(format!("{at}/{of} {}", run.label()));
    })?;
    Ok((told, done))
}
