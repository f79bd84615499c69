//! Exact order by priority, with the oldest entry at hand.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A priority queue that can also give its oldest entry. Equal priorities keep arrival order.
#[derive(Clone, Debug)]
pub(super) struct Ranked<E> {
    /// (priority, number of arrival), smallest first.
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    /// (priority, entry) by arrival; an entry that was taken leaves a gap. The first is never a
    /// gap.
    entries: VecDeque<(u64, Option<E>)>,
    /// Number of the arrival at the front of `entries`.
    first: u64,
    len: usize,
}

/// Gaps that are left alone whatever the number of entries.
const GAPS_MAX: usize = 64;

impl<E> Ranked<E> {
    pub(super) fn new() -> Self {
        Ranked {
            heap: BinaryHeap::new(),
            entries: VecDeque::new(),
            first: 0,
            len: 0,
        }
    }

    pub(super) fn push(&mut self, priority: u64, entry: E) {
        let number = self.first + self.entries.len() as u64;
        self.entries.push_back((priority, Some(entry)));
        self.heap.push(Reverse((priority, number)));
        self.len += 1;
    }

    pub(super) fn pop(&mut self) -> Option<E> {
        while let Some(Reverse((_, number))) = self.heap.pop() {
            // What was taken as the oldest is still in the heap: before the front, or as a gap.
            let at = number.checked_sub(self.first);
            let entry = at.and_then(|at| self.entries.get_mut(at as usize)?.1.take());
            if entry.is_some() {
                self.taken();
                return entry;
            }
        }
        None
    }

    pub(super) fn oldest(&self) -> Option<&E> {
        self.entries.front().and_then(|(_, entry)| entry.as_ref())
    }

    pub(super) fn pop_oldest(&mut self) -> Option<E> {
        let entry = self.entries.front_mut()?.1.take();
        self.taken();
        entry
    }

    fn taken(&mut self) {
        self.len -= 1;
        while let Some((_, None)) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
        }
        if self.len == 0 {
            self.heap.clear();
        } else if self.entries.len() > 2 * self.len + GAPS_MAX {
            self.close_gaps();
        }
    }

    /// One entry that nobody takes for long must not keep the places of all that came after it. At
    /// least half of them are gaps, so each entry pays for one step.
    fn close_gaps(&mut self) {
        self.entries.retain(|(_, entry)| entry.is_some());
        let numbered = self.entries.iter().zip(self.first..);
        self.heap = numbered
            .map(|((priority, _), number)| Reverse((*priority, number)))
            .collect();
    }
}
