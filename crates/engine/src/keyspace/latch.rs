//! Latches: who works on a key in phase 2.
//!
//! A latch covers all keys of its command and is taken **at once or not at all**: the shards of
//! the keys are locked in order, and either every key is free and becomes latched, or the
//! caller's waiter is queued behind one of them and nothing is kept. Nobody holds a latch while
//! waiting for another, so latches cannot deadlock.
//!
//! Those who only read several keys have them **together**: most of these may be in memory while
//! one is read from the disk, and nobody else who reads them should wait for that. Where a writer
//! waits for a key, further readers queue behind it. Who reads a single key has it alone: others
//! that want it find it in memory then, and need not read it again.
//!
//! Whole-keyspace work ([`Keys::All`]) needs every key free. While somebody waits for that, new
//! key latches queue behind the **bar**, so a steady stream of them cannot starve it; commands
//! that finish in phase 1 hold no latch and pass. When the last key latch goes, those who wait
//! for all are told. Should none of them come back (a client that left), the bar is lifted by
//! the engine's tick: nobody's disappearance stops a tenant.
//!
//! Lock order: shards (ascending), then the book. Waiters run outside all locks.

use crate::keyspace::ahead::Ahead;
use crate::memory::shard::{Bar, Holders, Key, Shard};
use crate::naming::Moment;
use crate::{Keys, Keyspace, Waiter};
use parking_lot::MutexGuard;
use smallvec::SmallVec;
use std::sync::Arc;

/// Ticks after which a bar whose waiters were told and did not come is lifted.
const BAR_TICKS_MAX: u32 = 2;

/// Locked shards, ascending.
pub(crate) type Locked<'k> = SmallVec<[(u32, MutexGuard<'k, Shard>); 2]>;

/// Use of some keys, which nobody writes meanwhile but its holder. Dropping it tells those who
/// wait.
#[must_use]
pub struct Latch {
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) held: Held,
    /// Its holder writes nothing.
    pub(crate) reads: bool,
    /// When its keys had the names that it holds.
    pub(crate) moment: Moment,
    /// What others read for its holder.
    pub(crate) ahead: Option<Arc<Ahead>>,
}

impl std::fmt::Debug for Latch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Latch").field(&self.held).finish()
    }
}

#[derive(Debug)]
pub(crate) enum Held {
    /// A snapshot needs no latch.
    Nothing,
    /// Sorted by (shard, key), no repeats.
    Keys(SmallVec<[(u32, Key); 2]>),
    All,
}

impl Held {
    pub(crate) fn covers(&self, shard: u32, key: &[u8]) -> bool {
        match self {
            Held::Nothing => false,
            Held::All => true,
            Held::Keys(keys) => keys
                .binary_search_by(|(s, k)| (*s, k.as_slice()).cmp(&(shard, key)))
                .is_ok(),
        }
    }
}

/// What concerns the whole keyspace. Locked after shards, by latch traffic only.
#[derive(Default)]
pub(crate) struct Book {
    /// Keys latched now.
    latched: usize,
    /// Told when no key is latched or all are released.
    want_all: Vec<Waiter>,
    /// Told when the bar opens.
    barred: Vec<Waiter>,
    /// Ticks since those who want all were told.
    ticks: u32,
}

impl Book {
    pub(crate) fn quiet(&self) -> bool {
        self.latched == 0 && self.want_all.is_empty() && self.barred.is_empty()
    }
}

impl Keyspace {
    /// Latches `keys` for phase 2. `None`: somebody has one of them, or the database must be opened
    /// first; `waiter` is told once, and should call this (or phase 1) again.
    pub fn latch(self: &Arc<Self>, keys: &Keys, waiter: Waiter) -> Option<Latch> {
        self.latch_keys(keys, false, waiter)
    }

    /// As [`Keyspace::latch`], for a command that writes nothing.
    pub fn latch_to_read(self: &Arc<Self>, keys: &Keys, waiter: Waiter) -> Option<Latch> {
        self.latch_keys(keys, true, waiter)
    }

