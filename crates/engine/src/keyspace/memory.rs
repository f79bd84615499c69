//! Object caches, block caches and write buffers of the keyspaces that are open, steered once a
//! tick.

use super::Keyspace;
use crate::files::rocks::MEMTABLES_MAX;
use crate::memory::budgets::{Granted, Memory};
use crate::Allotments;
use policy::memory::{buffers_need, lend, CacheUse, Claim};
use rocksdb::FlushOptions;
use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// What a step of the books leaves to do for others than the tick.
#[derive(Default)]
pub(crate) struct Moves {
    /// Whose memtables must change: that takes RocksDB a write to the disk.
    pub memtables: Vec<Arc<Keyspace>>,
    /// Whose object caches must change: those first that give.
    pub objects: Vec<Arc<Keyspace>>,
}

/// A new size of memtables is written to a file by RocksDB: not for less than this part of the old
/// one.
const WORTH_PART: u64 = 8;

/// What a keyspace wants of each memory.
struct Claims {
    objects: Claim,
    blocks: Claim,
    memtables: Claim,
}

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

    /// Grants anew by what was used since the last step.
    pub(crate) fn step(&self, keyspaces: &[Arc<Keyspace>]) -> Moves {
        let mut all = self.granted.lock();
        let present: Vec<&Arc<Keyspace>> = keyspaces
            .iter()
            .filter(|keyspace| all.contains_key(&keyspace.id))
            .collect();
        // Whoever is opening or closing at this moment keeps what it has until the next step.
        let mut left = self.budget;
        for (id, granted) in all.iter() {
            if !present.iter().any(|keyspace| keyspace.id == *id) {
                left.less(*granted);
            }
        }
        let claims = present
            .iter()
            .map(|keyspace| keyspace.claims(all[&keyspace.id]));
        let grants = self.grants(left, claims.collect());
        let mut moves = Moves::default();
        let (mut growing, mut grown) = (Vec::new(), Vec::new());
        for (keyspace, granted) in present.into_iter().zip(grants) {
            let before = all.insert(keyspace.id, granted).unwrap_or_default();
            match before.object_cache.cmp(&granted.object_cache) {
                Ordering::Less => growing.push(Arc::clone(keyspace)),
                Ordering::Equal => {}
                Ordering::Greater => moves.objects.push(Arc::clone(keyspace)),
            }
            if before.block_cache < granted.block_cache {
                grown.push((keyspace, granted.block_cache));
            } else {
                keyspace.buffers.hold(granted.block_cache);
            }
            if keyspace.wants_other_memtables(granted.write_buffers) {
                moves.memtables.push(Arc::clone(keyspace));
            }
        }
        // Those who give first.
        for (keyspace, bytes) in grown {
            keyspace.buffers.hold(bytes);
        }
        moves.objects.append(&mut growing);
        moves
    }

    /// What each is granted of `budget` from now on.
    fn grants(&self, budget: Granted, claims: Vec<Claims>) -> Vec<Granted> {
        if self.shared.is_some() {
            let objects = claims.iter().map(|claims| claims.objects.allotment);
            return objects.map(Granted::objects).collect();
        }
        let divide = |budget: u64, of: fn(&Claims) -> Claim| {
            let claims: Vec<Claim> = claims.iter().map(of).collect();
            lend(budget, &claims).grants
        };
        let objects = divide(budget.object_cache, |claims| claims.objects);
        let blocks = divide(budget.block_cache, |claims| claims.blocks);
        let memtables = divide(budget.write_buffers, |claims| claims.memtables);
        let grants = objects.into_iter().zip(blocks).zip(memtables);
        grants
            .map(|((object_cache, block_cache), write_buffers)| Granted {
                object_cache,
                block_cache,
                write_buffers,
            })
            .collect()
    }
}

impl Keyspace {
    /// Changes what the tenant is entitled to; the next tick acts on it. With none of the object
    /// cache what is in it goes at once.
    pub fn set_allotments(&self, allotments: Allotments) {
        *self.buffers.allotments.lock() = allotments;
        let memory = &self.shared.memory;
        memory.allot_objects(self.id, allotments.object_cache_bytes);
        self.fit_objects();
    }

