//! Open files: how many the system allows, and how many of them can be connections.

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// Kept for listeners, polls, logs and the admin address.
const OWN: u64 = 128;

/// A tenant's database has about this many files open before it holds much data: log, manifest, lock, and a few
/// of data.
const PER_TENANT: u64 = 16;

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

/// How many connections `files` open files leave room for beside the databases of so many tenants.
///
/// # Errors
/// None at all; says what to do.
pub fn connections(files: u64, tenants: usize) -> Result<usize, String> {
    let kept = OWN + PER_TENANT * tenants as u64;
    match files.checked_sub(kept) {
        Some(left @ 1..) => Ok(usize::try_from(left).unwrap_or(usize::MAX)),
        _ => Err(format!(
            "the system allows this process {files} open files, and {tenants} tenants need {kept} without any \
             connection; raise the limit (`ulimit -n`, or LimitNOFILE in the unit)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_databases_need_is_no_connections() {
        assert_eq!(connections(1_024, 2), Ok(1_024 - 128 - 32));
        assert_eq!(connections(u64::MAX, 0), Ok(usize::MAX - 128));
        let error = connections(1_024, 100).expect_err("too few files");
        assert!(
            error.contains("1024 open files, and 100 tenants need 1728"),
            "{error}"
        );
    }
}