    fn latch_keys(self: &Arc<Self>, keys: &Keys, reads: bool, waiter: Waiter) -> Option<Latch> {
        let mut waiter = Some(self.await_open(waiter)?);
        self.with_names(keys, |names, now| {
            let held = match keys {
                Keys::None => Some(Held::Nothing),
                Keys::In(..) | Keys::Across(_) => {
                    self.latch_names(names, now, reads, &mut waiter)?
                }
                Keys::All => self.latch_all(&mut waiter),
            };
            Some(held.map(|held| Latch {
                keyspace: Arc::clone(self),
                held,
                reads,
                moment: match keys {
                    // Whoever had them before may have changed it.
                    Keys::All => self.names.now(),
                    _ => now.clone(),
                },
                ahead: None,
            }))
        })
    }

    /// As [`Keyspace::latch`], of names.
    pub(crate) fn latch_named(self: &Arc<Self>, names: &[&[u8]], waiter: Waiter) -> Option<Latch> {
        let mut waiter = Some(self.await_open(waiter)?);
        loop {
            let now = self.names.now();
            if let Some(held) = self.latch_names(names, &now, false, &mut waiter) {
                return held.map(|held| Latch {
                    keyspace: Arc::clone(self),
                    held,
                    reads: false,
                    moment: now,
                    ahead: None,
                });
            }
        }
    }

    /// After [`crate::Outcome::Busy`]: queues `waiter` behind what is in the way. `false`: nothing
    /// is any more, the waiter was dropped, try again now.
    pub fn wait(&self, keys: &Keys, waiter: Waiter) -> bool {
        self.wait_for(keys, false, waiter)
    }

    /// As [`Keyspace::wait`], after [`Keyspace::try_read`].
    pub fn wait_to_read(&self, keys: &Keys, waiter: Waiter) -> bool {
        self.wait_for(keys, true, waiter)
    }

    fn wait_for(&self, keys: &Keys, reads: bool, waiter: Waiter) -> bool {
        match keys {
            // They never run in phase 1.
            Keys::None | Keys::All => false,
            Keys::In(..) | Keys::Across(_) => {
                let mut waiter = Some(waiter);
                self.with_names(keys, |names, now| {
                    let mut shards = self.lock_for(names);
                    if shards.iter().any(|(_, shard)| shard.bar == Bar::Held) {
                        self.book.lock().barred.extend(waiter.take());
                        return Some(true);
                    }
                    if self.names.moved(now) {
                        return None;
                    }
                    let in_the_way = |holders: &Holders| holders.stop(reads);
                    Some(self.queue_behind_key(&mut shards, names, in_the_way, &mut waiter))
                })
            }
        }
    }

    /// `None`: names have changed. `Some(None)`: somebody has one of them, and tells the waiter.
    fn latch_names(
        &self,
        keys: &[&[u8]],
        now: &Moment,
        reads: bool,
        waiter: &mut Option<Waiter>,
    ) -> Option<Option<Held>> {
        let mut shards = self.lock_for(keys);
        if shards.iter().any(|(_, shard)| shard.bar != Bar::Open) {
            self.book.lock().barred.extend(waiter.take());
            return Some(None);
        }
        if self.names.moved(now) {
            return None;
        }
        let in_the_way = |holders: &Holders| holders.stop(reads) || !holders.waiters.is_empty();
        if self.queue_behind_key(&mut shards, keys, in_the_way, waiter) {
            return Some(None);
        }
        let mut held: SmallVec<[(u32, Key); 2]> = keys
            .iter()
            .map(|key| (self.shard_of(key), Key::from_slice(key)))
            .collect();
        held.sort();
        held.dedup();
        let together = reads && held.len() > 1;
        for (index, key) in &held {
            let shard = shard_mut(&mut shards, *index);
            match shard.latched.get_mut(key) {
                Some(holders) => holders.readers += 1,
                None => {
                    let holders = Holders {
                        readers: together.into(),
                        ..Holders::default()
                    };
                    shard.latched.insert(key.clone(), holders);
                }
            }
        }
        self.book.lock().latched += held.len();
        Some(Some(Held::Keys(held)))
    }

