//! Object cache, block cache and write buffers of every open database: granted by `policy::memory`,
//! steered once a tick.
//!
//! The books are the truth about what is granted: a database that opens between two ticks gets at
//! once what is free, up to its allotment, so that the grants never come to more than the budgets.

use crate::files::rocks::{MEMTABLES_MAX, MEMTABLE_PARTS};
use crate::{Allotments, EngineOptions, KeyspaceOptions};
use parking_lot::Mutex;
use policy::memory::CacheUse;
use rocksdb::{Cache, LruCacheOptions};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a tenant was granted, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Granted {
    pub object_cache: u64,
    pub block_cache: u64,
    pub write_buffers: u64,
}

/// A cache is shrunk by no more than this at once: each of its shards is locked while it throws
/// blocks away, about half a millisecond for this much in 4 KiB blocks, and lookups wait for that.
const SHRINK_BYTES: u64 = 32 << 20;
/// Shards of one tenant's block cache, as a power of two: handlers and cores of one tenant, not all
/// of them at once.
const SHARD_BITS: i32 = 3;
/// The memtables of one database number this many at most, whatever their size.
const PARTS_MAX: u64 = (MEMTABLES_MAX * MEMTABLE_PARTS) as u64;
/// The smallest part of a memtable: two of its arena's blocks.
const PART_BYTES_MIN: u64 = 64 << 10;

/// A tenant's block cache, and what its memtables are told.
pub(crate) struct Buffers {
    /// The tenant's own while its database is open, or everybody's.
    cache: Mutex<Option<Cache>>,
    pub own: bool,
    pub allotments: Mutex<Allotments>,
    /// Reads of records that memory of RocksDB answered.
    pub hits: AtomicU64,
    /// Reads that memory of RocksDB did not answer, or was not asked for, since the last that it
    /// did ([`policy::look`]).
    pub in_vain: AtomicU32,
    misses: AtomicU64,
    pub seen: Mutex<Seen>,
    /// Data that makes a flush at most, bytes.
    pub memtable_bytes: u64,
}

/// Up to where the counters were taken into account.
#[derive(Default)]
pub(crate) struct Seen {
    pub objects: CacheUse,
    pub hits: u64,
    pub misses: u64,
    pub written: u64,
    /// The size that memtables have now, bytes.
    pub part_bytes: u64,
}

/// The budgets, and who was granted what of them, by the number of the keyspace.
pub(crate) struct Memory {
    /// `None`: one block cache for everybody, and memtables as large as they may be.
    pub shared: Option<Cache>,
    pub budget: Granted,
    pub granted: Mutex<BTreeMap<u64, Granted>>,
}

impl Granted {
    /// Of the object cache alone.
    pub(crate) fn objects(object_cache: u64) -> Granted {
        Granted {
            object_cache,
            ..Granted::default()
        }
    }

    /// Somebody else has so much.
    pub(crate) fn less(&mut self, other: Granted) {
        self.object_cache = self.object_cache.saturating_sub(other.object_cache);
        self.block_cache = self.block_cache.saturating_sub(other.block_cache);
        self.write_buffers = self.write_buffers.saturating_sub(other.write_buffers);
    }
}

impl Memory {
    pub(crate) fn new(options: &EngineOptions) -> Memory {
        let budget = Granted {
            object_cache: options.object_cache_bytes,
            block_cache: options.block_cache_bytes,
            write_buffers: options.write_buffer_bytes,
        };
        let bytes = usize::try_from(budget.block_cache).unwrap_or(usize::MAX);
        Memory {
            shared: (!options.allotted_memory).then(|| Cache::new_hyper_clock_cache(bytes, 0)),
            budget,
            granted: Mutex::default(),
        }
    }

    /// What a new keyspace has; nothing is granted until its database opens.
    pub(crate) fn buffers(&self, options: &KeyspaceOptions) -> Buffers {
        Buffers {
            cache: Mutex::new(self.shared.clone()),
            own: self.shared.is_none(),
            allotments: Mutex::new(options.allotments),
            hits: AtomicU64::new(0),
            in_vain: AtomicU32::new(0),
            misses: AtomicU64::new(0),
            seen: Mutex::default(),
            memtable_bytes: options.memtable_bytes as u64,
        }
    }

