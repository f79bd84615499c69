//! The one error type of this crate.

use std::io;
use std::path::PathBuf;

use workload::WorkloadError;

/// Why an experiment could not be read, run, judged or reported. A target that is missed is none of
/// these.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The folder of the experiments cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// File or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such experiment.
    #[error("there is no experiment {name:?} in {}; there are: {known}", folder.display())]
    Unknown {
        /// The name asked for.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
        /// Names that are there.
        known: String,
    },
    /// The experiment's file is wrong: everything that is, one problem a line.
    #[error("{} cannot be used:\n  {}", path.display(), problems.join("\n  "))]
    Spec {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problems: Vec<String>,
    },
    /// The server under test could not be started, or ended when it should not have.
    #[error("{label}: {what}; its last words:\n{log}")]
    Server {
        /// Which server: variant, point and repeat.
        label: String,
        /// What happened.
        what: String,
        /// The end of what it printed.
        log: String,
    },
    /// The load could not be run.
    #[error("{label}: {source}")]
    Load {
        /// Which run: variant, point and repeat.
        label: String,
        /// Why.
        source: WorkloadError,
    },
    /// A simulated scenario could not be played.
    #[error("{label}: {source}")]
    Simulated {
        /// Which run: variant, point and repeat.
        label: String,
        /// Why.
        source: sim::SimError,
    },
    /// A program could not be run.
    #[error("{label}: {problems}")]
    Program {
        /// Which run: variant, point and repeat.
        label: String,
        /// Why.
        problems: String,
    },
    /// A benchmark's load could not be run.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A verdict could not be reached; that is never a pass.
    #[error("the verdict {target:?} cannot be reached: {why}")]
    Verdict {
        /// The verdict's text.
        target: String,
        /// What is missing.
        why: String,
    },
    /// A result cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// File or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A system call that should not fail did.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The arguments do not make sense together.
    #[error("{0}")]
    Usage(String),
    /// A run that is missing would not end in the time that was given.
    #[error("the time of --within is up; the same command goes on from here")]
    TimeIsUp,
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl ExperimentError {
    /// The exit status that this error stands for: 2 for wrong usage, 3 if there is more to run,
    /// else 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Unknown { .. } => 2,
            Self::TimeIsUp => 3,
            _ => 1,
        }
    }
}
