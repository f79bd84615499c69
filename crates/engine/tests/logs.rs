//! A log that was damaged is found out when its database is opened, wherever the damage is and
//! whatever the durability; one that a crash cut short is not taken for damaged.

mod common;

use common::{engine, get, key, set, small, value};
use engine::{Engine, EngineError, Keyspace, Sync};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// In four logs of 40 KiB or so, and a part.
const WRITES: u32 = 200;
const SYNCS: [Sync; 3] = [Sync::Always, Sync::EverySecond, Sync::Never];

/// What a server that was killed left behind.
struct Left {
    folder: TempDir,
    sync: Sync,
}

impl Left {
    /// The files as they are at this moment, while the server runs: nothing is flushed yet.
    fn by_a_kill(sync: Sync) -> Left {
        let folder = tempfile::tempdir().unwrap();
        let running = tempfile::tempdir().unwrap();
        let engine = engine(running.path());
        fill(&engine.keyspace("t", small(sync)).unwrap());
        copy(running.path(), folder.path());
        engine.shutdown();
        let left = Left { folder, sync };
        assert!(left.logs().len() >= 4, "{:?}", left.logs());
        left
    }

    /// The files after an orderly end.
    fn by_a_stop(sync: Sync) -> Left {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine(folder.path());
        fill(&engine.keyspace("t", small(sync)).unwrap());
        engine.shutdown();
        Left { folder, sync }
    }

    fn directory(&self) -> PathBuf {
        self.folder.path().join("tenants/t")
    }

    /// Oldest first.
    fn logs(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.directory()).unwrap();
        let mut logs: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).collect();
        logs.retain(|path| path.extension().is_some_and(|e| e == "log"));
        logs.retain(|path| fs::metadata(path).unwrap().len() > 0);
        logs.sort();
        logs
    }

    fn change(&self, log: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let path = &self.logs()[log];
        let mut bytes = fs::read(path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }

    fn open(&self) -> (Arc<Engine>, Result<Arc<Keyspace>, EngineError>) {
        let engine = engine(self.folder.path());
        let keyspace = engine.keyspace("t", small(self.sync));
        (engine, keyspace)
    }

    /// It is not opened, and says which file it is and what can be done.
    fn is_damaged(&self, what: &str, file: &Path) {
        let (engine, opened) = self.open();
        let error = opened
            .err()
            .unwrap_or_else(|| panic!("{what} was not found, {:?}", self.sync));
        assert!(matches!(error, EngineError::Log { .. }), "{what}: {error}");
        let (text, name) = (
            error.to_string(),
            file.file_name().unwrap().to_string_lossy(),
        );
        assert!(
            text.contains(&*name) && text.contains("CUT_LOG"),
            "{what}: {text}"
        );
        engine.shutdown();
    }

    /// It is opened, and has the first writes, at least this many, and none after one that it has
    /// not.
    fn has(&self, least: u32) -> u32 {
        let (engine, opened) = self.open();
        let keyspace = opened.unwrap();
        let there: Vec<bool> = (0..WRITES)
            .map(|number| match get(&keyspace, &key(number)).unwrap() {
                Some(found) => {
                    assert_eq!(found, value(number));
                    true
                }
                None => false,
            })
            .collect();
        let kept = there.iter().take_while(|there| **there).count() as u32;
        assert!(kept >= least, "{kept} of {WRITES}");
        assert!(there[kept as usize..].iter().all(|there| !there), "a hole");
        // It can be written again, and what is written is there after another start.
        set(&keyspace, b"after", b"v").unwrap();
        engine.shutdown();
        drop(keyspace);
        drop(engine);
        let (engine, opened) = self.open();
        assert_eq!(get(&opened.unwrap(), b"after").unwrap().unwrap(), "v");
        engine.shutdown();
        kept
    }
}

fn fill(keyspace: &Arc<Keyspace>) {
    for number in 0..WRITES {
        set(keyspace, &key(number), &value(number)).unwrap();
    }
}

/// As it is at one moment: anew, if RocksDB has removed a file in the middle.
fn copy(from: &Path, to: &Path) {
    while let Err(error) = try_copy(from, to) {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        fs::remove_dir_all(to).unwrap();
    }
}

fn try_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            try_copy(&path, &target)?;
        } else {
            fs::copy(&path, target)?;
        }
    }
    Ok(())
}

fn flip(at: usize) -> impl Fn(&mut Vec<u8>) {
    move |bytes| bytes[at] ^= 0x10
}

fn zero(from: usize, len: usize) -> impl Fn(&mut Vec<u8>) {
    move |bytes| bytes[from..from + len].fill(0)
}

