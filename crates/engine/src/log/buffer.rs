//! What a command wants to write: collected while it runs, applied as a whole or not at all.

use crate::memory::shard::{Cached, Key, Shard};
use crate::naming::{self, Naming, Slot};
use crate::record::{self, RawKey};
use crate::work::Work;
use crate::{Database, Entry, Seq, Table};
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// What a record costs in a batch beyond its key and value.
pub(crate) const RECORD_BYTES: usize = 16;

/// Up to so many objects are searched one by one; more get an index.
const LINEAR_MAX: usize = 12;

/// What a write means to those who watch its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The key has changed.
    Changed,
    /// All that it changes had expired before: nobody can see a difference.
    Swept,
    /// They were told otherwise, by the name that their key had.
    Before,
}

/// The new state of one key.
pub(crate) struct ObjectWrite {
    pub shard: u32,
    pub key: Key,
    pub entry: Option<Entry>,
    pub told: Told,
}

/// See the module. A command that only reads costs nothing here, one that sets a string one
/// inline slot.
#[derive(Default)]
pub(crate) struct Buffer {
    pub objects: SmallVec<[ObjectWrite; 1]>,
    pub extra: Option<Box<Extra>>,
    /// What of its tenant's allowance the command has; the writes keep it until they are committed.
    pub held: Option<Arc<Work>>,
}

/// What only some commands need.
#[derive(Default)]
pub(crate) struct Extra {
    /// All that was there is gone; the rest of the buffer comes after.
    pub clear: bool,
    /// Records of collections, `None` = deleted.
    pub records: BTreeMap<Box<[u8]>, Option<Bytes>>,
    /// Tables of ids that nothing refers to any more: all their records go.
    pub dropped: Vec<(Table, u64)>,
    /// Records of such ids that go one by one. Nobody can ask for them again, so memory need not
    /// know.
    pub removed: Vec<Box<[u8]>>,
    /// Expiry index, `true` = add.
    pub index: BTreeMap<RawKey, bool>,
    /// Keys whose collection changed, though perhaps not its header.
    pub touched: Vec<(u32, Key)>,
    /// Number of the newest id.
    pub new_id: Option<u64>,
    /// Which slot each database has from now on.
    pub renaming: Option<Renaming>,
    positions: HashMap<Key, usize, RandomState>,
}

/// A change of which database has which slot.
pub(crate) struct Renaming {
    pub naming: Naming,
    /// Slots that no database has any more: all that lies there goes.
    pub emptied: Vec<Slot>,
    /// Keys that were written before it, or are other keys since, by the databases that they were
    /// in.
    pub touched: Vec<(Database, Key)>,
}

