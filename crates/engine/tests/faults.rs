//! A device that breaks under the hook: no write that was acknowledged as synced is lost, whatever fails, and each
//! failure is said.

mod common;

use common::{engine, get, key, set, small, value};
use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended, Fault, Op};
use engine::{EngineError, Keyspace, KeyspaceOptions, Sync};
use parking_lot::Mutex;
use std::sync::Arc;

/// What breaks, and how.
type Break = (Activity, Op, Fault);

/// Breaks what it is told to.
#[derive(Default)]
struct Breaking(Mutex<Option<Break>>);

impl DeviceStage for Breaking {
    fn begin(&self, _: &DeviceIo) -> u64 {
        0
    }

    fn fault(&self, io: &DeviceIo) -> Option<Fault> {
        let (activity, op, fault) = (*self.0.lock())?;
        (io.activity == activity && io.op == op).then_some(fault)
    }

    fn end(&self, io: &DeviceIo, _: u64, ended: Ended) {
        assert!(ended.ok || ended.bytes == 0, "{io:?} {ended:?}");
    }
}

fn options(stage: &Arc<Breaking>) -> KeyspaceOptions {
    let mut options = small(Sync::Always);
    // Reads go to the database.
    options.cache_bytes = 4 << 10;
    options.device = Some(DeviceHook {
        stage: Arc::clone(stage) as Arc<dyn DeviceStage>,
        principal: 1,
    });
    options
}

/// Enough for two flushes with memtables of 256 KiB.
const WRITES: u32 = 600;

/// Writes until it fails, or enough; returns what was acknowledged, and why it ended.
fn write(keyspace: &Arc<Keyspace>, from: u32) -> (u32, Option<EngineError>) {
    for number in from..from + WRITES {
        if let Err(error) = set(keyspace, &key(number), &value(number)) {
            return (number, Some(error));
        }
    }
    (from + WRITES, None)
}

fn all_there(keyspace: &Arc<Keyspace>, until: u32, from: u32, to: u32) {
    for number in (0..until).chain(from..to) {
        let found = get(keyspace, &key(number)).expect("read");
        assert_eq!(found.expect("acknowledged"), value(number), "{number}");
    }
}

/// Breaks writing, mends it, and looks for what was acknowledged before and after, then and after a restart.
fn survives(broken: Break) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let stage = Arc::new(Breaking::default());
    let engine = engine(folder.path());
    let keyspace = engine.keyspace("tenant", options(&stage)).expect("opened");
    let (before, none) = write(&keyspace, 0);
    assert!(none.is_none(), "{none:?}");
    *stage.0.lock() = Some(broken);
    let (acknowledged, error) = write(&keyspace, before);
    let text = error.expect("it breaks").reply();
    assert!(
        text.starts_with("MISCONF Errors writing to the data directory"),
        "{text}"
    );
    let reason = match broken.2 {
        Fault::Failed => "Input/output error",
        Fault::NoSpace => "No space left on device",
    };
    assert!(
        text.contains(reason) && text.contains("tenants/tenant"),
        "{text}"
    );
    assert!(keyspace.stats().error.is_some());

    *stage.0.lock() = None;
    let again = acknowledged + WRITES;
    while let Err(error) = set(&keyspace, &key(again), &value(again)) {
        assert!(matches!(error, EngineError::Write { .. }), "{error}");
        std::thread::yield_now();
    }
    all_there(&keyspace, acknowledged, again, again + 1);
    let (after, none) = write(&keyspace, again + 1);
    assert!(none.is_none(), "{none:?}");
    engine.shutdown();
    drop(keyspace);
    drop(engine);

    let engine = common::engine(folder.path());
    let keyspace = engine.keyspace("tenant", options(&stage)).expect("opened");
    all_there(&keyspace, acknowledged, again, after);
    engine.shutdown();
}

#[test]
fn a_log_that_cannot_be_appended_to_loses_nothing() {
    survives((Activity::Log, Op::Write, Fault::Failed));
    survives((Activity::Log, Op::Write, Fault::NoSpace));
}

#[test]
fn a_log_that_cannot_be_synced_loses_nothing() {
    survives((Activity::Log, Op::Sync, Fault::Failed));
}

#[test]
fn a_flush_that_fails_loses_nothing() {
    survives((Activity::Flush, Op::Write, Fault::Failed));
    survives((Activity::Flush, Op::Write, Fault::NoSpace));
    survives((Activity::Flush, Op::Sync, Fault::Failed));
}

#[test]
fn a_read_that_fails_is_an_error_of_that_read() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let stage = Arc::new(Breaking::default());
    let engine = engine(folder.path());
    let keyspace = engine.keyspace("tenant", options(&stage)).expect("opened");
    let (written, _) = write(&keyspace, 0);
    assert!(
        (0..100).any(|_| keyspace.close()),
        "what it holds goes to files"
    );
    all_there(&keyspace, 1, 0, 0);
    *stage.0.lock() = Some((Activity::Get, Op::Read, Fault::Failed));
    let error = get(&keyspace, &key(7)).expect_err("broken");
    assert!(matches!(error, EngineError::Read { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("Input/output error") && text.contains("tenants/tenant"),
        "{text}"
    );
    // Writing goes on, and so does reading once the device does.
    set(&keyspace, b"new", b"value").expect("written");
    *stage.0.lock() = None;
    all_there(&keyspace, written, 0, 0);
    engine.shutdown();
}
