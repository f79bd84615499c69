//! What is to happen, in order of time.

use policy::Nanos;

const ARITY: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: Nanos,
    /// Number of the entry: what was planned first for a moment happens first, so a run is
    /// repeatable.
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    #[inline]
    fn before(&self, other: &Self) -> bool {
        (self.at, self.number) < (other.at, other.number)
    }
}

/// A queue of future events: a heap of four children a node (three levels hold 85 entries, six
/// 5,461), small enough to stay in the cache at the sizes that clusters have.
#[derive(Clone, Debug)]
pub struct Agenda<E> {
    heap: Vec<Entry<E>>,
    now: Nanos,
    planned: u64,
}

impl<E: Copy> Default for Agenda<E> {
    fn default() -> Self {
        Agenda {
            heap: Vec::new(),
            now: 0,
            planned: 0,
        }
    }
}

impl<E: Copy> Agenda<E> {
    /// The time of the last event taken.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Events planned so far.
    #[must_use]
    pub fn planned(&self) -> u64 {
        self.planned
    }

    /// Events to come.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is to come.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Plans an event in `delay_ns` from now.
    #[inline]
    pub fn after(&mut self, delay_ns: Nanos, event: E) {
        let entry = Entry {
            at: self.now.saturating_add(delay_ns),
            number: self.planned,
            event,
        };
        self.planned += 1;
        let mut at = self.heap.len();
        self.heap.push(entry);
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Takes the next event and moves to its time.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        let last = self.heap.pop()?;
        let Some(first) = self.heap.first().copied() else {
            self.now = last.at;
            return Some(last.event);
        };
        self.sink(last);
        self.now = first.at;
        Some(first.event)
    }

    /// Puts an entry in the place of the first.
    #[inline]
    fn sink(&mut self, entry: Entry<E>) {
        let len = self.heap.len();
        let mut at = 0;
        loop {
            let from = at * ARITY + 1;
            if from >= len {
                break;
            }
            let mut least = from;
            for child in from + 1..(from + ARITY).min(len) {
                if self.heap[child].before(&self.heap[least]) {
                    least = child;
                }
            }
            if !self.heap[least].before(&entry) {
                break;
            }
            self.heap[at] = self.heap[least];
            at = least;
        }
        self.heap[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a sorted list: by time, and in order of planning within a moment.
        #[test]
        fn agrees_with_a_sorted_model(steps in prop::collection::vec(prop::option::weighted(0.6, 0u64..20), 1..400)) {
            let mut agenda = Agenda::default();
            let mut model = std::collections::BTreeSet::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Some(delay) => {
                        model.insert((agenda.now() + delay, number));
                        agenda.after(delay, number);
                    }
                    None => {
                        let first = model.pop_first();
                        prop_assert_eq!(agenda.pop(), first.map(|(_, number)| number));
                        prop_assert!(first.is_none_or(|(at, _)| at == agenda.now()));
                    }
                }
                prop_assert_eq!(agenda.len(), model.len());
            }
        }
    }
}
