//! RocksDB's options and the few calls made of it.

use crate::files::directory::Directory;
use crate::files::shim::{hooked_env, set_object_memtables};
use crate::files::wal::{boot, Mark};
use crate::record;
use crate::{EngineError, EngineOptions, KeyspaceOptions};
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions,
    DBCompressionType, Env, ErrorKind, LogLevel, Options, ReadOptions, ReadTier, WriteBatch,
    WriteOptions, DB,
};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// What all databases share.
pub(crate) struct Commons {
    env: Env,
    direct_io: bool,
    compaction_threads: i32,
}

/// Data blocks. With 1 KiB values four to a block: a point read takes one 4 KiB page from the
/// device, the smallest it gives.
const BLOCK_BYTES: usize = 4 << 10;
/// Index and filter blocks are partitioned, so that a large file's are not loaded whole.
const METADATA_BLOCK_BYTES: usize = 4 << 10;
const BLOOM_BITS: f64 = 10.0;
/// Small arenas: an idle database's memtable costs one block, and a memtable is charged by block.
const ARENA_BLOCK_BYTES: usize = 32 << 10;
/// Memtables of one database, the ones being flushed included.
pub(crate) const MEMTABLES_MAX: i32 = 4;
/// RocksDB's memtables that make one of ours: they are merged by one flush.
pub(crate) const MEMTABLE_PARTS: i32 = 8;
/// 8 KiB of an 8 MiB memtable: 8 bits a key with 1 KiB values. It is there from the start, so an
/// idle database pays for it too.
const MEMTABLE_BLOOM_RATIO: f64 = 0.001;
/// Files of level 0 that start a compaction.
const LEVEL0_FILES: i32 = 8;
/// With so many it delays writers.
pub(crate) const LEVEL0_SLOWDOWN_FILES: i32 = 24;
/// And when compaction is this many bytes behind.
pub(crate) const PENDING_SOFT_BYTES: usize = 64 << 30;
/// Output files of compaction, so that one compaction step stays short.
const FILE_BYTES: u64 = 64 << 20;
/// A file of large values is written anew when so much of it was removed.
const REMOVED_MAX: f64 = 0.5;
/// Info logs: two of 1 MiB at most, warnings only.
const LOG_FILES: usize = 2;
const LOG_FILE_BYTES: usize = 1 << 20;
/// Start write-back of the log early, or the sync once a second finds 200 MB to write.
const WAL_WRITE_BACK_BYTES: u64 = 1 << 20;

impl Commons {
    pub(crate) fn new(
        options: &EngineOptions,
        directory: &Directory,
    ) -> Result<Commons, EngineError> {
        let mut env = Env::new().map_err(|error| EngineError::Io {
            action: "set up background threads for",
            path: options.data.clone(),
            source: std::sync::Arc::new(std::io::Error::other(error.into_string())),
        })?;
        env.set_high_priority_background_threads(options.flush_threads);
        env.set_low_priority_background_threads(options.compaction_threads);
        // It names them so, and starts them itself.
        threads::Duty::Background.begin_for("rocksdb:");
        Ok(Commons {
            env,
            direct_io: directory.direct_io,
            compaction_threads: options.compaction_threads,
        })
    }