#[test]
fn a_whole_log_is_whole() {
    for sync in SYNCS {
        assert_eq!(Left::by_a_kill(sync).has(WRITES), WRITES);
        assert_eq!(Left::by_a_stop(sync).has(WRITES), WRITES);
    }
}

#[test]
fn damage_in_the_middle_is_an_error_that_names_the_file() {
    for sync in SYNCS {
        // In data, in the length of a record, in a checksum; in the first log, in one between, and
        // in the last.
        for (log, at) in [(0, 5_000), (1, 7), (1, 11_005), (2, 3), (2, 20_000)] {
            let left = Left::by_a_kill(sync);
            left.change(log, flip(at));
            left.is_damaged(
                &format!("a flipped bit in log {log} at {at}"),
                &left.logs()[log],
            );
        }
        for (log, from, len) in [(0, 0, 4_096), (1, 8_192, 4_096), (2, 12_288, 8_192)] {
            let left = Left::by_a_kill(sync);
            left.change(log, zero(from, len));
            left.is_damaged(
                &format!("zeros in log {log} from {from}"),
                &left.logs()[log],
            );
        }
        let left = Left::by_a_kill(sync);
        let last = left.logs().len() - 1;
        left.change(last, flip(100));
        left.is_damaged(
            "a flipped bit in the first record of the last log",
            &left.logs()[last],
        );
    }
}

#[test]
fn damage_after_an_orderly_end_is_found_up_to_the_last_write() {
    for sync in [Sync::Always, Sync::EverySecond] {
        let left = Left::by_a_stop(sync);
        let last = left.logs().len() - 1;
        // The last write is a KiB, and the word that the log is all there comes behind it.
        left.change(last, |bytes| {
            let at = bytes.len() - 500;
            bytes[at] ^= 1;
        });
        left.is_damaged("a flipped bit in the last write", &left.logs()[last]);
    }
}

#[test]
fn a_log_that_is_gone_or_short_is_an_error_that_names_what_comes_after_it() {
    for sync in SYNCS {
        for log in [0, 1, 2] {
            let left = Left::by_a_kill(sync);
            let logs = left.logs();
            fs::remove_file(&logs[log]).unwrap();
            left.is_damaged(&format!("log {log} is gone"), &logs[log + 1]);
            let left = Left::by_a_kill(sync);
            left.change(log, |bytes| bytes.truncate(bytes.len() - 1_500));
            left.is_damaged(&format!("log {log} is short"), &left.logs()[log]);
        }
        let left = Left::by_a_stop(sync);
        // Something must be in files, or there is nothing that could be missed.
        assert_eq!(left.has(WRITES), WRITES);
        for log in left.logs() {
            fs::remove_file(log).unwrap();
        }
        for empty in fs::read_dir(left.directory()).unwrap() {
            let path = empty.unwrap().path();
            if path.extension().is_some_and(|e| e == "log") {
                fs::remove_file(path).unwrap();
            }
        }
        left.is_damaged("all logs are gone", &left.directory());
    }
}

/// What a crash does to the end of a log is no damage: nobody was told of what is missing.
#[test]
fn an_end_that_was_cut_short_is_dropped() {
    for sync in SYNCS {
        for cut in [1, 20, 700, 1_030] {
            let left = Left::by_a_kill(sync);
            let last = left.logs().len() - 1;
            left.change(last, |bytes| bytes.truncate(bytes.len() - cut));
            let kept = left.has(WRITES - 2);
            assert!(kept < WRITES);
        }
        // A file that has its length and not its data, and one with more than that.
        let left = Left::by_a_kill(sync);
        let last = left.logs().len() - 1;
        left.change(last, |bytes| {
            let from = bytes.len() - 600;
            bytes[from..].fill(0);
        });
        left.has(WRITES - 1);
        let left = Left::by_a_kill(sync);
        left.change(last, |bytes| bytes.resize(bytes.len() + 100_000, 0));
        assert_eq!(left.has(WRITES), WRITES);
    }
}

#[test]
fn an_operator_may_give_up_what_is_behind_damage() {
    for sync in SYNCS {
        let left = Left::by_a_kill(sync);
        left.change(2, flip(15_000));
        left.is_damaged("a flipped bit", &left.logs()[2]);
        let consent = left.directory().join("CUT_LOG");
        fs::write(&consent, "").unwrap();
        let kept = left.has(WRITES / 4);
        assert!(kept < WRITES - WRITES / 4, "{kept}");
        assert!(!consent.exists(), "it counts once");
        let aside = fs::read_dir(left.directory().join("damaged-logs")).unwrap();
        assert!(aside.count() >= 2, "what was given up is kept");
    }
}
