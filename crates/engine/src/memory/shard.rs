//! A shard of a keyspace's memory: cached objects, pins, latched and watched keys.
//!
//! **Why memory never shows an old state.** Every write of a key happens under its shard's lock,
//! replaces what the cache holds and removes what is pinned. It stays in the cache, or, when it is
//! evicted or too large for it before its batch is decided, it is **pinned**. So what memory has of
//! a key is its last state, and a key that memory does not know has its last state in the
//! database. A fill from there happens either in phase 1, with the lock held from the moment
//! cache and pins were found empty until the fill is done, or in phase 2, by the holder of the
//! key's latch, and nobody writes a latched key but its holder: no write can slip between the
//! read and the fill.

use crate::{Entry, Lookups, Seq, Waiter};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use policy::memory::CacheUse;
use quick_cache::unsync::Cache;
use quick_cache::{Lifecycle, Weighter};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A user key. Usual ones lie in the tables that hold them: a lookup that compares them touches
/// no further memory.
pub(crate) type Key = SmallVec<[u8; 24]>;

/// What is charged for a cached object beyond its key and value: the slab node, the index, two
/// allocation headers, the seq (counted on x86-64, rounded up).
const OVERHEAD_BYTES: u64 = 160;
/// The ghost list of the cache's policy remembers this many evicted keys for each byte allotted.
const BYTES_PER_ITEM: u64 = 512;
/// Table capacity for pins that an idle shard may keep.
const PINS_KEPT: usize = 64;
/// An object may take this part of a shard's allotment.
const OBJECT_PART: u64 = 8;

/// A cache is shrunk by no more than this while its shard is locked: in objects of 200 bytes, some
/// 30 us.
const SHRINK_BYTES: u64 = 64 << 10;

/// The state of a key that was read or written: its entry (or its absence), expired or not.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    /// Position of the write that made it; 0 when it came from the database.
    pub seq: Seq,
    pub entry: Option<Entry>,
}

impl Cached {
    fn bytes(&self) -> u64 {
        self.entry
            .as_ref()
            .map_or(0, |entry| entry.value_bytes() as u64)
    }
}

#[derive(Clone)]
pub(crate) struct Weigh;

impl Weighter<Key, Cached> for Weigh {
    fn weight(&self, key: &Key, cached: &Cached) -> u64 {
        key.len() as u64 + cached.bytes() + OVERHEAD_BYTES
    }
}

/// Collects what was pushed out: by an insert the cache's old value of the same key, evicted ones,
/// or the new one itself; by a smaller size what no longer fits, of which the cache says nothing to
/// its caller.
#[derive(Clone, Default)]
pub(crate) struct Collect {
    shrunk: Arc<Shrunk>,
}

#[derive(Default)]
struct Shrunk {
    on: AtomicBool,
    out: Mutex<Vec<(Key, Cached)>>,
}

impl Lifecycle<Key, Cached> for Collect {
    type RequestState = SmallVec<[(Key, Cached); 2]>;

    fn on_evict(&self, out: &mut Self::RequestState, key: Key, cached: Cached) {
        if self.shrunk.on.load(Ordering::Relaxed) {
            self.shrunk.out.lock().push((key, cached));
        } else {
            out.push((key, cached));
        }
    }
}

impl Shrunk {
    /// What `shrink` has the cache throw away. REQUIRES: the cache is locked by the caller.
    fn by(&self, shrink: impl FnOnce()) -> Vec<(Key, Cached)> {
        self.on.store(true, Ordering::Relaxed);
        shrink();
        self.on.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.out.lock())
    }
}

type ObjectCache = Cache<Key, Cached, Weigh, RandomState, Collect>;

/// What a shard had cached. To drop a million objects takes a tenth of a second: REQUIRES that
/// nobody's shard is locked.
#[must_use = "it is dropped when the shard is not locked any more"]
#[derive(Default)]
#[allow(dead_code, reason = "only to be dropped")]
pub(crate) struct Dropped(Option<Box<ObjectCache>>, Vec<(Key, Cached)>);

