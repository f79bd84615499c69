//! What can go wrong in this crate.

use std::io;
use std::net::SocketAddr;

/// Why the admin server did not start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The address is taken, not this machine's, or not permitted.
    #[error("cannot listen on the admin address {address}: {cause}; choose another with --admin or [server] admin")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's reason.
        cause: io::Error,
    },
    /// The thread or its event loop could not be had.
    #[error("cannot start the admin server's thread: {0}; the system may be out of threads or file descriptors")]
    Thread(io::Error),
}
