//! What is to be moved, written down at the cluster before anything is done: slots, from where, to
//! where, since when, and who is at it.
//!
//! Whoever is at it changes a number in it about once a second. Who reads the same text for
//! [`LEASE_NS`] by his own clock takes the mover to be gone, as fronts do of each other.

pub use front::LEASE_NS;

use super::slots::Slots;

/// Nobody is at it.
const NOBODY: &str = "-";

/// A move that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Of the engine.
    pub slots: Slots,
    /// The name of the node that has it, or that has keys of it still.
    pub from: String,
    /// The name of the node that is to have it.
    pub to: String,
    /// Seconds since 1970, by the clock of whoever began.
    pub began_s: u64,
    /// Who is at it; none: nobody.
    pub mover: Option<String>,
    /// It grows while somebody is at it.
    pub beat: u64,
}

impl Intent {
    /// What is written down of it under its slots.
    pub fn text(&self) -> String {
        let mover = self.mover.as_deref().unwrap_or(NOBODY);
        format!(
            "{} {} {} {mover} {}",
            self.from, self.to, self.began_s, self.beat
        )
    }

    /// What is written down under `slots`. None: it is no intent.
    pub fn read(slots: &str, text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [from, to, began_s, mover, beat] = words[..] else {
            return None;
        };
        Some(Self {
            slots: slots.parse().ok()?,
            from: from.to_owned(),
            to: to.to_owned(),
            began_s: began_s.parse().ok()?,
            mover: (mover != NOBODY).then(|| mover.to_owned()),
            beat: beat.parse().ok()?,
        })
    }

    /// Whether both are about a node: one move at a time holds up a node's requests.
    pub fn meets(&self, other: &Self) -> bool {
        [&self.from, &self.to]
            .iter()
            .any(|node| **node == other.from || **node == other.to)
    }
}

/// The slots of moves.
pub fn slots_of(moves: &[Intent]) -> Vec<Slots> {
    moves.iter().map(|begun| begun.slots).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut intent = Intent {
            slots: 7.into(),
            from: "a".into(),
            to: "b".into(),
            began_s: 1_790_000_000,
            mover: Some("me".into()),
            beat: 3,
        };
        assert_eq!(Intent::read("7", &intent.text()), Some(intent.clone()));
        intent.mover = None;
        assert_eq!(Intent::read("7", &intent.text()), Some(intent.clone()));
        let several = Intent::read("7-90", &intent.text()).expect("several");
        assert_eq!(several.slots.text(), "7-90");
        for (slot, text) in [
            ("16384", &*intent.text()),
            ("x", &intent.text()),
            ("7", "a b 1 c"),
        ] {
            assert_eq!(Intent::read(slot, text), None, "{slot} {text}");
        }
        let at = |from: &str, to: &str| Intent {
            from: from.into(),
            to: to.into(),
            ..intent.clone()
        };
        assert!(intent.meets(&at("b", "c")) && intent.meets(&at("c", "a")));
        assert!(!intent.meets(&at("c", "d")));
    }
}
