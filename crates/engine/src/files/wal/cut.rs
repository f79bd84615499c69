//! Cutting a log: what is before the cut is left, what is behind it goes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Where the logs go that an operator gives up, in the tenant's directory.
const ASIDE: &str = "damaged-logs";

/// Leaves the logs as they were up to byte `at` of one of them, for good before it returns; with a copy of what was there
/// before if `aside`.
pub(super) fn cut(
    directory: &Path,
    logs: &[PathBuf],
    (log, at): (usize, u64),
    aside: bool,
) -> io::Result<()> {
    if aside {
        let place = directory.join(ASIDE);
        fs::create_dir_all(&place)?;
        for path in logs.iter().skip(log) {
            let copy = place.join(path.file_name().unwrap_or_default());
            fs::copy(path, &copy)?;
            File::open(&copy)?.sync_all()?;
        }
        File::open(&place)?.sync_all()?;
    }
    // The last first: a crash in between leaves a cut that is further behind, and the hole is found again.
    for (index, path) in logs.iter().enumerate().skip(log).rev() {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(if index == log { at } else { 0 })?;
        file.sync_all()?;
    }
    File::open(directory)?.sync_all()
}
