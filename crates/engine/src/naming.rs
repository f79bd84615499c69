//! The databases of one keyspace, and how their keys are named in it.
//!
//! A tenant's clients choose one of 16 databases (`SELECT`). All of them lie in one keyspace, with
//! one log and one RocksDB database, so that a transaction may write to several. What keeps them
//! apart is the **name** of a key: everything below (shards, latches, log, records) knows names
//! only.
//!
//! | key | its name |
//! |---|---|
//! | of slot 0 | the key |
//! | of slot 0, if it begins with [`MARK`] | `MARK`, 0 as u32, the key |
//! | of slot n | `MARK`, n as u32, the key |
//!
//! A **slot** is where the keys of one database lie: database n has slot n at first. Names of one
//! slot are one range in byte order, in the order of their keys, because nothing sorts behind the
//! mark but what begins with it. The number of a slot stands in the highest bits of the ids of its
//! collections, too, so that all records of a slot are a few ranges.
//!
//! * `SWAPDB` exchanges the slots of two databases.
//! * `FLUSHDB` gives a database a new slot and removes the ranges of the old one. What memory knows
//!   of the old names, nobody asks for any more. A slot is not used twice before `FLUSHALL`, which
//!   removes all.
//!
//! A tenant that uses database 0 only has names that are its keys, and no record more than without
//! databases.

use crate::record::{self, RawKey};
use crate::{Database, Entry, Seq, DATABASES};
use bytes::Bytes;
use parking_lot::Mutex;
use rocksdb::{ReadOptions, WriteBatch, DB};
use smallvec::SmallVec;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// What a name of another slot than 0 begins with. Nothing sorts behind it but what begins with it.
pub(crate) const MARK: [u8; 8] = [0xff; 8];
/// Ids of one slot are told apart by this many bits.
const NUMBER_BITS: u32 = 40;
/// Slots from here on do not fit in an id.
const SLOTS_MAX: Slot = 1 << (u64::BITS - NUMBER_BITS);
/// Bytes of names that begin with the mark and were written before names were.
const CONVERTED_BYTES_MAX: usize = 64 << 20;

/// Where the keys of a database lie.
pub(crate) type Slot = u32;

/// A key's name.
pub(crate) enum Name<'k> {
    /// It is the key.
    Lent(&'k [u8]),
    Made(RawKey),
}

impl Deref for Name<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Name::Lent(key) => key,
            Name::Made(name) => name,
        }
    }
}

/// Whether a key or name begins with the mark.
#[inline]
pub(crate) fn marked(name: &[u8]) -> bool {
    name.len() >= MARK.len() && name[..MARK.len()] == MARK
}

/// The name of a key in a slot.
#[inline]
pub(crate) fn name(slot: Slot, key: &[u8]) -> Name<'_> {
    if slot == 0 && !marked(key) {
        return Name::Lent(key);
    }
    let mut made = head(slot);
    made.extend_from_slice(key);
    Name::Made(made)
}

/// Mark and slot.
fn head(slot: Slot) -> RawKey {
    let mut head = RawKey::from_slice(&MARK);
    head.extend_from_slice(&slot.to_be_bytes());
    head
}

/// The slot and the key of a name.
pub(crate) fn parse(name: &[u8]) -> (Slot, &[u8]) {
    let (true, Some((slot, key))) = (marked(name), name.get(MARK.len()..).and_then(split_slot))
    else {
        return (0, name);
    };
    (slot, key)
}

fn split_slot(rest: &[u8]) -> Option<(Slot, &[u8])> {
    let (slot, key) = rest.split_first_chunk()?;
    Some((Slot::from_be_bytes(*slot), key))
}

/// First and past-the-last name of a slot, behind `prefix`.
pub(crate) fn names_of(prefix: u8, slot: Slot) -> (RawKey, RawKey) {
    let raw = |head: &[u8]| {
        let mut raw = RawKey::from_slice(&[prefix]);
        raw.extend_from_slice(head);
        raw
    };
    let from = match slot {
        0 => raw(&[]),
        slot => raw(&head(slot)),
    };
    (from, raw(&head(slot + 1)))
}

/// The id of a slot's collection with this number, which is unique in its keyspace.
pub(crate) fn id(slot: Slot, number: u64) -> u64 {
    u64::from(slot) << NUMBER_BITS | number
}

/// The slot that an id belongs to.
pub(crate) fn slot_of(id: u64) -> Slot {
    (id >> NUMBER_BITS) as Slot
}

