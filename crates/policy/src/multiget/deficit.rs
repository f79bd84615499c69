//! Levels served by deficit round robin (Rein 3.3.2; Shreedhar and Varghese, 1996).

use super::levels::Levels;
use std::collections::VecDeque;

/// One first-in-first-out queue for each level.
#[derive(Clone, Debug)]
pub(super) struct Deficit<E> {
    queues: Vec<VecDeque<(u64, E)>>,
    /// What a level may still serve in its visit, as a cost.
    deficits: Vec<u64>,
    rates: Vec<u64>,
    /// Cost that a rate of 1 stands for in a visit: the mean cost of what was queued, so that a visit of
    /// the slowest level serves about one operation.
    unit: u64,
    visiting: usize,
    /// Whether the level that is visited has had its rate in this visit.
    granted: bool,
}

impl<E> Deficit<E> {
    pub(super) fn new(levels: &Levels) -> Self {
        let count = levels.count();
        Deficit {
            queues: (0..count).map(|_| VecDeque::new()).collect(),
            deficits: vec![0; count],
            rates: (0..count).map(|level| levels.rate(level)).collect(),
            unit: 1,
            visiting: 0,
            granted: false,
        }
    }

    /// Other levels from now on. Queued entries keep their level, or go to the last if it is gone.
    pub(super) fn set_levels(&mut self, levels: &Levels) {
        let mut new = Deficit::new(levels);
        let last = levels.count() - 1;
        for (level, queue) in self.queues.drain(..).enumerate() {
            new.queues[level.min(last)].extend(queue);
        }
        new.unit = self.unit;
        *self = new;
    }

    pub(super) fn push(&mut self, level: usize, cost: u64, entry: E) {
        let cost = cost.max(1);
        // An average over about 16 operations; it only has to have the right size.
        self.unit = (self.unit.saturating_mul(15).saturating_add(cost)).div_ceil(16);
        self.queues[level.min(self.rates.len() - 1)].push_back((cost, entry));
    }

    /// The next entry by deficit round robin.
    pub(super) fn pop(&mut self) -> Option<E> {
        if self.queues.iter().all(VecDeque::is_empty) {
            return None;
        }
        for _ in 0..=self.queues.len() {
            if let Some(entry) = self.visit() {
                return Some(entry);
            }
        }
        // Everybody's first is dearer than a visit's worth. Rounds in which nobody could go pass in one step.
        let rounds = (0..self.queues.len()).filter_map(|level| {
            let (cost, _) = self.queues[level].front()?;
            let worth = self.worth(level);
            Some(cost.saturating_sub(self.deficits[level]).div_ceil(worth))
        });
        let rounds = rounds.min().unwrap_or(0).saturating_sub(1);
        for level in 0..self.queues.len() {
            if !self.queues[level].is_empty() {
                let gained = self.worth(level).saturating_mul(rounds);
                self.deficits[level] = self.deficits[level].saturating_add(gained);
            }
        }
        for _ in 0..=self.queues.len() {
            if let Some(entry) = self.visit() {
                return Some(entry);
            }
        }
        None
    }

    fn worth(&self, level: usize) -> u64 {
        self.rates[level].saturating_mul(self.unit).max(1)
    }

    /// Serves the level that is visited, or goes on to the next.
    fn visit(&mut self) -> Option<E> {
        let level = self.visiting;
        if let Some((cost, _)) = self.queues[level].front() {
            let cost = *cost;
            if !self.granted {
                self.granted = true;
                self.deficits[level] = self.deficits[level].saturating_add(self.worth(level));
            }
            if cost <= self.deficits[level] {
                self.deficits[level] -= cost;
                return self.take(level);
            }
        } else {
            self.deficits[level] = 0;
        }
        self.visiting = (level + 1) % self.queues.len();
        self.granted = false;
        None
    }

    /// The oldest entry of a level, outside of its turn.
    pub(super) fn take(&mut self, level: usize) -> Option<E> {
        self.queues[level].pop_front().map(|(_, entry)| entry)
    }

    /// The levels that have entries, each with its oldest.
    pub(super) fn heads(&self) -> impl Iterator<Item = (usize, &E)> {
        let heads = self.queues.iter().enumerate();
        heads.filter_map(|(level, queue)| Some((level, &queue.front()?.1)))
    }
}
