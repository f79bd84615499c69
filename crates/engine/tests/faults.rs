//! A device that breaks under the hook: no write that was acknowledged as synced is lost, whatever
//! fails, and each failure is said.

mod common;

use bytes::Bytes;
use common::{close, commit, engine, get, key, run, set, small, value};
use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended, Fault, FileKind, Op};
use engine::{
    Access, Allotments, Blocks, Database, Engine, EngineError, Entry, Keys, Keyspace,
    KeyspaceOptions, Order, Site, Sync,
};
use parking_lot::Mutex;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// What breaks, and how.
type Break = (fn(&DeviceIo) -> bool, Fault);

/// Breaks what it is told to.
#[derive(Default)]
struct Breaking {
    broken: Mutex<Option<Break>>,
    /// I/Os that broke.
    struck: AtomicU32,
}

impl Breaking {
    fn set(&self, broken: Option<Break>) {
        *self.broken.lock() = broken;
    }

    fn struck(&self) -> u32 {
        self.struck.load(Ordering::SeqCst)
    }
}

impl DeviceStage for Breaking {
    fn begin(&self, _: &DeviceIo) -> u64 {
        0
    }

    fn fault(&self, io: &DeviceIo) -> Option<Fault> {
        let (hits, fault) = (*self.broken.lock())?;
        let hit = hits(io);
        self.struck.fetch_add(u32::from(hit), Ordering::SeqCst);
        hit.then_some(fault)
    }

    fn end(&self, io: &DeviceIo, _: u64, ended: Ended) {
        assert!(ended.ok || ended.bytes == 0, "{io:?} {ended:?}");
    }
}

fn options(stage: &Arc<Breaking>) -> KeyspaceOptions {
    let mut options = small(Sync::Always);
    // Reads go to the database.
    options.allotments.object_cache_bytes = 0;
    options.device = Some(DeviceHook {
        stage: Arc::clone(stage) as Arc<dyn DeviceStage>,
        principal: 1,
    });
    options
}

/// Beyond this a test has failed: what it waits for does not come.
const NEVER: Duration = Duration::from_secs(60);
/// Enough for two flushes with memtables of 256 KiB.
const WRITES: u32 = 600;
/// What breaks in a flush or a compaction breaks whenever RocksDB's threads come to it.
const WRITES_MAX: u32 = 60_000;

/// Writes `count` times or until it fails; returns what was acknowledged, and why it ended.
fn write_up_to(keyspace: &Arc<Keyspace>, from: u32, count: u32) -> (u32, Option<EngineError>) {
    for number in from..from + count {
        if let Err(error) = set(keyspace, &key(number), &value(number)) {
            return (number, Some(error));
        }
    }
    (from + count, None)
}

fn write(keyspace: &Arc<Keyspace>, from: u32) -> (u32, Option<EngineError>) {
    write_up_to(keyspace, from, WRITES)
}

fn all_there(keyspace: &Arc<Keyspace>, until: u32, from: u32, to: u32) {
    for number in (0..until).chain(from..to) {
        let found = get(keyspace, &key(number)).expect("read");
        assert_eq!(found.expect("acknowledged"), value(number), "{number}");
    }
}

/// What is found after a device broke under writes, was mended, and after a restart.
struct Broken {
    folder: TempDir,
    stage: Arc<Breaking>,
    engine: Arc<Engine>,
    keyspace: Arc<Keyspace>,
    /// Acknowledged before anything broke.
    before: u32,
}

impl Broken {
    /// Not broken yet.
    fn new() -> Broken {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let stage = Arc::new(Breaking::default());
        let engine = engine(folder.path());
        let keyspace = engine.keyspace("tenant", options(&stage)).expect("opened");
        let (before, none) = write(&keyspace, 0);
        assert!(none.is_none(), "{none:?}");
        Broken {
            folder,
            stage,
            engine,
            keyspace,
            before,
        }
    }

