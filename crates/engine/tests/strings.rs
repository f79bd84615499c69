//! Long strings: what of them is read, written, copied and kept.

mod common;

use bytes::Bytes;
use common::{commit, engine, engine_options, run, small, string};
use engine::{
    Access, Allotments, Database, Engine, Entry, Keys, Keyspace, KeyspaceOptions, Object, Outcome,
    Stop, Sync, Text, PIECE_BYTES, WHOLE_BYTES_MAX,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

const MIB: usize = 1 << 20;
const K: &[u8] = b"k";

fn open(folder: &Path) -> (Arc<Engine>, Arc<Keyspace>) {
    let engine = Engine::open(engine_options(folder)).expect("an engine");
    let options = KeyspaceOptions::new(Sync::EverySecond, Allotments::objects(1 << 20));
    let keyspace = engine.keyspace("t", options).expect("a keyspace");
    (engine, keyspace)
}

fn text(access: &mut Access) -> Result<Text, Stop> {
    match access.get(K)? {
        None => Ok(Text::default()),
        Some(Entry {
            object: Object::String(text),
            ..
        }) => Ok(text),
        other => panic!("{other:?}"),
    }
}

fn put(access: &mut Access, text: Text) -> Result<(), Stop> {
    let (object, expire_at_ms) = (Object::String(text), None);
    access.put(
        K,
        Entry {
            object,
            expire_at_ms,
        },
    )
}

fn write_at(access: &mut Access, at: usize, bytes: &[u8]) -> Result<(), Stop> {
    let mut text = text(access)?;
    access.write(&mut text, at as u64, Bytes::copy_from_slice(bytes))?;
    put(access, text)
}

fn read(access: &mut Access, at: usize, len: usize) -> Result<Vec<u8>, Stop> {
    let (mut bytes, text) = (Vec::new(), text(access)?);
    let mut parts = access.parts(&text, at as u64..(at + len) as u64)?;
    while let Some(part) = parts.next(access)? {
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Bytes that `change` adds to the log.
fn logged(keyspace: &Arc<Keyspace>, change: impl FnOnce()) -> u64 {
    // A batch is counted after it was told of, and before the next one is taken.
    let counted = || {
        let next = Entry::string(Bytes::from_static(b"n"));
        commit(keyspace, &[b"next"], |access| {
            access.put(b"next", next.clone())
        })
        .unwrap();
        keyspace.stats().committed_bytes
    };
    let before = counted();
    change();
    counted() - before
}

#[test]
fn a_part_costs_what_the_part_costs() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, keyspace) = open(folder.path());
    let len = 32 * MIB + 5;
    let value = Bytes::from(vec![b'v'; len]);
    commit(&keyspace, &[K], |access| {
        access.put(K, Entry::string(value.clone()))
    })
    .unwrap();
    for (what, at) in [("in the middle", 20 * MIB), ("at the end", len)] {
        let bytes = logged(&keyspace, || {
            commit(&keyspace, &[K], |access| write_at(access, at, b"12")).unwrap();
        });
        assert!(bytes < 2 * PIECE_BYTES as u64, "{what}: {bytes} bytes");
    }
    let there = |access: &mut Access| read(access, 20 * MIB - 1, 4);
    let (found, _) = run(&keyspace, &Keys::In(Database::FIRST, &[K]), 1, there).unwrap();
    assert_eq!(found, b"v12v");
    let (end, _) = run(&keyspace, &Keys::In(Database::FIRST, &[K]), 1, |a| {
        read(a, len - 1, 9)
    })
    .unwrap();
    assert_eq!(end, b"v12");
    engine.shutdown();
}

#[test]
fn a_gap_is_not_written_and_reads_as_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, keyspace) = open(folder.path());
    let far = 500 * MIB;
    let bytes = logged(&keyspace, || {
        commit(&keyspace, &[K], |access| write_at(access, far, b"x")).unwrap();
    });
    assert!(bytes < 2 * PIECE_BYTES as u64, "{bytes} bytes for one");
    let (found, _) = run(&keyspace, &Keys::In(Database::FIRST, &[K]), 1, |access| {
        assert_eq!(text(access)?.len(), far as u64 + 1);
        Ok([read(access, 0, 9)?, read(access, far - 8, 20)?])
    })
    .unwrap();
    assert_eq!(found, [vec![0; 9], b"\0\0\0\0\0\0\0\0x".to_vec()]);
    // A copy is as sparse as what it is of, and both go without a trace.
    let bytes = logged(&keyspace, || {
        commit(&keyspace, &[K, b"c"], |access| {
            let (from, expire_at_ms) = (text(access)?, None);
            let object = Object::String(access.copy(&from)?);
            access.put(
                b"c",
                Entry {
                    object,
                    expire_at_ms,
                },
            )
        })
        .unwrap();
    });
    assert!(bytes < 2 * PIECE_BYTES as u64, "{bytes} bytes for a copy");
    engine.shutdown();
}

