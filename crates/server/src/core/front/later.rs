//! What is tried again after a while. A turn of the core costs what is due, however much waits.

use std::collections::BTreeMap;

use policy::Nanos;

/// Before it is tried again for the first time: about as long as a batch of keys moves.
const FIRST_NS: Nanos = 5_000_000;
/// The time doubles up to this: a move may last for minutes, and nodes have other work.
const LAST_NS: Nanos = 320_000_000;

/// How long something waits that has been tried again so often.
pub(super) fn pause_ns(tries: u32) -> Nanos {
    LAST_NS.min(FIRST_NS << tries.min(16))
}

/// What waits, in the order in which it is due.
pub(super) struct Later<T> {
    waiting: BTreeMap<(Nanos, u64), T>,
    /// Numbers tell apart what is due at the same time.
    number: u64,
}

impl<T> Later<T> {
    pub(super) fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            number: 0,
        }
    }

    /// It is due at this time.
    pub(super) fn push(&mut self, at: Nanos, item: T) {
        self.waiting.insert((at, self.number), item);
        self.number += 1;
    }

    /// When the next is due; none: nothing waits.
    pub(super) fn next_at(&self) -> Option<Nanos> {
        self.waiting.keys().next().map(|(at, _)| *at)
    }

    /// One that is due by now.
    pub(super) fn due(&mut self, now: Nanos) -> Option<T> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_due_at_its_time_and_in_order() {
        let mut later = Later::new();
        assert_eq!((later.next_at(), later.due(9)), (None, None));
        for (at, item) in [(7, 'c'), (5, 'a'), (9, 'd'), (5, 'b')] {
            later.push(at, item);
        }
        assert_eq!((later.next_at(), later.due(4)), (Some(5), None));
        let due: Vec<char> = std::iter::from_fn(|| later.due(7)).collect();
        assert_eq!((due, later.next_at()), (vec!['a', 'b', 'c'], Some(9)));
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses_ms: Vec<u64> = (0..8).map(|tries| pause_ns(tries) / 1_000_000).collect();
        assert_eq!(pauses_ms, [5, 10, 20, 40, 80, 160, 320, 320]);
        assert_eq!(pause_ns(u32::MAX), LAST_NS);
    }
}
