//! What expires goes, what was rewritten stays, and nothing of a replaced collection is left.

mod common;

use bytes::Bytes;
use common::{close, commit, engine, get, run, set, small};
use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended, Fault, Op};
use engine::{
    Access, Database, EngineError, Entry, Header, Keys, Keyspace, Kind, Object, Site, Stop, Sync,
    Table, Text, PIECE_BYTES,
};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

fn timed(key: &'static [u8], at: u64) -> impl FnMut(&mut Access) -> Result<(), Stop> {
    move |access| {
        let object = Object::String(Text::Whole(Bytes::from_static(b"v")));
        let expire_at_ms = Some(at);
        access.put(
            key,
            Entry {
                object,
                expire_at_ms,
            },
        )
    }
}

#[test]
fn due_keys_go_in_portions_and_the_next_time_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    for (key, at) in [(b"a", 100), (b"b", 110), (b"c", 120), (b"d", 500)] {
        commit(&keyspace, &[key], timed(key, at)).unwrap();
    }
    let first = keyspace.expire_some(200, 2).unwrap();
    assert_eq!((first.deleted, first.examined), (2, 2));
    assert_eq!(first.next_due_ms, Some(120));
    // The walk does not wait until the database is open again.
    keyspace.wait_commit(keyspace.last_seq()).unwrap();
    close(&keyspace);
    assert!(get(&keyspace, b"d").unwrap().is_some());
    let second = keyspace.expire_some(200, 2).unwrap();
    assert_eq!((second.deleted, second.next_due_ms), (1, Some(500)));
    let keys = keyspace.scan(keyspace.last_seq(), Site::Apart, 200, &mut |access| {
        access.estimate_keys()
    });
    assert_eq!(keys.unwrap(), 1);
    assert_eq!(keyspace.expire_some(200, 2).unwrap().examined, 0);
    engine.shutdown();
}

/// A blind overwrite may leave the old index entry behind: it must not take the new value along.
#[test]
fn a_stale_index_entry_expires_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    for key in [b"later", b"never"] {
        commit(&keyspace, &[key], timed(key, 100)).unwrap();
    }
    // The old entries are in no memory now, and are not read.
    close(&keyspace);
    commit(&keyspace, &[b"later"], timed(b"later", 900)).unwrap();
    set(&keyspace, b"never", b"v").unwrap();
    let expired = keyspace.expire_some(500, 10).unwrap();
    assert_eq!((expired.deleted, expired.examined), (0, 2));
    assert_eq!(expired.next_due_ms, Some(900));
    assert!(get(&keyspace, b"later").unwrap().is_some());
    assert!(get(&keyspace, b"never").unwrap().is_some());
    engine.shutdown();
}

/// Holds up writes of the log, then lets them pass or fail.
#[derive(Default)]
struct Log {
    held: Mutex<bool>,
    failing: AtomicBool,
    changed: Condvar,
}

impl Log {
    fn hold(&self, held: bool) {
        *self.held.lock() = held;
        self.changed.notify_all();
    }
}

impl DeviceStage for Log {
    fn fault(&self, io: &DeviceIo) -> Option<Fault> {
        if io.activity != Activity::Log || io.op != Op::Write {
            return None;
        }
        let mut held = self.held.lock();
        self.changed.wait_while(&mut held, |held| *held);
        self.failing.load(Ordering::SeqCst).then_some(Fault::Failed)
    }

