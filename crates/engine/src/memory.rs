//! Block cache and write buffers of every open database: granted by `policy::memory`, steered once a tick.
//!
//! The books are the truth about what is granted: a database that opens between two ticks gets at once what is free,
//! up to its allotment, so that the grants never come to more than the budgets.

use crate::keyspace::Keyspace;
use crate::rocks::{MEMTABLES_MAX, MEMTABLE_PARTS};
use crate::{EngineOptions, KeyspaceOptions};
use parking_lot::Mutex;
use policy::memory::{buffers_need, lend, CacheUse, Claim};
use rocksdb::{Cache, FlushOptions, LruCacheOptions};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// What a tenant is entitled to of memories that are shared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allotments {
    /// Of the block cache, bytes.
    pub block_cache_bytes: u64,
    /// Of the write buffers, bytes.
    pub write_buffer_bytes: u64,
    /// Its part of what others leave, > 0.
    pub weight: f64,
}

impl Default for Allotments {
    /// Nothing of its own, and an ordinary part of what is left.
    fn default() -> Self {
        Allotments {
            block_cache_bytes: 0,
            write_buffer_bytes: 0,
            weight: 1.0,
        }
    }
}

/// What a tenant was granted, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Granted {
    pub block_cache: u64,
    pub write_buffers: u64,
}

/// A cache is shrunk by no more than this at once: each of its shards is locked while it throws blocks away, about half a
/// millisecond for this much in 4 KiB blocks, and lookups wait for that.
const SHRINK_BYTES: u64 = 32 << 20;
/// Shards of one tenant's block cache, as a power of two: handlers and cores of one tenant, not all of them at once.
const SHARD_BITS: i32 = 3;
/// The memtables of one database number so many at most, whatever their size.
const PARTS_MAX: u64 = (MEMTABLES_MAX * MEMTABLE_PARTS) as u64;
/// The smallest part of a memtable: two of its arena's blocks.
const PART_BYTES_MIN: u64 = 64 << 10;
/// A new size of memtables is written to a file by RocksDB: not for less than this part of the old one.
const WORTH_PART: u64 = 8;

/// A tenant's block cache, and what its memtables are told.
pub(crate) struct Buffers {
    /// The tenant's own while its database is open, or everybody's.
    cache: Mutex<Option<Cache>>,
    own: bool,
    allotments: Mutex<Allotments>,
    /// Reads of records that memory of RocksDB answered.
    pub hits: AtomicU64,
    misses: AtomicU64,
    seen: Mutex<Seen>,
    /// Data that makes a flush at most, bytes.
    memtable_bytes: u64,
}

/// Up to where the counters were taken into account.
#[derive(Default)]
struct Seen {
    hits: u64,
    misses: u64,
    written: u64,
    /// The size that memtables have now, bytes.
    part_bytes: u64,
}

/// The budgets, and who was granted what of them, by the number of the keyspace.
pub(crate) struct Memory {
    /// `None`: one block cache for everybody, and memtables as large as they may be.
    shared: Option<Cache>,
    budget: Granted,
    granted: Mutex<BTreeMap<u64, Granted>>,
}

impl Memory {
    pub(crate) fn new(options: &EngineOptions) -> Memory {
        let budget = Granted {
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
            misses: AtomicU64::new(0),
            seen: Mutex::default(),
            memtable_bytes: options.memtable_bytes as u64,
        }
    }

    /// A database is about to open: it gets what is free, up to its allotment; if it has been granted something, that
    /// stays. Returns the bytes of a part of its memtables.
    pub(crate) fn enter(&self, id: u64, buffers: &Buffers) -> u64 {
        if !buffers.own {
            return buffers.part_bytes(u64::MAX);
        }
        let allotments = *buffers.allotments.lock();
        let mut all = self.granted.lock();
        let granted = match all.get(&id) {
            Some(granted) => *granted,
            None => {
                let free = |budget: u64, of: fn(&Granted) -> u64| {
                    budget.saturating_sub(all.values().map(of).sum())
                };
                Granted {
                    block_cache: free(self.budget.block_cache, |granted| granted.block_cache)
                        .min(allotments.block_cache_bytes),
                    write_buffers: free(self.budget.write_buffers, |granted| granted.write_buffers)
                        .min(allotments.write_buffer_bytes),
                }
            }
        };
        all.insert(id, granted);
        buffers.cache();
        buffers.hold(granted.block_cache);
        let part_bytes = buffers.part_bytes(granted.write_buffers);
        buffers.seen.lock().part_bytes = part_bytes;
        part_bytes
    }

    /// A database was closed: others may have what it was granted.
    pub(crate) fn leave(&self, id: u64, buffers: &Buffers) {
        if self.granted.lock().remove(&id).is_some() {
            *buffers.cache.lock() = None;
        }
    }

    /// What a keyspace is granted now.
    pub(crate) fn granted(&self, id: u64) -> Granted {
        self.granted.lock().get(&id).copied().unwrap_or_default()
    }

    /// Bytes in the block caches of these keyspaces, or in everybody's.
    pub(crate) fn block_cache_used(&self, keyspaces: &[Arc<Keyspace>]) -> u64 {
        match &self.shared {
            Some(cache) => cache.get_usage() as u64,
            None => keyspaces
                .iter()
                .map(|keyspace| keyspace.buffers.used())
                .sum(),
        }
    }

