//! Levels served at rates: deficit round robin (Rein 3.3.2; Shreedhar and Varghese, 1996) in
//! virtual time.
//!
//! In a round that visits each level in turn, the slow ones are a nuisance: with rates of 4^7 to 1
//! a visit of the second lasts 4,096 operations, and an operation that comes to the first level
//! meanwhile waits until it ends. So, as for tenants (`fairness::sfq`), each level carries its
//! service divided by its rate, and the least goes first: the same shares of every round, spread as
//! evenly as they can be.

use super::levels::Levels;
use std::collections::VecDeque;

/// One first-in-first-out queue for each level.
#[derive(Clone, Debug)]
pub(super) struct Deficit<E> {
    levels: Vec<Level<E>>,
    /// Where the level that was served last began.
    now: u128,
}

#[derive(Clone, Debug)]
struct Level<E> {
    queue: VecDeque<(u64, E)>,
    rate: u64,
    /// Cost served so far, over the rate, in units of 1/[`UNIT`].
    service: u128,
}

impl<E> Level<E> {
    fn pop(&mut self) -> Option<E> {
        let (cost, entry) = self.queue.pop_front()?;
        self.service += u128::from(cost) * UNIT / u128::from(self.rate);
        Some(entry)
    }
}

/// A rate of 2^40 still moves a level by more than nothing for an operation of cost 1.
const UNIT: u128 = 1 << 44;

impl<E> Deficit<E> {
    pub(super) fn new(levels: &Levels) -> Self {
        let level = |level| Level {
            queue: VecDeque::new(),
            rate: levels.rate(level).max(1),
            service: 0,
        };
        Deficit {
            levels: (0..levels.count()).map(level).collect(),
            now: 0,
        }
    }

    /// Other levels from now on. Queued entries keep their level, or go to the last if it is gone.
    pub(super) fn set_levels(&mut self, levels: &Levels) {
        let mut new = Deficit::new(levels);
        let last = levels.count() - 1;
        for (level, old) in self.levels.drain(..).enumerate() {
            new.levels[level.min(last)].queue.extend(old.queue);
        }
        *self = new;
    }

    pub(super) fn push(&mut self, level: usize, cost: u64, entry: E) {
        if self.levels.iter().all(|level| level.queue.is_empty()) {
            // What a level had outside of its turns delayed others that have been served since.
            for level in &mut self.levels {
                level.service = self.now;
            }
        }
        let level = &mut self.levels[level];
        if level.queue.is_empty() {
            // What a level did not use while it had nothing is lost, as in any round robin.
            level.service = level.service.max(self.now);
        }
        level.queue.push_back((cost, entry));
    }

    /// The next entry: of the level with the least service; of several, of the fastest.
    pub(super) fn pop(&mut self) -> Option<E> {
        let waiting = self
            .levels
            .iter_mut()
            .filter(|level| !level.queue.is_empty());
        let level = waiting.min_by_key(|level| level.service)?;
        self.now = level.service;
        level.pop()
    }

    /// The oldest entry of a level, outside of its turn. It counts as if it were in it, so that the
    /// level has no more than its rate (Rein algorithm 1) as long as that is more than what it has
    /// outside of its turns.
    pub(super) fn take(&mut self, level: usize) -> Option<E> {
        self.levels[level].pop()
    }

    /// The levels that have entries, each with its oldest.
    pub(super) fn heads(&self) -> impl Iterator<Item = (usize, &E)> {
        let heads = self.levels.iter().enumerate();
        heads.filter_map(|(level, at)| Some((level, &at.queue.front()?.1)))
    }
}
