//! The numbered databases of one keyspace: apart, exchanged, emptied, and as they were before there
//! were any.

mod common;

use bytes::Bytes;
use common::{engine, run, small, string};
use engine::{
    Access, Database, Engine, Entry, Header, Keys, Keyspace, Kind, Object, Stop, Sync, Table, Watch,
};
use std::path::Path;
use std::sync::Arc;

/// Begins like the name of a key of another database.
const NAMELIKE: &[u8] = b"\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x01k";

fn numbered(number: i64) -> Database {
    Database::new(number).unwrap()
}

fn on<R>(
    keyspace: &Arc<Keyspace>,
    number: i64,
    key: &[u8],
    mut act: impl FnMut(&mut Access) -> Result<R, Stop>,
) -> R {
    let keys = Keys::In(numbered(number), &[key]);
    let selected = |access: &mut Access| {
        access.select(numbered(number));
        act(access)
    };
    let (reply, seq) = run(keyspace, &keys, 1, selected).unwrap();
    keyspace.wait_commit(seq).unwrap();
    reply
}

fn set(keyspace: &Arc<Keyspace>, number: i64, key: &[u8], value: &'static [u8]) {
    on(keyspace, number, key, |access| {
        access.put(key, Entry::string(Bytes::from_static(value)))
    });
}

fn get(keyspace: &Arc<Keyspace>, number: i64, key: &[u8]) -> Option<Bytes> {
    on(keyspace, number, key, |access| access.get(key)).and_then(string)
}

fn alone(keyspace: &Arc<Keyspace>, act: impl FnMut(&mut Access) -> Result<(), Stop>) {
    let ((), seq) = run(keyspace, &Keys::All, 1, act).unwrap();
    keyspace.wait_commit(seq).unwrap();
}

fn swap(keyspace: &Arc<Keyspace>, one: i64, other: i64) {
    alone(keyspace, |access| {
        access.swap_databases(numbered(one), numbered(other))
    });
}

fn empty(keyspace: &Arc<Keyspace>, number: i64) {
    alone(keyspace, |access| {
        access.select(numbered(number));
        access.clear_database()
    });
}

fn hash(keyspace: &Arc<Keyspace>, number: i64, key: &[u8]) -> Header {
    on(keyspace, number, key, |access| {
        let header = access.new_collection(Kind::Hash)?;
        access.put_record(Table::Field, header.id, b"f", Bytes::from_static(b"v"))?;
        let (object, expire_at_ms) = (Object::Collection(Header { len: 1, ..header }), None);
        access.put(
            key,
            Entry {
                object,
                expire_at_ms,
            },
        )?;
        Ok(header)
    })
}

fn watch(keyspace: &Arc<Keyspace>, number: i64, key: &[u8]) -> Watch {
    let mut watches = on(keyspace, number, key, |access| {
        access.watch([key].into_iter())
    });
    watches.remove(0)
}

fn close(engine: Arc<Engine>, keyspace: Arc<Keyspace>) {
    drop(keyspace);
    engine.shutdown();
}

/// Closes everything, and shows what lies on the disk.
fn records(directory: &Path, engine: Arc<Engine>) -> Vec<(Vec<u8>, Vec<u8>)> {
    engine.shutdown();
    drop(engine);
    let path = directory.join("tenants/t");
    let database = rocksdb::DB::open_for_read_only(&Default::default(), path, false).unwrap();
    let records = database.iterator(rocksdb::IteratorMode::Start);
    records
        .map(|record| record.unwrap())
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

fn format(records: &[(Vec<u8>, Vec<u8>)]) -> &[u8] {
    let found = records.iter().find(|(key, _)| key == b"!format");
    &found.unwrap().1
}

#[test]
fn a_tenant_that_uses_the_first_only_has_records_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    set(&keyspace, 0, b"k", b"v");
    assert_eq!(get(&keyspace, 7, b"k"), None);
    empty(&keyspace, 3);
    assert_eq!(get(&keyspace, 0, b"k").unwrap(), "v");
    empty(&keyspace, 0);
    assert_eq!(get(&keyspace, 0, b"k"), None);
    set(&keyspace, 0, b"k", b"v");
    drop(keyspace);
    let records = records(dir.path(), engine);
    assert_eq!(format(&records), b"2");
    let names: Vec<_> = records.iter().map(|(key, _)| &key[..]).collect();
    assert_eq!(names, [&b"!format"[..], b"ok"]);
}

