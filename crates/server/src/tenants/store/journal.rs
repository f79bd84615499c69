//! Changes in the order in which they were made, one JSON text a line.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::private::{keep_private, PRIVATE};
use super::{sync_directory, StoreError};
use crate::tenants::overlay::Change;

/// The file, open. What stands in it behind `bytes` was never acknowledged.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    changes: usize,
}

impl Journal {
    /// Gives `take` every change, oldest first. A last line that is no change is what a crash left
    /// of one that was never acknowledged: it is dropped, with a warning.
    ///
    /// # Errors
    /// The file cannot be read, cannot be made, or is damaged before its last line.
    pub fn open(
        directory: &Path,
        mut take: impl FnMut(String, Change),
    ) -> Result<Self, StoreError> {
        let path = directory.join("tenants.jsonl");
        let io = |source| StoreError::Io {
            path: path.clone(),
            source,
        };
        let (file, text) = read(&path, directory).map_err(io)?;
        let (mut bytes, mut changes) = (0, 0);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let end = bytes + line.len();
            match parse(line) {
                Ok((name, change)) => take(name, change),
                Err(source) if end < text.len() => {
                    return Err(StoreError::Damaged { path, source });
                }
                Err(_) => break,
            }
            (bytes, changes) = (end, changes + 1);
        }
        if bytes < text.len() {
            let dropped = text.len() - bytes;
            tracing::warn!(file = %path.display(), dropped, "the last change of a tenant was cut short by a crash before it was acknowledged, and is dropped");
            file.set_len(bytes as u64).map_err(io)?;
        }
        Ok(Self {
            path,
            file,
            bytes: bytes as u64,
            changes,
        })
    }

    /// How many changes it holds.
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// Adds a change and has it on the disk before it returns.
    ///
    /// # Errors
    /// It could not be written; the file says what it said before.
    pub fn append(&mut self, name: &str, change: &Change) -> Result<(), StoreError> {
        self.write(name, change).map_err(|source| {
            // What was written of it must not come back as a change; if it cannot be cut off now,
            // the next write does.
            let _ = self.file.set_len(self.bytes);
            self.failed(source)
        })
    }

    fn write(&mut self, name: &str, change: &Change) -> io::Result<()> {
        let mut line = serde_json::to_vec(&(name, change))?;
        line.push(b'\n');
        self.file.set_len(self.bytes)?;
        self.file.write_all_at(&line, self.bytes)?;
        self.file.sync_data()?;
        self.bytes += line.len() as u64;
        self.changes += 1;
        Ok(())
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// The file could not be cut; it may be whole or empty.
    pub fn clear(&mut self) -> Result<(), StoreError> {
        let cleared = self.file.set_len(0).and_then(|()| self.file.sync_data());
        cleared.map_err(|source| self.failed(source))?;
        (self.bytes, self.changes) = (0, 0);
        Ok(())
    }

    fn failed(&self, source: io::Error) -> StoreError {
        StoreError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

fn read(path: &Path, directory: &Path) -> io::Result<(File, Vec<u8>)> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let mut file = options.mode(PRIVATE).open(path)?;
    keep_private(&file, path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    if text.is_empty() {
        sync_directory(directory)?;
    }
    Ok((file, text))
}

/// A change with its end of line; without one it is not all there, even if it reads well.
fn parse(line: &[u8]) -> serde_json::Result<(String, Change)> {
    match line.strip_suffix(b"\n") {
        Some(whole) => serde_json::from_slice(whole),
        None => Err(serde::de::Error::custom("the line has no end")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(directory: &Path) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        Journal::open(directory, |name, _| names.push(name))?;
        Ok(names)
    }

    /// A journal of these tenants' removals; where each of its lines ends.
    fn written(directory: &Path, tenants: &[&str]) -> Vec<u64> {
        let mut journal = Journal::open(directory, |_, _| {}).unwrap();
        let ends = tenants.iter().map(|name| {
            journal.append(name, &Change::Removed).unwrap();
            journal.bytes
        });
        ends.collect()
    }

    #[test]
    fn a_last_line_cut_anywhere_is_dropped_and_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let ends = written(directory.path(), &["web", "api", "cut"]);
        let path = directory.path().join("tenants.jsonl");
        let whole = fs::read(&path).unwrap();
        for cut in ends[1]..ends[2] {
            fs::write(&path, &whole[..cut as usize]).unwrap();
            assert_eq!(
                names(directory.path()).unwrap(),
                ["web", "api"],
                "cut at {cut}"
            );
            assert_eq!(fs::metadata(&path).unwrap().len(), ends[1], "cut at {cut}");
        }
        written(directory.path(), &["x"]);
        assert_eq!(names(directory.path()).unwrap(), ["web", "api", "x"]);
    }

    #[test]
    fn what_a_write_that_failed_left_is_cut_off_by_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(directory.path(), |_, _| {}).unwrap();
        journal.append("web", &Change::Removed).unwrap();
        let left = br#"["api",{"change":"removed"}]"#;
        journal
            .file
            .write_all_at(&left.repeat(3), journal.bytes)
            .unwrap();
        journal.append("x", &Change::Removed).unwrap();
        assert_eq!(names(directory.path()).unwrap(), ["web", "x"]);
    }

    #[test]
    fn damage_before_the_last_line_is_an_error_that_names_the_file() {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path(), &["web", "api"]);
        let path = directory.path().join("tenants.jsonl");
        let mut text = fs::read(&path).unwrap();
        text[3] = 0;
        fs::write(&path, text).unwrap();
        let error = names(directory.path()).expect_err("damaged").to_string();
        assert!(error.contains("tenants.jsonl is damaged"), "{error}");
    }
}
