//! What a command sees: the keyspace through its declared keys, with its own writes on top.

mod ahead;
mod databases;
mod leave;
mod objects;
mod ranges;
mod reads;
pub(crate) mod strings;
pub(crate) mod watch;

use crate::files::rocks::Db;
use crate::keyspace::latch::{Held, Locked};
use crate::keyspace::{ahead::Ahead, Keyspace};
use crate::log::buffer::Buffer;
use crate::memory::shard::Key;
use crate::meter::{GoOn, Meter};
use crate::naming::{self, Moment, Slot};
use crate::record::{self, NAME_BYTES_MAX};
use crate::work::Work;
use crate::{Database, EngineError, Entry, Header, Kind, Lookups, Object, Seq, Stop, Table};
use bytes::Bytes;
use rocksdb::Snapshot;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

/// What a record that is written takes besides its bytes, on its way from the buffer into the
/// database: measured, 350 to 450 bytes for each of a million members of a sorted set, of which
/// each is two records.
pub(crate) const RECORD_WORK_BYTES: usize = 200;

/// Where an [`Access`] reads.
pub(crate) enum View<'a> {
    /// Phase 1: in memory, the shards stay locked.
    Memory { shards: Locked<'a> },
    /// Phase 2: reads may block, the keys are latched, and others may have read some.
    Latched(&'a Held, Option<&'a Ahead>),
    /// Over committed data. Writes are refused, or go no further than this access.
    Snapshot {
        db: &'a Db,
        snapshot: &'a Snapshot<'a>,
        may_write: bool,
    },
}

/// A command's way to the data. Reads see the command's own writes; writes are kept back and
/// applied together when the command returns `Ok`. Every method can stop the command with
/// [`Stop::Disk`] in phase 1 and with [`Stop::Error`] in both; pass it on with `?`.
pub struct Access<'a> {
    pub(crate) keyspace: &'a Keyspace,
    now_ms: u64,
    /// Which slots databases have for this command.
    moment: Moment,
    database: Database,
    /// That of the database.
    slot: Slot,
    pub(crate) view: View<'a>,
    pub(crate) buffer: Buffer,
    /// Whose collection an id is: a change of its records is a change of that key.
    owners: SmallVec<[(u64, u32, Key); 1]>,
    pub(crate) seen: Seq,
    pub(crate) epoch: u64,
    /// What [`Access::get`] and [`Access::with`] were asked for so far.
    pub lookups: Lookups,
    /// Of phase 1: whether memory knew what it was asked for. It counts when the command ends
    /// there.
    pub(crate) in_memory: Lookups,
    /// Objects that it walked over in key order so far, and their bytes.
    pub(crate) walked: (usize, usize),
    /// Bytes of the values read so far.
    held: usize,
    held_max: usize,
    /// What it works with: see [`Access::work`].
    work: Work,
    pub(crate) meter: Meter,
}

