//! No path around the hook: the bytes that the kernel counts for this process are the bytes that
//! were charged. Alone in its file, because the kernel counts for the whole process.

mod common;

use common::{engine_options, get, key, set, small, value};
use engine::device::{DeviceHook, DeviceIo, DeviceStage, Ended, Op};
use engine::{Engine, Keyspace, Sync};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

#[derive(Default)]
struct Charged {
    read: AtomicU64,
    written: AtomicU64,
}

impl DeviceStage for Charged {
    fn begin(&self, _: &DeviceIo) -> u64 {
        0
    }

    fn end(&self, io: &DeviceIo, _: u64, ended: Ended) {
        match io.op {
            Op::Read => self.read.fetch_add(ended.bytes, Ordering::SeqCst),
            Op::Write => self.written.fetch_add(ended.bytes, Ordering::SeqCst),
            Op::Sync | Op::Delete => 0,
        };
    }
}

/// Bytes that this process caused to be read from and written to devices. Pages that it dirtied
/// count as written.
fn kernel() -> Option<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    Some([of("read_bytes:")?, of("write_bytes:")?])
}

const WRITES: u32 = 20_000;

fn open(engine: &Arc<Engine>, stage: &Arc<Charged>, name: &str, sync: Sync) -> Arc<Keyspace> {
    let mut options = small(sync);
    options.memtable_bytes = 1 << 20;
    options.allotments.object_cache_bytes = 0;
    options.device = Some(DeviceHook {
        stage: Arc::clone(stage) as Arc<dyn DeviceStage>,
        principal: 0,
    });
    engine.keyspace(name, options).expect("a keyspace")
}

#[test]
fn the_kernel_counts_what_was_charged() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let stage = Arc::new(Charged::default());
    let mut options = engine_options(folder.path());
    options.block_cache_bytes = 1 << 20;
    let engine = Engine::open(options).expect("an engine");
    let works = |name: &str, sync, writes| {
        let keyspace = open(&engine, &stage, name, sync);
        for number in 0..writes {
            set(&keyspace, &key(number), &value(number)).expect("written");
        }
        for number in 0..writes {
            let found = get(&keyspace, &key(number)).expect("read");
            assert_eq!(found.expect("there"), value(number));
        }
    };
    // The kernel counts the program's own pages as well, when it reads them for the first time.
    works("before", Sync::Always, WRITES / 10);
    let so_far = || [&stage.read, &stage.written].map(|count| count.load(Ordering::SeqCst));
    let (Some(before), charged_before) = (kernel(), so_far()) else {
        println!("not counted: this kernel does not account I/O by process");
        return;
    };
    // One that syncs after each write, one that leaves it to the kernel: the log is counted in
    // both.
    works("synced", Sync::Always, WRITES / 10);
    works("lazy", Sync::Never, WRITES);
    engine.shutdown();
    let after = kernel().expect("counted before");
    let all = so_far();
    let charged = [0, 1].map(|at| all[at] - charged_before[at]);
    for (at, what) in ["read", "written"].iter().enumerate() {
        let counted = after[at] - before[at];
        println!(
            "{what}: the kernel counted {counted}, charged {}",
            charged[at]
        );
        if counted == 0 && at == 0 {
            // A file system in memory reads nothing.
            continue;
        }
        let error = charged[at] as f64 / counted as f64 - 1.0;
        // A page of a log that the kernel has written in the meantime and that is dirtied again
        // counts again: on a busy disk, nearly one in a hundred.
        assert!(
            (-0.03..0.01).contains(&error),
            "{what}: the kernel counted {counted} bytes, {} were charged",
            charged[at]
        );
    }
}
