//! `entremet export`: all data of tenants as lines of JSON, read beside everything else that the
//! server does.
//!
//! A few tenants are read at a time, each over one connection ([`walk`]): key by key in byte order,
//! so that the last key of a page is all that a later run must know to go on ([`progress`]). The
//! connection calls itself by a name that the server's configuration can match: the export is a
//! workload of the tenant then, with a share of its own.

mod line;
mod pace;
mod progress;
mod walk;

use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use settings::units::ByteRate;

use crate::client::{credentials, ClientError, Target, TargetArgs};
use pace::Pace;
use progress::{Journal, Reached};
use walk::Walk;

/// How often it says how far it is.
const TELL: Duration = Duration::from_secs(5);

/// `entremet export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// Where to write a file for each tenant; one that an earlier run began is gone on with
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// Which server
    #[command(flatten)]
    pub server: TargetArgs,

    /// Tenant and its password; may be repeated. Without any: the untagged default tenant
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = credentials)]
    pub tenant: Vec<(String, String)>,

    /// Read no more than this from all tenants together, as in 20MB/s
    #[arg(long, value_name = "RATE")]
    pub rate: Option<ByteRate>,

    /// Tenants that are read at a time
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..))]
    pub parallel: u8,

    /// What its connections call themselves (CLIENT SETNAME), for the workloads of a tenant
    #[arg(long, value_name = "NAME", default_value = "entremet-export", value_parser = word)]
    pub client: String,
}

/// What went wrong with a tenant.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The server.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A file.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
}

fn word(text: &str) -> Result<String, String> {
    match text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.is_empty() {
        true => Ok(text.into()),
        false => Err("expected a word without spaces".into()),
    }
}

/// Runs the command.
///
/// # Errors
/// The directory holds something else or a complete export; a tenant could not be read to its end.
pub fn run(args: &ExportArgs) -> Result<(), Box<dyn Error>> {
    let target = Target::of(&args.server, &args.client)?;
    let mut tenants: Vec<(String, Option<String>)> = (args.tenant.iter())
        .map(|(name, password)| (name.clone(), Some(password.clone())))
        .collect();
    if tenants.is_empty() {
        tenants.push(("default".into(), None));
    }
    let names: Vec<&str> = tenants.iter().map(|(name, _)| name.as_str()).collect();
    let journal = Journal::open(&args.directory, &names)?;
    let export = Export {
        target,
        journal,
        pace: Pace::new(args.rate.map(ByteRate::per_s)),
        waiting: Mutex::new(tenants.into()),
        failures: Mutex::default(),
    };
    export.run(usize::from(args.parallel))
}

/// An export at work.
struct Export {
    target: Target,
    journal: Journal,
    pace: Pace,
    /// Tenants that nobody reads yet, with their passwords.
    waiting: Mutex<VecDeque<(String, Option<String>)>>,
    /// Why tenants could not be read to their end.
    failures: Mutex<Vec<String>>,
}

impl Export {
    fn run(self, parallel: usize) -> Result<(), Box<dyn Error>> {
        let began = Instant::now();
        let read_before = self.journal.total();
        let (end, ended) = channel::<()>();
        thread::scope(|scope| {
            for _ in 0..parallel {
                let end = end.clone();
                scope.spawn(|| self.work(end));
            }
            drop(end);
            while ended.recv_timeout(TELL) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{}", self.how_far(began, &read_before));
            }
        });
        let total = self.journal.total();
        let failures = self
            .failures
            .into_inner()
            .unwrap_or_else(|broken| broken.into_inner());
        if failures.is_empty() {
            writeln!(
                io::stdout(),
                "{} keys of {} tenants",
                total.keys,
                self.journal.tenants()
            )?;
            return Ok(());
        }
        Err(format!(
            "{}\nrun the same command again to go on with what is missing",
            failures.join("\n")
        )
        .into())
    }

    /// Reads tenants, one after the other, until none is left. `_end` is dropped then.
    fn work(&self, _end: Sender<()>) {
        let next = || {
            self.waiting
                .lock()
                .expect("nobody panics with it")
                .pop_front()
        };
        while let Some((name, password)) = next() {
            let walk = Walk {
                target: &self.target,
                journal: &self.journal,
                pace: &self.pace,
                tenant: &name,
            };
            if let Err(why) = walk.run(password.as_deref()) {
                let mut failures = self.failures.lock().expect("nobody panics with it");
                failures.push(format!("tenant {name}: {why}"));
            }
        }
    }

    fn how_far(&self, began: Instant, before: &Reached) -> String {
        let total = self.journal.total();
        let read_bytes = total.bytes.saturating_sub(before.bytes) as f64;
        let per_s = read_bytes / began.elapsed().as_secs_f64().max(1e-3);
        let whole = match total.expected {
            0 => String::new(),
            expected => format!(" of about {}", expected.max(total.keys)),
        };
        format!(
            "{} keys{whole}, {:.1} MB written, {:.1} MB/s",
            total.keys,
            total.bytes as f64 / 1e6,
            per_s / 1e6
        )
    }
}
