//! Cutting a log: what is before the cut is left, what is behind it goes.

use super::Break;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Where the logs go that an operator gives up, in the tenant's directory.
const ASIDE: &str = "damaged-logs";

/// Removes from the logs what is behind `place`, for good before it returns. `aside`: a copy of
/// what was there is kept.
pub(super) fn cut(
    directory: &Path,
    logs: &[PathBuf],
    place: &Break,
    aside: bool,
) -> io::Result<()> {
    if aside {
        let folder = directory.join(ASIDE);
        fs::create_dir_all(&folder)?;
        for path in logs.iter().skip(place.log) {
            let copy = folder.join(path.file_name().unwrap_or_default());
            fs::copy(path, &copy)?;
            File::open(&copy)?.sync_all()?;
        }
        File::open(&folder)?.sync_all()?;
    }
    // The last first: a crash in between leaves a cut that is further behind, and the hole is found
    // again.
    for (index, path) in logs.iter().enumerate().skip(place.log).rev() {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(if index == place.log { place.at } else { 0 })?;
        file.sync_all()?;
    }
    File::open(directory)?.sync_all()
}