    /// Mends it, and looks for what was acknowledged before and after, then and after a restart.
    fn mended(self, acknowledged: u32) {
        self.stage.set(None);
        let again = acknowledged + WRITES;
        let after = again + WRITES;
        for number in again..after {
            // What broke in a compaction before it was mended may be said after it.
            while let Err(error) = set(&self.keyspace, &key(number), &value(number)) {
                assert!(matches!(error, EngineError::Write { .. }), "{error}");
                std::thread::yield_now();
            }
        }
        all_there(&self.keyspace, acknowledged, again, after);
        self.engine.shutdown();
        drop(self.keyspace);
        drop(self.engine);

        let engine = engine(self.folder.path());
        let keyspace = engine.keyspace("tenant", options(&self.stage));
        all_there(&keyspace.expect("opened"), acknowledged, again, after);
        engine.shutdown();
    }
}

/// Breaks writing, which is said, and loses nothing.
fn survives(broken: Break) {
    let world = Broken::new();
    world.stage.set(Some(broken));
    let (acknowledged, error) = write_up_to(&world.keyspace, world.before, WRITES_MAX);
    let text = error.expect("it breaks").reply(true);
    assert!(
        text.starts_with("MISCONF Errors writing to the data directory"),
        "{text}"
    );
    let reason = match broken.1 {
        Fault::Failed | Fault::Half => "Input/output error",
        Fault::NoSpace => "No space left on device",
    };
    assert!(
        text.contains(reason) && text.contains("tenants/tenant"),
        "{text}"
    );
    assert!(world.keyspace.stats().error.is_some());
    world.mended(acknowledged);
}

/// Breaks what no write waits for: RocksDB may refuse writes or go on and try again, and nothing is
/// lost.
fn survives_beside(broken: Break) {
    let world = Broken::new();
    world.stage.set(Some(broken));
    let mut acknowledged = world.before;
    for _ in 0..WRITES_MAX / WRITES {
        let (now, error) = write(&world.keyspace, acknowledged);
        acknowledged = now;
        if error.is_some() || world.stage.struck() > 0 {
            break;
        }
    }
    assert!(world.stage.struck() > 0, "nothing of it was done");
    world.mended(acknowledged);
}

#[test]
fn a_log_that_cannot_be_appended_to_loses_nothing() {
    let append = |io: &DeviceIo| io.activity == Activity::Log && io.op == Op::Write;
    survives((append, Fault::Failed));
    survives((append, Fault::NoSpace));
    survives((append, Fault::Half));
}

#[test]
fn a_log_that_cannot_be_synced_loses_nothing() {
    let sync = |io: &DeviceIo| io.activity == Activity::Log && io.op == Op::Sync;
    survives((sync, Fault::Failed));
    survives((sync, Fault::NoSpace));
}

#[test]
fn a_flush_that_fails_loses_nothing() {
    let data = |io: &DeviceIo| io.activity == Activity::Flush && io.op == Op::Write;
    survives((data, Fault::Failed));
    survives((data, Fault::NoSpace));
    survives((data, Fault::Half));
    let sync = |io: &DeviceIo| io.activity == Activity::Flush && io.op == Op::Sync;
    survives((sync, Fault::Failed));
}

#[test]
fn a_manifest_that_cannot_be_written_loses_nothing() {
    let append = |io: &DeviceIo| io.file == FileKind::Metadata && io.op == Op::Write;
    survives((append, Fault::Failed));
    survives((append, Fault::NoSpace));
    survives((append, Fault::Half));
    let sync = |io: &DeviceIo| io.file == FileKind::Metadata && io.op == Op::Sync;
    survives((sync, Fault::Failed));
}

#[test]
fn a_compaction_that_fails_loses_nothing() {
    let read = |io: &DeviceIo| io.activity == Activity::Compaction && io.op == Op::Read;
    let data = |io: &DeviceIo| io.activity == Activity::Compaction && io.op == Op::Write;
    let sync = |io: &DeviceIo| io.activity == Activity::Compaction && io.op == Op::Sync;
    for fault in [Fault::Failed, Fault::Half] {
        survives_beside((read, fault));
        survives_beside((data, fault));
    }
    survives_beside((data, Fault::NoSpace));
    survives_beside((sync, Fault::Failed));
}