    /// Grants anew by what was used since the last step. Whose memtables must change is returned: that takes RocksDB a
    /// write to the disk.
    pub(crate) fn step(&self, keyspaces: &[Arc<Keyspace>]) -> Vec<Arc<Keyspace>> {
        if self.shared.is_some() {
            return Vec::new();
        }
        let mut all = self.granted.lock();
        let present: Vec<&Arc<Keyspace>> = keyspaces
            .iter()
            .filter(|keyspace| all.contains_key(&keyspace.id))
            .collect();
        // Whoever is opening or closing at this moment keeps what it has until the next step.
        let mut left = self.budget;
        for (id, granted) in all.iter() {
            if !present.iter().any(|keyspace| keyspace.id == *id) {
                left.block_cache = left.block_cache.saturating_sub(granted.block_cache);
                left.write_buffers = left.write_buffers.saturating_sub(granted.write_buffers);
            }
        }
        let claims: Vec<(Claim, Claim)> = present
            .iter()
            .map(|keyspace| keyspace.claims(all[&keyspace.id]))
            .collect();
        let blocks: Vec<Claim> = claims.iter().map(|(blocks, _)| *blocks).collect();
        let memtables: Vec<Claim> = claims.iter().map(|(_, memtables)| *memtables).collect();
        let blocks = lend(left.block_cache, &blocks).grants;
        let memtables = lend(left.write_buffers, &memtables).grants;
        let grants = blocks.into_iter().zip(memtables);
        let mut grown = Vec::new();
        for (keyspace, (block_cache, write_buffers)) in present.iter().zip(grants) {
            let granted = Granted {
                block_cache,
                write_buffers,
            };
            let before = all.insert(keyspace.id, granted).unwrap_or_default();
            if before.block_cache < block_cache {
                grown.push((keyspace, block_cache));
            } else {
                keyspace.buffers.hold(block_cache);
            }
        }
        // Those who give first.
        for (keyspace, bytes) in grown {
            keyspace.buffers.hold(bytes);
        }
        present
            .into_iter()
            .filter(|keyspace| keyspace.wants_other_memtables(all[&keyspace.id].write_buffers))
            .map(Arc::clone)
            .collect()
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
    fn part_bytes(&self, granted: u64) -> u64 {
        let largest = self.memtable_bytes / MEMTABLE_PARTS as u64;
        (granted / PARTS_MAX).clamp(PART_BYTES_MIN.min(largest), largest)
    }

    /// Whether memtables hold more than was granted, and enough to be worth a file.
    fn over(&self, used: u64, granted: u64) -> bool {
        used > granted.max(PART_BYTES_MIN * MEMTABLE_PARTS as u64)
    }

    /// Sets the size of the tenant's cache.
    fn hold(&self, bytes: u64) {
        let Some(mut cache) = self.cache.lock().clone() else {
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

impl Keyspace {
    /// Changes what the tenant is entitled to; the next tick acts on it.
    pub fn set_allotments(&self, allotments: Allotments) {
        *self.buffers.allotments.lock() = allotments;
    }

    /// Its claims to block cache and write buffers, by what it used since the last call.
    fn claims(&self, granted: Granted) -> (Claim, Claim) {
        let allotments = self.buffers.allotments();
        let hits = self.buffers.hits.load(Ordering::Relaxed);
        let misses = self.buffers.misses();
        let written = self.counters.bytes();
        let memtable_bytes = self.gate.peek().map_or(0, |db| db.memtable_bytes());
        let mut seen = self.buffers.seen.lock();
        let cache = CacheUse {
            used: self.buffers.used(),
            hits: hits - seen.hits,
            misses: misses - seen.misses,
        };
        let wrote = written > seen.written;
        (seen.hits, seen.misses, seen.written) = (hits, misses, written);
        let enough = MEMTABLES_MAX as u64 * self.buffers.memtable_bytes;
        let claim = |allotment: u64, granted: u64, need: u64| Claim {
            allotment,
            weight: allotments.weight,
            granted,
            need,
        };
        let blocks = allotments.block_cache_bytes;
        let memtables = allotments.write_buffer_bytes;
        (
            claim(
                blocks,
                granted.block_cache,
                cache.need(blocks, granted.block_cache),
            ),
            claim(
                memtables,
                granted.write_buffers,
                buffers_need(memtable_bytes, wrote, enough),
            ),
        )
    }

    fn wants_other_memtables(&self, granted: u64) -> bool {
        let part_bytes = self.buffers.part_bytes(granted);
        let now = self.buffers.seen.lock().part_bytes;
        let used = self.gate.peek().map_or(0, |db| db.memtable_bytes());
        self.buffers.over(used, granted) || part_bytes.abs_diff(now) > now / WORTH_PART
    }

    /// Gives the memtables the size that was granted; if there is more in them than that, they are flushed. With the
    /// upkeep: RocksDB writes its options down, and a flush may have to wait for one that is under way.
    pub(crate) fn fit_memtables(&self) {
        let Some(db) = self.gate.peek() else { return };
        let granted = self.shared.memory.granted(self.id).write_buffers;
        let part_bytes = self.buffers.part_bytes(granted);
        let before = std::mem::replace(&mut self.buffers.seen.lock().part_bytes, part_bytes);
        let resized = if before == part_bytes {
            Ok(())
        } else {
            db.set_memtable_part(part_bytes)
        };
        let flushed = if self.buffers.over(db.memtable_bytes(), granted) {
            let mut options = FlushOptions::default();
            options.set_wait(false);
            db.rocks.flush_opt(&options)
        } else {
            Ok(())
        };
        if let Err(error) = resized.and(flushed) {
            tracing::warn!(tenant = %self.name, %error, "memtables keep their size");
        }
    }
}
