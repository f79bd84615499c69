//! The hook under RocksDB: what it sees, how it tells uses apart, and that data does not depend on
//! it.

mod common;

use common::{close, engine, get, key, set, small, value};
use engine::device::{
    tagged, Activity, DeviceHook, DeviceIo, DeviceStage, Ended, FileKind, Op, Tag,
};
use engine::{Access, Blocks, Engine, Keyspace, Order, Site, Sync};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const PRINCIPAL: u32 = 7;
const CHUNK: u64 = 16 << 10;

/// Remembers everything.
#[derive(Default)]
struct Recorder {
    begun: Mutex<Vec<DeviceIo>>,
    ended: Mutex<Vec<(DeviceIo, u64, Ended)>>,
    next: AtomicU64,
}

impl DeviceStage for Recorder {
    fn begin(&self, io: &DeviceIo) -> u64 {
        self.begun.lock().expect("not poisoned").push(*io);
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn end(&self, io: &DeviceIo, token: u64, ended: Ended) {
        self.ended
            .lock()
            .expect("not poisoned")
            .push((*io, token, ended));
    }

    fn chunk_bytes(&self) -> u64 {
        // Not a multiple of a page: the rest must be left out.
        CHUNK + 100
    }
}

impl Recorder {
    fn ios(&self) -> Vec<DeviceIo> {
        self.ended
            .lock()
            .expect("not poisoned")
            .iter()
            .map(|(io, ..)| *io)
            .collect()
    }
}

fn open(engine: &Arc<Engine>, stage: Arc<dyn DeviceStage>, sync: Sync) -> Arc<Keyspace> {
    let mut options = small(sync);
    // Reads go to the database.
    options.allotments.object_cache_bytes = 0;
    options.allotments.block_cache_bytes = 1 << 20;
    // And compactions move the values.
    options.large_value_bytes = 1 << 20;
    options.device = Some(DeviceHook {
        stage,
        principal: PRINCIPAL,
    });
    engine.keyspace("tenant", options).expect("a keyspace")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

/// Enough for flushes and compactions with memtables of 256 KiB.
const WRITES: u32 = 6_000;

#[test]
fn every_use_is_seen_and_told_apart() {
    let folder = folder();
    let engine = engine(folder.path());
    let recorder = Arc::new(Recorder::default());
    let keyspace = open(&engine, recorder.clone(), Sync::Always);
    let opened = recorder.ios().len();
    let put = tagged(Tag(3));
    for number in 0..WRITES {
        set(&keyspace, &key(number), &value(number)).expect("written");
    }
    drop(put);
    let reading = tagged(Tag(4));
    for number in (0..WRITES).step_by(7) {
        assert_eq!(
            get(&keyspace, &key(number)).expect("read").expect("there"),
            value(number)
        );
    }
    drop(reading);
    let written = keyspace.written_bytes();
    let closing = recorder.ios().len();
    assert_eq!(written.iter().sum::<u64>(), written[3], "{written:?}");
    assert_eq!(written[3], keyspace.stats().committed_bytes);
    drop(keyspace);
    engine.shutdown();

    let ios = recorder.ios();
    let uses: BTreeSet<String> = ios
        .iter()
        .map(|io| format!("{:?} {:?} {:?}", io.activity, io.op, io.file))
        .collect();
    for wanted in [
        "Log Write Log",
        "Log Sync Log",
        "Flush Write Data",
        "Flush Sync Data",
        "Compaction Read Data",
        "Compaction Write Data",
        "Get Read Data",
        "Open Write Metadata",
        "Flush Sync Metadata",
    ] {
        assert!(uses.contains(wanted), "{wanted} is not in {uses:#?}");
    }
    assert!(
        ios.iter()
            .any(|io| io.op == Op::Delete && io.file == FileKind::Data),
        "{uses:#?}"
    );
    assert!(ios.iter().all(|io| io.principal == PRINCIPAL));
    // Foreground reads are on the thread that was tagged; background work is nobody's.
    let gets = || ios.iter().filter(|io| io.activity == Activity::Get);
    assert!(
        gets().count() > 0 && gets().all(|io| io.tag == Tag(4)),
        "{:?}",
        gets().next()
    );
    the_log_is_written_for(Tag(3), &ios[opened..closing]);
    assert!(ios
        .iter()
        .filter(|io| io.activity.background())
        .all(|io| io.tag == Tag(0)));
}

/// By the committer, a thread of its own.
fn the_log_is_written_for(tag: Tag, ios: &[DeviceIo]) {
    let log = || {
        let of_log = ios.iter().filter(|io| io.activity == Activity::Log);
        of_log.filter(|io| io.op == Op::Write)
    };
    assert!(log().count() > 0);
    let stray = log().find(|io| io.tag != tag);
    assert_eq!(stray, None);
}

#[test]
fn each_io_ends_once_with_its_token_and_none_is_too_large() {
    let folder = folder();
    let engine = engine(folder.path());
    let recorder = Arc::new(Recorder::default());
    let keyspace = open(&engine, recorder.clone(), Sync::Never);
    for number in 0..WRITES {
        set(&keyspace, &key(number), &value(number)).expect("written");
    }
    drop(keyspace);
    engine.shutdown();
    let begun = recorder.begun.lock().expect("not poisoned").len() as u64;
    let ended = recorder.ended.lock().expect("not poisoned");
    let tokens: BTreeSet<u64> = ended.iter().map(|(_, token, _)| *token).collect();
    assert_eq!(tokens, (0..begun).collect::<BTreeSet<u64>>());
    for (io, _, done) in ended.iter() {
        assert!(io.bytes <= CHUNK, "{io:?}");
        assert!(done.ok && done.bytes <= io.bytes, "{io:?} {done:?}");
        if io.file == FileKind::Data && io.op == Op::Write {
            assert_eq!(
                io.offset % 512,
                0,
                "data files are written around the page cache: {io:?}"
            );
        }
    }
    // Compaction read and wrote more than a chunk at a time, so something was cut.
    assert!(ended
        .iter()
        .any(|(io, ..)| io.activity == Activity::Compaction && io.bytes == CHUNK));
}

/// Lets nothing of the background pass until it is opened.
#[derive(Default)]
struct Barrier {
    open: parking_lot::Mutex<bool>,
    changed: parking_lot::Condvar,
    waiting: AtomicU64,
}

impl DeviceStage for Barrier {
    fn begin(&self, io: &DeviceIo) -> u64 {
        if io.may_wait() && io.activity.background() {
            let mut open = self.open.lock();
            self.waiting.fetch_add(1, Ordering::SeqCst);
            while !*open {
                self.changed.wait(&mut open);
            }
        }
        0
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

#[test]
fn background_work_that_waits_keeps_nobody_else_waiting() {
    let folder = folder();
    let engine = engine(folder.path());
    let barrier = Arc::new(Barrier::default());
    let keyspace = open(&engine, barrier.clone(), Sync::Never);
    // A flush begins and waits in the stage; reads and writes go on meanwhile, as far as memtables
    // reach.
    let mut number = 0;
    while barrier.waiting.load(Ordering::SeqCst) == 0 {
        set(&keyspace, &key(number), &value(number)).expect("written");
        number += 1;
        assert!(number < WRITES, "no flush came");
    }
    for more in number..number + 20 {
        set(&keyspace, &key(more), &value(more)).expect("written while the flush waits");
        assert_eq!(
            get(&keyspace, &key(more / 2))
                .expect("read")
                .expect("there"),
            value(more / 2)
        );
    }
    *barrier.open.lock() = true;
    barrier.changed.notify_all();
    drop(keyspace);
    engine.shutdown();
}

#[test]
fn short_ranges_fill_the_block_cache_and_walks_pass_it_by() {
    // One file: compactions would empty the cache.
    const KEYS: u32 = 150;
    let folder = folder();
    let engine = engine(folder.path());
    let recorder = Arc::new(Recorder::default());
    let keyspace = open(&engine, recorder.clone(), Sync::Never);
    for number in 0..KEYS {
        set(&keyspace, &key(number), &value(number)).expect("written");
    }
    // Writes memtables to files. Upkeep may be using the database.
    close(&keyspace);
    let reads_of_files = |blocks| {
        let before = recorder.ios().len();
        let mut all = |access: &mut Access| {
            let ends = (Bound::Unbounded, Bound::Unbounded);
            access.keys(ends.0, ends.1, Order::Up, usize::MAX, blocks)
        };
        let page = keyspace
            .scan(keyspace.last_seq(), Site::Apart, 0, &mut all)
            .expect("keys");
        assert_eq!(page.items.len(), KEYS as usize);
        let since = recorder.ios().split_off(before);
        let ranges = since.iter().filter(|io| io.activity == Activity::Range);
        ranges.count()
    };
    assert!((0..9).all(|_| reads_of_files(Blocks::Pass) > 0));
    // More than once: the engine may change what the cache may hold meanwhile.
    assert!((0..9).any(|_| reads_of_files(Blocks::Keep) == 0));
    engine.shutdown();
}
