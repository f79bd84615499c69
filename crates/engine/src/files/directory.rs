//! The data directory: who may use it, which format it has, where a tenant lives in it.

use crate::EngineError;
use rustix::fs::{flock, FlockOperation, OFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FORMAT: &str = "entremet data directory, format 1";
/// Directory names are at most 255 bytes; RocksDB adds none of its own to this one.
const NAME_BYTES_MAX: usize = 240;
/// What the probe of [`check_writable`] writes: more than a block, less than anyone notices.
const PROBE_BYTES: usize = 256 << 10;

/// An open data directory. The lock is the kernel's: it goes with the process, however that ends.
pub(crate) struct Directory {
    root: PathBuf,
    /// Whether files can be opened with O_DIRECT here (tmpfs before Linux 6.6 cannot).
    pub direct_io: bool,
    lock: File,
}

impl Directory {
    pub(crate) fn open(root: &Path, direct_io: bool) -> Result<Directory, EngineError> {
        let tenants = root.join("tenants");
        create_directory(&tenants)?;
        let lock = lock(root)?;
        check_format(root)?;
        clear_graves(&tenants)?;
        Ok(Directory {
            root: root.to_owned(),
            direct_io: direct_io && takes_direct_io(root),
            lock,
        })
    }

    /// Whether the path still leads to the directory that was locked. If it does not, a database
    /// that is opened there would be created: empty, somewhere else, and taken for the tenant's.
    pub(crate) fn is_there(&self) -> Result<(), EngineError> {
        let path = self.root.join("LOCK");
        let mine = (self.lock.metadata()).map_err(EngineError::io("look at", &path))?;
        match fs::metadata(&path) {
            Ok(found) if (found.dev(), found.ino()) == (mine.dev(), mine.ino()) => Ok(()),
            Ok(_) => Err(self.moved()),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(self.moved()),
            Err(error) => Err(EngineError::io("look at", &path)(error)),
        }
    }

    fn moved(&self) -> EngineError {
        EngineError::Moved {
            directory: self.root.clone(),
        }
    }

    pub(crate) fn tenant(&self, name: &str) -> Result<PathBuf, EngineError> {
        let encoded = encode(name);
        let reason = if name.is_empty() {
            Some("it is empty")
        } else if encoded.len() > NAME_BYTES_MAX {
            Some("it is too long (240 bytes, three for each that is not a letter, digit, - or _)")
        } else {
            None
        };
        match reason {
            Some(reason) => Err(EngineError::Name {
                name: name.to_owned(),
                reason,
            }),
            None => Ok(self.root.join("tenants").join(encoded)),
        }
    }

    /// Moves a tenant's directory out of the way, to be removed; `None`: it has none. A crash
    /// leaves the tenant whole or gone, and what is left of its files goes at the next start.
    /// Once this returns a power failure does not bring it back.
    pub(crate) fn bury(&self, name: &str) -> Result<Option<PathBuf>, EngineError> {
        let directory = self.tenant(name)?;
        let grave = self
            .root
            .join("tenants")
            .join(format!("{GRAVE}{}", encode(name)));
        if grave.exists() {
            fs::remove_dir_all(&grave).map_err(EngineError::io("remove", &grave))?;
        }
        match fs::rename(&directory, &grave) {
            Ok(()) => {
                let tenants = self.root.join("tenants");
                sync_directory(&tenants).map_err(EngineError::io("sync", tenants))?;
                Ok(Some(grave))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EngineError::io("remove", &directory)(error)),
        }
    }
}

/// Creates a directory, and those above it, so that a power failure does not take it away again.
/// What is there already may have been created just before a crash, so that its name is synced,
/// too, where this process may.
///
/// # Errors
/// It, or one above it, cannot be created or synced.
pub fn create_directory(path: &Path) -> Result<(), EngineError> {
    let above = match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => return Ok(()),
    };
    let created = match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create_directory(above)?;
            fs::create_dir(path)
        }
        other => other,
    };
    let synced = sync_directory(above).map_err(EngineError::io("sync", above));
    match created {
        Ok(()) => synced,
        // Others' directories above the data need not be readable.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(EngineError::io("create", path)(error)),
    }
}

/// Names of files and directories last when the directory that they are in was synced, POSIX says;
/// RocksDB does that for what is in a database's directory.
fn sync_directory(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Prefix of directories that are being removed; no encoded name has a dot.
const GRAVE: &str = ".removed-";

fn clear_graves(tenants: &Path) -> Result<(), EngineError> {
    let entries = fs::read_dir(tenants).map_err(EngineError::io("list", tenants))?;
    for entry in entries.flatten() {
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(GRAVE.as_bytes())
        {
            fs::remove_dir_all(entry.path()).map_err(EngineError::io("remove", entry.path()))?;
        }
    }
    Ok(())
}

/// Letters, digits, `-` and `_` stand for themselves, every other byte is `%XX`: one name, one
/// directory, never `.` or `..`, never a separator.
fn encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn lock(root: &Path) -> Result<File, EngineError> {
    let path = root.join("LOCK");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(EngineError::io("open", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(EngineError::Locked {
            directory: root.to_owned(),
        }),
        Err(errno) => Err(EngineError::io("lock", &path)(errno.into())),
    }
}

fn check_format(root: &Path) -> Result<(), EngineError> {
    let path = root.join("FORMAT");
    match fs::read_to_string(&path) {
        Ok(found) if found.trim_end() == FORMAT => Ok(()),
        Ok(found) => Err(EngineError::Format {
            path,
            found: found.trim_end().chars().take(80).collect(),
            expected: FORMAT,
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => write_format(root, &path),
        Err(error) => Err(EngineError::io("read", &path)(error)),
    }
}

/// Written beside and renamed: a crash leaves no half-written format file.
fn write_format(root: &Path, path: &Path) -> Result<(), EngineError> {
    let draft = root.join("FORMAT.new");
    let mut file = File::create(&draft).map_err(EngineError::io("create", &draft))?;
    writeln!(file, "{FORMAT}")
        .and_then(|()| file.sync_all())
        .map_err(EngineError::io("write", &draft))?;
    fs::rename(&draft, path).map_err(EngineError::io("create", path))?;
    sync_directory(root).map_err(EngineError::io("sync", root))
}

fn takes_direct_io(root: &Path) -> bool {
    let path = root.join("FORMAT");
    let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
    OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .is_ok()
}

/// Whether a file of some size can be written and synced in `directory`. Asked before a database
/// that still serves reads is closed in the hope that it opens again.
pub(crate) fn check_writable(directory: &Path) -> std::io::Result<()> {
    let path = directory.join("probe");
    let result = File::create(&path)
        .and_then(|mut file| file.write_all(&vec![0x5a; PROBE_BYTES]).map(|()| file))
        .and_then(|file| file.sync_all());
    let removed = fs::remove_file(&path);
    result.and(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_created_with_those_above_it_and_may_be_there() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("a/b/c");
        create_directory(&deep).unwrap();
        create_directory(&deep).unwrap();
        assert!(deep.is_dir());
        let file = base.path().join("file");
        fs::write(&file, "").unwrap();
        for taken in [file.clone(), file.join("below")] {
            let error = create_directory(&taken).unwrap_err().to_string();
            assert!(error.contains("file"), "{error}");
        }
    }

    #[test]
    fn names_are_reversible_and_safe() {
        assert_eq!(encode("web-1_A"), "web-1_A");
        assert_eq!(encode("../é%"), "%2E%2E%2F%C3%A9%25");
    }
}
