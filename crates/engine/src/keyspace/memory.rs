//! Block caches and write buffers of the keyspaces that are open, steered once a tick.

use super::Keyspace;
use crate::files::rocks::MEMTABLES_MAX;
use crate::memory::budgets::{Granted, Memory};
use crate::Allotments;
use policy::memory::{buffers_need, lend, CacheUse, Claim};
use rocksdb::FlushOptions;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// A new size of memtables is written to a file by RocksDB: not for less than this part of the old one.
const WORTH_PART: u64 = 8;

impl Memory {
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
