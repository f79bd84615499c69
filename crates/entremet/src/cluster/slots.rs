//! Hash slots that go together: one with its keys, or several in a row that are hardly used.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use front::{row, SLOTS};

/// Slots in a row, one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slots {
    first: u16,
    last: u16,
}

impl Slots {
    /// From the first to the last of them.
    pub fn new(first: u16, last: u16) -> Option<Self> {
        (first <= last && last < SLOTS).then_some(Self { first, last })
    }

    /// All that there are.
    pub fn all() -> Self {
        Self {
            first: 0,
            last: SLOTS - 1,
        }
    }

    /// The first of them.
    pub fn first(self) -> u16 {
        self.first
    }

    /// Whether it is one.
    pub fn is_one(self) -> bool {
        self.first == self.last
    }

    /// How many there are.
    pub fn count(self) -> u16 {
        self.last - self.first + 1
    }

    /// Whether a slot is one of them.
    pub fn has(self, slot: u16) -> bool {
        (self.first..=self.last).contains(&slot)
    }

    /// What is said of one, or of several.
    pub fn are(self) -> &'static str {
        if self.is_one() {
            "is"
        } else {
            "are"
        }
    }

    /// As they are written down: `7`, or `7-90`.
    pub fn text(self) -> String {
        match self.is_one() {
            true => self.first.to_string(),
            false => format!("{}-{}", self.first, self.last),
        }
    }

    /// The slots.
    pub fn each(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }
}

impl From<u16> for Slots {
    fn from(slot: u16) -> Self {
        Self {
            first: slot,
            last: slot,
        }
    }
}

/// In a sentence.
impl fmt::Display for Slots {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = if self.is_one() { "slot" } else { "slots" };
        write!(out, "{slots} {}", self.text())
    }
}

impl FromStr for Slots {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let slots = row(text).ok_or(())?;
        Self::new(*slots.start(), *slots.end()).ok_or(())
    }
}

/// Cuts slots, in ascending order, into pieces in a row, of so many at most.
pub fn rows(slots: impl IntoIterator<Item = u16>, most: u16) -> Vec<Slots> {
    let mut rows: Vec<Slots> = Vec::new();
    for slot in slots {
        match rows.last_mut() {
            Some(row) if row.last + 1 == slot && row.count() < most => row.last = slot,
            _ => rows.push(slot.into()),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_written_and_read() {
        for (text, first, count) in [("7", 7, 1), ("7-90", 7, 84), ("0-16383", 0, 16_384)] {
            let slots: Slots = text.parse().expect("slots");
            assert_eq!((slots.first(), slots.count()), (first, count), "{text}");
            assert_eq!(slots.text(), text);
            let said = slots.to_string();
            assert!(said == format!("slot {text}") || said == format!("slots {text}") && count > 1);
            assert!(slots.has(first) && !slots.has(first + count));
            assert_eq!(slots.each().count(), usize::from(count));
        }
        for wrong in ["", "x", "-", "7-", "9-7", "16384", "0-16384", "-1"] {
            assert_eq!(wrong.parse::<Slots>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn rows_end_at_gaps_and_when_they_are_long() {
        let text =
            |rows: Vec<Slots>| -> Vec<String> { rows.iter().map(|row| row.text()).collect() };
        assert_eq!(text(rows([], 4)), [""; 0]);
        assert_eq!(text(rows([0, 1, 2, 5, 6, 9], 4)), ["0-2", "5-6", "9"]);
        assert_eq!(text(rows(0..9, 4)), ["0-3", "4-7", "8"]);
    }
}
