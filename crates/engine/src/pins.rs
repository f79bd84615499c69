//! Records of collections that are written but not yet in the database, kept in memory until their
//! batch is decided.
//!
//! They are kept by **generation**, one for each batch that is not decided. Nothing is unpinned
//! record by record: when a batch is decided its generation goes as a whole. Lookups ask the
//! newest generation first, so an older write never hides a newer one.

use crate::Seq;
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Records by raw key, in order: ranges are merged from them.
type Pins = BTreeMap<Box<[u8]>, (Seq, Option<Bytes>)>;

/// The record pins of the collections whose ids fall here. A leaf lock: held for one lookup or
/// one insert, nothing is locked under it. Two commands never work on the same id at once (the
/// shard lock or latch of the collection's key keeps them apart), so it guards memory only.
#[derive(Default)]
pub(crate) struct Stripe {
    /// By batch, oldest first. INVARIANT: numbers ascend.
    generations: SmallVec<[(u64, Pins); 1]>,
}

impl Stripe {
    /// Pins a record of `batch` or, if a newer batch has pins here already, with that one: it
    /// stays a little longer then, and is still the record's last state.
    pub(crate) fn pin(&mut self, batch: u64, raw: &[u8], seq: Seq, value: Option<Bytes>) {
        if self.generations.last().is_none_or(|(n, _)| *n < batch) {
            self.generations.push((batch, Pins::new()));
        }
        if let Some((_, pins)) = self.generations.last_mut() {
            pins.insert(raw.into(), (seq, value));
        }
    }

    /// The pinned state of a record and its seq: `Some((_, None))` is a pinned deletion.
    pub(crate) fn get(&self, raw: &[u8]) -> Option<(Seq, Option<Bytes>)> {
        let mut newest_first = self.generations.iter().rev();
        newest_first.find_map(|(_, pins)| pins.get(raw)).cloned()
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
        for (_, pins) in &self.generations {
            let range = (Bound::Included(from), Bound::Excluded(to));
            for (raw, (seq, value)) in pins.range::<[u8], _>(range) {
                seen = seen.max(*seq);
                overlay.insert(raw.clone(), value.clone());
            }
        }
        seen
    }

    /// Forgets every batch up to `batch`.
    pub(crate) fn release(&mut self, batch: u64) {
        self.generations.retain(|(number, _)| *number > batch);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.generations.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_generations_win_and_old_ones_go_whole() {
        let mut stripe = Stripe::default();
        let raw = b"h1".as_slice();
        stripe.pin(1, raw, 1, Some(Bytes::from_static(b"old")));
        stripe.pin(3, raw, 2, None);
        assert_eq!(stripe.get(raw), Some((2, None)));
        let mut overlay = BTreeMap::new();
        assert_eq!(stripe.pins_between(b"h", b"i", &mut overlay), 2);
        assert_eq!(overlay.get(raw), Some(&None));
        stripe.release(2);
        assert_eq!(stripe.get(raw), Some((2, None)));
        stripe.release(3);
        assert_eq!(stripe.get(raw), None);
    }
}