#[test]
fn databases_are_apart_and_stay_so() {
    let dir = tempfile::tempdir().unwrap();
    let first = engine(dir.path());
    let keyspace = first.keyspace("t", small(Sync::Never)).unwrap();
    set(&keyspace, 0, b"k", b"zero");
    set(&keyspace, 1, b"k", b"one");
    set(&keyspace, 0, NAMELIKE, b"namelike");
    hash(&keyspace, 1, b"h");
    let check = |keyspace: &Arc<Keyspace>| {
        assert_eq!(get(keyspace, 0, b"k").unwrap(), "zero");
        assert_eq!(get(keyspace, 1, b"k").unwrap(), "one");
        assert_eq!(get(keyspace, 2, b"k"), None);
        assert_eq!(get(keyspace, 0, NAMELIKE).unwrap(), "namelike");
    };
    check(&keyspace);
    swap(&keyspace, 1, 2);
    assert_eq!(get(&keyspace, 2, b"k").unwrap(), "one");
    assert_eq!(get(&keyspace, 1, b"k"), None);
    swap(&keyspace, 2, 1);
    close(first, keyspace);
    let second = engine(dir.path());
    let keyspace = second.keyspace("t", small(Sync::Never)).unwrap();
    check(&keyspace);
    swap(&keyspace, 0, 1);
    close(second, keyspace);
    let third = engine(dir.path());
    let keyspace = third.keyspace("t", small(Sync::Never)).unwrap();
    assert_eq!(get(&keyspace, 0, b"k").unwrap(), "one");
    assert_eq!(get(&keyspace, 1, NAMELIKE).unwrap(), "namelike");
    third.shutdown();
}

#[test]
fn a_database_that_is_emptied_leaves_nothing_and_no_other_loses_anything() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    set(&keyspace, 0, b"k", b"zero");
    set(&keyspace, 1, b"k", b"one");
    let kept = hash(&keyspace, 0, b"h");
    let gone = hash(&keyspace, 1, b"h");
    empty(&keyspace, 1);
    assert_eq!(get(&keyspace, 1, b"k"), None);
    assert_eq!(get(&keyspace, 0, b"k").unwrap(), "zero");
    set(&keyspace, 1, b"new", b"v");
    empty(&keyspace, 0);
    assert_eq!(get(&keyspace, 0, b"k"), None);
    assert_eq!(get(&keyspace, 1, b"new").unwrap(), "v");
    set(&keyspace, 0, b"again", b"w");
    assert_eq!(get(&keyspace, 0, b"again").unwrap(), "w");
    assert_ne!(kept.id, gone.id);
    drop(keyspace);
    let records = records(dir.path(), engine);
    assert_eq!(format(&records), b"3");
    let data = records.iter().filter(|(key, _)| key[0] != b'!');
    assert_eq!(data.count(), 2, "{records:?}");
}

#[test]
fn watches_follow_their_databases() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    set(&keyspace, 1, b"one", b"v");
    set(&keyspace, 2, b"two", b"v");
    let [there, absent, elsewhere] =
        [&b"one"[..], b"none", b"two"].map(|key| watch(&keyspace, 1, key));
    let bystander = watch(&keyspace, 0, b"none");
    swap(&keyspace, 1, 2);
    assert!(
        there.dirty() && elsewhere.dirty(),
        "one went, the other came"
    );
    assert!(!absent.dirty() && !bystander.dirty());
    set(&keyspace, 1, b"none", b"v");
    assert!(absent.dirty(), "it is watched where its database is now");
    let [there, absent] = [&b"two"[..], b"nobody"].map(|key| watch(&keyspace, 1, key));
    empty(&keyspace, 1);
    assert!(there.dirty() && !absent.dirty());
    set(&keyspace, 1, b"nobody", b"v");
    assert!(absent.dirty());
    // Within one transaction, by the database that each key is of when it is written.
    let [before, after] = [1, 2].map(|number| watch(&keyspace, number, b"mine"));
    alone(&keyspace, |access| {
        access.select(numbered(1));
        access.put(b"mine", Entry::string(Bytes::from_static(b"v")))?;
        access.delete(b"mine")?;
        access.swap_databases(numbered(1), numbered(2))?;
        access.select(numbered(0));
        access.put(b"mine", Entry::string(Bytes::from_static(b"v")))
    });
    assert!(before.dirty() && !after.dirty() && !bystander.dirty());
    engine.shutdown();
}

#[test]
fn keys_from_before_there_were_names_get_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenants/t");
    let first = engine(dir.path());
    let keyspace = first.keyspace("t", small(Sync::Never)).unwrap();
    close(first, keyspace);
    // As the version before wrote them: the second expires, and is the first's new name.
    let other = [&NAMELIKE[..8], b"\0\0\0\0", NAMELIKE].concat();
    let old = rocksdb::DB::open_default(&path).unwrap();
    old.put([b"o", NAMELIKE].concat(), b"\0namelike").unwrap();
    let expires = [&b"\x80"[..], &u64::MAX.to_be_bytes(), b"other"].concat();
    old.put([b"o", &other[..]].concat(), expires).unwrap();
    old.put(b"okey", b"\0value").unwrap();
    drop(old);
    let second = engine(dir.path());
    let keyspace = second.keyspace("t", small(Sync::Never)).unwrap();
    assert_eq!(get(&keyspace, 0, b"key").unwrap(), "value");
    assert_eq!(get(&keyspace, 0, NAMELIKE).unwrap(), "namelike");
    assert_eq!(get(&keyspace, 0, &other).unwrap(), "other");
    assert_eq!(get(&keyspace, 1, b"k"), None);
    drop(keyspace);
    let records = records(dir.path(), second);
    assert_eq!(format(&records), b"3");
    assert_eq!(records.iter().filter(|(key, _)| key[0] == b'x').count(), 1);
}
