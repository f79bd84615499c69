//! How a command runs: in memory on a core, blocking on a handler, over a snapshot; and how what
//! it wrote is put into log and memory.

use crate::access::{Access, View};
use crate::files::rocks::Db;
use crate::keyspace::latch::{Held, Latch, Locked};
use crate::keyspace::{shard_mut, stripe_of, Keyspace};
use crate::log::batch::Batch;
use crate::log::buffer::Buffer;
use crate::log::{Position, Refusal};
use crate::memory::shard::Bar;
use crate::meter::{Meter, Site};
use crate::naming::{self, Moment};
use crate::{record, EngineError, Keys, Outcome, Seq, Stop};
use rocksdb::{ReadOptions, Snapshot};
use std::sync::atomic::Ordering;

/// Keys and records that are put into log and memory while the keys' shards are locked. More are
/// put there in pieces, while the keys are latched.
const AT_ONCE: usize = 256;
/// Of a command that said that it only reads.
const WROTE: EngineError = EngineError::Misuse("a command wrote that had its keys to read");

impl Keyspace {
    /// Phase 1: runs `f` at once, in memory, with its keys' shards locked. Never waits for I/O, and
    /// takes no more than [`crate::TURN_STEPS`]. What `f` wrote is applied as a whole when it
    /// returns `Ok`; call [`Keyspace::kick`] at the end of the turn, or nobody commits it.
    pub fn try_run<R>(
        &self,
        keys: &Keys,
        now_ms: u64,
        f: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Outcome<R> {
        self.try_keys(keys, false, now_ms, f)
    }

    /// As [`Keyspace::try_run`], of a command that writes nothing: it passes those who read its
    /// keys from the disk.
    pub fn try_read<R>(
        &self,
        keys: &Keys,
        now_ms: u64,
        f: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Outcome<R> {
        self.try_keys(keys, true, now_ms, f)
    }

    fn try_keys<R>(
        &self,
        keys: &Keys,
        reads: bool,
        now_ms: u64,
        f: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Outcome<R> {
        match keys {
            Keys::None | Keys::All => Outcome::Disk,
            Keys::In(..) | Keys::Across(_) => self.with_names(keys, |names, now| {
                let shards = self.lock_for(names);
                if in_the_way(&shards, names, reads) {
                    return Some(Outcome::Busy);
                }
                (!self.names.moved(now)).then(|| self.in_memory(shards, now, reads, now_ms, f))
            }),
        }
    }

    /// As [`Keyspace::try_run`], of names.
    pub(crate) fn try_named<R>(
        &self,
        names: &[&[u8]],
        now_ms: u64,
        f: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Outcome<R> {
        let shards = self.lock_for(names);
        match in_the_way(&shards, names, false) {
            true => Outcome::Busy,
            false => self.in_memory(shards, &self.names.now(), false, now_ms, f),
        }
    }

    /// REQUIRES: the shards are those of the command's keys, and no latch is in its way.
    fn in_memory<'k, R>(
        &'k self,
        shards: Locked<'k>,
        now: &Moment,
        reads: bool,
        now_ms: u64,
        f: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Outcome<R> {
        let view = View::Memory { shards };
        let meter = Meter::new(Site::Turn);
        let mut access = Access::new(self, now_ms, view, meter, now.clone());
        let reply = match f(&mut access) {
            Ok(reply) => reply,
            Err(Stop::Disk | Stop::Large) => return Outcome::Disk,
            Err(Stop::Error(error)) => return Outcome::Failed(error),
        };
        let lookups = access.in_memory;
        let (view, buffer, seen, epoch) = access.finish();
        let View::Memory { mut shards } = view else {
            return Outcome::Failed(EngineError::Misuse("phase 1 lost its shards"));
        };
        // Only their sum over all shards means anything.
        if let Some((_, shard)) = shards.first_mut() {
            shard.count(lookups);
        }
        if buffer.is_empty() {
            return Outcome::Done { reply, seq: seen };
        }
        if reads {
            return Outcome::Failed(WROTE);
        }
        match self.apply(&mut shards, buffer, epoch) {
            Ok(seq) => Outcome::Done { reply, seq },
            Err(Refusal::Full) => Outcome::Full,
            Err(Refusal::Failed(error)) => Outcome::Failed(error),
        }
    }

    /// Phase 2: runs `f` where reads may block, under a latch; `site` says how long it may take.
    /// With a latch of [`Keys::None`] this is [`Keyspace::scan`].
    ///
    /// # Errors
    /// What stopped `f`, or why its writes were refused; [`EngineError::Full`]: there is no room in
    /// the log, see [`Keyspace::wait_room`].
    pub fn run<R>(
        &self,
        latch: &Latch,
        site: Site,
        now_ms: u64,
        f: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Result<(R, Seq), EngineError> {
        if matches!(latch.held, Held::Nothing) {
            return Ok((self.scan(self.last_seq(), site, now_ms, f)?, 0));
        }
        if self.names.moved(&latch.moment) {
            return Err(self.log.lost());
        }
        let view = View::Latched(&latch.held, latch.ahead.as_deref());
        let (meter, moment) = (Meter::new(site), latch.moment.clone());
        let mut access = Access::new(self, now_ms, view, meter, moment);
        let reply = f(&mut access).map_err(not_disk)?;
        let (_, buffer, seen, epoch) = access.finish();
        if buffer.is_empty() {
            return Ok((reply, seen));
        }
        if latch.reads {
            return Err(WROTE);
        }
        let alone = buffer.cleared() || buffer.naming().is_some();
        let applied = if buffer.len() > AT_ONCE || alone {
            self.apply_in_pieces(buffer, epoch)
        } else {
            let mut shards = match &latch.held {
                Held::Keys(keys) => self.lock_shards(keys.iter().map(|(shard, _)| *shard)),
                _ => self.lock_all(),
            };
            self.apply(&mut shards, buffer, epoch)
        };
        self.kick();
        match applied {
            Ok(seq) => Ok((reply, seq)),
            Err(Refusal::Failed(error)) => Err(error),
            Err(Refusal::Full) => Err(EngineError::Full),
        }
    }

    /// Read-only work over the whole keyspace: runs `f` over a snapshot that shows at least what
    /// was written up to `from`, for which it waits. Nobody waits for it.
    ///
    /// # Errors
    /// What stopped `f`.
    pub fn scan<R>(
        &self,
        from: Seq,
        site: Site,
        now_ms: u64,
        f: &mut dyn FnMut(&mut Access) -> Result<R, Stop>,
    ) -> Result<R, EngineError> {
        self.over_snapshot(from, false, site, now_ms, |mut access| {
            f(&mut access).map_err(not_disk)
        })
    }

    /// Calls `f` with an access to everything that was written up to `from`, once that is
    /// committed.
    fn over_snapshot<R>(
        &self,
        from: Seq,
        may_write: bool,
        site: Site,
        now_ms: u64,
        f: impl FnOnce(Access<'_>) -> Result<R, EngineError>,
    ) -> Result<R, EngineError> {
        self.wait_decided(from);
        let db = self.db()?;
        let snapshot = db.rocks.snapshot();
        let moment = self.moment_of(&db, &snapshot)?;
        let view = View::Snapshot {
            db: &db,
            snapshot: &snapshot,
            may_write,
        };
        f(Access::new(self, now_ms, view, Meter::new(site), moment))
    }

    /// What names there are in a snapshot.
    fn moment_of(&self, db: &Db, snapshot: &Snapshot) -> Result<Moment, EngineError> {
        // Said before it comes to the database: as long as it is not, nothing has changed.
        if !self.named.load(Ordering::Acquire) {
            return Ok(Moment::default());
        }
        let mut options = ReadOptions::default();
        options.set_snapshot(snapshot);
        let found = naming::read(&db.rocks, &options);
        let found = found.map_err(|message| self.read_error(message))?;
        Ok(found.map_or_else(Moment::default, Moment::of))
    }

    /// Runs a command that writes and whose reply is too large to be held: `effect` as
    /// [`Keyspace::run`] does, and, once what it wrote is committed and the latch is free, `reply`
    /// over a snapshot of the state before. `reply` is given what `effect` returned; what it
    /// writes, nobody else sees. `committed` waits for a commit, and says whether anybody still
    /// waits for the reply.
    ///
    /// # Errors
    /// What stopped either, or why the writes were refused or failed.
    pub fn run_twice<E, R>(
        &self,
        latch: Latch,
        now_ms: u64,
        effect: &mut dyn FnMut(&mut Access) -> Result<E, Stop>,
        committed: &mut dyn FnMut(Seq) -> bool,
        reply: &mut dyn FnMut(&mut Access, E) -> Result<R, Stop>,
    ) -> Result<R, EngineError> {
        // Nobody writes what is latched: the snapshot shows what `effect` will find.
        self.over_snapshot(self.last_seq(), true, Site::Apart, now_ms, |mut access| {
            let (found, seq) = self.run(&latch, Site::Apart, now_ms, effect)?;
            drop(latch);
            if !committed(seq) {
                return Err(EngineError::Abandoned);
            }
            if let Some(error) = self.commit_error(seq) {
                return Err(error);
            }
            reply(&mut access, found).map_err(not_disk)
        })
    }

    /// Puts a command's writes into log and memory. REQUIRES: `shards` are all it wrote to.
    fn apply(&self, shards: &mut Locked<'_>, buffer: Buffer, epoch: u64) -> Result<Seq, Refusal> {
        let stripes = stripes_of(&buffer);
        let note = self.to_note();
        let at = self.log.append(&buffer, None, stripes, note, epoch)?;
        for (raw, value) in buffer.extra.iter().flat_map(|extra| &extra.records) {
            self.pin_record(raw, value.clone(), at, epoch);
        }
        for (index, key) in buffer.extra.iter().flat_map(|extra| &extra.touched) {
            if let Some(shard) = shard_mut(shards, *index) {
                shard.touch(key);
            }
        }
        let decided = self.log.decided();
        for write in buffer.objects {
            if let Some(shard) = shard_mut(shards, write.shard) {
                let index = write.shard as usize;
                if write.apply(shard, at.seq, decided) {
                    self.note_pins(index, shard, decided);
                }
            }
        }
        Ok(at.seq)
    }

    /// The same for a command that wrote much. REQUIRES: its keys are latched, so that nobody looks
    /// at them before memory shows what was written; everybody else gets at the shards in between.
    ///
    /// A failure of the log forgets what memory has of undecided writes, shard by shard, after it
    /// has begun a new epoch: what is put there later must not be, so each piece looks at the epoch
    /// while it holds the lock.
    fn apply_in_pieces(&self, buffer: Buffer, epoch: u64) -> Result<Seq, Refusal> {
        let stripes = stripes_of(&buffer);
        let prepared = Some(Batch::prepared(&buffer));
        let note = self.to_note();
        let at = self.log.append(&buffer, prepared, stripes, note, epoch)?;
        if let Some(renaming) = buffer.extra.as_ref().and_then(|e| e.renaming.as_ref()) {
            self.rename(renaming, at.seq);
        }
        if buffer.cleared() {
            for shard in &self.shards {
                let wiped = shard.lock().wipe();
                drop(wiped);
            }
        }
        let (objects, extra) = (buffer.objects, buffer.extra.unwrap_or_default());
        for (number, (raw, value)) in (1..).zip(extra.records) {
            self.pin_record(&raw, value, at, epoch);
            step_after(number);
        }
        for (index, key) in extra.touched {
            self.shards[index as usize].lock().touch(&key);
        }
        for (number, write) in (1..).zip(objects) {
            let index = write.shard as usize;
            let mut shard = self.shards[index].lock();
            if self.log.epoch() == epoch {
                let decided = self.log.decided();
                if write.apply(&mut shard, at.seq, decided) {
                    self.note_pins(index, &mut shard, decided);
                }
            }
            drop(shard);
            step_after(number);
        }
        Ok(at.seq)
    }

    fn pin_record(&self, raw: &[u8], value: Option<bytes::Bytes>, at: Position, epoch: u64) {
        let mut stripe = self.stripe(record::id_of(raw)).lock();
        // The stripe is not locked since the append, as a shard is: the batch may be in the
        // database by now, or have failed. A pin set after its release would stay, and later hide
        // newer data.
        if !self.log.batch_is_decided(at.batch) && self.log.epoch() == epoch {
            stripe.pin(at.batch, raw, at.seq, value);
        }
    }
}

/// Whether somebody has one of the keys whom this must wait for.
fn in_the_way(shards: &Locked<'_>, keys: &[&[u8]], reads: bool) -> bool {
    if shards.iter().any(|(_, shard)| shard.bar == Bar::Held) {
        return true;
    }
    // The usual case first: no key of these shards is latched.
    if shards.iter().all(|(_, shard)| shard.latched.is_empty()) {
        return false;
    }
    let mut holders = keys
        .iter()
        .flat_map(|key| shards.iter().map(|(_, shard)| shard.latched.get(*key)));
    holders.any(|holders| holders.is_some_and(|holders| holders.stop(reads)))
}

/// Between two pieces of what may be long.
fn step_after(number: usize) {
    if number % AT_ONCE == 0 {
        threads::turns::step();
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