#[test]
fn a_core_reads_and_writes_little_of_a_long_string_and_never_all() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, keyspace) = open(folder.path());
    let value = Bytes::from(vec![b'v'; 4 * MIB]);
    commit(&keyspace, &[K], |access| {
        access.put(K, Entry::string(value.clone()))
    })
    .unwrap();
    let names = [K];
    let keys = Keys::In(Database::FIRST, &names);
    for (at, len) in [(0, 1), (MIB, 60_000), (4 * MIB - 1, 1)] {
        let outcome = keyspace.try_run(&keys, 1, &mut |access| read(access, at, len));
        assert!(matches!(outcome, Outcome::Done { .. }), "{len} at {at}");
    }
    let whole = keyspace.try_run(&keys, 1, &mut |access| read(access, 0, 4 * MIB));
    assert!(matches!(whole, Outcome::Disk));
    let change = keyspace.try_run(&keys, 1, &mut |access| write_at(access, MIB, b"x"));
    assert!(matches!(change, Outcome::Done { .. }));
    // Taking a long value apart, and forgetting one, goes by its pieces.
    let long = Bytes::from(vec![b'w'; 2_000 * PIECE_BYTES]);
    let set = |access: &mut Access| access.put(K, Entry::string(long.clone()));
    assert!(matches!(
        keyspace.try_run(&keys, 1, &mut { set }),
        Outcome::Disk
    ));
    commit(&keyspace, &names, set).unwrap();
    let gone = keyspace.try_run(&keys, 1, &mut |access| access.delete(K));
    assert!(matches!(gone, Outcome::Disk));
    engine.shutdown();
}

#[test]
fn a_long_value_is_taken_apart_without_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, keyspace) = open(folder.path());
    let value = Bytes::from(vec![b'v'; MIB]);
    run(&keyspace, &Keys::In(Database::FIRST, &[K]), 1, |access| {
        access.put(K, Entry::string(value.clone()))?;
        let text = text(access)?;
        assert!(text.whole().is_none());
        let mut parts = access.parts(&text, 0..WHOLE_BYTES_MAX as u64)?;
        let mut at = 0;
        while let Some(part) = parts.next(access)? {
            assert_eq!(part.as_ptr(), value[at..].as_ptr());
            at += part.len();
        }
        Ok(())
    })
    .unwrap();
    engine.shutdown();
}

/// Says when it is dropped.
struct Told(Vec<u8>, Arc<AtomicBool>);

impl AsRef<[u8]> for Told {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.1.store(true, Ordering::SeqCst);
    }
}

#[test]
fn nothing_keeps_a_long_value_in_memory_once_it_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, keyspace) = open(folder.path());
    let dropped = Arc::new(AtomicBool::new(false));
    let value = Bytes::from_owner(Told(vec![b'v'; 2 * MIB], Arc::clone(&dropped)));
    let (_, seq) = run(&keyspace, &Keys::In(Database::FIRST, &[K]), 1, |access| {
        access.put(K, Entry::string(value.clone()))
    })
    .unwrap();
    drop(value);
    keyspace.wait_commit(seq).unwrap();
    // The committer lets go of it before it takes another batch.
    for round in 0u32..2 {
        commit(&keyspace, &[b"other"], |access| {
            access.put(b"other", Entry::string(Bytes::from(round.to_string())))
        })
        .unwrap();
    }
    assert!(dropped.load(Ordering::SeqCst));
    engine.shutdown();
}