    fn begin(&self, _: &DeviceIo) -> u64 {
        0
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

const MANY: u64 = 600;
const CHUNK: usize = 100;

/// A keyspace with keys that all expire at 100, in a chunk's worth of commits, and what its log is
/// written through.
fn many(directory: &std::path::Path) -> (Arc<engine::Engine>, Arc<Keyspace>, Arc<Log>) {
    let engine = engine(directory);
    let log = Arc::new(Log::default());
    let mut options = small(Sync::Never);
    options.device = Some(DeviceHook {
        stage: Arc::clone(&log) as Arc<dyn DeviceStage>,
        principal: 1,
    });
    let keyspace = engine.keyspace("t", options).unwrap();
    for number in 0..MANY {
        let key = number.to_be_bytes();
        commit(&keyspace, &[&key], |access| {
            let object = Object::String(Text::Whole(Bytes::from_static(b"v")));
            let expire_at_ms = Some(100);
            access.put(
                &key,
                Entry {
                    object,
                    expire_at_ms,
                },
            )
        })
        .unwrap();
    }
    (engine, keyspace, log)
}

/// Sixteen sorted sets of 128 members are 4,096 records: no handler deletes them in one go, and a
/// walk leaves the rest for another.
#[test]
fn collections_that_are_too_much_together_go_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let keys: Vec<Bytes> = (0..32).map(|n| Bytes::from(format!("set {n}"))).collect();
    for key in &keys {
        commit(&keyspace, &[key], |access| {
            let mut header = access.new_collection(Kind::SortedSet)?;
            header.len = 128;
            for member in 0..128u32 {
                let name = member.to_be_bytes();
                access.put_record(Table::Member, header.id, &name, Bytes::from_static(b"1"))?;
                access.put_record(Table::Score, header.id, &name, Bytes::new())?;
            }
            let (object, expire_at_ms) = (Object::Collection(header), Some(100));
            access.put(
                key,
                Entry {
                    object,
                    expire_at_ms,
                },
            )
        })
        .unwrap();
    }
    let first = keyspace.expire_some(200, CHUNK).unwrap();
    assert!(first.more && first.deleted < keys.len() as u64, "{first:?}");
    let mut deleted = first.deleted;
    loop {
        let expired = keyspace.expire_some(200, CHUNK).unwrap();
        deleted += expired.deleted;
        if !expired.more {
            break;
        }
    }
    assert_eq!(deleted, keys.len() as u64);
}

/// It is 1,281 pieces, of which all but the last are holes.
#[test]
fn a_long_string_goes_and_holds_up_nothing_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    commit(&keyspace, &[b"long"], |access| {
        let mut text = Text::default();
        let at = 1_280 * PIECE_BYTES as u64;
        access.write(&mut text, at, Bytes::from_static(b"end"))?;
        let (object, expire_at_ms) = (Object::String(text), Some(100));
        access.put(
            b"long",
            Entry {
                object,
                expire_at_ms,
            },
        )
    })
    .unwrap();
    commit(&keyspace, &[b"short"], timed(b"short", 110)).unwrap();
    let mut deleted = 0;
    loop {
        let expired = keyspace.expire_some(200, CHUNK).unwrap();
        deleted += expired.deleted;
        if !expired.more {
            break;
        }
    }
    assert_eq!(deleted, 2);
}

#[test]
fn a_walk_goes_on_while_its_deletions_wait_for_their_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, keyspace, log) = many(dir.path());
    let before = keyspace.stats().commits;
    log.hold(true);
    let chunks = MANY / CHUNK as u64;
    for chunk in 1..=chunks {
        let expired = keyspace.expire_some(200, CHUNK).unwrap();
        assert_eq!((expired.deleted, expired.examined), (100, 100));
        assert_eq!(expired.more, chunk < chunks, "{chunk}");
        assert!(!expired.full);
    }
    assert_eq!(keyspace.expire_some(200, CHUNK).unwrap().examined, 0);
    log.hold(false);
    let keys = keyspace.scan(keyspace.last_seq(), Site::Apart, 1, &mut |access| {
        access.estimate_keys()
    });
    assert_eq!(keys.unwrap(), 0, "they are gone, expired or not");
    let commits = keyspace.stats().commits - before;
    assert!(commits < MANY / 4, "{commits} commits for {MANY} keys");
    engine.shutdown();
}

