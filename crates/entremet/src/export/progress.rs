//! How far an export is, on the disk: what a run that was killed left is gone on with.
//!
//! A tenant's file is synced before its place in `progress.json` is. So the file has at least what
//! the progress says of it; what is behind that is cut off when a later run begins, and read again.
//! Each key that is there from the first run to the last is in the file once.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{flock, FlockOperation};
use serde::{Deserialize, Serialize};

use super::ExportError;

/// Whoever may read the data may read its copy.
const PRIVATE: u32 = 0o600;
const FORMAT: u32 = 1;

/// How far one tenant is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The numbered database that is read.
    pub database: usize,
    /// The last key of it that was written; none: none was.
    pub after: Option<Vec<u8>>,
    /// Bytes in the file.
    pub bytes: u64,
    /// Keys in the file.
    pub keys: u64,
    /// About how many keys there were when it began.
    pub expected: u64,
    /// Whether it is complete.
    pub done: bool,
}

/// `progress.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Progress {
    format: u32,
    tenants: BTreeMap<String, Reached>,
}

/// A directory with an export in it, which no other run writes to meanwhile.
pub struct Journal {
    directory: PathBuf,
    progress: Mutex<Progress>,
    /// Its lock ends with the process.
    _locked: File,
}

impl Journal {
    /// Begins in a directory, or goes on with what is there.
    ///
    /// # Errors
    /// Another run is at work there, it is complete, or it cannot be used.
    pub fn open(directory: &Path, tenants: &[&str]) -> Result<Self, ExportError> {
        let wrong = |path: &Path, source| ExportError::File {
            path: path.display().to_string(),
            source,
        };
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        let locked = made.and_then(|()| File::open(directory));
        let locked = locked.map_err(|source| wrong(directory, source))?;
        if flock(&locked, FlockOperation::NonBlockingLockExclusive).is_err() {
            let what = "another export is at work here";
            return Err(wrong(directory, io::Error::other(what)));
        }
        let path = directory.join("progress.json");
        let mut progress: Progress = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|cause| wrong(&path, io::Error::other(cause)))?,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Progress {
                format: FORMAT,
                ..Progress::default()
            },
            Err(cause) => return Err(wrong(&path, cause)),
        };
        if progress.format != FORMAT {
            let what = "it was written by another version; name another directory";
            return Err(wrong(&path, io::Error::other(what)));
        }
        let done = |name: &&str| {
            progress
                .tenants
                .get(*name)
                .is_some_and(|reached| reached.done)
        };
        if tenants.iter().all(done) {
            let what = "this export is complete; name another directory for a new one";
            return Err(wrong(directory, io::Error::other(what)));
        }
        for name in tenants {
            progress.tenants.entry((*name).into()).or_default();
        }
        Ok(Self {
            directory: directory.to_owned(),
            progress: Mutex::new(progress),
            _locked: locked,
        })
    }

    /// A tenant's file, where it is to go on, and how far it is.
    ///
    /// # Errors
    /// The file is shorter than it was, is somebody else's, or cannot be opened.
    pub fn begin(&self, tenant: &str) -> Result<(File, Reached), ExportError> {
        let reached = self
            .progress()
            .tenants
            .get(tenant)
            .cloned()
            .unwrap_or_default();
        let path = self.path(tenant);
        let file = open(&path, reached.bytes).map_err(|source| ExportError::File {
            path: path.display().to_string(),
            source,
        })?;
        Ok((file, reached))
    }

    /// A tenant's file is written and synced up to here.
    ///
    /// # Errors
    /// It cannot be written down.
    pub fn reach(&self, tenant: &str, reached: &Reached) -> Result<(), ExportError> {
        let mut progress = self.progress();
        progress.tenants.insert(tenant.into(), reached.clone());
        let path = self.directory.join("progress.json");
        self.write(&path, &progress)
            .map_err(|source| ExportError::File {
                path: path.display().to_string(),
                source,
            })
    }

    /// Of all tenants together.
    pub fn total(&self) -> Reached {
        let progress = self.progress();
        progress
            .tenants
            .values()
            .fold(Reached::default(), |all, one| Reached {
                bytes: all.bytes + one.bytes,
                keys: all.keys + one.keys,
                expected: all.expected + one.expected,
                ..all
            })
    }

    /// How many tenants are exported here.
    pub fn tenants(&self) -> usize {
        self.progress().tenants.len()
    }

    /// A tenant's file.
    pub fn path(&self, tenant: &str) -> PathBuf {
        self.directory.join(format!("{tenant}.ndjson"))
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().expect("nobody panics with it")
    }

    fn write(&self, path: &Path, progress: &Progress) -> io::Result<()> {
        let beside = path.with_extension("new");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true);
        let mut file = options.mode(PRIVATE).open(&beside)?;
        file.write_all(&serde_json::to_vec_pretty(progress)?)?;
        file.sync_data()?;
        fs::rename(&beside, path)
    }
}

/// Opens a file to go on behind so many bytes; with none, it must be new or what a run left that
/// was killed before it wrote anything down.
fn open(path: &Path, bytes: u64) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE)
        .open(path)?;
    if file.metadata()?.len() < bytes {
        let what = "it is shorter than progress.json says; name another directory";
        return Err(io::Error::other(what));
    }
    file.set_len(bytes)?;
    let mut file = file;
    io::Seek::seek(&mut file, io::SeekFrom::Start(bytes))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_written_down_is_cut_off_and_what_was_is_gone_on_with() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || Journal::open(folder.path(), &["web"]);
        let journal = open().expect("begun");
        assert!(open()
            .err()
            .expect("locked")
            .to_string()
            .contains("another export is at work"));
        let (mut file, mut reached) = journal.begin("web").expect("a file");
        assert_eq!(reached, Reached::default());
        file.write_all(b"one\n").expect("written");
        reached = Reached {
            after: Some(vec![0, 255]),
            bytes: 4,
            keys: 1,
            ..reached
        };
        journal.reach("web", &reached).expect("kept");
        file.write_all(b"two\nthr").expect("written");
        drop(journal);
        let journal = open().expect("gone on");
        let (mut file, known) = journal.begin("web").expect("the file");
        assert_eq!(known, reached);
        file.write_all(b"2\n").expect("written");
        let text = fs::read(journal.path("web")).expect("there");
        assert_eq!(text, b"one\n2\n");
        fs::write(journal.path("web"), b"o").expect("shortened");
        assert!(journal.begin("web").is_err());
        reached.done = true;
        journal.reach("web", &reached).expect("kept");
        drop(journal);
        assert!(open()
            .err()
            .expect("done")
            .to_string()
            .contains("is complete"));
        Journal::open(folder.path(), &["web", "batch"]).expect("one more tenant");
    }
}
