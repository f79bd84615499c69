//! Tenants that were added or changed at run time, in the data directory: `tenants.json`, and
//! behind it a journal of the changes since, so that a change costs what it is long and not what
//! all tenants are.
//!
//! The journal is written anew as `tenants.json` once most of it is out of date. A crash between
//! the two leaves changes in both; taking them over again changes nothing, since each says all
//! about its tenant.

mod journal;
mod private;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use journal::Journal;
use private::{keep_private, PRIVATE};

use super::overlay::Change;

/// What the file could not do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be read or written.
    #[error(
        "tenant file {path}: {source}; check the permissions and free space of the data directory"
    )]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not what we wrote.
    #[error("tenant file {path} is damaged: {source}; restore it from a backup or move it away to drop run-time tenants")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where the JSON breaks.
        source: serde_json::Error,
    },
}

/// A journal of fewer changes is not worth writing anew.
const CHANGES_MIN: usize = 256;

/// The files.
pub struct Store {
    path: PathBuf,
    changes: BTreeMap<String, Change>,
    journal: Journal,
}

impl Store {
    /// Reads the files, or starts empty where there are none.
    ///
    /// # Errors
    /// An unreadable or damaged file, or a directory that cannot be written to.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join("tenants.json");
        let mut changes = read(&path)?;
        let journal = Journal::open(directory, |name, change| take(&mut changes, name, change))?;
        Ok(Self {
            path,
            changes,
            journal,
        })
    }

    /// Every change, by tenant name.
    pub fn changes(&self) -> &BTreeMap<String, Change> {
        &self.changes
    }

    /// Records a change and has it on the disk before it returns.
    ///
    /// # Errors
    /// The journal could not be written; the earlier changes stay in force.
    pub fn record(&mut self, name: &str, change: Change) -> Result<(), StoreError> {
        self.journal.append(name, &change)?;
        take(&mut self.changes, name.to_string(), change);
        if self.journal.changes() > self.changes.len().max(CHANGES_MIN) {
            if let Err(error) = self.tidy() {
                // The journal says everything: it grows until this succeeds.
                tracing::warn!(%error, "run-time changes of tenants could not be written anew");
            }
        }
        Ok(())
    }

    /// Takes over what became of changes when the file was read, all at once. It is so in any case;
    /// if it cannot be written down, a later start may find the changes as they were, and says so.
    pub fn revise(&mut self, changes: Vec<(String, Change)>) {
        if changes.is_empty() {
            return;
        }
        for (name, change) in changes {
            take(&mut self.changes, name, change);
        }
        if let Err(error) = self.tidy() {
            tracing::warn!(%error, "what became of run-time changes of tenants could not be written down");
        }
    }

    fn tidy(&mut self) -> Result<(), StoreError> {
        self.write().map_err(|source| StoreError::Io {
            path: self.path.clone(),
            source,
        })?;
        self.journal.clear()
    }

    /// Written aside and renamed, so that a crash leaves the old file or the new one, never half.
    fn write(&self) -> io::Result<()> {
        let aside = self.path.with_extension("json.new");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true);
        let mut file = options.mode(PRIVATE).open(&aside)?;
        // It may be one that an older version left half written.
        keep_private(&file, &aside)?;
        file.write_all(&serde_json::to_vec_pretty(&self.changes)?)?;
        file.sync_all()?;
        fs::rename(&aside, &self.path)?;
        sync_directory(self.path.parent().unwrap_or(Path::new(".")))
    }
}

/// The last word on a tenant counts; of one that is as the file says there is none.
fn take(changes: &mut BTreeMap<String, Change>, name: String, change: Change) {
    match change {
        Change::Dropped => changes.remove(&name),
        change => changes.insert(name, change),
    };
}

/// What the file says; nothing if it is not there.
fn read(path: &Path) -> Result<BTreeMap<String, Change>, StoreError> {
    let text = || {
        let mut file = match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        keep_private(&file, path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(Some(text))
    };
    let text = text().map_err(|source| StoreError::Io {
        path: path.to_path_buf(),
        source,
    })?;
    let Some(text) = text else {
        return Ok(BTreeMap::new());
    };
    serde_json::from_slice(&text).map_err(|source| StoreError::Damaged {
        path: path.to_path_buf(),
        source,
    })
}

/// Names of files last when their directory has them on the disk.
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenants::TenantSpec;

    fn weight(weight: f64) -> Change {
        let mut spec = TenantSpec::new("any");
        spec.settings.weight = weight;
        Change::between(&spec, None)
    }

    fn sizes(directory: &Path) -> (u64, Option<u64>) {
        let bytes = |name| {
            fs::metadata(directory.join(name))
                .ok()
                .map(|file| file.len())
        };
        (
            bytes("tenants.jsonl").expect("a journal"),
            bytes("tenants.json"),
        )
    }

    #[test]
    fn what_was_recorded_is_there_when_the_store_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        for number in 0..3 * CHANGES_MIN {
            let change = if number % 5 == 0 {
                Change::Removed
            } else {
                weight(number as f64)
            };
            store.record(&format!("t{}", number % 40), change).unwrap();
        }
        let again = Store::open(directory.path()).unwrap();
        assert_eq!(again.changes(), store.changes());
        assert_eq!(again.changes().len(), 40);
    }

    #[test]
    fn a_change_writes_its_own_size_however_many_tenants_there_are() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        let mut grew = Vec::new();
        for number in 0..2 * CHANGES_MIN {
            let before = sizes(directory.path()).0;
            store.record(&format!("t{number:05}"), weight(2.0)).unwrap();
            grew.push(sizes(directory.path()).0 - before);
        }
        assert!(grew.iter().all(|bytes| *bytes == grew[0]), "{grew:?}");
        assert_eq!(sizes(directory.path()).1, None, "nothing was written anew");
    }

    #[test]
    fn one_tenant_changed_for_ever_does_not_fill_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        store.record("web", weight(1.0)).unwrap();
        let one = sizes(directory.path()).0;
        for number in 0..3 * CHANGES_MIN {
            store.record("web", weight((number % 9) as f64)).unwrap();
            assert!(sizes(directory.path()).0 <= one * (CHANGES_MIN as u64 + 1));
        }
        assert!(sizes(directory.path()).1.is_some(), "it was written anew");
        let again = Store::open(directory.path()).unwrap();
        assert_eq!(again.changes(), store.changes());
    }

    #[test]
    fn a_crash_before_the_journal_is_cleared_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        store.record("web", weight(1.0)).unwrap();
        store.record("web", weight(2.0)).unwrap();
        store.record("api", Change::Removed).unwrap();
        store.write().unwrap();
        let again = Store::open(directory.path()).unwrap();
        assert_eq!(again.changes(), store.changes());
    }
}