    /// `part_bytes`: see [`MEMTABLE_PARTS`].
    pub(crate) fn options(
        &self,
        tenant: &KeyspaceOptions,
        block_cache: &Cache,
        part_bytes: u64,
    ) -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
        match &tenant.device {
            // Its threads are the same: both environments are over the process's default one.
            Some(hook) => options.set_env(&hooked_env(hook.clone())),
            None => options.set_env(&self.env),
        }
        options.set_block_based_table_factory(&table(block_cache));
        set_memory(&mut options, part_bytes);
        self.set_levels(&mut options, tenant);
        set_large_values(&mut options, block_cache, tenant.large_value_bytes);
        options.set_use_direct_reads(self.direct_io);
        options.set_use_direct_io_for_flush_and_compaction(self.direct_io);
        options.set_wal_bytes_per_sync(WAL_WRITE_BACK_BYTES);
        options.set_max_open_files(tenant.max_open_files);
        options.set_log_level(LogLevel::Warn);
        options.set_keep_log_file_num(LOG_FILES);
        options.set_max_log_file_size(LOG_FILE_BYTES);
        options.set_stats_dump_period_sec(0);
        options.set_stats_persist_period_sec(0);
        // Whoever ends a read may be the last who needed files that a compaction has replaced. A
        // core must not delete them, nor free a memtable: background threads do.
        options.set_avoid_unnecessary_blocking_io(true);
        options
    }

    fn set_levels(&self, options: &mut Options, tenant: &KeyspaceOptions) {
        options.set_level_compaction_dynamic_level_bytes(true);
        // Twice RocksDB's four: under overwrites half the compaction work (0.5 instead of 1 us of
        // processor a put), for four more Bloom filters in memory to ask on a miss.
        options.set_level_zero_file_num_compaction_trigger(LEVEL0_FILES);
        options.set_level_zero_slowdown_writes_trigger(LEVEL0_SLOWDOWN_FILES);
        options.set_level_zero_stop_writes_trigger(40);
        options.set_soft_pending_compaction_bytes_limit(PENDING_SOFT_BYTES);
        options.set_max_bytes_for_level_base(LEVEL0_FILES as u64 * tenant.memtable_bytes as u64);
        options.set_target_file_size_base(FILE_BYTES);
        // Data that is rewritten soon is not worth compressing.
        let mut levels = vec![DBCompressionType::None; 2];
        levels.resize(7, DBCompressionType::Lz4);
        options.set_compression_per_level(&levels);
        // One flush and some compactions of this database at a time; the threads are everybody's.
        options.set_max_background_jobs(self.compaction_threads + 1);
        options.set_compaction_readahead_size(1 << 20);
    }
}

fn table(block_cache: &Cache) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(block_cache);
    table.set_block_size(BLOCK_BYTES);
    table.set_format_version(6);
    table.set_bloom_filter(BLOOM_BITS, false);
    table.set_whole_key_filtering(true);
    table.set_optimize_filters_for_memory(true);
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_partition_filters(true);
    table.set_metadata_block_size(METADATA_BLOCK_BYTES);
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_top_level_index_and_filter(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table
}

fn set_large_values(options: &mut Options, block_cache: &Cache, from_bytes: u64) {
    options.set_enable_blob_files(true);
    options.set_min_blob_size(from_bytes);
    options.set_blob_file_size(FILE_BYTES);
    options.set_blob_compression_type(DBCompressionType::Lz4);
    options.set_blob_cache(block_cache);
    options.set_enable_blob_gc(true);
    options.set_blob_gc_age_cutoff(1.0);
    options.set_blob_gc_force_threshold(REMOVED_MAX);
}

fn set_memory(options: &mut Options, part_bytes: u64) {
    // Eight small memtables, merged by one flush, instead of a large one: an insert searches a
    // skip list that the processor's caches and TLB still hold (1.5 instead of 2.3 us a put),
    // and the flush writes overwritten keys once.
    options.set_write_buffer_size(part_bytes as usize);
    options.set_min_write_buffer_number_to_merge(MEMTABLE_PARTS);
    options.set_max_write_buffer_number(MEMTABLES_MAX * MEMTABLE_PARTS);
    set_object_memtables(options);
    // A read that misses asks all of them; their filters spare it most of the searches.
    options.set_memtable_prefix_bloom_ratio(MEMTABLE_BLOOM_RATIO);
    options.set_memtable_whole_key_filtering(true);
    options.set_arena_block_size(ARENA_BLOCK_BYTES);
    // One committer writes at a time: nothing to make concurrent, and plain inserts are cheaper.
    // `unordered_write` and pipelined writes would give up what the log relies on, that a batch
    // appears at once, for concurrency that is not there.
    options.set_allow_concurrent_memtable_write(false);
    options.set_enable_write_thread_adaptive_yield(false);
    // The default of 64 shards is 64 mutexes and tables for a handful of files.
    options.set_table_cache_num_shard_bits(2);
}

/// An open database.
pub(crate) struct Db {
    pub rocks: DB,
    /// Reads that never touch the device.
    memory: ReadOptions,
    /// Everything up to this number of RocksDB's is on the disk.
    synced: AtomicU64,
    /// As the newest record of the log says.
    said: AtomicU64,
}

