//! A multi-level queue that many threads share (Rein 3.3).
//!
//! A priority queue is one hot spot: whoever puts something in or takes something out fights for its root. K
//! queues in order of arrival, served at rates, approximate it, and a thread meets another only in the
//! same level. Here each level is a lock-free queue, and *which* level is served next is no shared state at
//! all: every consumer walks the round of deficit round robin by itself, so the rates hold for each and
//! therefore for all. That leaves the queues' own atomics as the only shared ones: two read-modify-writes an
//! operation, one that claims a place and one that marks it as filled or emptied. Only the first is contended, by the
//! threads that are at the same end of the same level. (A ring of fixed size would need one; but there a
//! thread that is put to sleep between its claim and its mark stops all others of that level, and with more
//! threads than processors it lost to a locked heap.)
//!
//! A core of ours owns its queues and needs none of this ([`policy::multiget::Queue`]); it is for pools of threads
//! before one resource.

use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use policy::multiget::Levels;

/// Longest round: rates are scaled down to it.
const ROUND_MAX: u64 = 64;

/// K queues in order of arrival. Any thread may put items in; each that takes them out has a [`Consumer`].
#[derive(Debug)]
pub struct LevelQueue<T> {
    levels: Box<[CachePadded<SegQueue<T>>]>,
    /// The levels of one round, each as often as its rate says, as evenly spread as they can be.
    round: Box<[u8]>,
}

impl<T> LevelQueue<T> {
    /// Empty levels with these rates; rates above 64 in sum are scaled down, to at least one turn a round.
    #[must_use]
    pub fn new(levels: &Levels) -> Self {
        let rates: Vec<u64> = (0..levels.count())
            .map(|level| levels.rate(level))
            .collect();
        LevelQueue {
            levels: rates
                .iter()
                .map(|_| CachePadded::new(SegQueue::new()))
                .collect(),
            round: round(&rates),
        }
    }

    /// Puts an item into a level; one that does not exist is the last. There is no bound: whoever puts items in
    /// must hold back by other means (permits, [`LevelQueue::len`]).
    #[inline]
    pub fn push(&self, level: usize, item: T) {
        self.levels[level.min(self.levels.len() - 1)].push(item);
    }

    /// A new consumer. `number` (its thread's, say) makes consumers begin at different places of the round.
    #[must_use]
    pub fn consumer(&self, number: usize) -> Consumer<'_, T> {
        Consumer {
            queue: self,
            at: number % self.round.len(),
        }
    }

    /// Items in all levels; at once out of date if others use the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.levels.iter().map(|level| level.len()).sum()
    }

    /// Whether all levels are empty; at once out of date if others use the queue.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.is_empty())
    }
}

/// One consumer's walk through the rounds of a [`LevelQueue`].
#[derive(Debug)]
pub struct Consumer<'q, T> {
    queue: &'q LevelQueue<T>,
    at: usize,
}

impl<T> Consumer<'_, T> {
    /// The next item: of the level whose turn it is, or, if that is empty, of the fastest that is not.
    /// `None` if all levels were empty when they were looked at.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let turn = usize::from(self.queue.round[self.at]);
        self.at += 1;
        if self.at == self.queue.round.len() {
            self.at = 0;
        }
        // Looking costs two loads; trying to take from an empty level costs a fence.
        let take = |level: &CachePadded<SegQueue<T>>| match level.is_empty() {
            true => None,
            false => level.pop(),
        };
        let levels = &self.queue.levels;
        take(&levels[turn]).or_else(|| levels.iter().find_map(take))
    }
}

/// A round in which level i has about `rates[i]` turns, spread evenly: each turn goes to the level that is
/// furthest behind its rate.
fn round(rates: &[u64]) -> Box<[u8]> {
    let sum: u64 = rates.iter().fold(0, |sum, rate| sum.saturating_add(*rate));
    let scale = sum.div_ceil(ROUND_MAX).max(1);
    let turns: Vec<u64> = rates.iter().map(|rate| (rate / scale).max(1)).collect();
    let length: u64 = turns.iter().sum();
    let mut given = vec![0u64; turns.len()];
    let next = |step: u64| {
        let behind =
            |level: &usize| (turns[*level] * (step + 1)) as i64 - (given[*level] * length) as i64;
        // Of several, the fastest.
        let level = (0..turns.len()).rev().max_by_key(behind).unwrap_or(0);
        given[level] += 1;
        level as u8
    };
    (0..length).map(next).collect()
}
