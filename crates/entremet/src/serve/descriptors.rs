//! Open files: how many the system allows. Who may have how many of them, `server::Descriptors`
//! says.

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// Raises the limit on open files as far as the system lets us; returns it.
pub fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Where it cannot be raised, what there is holds.
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
