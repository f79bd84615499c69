//! Ctrl-C and SIGTERM.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use crate::error::WorkloadError;

/// A flag that the first Ctrl-C or SIGTERM sets. The second one ends the process with status 130,
/// should the first not be enough.
pub(super) fn flag() -> Result<Arc<AtomicBool>, WorkloadError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(WorkloadError::system("watching for Ctrl-C"))?;
    }
    Ok(stop)
}
