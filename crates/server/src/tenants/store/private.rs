//! Files with secrets in them, here hashes of passwords, are their owner's alone.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Their owner reads and writes them, nobody else.
pub(super) const PRIVATE: u32 = 0o600;

/// Takes away from others what they may do with a file that is there already, and says so: what was
/// in it may have been read.
///
/// # Errors
/// The file is somebody else's.
pub(super) fn keep_private(file: &File, path: &Path) -> io::Result<()> {
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & !PRIVATE == 0 {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(PRIVATE))?;
    tracing::warn!(
        file = %path.display(),
        "others could read this file (mode {mode:o}), and it holds hashes of passwords: it is {PRIVATE:o} now; change the \
         passwords if somebody may have read it"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::super::{Change, Store, CHANGES_MIN};
    use super::*;

    fn modes(directory: &Path) -> Vec<(PathBuf, u32)> {
        let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
        let mode = |file: &fs::DirEntry| file.metadata().unwrap().permissions().mode() & 0o777;
        let mut modes: Vec<_> = entries.map(|file| (file.path(), mode(&file))).collect();
        modes.sort();
        modes
    }

    fn all_private(directory: &Path, files: usize) {
        let modes = modes(directory);
        assert_eq!(modes.len(), files, "{modes:?}");
        assert!(modes.iter().all(|(_, mode)| *mode == PRIVATE), "{modes:?}");
    }

    #[test]
    fn files_are_made_private_and_made_so_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        all_private(directory.path(), 1);
        // One that an older version left.
        let aside = directory.path().join("tenants.json.new");
        fs::write(&aside, "half").unwrap();
        for number in 0..=CHANGES_MIN {
            store
                .record(&format!("t{}", number % 7), Change::Removed)
                .unwrap();
        }
        all_private(directory.path(), 2);
        drop(store);
        for (path, _) in modes(directory.path()) {
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        Store::open(directory.path()).unwrap();
        all_private(directory.path(), 2);
    }
}
