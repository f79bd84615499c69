//! What expires goes, what was rewritten stays, and nothing of a replaced collection is left.

mod common;

use bytes::Bytes;
use common::{commit, engine, get, run, set, small};
use engine::{Access, Entry, Header, Keys, Keyspace, Kind, Object, Stop, Sync, Table, Text};
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
    keyspace.close();
    let second = keyspace.expire_some(200, 2).unwrap();
    assert_eq!((second.deleted, second.next_due_ms), (1, Some(500)));
    let keys = keyspace.scan(200, &mut |access| access.estimate_keys());
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
    assert!(keyspace.close());
    commit(&keyspace, &[b"later"], timed(b"later", 900)).unwrap();
    set(&keyspace, b"never", b"v").unwrap();
    let expired = keyspace.expire_some(500, 10).unwrap();
    assert_eq!((expired.deleted, expired.examined), (0, 2));
    assert_eq!(expired.next_due_ms, Some(900));
    assert!(get(&keyspace, b"later").unwrap().is_some());
    assert!(get(&keyspace, b"never").unwrap().is_some());
    engine.shutdown();
}

#[test]
fn a_key_that_somebody_works_on_is_left_for_the_next_time() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    commit(&keyspace, &[b"k"], timed(b"k", 100)).unwrap();
    let keys: [&[u8]; 1] = [b"k"];
    let latch = keyspace.latch(&Keys::Some(&keys), Box::new(|| {})).unwrap();
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
    run(keyspace, &Keys::Some(&keys), 1, read).unwrap().0
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
