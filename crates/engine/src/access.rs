//! What a command sees: the keyspace through its declared keys, with its own writes on top.

use crate::buffer::Buffer;
use crate::keyspace::Keyspace;
use crate::latch::{Held, Locked};
use crate::ranges::STRIDE;
use crate::record;
use crate::rocks::Db;
use crate::shard::Key;
use crate::{EngineError, Entry, Header, Kind, Object, Seq, Stop, Table};
use bytes::Bytes;
use rocksdb::Snapshot;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

/// What a record that is written takes besides its bytes, on its way from the buffer into the database: measured, 350
/// to 450 bytes for each of a million members of a sorted set, of which each is two records.
pub(crate) const RECORD_WORK_BYTES: usize = 200;

/// Steps that a command may take on a core: about a millisecond.
const CORE_STEPS_MAX: u64 = 1_024;

/// Where an [`Access`] reads.
pub(crate) enum View<'a> {
    /// Phase 1: in memory, the shards stay locked.
    Memory {
        shards: Locked<'a>,
        /// All of them: whole-keyspace work may clear.
        all: bool,
    },
    /// Phase 2: reads may block, the keys are latched.
    Latched(&'a Held),
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
    pub(crate) view: View<'a>,
    pub(crate) buffer: Buffer,
    /// Whose collection an id is: a change of its records is a change of that key.
    owners: SmallVec<[(u64, u32, Key); 1]>,
    pub(crate) seen: Seq,
    pub(crate) epoch: u64,
    /// What [`Access::get`] and [`Access::with`] were asked for so far.
    pub lookups: Lookups,
    /// Bytes of the values read so far.
    held: usize,
    held_max: usize,
    /// Bytes that it works with: see [`Access::work`].
    worked: u64,
    /// Work done so far: see [`Access::steps`].
    steps: u64,
    /// Asked before the command goes on: see [`Access::go_on_if`].
    go_on: Option<GoOn>,
}

/// Says whether anybody still waits for a command, perhaps after a wait.
pub type GoOn = Box<dyn FnMut() -> bool + Send>;

/// Keys that a command looked up, by what came of it; expired ones are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// Keys that were there.
    pub found: u32,
    /// Keys that were not.
    pub missed: u32,
}

impl Lookups {
    pub(crate) fn count(&mut self, found: bool) {
        self.found += u32::from(found);
        self.missed += u32::from(!found);
    }
}

