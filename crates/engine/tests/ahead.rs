//! Reads ahead of a command: what it finds then, and who waits for them.

mod common;

use bytes::Bytes;
use common::{close, engine, set, small, string};
use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended};
use engine::{
    Access, Ahead, Allotments, Database, Engine, Entry, Keys, Keyspace, KeyspaceOptions, Latch,
    Outcome, Site, Stop, Sync,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};

const ALL: [&[u8]; 4] = [b"a", b"b", b"c", b"none"];

/// The value of a key, larger than what lies with keys.
fn value(key: &[u8]) -> Bytes {
    Bytes::from(key.repeat(600))
}

/// A keyspace that has `a`, `b` and `c`, and nothing of them in memory.
fn cold(engine: &Engine, options: KeyspaceOptions) -> Arc<Keyspace> {
    let keyspace = engine.keyspace("t", options).unwrap();
    for key in &ALL[..3] {
        set(&keyspace, key, &value(key)).unwrap();
    }
    close(&keyspace);
    let (told, when) = channel();
    let waiter = Box::new(move || told.send(()).unwrap());
    let keys = Keys::In(Database::FIRST, &ALL);
    assert!(
        keyspace.latch_to_read(&keys, waiter).is_none(),
        "it is closed"
    );
    when.recv().unwrap();
    keyspace
}

fn latch(keyspace: &Arc<Keyspace>) -> (Latch, Arc<Ahead>) {
    let keys = Keys::In(Database::FIRST, &ALL);
    let latch = keyspace.latch_to_read(&keys, Box::new(|| {}));
    let (mut latch, ahead) = (latch.expect("free"), Arc::new(Ahead::default()));
    latch.read_ahead(Arc::clone(&ahead));
    (latch, ahead)
}

fn read_all(access: &mut Access) -> Result<Vec<Option<Bytes>>, Stop> {
    let read = |key: &&[u8]| Ok(access.get(key)?.and_then(string));
    ALL.iter().map(read).collect()
}

fn expected() -> Vec<Option<Bytes>> {
    let values = ALL[..3].iter().map(|key| Some(value(key)));
    values.chain([None]).collect()
}

/// Runs a multiget of which others have read `before` keys, and says how often the database was
/// asked for a record by it and by them.
fn read_after(keyspace: &Arc<Keyspace>, before: usize) -> [u64; 2] {
    let (latch, ahead) = latch(keyspace);
    let asked = || keyspace.stats().block_misses;
    let begun = asked();
    for _ in 0..before {
        assert!(ahead.read());
    }
    let helped = asked();
    let misses = keyspace.stats().cache_misses;
    let read = keyspace.run(&latch, Site::Handler, 1, &mut read_all);
    assert_eq!(read.unwrap().0, expected());
    // Whoever reads it: memory has not had it.
    assert_eq!(keyspace.stats().cache_misses - misses, ALL.len() as u64);
    assert!(!ahead.read(), "there is nothing left");
    drop(latch);
    let keys = Keys::In(Database::FIRST, &ALL);
    match keyspace.try_read(&keys, 1, &mut read_all) {
        Outcome::Done { reply, .. } => assert_eq!(reply, expected()),
        other => panic!("memory has it now: {other:?}"),
    }
    [asked() - helped, helped - begun]
}

#[test]
fn what_others_have_read_is_not_read_again() {
    for before in 0..=ALL.len() as u64 {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine(dir.path());
        let keyspace = cold(&engine, small(Sync::Never));
        let left = ALL.len() as u64 - before;
        assert_eq!(read_after(&keyspace, before as usize), [left, before]);
        engine.shutdown();
    }
}

#[test]
fn nothing_is_read_for_who_has_it_in_memory_or_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = cold(&engine, small(Sync::Never));
    let early = Ahead::default();
    assert!(!early.read(), "its command has no keys yet");
    let (first, ahead) = latch(&keyspace);
    drop(first);
    assert!(!ahead.read(), "its command has ended");
    assert_eq!(read_after(&keyspace, 0), [4, 0]);
    let (_latch, ahead) = latch(&keyspace);
    assert!(!ahead.read(), "all is in memory");
    engine.shutdown();
}

#[test]
fn large_values_are_not_heaped_up() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let names: Vec<String> = (0..40).map(|key| format!("k{key}")).collect();
    for name in &names {
        set(&keyspace, name.as_bytes(), &[0; 60 << 10]).unwrap();
    }
    close(&keyspace);
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let keys = Keys::In(Database::FIRST, &names);
    let (told, when) = channel();
    let waiter = Box::new(move || told.send(()).unwrap());
    assert!(keyspace.latch_to_read(&keys, waiter).is_none());
    when.recv().unwrap();
    let mut latch = keyspace.latch_to_read(&keys, Box::new(|| {})).unwrap();
    let ahead = Arc::new(Ahead::default());
    latch.read_ahead(Arc::clone(&ahead));
    let untaken = (0..).take_while(|_| ahead.read()).count();
    assert_eq!(untaken, (1 << 20) / (60 << 10) + 1);
    let read = |access: &mut Access| {
        let lengths = names.iter().map(|name| {
            let entry = access.get(name)?;
            Ok(entry.and_then(string).map_or(0, |value| value.len()))
        });
        lengths.sum::<Result<usize, Stop>>()
    };
    let read = keyspace.run(&latch, Site::Handler, 1, &mut { read });
    assert_eq!(read.unwrap().0, 40 * (60 << 10));
    engine.shutdown();
}

/// Holds reads of records from some moment on.
struct Held {
    armed: AtomicBool,
    begun: Mutex<Sender<()>>,
    go_on: Mutex<Receiver<()>>,
}

impl DeviceStage for Held {
    fn begin(&self, io: &DeviceIo) -> u64 {
        if io.activity == Activity::Get && self.armed.load(Ordering::Acquire) {
            let _ = self.begun.lock().unwrap().send(());
            let _ = self.go_on.lock().unwrap().recv();
        }
        0
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

#[test]
fn a_latch_is_held_until_reads_ahead_have_ended() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (begun, reads) = channel();
    let (go_on, gate) = channel::<()>();
    let stage = Arc::new(Held {
        armed: AtomicBool::new(false),
        begun: Mutex::new(begun),
        go_on: Mutex::new(gate),
    });
    let mut options = KeyspaceOptions::new(Sync::Never, Allotments::objects(64 << 10));
    options.device = Some(DeviceHook {
        stage: Arc::clone(&stage) as Arc<dyn DeviceStage>,
        principal: 0,
    });
    let keyspace = cold(&engine, options);
    stage.armed.store(true, Ordering::Release);
    let (latch, ahead) = latch(&keyspace);
    // Which key is the last is chance, and to know that one is not there may need no read.
    let helper = std::thread::spawn(move || while ahead.read() {});
    reads.recv().unwrap();
    let (told, released) = channel();
    let writer = Keys::In(Database::FIRST, &ALL);
    let mut write = |access: &mut Access| access.put(b"a", Entry::string(Bytes::new()));
    assert!(matches!(
        keyspace.try_run(&writer, 1, &mut write),
        Outcome::Busy
    ));
    assert!(keyspace.wait(&writer, Box::new(move || told.send(()).unwrap())));
    let holder = std::thread::spawn(move || drop(latch));
    // It waits for the read, however late it comes to it.
    assert!(released.try_recv().is_err());
    drop(go_on);
    helper.join().unwrap();
    holder.join().unwrap();
    released.recv().unwrap();
    assert!(matches!(
        keyspace.try_run(&writer, 1, &mut write),
        Outcome::Done { .. }
    ));
    engine.shutdown();
}