    /// A database is about to open: it gets what is free, up to its allotment; if it has been
    /// granted something, that stays. Returns the bytes of a part of its memtables.
    pub(crate) fn enter(&self, id: u64, buffers: &Buffers) -> u64 {
        let allotments = *buffers.allotments.lock();
        let mut all = self.granted.lock();
        let granted = match all.get(&id) {
            Some(granted) => *granted,
            None => {
                let free = |of, most: u64| self.free(&all, of).min(most);
                let objects = free(
                    |granted| granted.object_cache,
                    allotments.object_cache_bytes,
                );
                if buffers.own {
                    Granted {
                        object_cache: objects,
                        block_cache: free(
                            |granted| granted.block_cache,
                            allotments.block_cache_bytes,
                        ),
                        write_buffers: free(
                            |granted| granted.write_buffers,
                            allotments.write_buffer_bytes,
                        ),
                    }
                } else {
                    Granted::objects(objects)
                }
            }
        };
        all.insert(id, granted);
        if !buffers.own {
            return buffers.part_bytes(u64::MAX);
        }
        buffers.cache();
        buffers.hold(granted.block_cache);
        let part_bytes = buffers.part_bytes(granted.write_buffers);
        buffers.seen.lock().part_bytes = part_bytes;
        part_bytes
    }

    /// What nobody was granted of one memory.
    fn free(&self, all: &BTreeMap<u64, Granted>, of: fn(&Granted) -> u64) -> u64 {
        of(&self.budget).saturating_sub(all.values().map(of).sum())
    }

    /// An allotment of the object cache has changed: a larger one is granted as far as there is
    /// room, none takes what is there; the next step does the rest.
    pub(crate) fn allot_objects(&self, id: u64, allotment: u64) {
        let mut all = self.granted.lock();
        let free = self.free(&all, |granted| granted.object_cache);
        if let Some(granted) = all.get_mut(&id) {
            let has = granted.object_cache;
            granted.object_cache = match allotment {
                0 => 0,
                more => has.max(more.min(has.saturating_add(free))),
            };
        }
    }

    /// A database was closed: others may have what it was granted.
    pub(crate) fn leave(&self, id: u64, buffers: &Buffers) {
        if self.granted.lock().remove(&id).is_some() && buffers.own {
            *buffers.cache.lock() = None;
        }
    }

    /// What a keyspace is granted now.
    pub(crate) fn granted(&self, id: u64) -> Granted {
        self.granted.lock().get(&id).copied().unwrap_or_default()
    }
}

impl Buffers {
    /// Reads that were not answered, in all.
    pub(crate) fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    /// Bytes in the tenant's cache; 0 if it has none of its own.
    pub(crate) fn used(&self) -> u64 {
        if self.own {
            let cache = self.cache.lock();
            cache.as_ref().map_or(0, |cache| cache.get_usage() as u64)
        } else {
            0
        }
    }

    /// The cache of a database that is about to open: nothing is in it.
    pub(crate) fn cache(&self) -> Cache {
        let own = || {
            let mut empty = LruCacheOptions::default();
            empty.set_capacity(0);
            empty.set_num_shard_bits(SHARD_BITS);
            Cache::new_lru_cache_opts(&empty)
        };
        self.cache.lock().get_or_insert_with(own).clone()
    }

    /// A read that memory of the database did not answer, or was not asked.
    pub(crate) fn missed(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn allotments(&self) -> Allotments {
        *self.allotments.lock()
    }

    /// As many parts as there may be come to what was granted, within what is sensible.
    pub(crate) fn part_bytes(&self, granted: u64) -> u64 {
        let largest = self.memtable_bytes / MEMTABLE_PARTS as u64;
        (granted / PARTS_MAX).clamp(PART_BYTES_MIN.min(largest), largest)
    }

    /// Whether memtables hold more than was granted, and enough to be worth a file.
    pub(crate) fn over(&self, used: u64, granted: u64) -> bool {
        used > granted.max(PART_BYTES_MIN * MEMTABLE_PARTS as u64)
    }

    /// Sets the size of the tenant's cache, if it has one of its own.
    pub(crate) fn hold(&self, bytes: u64) {
        let Some(mut cache) = self.cache.lock().clone().filter(|_| self.own) else {
            return;
        };
        let mut now = self.used();
        while now > bytes.saturating_add(SHRINK_BYTES) {
            now -= SHRINK_BYTES;
            cache.set_capacity(usize::try_from(now).unwrap_or(usize::MAX));
        }
        cache.set_capacity(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}
