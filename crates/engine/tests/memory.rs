//! Object cache, block cache and write buffers by allotments: lent, and regained.

mod common;

use common::{close, engine_options, get, key, set, small, value};
use engine::{Allotments, Engine, Keyspace, KeyspaceOptions, KeyspaceStats, Sync};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Beyond this a test has failed: what it waits for does not come.
const NEVER: Duration = Duration::from_secs(60);

/// Half of everything, and no objects: what is read again comes from the block cache.
fn half(write_buffer_bytes: u64) -> KeyspaceOptions {
    let mut options = small(Sync::Never);
    options.memtable_bytes = write_buffer_bytes as usize / 2;
    options.allotments = Allotments {
        object_cache_bytes: 0,
        block_cache_bytes: 2 * MIB,
        write_buffer_bytes: write_buffer_bytes / 2,
        weight: 1.0,
    };
    options
}

fn open(directory: &std::path::Path, write_buffer_bytes: u64) -> Arc<Engine> {
    let mut options = engine_options(directory);
    options.block_cache_bytes = 4 * MIB;
    options.write_buffer_bytes = write_buffer_bytes;
    Engine::open(options).expect("engine")
}

/// Five MiB of values: more than all of the cache.
const KEYS: u32 = 5 << 10;

/// Values in files.
fn fill(keyspace: &Arc<Keyspace>) {
    for number in 0..KEYS {
        set(keyspace, &key(number), &value(number)).expect("set");
    }
    closed(keyspace);
}

/// Closes the database, which writes memtables to files; it opens anew by itself. Upkeep may be
/// using it.
fn closed(keyspace: &Arc<Keyspace>) {
    close(keyspace);
}

/// Reads all that was written, until the numbers are as they should be; fails after so many rounds
/// that the engine has ticked hundreds of times.
fn read_until(keyspaces: &[&Arc<Keyspace>], done: impl Fn(&[KeyspaceStats]) -> bool) {
    for round in 0.. {
        for number in (0..KEYS).step_by(16) {
            for keyspace in keyspaces {
                let number = number + round % 16;
                assert!(get(keyspace, &key(number)).expect("get").is_some());
            }
        }
        let stats: Vec<_> = keyspaces.iter().map(|keyspace| keyspace.stats()).collect();
        if done(&stats) {
            return;
        }
        assert!(round < 2_000, "{stats:?}");
    }
}

#[test]
fn a_cache_grows_into_what_others_leave_and_gives_it_back() {
    let directory = tempfile::tempdir().expect("directory");
    // One file a tenant: compaction would empty the cache of what it merges.
    let engine = open(directory.path(), 256 * MIB);
    let [greedy, victim] = ["greedy", "victim"].map(|name| {
        let keyspace = engine.keyspace(name, half(256 * MIB)).expect("keyspace");
        fill(&keyspace);
        keyspace
    });
    read_until(&[&greedy], |stats| {
        stats[0].block_cache_granted_bytes == 4 * MIB && stats[0].block_cache_bytes > 3 * MIB
    });
    assert_eq!(victim.stats().block_cache_granted_bytes, 0, "it is closed");
    read_until(&[&greedy, &victim], |stats| {
        let granted = |at: usize| stats[at].block_cache_granted_bytes;
        granted(0) + granted(1) <= 4 * MIB && granted(1) == 2 * MIB
    });
    // From now on, whatever the other reads, the victim's share is the victim's. (A compaction may
    // replace what it has.)
    let hot = || {
        for number in 0..64 {
            assert!(get(&victim, &key(number)).expect("get").is_some());
        }
        victim.stats().block_misses
    };
    let kept = |_| {
        let missed = hot();
        for number in 0..KEYS {
            get(&greedy, &key(number)).expect("get");
        }
        hot() == missed
    };
    assert!((0..5).filter(|round| kept(*round)).count() >= 3);
    closed(&victim);
    read_until(&[&greedy], |stats| stats[0].block_cache_bytes > 3 * MIB);
    assert_eq!(victim.stats().block_cache_bytes, 0);
    engine.shutdown();
}