    /// `false`: nobody who is in the way has one of the keys.
    fn queue_behind_key(
        &self,
        shards: &mut Locked<'_>,
        keys: &[&[u8]],
        in_the_way: impl Fn(&Holders) -> bool,
        waiter: &mut Option<Waiter>,
    ) -> bool {
        for key in keys {
            let shard = shard_mut(shards, self.shard_of(key));
            let holders = shard.latched.get_mut(*key);
            if let Some(holders) = holders.filter(|holders| in_the_way(holders)) {
                holders.waiters.extend(waiter.take());
                return true;
            }
        }
        false
    }

    fn latch_all(&self, waiter: &mut Option<Waiter>) -> Option<Held> {
        let mut shards = self.lock_all();
        let held = shards[0].1.bar == Bar::Held;
        if held || shards.iter().any(|(_, shard)| !shard.latched.is_empty()) {
            self.queue_for_all(&mut shards, waiter);
            return None;
        }
        set_bar(&mut shards, Bar::Held);
        Some(Held::All)
    }

    fn queue_for_all(&self, shards: &mut Locked<'_>, waiter: &mut Option<Waiter>) {
        if shards[0].1.bar == Bar::Open {
            set_bar(shards, Bar::Wanted);
        }
        let mut book = self.book.lock();
        book.want_all.extend(waiter.take());
        book.ticks = 0;
    }

    fn release_keys(&self, keys: &[(u32, Key)]) {
        let mut told: Vec<Waiter> = Vec::new();
        for (index, key) in keys {
            let mut shard = self.shards[*index as usize].lock();
            match shard.latched.get_mut(key) {
                Some(holders) if holders.readers > 1 => holders.readers -= 1,
                _ => told.extend(
                    shard
                        .latched
                        .remove(key)
                        .into_iter()
                        .flat_map(|h| h.waiters),
                ),
            }
            if shard.latched.is_empty() && shard.latched.capacity() > LATCHES_KEPT {
                shard.latched.shrink_to_fit();
            }
        }
        {
            let mut book = self.book.lock();
            book.latched -= keys.len();
            if book.latched == 0 {
                told.append(&mut book.want_all);
            }
        }
        tell(told);
    }

    /// Opens the bar and tells everybody: those who still want all raise it again.
    fn release_all(&self) {
        let mut shards = self.lock_all();
        set_bar(&mut shards, Bar::Open);
        let mut book = self.book.lock();
        let mut told = std::mem::take(&mut book.want_all);
        told.append(&mut book.barred);
        drop(book);
        drop(shards);
        tell(told);
    }

    /// Lifts a bar that nobody claims; see the module.
    pub(crate) fn tick_bar(&self) {
        if self.book.lock().barred.is_empty() {
            return;
        }
        let mut shards = self.lock_all();
        let mut book = self.book.lock();
        if shards[0].1.bar != Bar::Wanted || !book.want_all.is_empty() || book.latched > 0 {
            return;
        }
        book.ticks += 1;
        if book.ticks < BAR_TICKS_MAX {
            return;
        }
        set_bar(&mut shards, Bar::Open);
        let told = std::mem::take(&mut book.barred);
        drop(book);
        drop(shards);
        tell(told);
    }
}

/// Table capacity for latched keys that an idle shard may keep.
const LATCHES_KEPT: usize = 64;

impl Drop for Latch {
    fn drop(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            ahead.end();
        }
        match &self.held {
            Held::Nothing => {}
            Held::Keys(keys) => self.keyspace.release_keys(keys),
            Held::All => self.keyspace.release_all(),
        }
    }
}

fn set_bar(shards: &mut Locked<'_>, bar: Bar) {
    for (_, shard) in shards {
        shard.bar = bar;
    }
}

/// REQUIRES: the shard is among the locked ones.
fn shard_mut<'s>(shards: &'s mut Locked<'_>, index: u32) -> &'s mut Shard {
    let at = shards
        .binary_search_by_key(&index, |(i, _)| *i)
        .expect("a command's shards are locked together");
    &mut shards[at].1
}

pub(crate) fn tell(waiters: Vec<Waiter>) {
    for waiter in waiters {
        waiter();
    }
}