/// Everything of a slot in the database: ranges of record keys. (Entries of the expiry index stay,
/// and are dropped when their time comes.)
pub(crate) fn ranges_of(slot: Slot) -> impl Iterator<Item = (RawKey, RawKey)> {
    let under_ids = record::ID_PREFIXES.into_iter().map(move |prefix| {
        let raw = |slot: Slot| {
            let mut raw = RawKey::from_slice(&[prefix]);
            raw.extend_from_slice(&id(slot, 0).to_be_bytes());
            raw
        };
        (raw(slot), raw(slot + 1))
    });
    [names_of(record::OBJECT, slot)]
        .into_iter()
        .chain(under_ids)
}

/// Which slot each database has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Naming {
    slots: [Slot; DATABASES],
    /// The next new one.
    next: Slot,
}

impl Default for Naming {
    fn default() -> Self {
        Naming {
            slots: std::array::from_fn(|number| number as Slot),
            next: DATABASES as Slot,
        }
    }
}

impl Naming {
    pub(crate) fn slot(&self, database: Database) -> Slot {
        self.slots[database.index()]
    }

    /// The database that has this slot.
    pub(crate) fn database(&self, slot: Slot) -> Option<Database> {
        let at = self.slots.iter().position(|one| *one == slot)?;
        Database::new(at as i64)
    }

    /// Two databases exchanged.
    pub(crate) fn swapped(&self, one: Database, other: Database) -> Naming {
        let mut naming = self.clone();
        naming.slots.swap(one.index(), other.index());
        naming
    }

    /// A database with a new slot; `None`: there is none.
    pub(crate) fn renewed(&self, database: Database) -> Option<Naming> {
        let mut naming = self.clone();
        (naming.slots[database.index()], naming.next) = (self.next, self.next + 1);
        (naming.next < SLOTS_MAX).then_some(naming)
    }

    /// As the property [`record::DATABASES`] has it: each slot, then the next new one.
    pub(crate) fn encode(&self) -> Bytes {
        let numbers = self.slots.iter().chain([&self.next]);
        numbers.flat_map(|number| number.to_be_bytes()).collect()
    }

    /// What [`Naming::encode`] wrote; `None`: the bytes make no sense.
    pub(crate) fn decode(value: &[u8]) -> Option<Naming> {
        if value.len() != (DATABASES + 1) * size_of::<Slot>() {
            return None;
        }
        let mut numbers = value.chunks_exact(size_of::<Slot>()).map(|bytes| {
            let bytes = bytes.try_into().unwrap_or_default();
            Slot::from_be_bytes(bytes)
        });
        let slots = std::array::from_fn(|_| numbers.next().unwrap_or(SLOTS_MAX));
        let next = numbers.next().unwrap_or(SLOTS_MAX);
        let sound = next < SLOTS_MAX && slots.iter().all(|slot| *slot < next);
        sound.then_some(Naming { slots, next })
    }
}

/// A keyspace's naming as it was at one moment. Cheap to make: as long as it never changed, there
/// is nothing to hold.
#[derive(Clone, Default)]
pub(crate) struct Moment {
    version: u64,
    naming: Option<Arc<Naming>>,
    /// Who changed it last.
    pub seq: Seq,
}

impl Moment {
    /// A naming that nobody else has.
    pub(crate) fn of(naming: Naming) -> Moment {
        Moment {
            naming: Some(Arc::new(naming)),
            ..Moment::default()
        }
    }

    pub(crate) fn slot(&self, database: Database) -> Slot {
        match &self.naming {
            None => database.index() as Slot,
            Some(naming) => naming.slot(database),
        }
    }

    /// The naming itself.
    pub(crate) fn naming(&self) -> Naming {
        self.naming
            .as_ref()
            .map_or_else(Naming::default, |naming| Naming::clone(naming))
    }

    /// Calls `with` with the names of keys.
    pub(crate) fn with_names<'k, R>(
        &self,
        keys: impl Iterator<Item = (Database, &'k [u8])>,
        with: impl FnOnce(&[&[u8]]) -> R,
    ) -> R {
        let made: SmallVec<[Name<'k>; 4]> = keys
            .map(|(database, key)| name(self.slot(database), key))
            .collect();
        let names: SmallVec<[&[u8]; 8]> = made.iter().map(|name| &**name).collect();
        with(&names)
    }
}

/// A keyspace's naming. It changes only while somebody has all keys, or the log has failed.
#[derive(Default)]
pub(crate) struct Names {
    /// Of the changes; 0: there was none.
    version: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: Moment,
    /// What it was before changes that may not be decided yet, with the seq of each.
    before: Vec<(Seq, Moment)>,
}

impl Names {
    /// As a database has it that is opened.
    pub(crate) fn of(naming: Option<Naming>) -> Names {
        let names = Names::default();
        names.reset(naming);
        names
    }