impl<'a> Access<'a> {
    pub(crate) fn new(keyspace: &'a Keyspace, now_ms: u64, view: View<'a>) -> Access<'a> {
        Access {
            keyspace,
            now_ms,
            view,
            buffer: Buffer::default(),
            owners: SmallVec::new(),
            seen: 0,
            epoch: keyspace.log.epoch(),
            lookups: Lookups::default(),
            held: 0,
            held_max: usize::MAX,
            worked: 0,
            steps: 0,
            go_on: None,
        }
    }

    pub(crate) fn finish(self) -> (View<'a>, Buffer, Seq, u64) {
        (self.view, self.buffer, self.seen, self.epoch)
    }

    /// From the second value on, a read that brings the bytes of all values read beyond `bytes` stops the command with
    /// [`Stop::Large`]: a reply made of them would have to be held in memory as a whole.
    pub fn hold_at_most(&mut self, bytes: usize) {
        self.held_max = bytes;
    }

    /// Asks `go_on` at each read, which may have the command wait; `false` ends it with [`EngineError::Abandoned`].
    pub fn go_on_if(&mut self, go_on: Option<GoOn>) {
        self.go_on = go_on;
    }

    /// Counts bytes that go into the reply: those of a value that was read, or of one that is given again.
    ///
    /// # Errors
    /// [`Stop::Large`]: see [`Access::hold_at_most`].
    pub fn hold(&mut self, bytes: usize) -> Result<(), Stop> {
        self.ask_on()?;
        let first = self.held == 0;
        self.held = self.held.saturating_add(bytes);
        if !first && self.held > self.held_max {
            return Err(Stop::Large);
        }
        Ok(())
    }

    /// As [`Access::hold`], for what is read in parts: these need not be held together, so none is excepted.
    ///
    /// # Errors
    /// [`Stop::Large`].
    pub fn hold_in_parts(&mut self, bytes: u64) -> Result<(), Stop> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.held = self.held.saturating_add(bytes);
        match self.held > self.held_max {
            true => Err(Stop::Large),
            false => self.ask_on(),
        }
    }

    fn ask_on(&mut self) -> Result<(), Stop> {
        match self.go_on.as_mut().is_none_or(|go_on| go_on()) {
            true => Ok(()),
            false => Err(EngineError::Abandoned.into()),
        }
    }

    /// Counts work that is not in the number of keys and records: a step is what takes about a microsecond, such as a
    /// KiB of a string that is looked through or copied. On a core too many steps stop the command; elsewhere it lets
    /// others have the processor every few hundred.
    ///
    /// # Errors
    /// [`Stop::Disk`] in phase 1, or nobody waits for the command any more.
    pub fn steps(&mut self, steps: u64) -> Result<(), Stop> {
        let before = self.steps;
        self.steps = before.saturating_add(steps);
        if let View::Memory { .. } = self.view {
            return match self.steps > CORE_STEPS_MAX {
                true => Err(Stop::Disk),
                false => Ok(()),
            };
        }
        let stride = u64::from(STRIDE);
        if before / stride != self.steps / stride {
            threads::turns::step();
            self.ask_on()?;
        }
        Ok(())
    }

    /// Stops a command that will not get through so many steps more where it runs, before it begins with them.
    ///
    /// # Errors
    /// As [`Access::steps`].
    pub fn foresee(&self, steps: u64) -> Result<(), Stop> {
        let on_core = matches!(self.view, View::Memory { .. });
        match on_core && self.steps.saturating_add(steps) > CORE_STEPS_MAX {
            true => Err(Stop::Disk),
            false => Ok(()),
        }
    }

    /// Counts memory that the command keeps until its end beside its request and its reply: what it writes (which is
    /// counted here), and what it gathers to sort or to combine.
    ///
    /// # Errors
    /// [`EngineError::Work`]: it may not have that much ([`crate::KeyspaceOptions::work_bytes_max`]).
    pub fn work(&mut self, bytes: usize) -> Result<(), Stop> {
        self.affords(bytes)?;
        self.worked += bytes as u64;
        Ok(())
    }

    /// Whether the command may work with so many bytes more, which will be counted when they are written.
    ///
    /// # Errors
    /// As [`Access::work`].
    pub fn affords(&self, bytes: usize) -> Result<(), Stop> {
        let bytes_max = self.keyspace.options.work_bytes_max;
        match self.worked.saturating_add(bytes as u64) > bytes_max {
            true => Err(EngineError::Work { bytes_max }.into()),
            false => Ok(()),
        }
    }

    /// The time this command runs at, ms since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// What a key holds now; expired counts as absent.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Entry>, Stop> {
        let now_ms = self.now_ms;
        let entry = self.load(key)?.filter(|entry| entry.live(now_ms));
        self.lookups.count(entry.is_some());
        self.hold(entry.as_ref().map_or(0, Entry::value_bytes))?;
        Ok(entry)
    }

    /// Makes a key hold `entry`, whatever it held. Records under the id of what it held before go,
    /// unless `entry` has that same id. A string that is too long for one record is cut in pieces.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn put(&mut self, key: &[u8], entry: Entry) -> Result<(), Stop> {
        let shard = self.writable(key)?;
        let entry = Entry {
            object: self.cut(entry.object)?,
            ..entry
        };
        self.work(entry.value_bytes())?;
        let old = self.previous(shard, key)?;
        self.leave(key, old.as_ref(), Some(&entry))?;
        if let Some(at) = entry.expire_at_ms {
            self.keyspace.expiring.store(true, Ordering::Relaxed);
            let index = &mut self.buffer.extra().index;
            index.insert(record::expiry_key(at, key), true);
        }
        self.own(shard, key, &entry);
        self.buffer.set(shard, key, Some(entry));
        Ok(())
    }

    /// Removes a key; `true` if it was there and not expired.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, Stop> {
        let shard = self.writable(key)?;
        let Some(old) = self.load(key)? else {
            return Ok(false);
        };
        self.leave(key, Some(&old), None)?;
        self.buffer.set(shard, key, None);
        Ok(old.live(self.now_ms))
    }

    /// Moves what `from` holds to `to`, which loses what it held; a collection's records stay
    /// where they are. `false`: `from` holds nothing.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<bool, Stop> {
        let shard = self.writable(from)?;
        let Some(entry) = self.get(from)? else {
            return Ok(false);
        };
        if from == to {
            return Ok(true);
        }
        if let Some(at) = entry.expire_at_ms {
            self.buffer
                .extra()
                .index
                .insert(record::expiry_key(at, from), false);
        }
        self.put(to, entry)?;
        self.buffer.set(shard, from, None);
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
        let id = self.keyspace.next_id.fetch_add(1, Ordering::Relaxed);
        self.buffer.extra().new_id = Some(id);
        id
    }

    /// One record of a collection.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn record(&mut self, table: Table, id: u64, name: &[u8]) -> Result<Option<Bytes>, Stop> {
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

    /// Removes everything (FLUSHALL). REQUIRES: declared [`crate::Keys::All`].
    ///
    /// # Errors
    /// See [`Access`].
    pub fn clear(&mut self) -> Result<(), Stop> {
        match &self.view {
            View::Memory { all: true, .. }
            | View::Latched(Held::All)
            | View::Snapshot {
                may_write: true, ..
            } => {
                self.buffer.clear();
                self.owners.clear();
                Ok(())
            }
            _ => Err(misuse("clear() needs Keys::All")),
        }
    }

    /// Removes an object whose time has come, or only its entry in the expiry index if the
    /// object is gone, lives, or has another expiry by now. `true`: removed.
    pub(crate) fn expire(&mut self, key: &[u8], index_ms: u64) -> Result<bool, Stop> {
        let due = match self.load(key)? {
            Some(entry) => entry.expire_at_ms == Some(index_ms) && !entry.live(self.now_ms),
            None => false,
        };
        if due {
            self.delete(key)?;
        }
        let index = &mut self.buffer.extra().index;
        index.insert(record::expiry_key(index_ms, key), false);
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
        let raw = record::record_key(table, id, name);
        let work = |value: &Option<Bytes>| {
            raw.len() + value.as_ref().map_or(0, Bytes::len) + RECORD_WORK_BYTES
        };
        self.work(work(&value))?;
        let extra = self.buffer.extra();
        if let Some(replaced) = extra.records.insert(raw.as_slice().into(), value) {
            self.worked -= work(&replaced) as u64;
        }
        let extra = self.buffer.extra();
        if let Some(at) = self.owners.iter().position(|(owned, ..)| *owned == id) {
            let (_, shard, key) = self.owners.swap_remove(at);
            extra.touched.push((shard, key));
        }
        Ok(())
    }

    /// The shard of a key that this command may write.
    fn writable(&self, key: &[u8]) -> Result<u32, Stop> {
        let index = self.keyspace.shard_of(key);
        let declared = match &self.view {
            View::Memory { shards, .. } => shards.iter().any(|(i, _)| *i == index),
            View::Latched(held) => held.covers(index, key),
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

    pub(crate) fn own(&mut self, shard: u32, key: &[u8], entry: &Entry) {
        if let Object::Collection(header) = &entry.object {
            if self.owners.iter().all(|(id, ..)| *id != header.id) {
                self.owners.push((header.id, shard, Key::from_slice(key)));
            }
        }
    }

    /// Remembers that the reply shows what `seq` wrote.
    pub(crate) fn see(&mut self, seq: Seq) {
        self.seen = self.seen.max(self.keyspace.must_wait_for(seq));
    }
}

pub(crate) fn misuse(rule: &'static str) -> Stop {
    Stop::Error(EngineError::Misuse(rule))
}

pub(crate) fn undeclared() -> Stop {
    misuse("a command touched a key that it did not declare")
}
