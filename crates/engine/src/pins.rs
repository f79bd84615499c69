//! What was written but is not yet in the database, kept in memory until its batch is decided.
//!
//! Pins are kept by **generation**, one for each batch that is not decided. Nothing is unpinned
//! key by key: when a batch is decided its generations go as a whole. Lookups ask the newest
//! generation first, so an older write never hides a newer one.

use crate::shard::{Cached, Key};
use crate::Seq;
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// A map of pins: its storage is used again while writes keep coming.
pub(crate) trait Pins: Default {
    /// Forgets everything, keeps the storage.
    fn clear(&mut self);
    /// Whether the storage is small enough to be kept.
    fn small(&self) -> bool;
}

/// Pinned objects by key.
pub(crate) type ObjectPins = HashMap<Key, Cached, RandomState>;
/// Pinned records of collections by raw record key, in order: ranges are merged from them.
pub(crate) type RecordPins = BTreeMap<Box<[u8]>, (Seq, Option<Bytes>)>;

impl Pins for ObjectPins {
    fn clear(&mut self) {
        HashMap::clear(self);
    }

    fn small(&self) -> bool {
        self.capacity() <= 1024
    }
}

impl Pins for RecordPins {
    fn clear(&mut self) {
        BTreeMap::clear(self);
    }

    fn small(&self) -> bool {
        false
    }
}

/// Pins of all undecided batches, oldest first. INVARIANT: batch numbers ascend.
#[derive(Default)]
pub(crate) struct Generations<P> {
    list: SmallVec<[(u64, P); 1]>,
    spare: Option<P>,
}

impl<P: Pins> Generations<P> {
    /// The pins of `batch`, which must be the newest one.
    pub(crate) fn newest(&mut self, batch: u64) -> &mut P {
        if self.list.last().is_none_or(|(number, _)| *number < batch) {
            self.list
                .push((batch, self.spare.take().unwrap_or_default()));
        }
        let last = self.list.len() - 1;
        &mut self.list[last].1
    }

    /// Newest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &P> {
        self.list.iter().rev().map(|(_, pins)| pins)
    }

    /// Forgets every batch up to `batch`. `keep_storage`: more writes are on their way.
    pub(crate) fn release(&mut self, batch: u64, keep_storage: bool) {
        let gone = self.list.iter().take_while(|(n, _)| *n <= batch).count();
        for (_, mut pins) in self.list.drain(..gone) {
            if keep_storage && self.spare.is_none() && pins.small() {
                pins.clear();
                self.spare = Some(pins);
            }
        }
        if !keep_storage {
            self.spare = None;
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.spare = None;
    }
}

/// The record pins of the collections whose ids fall here. A leaf lock: held for one lookup or
/// one insert, nothing is locked under it. Two commands never work on the same id at once (the
/// shard lock or latch of the collection's key keeps them apart), so it guards memory only.
#[derive(Default)]
pub(crate) struct Stripe {
    pub pins: Generations<RecordPins>,
}

impl Stripe {
    /// The pinned state of a record and its seq: `Some((_, None))` is a pinned deletion.
    pub(crate) fn get(&self, raw: &[u8]) -> Option<(Seq, Option<Bytes>)> {
        self.pins.iter().find_map(|pins| pins.get(raw)).cloned()
    }

    /// Adds the pins of `[from, to)` to `overlay`, newer ones over older ones; returns the
    /// highest seq among them.
    pub(crate) fn pins_between(
        &self,
        from: &[u8],
        to: &[u8],
        overlay: &mut BTreeMap<Box<[u8]>, Option<Bytes>>,
    ) -> Seq {
        let mut seen = 0;
        for pins in self.pins.iter().rev() {
            let range = (
                std::ops::Bound::Included(from),
                std::ops::Bound::Excluded(to),
            );
            for (raw, (seq, value)) in pins.range::<[u8], _>(range) {
                seen = seen.max(*seq);
                overlay.insert(raw.clone(), value.clone());
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_generations_win_and_old_ones_go_whole() {
        let mut stripe = Stripe::default();
        let raw = b"h1".as_slice();
        let old = Bytes::from_static(b"old");
        stripe
            .pins
            .newest(1)
            .insert(raw.into(), (1, Some(old.clone())));
        stripe.pins.newest(3).insert(raw.into(), (2, None));
        assert_eq!(stripe.get(raw), Some((2, None)));
        let mut overlay = BTreeMap::new();
        assert_eq!(stripe.pins_between(b"h", b"i", &mut overlay), 2);
        assert_eq!(overlay.get(raw), Some(&None));
        stripe.pins.release(2, true);
        assert_eq!(stripe.get(raw), Some((2, None)));
        stripe.pins.release(3, true);
        assert_eq!(stripe.get(raw), None);
    }
}
