//! What can go wrong, in words that say what to do.

use std::path::PathBuf;

/// Every error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// A file could not be created, read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The directory cannot be measured, whenever that is tried.
    #[error("{} cannot be measured: {reason}", directory.display())]
    Unfit {
        /// The directory.
        directory: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// The directory has no room for a measurement.
    #[error("{} cannot be measured: {reason}", directory.display())]
    Full {
        /// The directory.
        directory: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// What was measured cannot be a device's, or changes too much to be relied on.
    #[error("the results are not plausible, so no profile was written: {0}")]
    Implausible(String),
    /// Interrupted by the user.
    #[error("interrupted; nothing was written and the scratch files are gone")]
    Stopped,
    /// A profile has errors: all of them, one a line.
    #[error("{} is no profile that can be used:\n{problems}", path.display())]
    Profile {
        /// The file.
        path: PathBuf,
        /// Each problem with its key, one a line.
        problems: String,
    },
}

impl DeviceError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> DeviceError {
        let path = path.into();
        move |source| DeviceError::Io {
            action,
            path,
            source,
        }
    }
}