/// Answer of a read that may not touch the device.
pub(crate) enum InMemory<T> {
    Known(T),
    Unknown,
}

impl Db {
    pub(crate) fn open(options: &Options, path: &Path) -> Result<Db, rocksdb::Error> {
        Ok(Db::of(DB::open(options, path)?))
    }

    /// Serves reads while the directory cannot be written.
    pub(crate) fn open_read_only(options: &Options, path: &Path) -> Result<Db, rocksdb::Error> {
        Ok(Db::of(DB::open_for_read_only(options, path, false)?))
    }

    fn of(rocks: DB) -> Db {
        let mut memory = ReadOptions::default();
        memory.set_read_tier(ReadTier::BlockCache);
        // What an opening found in the log, it has written to files.
        let found = rocks.latest_sequence_number();
        Db {
            rocks,
            memory,
            synced: AtomicU64::new(found),
            said: AtomicU64::new(found),
        }
    }

    /// Reads through `read` what memtables and block cache know.
    pub(crate) fn get_in_memory<T>(
        &self,
        raw: &[u8],
        read: impl FnOnce(Option<&[u8]>) -> T,
    ) -> Result<InMemory<T>, rocksdb::Error> {
        match self.rocks.get_pinned_opt(raw, &self.memory) {
            Ok(value) => Ok(InMemory::Known(read(value.as_deref()))),
            Err(error) if error.kind() == ErrorKind::Incomplete => Ok(InMemory::Unknown),
            Err(error) => Err(error),
        }
    }

