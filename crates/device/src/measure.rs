//! From a directory to the profile of its disk.

use crate::calibrate::{calibrate, Plan, Progress};
use crate::{DeviceError, Disk, Machine, Profile};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// How a disk is measured.
#[derive(Clone, Debug)]
pub struct Way {
    /// What is measured.
    pub plan: Plan,
    /// Whether that is less than the full plan.
    pub quick: bool,
    /// Size of the scratch file, bytes; less where the disk is slow or full.
    pub scratch_bytes: u64,
}

impl Way {
    /// What `entremet calibrate` does: minutes. The scratch file is past a disk's own cache, and
    /// filled in seconds by most.
    #[must_use]
    pub fn full() -> Way {
        Way {
            plan: Plan::full(),
            quick: false,
            scratch_bytes: 2 << 30,
        }
    }

    /// With `--quick`: below a minute.
    #[must_use]
    pub fn quick() -> Way {
        Way {
            plan: Plan::quick(),
            quick: true,
            scratch_bytes: 512 << 20,
        }
    }

    /// What a server does at its first start: some seconds. A disk with a cache of its own looks a
    /// little better than it is in a small file; what it does under load is followed anyway.
    #[must_use]
    pub fn brief() -> Way {
        Way {
            plan: Plan::brief(),
            quick: true,
            scratch_bytes: 128 << 20,
        }
    }
}

/// Measures the disk under a directory. When `stop` becomes true, everything ends with
/// [`DeviceError::Stopped`]. Threads of the measurement inherit the priority of the calling one.
///
/// # Errors
/// What kept it from measuring, or from believing the result. Nothing stays in the directory.
pub fn measure(
    directory: &Path,
    way: &Way,
    version: &str,
    stop: Arc<AtomicBool>,
    tell: &mut Progress<'_>,
) -> Result<Profile, DeviceError> {
    let machine = Machine::of(directory)?;
    let mut disk = Disk::open(directory, way.scratch_bytes, stop, &mut |part| {
        tell("filling a scratch file", part);
    })?;
    let plan = way.plan.clone().at_least(disk.smallest_bytes());
    let measured = calibrate(&mut disk, &plan, tell)?;
    let absolute = std::path::absolute(directory);
    let absolute = absolute.map_err(DeviceError::io("find", directory))?;
    Ok(Profile {
        made_s: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        version: version.to_owned(),
        quick: way.quick,
        directory: absolute.to_string_lossy().into_owned(),
        machine,
        measured,
    })
}
