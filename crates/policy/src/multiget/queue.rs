//! The queue of a server (of one tenant at a server): follows the tags of operations.

use super::deficit::Deficit;
use super::levels::{Levels, LEVELS_MAX};
use super::ranked::Ranked;
use super::tag::Tag;
use crate::cost::Nanos;
use std::collections::VecDeque;

/// Which rule a queue follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they come.
    Arrival,
    /// Smallest priority first.
    Exact,
    /// By level, levels served by deficit round robin.
    Levels,
}

/// How a queue is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// The rule.
    pub order: Order,
    /// Thresholds and rates; [`Order::Levels`] serves by them, the others only count by them.
    pub levels: Levels,
    /// An operation that has waited longer is boosted: it goes as soon as no other boosted one has
    /// gone just before it, so that even under overload half of all turns keep the order (Rein
    /// 3.2.1 boosts "after a certain duration"). `None`: no guard; levels do not starve even so,
    /// exact order may.
    pub guard_ns: Option<Nanos>,
}

/// An operation that is to be served now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<T> {
    /// The item.
    pub item: T,
    /// How long it was queued.
    pub waited_ns: Nanos,
    /// Whether it goes because of the guard.
    pub boosted: bool,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    item: T,
    since: Nanos,
    cost: u64,
    level: u8,
}

#[derive(Clone, Debug)]
enum Inner<T> {
    Arrival(VecDeque<Entry<T>>),
    Exact(Ranked<Entry<T>>),
    Levels(Deficit<Entry<T>>),
}

/// Operations that wait for one server.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    inner: Inner<T>,
    levels: Levels,
    guard_ns: Nanos,
    boosted_last: bool,
    len: usize,
    /// Cost of what is queued, by level.
    backlog: [u64; LEVELS_MAX],
}

impl<T> Queue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let inner = match options.order {
            Order::Arrival => Inner::Arrival(VecDeque::new()),
            Order::Exact => Inner::Exact(Ranked::new()),
            Order::Levels => Inner::Levels(Deficit::new(&options.levels)),
        };
        Queue {
            inner,
            levels: options.levels,
            guard_ns: options.guard_ns.unwrap_or(Nanos::MAX),
            boosted_last: false,
            len: 0,
            backlog: [0; LEVELS_MAX],
        }
    }

    /// Queues an operation that is expected to cost `cost` (0 counts as 1). A level that does not
    /// exist is the last one.
    pub fn push(&mut self, now: Nanos, tag: Tag, cost: u64, item: T) {
        let level = usize::from(tag.level).min(self.levels.count() - 1);
        let cost = cost.max(1);
        let entry = Entry {
            item,
            since: now,
            cost,
            level: level as u8,
        };
        if let (0, Inner::Levels(deficit)) = (self.len, &mut self.inner) {
            deficit.forget();
        }
        self.len += 1;
        self.backlog[level] += cost;
        match &mut self.inner {
            Inner::Arrival(queue) => queue.push_back(entry),
            Inner::Exact(ranked) => ranked.push(tag.priority, entry),
            Inner::Levels(deficit) => deficit.push(level, entry),
        }
    }

    /// Takes the operation that goes next.
    pub fn pop(&mut self, now: Nanos) -> Option<Taken<T>> {
        let boosted = !self.boosted_last && self.overdue(now).is_some();
        let entry = match (&mut self.inner, boosted) {
            (Inner::Arrival(queue), _) => queue.pop_front(),
            (Inner::Exact(ranked), true) => ranked.pop_oldest(),
            (Inner::Exact(ranked), false) => ranked.pop(),
            (Inner::Levels(deficit), boosted) => {
                let (level, entry) = match boosted {
                    true => {
                        let oldest = deficit.heads().min_by_key(|(_, entry)| entry.since);
                        let (level, _) = oldest?;
                        (level, deficit.take(level)?)
                    }
                    false => deficit.pop()?,
                };
                deficit.charge(level, entry.cost);
                Some(entry)
            }
        }?;
        self.boosted_last = boosted;
        self.len -= 1;
        let level = usize::from(entry.level).min(self.levels.count() - 1);
        let backlog = &mut self.backlog[level];
        *backlog = backlog.saturating_sub(entry.cost);
        Some(Taken {
            waited_ns: now.saturating_sub(entry.since),
            item: entry.item,
            boosted,
        })
    }

    /// How long the oldest has waited beyond the guard, if it has.
    fn overdue(&self, now: Nanos) -> Option<Nanos> {
        let since = match &self.inner {
            Inner::Arrival(_) => return None,
            Inner::Exact(ranked) => ranked.oldest()?.since,
            Inner::Levels(deficit) => deficit.heads().map(|(_, entry)| entry.since).min()?,
        };
        now.saturating_sub(since).checked_sub(self.guard_ns)
    }

    /// Other levels from now on; what is queued stays in the level it has.
    pub fn set_levels(&mut self, levels: Levels) {
        let last = levels.count() - 1;
        for level in last + 1..LEVELS_MAX {
            self.backlog[last] += std::mem::take(&mut self.backlog[level]);
        }
        if let Inner::Levels(deficit) = &mut self.inner {
            deficit.set_levels(&levels);
        }
        self.levels = levels;
    }

    /// Operations queued.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Cost of what is queued in `level` and in the faster ones: what a server sends back with
    /// replies, so that senders know what an operation of that level will find ahead of it.
    #[must_use]
    pub fn backlog_up_to(&self, level: usize) -> u64 {
        self.backlog[..=level.min(LEVELS_MAX - 1)].iter().sum()
    }
}
