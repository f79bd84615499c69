//! How a command runs: in memory on a core, blocking on a handler, over a snapshot; and how what
//! it wrote is put into log and memory.

use crate::access::{Access, View};
use crate::buffer::Buffer;
use crate::keyspace::{shard_mut, stripe_of, Keyspace};
use crate::latch::{tell, Held, Latch, Locked};
use crate::log::{Place, Refusal};
use crate::shard::{Bar, Cached};
use crate::{record, EngineError, Keys, Outcome, Seq, Stop};
use std::sync::atomic::Ordering;

impl Keyspace {
    /// Phase 1: runs `f` at once, in memory, with its keys' shards locked. Never waits for I/O.
    /// What `f` wrote is applied as a whole when it returns `Ok`; call [`Keyspace::kick`] at the
    /// end of the turn, or nobody commits it.
    pub fn try_run<R>(
        &self,
        keys: &Keys,
        now_ms: u64,
        f: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Outcome<R> {
        let shards = match keys {
            Keys::None => return Outcome::Disk,
            Keys::Some(keys) => {
                let shards = self.lock_for(keys);
                if self.in_the_way(&shards, keys) {
                    return Outcome::Busy;
                }
                shards
            }
            Keys::All => {
                let shards = self.lock_all();
                let held = shards[0].1.bar == Bar::Held;
                if held || shards.iter().any(|(_, s)| !s.latched.is_empty()) {
                    return Outcome::Busy;
                }
                shards
            }
        };
        let all = matches!(keys, Keys::All);
        let mut access = Access::new(self, now_ms, View::Memory { shards, all });
        let reply = match f(&mut access) {
            Ok(reply) => reply,
            Err(Stop::Disk | Stop::Large) => return Outcome::Disk,
            Err(Stop::Error(error)) => return Outcome::Failed(error),
        };
        let (view, buffer, seen, epoch) = access.finish();
        let View::Memory { mut shards, all } = view else {
            return Outcome::Failed(EngineError::Misuse("phase 1 lost its shards"));
        };
        let seq = if buffer.is_empty() {
            seen
        } else {
            match self.apply(&mut shards, buffer, epoch) {
                Ok(seq) => seq,
                Err(Refusal::Full) => return Outcome::Full,
                Err(Refusal::Failed(error)) => return Outcome::Failed(error),
            }
        };
        if all {
            let told = self.all_was_served(&mut shards);
            drop(shards);
            tell(told);
        }
        Outcome::Done { reply, seq }
    }

    /// Phase 2: runs `f` on a handler, where reads may block, under a latch. With a latch of
    /// [`Keys::None`] this is [`Keyspace::scan`].
    ///
    /// # Errors
    /// What stopped `f`, or why its writes were refused.
    pub fn run<R>(
        &self,
        latch: &Latch,
        now_ms: u64,
        f: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Result<(R, Seq), EngineError> {
        if matches!(latch.held, Held::Nothing) {
            return Ok((self.scan(now_ms, f)?, 0));
        }
        loop {
            let mut access = Access::new(self, now_ms, View::Latched(&latch.held));
            let reply = f(&mut access).map_err(not_disk)?;
            let (_, buffer, seen, epoch) = access.finish();
            if buffer.is_empty() {
                return Ok((reply, seen));
            }
            let mut shards = match &latch.held {
                Held::Keys(keys) => self.lock_shards(keys.iter().map(|(shard, _)| *shard)),
                _ => self.lock_all(),
            };
            match self.apply(&mut shards, buffer, epoch) {
                Ok(seq) => {
                    drop(shards);
                    self.kick();
                    return Ok((reply, seq));
                }
                Err(Refusal::Failed(error)) => return Err(error),
                Err(Refusal::Full) => {
                    drop(shards);
                    self.kick();
                    self.log.sleep_for_room();
                }
            }
        }
    }

    /// Read-only work over the whole keyspace, on a handler: waits until everything written
    /// before is committed, then runs `f` over a snapshot. Nobody waits for it.
    ///
    /// # Errors
    /// What stopped `f`.
    pub fn scan<R>(
        &self,
        now_ms: u64,
        f: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Result<R, EngineError> {
        self.over_snapshot(now_ms, false, |mut access| f(&mut access).map_err(not_disk))
    }

    /// Calls `f` with an access to everything that was written before, once that is committed.
    fn over_snapshot<R>(
        &self,
        now_ms: u64,
        may_write: bool,
        f: impl FnOnce(Access<'_>) -> Result<R, EngineError>,
    ) -> Result<R, EngineError> {
        self.settle();
        let db = self.db()?;
        let snapshot = db.rocks.snapshot();
        let view = View::Snapshot {
            db: &db,
            snapshot: &snapshot,
            may_write,
        };
        f(Access::new(self, now_ms, view))
    }

    /// Runs a command that writes and whose reply is too large to be held, on a handler: `effect` as [`Keyspace::run`]
    /// does, and, once what it wrote is committed and the latch is free, `reply` over a snapshot of the state before.
    /// `reply` is given what `effect` returned; what it writes, nobody else sees.
    ///
    /// # Errors
    /// What stopped either, or why the writes were refused or failed.
    pub fn run_twice<E, R>(
        &self,
        latch: Latch,
        now_ms: u64,
        effect: &mut dyn FnMut(&mut Access) -> Result<E, Stop>,
        reply: &mut dyn FnMut(&mut Access, E) -> Result<R, Stop>,
    ) -> Result<R, EngineError> {
        // Nobody writes what is latched: the snapshot shows what `effect` will find.
        self.over_snapshot(now_ms, true, |mut access| {
            let (found, seq) = self.run(&latch, now_ms, effect)?;
            drop(latch);
            self.wait_commit(seq)?;
            reply(&mut access, found).map_err(not_disk)
        })
    }

    fn in_the_way(&self, shards: &Locked<'_>, keys: &[&[u8]]) -> bool {
        if shards.iter().any(|(_, shard)| shard.bar == Bar::Held) {
            return true;
        }
        // The usual case first: no key of these shards is latched.
        if shards.iter().all(|(_, shard)| shard.latched.is_empty()) {
            return false;
        }
        keys.iter().any(|key| {
            shards
                .iter()
                .any(|(_, shard)| shard.latched.contains_key(*key))
        })
    }

    /// Puts a command's writes into log and memory. REQUIRES: `shards` are all it wrote to.
    fn apply(&self, shards: &mut Locked<'_>, buffer: Buffer, epoch: u64) -> Result<Seq, Refusal> {
        let collections = self.collections.load(Ordering::Relaxed);
        let stripes = stripes_of(&buffer);
        let place = self.log.append(&buffer, stripes, collections, epoch)?;
        if buffer.cleared() {
            let wiped: Vec<_> = shards.iter_mut().map(|(_, shard)| shard.wipe()).collect();
            // Millions of values to free: the shards are locked here, and nobody waits for it.
            self.shared.keepers.submit(Box::new(move || drop(wiped)));
        }
        self.pin_records(&buffer, place);
        for (index, key) in buffer.extra.iter().flat_map(|extra| &extra.touched) {
            if let Some(shard) = shard_mut(shards, *index) {
                shard.touch(key);
            }
        }
        let decided = self.log.decided();
        for write in buffer.objects {
            if let Some(shard) = shard_mut(shards, write.shard) {
                let cached = Cached {
                    seq: place.seq,
                    entry: write.entry,
                };
                if shard.write(write.key, cached, decided) {
                    self.note_pins(write.shard as usize, shard, decided);
                }
            }
        }
        Ok(place.seq)
    }

    fn pin_records(&self, buffer: &Buffer, place: Place) {
        let records = buffer.extra.iter().flat_map(|extra| &extra.records);
        for (raw, value) in records {
            let mut stripe = self.stripe(record::id_of(raw)).lock();
            // The stripe is not locked since the append, as a shard is: the batch may be in the
            // database by now. A pin set after its release would stay, and later hide newer data.
            if !self.log.batch_is_decided(place.batch) {
                stripe.pin(place.batch, raw, place.seq, value.clone());
            }
        }
    }
}

fn stripes_of(buffer: &Buffer) -> u64 {
    let records = buffer.extra.iter().flat_map(|extra| extra.records.keys());
    records.fold(0, |set, raw| set | 1 << stripe_of(record::id_of(raw)))
}

fn not_disk(stop: Stop) -> EngineError {
    match stop {
        Stop::Error(error) => error,
        Stop::Large => EngineError::Large,
        Stop::Disk => EngineError::Misuse("a command asked for phase 2 while in phase 2"),
    }
}