    /// Writes a batch. REQUIRES: nobody else writes meanwhile.
    pub(crate) fn write(&self, mut batch: WriteBatch, sync: bool) -> Result<(), rocksdb::Error> {
        let synced = self.synced.load(Ordering::Relaxed);
        let mark = Mark {
            boot: boot(),
            synced,
        };
        batch.put_log_data(mark.encode());
        let mut options = WriteOptions::default();
        options.set_sync(sync);
        self.rocks.write_opt(batch, &options)?;
        self.said.store(synced, Ordering::Relaxed);
        if sync {
            let written = self.rocks.latest_sequence_number();
            self.synced.fetch_max(written, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Has everything that was written so far on the disk.
    pub(crate) fn sync(&self) -> Result<(), rocksdb::Error> {
        let written = self.rocks.latest_sequence_number();
        self.rocks.flush_wal(true)?;
        self.synced.fetch_max(written, Ordering::Relaxed);
        Ok(())
    }

    /// The same for the last time, and with the word of the log that it is all there. REQUIRES: as
    /// [`Db::write`].
    pub(crate) fn seal(&self) -> Result<(), rocksdb::Error> {
        self.sync()?;
        if self.said.load(Ordering::Relaxed) < self.synced.load(Ordering::Relaxed) {
            self.write(WriteBatch::default(), true)?;
        }
        Ok(())
    }

    /// Rewrites the files of all data, to give back the space of what was removed. Slow.
    pub(crate) fn compact(&self) {
        let mut options = CompactOptions::default();
        options.set_exclusive_manual_compaction(false);
        options.set_bottommost_level_compaction(BottommostLevelCompaction::IfHaveCompactionFilter);
        let [first, .., last] = record::DATA_PREFIXES;
        self.rocks
            .compact_range_opt(Some([first]), Some([last + 1]), &options);
    }

    /// Bytes of data files.
    pub(crate) fn files_bytes(&self) -> u64 {
        let blobs = self.property("rocksdb.total-blob-file-size");
        self.property("rocksdb.total-sst-files-size") + blobs
    }

    /// Whether some value is in no block, because it is large.
    pub(crate) fn has_large_values(&self) -> bool {
        self.property("rocksdb.num-blob-files") > 0
    }

    /// Bytes of memtables that are not in files yet.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.property("rocksdb.cur-size-all-mem-tables")
    }

    /// Memtables filled from now on are of this size, bytes.
    pub(crate) fn set_memtable_part(&self, bytes: u64) -> Result<(), rocksdb::Error> {
        self.rocks
            .set_options(&[("write_buffer_size", &bytes.to_string())])
    }

    pub(crate) fn property(&self, name: &str) -> u64 {
        self.rocks
            .property_int_value(name)
            .ok()
            .flatten()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceHook, DeviceIo, DeviceStage, Ended, FileKind, Op};
    use crate::{Allotments, Sync};
    use std::sync::mpsc::{channel, Sender};
    use std::sync::Arc;
    use std::thread::{current, ThreadId};
    use std::time::Duration;

    /// Tells who deletes files of data.
    struct Deletions(Sender<ThreadId>);

    impl DeviceStage for Deletions {
        fn begin(&self, io: &DeviceIo) -> u64 {
            if (io.op, io.file) == (Op::Delete, FileKind::Data) {
                let _ = self.0.send(current().id());
            }
            0
        }

        fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
    }

    /// It may be a core.
    #[test]
    fn who_ends_a_read_deletes_no_files() {
        let directory = tempfile::tempdir().unwrap();
        let (sender, deleted) = channel();
        let mut tenant = KeyspaceOptions::new(Sync::Never, Allotments::default());
        tenant.device = Some(DeviceHook {
            stage: Arc::new(Deletions(sender)),
            principal: 0,
        });
        let root = Directory::open(directory.path(), false).unwrap();
        let commons = Commons::new(&EngineOptions::new(directory.path()), &root).unwrap();
        let options = commons.options(&tenant, &Cache::new_lru_cache(0), 1 << 20);
        let db = Db::open(&options, &directory.path().join("db")).unwrap();
        // Each file begins before the other ends, or they would only change their level.
        for value in [b"1", b"2"] {
            db.rocks.put(b"oa", value).unwrap();
            db.rocks.put(b"ob", value).unwrap();
            db.rocks.flush().unwrap();
        }
        let mut iterator = db.rocks.raw_iterator();
        iterator.seek_to_first();
        // The files that it reads are replaced.
        db.compact();
        assert!(deleted.try_recv().is_err());
        drop(iterator);
        let who = deleted.recv_timeout(Duration::from_secs(60));
        assert_ne!(who.expect("a deletion"), current().id());
    }

    /// Counts what is read of data files.
    struct Reads(AtomicU64);

    impl DeviceStage for Reads {
        fn begin(&self, io: &DeviceIo) -> u64 {
            if (io.op, io.file) == (Op::Read, FileKind::Data) {
                self.0.fetch_add(io.bytes, Ordering::Relaxed);
            }
            0
        }

        fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
    }

    #[test]
    fn who_reads_a_small_record_does_not_read_its_large_neighbour() {
        let directory = tempfile::tempdir().unwrap();
        let reads = Arc::new(Reads(AtomicU64::new(0)));
        let mut tenant = KeyspaceOptions::new(Sync::Never, Allotments::default());
        tenant.device = Some(DeviceHook {
            stage: Arc::clone(&reads) as Arc<dyn DeviceStage>,
            principal: 0,
        });
        let root = Directory::open(directory.path(), false).unwrap();
        let commons = Commons::new(&EngineOptions::new(directory.path()), &root).unwrap();
        let options = commons.options(&tenant, &Cache::new_lru_cache(0), 64 << 20);
        let db = Db::open(&options, &directory.path().join("db")).unwrap();
        let large = vec![b'x'; 8 << 20];
        db.rocks.put(b"ha", b"1").unwrap();
        db.rocks.put(b"hb", &large).unwrap();
        db.rocks.put(b"hc", b"1").unwrap();
        db.rocks.flush().unwrap();
        let read_for = |raw: &[u8]| {
            let before = reads.0.load(Ordering::Relaxed);
            let found = db.rocks.get(raw).unwrap().map(|value| value.len());
            (found, reads.0.load(Ordering::Relaxed) - before)
        };
        // The first opens the file.
        read_for(b"ha");
        for raw in [b"ha", b"hc"] {
            let (found, bytes) = read_for(raw);
            assert_eq!(found, Some(1));
            assert!(bytes < tenant.large_value_bytes, "{bytes} bytes for one");
        }
        assert_eq!(read_for(b"hb").0, Some(large.len()));
        assert!(db.files_bytes() > 0);
        // Replaced, its space is given back.
        db.rocks.put(b"hb", b"1").unwrap();
        db.rocks.flush().unwrap();
        db.compact();
        let left = db.files_bytes();
        assert!(left < tenant.large_value_bytes, "{left}");
    }
}
