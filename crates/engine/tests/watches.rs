//! What a watch tells of its key.

mod common;

use bytes::Bytes;
use common::{close, commit, engine, engine_options, get, run, set, small};
use engine::{Database, Engine, Entry, Keys, Keyspace, Outcome, Stop, Sync, Watch};
use std::sync::Arc;
use std::time::Duration;

/// Watches a key.
fn watch(keyspace: &Arc<Keyspace>, key: &[u8], now_ms: u64) -> Watch {
    let watch = |access: &mut engine::Access| access.watch([key].into_iter());
    let (mut watches, _) =
        run(keyspace, &Keys::In(Database::FIRST, &[key]), now_ms, watch).unwrap();
    watches.remove(0)
}

#[test]
fn watches_see_what_changes_their_key() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    set(&keyspace, b"a", b"1").unwrap();
    let (a, other) = (watch(&keyspace, b"a", 1), watch(&keyspace, b"b", 1));
    get(&keyspace, b"a").unwrap();
    assert!(!a.dirty());
    set(&keyspace, b"a", b"1").unwrap();
    assert!(a.dirty() && !other.dirty());
    // A field changes, the header does not.
    let header = commit(&keyspace, &[b"h"], |access| {
        let header = access.new_collection(engine::Kind::Hash)?;
        let object = engine::Object::Collection(header);
        access.put(
            b"h",
            Entry {
                object,
                expire_at_ms: None,
            },
        )?;
        Ok(header)
    })
    .unwrap();
    let h = watch(&keyspace, b"h", 1);
    commit(&keyspace, &[b"h"], |access| {
        access.get(b"h")?;
        access.put_record(
            engine::Table::Field,
            header.id,
            b"f",
            Bytes::from_static(b"v"),
        )
    })
    .unwrap();
    assert!(h.dirty());
    set(&keyspace, b"c", b"1").unwrap();
    let (wiped, absent) = (
        watch(&keyspace, b"c", 1),
        watch(&keyspace, b"never written", 1),
    );
    run(&keyspace, &Keys::All, 1, |access| access.clear()).unwrap();
    assert!(wiped.dirty() && !absent.dirty() && !other.dirty());
    // Nor does memory know any more that there was no such key.
    keyspace.wait_commit(keyspace.last_seq()).unwrap();
    close(&keyspace);
    run(&keyspace, &Keys::All, 1, |access| access.clear()).unwrap();
    assert!(!absent.dirty() && !other.dirty());
    let timed = |access: &mut engine::Access| {
        let object = engine::Object::String(engine::Text::Whole(Bytes::from_static(b"v")));
        access.put(
            b"e",
            Entry {
                object,
                expire_at_ms: Some(100),
            },
        )
    };
    commit(&keyspace, &[b"e"], timed).unwrap();
    let (lives, expired) = (watch(&keyspace, b"e", 50), watch(&keyspace, b"e", 100));
    assert!(!lives.dirty_at(99) && lives.dirty_at(100));
    assert!(!expired.dirty_at(200), "was expired already");
    // What memory does not know is read first.
    keyspace.wait_commit(keyspace.last_seq()).unwrap();
    close(&keyspace);
    assert!(watch(&keyspace, b"e", 50).dirty_at(100));
    engine.shutdown();
}

/// Whoever removes it: the walk, or a command.
#[test]
fn nothing_happens_to_a_watched_key_when_what_had_expired_before_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let put = |access: &mut engine::Access, key: &[u8], expire_at_ms| {
        let object = engine::Object::String(engine::Text::Whole(Bytes::from_static(b"v")));
        let entry = Entry {
            object,
            expire_at_ms,
        };
        access.put(key, entry)
    };
    let keys: [&[u8]; 3] = [b"walked", b"deleted", b"written"];
    commit(&keyspace, &keys, |access| {
        keys.iter().try_for_each(|key| put(access, key, Some(100)))
    })
    .unwrap();
    let before = keys.map(|key| watch(&keyspace, key, 99));
    let watches = keys.map(|key| watch(&keyspace, key, 100));
    let at_200 = |keys: &[&[u8]], f: &mut dyn FnMut(&mut engine::Access) -> Result<bool, Stop>| {
        run(&keyspace, &Keys::In(Database::FIRST, keys), 200, f)
            .unwrap()
            .0
    };
    assert!(!at_200(&keys[1..2], &mut |access| access.delete(b"deleted")));
    // There was something for a moment.
    assert!(at_200(&keys[2..], &mut |access| {
        access.delete(b"written")?;
        put(access, b"written", None)?;
        access.delete(b"written")
    }));
    assert_eq!(keyspace.expire_some(200, 10).unwrap().deleted, 1);
    assert_eq!(
        watches.each_ref().map(|watch| watch.dirty_at(200)),
        [false, false, true]
    );
    assert!(before.iter().all(|watch| watch.dirty_at(200)));
    set(&keyspace, b"walked", b"v").unwrap();
    assert!(watches[0].dirty());
    engine.shutdown();
}

#[test]
fn a_watch_of_keys_of_which_memory_knows_only_the_first_goes_on_and_looks_at_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = engine_options(dir.path());
    // Or a block cache is lent to the tenant, and the block with the one key has the other.
    options.tick = Duration::from_secs(3600);
    let engine = Engine::open(options).expect("engine");
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let keys: [&[u8]; 2] = [b"known", b"forgotten"];
    for key in keys {
        set(&keyspace, key, b"v").unwrap();
    }
    close(&keyspace);
    get(&keyspace, b"known").unwrap();
    let mut both = |access: &mut engine::Access| access.watch(keys.into_iter());
    let in_memory = keyspace.try_run(&Keys::In(Database::FIRST, &keys), 1, &mut both);
    assert!(matches!(in_memory, Outcome::Disk));
    let (watches, _) = run(&keyspace, &Keys::In(Database::FIRST, &keys), 1, both).unwrap();
    set(&keyspace, b"forgotten", b"w").unwrap();
    let dirty: Vec<bool> = watches.iter().map(Watch::dirty).collect();
    assert_eq!(dirty, [false, true]);
    drop(watches);
    engine.shutdown();
}

#[test]
fn a_key_that_was_there_for_a_moment_before_all_were_cleared_has_changed() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let (written, absent) = (watch(&keyspace, b"a", 1), watch(&keyspace, b"b", 1));
    let moment = |access: &mut engine::Access| {
        access.put(b"a", Entry::string(Bytes::from_static(b"1")))?;
        access.clear()
    };
    run(&keyspace, &Keys::All, 1, moment).unwrap();
    assert!(written.dirty() && !absent.dirty());
    engine.shutdown();
}
