//! What can be chosen, with units and defaults.

use crate::device::DeviceHook;
use crate::Committed;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// When a write counts as committed, so that its reply may go out.
pub use policy::Durability as Sync;

/// Options of the whole engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The data directory; created if absent.
    pub data: PathBuf,
    /// Object cache of all keyspaces together, bytes, overheads included.
    pub object_cache_bytes: u64,
    /// Block cache of all keyspaces together, bytes.
    pub block_cache_bytes: u64,
    /// Memtables of all keyspaces together, bytes. While flushes are under way they may be more.
    pub write_buffer_bytes: u64,
    /// Each keyspace has a block cache and write buffers of its own, by [`Allotments`], and unused
    /// parts are lent to others. Otherwise all share one block cache, of which the busiest reader
    /// has most; memtables are only limited one by one; and allotments of the object cache are not
    /// lent.
    pub allotted_memory: bool,
    /// Handler threads: how many blocking jobs (disk reads, scans) run at once.
    pub handlers: usize,
    /// Committer threads at the start. More are started while all are held up by slow disks.
    pub committers: usize,
    /// Flush threads that all databases share. One would let a tenant's slow flush delay
    /// another's (measured: 2.8 s behind a held flush with one thread, 0.02 s with four).
    pub flush_threads: i32,
    /// Compaction threads that all databases share.
    pub compaction_threads: i32,
    /// Read and write data files around the page cache where the file system can. The log is
    /// always buffered: with direct writes RocksDB skips its fsync.
    pub direct_io: bool,
    /// How often logs of [`Sync::EverySecond`] are synced, memory is granted anew, failed tenants
    /// are retried and idle databases are looked for.
    pub tick: Duration,
    /// Bytes that may wait for commit in all keyspaces together. Beyond that, a keyspace that has
    /// more than a little of them must wait.
    pub pending_bytes: usize,
    /// Close the database of a keyspace that was not used for this long; it opens again by itself.
    pub idle_close: Option<Duration>,
}

/// Bytes that wait for commit in all keyspaces together, as [`EngineOptions::new`] has it.
pub const PENDING_BYTES: u64 = 256 << 20;

impl EngineOptions {
    /// Defaults for a data directory: 256 MiB object cache, 256 MiB block cache, 512 MiB memtables,
    /// all by allotments, 16 handlers, 2 committers, 4 flush and 2 compaction threads, direct I/O,
    /// a tick a second, 256 MiB pending, idle databases closed after 60 s.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> EngineOptions {
        EngineOptions {
            data: data.into(),
            object_cache_bytes: 256 << 20,
            block_cache_bytes: 256 << 20,
            write_buffer_bytes: 512 << 20,
            allotted_memory: true,
            handlers: 16,
            committers: 2,
            flush_threads: 4,
            compaction_threads: 2,
            direct_io: true,
            tick: Duration::from_secs(1),
            pending_bytes: PENDING_BYTES as usize,
            idle_close: Some(Duration::from_secs(60)),
        }
    }
}

/// Called after each decided batch for which a core waits, on a committer thread: must not block.
pub type Notify = Arc<dyn Fn(Committed) + Send + std::marker::Sync>;

/// What a tenant is entitled to of memories that are shared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allotments {
    /// Of the object cache, bytes. With 0 it has none, lent or not.
    pub object_cache_bytes: u64,
    /// Of the block cache, bytes.
    pub block_cache_bytes: u64,
    /// Of the write buffers, bytes.
    pub write_buffer_bytes: u64,
    /// Its part of what others leave, > 0.
    pub weight: f64,
}

impl Allotments {
    /// So many bytes of the object cache, and nothing else of its own.
    #[must_use]
    pub fn objects(object_cache_bytes: u64) -> Allotments {
        Allotments {
            object_cache_bytes,
            ..Allotments::default()
        }
    }
}

impl Default for Allotments {
    /// Nothing of its own, and an ordinary part of what is left.
    fn default() -> Self {
        Allotments {
            object_cache_bytes: 0,
            block_cache_bytes: 0,
            write_buffer_bytes: 0,
            weight: 1.0,
        }
    }
}

/// Memory that the commands of a tenant may work with together, whoever else takes of it.
pub trait Allowance: Send + std::marker::Sync {
    /// Takes this many bytes; `false`: fewer are left, and none were taken.
    fn take(&self, bytes: u64) -> bool;

    /// Gives bytes back that were taken.
    fn give(&self, bytes: u64);
}

/// Options of one keyspace.
#[derive(Clone)]
pub struct KeyspaceOptions {
    /// Durability of its writes.
    pub sync: Sync,
    /// What it is entitled to of the memories that are shared. Changed at run time by
    /// [`crate::Keyspace::set_allotments`].
    pub allotments: Allotments,
    /// Objects above this many bytes are not cached (nor above 1/8 of a shard's allotment).
    pub cached_object_bytes_max: u64,
    /// Shards of the object memory, rounded up to a power of two, 1 to 64.
    pub shards: usize,
    /// Written data that makes a flush, bytes; at most four times as much is in memtables. Less of
    /// both where less is granted.
    pub memtable_bytes: usize,
    /// A batch is closed when it has this many bytes (one larger write makes one larger batch).
    pub batch_bytes: usize,
    /// Writes are answered [`crate::Outcome::Full`] while this many bytes wait for commit.
    pub pending_bytes: usize,
    /// Memory that one command may work with, bytes: see [`crate::Access::work`].
    pub work_bytes_max: u64,
    /// Memory that its commands may work with together; without bound, if none.
    pub allowance: Option<Arc<dyn Allowance>>,
    /// Values of so many bytes are kept in files of their own, and the block has only where they
    /// are: RocksDB puts a record of any size into the block that has room left, and whoever looks
    /// for one of its small neighbours would read all of it. By default no object is so long, and
    /// no piece of a string.
    pub large_value_bytes: u64,
    /// Open files of its database (6 more are always open).
    pub max_open_files: i32,
    /// Tells the cores that wait.
    pub notify: Notify,
    /// Who schedules and charges the I/O of its database; nobody, if none.
    pub device: Option<DeviceHook>,
}

impl KeyspaceOptions {
    /// Defaults: 1 MiB objects, 16 shards, 64 MiB memtables, 4 MiB batches, 32 MiB pending, 1 GiB
    /// for a command, values from 128 KiB on apart, 256 files, nobody told, unscheduled I/O.
    #[must_use]
    pub fn new(sync: Sync, allotments: Allotments) -> KeyspaceOptions {
        KeyspaceOptions {
            sync,
            allotments,
            cached_object_bytes_max: 1 << 20,
            shards: 16,
            memtable_bytes: 64 << 20,
            batch_bytes: 4 << 20,
            pending_bytes: 32 << 20,
            work_bytes_max: 1 << 30,
            allowance: None,
            large_value_bytes: 128 << 10,
            max_open_files: 256,
            notify: Arc::new(|_| {}),
            device: None,
        }
    }

    /// The same, telling cores through `notify`.
    #[must_use]
    pub fn notify(
        mut self,
        notify: impl Fn(Committed) + Send + std::marker::Sync + 'static,
    ) -> Self {
        self.notify = Arc::new(notify);
        self
    }
}
