//! Engines that have a part of a processor each, as in a container with a limit: control groups of
//! the kernel see to it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Failure;

/// Where control groups of processor time are made: of both versions that kernels have.
const GROUPS: &str = "/sys/fs/cgroup";
const GROUPS_V1: &str = "/sys/fs/cgroup/cpu";
/// A process runs for this long and more, and then pauses.
const RUNS_US: u64 = 1_000;
/// It pauses so often, or less often if it has very little.
const PERIOD_US: u64 = 10_000;

/// A part of a processor, for some processes together.
pub struct Quota {
    folder: PathBuf,
}

impl Quota {
    /// This `part` of a processor, by a name that no other has.
    ///
    /// # Errors
    /// The kernel does not let this process.
    pub fn new(name: &str, part: f64) -> Result<Self, Failure> {
        let old = Path::new(GROUPS_V1).join("cpu.cfs_quota_us").exists();
        let quota = match old {
            true => Self::old(&Path::new(GROUPS_V1).join(name), part),
            false => Self::unified(&Path::new(GROUPS).join(name), part),
        };
        quota.map_err(|why| {
            format!("a part of a processor cannot be given to engines here: {why}; it takes root, and control groups with processor time").into()
        })
    }

    fn old(folder: &Path, part: f64) -> io::Result<Self> {
        let made = Self::made(folder)?;
        let (runs, period) = times(part);
        fs::write(folder.join("cpu.cfs_period_us"), period.to_string())?;
        fs::write(folder.join("cpu.cfs_quota_us"), runs.to_string())?;
        Ok(made)
    }

    fn unified(folder: &Path, part: f64) -> io::Result<Self> {
        // Where it is so already, or another does it, this changes nothing.
        let _ = fs::write(Path::new(GROUPS).join("cgroup.subtree_control"), "+cpu");
        let made = Self::made(folder)?;
        let (runs, period) = times(part);
        fs::write(folder.join("cpu.max"), format!("{runs} {period}"))?;
        Ok(made)
    }

    fn made(folder: &Path) -> io::Result<Self> {
        fs::create_dir(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// This process is one of them from now on.
    ///
    /// # Errors
    /// It has ended.
    pub fn hold(&self, process: u32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), process.to_string())
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        if let Err(why) = fs::remove_dir(&self.folder) {
            eprintln!("{} stays behind: {why}", self.folder.display());
        }
    }
}

/// How long a process with this part runs in what time, us.
fn times(part: f64) -> (u64, u64) {
    let runs = (PERIOD_US as f64 * part).max(RUNS_US as f64);
    (runs as u64, (runs / part) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_little_runs_for_a_millisecond_and_pauses_longer() {
        assert_eq!(times(1.0), (10_000, 10_000));
        assert_eq!(times(0.5), (5_000, 10_000));
        assert_eq!(times(0.05), (1_000, 20_000));
        assert_eq!(times(0.01), (1_000, 100_000));
    }
}