#[test]
fn work_counts_what_is_kept_and_not_how_often_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path());
    let mut options = small(Sync::Never);
    options.work_bytes_max = 8 << 20;
    let keyspace = engine.keyspace("t", options).unwrap();
    commit(&keyspace, &[K], |access| {
        for round in 0..40 {
            write_at(access, 0, &vec![round; MIB])?;
        }
        Ok(())
    })
    .unwrap();
    let refused = commit(&keyspace, &[K], |access| {
        write_at(access, 0, &vec![7; 9 * MIB])
    });
    assert!(refused.unwrap_err().to_string().contains("memory"));
    engine.shutdown();
}

/// Writes a database as the version before pieces did, with one long string in it.
fn old_database(folder: &Path, value: &[u8]) {
    let (engine, keyspace) = open(folder);
    commit(&keyspace, &[b"short"], |access| {
        access.put(b"short", Entry::string(Bytes::from_static(b"s")))
    })
    .unwrap();
    drop(keyspace);
    engine.shutdown();
    drop(engine);
    let database = rocksdb::DB::open_default(folder.join("tenants/t")).unwrap();
    database.put(b"!format", b"1").unwrap();
    database.put(b"ok", [b"\0", value].concat()).unwrap();
}

fn record(folder: &Path, raw: &[u8]) -> Vec<u8> {
    let database = folder.join("tenants/t");
    let database = rocksdb::DB::open_for_read_only(&Default::default(), database, false).unwrap();
    database.get(raw).unwrap().expect("a record")
}

#[test]
fn a_long_string_of_an_older_version_is_read_whole_and_written_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let value: Vec<u8> = (0..MIB + 3).map(|at| (at % 251) as u8).collect();
    old_database(folder.path(), &value);
    let (engine, keyspace) = open(folder.path());
    let whole = |access: &mut Access| access.get(K);
    let (entry, _) = run(&keyspace, &Keys::In(Database::FIRST, &[K]), 1, whole).unwrap();
    assert_eq!(string(entry.expect("there")).expect("whole"), value);
    commit(&keyspace, &[K], |access| write_at(access, 70_000, b"new")).unwrap();
    let bytes = logged(&keyspace, || {
        commit(&keyspace, &[K], |access| write_at(access, 70_000, b"New")).unwrap();
    });
    assert!(bytes < 2 * PIECE_BYTES as u64, "{bytes} bytes");
    let mut expected = value.clone();
    expected[70_000..70_003].copy_from_slice(b"New");
    let found = |access: &mut Access| read(access, 0, 2 * MIB);
    let (found, _) = run(&keyspace, &Keys::In(Database::FIRST, &[K]), 1, found).unwrap();
    assert!(found == expected);
    drop(keyspace);
    engine.shutdown();
    drop(engine);
    assert_eq!(record(folder.path(), b"!format"), b"2");
    assert_eq!(record(folder.path(), b"ok").len(), 1 + 8 + 8);
}

#[test]
fn a_whole_string_of_an_older_version_can_be_moved_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    old_database(folder.path(), &vec![b'v'; MIB]);
    let (engine, keyspace) = open(folder.path());
    commit(&keyspace, &[K, b"j"], |access| access.rename(K, b"j")).unwrap();
    let moved = |access: &mut Access| access.get(b"j");
    let (moved, _) = run(&keyspace, &Keys::In(Database::FIRST, &[b"j"]), 1, moved).unwrap();
    assert!(matches!(
        moved.expect("there").object,
        Object::String(Text::Pieces { len, .. }) if len == MIB as u64
    ));
    assert!(commit(&keyspace, &[b"j"], |access| access.delete(b"j")).unwrap());
    engine.shutdown();
}

#[test]
fn a_format_of_a_later_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    old_database(folder.path(), b"v");
    let database = rocksdb::DB::open_default(folder.path().join("tenants/t")).unwrap();
    database.put(b"!format", b"4").unwrap();
    drop(database);
    let engine = Engine::open(engine_options(folder.path())).expect("an engine");
    let options = KeyspaceOptions::new(Sync::EverySecond, Allotments::objects(1 << 20));
    let error = engine.keyspace("t", options).unwrap_err().to_string();
    assert!(
        error.contains("format 4, this version reads only up to 3"),
        "{error}"
    );
    engine.shutdown();
}