#[test]
fn files_that_cannot_be_removed_are_left() {
    survives_beside((|io| io.op == Op::Delete, Fault::Failed));
}

/// A database that was closed, so that all of it is in files.
fn closed() -> Broken {
    let world = Broken::new();
    // What it holds goes to files.
    close(&world.keyspace);
    world
}

const FAILED: &[&str] = &["Input/output error"];

fn is_said(error: &EngineError, reasons: &[&str]) {
    assert!(matches!(error, EngineError::Read { .. }), "{error}");
    let text = error.to_string();
    assert!(
        reasons.iter().any(|reason| text.contains(reason)) && text.contains("tenants/tenant"),
        "{text}"
    );
}

#[test]
fn a_read_that_fails_is_an_error_of_that_read() {
    // What is cut short is the value where its block is cached, else the block.
    let short: &[_] = &["truncated", "Failed to read data from blob file"];
    for (fault, reasons) in [(Fault::Failed, FAILED), (Fault::Half, short)] {
        let world = closed();
        all_there(&world.keyspace, 1, 0, 0);
        world
            .stage
            .set(Some((|io| io.activity == Activity::Get, fault)));
        is_said(&get(&world.keyspace, &key(7)).expect_err("broken"), reasons);
        set(&world.keyspace, b"new", b"value").expect("written");
        world.stage.set(None);
        all_there(&world.keyspace, world.before, 0, 0);
        world.engine.shutdown();
    }
}

#[test]
fn a_walk_that_fails_is_an_error_and_never_an_end() {
    let world = closed();
    let all = |access: &mut Access| {
        let all = (Bound::Unbounded, Bound::Unbounded);
        access.keys(all.0, all.1, Order::Up, usize::MAX, Blocks::Pass)
    };
    let count = || {
        let keyspace = &world.keyspace;
        keyspace.scan(keyspace.last_seq(), Site::Apart, 1, &mut |access| {
            Ok(all(access)?.items.len())
        })
    };
    world
        .stage
        .set(Some((|io| io.activity == Activity::Range, Fault::Failed)));
    is_said(&count().expect_err("broken"), FAILED);
    world.stage.set(None);
    assert_eq!(count().expect("read"), world.before as usize);
    world.engine.shutdown();
}

#[test]
fn a_database_that_cannot_be_read_at_opening_opens_later() {
    let world = closed();
    world
        .stage
        .set(Some((|io| io.activity == Activity::Open, Fault::Failed)));
    let error = get(&world.keyspace, &key(7)).expect_err("broken");
    let text = error.to_string();
    assert!(
        matches!(error, EngineError::Open { .. }) && text.contains("Input/output error"),
        "{text}"
    );
    world.stage.set(None);
    // It is not tried again at once.
    while let Err(error) = get(&world.keyspace, &key(7)) {
        assert!(matches!(error, EngineError::Open { .. }), "{error}");
        std::thread::yield_now();
    }
    all_there(&world.keyspace, world.before, 0, 0);
    world.engine.shutdown();
}

/// Whoever holds the database for as long as a client likes is told, and leaves: writing works
/// again.
#[test]
fn a_reader_that_stays_does_not_keep_a_mended_device_from_being_tried() {
    let world = Broken::new();
    let (leave, left) = channel();
    let (reading, begun) = channel();
    let keyspace = Arc::clone(&world.keyspace);
    let reader = std::thread::spawn(move || {
        let leave: Arc<dyn Fn() + Send + std::marker::Sync> =
            Arc::new(move || leave.send(()).unwrap_or(()));
        keyspace.stays_until_told(&leave);
        let read = keyspace.scan(
            keyspace.last_seq(),
            Site::Apart,
            1,
            &mut |access: &mut Access| {
                reading.send(()).unwrap();
                // As one that waits for its client does: nobody takes the next piece.
                left.recv_timeout(NEVER).expect("told to leave");
                access.estimate_keys()
            },
        );
        read.expect("its snapshot lasts until it leaves")
    });
    begun.recv_timeout(NEVER).expect("it reads");
    let append = |io: &DeviceIo| io.activity == Activity::Log && io.op == Op::Write;
    world.stage.set(Some((append, Fault::NoSpace)));
    let (acknowledged, error) = write_up_to(&world.keyspace, world.before, WRITES_MAX);
    error.expect("it breaks");
    world.stage.set(None);
    while let Err(error) = set(&world.keyspace, b"again", b"v") {
        assert!(matches!(error, EngineError::Write { .. }), "{error}");
        std::thread::yield_now();
    }
    assert_eq!(reader.join().unwrap(), u64::from(world.before));
    world.mended(acknowledged);
}

