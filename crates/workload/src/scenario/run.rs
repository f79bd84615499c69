//! Playing a scenario against a server.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::{build, Scenario};
use crate::client::drive::{self, Progress};
use crate::client::{preload, Target};
use crate::error::WorkloadError;
use crate::stats::Outcome;
use crate::trace;

/// How a scenario is played.
pub struct RunOptions<'a> {
    /// Store the keys of loads with `keys.preload` first.
    pub preload: bool,
    /// The trace collection.
    pub traces: PathBuf,
    /// Hears what is going on.
    pub tell: &'a mut dyn FnMut(Event<'_>),
}

impl<'a> RunOptions<'a> {
    /// With preload, and the traces of `$ENTREMET_TRACES`.
    pub fn new(tell: &'a mut dyn FnMut(Event<'_>)) -> Self {
        Self {
            preload: true,
            traces: trace::folder(),
            tell,
        }
    }
}

/// What is going on.
#[derive(Debug)]
pub enum Event<'a> {
    /// These traces are absent: what is sent was made from their published statistics.
    Synthesised(&'a [String]),
    /// So many keyspaces are being filled.
    Filling(usize),
    /// The keyspaces hold so many keys and bytes more.
    Filled {
        /// Keys stored.
        keys: u64,
        /// Bytes sent for them.
        bytes: u64,
        /// How long it took, seconds.
        seconds: f64,
    },
    /// The run itself, about ten times a second.
    Running(&'a Progress),
}

/// Plays a scenario: fills keyspaces, warms up, measures. `stop` ends it early with what there is.
///
/// # Errors
/// [`WorkloadError::Unreachable`], [`WorkloadError::Refused`] before anything is measured, and what
/// [`build::build`] says; [`WorkloadError::ServerGone`] when every connection is lost for good.
pub fn run(
    scenario: &Scenario,
    target: &Target,
    options: &mut RunOptions<'_>,
    stop: &AtomicBool,
) -> Result<Outcome, WorkloadError> {
    let built = build::build(scenario, target, &options.traces)?;
    let tell = &mut options.tell;
    if !built.synthesised.is_empty() {
        tell(Event::Synthesised(&built.synthesised));
    }
    drive::probe(&built.plan)?;
    if options.preload && !built.preload.is_empty() {
        tell(Event::Filling(built.preload.len()));
        let started = std::time::Instant::now();
        let (keys, bytes) = preload::run(&target.goal, built.preload, stop)?;
        tell(Event::Filled {
            keys,
            bytes,
            seconds: started.elapsed().as_secs_f64(),
        });
    }
    drive::play(built.plan, stop, &mut |progress| {
        tell(Event::Running(progress))
    })
}
