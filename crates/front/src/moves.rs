//! Moves of slots that are written down at the cluster, as a front reads them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::slot::SLOTS;
use crate::value::Value;

/// Slots in a row, as a move is written down under them: `7`, or `7-90`. None: they are none.
#[must_use]
pub fn row(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < SLOTS).then_some(first..=last)
}

/// A move that was begun and is not at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// What goes.
    pub slots: RangeInclusive<u16>,
    /// The name of the node that had it, or that has keys of it still.
    pub from: String,
    /// The name of the node that is to have it.
    pub to: String,
}

/// All moves that are written down, in the entries of [`crate::MOVES`].
#[must_use]
pub fn begun(entries: &Value) -> Vec<Begun> {
    let pairs = entries.items().chunks_exact(2);
    let read = pairs.filter_map(|pair| {
        let mut words = pair[1].text()?.split(' ');
        Some(Begun {
            slots: row(pair[0].text()?)?,
            from: words.next()?.to_owned(),
            to: words.next()?.to_owned(),
        })
    });
    read.collect()
}

/// A move whose entry stays the same for so long is nobody's.
pub const LEASE_NS: u64 = 4_000_000_000;

/// Which moves somebody is at. Whoever is changes a number about once a second: a move whose entry
/// stays the same for [`LEASE_NS`], by the reader's clock, is nobody's.
#[derive(Debug, Default)]
pub struct Moves {
    /// By the text of their slots: the entry, and when it was first read.
    seen: BTreeMap<String, (String, u64)>,
}

impl Moves {
    /// The entries of all moves, as they are read `now`.
    pub fn hear(&mut self, entries: &Value, now: u64) {
        let before = std::mem::take(&mut self.seen);
        for pair in entries.items().chunks_exact(2) {
            let (Some(slots), Some(entry)) = (pair[0].text(), pair[1].text()) else {
                continue;
            };
            let same = before.get(slots).filter(|(known, _)| known == entry);
            let since = same.map_or(now, |(_, since)| *since);
            self.seen.insert(slots.into(), (entry.into(), since));
        }
    }

    /// The slots of each, as they are written down.
    pub fn rows(&self) -> impl Iterator<Item = &str> {
        self.seen.keys().map(String::as_str)
    }

    /// Whether somebody is moving a slot.
    #[must_use]
    pub fn goes_on(&self, slot: u16, now: u64) -> bool {
        self.seen.iter().any(|(slots, (_, since))| {
            now.saturating_sub(*since) < LEASE_NS
                && row(slots).is_some_and(|slots| slots.contains(&slot))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(&str, &str)]) -> Value {
        let words = pairs.iter().flat_map(|(slots, entry)| [slots, entry]);
        Value::List(
            words
                .map(|word| Value::Text(word.as_bytes().into()))
                .collect(),
        )
    }

    #[test]
    fn a_move_goes_on_as_long_as_its_entry_changes() {
        let mut moves = Moves::default();
        assert!(!moves.goes_on(7, 0));
        moves.hear(&entries(&[("7", "a b 1 me 0"), ("20-30", "a c 1 - 0")]), 10);
        for (slot, goes) in [(7, true), (20, true), (30, true), (8, false), (31, false)] {
            assert_eq!(moves.goes_on(slot, 10 + LEASE_NS - 1), goes, "{slot}");
        }
        let later = 10 + LEASE_NS;
        moves.hear(
            &entries(&[("7", "a b 1 me 1"), ("20-30", "a c 1 - 0")]),
            later,
        );
        assert!(moves.goes_on(7, later) && !moves.goes_on(20, later));
        assert_eq!(moves.rows().collect::<Vec<_>>(), ["20-30", "7"]);
        moves.hear(&entries(&[("x", "a b 1 me 1")]), later);
        assert!(!moves.goes_on(7, later));
    }

    #[test]
    fn it_is_read_from_where_to_where_slots_go() {
        let all = begun(&entries(&[
            ("7", "a b 1 me 0"),
            ("x", "a b 1 - 0"),
            ("20-30", "a"),
        ]));
        let (from, to) = ("a".to_owned(), "b".to_owned());
        let one = Begun {
            slots: 7..=7,
            from,
            to,
        };
        assert_eq!(all, [one]);
    }

    #[test]
    fn rows_of_slots_are_read() {
        assert_eq!(row("7"), Some(7..=7));
        assert_eq!(row("0-16383"), Some(0..=16_383));
        for wrong in ["", "x", "-", "7-", "9-7", "16384", "0-16384", "-1"] {
            assert_eq!(row(wrong), None, "{wrong}");
        }
    }
}
