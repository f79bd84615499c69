//! What a keyspace counts.

use crate::device::TAGS;
use crate::log::batch::Batch;
use crate::{Allotments, EngineError, Keyspace};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::time::{Duration, Instant};

#[derive(Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    writes: AtomicU64,
    bytes: AtomicU64,
    written: [AtomicU64; TAGS],
    pub failures: AtomicU64,
    pub syncs: AtomicU64,
    /// CPU time of committers, until somebody takes it to charge for it.
    pub commit_cpu_ns: AtomicU64,
    /// The log has records that no sync covered.
    pub unsynced: AtomicBool,
    /// Writes that the last sync covered, and when it ended.
    saved: Mutex<(u64, Option<Instant>)>,
    /// Somebody asked for a sync and waits for it.
    pub saving: AtomicBool,
    /// The tag of the newest of them.
    pub unsynced_tag: AtomicU8,
    /// A compaction of what was removed is queued.
    pub reclaim: AtomicBool,
    /// An upkeep is queued or runs.
    pub upkeep: AtomicBool,
    /// The uses counted at last, and since when they are the same.
    pub last_use: Mutex<Option<(u64, Instant)>>,
}

impl Counters {
    /// Bytes committed.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Writes committed.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// The log is synced up to so many writes.
    pub(crate) fn saved(&self, writes: u64) {
        let mut saved = self.saved.lock();
        *saved = (saved.0.max(writes), Some(Instant::now()));
    }

    pub(crate) fn committed(&self, batch: &Batch) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(batch.count, Ordering::Relaxed);
        self.bytes.fetch_add(batch.bytes as u64, Ordering::Relaxed);
        for (total, bytes) in self.written.iter().zip(batch.written) {
            if bytes > 0 {
                total.fetch_add(bytes, Ordering::Relaxed);
            }
        }
    }
}

/// A keyspace in numbers. Counters count from the opening of the engine.
#[derive(Clone, Debug, Default)]
pub struct KeyspaceStats {
    /// Lookups of objects that memory answered.
    pub cache_hits: u64,
    /// Lookups that went to the database (its block cache included).
    pub cache_misses: u64,
    /// Objects in the cache, absent ones included.
    pub cache_entries: u64,
    /// Bytes in the cache, overheads included.
    pub cache_bytes: u64,
    /// Bytes that it may have in the cache now.
    pub cache_granted_bytes: u64,
    /// Lookups that the object cache did not answer, and memory of the database did.
    pub block_hits: u64,
    /// Reads of records that memory of the database did not answer, or was not asked.
    pub block_misses: u64,
    /// Bytes in its block cache; 0 if it has none of its own.
    pub block_cache_bytes: u64,
    /// Bytes that its block cache may have now.
    pub block_cache_granted_bytes: u64,
    /// What it is entitled to of the memories that are shared.
    pub allotments: Allotments,
    /// Bytes that its memtables may have now.
    pub write_buffer_granted_bytes: u64,
    /// Time that its writes have paused, so that they do not stall, ns.
    pub write_paused_ns: u64,
    /// Bytes written that wait for commit.
    pub pending_bytes: u64,
    /// Batches committed.
    pub commits: u64,
    /// Writes in them: together with `commits` the mean group.
    pub committed_writes: u64,
    /// Bytes in them.
    pub committed_bytes: u64,
    /// Times the log was synced to the disk.
    pub syncs: u64,
    /// How long ago that was at last; `None`: not since the opening of the engine.
    pub saved_ago: Option<Duration>,
    /// Writes committed that no sync has covered: a power cut may take them.
    pub unsaved_writes: u64,
    /// Somebody waits for [`Keyspace::save`].
    pub saving: bool,
    /// Times the log failed.
    pub failures: u64,
    /// RocksDB's estimate of the number of records (not keys: fields and index entries count).
    pub records_estimate: u64,
    /// Bytes of live data files.
    pub disk_bytes: u64,
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// Bytes that compaction is behind.
    pub compaction_debt_bytes: u64,
    /// How near it is to delaying its writers: they pause from 0.5 on, and at 1 RocksDB stalls
    /// them.
    pub write_pressure: f64,
    /// Whether the database is open; the five numbers above are 0 if not.
    pub open: bool,
    /// Why writes are refused, if they are.
    pub error: Option<EngineError>,
}

impl Keyspace {
    /// CPU time that committers have used for this keyspace since the last call, ns.
    pub fn take_commit_cpu_ns(&self) -> u64 {
        self.counters.commit_cpu_ns.swap(0, Ordering::Relaxed)
    }

    /// Bytes committed since the opening of the engine, by the tag of the thread that wrote them:
    /// who owes how much of what flushing and compacting them will cost.
    pub fn written_bytes(&self) -> [u64; TAGS] {
        std::array::from_fn(|tag| self.counters.written[tag].load(Ordering::Relaxed))
    }

    /// How near its database is to delaying its writers (`policy::stall::Pressure::part`); 0 while
    /// it is closed.
    pub fn write_pressure(&self) -> f64 {
        self.gate
            .peek()
            .map(|db| db.pressure().part)
            .unwrap_or_default()
    }

    /// The numbers now. Locks each shard for a moment.
    pub fn stats(&self) -> KeyspaceStats {
        let counters = &self.counters;
        let (writes_saved, saved_at) = *counters.saved.lock();
        let (buffers, granted) = (&self.buffers, self.shared.memory.granted(self.id));
        let mut stats = KeyspaceStats {
            block_hits: buffers.hits.load(Ordering::Relaxed),
            block_misses: buffers.misses(),
            block_cache_bytes: buffers.used(),
            block_cache_granted_bytes: granted.block_cache,
            allotments: buffers.allotments(),
            write_buffer_granted_bytes: granted.write_buffers,
            cache_granted_bytes: granted.object_cache,
            write_paused_ns: self.paused_ns(),
            pending_bytes: self.log.pending() as u64,
            commits: counters.commits.load(Ordering::Relaxed),
            committed_writes: counters.writes.load(Ordering::Relaxed),
            committed_bytes: counters.bytes.load(Ordering::Relaxed),
            syncs: counters.syncs.load(Ordering::Relaxed),
            saved_ago: saved_at.map(|at| at.elapsed()),
            unsaved_writes: counters.writes().saturating_sub(writes_saved),
            saving: counters.saving.load(Ordering::Relaxed),
            failures: counters.failures.load(Ordering::Relaxed),
            error: self.log.failure(),
            ..KeyspaceStats::default()
        };
        for shard in &self.shards {
            let shard = shard.lock();
            let usage = shard.usage();
            stats.cache_entries += shard.len();
            stats.cache_bytes += usage.used;
            stats.cache_hits += usage.hits;
            stats.cache_misses += usage.misses;
        }
        if let Some(db) = self.gate.peek() {
            stats.open = true;
            stats.records_estimate = db.property("rocksdb.estimate-num-keys");
            stats.disk_bytes = db.files_bytes();
            stats.memtable_bytes = db.memtable_bytes();
            stats.compaction_debt_bytes = db.property("rocksdb.estimate-pending-compaction-bytes");
            stats.write_pressure = db.pressure().part;
        }
        stats
    }
}
