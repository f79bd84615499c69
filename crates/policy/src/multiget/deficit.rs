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
    queue: VecDeque<E>,
    rate: u64,
    /// Cost served so far, over the rate, in units of 1/[`UNIT`].
    service: u128,
}

/// A rate of 2^40 still moves a level by more than nothing for an operation of cost 1.
const UNIT: u128 = 1 << 44;

impl<E> Level<E> {
    fn distance(&self, cost: u64) -> u128 {
        u128::from(cost) * UNIT / u128::from(self.rate)
    }
}

impl<E> Deficit<E> {
    /// Without a level yet.
    pub(super) fn empty() -> Self {
        Deficit {
            levels: Vec::new(),
            now: 0,
        }
    }

    pub(super) fn new(levels: &Levels) -> Self {
        let mut new = Deficit::empty();
        (0..levels.count()).for_each(|level| new.add_level(levels.rate(level)));
        new
    }

    /// One more level, the last.
    pub(super) fn add_level(&mut self, rate: u64) {
        self.levels.push(Level {
            queue: VecDeque::new(),
            rate: rate.max(1),
            service: self.now,
        });
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

    /// REQUIRES: nothing waits. What levels had is forgotten: it delayed others that have been
    /// served since.
    pub(super) fn forget(&mut self) {
        for level in &mut self.levels {
            level.service = self.now;
        }
    }

    pub(super) fn push(&mut self, level: usize, entry: E) {
        let level = &mut self.levels[level];
        if level.queue.is_empty() {
            // What a level did not use while it had nothing is lost, as in any round robin.
            level.service = level.service.max(self.now);
        }
        level.queue.push_back(entry);
    }

    /// The next entry and its level, which is to be charged: the one with the least service; of
    /// several, the fastest.
    pub(super) fn pop(&mut self) -> Option<(usize, E)> {
        let levels = self.levels.iter().enumerate();
        let waiting = levels.filter(|(_, level)| !level.queue.is_empty());
        let (level, _) = waiting.min_by_key(|(_, level)| level.service)?;
        self.now = self.levels[level].service;
        Some((level, self.take(level)?))
    }

    /// The oldest entry of a level, outside of its turn. It is charged as if it were in it, so that
    /// the level has no more than its rate (Rein algorithm 1) as long as that is more than what it
    /// has outside of its turns.
    pub(super) fn take(&mut self, level: usize) -> Option<E> {
        self.levels[level].queue.pop_front()
    }

    /// The first entry of which `is` holds, outside of its turn, and its level.
    pub(super) fn take_where(&mut self, is: impl Fn(&E) -> bool) -> Option<(usize, E)> {
        let mut levels = self.levels.iter_mut().enumerate();
        levels.find_map(|(level, of)| {
            let at = of.queue.iter().position(&is)?;
            Some((level, of.queue.remove(at)?))
        })
    }

    /// A level has been served so much.
    pub(super) fn charge(&mut self, level: usize, cost: u64) {
        let level = &mut self.levels[level];
        level.service += level.distance(cost);
    }

    /// A level was charged so much too much.
    pub(super) fn refund(&mut self, level: usize, cost: u64) {
        let level = &mut self.levels[level];
        level.service = level.service.saturating_sub(level.distance(cost));
    }

    /// The levels that have entries, each with its oldest.
    pub(super) fn heads(&self) -> impl Iterator<Item = (usize, &E)> {
        let heads = self.levels.iter().enumerate();
        heads.filter_map(|(level, at)| Some((level, at.queue.front()?)))
    }

    /// All entries, level by level.
    pub(super) fn entries(&self) -> impl Iterator<Item = &E> {
        self.levels.iter().flat_map(|level| &level.queue)
    }

    /// Takes all entries, level by level.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = E> + '_ {
        self.levels
            .iter_mut()
            .flat_map(|level| level.queue.drain(..))
    }
}
