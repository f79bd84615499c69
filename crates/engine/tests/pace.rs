//! Whose database comes near to stalling its writes pauses before, and nobody else does.

mod common;

use common::{engine_options, get, key, set, small, value};
use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended};
use engine::{Engine, Keyspace, Sync};
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::Arc;

/// Lets no flush pass until it is opened.
#[derive(Default)]
struct Barrier {
    open: Mutex<bool>,
    changed: Condvar,
}

/// Opens it at the end, also of a test that failed: a database does not close before its flush.
struct Held(Arc<Barrier>);

impl Held {
    fn open(&self) {
        *self.0.open.lock() = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.open();
    }
}

impl DeviceStage for Barrier {
    fn begin(&self, io: &DeviceIo) -> u64 {
        if io.may_wait() && io.activity == Activity::Flush {
            let mut open = self.open.lock();
            self.changed.wait_while(&mut open, |open| !*open);
        }
        0
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

struct Setup {
    engine: Arc<Engine>,
    writer: Arc<Keyspace>,
    other: Arc<Keyspace>,
    barrier: Held,
}

fn setup(directory: &Path) -> Setup {
    let mut options = engine_options(directory);
    // One of them is held.
    options.flush_threads = 2;
    let engine = Engine::open(options).expect("engine");
    let barrier = Arc::new(Barrier::default());
    let mut options = small(Sync::Never);
    options.allotments.write_buffer_bytes = 8 << 20;
    let other = engine.keyspace("other", options.clone()).expect("opened");
    options.device = Some(DeviceHook {
        stage: barrier.clone(),
        principal: 1,
    });
    let writer = engine.keyspace("writer", options).expect("opened");
    Setup {
        engine,
        writer,
        other,
        barrier: Held(barrier),
    }
}

fn write(keyspace: &Arc<Keyspace>, number: u32) {
    set(keyspace, &key(number), &value(number)).expect("written");
}

#[test]
fn who_writes_more_than_is_flushed_pauses_before_it_is_stalled() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let Setup {
        engine,
        writer,
        other,
        barrier,
    } = setup(folder.path());
    let mut number = 0;
    while writer.stats().write_paused_ns == 0 {
        write(&writer, number);
        number += 1;
        let pressure = writer.stats().write_pressure;
        assert!(pressure < 0.9, "{pressure} and no pause");
    }
    // Slowed, not halted; the other one writes in the meantime, less than it flushes, and never
    // pauses.
    for more in 0..100 {
        write(&writer, number + more);
        for its in 4 * more..4 * (more + 1) {
            write(&other, its);
            let read = get(&other, &key(its / 2)).expect("read");
            assert_eq!(read.expect("there"), value(its / 2));
        }
    }
    let pressure = writer.stats().write_pressure;
    assert!((0.5..1.0).contains(&pressure), "{pressure}");
    assert_eq!(other.stats().write_paused_ns, 0);
    barrier.open();
    number += 100;
    while writer.stats().write_pressure >= 0.5 {
        write(&writer, number);
        number += 1;
    }
    engine.shutdown();
}

#[test]
fn what_was_promised_is_not_slowed() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let Setup {
        engine,
        writer,
        barrier,
        ..
    } = setup(folder.path());
    // More than any machine writes.
    writer.promise_writes(1 << 50);
    let mut number = 0;
    while writer.stats().write_pressure < 0.8 {
        write(&writer, number);
        number += 1;
    }
    assert_eq!(writer.stats().write_paused_ns, 0);
    barrier.open();
    engine.shutdown();
}

#[test]
fn an_engine_that_ends_waits_for_pauses_and_loses_nothing() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let first = setup(folder.path());
    let mut number = 0;
    while first.writer.stats().write_paused_ns == 0 {
        write(&first.writer, number);
        number += 1;
    }
    first.barrier.open();
    first.engine.shutdown();
    drop(first);
    let again = setup(folder.path());
    again.barrier.open();
    let newest = key(number - 1);
    let read = get(&again.writer, &newest).expect("read");
    assert_eq!(read.expect("there"), value(number - 1));
    again.engine.shutdown();
}
