//! What is done for tenants in the background keeps nobody's writes waiting.

mod common;

use common::{close, engine, get, key, run, set, small, value};
use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended, Op};
use engine::{Keys, KeyspaceOptions, Sync};
use parking_lot::{Condvar, Mutex};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::Duration;

/// Beyond this a test has failed: what it waits for does not come.
const NEVER: Duration = Duration::from_secs(60);

/// Lets no sync of a log pass while it is closed.
#[derive(Default)]
struct Syncs {
    /// Closed, and how many wait.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Syncs {
    fn close(&self) {
        self.state.lock().0 = true;
    }

    fn open(&self) {
        self.state.lock().0 = false;
        self.changed.notify_all();
    }

    /// Until some wait.
    fn wait(&self, wanted: usize) {
        let mut state = self.state.lock();
        self.changed
            .wait_while(&mut state, |state| state.1 < wanted);
    }
}

impl DeviceStage for Syncs {
    fn begin(&self, io: &DeviceIo) -> u64 {
        if io.activity == Activity::Log && io.op == Op::Sync {
            let mut state = self.state.lock();
            state.1 += 1;
            self.changed.notify_all();
            self.changed.wait_while(&mut state, |state| state.0);
            state.1 -= 1;
        }
        0
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

/// More than there are threads of any kind.
const TENANTS: usize = 40;
/// Some ticks pass meanwhile.
const WRITES: u32 = 5_000;
/// Syncs that may be under way beside commits.
const AT_ONCE: usize = 8;

#[test]
fn syncs_each_second_do_not_stand_before_a_commit() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let syncs = Arc::new(Syncs::default());
    let options = |sync| {
        let mut options: KeyspaceOptions = small(sync);
        options.device = Some(DeviceHook {
            stage: Arc::clone(&syncs) as Arc<dyn DeviceStage>,
            principal: 1,
        });
        options
    };
    let open = |name: &str, sync| engine.keyspace(name, options(sync)).unwrap();
    let other = open("other", Sync::Never);
    let tenants: Vec<_> = (0..TENANTS)
        .map(|number| open(&format!("t{number}"), Sync::EverySecond))
        .collect();
    syncs.close();
    for tenant in &tenants {
        set(tenant, b"k", b"v").unwrap();
    }
    syncs.wait(AT_ONCE);
    let (tell, told) = channel();
    let write = move || (0..WRITES).try_for_each(|number| set(&other, &number.to_be_bytes(), b"v"));
    let writer = std::thread::spawn(move || tell.send(write()));
    let written = told.recv_timeout(NEVER);
    let under_way = syncs.state.lock().1;
    syncs.open();
    written.expect("nobody's sync is in the way").unwrap();
    assert!(under_way <= AT_ONCE, "{under_way} syncs at a time");
    writer.join().unwrap().unwrap();
    engine.shutdown();
}

/// Lets no compaction read while it is closed.
#[derive(Default)]
struct Compactions {
    closed: Mutex<bool>,
    changed: Condvar,
}

impl Compactions {
    fn close(&self, closed: bool) {
        *self.closed.lock() = closed;
        self.changed.notify_all();
    }
}

impl DeviceStage for Compactions {
    fn begin(&self, io: &DeviceIo) -> u64 {
        if io.activity == Activity::Compaction && io.may_wait() {
            let mut closed = self.closed.lock();
            self.changed.wait_while(&mut closed, |closed| *closed);
        }
        0
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

/// More than what is worth giving back.
const REMOVED: u32 = 70;

/// Many times FLUSHALL of much: one compaction is queued, and no handler waits for it.
#[test]
fn giving_space_back_occupies_no_handler() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let engine = engine(dir.path());
    let compactions = Arc::new(Compactions::default());
    let mut options = small(Sync::Never);
    options.memtable_bytes = 32 << 20;
    options.allotments.write_buffer_bytes = 128 << 20;
    options.pending_bytes = 4 << 20;
    options.device = Some(DeviceHook {
        stage: Arc::clone(&compactions) as Arc<dyn DeviceStage>,
        principal: 1,
    });
    let keyspace = engine.keyspace("t", options).unwrap();
    for number in 0..REMOVED {
        let values: Vec<u8> = (0..1024).flat_map(|n| value(number << 10 | n)).collect();
        set(&keyspace, &key(number), &values).unwrap();
    }
    let in_files = || keyspace.stats().disk_bytes >> 20;
    // What is left in memtables goes to files when it opens anew.
    close(&keyspace);
    get(&keyspace, &key(0)).unwrap();
    assert!(in_files() >= 64, "{} MiB", in_files());
    compactions.close(true);
    for _ in 0..20 {
        let (_, seq) = run(&keyspace, &Keys::All, 1, |access| access.clear()).unwrap();
        keyspace.wait_commit(seq).unwrap();
    }
    let (tell, told) = channel();
    engine
        .handlers()
        .submit(Box::new(move || tell.send(()).unwrap_or(())));
    let handled = told.recv_timeout(NEVER);
    compactions.close(false);
    handled.expect("a handler is free");
    while in_files() >= 1 {
        std::thread::yield_now();
    }
    engine.shutdown();
}
