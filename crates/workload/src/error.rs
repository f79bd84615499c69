//! The one error type of this crate.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a load could not be prepared, run or reported.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A trace file cannot be read (missing, not gzip, no permission).
    #[error("cannot read the trace {}: {source}", path.display())]
    TraceFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A trace file is readable but a line is not what its README says.
    #[error("{}:{line}: {reason}", path.display())]
    TraceLine {
        /// The file.
        path: PathBuf,
        /// Line number, from 1, of the decompressed text.
        line: u64,
        /// What was expected and what is there.
        reason: String,
    },
    /// No connection could be made.
    #[error("cannot reach {target}: {source}; is the server running, and is --target right?")]
    Unreachable {
        /// Address as given.
        target: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server answered a connection's first commands with an error.
    #[error("tenant `{tenant}`: the server refused {command}: {reply}")]
    Refused {
        /// Tenant (user) name; `default` when none was given.
        tenant: String,
        /// The command that was refused.
        command: String,
        /// The server's error text.
        reply: String,
    },
    /// Every connection was lost and could not be made again.
    #[error("the server at {target} went away ({reason}); {completed} requests had been answered")]
    ServerGone {
        /// Where it was.
        target: SocketAddr,
        /// The last failure seen.
        reason: String,
        /// Requests answered before.
        completed: u64,
    },
    /// The report cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A scenario cannot be used: everything that is wrong with it.
    #[error("the scenario cannot be used: {summary}\n{0}", summary = .0.summary())]
    Scenario(Box<settings::Report>),
    /// A file that was named cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A run ended before its time; what there is has been reported.
    #[error("cut short: {0}; the results above are of what there was")]
    CutShort(String),
    /// The arguments do not make sense together.
    #[error("{0}")]
    Usage(String),
    /// A system call that should not fail did.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl WorkloadError {
    /// Says at which of several servers a tenant was refused.
    pub(crate) fn at(mut self, server: SocketAddr) -> Self {
        if let Self::Refused { command, .. } = &mut self {
            *command = format!("{command} at {server}");
        }
        self
    }

    /// For `map_err` around a system call.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