/// How far [`Shard::resize`] has come.
#[derive(Default)]
pub(crate) struct Resized {
    /// It has the new size. If not, it is to be called again, with others in between.
    pub done: bool,
    /// Something is pinned now.
    pub pinned: bool,
    pub dropped: Dropped,
}

/// Whether whole-keyspace work bars the way. All shards of a keyspace always show the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Bar {
    #[default]
    Open,
    /// Somebody waits for all keys: latches held now may finish, new ones queue behind.
    Wanted,
    /// Somebody has all keys.
    Held,
}

type Pins = HashMap<Key, Cached, RandomState>;

fn found<'s>(
    cache: &'s Option<Box<ObjectCache>>,
    pins: &'s Pins,
    key: &[u8],
) -> Option<&'s Cached> {
    let cached = cache.as_ref().and_then(|cache| cache.get(key));
    cached.or_else(|| pinned(pins, key))
}

fn pinned<'p>(pins: &'p Pins, key: &[u8]) -> Option<&'p Cached> {
    // Nearly always there are none: no hashing for nothing.
    (!pins.is_empty()).then(|| pins.get(key))?
}

/// A key that somebody watches, and that nobody has changed since.
#[derive(Default)]
pub(crate) struct Watched {
    /// Shared by all who watch it.
    pub changed: Arc<AtomicBool>,
    /// Whether there was no such key when it was last looked at.
    pub absent: bool,
}

/// Who has a latched key.
#[derive(Default)]
pub(crate) struct Holders {
    /// Who only reads it, together; none: somebody has it alone.
    pub readers: u32,
    /// Told when nobody has it any more.
    pub waiters: Vec<Waiter>,
}