/// Of a write that is put into memory in pieces, nobody sees a part, whatever becomes of it.
#[test]
fn a_write_in_pieces_is_seen_whole_or_not_at_all() {
    const GENERATIONS: u32 = 40;
    let world = Broken::new();
    let keyspace = &world.keyspace;
    let names: Vec<Vec<u8>> = (0..1_000)
        .map(|number| format!("piece:{number}").into_bytes())
        .collect();
    let keys: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let large = |generation: u32| Bytes::from(value(generation));
    let write = |generation: u32| {
        commit(keyspace, &keys, |access| {
            for key in &keys {
                access.put(key, Entry::string(large(generation)))?;
            }
            Ok(())
        })
    };
    write(0).expect("written");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let seen = scope.spawn(|| {
            let (ends, mut seen) = ([keys[0], keys[keys.len() - 1]], 0);
            while !done.load(Ordering::SeqCst) {
                let read = |access: &mut Access| Ok([access.get(ends[0])?, access.get(ends[1])?]);
                let keys = Keys::In(Database::FIRST, &ends);
                let (found, seq) = run(keyspace, &keys, 1, read).expect("read");
                // A reader of a write that then failed is told so, and not what was written.
                if keyspace.wait_commit(seq).is_err() {
                    continue;
                }
                let [first, last] = found.map(|entry| entry.expect("it is there").object);
                assert_eq!(format!("{first:?}"), format!("{last:?}"));
                seen += 1;
            }
            seen
        });
        let append = |io: &DeviceIo| io.activity == Activity::Log && io.op == Op::Write;
        let mut generation = 1;
        while generation < GENERATIONS {
            let breaks = generation % 10 == 5;
            world.stage.set(breaks.then_some((append, Fault::Failed)));
            if breaks {
                write(generation).expect_err("it breaks");
                world.stage.set(None);
                assert_eq!(
                    get(keyspace, keys[500]).unwrap(),
                    Some(large(generation - 1))
                );
            }
            while write(generation).is_err() {
                std::thread::yield_now();
            }
            for key in [keys[0], keys[256], keys[999]] {
                assert_eq!(get(keyspace, key).unwrap(), Some(large(generation)));
            }
            generation += 1;
        }
        done.store(true, Ordering::SeqCst);
        assert!(seen.join().expect("a reader") > 0);
    });
}

/// While a mended device is tried and does not take all of it, the database is open for reads, with
/// its cache.
#[test]
fn a_database_opened_for_reads_alone_has_its_object_cache() {
    let world = Broken::new();
    let keyspace = &world.keyspace;
    keyspace.set_allotments(Allotments::objects(64 << 10));
    all_there(keyspace, 8, 0, 0);
    world
        .stage
        .set(Some((|io| io.op == Op::Write, Fault::Failed)));
    let (acknowledged, error) = write_up_to(keyspace, world.before, WRITES_MAX);
    error.expect("it breaks");
    // What was cached goes when the database is opened again.
    while keyspace.stats().cache_bytes > 0 {
        std::thread::yield_now();
    }
    all_there(keyspace, 8, 0, 0);
    let missed = keyspace.stats().cache_misses;
    all_there(keyspace, 8, 0, 0);
    assert_eq!(keyspace.stats().cache_misses, missed);
    world.mended(acknowledged);
}