impl Buffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
            && self.extra.as_ref().is_none_or(|extra| {
                !extra.clear
                    && extra.records.is_empty()
                    && extra.dropped.is_empty()
                    && extra.removed.is_empty()
                    && extra.index.is_empty()
                    && extra.renaming.is_none()
            })
    }

    pub(crate) fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_with(Box::default)
    }

    pub(crate) fn naming(&self) -> Option<&Naming> {
        let renaming = self.extra.as_ref()?.renaming.as_ref()?;
        Some(&renaming.naming)
    }

    pub(crate) fn cleared(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.clear)
    }

    /// The state this command gave a key; `Some(None)`: it deleted it.
    pub(crate) fn object(&self, key: &[u8]) -> Option<&Option<Entry>> {
        let at = self.position(key)?;
        Some(&self.objects[at].entry)
    }

    fn position(&self, key: &[u8]) -> Option<usize> {
        match &self.extra {
            Some(extra) if !extra.positions.is_empty() => extra.positions.get(key).copied(),
            _ => self.objects.iter().position(|o| o.key.as_slice() == key),
        }
    }

    pub(crate) fn set(&mut self, shard: u32, key: &[u8], entry: Option<Entry>) {
        if let Some(at) = self.position(key) {
            let object = &mut self.objects[at];
            (object.entry, object.told) = (entry, Told::Changed);
            return;
        }
        self.add(shard, key, entry, Told::Changed);
    }

    /// Removes what had expired before this command.
    pub(crate) fn sweep(&mut self, shard: u32, key: &[u8]) {
        match self.position(key) {
            // It was put there by this command.
            Some(_) => self.set(shard, key, None),
            None => self.add(shard, key, None, Told::Swept),
        }
    }

    fn add(&mut self, shard: u32, key: &[u8], entry: Option<Entry>, told: Told) {
        let key = Key::from_slice(key);
        self.objects.push(ObjectWrite {
            shard,
            key,
            entry,
            told,
        });
        match self.objects.len() {
            ..=LINEAR_MAX => {}
            len if len == LINEAR_MAX + 1 => self.index_from(0),
            len => self.index_from(len - 1),
        }
    }

    /// Keeps the index of objects by key complete: adds those from here on.
    fn index_from(&mut self, start: usize) {
        let extra = self.extra.get_or_insert_with(Box::default);
        for (at, object) in self.objects.iter().enumerate().skip(start) {
            extra.positions.insert(object.key.clone(), at);
        }
    }

    /// Starts again from an empty keyspace. What was written before is gone; those who watch it
    /// learn of it all the same.
    pub(crate) fn clear(&mut self) {
        let before = self.extra.take().unwrap_or_default();
        let mut touched = before.touched;
        let written = self
            .objects
            .drain(..)
            .filter(|write| write.told == Told::Changed);
        touched.extend(written.map(|write| (write.shard, write.key)));
        let extra = self.extra();
        extra.clear = true;
        extra.new_id = before.new_id;
        extra.touched = touched;
        extra.renaming = before.renaming;
    }

    /// Has databases other slots, which were `before` those of another naming. What was written so
    /// far was written under the names of that one: those who watch it learn of it.
    pub(crate) fn rename(&mut self, before: &Naming, naming: Naming) -> &mut Renaming {
        let mut written = Vec::new();
        for write in &mut self.objects {
            if std::mem::replace(&mut write.told, Told::Before) == Told::Changed {
                written.push(write.key.clone());
            }
        }
        let extra = self.extra();
        let touched = std::mem::take(&mut extra.touched);
        let names = touched.into_iter().map(|(_, name)| name).chain(written);
        let keys = names.filter_map(|name| {
            let (slot, key) = naming::parse(&name);
            Some((before.database(slot)?, Key::from_slice(key)))
        });
        let keys: Vec<_> = keys.collect();
        let renaming = extra.renaming.get_or_insert_with(|| Renaming {
            naming: Naming::default(),
            emptied: Vec::new(),
            touched: Vec::new(),
        });
        renaming.naming = naming;
        renaming.touched.extend(keys);
        renaming
    }

    /// Forgets what this command wrote to a slot.
    pub(crate) fn forget_slot(&mut self, slot: Slot) {
        self.objects
            .retain(|write| naming::parse(&write.key).0 != slot);
        let Some(extra) = &mut self.extra else { return };
        let of_slot = |raw: &[u8]| naming::slot_of(record::id_of(raw)) == slot;
        extra.records.retain(|raw, _| !of_slot(raw));
        extra.removed.retain(|raw| !of_slot(raw));
        extra.dropped.retain(|(_, id)| naming::slot_of(*id) != slot);
        extra.index.retain(|raw, add| {
            let name = record::parse_expiry_key(raw).map(|(_, name)| naming::parse(name).0);
            !*add || name != Some(slot)
        });
        extra.positions.clear();
        if self.objects.len() > LINEAR_MAX {
            self.index_from(0);
        }
    }

    /// Forgets what this command wrote to a table of an id; returns which records it deleted there.
    pub(crate) fn forget_records(&mut self, table: Table, id: u64) -> Vec<Box<[u8]>> {
        let Some(extra) = &mut self.extra else {
            return Vec::new();
        };
        let (from, to) = record::record_range(table, id);
        let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        let written = extra.records.range::<[u8], _>(range);
        let mut written: Vec<Box<[u8]>> = written.map(|(raw, _)| raw.clone()).collect();
        written.retain(|raw| matches!(extra.records.remove(raw), Some(None)));
        written
    }

    /// Keys and records written.
    pub(crate) fn len(&self) -> usize {
        let extra = self.extra.as_ref().map_or(0, |extra| {
            extra.records.len() + extra.removed.len() + extra.index.len()
        });
        self.objects.len() + extra
    }

    /// Bytes this will add to a batch, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let objects: usize = self.objects.iter().map(ObjectWrite::bytes).sum();
        let records: usize = self.extra.as_ref().map_or(0, |extra| {
            let values = extra.records.iter();
            let values =
                values.map(|(raw, value)| raw.len() + value.as_ref().map_or(0, Bytes::len));
            let removed = extra.removed.iter().map(|raw| raw.len());
            values
                .chain(removed)
                .map(|bytes| bytes + RECORD_BYTES)
                .sum()
        });
        objects + records + RECORD_BYTES
    }
}

impl ObjectWrite {
    /// Puts it into memory; see [`Shard::write`].
    pub(crate) fn apply(self, shard: &mut Shard, seq: Seq, decided: Seq) -> bool {
        let entry = self.entry;
        let cached = Cached { seq, entry };
        match self.told {
            Told::Changed => shard.write(self.key, cached, decided),
            Told::Swept => shard.sweep(self.key, cached, decided),
            Told::Before => shard.keep(self.key, cached, decided),
        }
    }

    fn bytes(&self) -> usize {
        let whole = self.entry.as_ref().and_then(Entry::whole);
        self.key.len() + whole.map_or(RECORD_BYTES, Bytes::len) + RECORD_BYTES
    }
}