#[test]
fn deletions_that_failed_are_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, keyspace, log) = many(dir.path());
    log.failing.store(true, Ordering::SeqCst);
    loop {
        match keyspace.expire_some(200, CHUNK) {
            Ok(expired) if expired.more => {}
            // The log's page may have had room for some of them.
            Ok(_) => break,
            Err(error) => {
                assert!(matches!(error, EngineError::Write { .. }), "{error}");
                break;
            }
        }
    }
    while keyspace.stats().failures == 0 {
        std::thread::yield_now();
    }
    log.failing.store(false, Ordering::SeqCst);
    let keys = |keyspace: &Arc<Keyspace>| {
        keyspace.scan(keyspace.last_seq(), Site::Apart, 1, &mut |access| {
            access.estimate_keys()
        })
    };
    while keys(&keyspace).unwrap() > 0 {
        match keyspace.expire_some(200, CHUNK) {
            Ok(_) | Err(EngineError::Write { .. }) => std::thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
    engine.shutdown();
}

/// An entry that comes to the index after the walk has passed its time, as that of a write which
/// waited long.
#[test]
fn a_late_entry_is_found_by_a_second_walk_and_the_clock_may_be_set_back() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let now = 1_000_000;
    commit(&keyspace, &[b"k"], timed(b"k", now)).unwrap();
    assert_eq!(keyspace.expire_some(now, 10).unwrap().deleted, 1);
    commit(&keyspace, &[b"late"], timed(b"late", now - 20_000)).unwrap();
    let missed = keyspace.expire_some(now, 10).unwrap();
    assert_eq!(missed.deleted, 0);
    let mut at = missed.next_due_ms.expect("it looks back later");
    assert!(at > now, "but not at once");
    let mut deleted = 0;
    while deleted == 0 {
        let expired = keyspace.expire_some(at, 10).unwrap();
        deleted = expired.deleted;
        assert!(at < now + 120_000, "a minute or two later");
        at += 1_000;
    }
    assert_eq!(keyspace.expire_some(at, 10).unwrap().deleted, 0);

    commit(&keyspace, &[b"early"], timed(b"early", now - 30_000)).unwrap();
    assert_eq!(keyspace.expire_some(at, 10).unwrap().deleted, 0);
    assert_eq!(keyspace.expire_some(now, 10).unwrap().deleted, 1);
    engine.shutdown();
}

#[test]
fn a_key_that_somebody_works_on_is_left_for_the_next_time() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    commit(&keyspace, &[b"k"], timed(b"k", 100)).unwrap();
    let keys: [&[u8]; 1] = [b"k"];
    let latch = keyspace
        .latch(&Keys::In(Database::FIRST, &keys), Box::new(|| {}))
        .unwrap();
    assert_eq!(keyspace.expire_some(200, 10).unwrap().deleted, 0);
    drop(latch);
    assert_eq!(keyspace.expire_some(200, 10).unwrap().deleted, 1);
    engine.shutdown();
}

fn hash(keyspace: &Arc<Keyspace>, key: &'static [u8]) -> Header {
    commit(keyspace, &[key], |access| {
        let mut header = access.new_collection(Kind::Hash)?;
        header.len = 1;
        access.put_record(Table::Field, header.id, b"f", Bytes::from_static(b"v"))?;
        let object = Object::Collection(header);
        let expire_at_ms = None;
        access.put(
            key,
            Entry {
                object,
                expire_at_ms,
            },
        )?;
        Ok(header)
    })
    .unwrap()
}

fn field(keyspace: &Arc<Keyspace>, header: Header) -> Option<Bytes> {
    let keys: [&[u8]; 1] = [b"any"];
    let read = |access: &mut Access| access.record(Table::Field, header.id, b"f");
    run(keyspace, &Keys::In(Database::FIRST, &keys), 1, read)
        .unwrap()
        .0
}

/// After a restart nothing in memory says that a collection ever existed.
#[test]
fn a_blind_overwrite_of_a_collection_takes_its_records_along() {
    let dir = tempfile::tempdir().unwrap();
    let first = engine(dir.path());
    let keyspace = first.keyspace("t", small(Sync::Never)).unwrap();
    let replaced = hash(&keyspace, b"replaced");
    let kept = hash(&keyspace, b"kept");
    assert!(kept.id > replaced.id);
    drop(keyspace);
    first.shutdown();
    drop(first);

    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    assert!(field(&keyspace, replaced).is_some());
    set(&keyspace, b"replaced", b"now a string").unwrap();
    assert_eq!(field(&keyspace, replaced), None);
    assert!(field(&keyspace, kept).is_some());
    engine.shutdown();
}