#[test]
fn objects_grow_into_what_others_leave_and_give_it_back() {
    let directory = tempfile::tempdir().expect("directory");
    let mut options = engine_options(directory.path());
    options.object_cache_bytes = 4 * MIB;
    let engine = Engine::open(options).expect("engine");
    let [greedy, victim] = ["greedy", "victim"].map(|name| {
        let mut options = small(Sync::Never);
        options.allotments = Allotments::objects(2 * MIB);
        let keyspace = engine.keyspace(name, options).expect("keyspace");
        fill(&keyspace);
        keyspace
    });
    read_until(&[&greedy], |stats| {
        stats[0].cache_granted_bytes == 4 * MIB && stats[0].cache_bytes > 3 * MIB
    });
    assert_eq!(victim.stats().cache_granted_bytes, 0, "it is closed");
    read_until(&[&greedy, &victim], |stats| {
        let within = |at: usize| stats[at].cache_bytes <= 2 * MIB;
        stats[1].cache_granted_bytes == 2 * MIB && within(0) && within(1)
    });
    // Whatever the other reads, what fits the victim's share stays in memory.
    let read = |keyspace, numbers: u32| {
        for number in 0..numbers {
            assert!(get(keyspace, &key(number)).expect("get").is_some());
        }
    };
    read(&victim, 256);
    read(&victim, 256);
    let missed = victim.stats().cache_misses;
    read(&greedy, KEYS);
    read(&victim, 256);
    assert_eq!(victim.stats().cache_misses, missed);
    // A tenant with no cache of its own borrows none.
    victim.set_allotments(Allotments::default());
    assert_eq!(victim.stats().cache_bytes, 0);
    read_until(&[&greedy, &victim], |stats| stats[0].cache_bytes > 3 * MIB);
    assert_eq!(victim.stats().cache_bytes, 0);
    engine.shutdown();
}

/// One block cache for everybody: what a tenant is granted of its own is the object cache.
#[test]
fn of_what_is_shared_nobody_is_granted_anything() {
    let directory = tempfile::tempdir().expect("directory");
    let mut options = engine_options(directory.path());
    options.allotted_memory = false;
    options.object_cache_bytes = 4 * MIB;
    let engine = Engine::open(options).expect("engine");
    let allotments = |object_cache_bytes| Allotments {
        object_cache_bytes,
        ..half(8 * MIB).allotments
    };
    let mut options = small(Sync::Never);
    options.allotments = allotments(2 * MIB);
    let keyspace = engine.keyspace("tenant", options).expect("keyspace");
    let granted = || {
        let stats = keyspace.stats();
        let of_files = (
            stats.block_cache_granted_bytes,
            stats.write_buffer_granted_bytes,
        );
        (stats.cache_granted_bytes, of_files)
    };
    set(&keyspace, &key(0), &value(0)).expect("set");
    assert_eq!(granted(), (2 * MIB, (0, 0)), "as it opens");
    // A smaller allotment is taken into account by the next step.
    keyspace.set_allotments(allotments(MIB));
    let deadline = Instant::now() + NEVER;
    while granted() != (MIB, (0, 0)) {
        assert!(Instant::now() < deadline, "{:?}", granted());
        std::thread::yield_now();
    }
    engine.shutdown();
}

#[test]
fn a_tenant_that_is_over_its_write_buffers_flushes_its_own() {
    let directory = tempfile::tempdir().expect("directory");
    let engine = open(directory.path(), 8 * MIB);
    let [greedy, quiet] = ["greedy", "quiet"].map(|name| {
        let keyspace = engine.keyspace(name, half(8 * MIB)).expect("keyspace");
        set(&keyspace, b"first", &value(0)).expect("set");
        keyspace
    });
    let kept = quiet.stats().memtable_bytes;
    let mut most = 0;
    for number in 0..32 << 10 {
        set(&greedy, &key(number), &value(number)).expect("set");
        if number % 256 == 0 {
            most = most.max(greedy.stats().memtable_bytes);
        }
    }
    // At most its part and what the other left, and a part of a memtable more for each of its
    // arenas.
    assert!(most <= 9 * MIB, "{most}");
    assert!(greedy.stats().write_buffer_granted_bytes <= 8 * MIB);
    assert!(quiet.stats().memtable_bytes >= kept, "nobody flushed it");
    assert!(greedy.stats().disk_bytes > 16 * MIB);
    engine.shutdown();
}
