//! What is written to forget a key with records of its own.

mod common;

use bytes::Bytes;
use common::{close, commit, engine_options, run};
use engine::{
    Access, Allotments, Database, Engine, Entry, Header, Keys, Keyspace, KeyspaceOptions, Kind,
    Object, Outcome, Stop, Sync, Table, PIECE_BYTES,
};
use std::path::Path;
use std::sync::Arc;

const K: &[u8] = b"k";

fn open(folder: &Path) -> (Arc<Engine>, Arc<Keyspace>) {
    let engine = Engine::open(engine_options(folder)).expect("an engine");
    let options = KeyspaceOptions::new(Sync::EverySecond, Allotments::objects(1 << 20));
    let keyspace = engine.keyspace("t", options).expect("a keyspace");
    (engine, keyspace)
}

fn put(access: &mut Access, header: Header) -> Result<(), Stop> {
    let (object, expire_at_ms) = (Object::Collection(header), None);
    let entry = Entry {
        object,
        expire_at_ms,
    };
    access.put(K, entry)
}

/// Puts a hash of `fields` fields of `bytes` bytes each under the key, or as large a sorted set.
fn fill(access: &mut Access, kind: Kind, fields: u32, bytes: usize) -> Result<(), Stop> {
    let mut header = access.new_collection(kind)?;
    header.len = u64::from(fields);
    let value = Bytes::from(vec![b'v'; bytes]);
    for field in 0..fields {
        let name = field.to_be_bytes();
        match kind {
            Kind::Hash => access.put_record(Table::Field, header.id, &name, value.clone())?,
            Kind::SortedSet => {
                access.put_record(Table::Member, header.id, &name, value.clone())?;
                access.put_record(Table::Score, header.id, &name, Bytes::new())?;
            }
        }
    }
    put(access, header)
}

/// First bytes of the records in the files, and how often ranges were deleted.
fn files(folder: &Path) -> (String, u64) {
    let path = folder.join("tenants/t");
    // Opened for writing, it makes files of what is in its log, and no fewer of them.
    let mut options = rocksdb::Options::default();
    options.set_disable_auto_compactions(true);
    drop(rocksdb::DB::open(&options, &path).unwrap());
    let database = rocksdb::DB::open_for_read_only(&options, path, false).unwrap();
    let records = database.iterator(rocksdb::IteratorMode::Start);
    let first = records.map(|record| char::from(record.unwrap().0[0]));
    let first = first.filter(|first| !['!', 'x'].contains(first)).collect();
    let properties = database.property_value("rocksdb.aggregated-table-properties");
    let properties = properties.unwrap().expect("there are files");
    let ranges = properties
        .split("# range deletions=")
        .nth(1)
        .expect("a number");
    let ranges = ranges.split(';').next().expect("an end").parse();
    (first, ranges.expect("a count"))
}

/// Fills the key and forgets it by `forget`, before or after what was written has gone to files;
/// returns how often ranges were deleted. Nothing may be left.
fn ranges_deleted(
    fill: impl Fn(&mut Access) -> Result<(), Stop>,
    forget: impl Fn(&mut Access) -> Result<(), Stop>,
    closes: bool,
) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let (engine, keyspace) = open(folder.path());
    for _ in 0..3 {
        commit(&keyspace, &[K], &fill).unwrap();
        if closes {
            close(&keyspace);
        }
        commit(&keyspace, &[K], &forget).unwrap();
        commit(&keyspace, &[K], |access| access.delete(K)).unwrap();
    }
    drop(keyspace);
    engine.shutdown();
    drop(engine);
    let (left, ranges) = files(folder.path());
    assert_eq!(left, "");
    ranges
}

fn delete(access: &mut Access) -> Result<(), Stop> {
    access.delete(K).map(drop)
}