    /// Its claims, by what it used since the last call.
    fn claims(&self, granted: Granted) -> Claims {
        let allotments = self.buffers.allotments();
        let objects = self.objects_use();
        let hits = self.buffers.hits.load(Relaxed);
        let misses = self.buffers.misses();
        let written = self.counters.bytes();
        let memtable_bytes = self.gate.peek().map_or(0, |db| db.memtable_bytes());
        let mut seen = self.buffers.seen.lock();
        let blocks = CacheUse {
            used: self.buffers.used(),
            hits: hits - seen.hits,
            misses: misses - seen.misses,
            lost: 0,
        };
        let objects_since = CacheUse {
            used: objects.used,
            hits: objects.hits - seen.objects.hits,
            misses: objects.misses - seen.objects.misses,
            lost: objects.lost - seen.objects.lost,
        };
        let wrote = written > seen.written;
        (seen.hits, seen.misses, seen.written) = (hits, misses, written);
        seen.objects = objects;
        let enough = MEMTABLES_MAX as u64 * self.buffers.memtable_bytes;
        let claim = |allotment: u64, granted: u64, need: u64| Claim {
            allotment,
            weight: allotments.weight,
            granted,
            need,
        };
        let cache = |allotment: u64, granted: u64, since: CacheUse| {
            claim(allotment, granted, since.need(allotment, granted))
        };
        Claims {
            objects: match allotments.object_cache_bytes {
                0 => claim(0, 0, 0),
                some => cache(some, granted.object_cache, objects_since),
            },
            blocks: cache(allotments.block_cache_bytes, granted.block_cache, blocks),
            memtables: claim(
                allotments.write_buffer_bytes,
                granted.write_buffers,
                buffers_need(memtable_bytes, wrote, enough),
            ),
        }
    }

    /// What its object cache holds now, and saw from the start.
    fn objects_use(&self) -> CacheUse {
        let shards = self.shards.iter().map(|shard| shard.lock().usage());
        shards.fold(CacheUse::default(), |all, shard| CacheUse {
            used: all.used + shard.used,
            hits: all.hits + shard.hits,
            misses: all.misses + shard.misses,
            lost: all.lost + shard.lost,
        })
    }

    /// Gives the object cache the size that was granted; what no longer fits goes, a little at a
    /// time.
    pub(crate) fn fit_objects(&self) {
        let mut granted = self.shared.memory.granted(self.id).object_cache;
        loop {
            let share = granted / self.shards.len() as u64;
            for index in 0..self.shards.len() {
                while !self.resize(index, share) {}
            }
            // Somebody who was slower may have gone by what was granted before.
            let now = self.shared.memory.granted(self.id).object_cache;
            if now == granted {
                return;
            }
            granted = now;
        }
    }

    /// A part of that, with the shard locked once. `true`: it was the last.
    fn resize(&self, index: usize, share: u64) -> bool {
        let mut shard = self.shards[index].lock();
        let decided = self.log.decided();
        let resized = shard.resize(share, decided);
        if resized.pinned {
            self.note_pins(index, &mut shard, decided);
        }
        drop(shard);
        drop(resized.dropped);
        resized.done
    }

    fn wants_other_memtables(&self, granted: u64) -> bool {
        let part_bytes = self.buffers.part_bytes(granted);
        let now = self.buffers.seen.lock().part_bytes;
        let used = self.gate.peek().map_or(0, |db| db.memtable_bytes());
        let other = part_bytes.abs_diff(now) > now / WORTH_PART;
        self.buffers.own && (other || self.buffers.over(used, granted))
    }

    /// Gives the memtables the size that was granted; if there is more in them than that, they are
    /// flushed. With the upkeep: RocksDB writes its options down, and a flush may have to wait for
    /// one that is under way.
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
            tracing::warn!(tenant = %self.name, %error, "memtables could not be resized");
        }
    }
}
