//! How an [`Access`] finds the state of a key: its own writes, memory, the database.

use crate::access::{misuse, undeclared, Access, View};
use crate::files::rocks::InMemory;
use crate::keyspace::{shard_mut, Keyspace};
use crate::memory::shard::{Cached, Shard};
use crate::meter::{Site, DEVICE_STEPS};
use crate::naming;
use crate::record::{self, RawKey};
use crate::{Entry, Lookups, Object, Stop};
use bytes::Bytes;
use parking_lot::MutexGuard;
use policy::look;
use rocksdb::ReadOptions;
use std::ops::Range;
use std::sync::atomic::Ordering;

impl Access<'_> {
    /// Shows `look` what [`Access::get`] would return, without a copy if it can: a string that lies
    /// in memory is lent, so that cores which read the same one do not write to the same count of
    /// references.
    ///
    /// # Errors
    /// See [`Access`]; what `look` made of it does not count then.
    pub fn with<T>(
        &mut self,
        key: &[u8],
        look: impl FnOnce(Option<&Entry>) -> T,
    ) -> Result<T, Stop> {
        let now_ms = self.now_ms();
        self.meter.count(1)?;
        let name = self.name(key);
        let name = &*name;
        if let (View::Memory { shards }, true) = (&mut self.view, self.buffer.is_empty()) {
            let index = self.keyspace.shard_of(name);
            let shard = shard_mut(shards, index).ok_or_else(undeclared)?;
            // Whoever holds a collection may write its records: that needs more than a look.
            if let Some(Cached { seq, entry }) = shard.lend(name) {
                let entry = entry.as_ref().filter(|entry| entry.live(now_ms));
                let (seq, found, seen) = (*seq, entry.is_some(), look(entry));
                let bytes = entry.map_or(0, Entry::value_bytes);
                self.in_memory.count(true);
                self.lookups.count(found);
                self.see(seq);
                self.hold(bytes)?;
                return Ok(seen);
            }
        }
        let entry = self.find(name)?;
        Ok(look(entry.as_ref()))
    }

    /// What a key holds now; expired counts as absent.
    ///
    /// # Errors
    /// See [`Access`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Entry>, Stop> {
        self.meter.count(1)?;
        self.find(&self.name(key))
    }

    /// As [`Access::get`], already counted.
    fn find(&mut self, name: &[u8]) -> Result<Option<Entry>, Stop> {
        let now_ms = self.now_ms();
        let entry = self.load(name)?.filter(|entry| entry.live(now_ms));
        self.lookups.count(entry.is_some());
        self.hold(entry.as_ref().map_or(0, Entry::value_bytes))?;
        Ok(entry)
    }

    /// The state of a key, expired or not.
    pub(crate) fn load(&mut self, name: &[u8]) -> Result<Option<Entry>, Stop> {
        if let Some(entry) = self.buffer.object(name) {
            return Ok(entry.clone());
        }
        if self.buffer.cleared() {
            return Ok(None);
        }
        let entry = match &mut self.view {
            View::Memory { .. } => self.load_in_memory(name)?,
            View::Latched(..) => self.load_latched(name)?,
            View::Snapshot { .. } => self.read_object(name)?,
        };
        if let Some(
            entry @ Entry {
                object: Object::Collection(_),
                ..
            },
        ) = &entry
        {
            self.own(self.keyspace.shard_of(name), name, entry);
        }
        Ok(entry)
    }

    fn load_in_memory(&mut self, name: &[u8]) -> Result<Option<Entry>, Stop> {
        let index = self.keyspace.shard_of(name);
        let View::Memory { shards } = &mut self.view else {
            return Err(misuse("not in phase 1"));
        };
        let shard = shard_mut(shards, index).ok_or_else(undeclared)?;
        let known = shard.lookup(name).cloned();
        self.in_memory.count(known.is_some());
        if let Some(Cached { seq, entry }) = known {
            self.see(seq);
            return Ok(entry);
        }
        if let Some(seq) = self.keyspace.log.clearing() {
            self.see(seq);
            return Ok(None);
        }
        let entry = self.read_object(name)?;
        if let View::Memory { shards } = &mut self.view {
            if let Some(shard) = shard_mut(shards, index) {
                self.keyspace.fill(index, shard, name, &entry);
            }
        }
        Ok(entry)
    }

    fn load_latched(&mut self, name: &[u8]) -> Result<Option<Entry>, Stop> {
        let index = self.keyspace.shard_of(name);
        let View::Latched(held, ahead) = self.view else {
            return Err(misuse("not in phase 2"));
        };
        if !held.covers(index, name) {
            return Err(undeclared());
        }
        let shard = &self.keyspace.shards[index as usize];
        let found = {
            let mut shard = shard.lock();
            let found = shard.lookup(name).cloned();
            shard.count(Lookups::of(found.is_some()));
            found
        };
        if let Some(Cached { seq, entry }) = found {
            self.see(seq);
            return Ok(entry);
        }
        if let Some(seq) = self.keyspace.log.clearing() {
            self.see(seq);
            return Ok(None);
        }
        let entry = match ahead.and_then(|ahead| ahead.take(index, name, self.epoch)) {
            Some(entry) => entry,
            None => self.read_object(name)?,
        };
        // Nobody wrote the key meanwhile: it is latched. But a database that was swapped under a
        // failure may say something else than the one just read.
        let mut shard = shard.lock();
        if self.keyspace.log.epoch() == self.epoch {
            self.keyspace.fill(index, &mut shard, name, &entry);
        }
        Ok(entry)
    }

    /// What the database has under a name.
    pub(crate) fn read_object(&mut self, name: &[u8]) -> Result<Option<Entry>, Stop> {
        let raw = record::object_key(name);
        let decoded = self.read(&raw, |value| value.map(record::decode))?;
        match decoded {
            None => Ok(None),
            Some(Some(entry)) => Ok(Some(entry)),
            Some(None) => {
                let (_, key) = naming::parse(name);
                let message = format!("the record of key \"{}\" is damaged", key.escape_ascii());
                Err(self.keyspace.read_error(message).into())
            }
        }
    }

    /// The bytes in `within` of a record under an id, as far as it has any; `None`: there is no
    /// such record.
    pub(crate) fn stored(
        &mut self,
        id: u64,
        raw: &RawKey,
        within: Range<usize>,
    ) -> Result<Option<Bytes>, Stop> {
        let range = |len: usize| within.start.min(len)..within.end.min(len);
        let slice = |value: Bytes| value.slice(range(value.len()));
        if let Some(extra) = &self.buffer.extra {
            if let Some(value) = extra.records.get(raw.as_slice()) {
                return Ok(value.clone().map(slice));
            }
        }
        if !matches!(self.view, View::Snapshot { .. }) {
            let pinned = self.keyspace.stripe(id).lock().get(raw);
            if let Some((seq, value)) = pinned {
                self.see(seq);
                return Ok(value.map(slice));
            }
        }
        let copy = |value: &[u8]| Bytes::copy_from_slice(&value[range(value.len())]);
        self.read(raw, |value| value.map(copy))
    }

    /// Reads a record from the database, as the view allows.
    pub(crate) fn read<T>(
        &mut self,
        raw: &RawKey,
        read: impl FnOnce(Option<&[u8]>) -> T,
    ) -> Result<T, Stop> {
        let (keyspace, meter) = (self.keyspace, &mut self.meter);
        if !matches!(self.view, View::Memory { .. }) {
            keyspace.buffers.missed();
            meter.count(DEVICE_STEPS)?;
        }
        let site = meter.site();
        let read = |value: Option<&[u8]>| {
            meter.copied(value.map_or(0, <[u8]>::len))?;
            Ok(read(value))
        };
        let result = match &self.view {
            View::Memory { .. } => {
                let db = keyspace.gate.try_get().ok_or(Stop::Disk)?;
                let buffers = &keyspace.buffers;
                let in_vain = buffers.in_vain.load(Ordering::Relaxed);
                let known = match look::worthwhile(in_vain) {
                    true => db.get_in_memory(raw, read),
                    false => Ok(InMemory::Unknown),
                };
                match known {
                    Ok(InMemory::Known(value)) => {
                        if in_vain > 0 {
                            buffers.in_vain.store(0, Ordering::Relaxed);
                        }
                        buffers.hits.fetch_add(1, Ordering::Relaxed);
                        return value;
                    }
                    Ok(InMemory::Unknown) => {
                        // Of cores that count at the same time one is enough.
                        let in_vain = in_vain.wrapping_add(1);
                        buffers.in_vain.store(in_vain, Ordering::Relaxed);
                        return Err(Stop::Disk);
                    }
                    Err(error) => Err(error),
                }
            }
            View::Latched(..) => {
                let db = keyspace.db()?;
                let _alone = keyspace.alone(raw, site)?;
                let value = db.rocks.get_pinned(raw);
                value.map(|value| read(value.as_deref()))
            }
            View::Snapshot { db, snapshot, .. } => {
                let mut options = ReadOptions::default();
                options.set_snapshot(snapshot);
                // What reads a snapshot reads much, once: it must not drive out what is read often.
                options.fill_cache(false);
                let _alone = keyspace.alone(raw, site)?;
                let value = db.rocks.get_pinned_opt(raw, &options);
                value.map(|value| read(value.as_deref()))
            }
        };
        result.unwrap_or_else(|error| Err(keyspace.read_error(error.into_string()).into()))
    }

    /// What a write must know of the state it replaces. Without collections in the keyspace a
    /// string may be replaced unread: what memory happens to know is used to keep the expiry
    /// index small, and an index entry that stays behind is dropped when its time comes.
    pub(crate) fn previous(&mut self, shard: u32, name: &[u8]) -> Result<Option<Entry>, Stop> {
        if self.keyspace.collections.load(Ordering::Relaxed) {
            return self.load(name);
        }
        if let Some(entry) = self.buffer.object(name) {
            return Ok(entry.clone());
        }
        if self.buffer.cleared() || !self.keyspace.expiring.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let known = match &mut self.view {
            View::Memory { shards } => match shard_mut(shards, shard) {
                Some(shard) => shard.expiring(name),
                None => None,
            },
            _ => self.keyspace.shards[shard as usize].lock().expiring(name),
        };
        Ok(known)
    }
}

impl Keyspace {
    /// For who reads a record at `raw` or behind it from the database. RocksDB has a large value in
    /// memory, once or twice, before anybody knows its size and can count it: so one at a time
    /// reads what may be one. On a handler nobody waits for that: the command goes on on a thread
    /// of its own.
    pub(crate) fn alone(&self, raw: &[u8], site: Site) -> Result<Option<MutexGuard<'_, ()>>, Stop> {
        if !record::may_be_large(raw) || !self.large.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match site {
            Site::Apart => Ok(Some(self.large_reader.lock())),
            Site::Turn | Site::Handler => match self.large_reader.try_lock() {
                Some(alone) => Ok(Some(alone)),
                None => Err(Stop::Large),
            },
        }
    }

    /// Caches what the database says of a key. REQUIRES: see [`crate::memory::shard`].
    fn fill(&self, index: u32, shard: &mut Shard, key: &[u8], entry: &Option<Entry>) {
        let decided = self.log.decided();
        if shard.fill(key, entry.clone(), decided) {
            self.note_pins(index as usize, shard, decided);
        }
    }
}
