//! The one error type of this crate.

use std::io;
use std::path::PathBuf;

/// Why a simulation could not be prepared or reported.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The scenario cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The scenario is wrong, or asks for what the simulator does not have.
    #[error("{origin} cannot be simulated:\n{problems}")]
    Scenario {
        /// The file.
        origin: String,
        /// Everything that is wrong, a line each.
        problems: String,
    },
    /// The result cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