#[test]
fn small_collections_are_forgotten_record_by_record() {
    for kind in [Kind::Hash, Kind::SortedSet] {
        for close in [false, true] {
            for fields in [1, 128] {
                let small = |access: &mut Access| fill(access, kind, fields, 10);
                let ranges = ranges_deleted(small, delete, close);
                assert_eq!(ranges, 0, "{fields} of {kind:?}, closed: {close}");
            }
        }
    }
}

#[test]
fn large_collections_are_forgotten_at_once() {
    for close in [false, true] {
        let many = |access: &mut Access| fill(access, Kind::Hash, 129, 10);
        assert_eq!(ranges_deleted(many, delete, close), 3, "many records");
        let long = |access: &mut Access| fill(access, Kind::Hash, 40, 10_000);
        assert_eq!(ranges_deleted(long, delete, close), 3, "long records");
        let both = |access: &mut Access| fill(access, Kind::SortedSet, 129, 10);
        assert_eq!(ranges_deleted(both, delete, close), 6, "two tables");
    }
}

#[test]
fn an_overwrite_forgets_as_a_deletion_does() {
    let string = |access: &mut Access| access.put(K, Entry::string(Bytes::from_static(b"s")));
    let hash = |access: &mut Access| fill(access, Kind::Hash, 5, 10);
    for close in [false, true] {
        assert_eq!(ranges_deleted(hash, string, close), 0);
        assert_eq!(ranges_deleted(hash, hash, close), 0);
    }
}

#[test]
fn pieces_of_strings_are_named_however_many() {
    let string = |access: &mut Access| {
        let value = Bytes::from(vec![b'v'; 500 * PIECE_BYTES + 1]);
        access.put(K, Entry::string(value))
    };
    for close in [false, true] {
        assert_eq!(ranges_deleted(string, delete, close), 0);
        assert_eq!(ranges_deleted(string, string, close), 0);
    }
}

#[test]
fn what_a_command_itself_wrote_or_removed_goes_too() {
    // As MULTI does it: changes and the end of a hash in one.
    let changed = |access: &mut Access| {
        let Some(Entry {
            object: Object::Collection(mut header),
            ..
        }) = access.get(K)?
        else {
            panic!("no hash");
        };
        access.delete_record(Table::Field, header.id, &1u32.to_be_bytes())?;
        access.put_record(Table::Field, header.id, b"new", Bytes::new())?;
        access.put_record(Table::Field, header.id, b"newer", Bytes::new())?;
        access.delete_record(Table::Field, header.id, b"newer")?;
        header.len -= 1;
        put(access, header)?;
        access.delete(K).map(drop)
    };
    let hash = |access: &mut Access| fill(access, Kind::Hash, 5, 10);
    let made = |access: &mut Access| {
        fill(access, Kind::Hash, 5, 10)?;
        access.delete(K).map(drop)
    };
    for close in [false, true] {
        assert_eq!(ranges_deleted(hash, changed, close), 0);
        assert_eq!(ranges_deleted(hash, made, close), 0);
    }
}

#[test]
fn names_that_are_not_in_memory_are_read_on_a_handler() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, keyspace) = open(folder.path());
    commit(&keyspace, &[K], |access| {
        fill(access, Kind::Hash, 40, 1_000)
    })
    .unwrap();
    let names = [K];
    let keys = Keys::In(Database::FIRST, &names);
    let in_memory = keyspace.try_run(&keys, 1, &mut |access| fill(access, Kind::Hash, 41, 1_000));
    assert!(matches!(in_memory, Outcome::Done { .. }));
    keyspace.kick();
    close(&keyspace);
    // Only the object is read; most of the fields lie in other blocks.
    run(&keyspace, &keys, 1, |access| access.get(K)).unwrap();
    let outcome = keyspace.try_run(&keys, 1, &mut |access| access.delete(K));
    assert!(matches!(outcome, Outcome::Disk));
    let (deleted, _) = run(&keyspace, &keys, 1, |access| access.delete(K)).unwrap();
    assert!(deleted);
    drop(keyspace);
    engine.shutdown();
    drop(engine);
    assert_eq!(files(folder.path()).0, "");
}