impl<'a> Access<'a> {
    pub(crate) fn new(
        keyspace: &'a Keyspace,
        now_ms: u64,
        view: View<'a>,
        meter: Meter,
        moment: Moment,
    ) -> Access<'a> {
        Access {
            keyspace,
            now_ms,
            // Everything that it sees is as the last change of names has made it.
            seen: keyspace.must_wait_for(moment.seq),
            database: Database::FIRST,
            slot: moment.slot(Database::FIRST),
            moment,
            view,
            buffer: Buffer::default(),
            owners: SmallVec::new(),
            epoch: keyspace.log.epoch(),
            lookups: Lookups::default(),
            in_memory: Lookups::default(),
            walked: (0, 0),
            held: 0,
            held_max: usize::MAX,
            work: Work::default(),
            meter,
        }
    }

    pub(crate) fn finish(mut self) -> (View<'a>, Buffer, Seq, u64) {
        self.buffer.held = self.work.kept();
        (self.view, self.buffer, self.seen, self.epoch)
    }

    /// From the second value on, a read that brings the bytes of all values read beyond `bytes`
    /// stops the command with
    /// [`Stop::Large`]: a reply made of them would have to be held in memory as a whole.
    pub fn hold_at_most(&mut self, bytes: usize) {
        self.held_max = bytes;
    }

    /// Asks `go_on` every few hundred steps, which may have the command wait; `false` ends it with
    /// [`EngineError::Abandoned`].
    pub fn go_on_if(&mut self, go_on: Option<GoOn>) {
        self.meter.ask(go_on);
    }

    /// Counts work that is neither a key nor a record: a step is what takes about a microsecond.
    /// Where the command runs decides how many it may take: see [`crate::Site`].
    ///
    /// # Errors
    /// It has to go on elsewhere, or nobody waits for it any more.
    pub fn steps(&mut self, steps: u64) -> Result<(), Stop> {
        self.meter.count(steps)
    }

    /// Stops a command that may not take so many steps more where it runs, before it begins with
    /// them.
    ///
    /// # Errors
    /// It has to run elsewhere.
    pub fn foresee(&self, steps: u64) -> Result<(), Stop> {
        self.meter.foresee(steps)
    }

    /// Steps taken so far.
    #[must_use]
    pub fn steps_taken(&self) -> u64 {
        self.meter.steps()
    }

    /// Counts bytes that go into the reply: those of a value that was read, or of one that is given
    /// again.
    ///
    /// # Errors
    /// [`Stop::Large`]: see [`Access::hold_at_most`].
    pub fn hold(&mut self, bytes: usize) -> Result<(), Stop> {
        let first = self.held == 0;
        self.held = self.held.saturating_add(bytes);
        if !first && self.held > self.held_max {
            return Err(Stop::Large);
        }
        Ok(())
    }

    /// As [`Access::hold`], for what is read in parts: these need not be held together, so none is
    /// excepted.
    ///
    /// # Errors
    /// [`Stop::Large`].
    pub fn hold_in_parts(&mut self, bytes: u64) -> Result<(), Stop> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.held = self.held.saturating_add(bytes);
        match self.held > self.held_max {
            true => Err(Stop::Large),
            false => Ok(()),
        }
    }

    /// Counts memory that the command keeps until its end beside its request and its reply: what it
    /// writes (which is counted here), and what it gathers to sort or to combine.
    ///
    /// # Errors
    /// [`EngineError::Work`]: it may not have that much
    /// ([`crate::KeyspaceOptions::work_bytes_max`]);
    /// [`EngineError::Memory`]: its tenant may not ([`crate::KeyspaceOptions::allowance`]).
    pub fn work(&mut self, bytes: usize) -> Result<(), Stop> {
        self.work.count(bytes, &self.keyspace.options)
    }

    /// Takes back what [`Access::work`] counted: the command keeps it no longer, or it will be
    /// counted again.
    pub fn work_done(&mut self, bytes: usize) {
        self.work.release(bytes);
    }

    /// The time this command runs at, ms since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Makes a key hold `entry`, whatever it held. Records under the id of what it held before go,
    /// unless `entry` has that same id. A string that is too long for one record is cut in pieces.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn put(&mut self, key: &[u8], entry: Entry) -> Result<(), Stop> {
        check_length(key)?;
        self.put_named(&self.name(key), entry)
    }

    fn put_named(&mut self, name: &[u8], entry: Entry) -> Result<(), Stop> {
        self.meter.count(1)?;
        let shard = self.writable(name)?;
        let entry = Entry {
            object: self.cut(entry.object)?,
            ..entry
        };
        self.work(entry.value_bytes())?;
        let old = self.previous(shard, name)?;
        self.leave(name, old.as_ref(), Some(&entry))?;
        if let Some(at) = entry.expire_at_ms {
            self.keyspace.expiring.store(true, Ordering::Relaxed);
            let index = &mut self.buffer.extra().index;
            index.insert(record::expiry_key(at, name), true);
        }
        if naming::marked(name) {
            self.keyspace.named.store(true, Ordering::Release);
        }
        self.own(shard, name, &entry);
        self.buffer.set(shard, name, Some(entry));
        Ok(())
    }

    /// Removes a key; `true` if it was there and not expired.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, Stop> {
        self.delete_named(&self.name(key))
    }

    fn delete_named(&mut self, name: &[u8]) -> Result<bool, Stop> {
        let shard = self.writable(name)?;
        let Some(old) = self.load(name)? else {
            return Ok(false);
        };
        self.leave(name, Some(&old), None)?;
        let live = old.live(self.now_ms);
        match live {
            true => self.buffer.set(shard, name, None),
            false => self.buffer.sweep(shard, name),
        }
        Ok(live)
    }

    /// Moves what `from` holds to `to`, which loses what it held; a collection's records stay
    /// where they are. `false`: `from` holds nothing.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<bool, Stop> {
        let Some(entry) = self.get(from)? else {
            return Ok(false);
        };
        if from == to {
            return Ok(true);
        }
        let from = self.name(from);
        let shard = self.writable(&from)?;
        if let Some(at) = entry.expire_at_ms {
            self.buffer
                .extra()
                .index
                .insert(record::expiry_key(at, &from), false);
        }
        self.put(to, entry)?;
        self.buffer.set(shard, &from, None);
        Ok(true)
    }

    /// A new, empty collection; the caller puts it under a key.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn new_collection(&mut self, kind: Kind) -> Result<Header, Stop> {
        let id = self.new_id();
        Ok(Header { kind, id, len: 0 })
    }

    /// An id for records of a key's own.
    pub(crate) fn new_id(&mut self) -> u64 {
        // Said before anybody can see the key: a blind overwrite that comes later looks.
        self.keyspace.collections.store(true, Ordering::Relaxed);
        let number = self.keyspace.next_id.fetch_add(1, Ordering::Relaxed);
        self.buffer.extra().new_id = Some(number);
        naming::id(self.slot, number)
    }

    /// One record of a collection.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn record(&mut self, table: Table, id: u64, name: &[u8]) -> Result<Option<Bytes>, Stop> {
        self.meter.count(1)?;
        let raw = record::record_key(table, id, name);
        let value = self.stored(id, &raw, 0..usize::MAX)?;
        self.hold(value.as_ref().map_or(0, Bytes::len))?;
        Ok(value)
    }

    /// Writes one record of a collection. REQUIRES: the collection was read or made by this
    /// command; its length is kept by the caller, in the header.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn put_record(
        &mut self,
        table: Table,
        id: u64,
        name: &[u8],
        value: Bytes,
    ) -> Result<(), Stop> {
        self.set_record(table, id, name, Some(value))
    }

    /// Removes one record of a collection, if it is there. REQUIRES: as [`Access::put_record`].
    ///
    /// # Errors
    /// See [`Access`].
    pub fn delete_record(&mut self, table: Table, id: u64, name: &[u8]) -> Result<(), Stop> {
        self.set_record(table, id, name, None)
    }

    /// Removes an object whose time has come, or only its entry in the expiry index if the
    /// object is gone, lives, or has another expiry by now. `true`: removed.
    pub(crate) fn expire(&mut self, name: &[u8], index_ms: u64) -> Result<bool, Stop> {
        let due = match self.load(name)? {
            Some(entry) => entry.expire_at_ms == Some(index_ms) && !entry.live(self.now_ms),
            None => false,
        };
        if due {
            self.delete_named(name)?;
        }
        let index = &mut self.buffer.extra().index;
        index.insert(record::expiry_key(index_ms, name), false);
        Ok(due)
    }

    fn set_record(
        &mut self,
        table: Table,
        id: u64,
        name: &[u8],
        value: Option<Bytes>,
    ) -> Result<(), Stop> {
        self.check_writable()?;
        self.meter.count(1)?;
        if let Some(value) = &value {
            // The order of scores has the member, too.
            if table != Table::Score {
                check_length(name)?;
            }
            if value.len() as u64 >= self.keyspace.options.large_value_bytes {
                self.keyspace.large.store(true, Ordering::Relaxed);
            }
        }
        let raw = record::record_key(table, id, name);
        let work = |value: &Option<Bytes>| {
            raw.len() + value.as_ref().map_or(0, Bytes::len) + RECORD_WORK_BYTES
        };
        self.work(work(&value))?;
        let extra = self.buffer.extra();
        if let Some(replaced) = extra.records.insert(raw.as_slice().into(), value) {
            self.work.release(work(&replaced));
        }
        if let Some(at) = self.owners.iter().position(|(owned, ..)| *owned == id) {
            let (_, shard, key) = self.owners.swap_remove(at);
            extra.touched.push((shard, key));
        }
        Ok(())
    }

    /// The shard of a name that this command may write.
    fn writable(&self, name: &[u8]) -> Result<u32, Stop> {
        let index = self.keyspace.shard_of(name);
        let declared = match &self.view {
            View::Memory { shards } => shards.iter().any(|(i, _)| *i == index),
            View::Latched(held, _) => held.covers(index, name),
            View::Snapshot { .. } => {
                self.check_writable()?;
                true
            }
        };
        if declared {
            Ok(index)
        } else {
            Err(undeclared())
        }
    }

    fn check_writable(&self) -> Result<(), Stop> {
        match self.view {
            View::Snapshot {
                may_write: false, ..
            } => Err(misuse("a scan cannot write")),
            _ => Ok(()),
        }
    }

    pub(crate) fn own(&mut self, shard: u32, name: &[u8], entry: &Entry) {
        if let Object::Collection(header) = &entry.object {
            if self.owners.iter().all(|(id, ..)| *id != header.id) {
                self.owners.push((header.id, shard, Key::from_slice(name)));
            }
        }
    }

    /// Says that the reply shows that something was written, and not what: it waits for all that
    /// was written so far.
    pub fn show_all(&mut self) {
        let last = self.keyspace.log.last_seq();
        self.see(last);
    }

    /// Remembers that the reply shows what `seq` wrote.
    pub(crate) fn see(&mut self, seq: Seq) {
        self.seen = self.seen.max(self.keyspace.must_wait_for(seq));
    }
}

/// A long name is in the index of its file, too, and in the block of its neighbours: who looks for
/// one of those would read it. What is there is still found; only new ones are refused.
fn check_length(name: &[u8]) -> Result<(), Stop> {
    match name.len() > NAME_BYTES_MAX {
        false => Ok(()),
        true => Err(Stop::Error(EngineError::Long {
            bytes: name.len(),
            bytes_max: NAME_BYTES_MAX,
        })),
    }
}

pub(crate) fn misuse(rule: &'static str) -> Stop {
    Stop::Error(EngineError::Misuse(rule))
}

pub(crate) fn undeclared() -> Stop {
    misuse("a command touched a key that it did not declare")
}