impl Holders {
    /// Whether a command that only `reads`, or does not, must wait for them in phase 1.
    pub fn stop(&self, reads: bool) -> bool {
        !reads || self.readers == 0
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Shard {
    /// Built at the first fill: an idle tenant pays for no tables.
    cache: Option<Box<ObjectCache>>,
    shrunk: Arc<Shrunk>,
    cache_bytes: u64,
    object_bytes_max: u64,
    hasher: RandomState,
    /// Undecided writes that the cache does not hold.
    pins: Pins,
    pub latched: HashMap<Key, Holders, RandomState>,
    pub bar: Bar,
    pub watched: HashMap<Key, Watched, RandomState>,
    /// Position of the newest write: once it is decided, the cache holds nothing that must be
    /// pinned.
    newest: Seq,
    pub hits: u64,
    pub misses: u64,
    /// Objects that went, or were not taken, for want of room.
    lost: u64,
}

impl Shard {
    pub(crate) fn new(cache_bytes: u64, object_bytes_max: u64) -> Shard {
        Shard {
            cache_bytes,
            object_bytes_max,
            ..Shard::default()
        }
    }

    /// What memory knows of a key. Whoever uses it counts it: see [`Shard::count`].
    pub(crate) fn lookup(&mut self, key: &[u8]) -> Option<&Cached> {
        found(&self.cache, &self.pins, key)
    }

    /// As [`Shard::lookup`], but only a whole string or an absence.
    pub(crate) fn lend(&mut self, key: &[u8]) -> Option<&Cached> {
        let lendable = |entry: &Entry| entry.whole().is_some();
        self.lookup(key)
            .filter(|cached| cached.entry.as_ref().is_none_or(lendable))
    }

    /// Lookups by commands that came to an end. One that is run again elsewhere asks again, and
    /// counts once.
    pub(crate) fn count(&mut self, lookups: Lookups) {
        self.hits += u64::from(lookups.found);
        self.misses += u64::from(lookups.missed);
    }

    /// Whether memory knows of a key, be it that there is none; to ask does not count as use.
    pub(crate) fn knows(&self, key: &[u8]) -> bool {
        self.peek(key).is_some()
    }

    /// As [`Shard::lookup`], but does not count as use.
    fn peek(&self, key: &[u8]) -> Option<&Cached> {
        let cached = self.cache.as_ref().and_then(|cache| cache.peek(key));
        cached.or_else(|| pinned(&self.pins, key))
    }

    /// Has the processor fetch what [`Shard::lookup`] will look at; returned is something that
    /// hangs on all of it.
    pub(crate) fn glance(&self, key: &[u8]) -> u8 {
        let entry = self.peek(key).and_then(|cached| cached.entry.as_ref());
        let value = entry.and_then(Entry::whole);
        value.and_then(|value| value.first()).copied().unwrap_or(0)
    }

    /// The entry of a key, if memory knows it and it has an expiry.
    pub(crate) fn expiring(&self, key: &[u8]) -> Option<Entry> {
        let entry = self.peek(key)?.entry.as_ref()?;
        entry.expire_at_ms.map(|_| entry.clone())
    }

    /// Caches what the database says. REQUIRES: as the module says, lock held since the lookup
    /// or key latched. `true`: something is pinned now.
    pub(crate) fn fill(&mut self, key: &[u8], entry: Option<Entry>, decided: Seq) -> bool {
        self.cache_insert(Key::from_slice(key), Cached { seq: 0, entry }, decided)
    }

    /// A write: cached or pinned, watchers told. `true`: something is pinned now, and
    /// [`Shard::release`] is wanted after the next decision.
    pub(crate) fn write(&mut self, key: Key, cached: Cached, decided: Seq) -> bool {
        self.touch(&key);
        self.keep(key, cached, decided)
    }

    /// A write that removes what had expired: nothing happened to those who watch the key since
    /// then.
    pub(crate) fn sweep(&mut self, key: Key, cached: Cached, decided: Seq) -> bool {
        if !self.watched.get(&key).is_some_and(|watched| watched.absent) {
            self.touch(&key);
        }
        self.keep(key, cached, decided)
    }

    /// A write of which watchers are told otherwise.
    pub(crate) fn keep(&mut self, key: Key, cached: Cached, decided: Seq) -> bool {
        if !self.pins.is_empty() {
            self.pins.remove(key.as_slice());
        }
        self.newest = self.newest.max(cached.seq);
        self.cache_insert(key, cached, decided)
    }

    /// Forgets pins of decided writes. `true`: none is left.
    pub(crate) fn release(&mut self, decided: Seq) -> bool {
        self.pins.retain(|_, cached| cached.seq > decided);
        if self.pins.is_empty() && self.pins.capacity() > PINS_KEPT {
            self.pins = HashMap::default();
        }
        self.pins.is_empty()
    }

    /// Marks the key's watches: it is not what it was.
    pub(crate) fn touch(&mut self, key: &[u8]) {
        if self.watched.is_empty() {
            return;
        }
        if let Some(watched) = self.watched.remove(key) {
            watched.changed.store(true, Ordering::Release);
        }
    }

    /// Every key was removed. Watches of keys that were absent stay clean: nothing happened to
    /// those. Returns what held the keys, to be dropped elsewhere.
    pub(crate) fn wipe(&mut self) -> impl Send {
        self.watched.retain(|_, watched| {
            watched.changed.fetch_or(!watched.absent, Ordering::Release);
            watched.absent
        });
        (self.cache.take(), std::mem::take(&mut self.pins))
    }

    /// Forgets writes after `decided`: their batch failed. Returns what is left to drop.
    pub(crate) fn forget_after(&mut self, decided: Seq) -> impl Send {
        if self.newest > decided {
            if let Some(cache) = &mut self.cache {
                cache.retain(|_, cached| cached.seq <= decided);
            }
        }
        std::mem::take(&mut self.pins)
    }

    /// Gives the cache's memory back.
    pub(crate) fn drop_cache(&mut self, decided: Seq) -> Resized {
        let cache = self.cache.take();
        if let Some(cache) = cache.as_ref().filter(|_| self.newest > decided) {
            let undecided = cache.iter().filter(|(_, cached)| cached.seq > decided);
            (self.pins).extend(undecided.map(|(key, cached)| (key.clone(), cached.clone())));
        }
        let pinned = cache.is_some() && !self.pins.is_empty();
        Resized {
            done: true,
            pinned,
            dropped: Dropped(cache, Vec::new()),
        }
    }

    /// Another size. What no longer fits is evicted, a part at each call, until [`Resized::done`].
    pub(crate) fn resize(&mut self, cache_bytes: u64, decided: Seq) -> Resized {
        self.cache_bytes = cache_bytes;
        if cache_bytes == 0 {
            return self.drop_cache(decided);
        }
        let Some(cache) = &mut self.cache else {
            return Resized {
                done: true,
                ..Resized::default()
            };
        };
        let (before, shrunk) = (cache.weight(), Arc::clone(&self.shrunk));
        let evicted = shrunk.by(|| {
            cache.set_capacity(cache_bytes.max(before.saturating_sub(SHRINK_BYTES)));
            if cache.weight() == before {
                // It fits, or nothing can be evicted.
                cache.set_capacity(cache_bytes);
            }
        });
        let done = cache.capacity() == cache_bytes;
        let undecided = evicted.iter().filter(|(_, cached)| cached.seq > decided);
        (self.pins).extend(undecided.map(|(key, cached)| (key.clone(), cached.clone())));
        Resized {
            done,
            pinned: !self.pins.is_empty(),
            dropped: Dropped(None, evicted),
        }
    }

    /// How often it was asked for an object.
    pub(crate) fn lookups(&self) -> u64 {
        self.hits + self.misses
    }

    /// Objects in the cache.
    pub(crate) fn len(&self) -> u64 {
        self.cache.as_ref().map_or(0, |cache| cache.len() as u64)
    }

    /// Bytes in the cache now, and what it saw from the start.
    pub(crate) fn usage(&self) -> CacheUse {
        CacheUse {
            used: self.cache.as_ref().map_or(0, |cache| cache.weight()),
            hits: self.hits,
            misses: self.misses,
            lost: self.lost,
        }
    }

    fn cache_insert(&mut self, key: Key, cached: Cached, decided: Seq) -> bool {
        let bytes = cached.bytes() + key.len() as u64;
        if bytes > self.object_bytes_max.min(self.cache_bytes / OBJECT_PART) {
            self.lost += u64::from(bytes <= self.object_bytes_max);
            // The old value must go all the same, or it would be served.
            if let Some(cache) = &mut self.cache {
                cache.remove(key.as_slice());
            }
            return self.pin(key, cached, decided);
        }
        let (bytes, hasher, shrunk) = (self.cache_bytes, &self.hasher, &self.shrunk);
        let cache = self.cache.get_or_insert_with(|| {
            let items = usize::try_from(bytes / BYTES_PER_ITEM).unwrap_or(usize::MAX);
            let shrunk = Arc::clone(shrunk);
            let collect = Collect { shrunk };
            Box::new(Cache::with(items, bytes, Weigh, hasher.clone(), collect))
        });
        let (inserted, seq) = (key.clone(), cached.seq);
        let mut out = SmallVec::new();
        cache.insert_with_lifecycle(key, cached, &mut out);
        let mut pinned = false;
        for (key, cached) in out {
            self.lost += u64::from(key != inserted);
            // Of the key just written only the new state counts, should the cache refuse it.
            if cached.seq > decided && (cached.seq == seq || key != inserted) {
                pinned |= self.pin(key, cached, decided);
            }
        }
        pinned
    }

    fn pin(&mut self, key: Key, cached: Cached, decided: Seq) -> bool {
        let undecided = cached.seq > decided;
        if undecided {
            self.pins.insert(key, cached);
        }
        undecided
    }
}

#[cfg(test)]
mod tests;
