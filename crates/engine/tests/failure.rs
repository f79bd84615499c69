//! A disk that is full: said clearly, forgotten cleanly, left behind as soon as there is space.

mod common;

use bytes::Bytes;
use common::{engine, engine_options, get, run, set, small};
use engine::{Database, Engine, EngineError, Entry, Keys, Keyspace, Outcome, Sync};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// In a child process, because a file-size limit is the process's. SIGXFSZ would kill it: the
/// shell ignores the signal, and that is inherited.
#[test]
fn writes_beyond_a_file_size_limit_fail_and_come_back() {
    let exe = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -S -f 8192; exec \"$0\" \"$@\""])
        .arg(exe)
        .args([
            "--exact",
            "child_fills_its_limit",
            "--ignored",
            "--nocapture",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run in a child process by writes_beyond_a_file_size_limit_fail_and_come_back"]
fn child_fills_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    fill_and_recover(dir.path(), || {
        let hard = getrlimit(Resource::Fsize).maximum;
        let unlimited = Rlimit {
            current: hard,
            maximum: hard,
        };
        setrlimit(Resource::Fsize, unlimited).unwrap();
    });
}

/// The real thing, where a small file system can be mounted.
#[test]
fn writes_to_a_full_file_system_fail_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"])
        .arg(dir.path())
        .output();
    if !mount.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this user cannot mount a file system");
        return;
    }
    let ballast = dir.path().join("ballast");
    std::fs::write(&ballast, vec![0; 12 << 20]).unwrap();
    let result = std::panic::catch_unwind(|| {
        fill_and_recover(dir.path(), || std::fs::remove_file(&ballast).unwrap());
    });
    Command::new("umount").arg(dir.path()).status().unwrap();
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

/// Writes until it fails, checks what is left, makes room, checks that writing works again.
fn fill_and_recover(directory: &Path, make_room: impl FnOnce()) {
    let engine = engine(directory);
    let mut options = small(Sync::Always);
    // Nothing is flushed: the log alone grows to the limit.
    options.memtable_bytes = 64 << 20;
    let keyspace = engine.keyspace("full", options).unwrap();
    set(&keyspace, b"before", b"kept").unwrap();
    let (error, written) = fill(&keyspace);
    let text = error.reply(true);
    assert!(
        text.starts_with("MISCONF Errors writing to the data directory "),
        "{text}"
    );
    assert!(text.contains("tenants/full"), "{text}");

    // The failed write is forgotten, everything before it is there.
    let failed = number(written);
    assert_eq!(get(&keyspace, &failed).unwrap(), None);
    assert_eq!(
        get(&keyspace, &number(written - 1)).unwrap().unwrap().len(),
        VALUE
    );
    assert_eq!(get(&keyspace, b"before").unwrap().unwrap(), "kept");
    // Refused at once, in phase 1.
    let refused = keyspace.try_run(&Keys::In(Database::FIRST, &[b"x"]), 1, &mut |access| {
        access.put(b"x", Entry::string(Bytes::new()))
    });
    assert!(
        matches!(refused, Outcome::Failed(EngineError::Write { .. })),
        "{refused:?}"
    );
    assert!(keyspace.stats().error.is_some());

    make_room();
    while let Err(error) = set(&keyspace, b"after", b"works") {
        assert!(matches!(error, EngineError::Write { .. }), "{error}");
        std::thread::yield_now();
    }
    assert!(keyspace.stats().error.is_none());
    assert_eq!(
        get(&keyspace, &number(written - 1)).unwrap().unwrap().len(),
        VALUE
    );
    engine.shutdown();
    drop(keyspace);
    drop(engine);
    reopened(directory, written);
}

fn reopened(directory: &Path, written: u32) {
    let engine = Engine::open(engine_options(directory)).unwrap();
    let keyspace = engine.keyspace("full", small(Sync::Always)).unwrap();
    assert_eq!(get(&keyspace, b"after").unwrap().unwrap(), "works");
    for i in 0..written {
        assert!(
            get(&keyspace, &number(i)).unwrap().is_some(),
            "{i} of {written} is lost"
        );
    }
    engine.shutdown();
}

const VALUE: usize = 30_000;

fn number(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// The error, and the number of the write that got it.
fn fill(keyspace: &Arc<Keyspace>) -> (EngineError, u32) {
    for i in 0..10_000 {
        if let Err(error) = set(keyspace, &number(i), &[b'v'; VALUE]) {
            return (error, i);
        }
    }
    panic!("300 MB fit");
}

/// A directory that is gone: the first write may still go to the open log, nothing may hang or
/// crash, and the other tenant is not touched.
#[test]
fn a_removed_directory_stays_its_own_tenants_problem() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let gone = engine.keyspace("gone", small(Sync::Always)).unwrap();
    let other = engine.keyspace("other", small(Sync::Always)).unwrap();
    set(&gone, b"k", b"v").unwrap();
    std::fs::remove_dir_all(dir.path().join("tenants/gone")).unwrap();
    // Enough for the memtable to be flushed, which needs a new file.
    let failed = (0..1000u32).any(|i| set(&gone, &number(i), &[0; 10_000]).is_err());
    assert!(failed);
    set(&other, b"k", b"v").unwrap();
    assert!(other.stats().error.is_none());
    engine.shutdown();
}

/// What was applied in memory behind the failed write fails with it, and memory then shows what
/// the database holds, not what failed.
#[test]
fn writes_behind_a_failed_one_fail_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Always)).unwrap();
    std::fs::remove_dir_all(dir.path().join("tenants/t")).unwrap();
    let put = |i: u32| {
        let value = Bytes::from(vec![i as u8; 10_000]);
        let entry = Entry::string(value);
        run(
            &keyspace,
            &Keys::In(Database::FIRST, &[b"k"]),
            1,
            |access| access.put(b"k", entry.clone()),
        )
    };
    let mut committed = 0;
    for i in (1..1000).step_by(2) {
        let (Ok((_, first)), Ok((_, second))) = (put(i), put(i + 1)) else {
            panic!("refused before anything failed");
        };
        let (one, two) = (keyspace.wait_commit(first), keyspace.wait_commit(second));
        assert!(two.is_err() || one.is_ok(), "the second rests on the first");
        committed = if two.is_ok() {
            i + 1
        } else if one.is_ok() {
            i
        } else {
            committed
        };
        if two.is_err() {
            let value = get(&keyspace, b"k").unwrap().unwrap();
            assert_eq!(value[0], committed as u8);
            engine.shutdown();
            return;
        }
    }
    panic!("nothing failed");
}
