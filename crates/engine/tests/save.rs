//! A save: what was written before it survives a power cut, whatever the durability, or it says
//! that it does not.

mod common;

use common::{engine, key, set, small, value};
use engine::device::{DeviceHook, DeviceIo, DeviceStage, Ended, Fault, Op};
use engine::{EngineError, Keyspace, Sync};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

/// Counts syncs, and fails them when told to.
#[derive(Default)]
struct Syncs {
    fail: AtomicBool,
    count: AtomicU32,
}

impl DeviceStage for Syncs {
    fn begin(&self, _: &DeviceIo) -> u64 {
        0
    }

    fn fault(&self, io: &DeviceIo) -> Option<Fault> {
        let sync = io.op == Op::Sync;
        self.count.fetch_add(u32::from(sync), Ordering::SeqCst);
        (sync && self.fail.load(Ordering::SeqCst)).then_some(Fault::Failed)
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

fn write(keyspace: &Arc<Keyspace>, count: u32) {
    for number in 0..count {
        set(keyspace, &key(number), &value(number)).expect("written");
    }
}

#[test]
fn a_save_syncs_what_was_written_and_says_if_it_cannot() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let stage = Arc::new(Syncs::default());
    let mut options = small(Sync::Never);
    options.device = Some(DeviceHook {
        stage: Arc::clone(&stage) as Arc<dyn DeviceStage>,
        principal: 1,
    });
    let engine = engine(folder.path());
    let keyspace = engine.keyspace("tenant", options).expect("opened");
    write(&keyspace, 10);
    let stats = keyspace.stats();
    assert_eq!((stats.unsaved_writes, stats.saved_ago), (10, None));

    let before = stage.count.load(Ordering::SeqCst);
    assert!(keyspace.save().expect("saved"));
    assert!(stage.count.load(Ordering::SeqCst) > before, "no sync");
    let stats = keyspace.stats();
    assert_eq!((stats.unsaved_writes, stats.saving), (0, false));
    assert!(stats.saved_ago.is_some());

    write(&keyspace, 5);
    stage.fail.store(true, Ordering::SeqCst);
    let error = keyspace.save().expect_err("the sync fails");
    assert!(matches!(error, EngineError::Write { .. }), "{error}");
    let stats = keyspace.stats();
    assert!(stats.error.is_some() && !stats.saving);
    assert!(keyspace.save().is_err(), "until it is mended");

    stage.fail.store(false, Ordering::SeqCst);
    // The engine opens the database again by itself.
    while set(&keyspace, &key(1), &value(1)).is_err() {
        std::thread::yield_now();
    }
    assert!(keyspace.save().expect("saved"));
    assert_eq!(keyspace.stats().unsaved_writes, 0);
    engine.shutdown();
}

#[test]
fn a_log_that_is_synced_with_each_write_has_nothing_to_save() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let engine = engine(folder.path());
    let options = small(Sync::Always);
    let keyspace = engine.keyspace("tenant", options).expect("opened");
    write(&keyspace, 10);
    let stats = keyspace.stats();
    assert!(stats.unsaved_writes == 0 && stats.saved_ago.is_some());
    engine.shutdown();
}