    /// As the database has it: what failed may have got there all the same.
    pub(crate) fn reset(&self, naming: Option<Naming>) {
        let mut state = self.state.lock();
        let naming = naming.unwrap_or_default();
        if state.now.naming() != naming {
            self.set(&mut state, Moment::of(naming));
        }
    }

    fn set(&self, state: &mut State, moment: Moment) {
        let version = self.version.load(Ordering::Relaxed) + 1;
        state.now = Moment { version, ..moment };
        self.version.store(version, Ordering::Release);
    }

    /// As it is now.
    #[inline]
    pub(crate) fn now(&self) -> Moment {
        match self.version.load(Ordering::Acquire) {
            0 => Moment::default(),
            _ => self.state.lock().now.clone(),
        }
    }

    /// Whether it has changed since that moment.
    #[inline]
    pub(crate) fn moved(&self, since: &Moment) -> bool {
        self.version.load(Ordering::Acquire) != since.version
    }

    /// Changes it. REQUIRES: the caller has all keys, and `seq` is in the log.
    pub(crate) fn change(&self, naming: Naming, seq: Seq, decided: Seq) {
        let mut state = self.state.lock();
        state.before.retain(|(seq, _)| *seq > decided);
        let before = state.now.clone();
        state.before.push((seq, before));
        let moment = Moment {
            seq,
            ..Moment::of(naming)
        };
        self.set(&mut state, moment);
    }

    /// Forgets changes after `decided`: they have failed.
    pub(crate) fn forget_after(&self, decided: Seq) {
        let mut state = self.state.lock();
        let undecided = state.before.iter().find(|(seq, _)| *seq > decided).cloned();
        state.before.clear();
        if let Some((_, moment)) = undecided {
            self.set(&mut state, moment);
        }
    }
}

/// What the database says of its naming; nothing: it never changed.
///
/// # Errors
/// RocksDB's, or that the property makes no sense.
pub(crate) fn read(db: &DB, options: &ReadOptions) -> Result<Option<Naming>, String> {
    let found = db.get_opt(record::DATABASES, options);
    let found = found.map_err(rocksdb::Error::into_string)?;
    let decoded =
        found.map(|value| Naming::decode(&value).ok_or("its list of databases is damaged"));
    Ok(decoded.transpose()?)
}

/// Gives keys that begin with the mark their names, in a database from before there were any.
/// `true`: there were some.
///
/// # Errors
/// RocksDB's, or that there are too many to do it at once.
pub(crate) fn convert(db: &DB) -> Result<bool, String> {
    let mut mark = RawKey::from_slice(&[record::OBJECT]);
    mark.extend_from_slice(&MARK);
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(mark.as_slice());
    options.set_iterate_upper_bound([record::OBJECT + 1]);
    let mut iterator = db.raw_iterator_opt(options);
    iterator.seek_to_first();
    let (mut deletes, mut puts) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    while let Some((raw, value)) = iterator.item() {
        let key = &raw[1..];
        let named = name(0, key);
        bytes += raw.len() + value.len();
        if bytes > CONVERTED_BYTES_MAX {
            return Err(format!(
                "more than {CONVERTED_BYTES_MAX} bytes are stored under keys that begin with eight bytes 0xff, \
                 which this version stores otherwise: remove or rename some with the version before"
            ));
        }
        deletes.push(raw.to_vec());
        puts.push((record::object_key(&named), value.to_vec()));
        if let Some(at) = record::decode(value).and_then(|Entry { expire_at_ms, .. }| expire_at_ms)
        {
            puts.push((record::expiry_key(at, &named), Vec::new()));
        }
        iterator.next();
    }
    iterator.status().map_err(rocksdb::Error::into_string)?;
    if puts.is_empty() {
        return Ok(false);
    }
    let mut batch = WriteBatch::default();
    deletes.iter().for_each(|raw| batch.delete(raw));
    puts.iter().for_each(|(raw, value)| batch.put(raw, value));
    batch.put(record::FORMAT, record::FORMAT_NAMED);
    db.write(batch).map_err(rocksdb::Error::into_string)?;
    Ok(true)
}

#[cfg(test)]
mod tests;
