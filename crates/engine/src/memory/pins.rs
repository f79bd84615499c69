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

/// Pins of one batch that are looked at while the stripe is held.
const AT_ONCE: usize = 256;

/// Some of the pins that were asked for.
#[derive(Default)]
pub(crate) struct Found {
    pub pins: BTreeMap<Box<[u8]>, Option<Bytes>>,
    /// The highest seq among them.
    pub seen: Seq,
    /// There may be more behind the last of them.
    pub more: bool,
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

    /// The first pins from `from` on and before `to`, newer ones over older ones: at most
    /// [`AT_ONCE`] of each batch.
    pub(crate) fn pins_between(&self, from: Bound<&[u8]>, to: &[u8]) -> Found {
        // Behind the last pin that is taken of one batch, others' are left for the next time, too.
        let lasts = self.generations.iter().filter_map(|(_, pins)| {
            let mut pins = pins.range::<[u8], _>((from, Bound::Excluded(to)));
            pins.nth(AT_ONCE - 1).map(|(raw, _)| &**raw)
        });
        let end = lasts.min();
        let mut found = Found {
            more: end.is_some(),
            ..Found::default()
        };
        let to = end.map_or(Bound::Excluded(to), Bound::Included);
        for (_, pins) in &self.generations {
            for (raw, (seq, value)) in pins.range::<[u8], _>((from, to)) {
                found.seen = found.seen.max(*seq);
                found.pins.insert(raw.clone(), value.clone());
            }
        }
        found
    }

    /// Takes out every batch up to `batch`, to be dropped where nobody waits for the stripe.
    pub(crate) fn release(&mut self, batch: u64) -> impl Send {
        let newer = self
            .generations
            .partition_point(|(number, _)| *number <= batch);
        self.generations
            .drain(..newer)
            .collect::<SmallVec<[_; 1]>>()
    }

    /// Forgets everything, which is taken out to be dropped likewise.
    pub(crate) fn clear(&mut self) -> impl Send {
        std::mem::take(&mut self.generations)
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
        let found = stripe.pins_between(Bound::Included(b"h"), b"i");
        assert_eq!((found.seen, found.more), (2, false));
        assert_eq!(found.pins.get(raw), Some(&None));
        drop(stripe.release(2));
        assert_eq!(stripe.get(raw), Some((2, None)));
        drop(stripe.release(3));
        assert_eq!(stripe.get(raw), None);
    }

    #[test]
    fn many_pins_come_in_pieces_that_together_are_all() {
        let mut stripe = Stripe::default();
        let raw = |number: usize| format!("h{number:05}").into_bytes();
        // The second batch has every third record of the first, and as many behind it.
        for number in 0..3 * AT_ONCE {
            stripe.pin(1, &raw(number), 1, Some(Bytes::from_static(b"old")));
        }
        for number in (0..2 * 3 * AT_ONCE).step_by(3) {
            stripe.pin(2, &raw(number), 2, None);
        }
        let mut all = BTreeMap::new();
        let mut from = Bound::Included(b"h".to_vec());
        loop {
            let found = stripe.pins_between(from.as_ref().map(Vec::as_slice), b"i");
            assert!(found.pins.len() <= 2 * AT_ONCE);
            let last = found.pins.keys().next_back().map(|raw| raw.to_vec());
            all.extend(found.pins);
            match last {
                Some(last) if found.more => from = Bound::Excluded(last),
                _ => break,
            }
        }
        assert_eq!(all.len(), 4 * AT_ONCE);
        assert!((0..3 * AT_ONCE).all(|number| {
            let value = &all[raw(number).as_slice()];
            value.is_none() == (number % 3 == 0)
        }));
    }
}
