//! A queue in which small work passes large work of the same tenant.
//!
//! Rein's levels (3.3.2) where nobody chooses them for one application: sizes double from one level
//! to the next and rates are 16, 15, … 1. So a queue needs to be told nothing of the requests that
//! it will get. It has nothing to learn, the same size is always in the same level, and a queue of
//! which all work is of one size is a plain one. Levels that are tuned ([`super::Tuner`]) would
//! shorten the mean wait by some percent more (a test says how many).
//!
//! What a turn of a level takes is known when it is over. Until then the mean of its last ones is
//! set aside, as it is for tenants, so that the turns of a level do not all begin at once.

use super::deficit::Deficit;
use super::levels::LEVELS_MAX;
use crate::cost::Nanos;

/// The level of work of this size, 0 for the smallest: sizes double from one to the next. The unit
/// is the caller's, and everything whose size is 1 is alike.
#[must_use]
pub fn level_of(size: u64) -> u8 {
    size.max(1).ilog2().min(LEVELS_MAX as u32 - 1) as u8
}

/// A mean is over about so many turns.
const TURNS: Nanos = 8;

/// A turn that a level was given, to be settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelTurn {
    level: u8,
    aside_ns: Nanos,
}

/// First in, first out for each level; levels by deficit round robin.
#[derive(Clone, Debug)]
pub(crate) struct Leveled<E> {
    /// As many as have been needed: most queues have one.
    levels: Deficit<E>,
    /// What a turn of each takes.
    means_ns: Vec<Nanos>,
    len: usize,
    /// Turns that are not settled.
    out: usize,
}

impl<E> Leveled<E> {
    pub(crate) fn new() -> Self {
        Leveled {
            levels: Deficit::empty(),
            means_ns: Vec::new(),
            len: 0,
            out: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues an entry in its level, the last if there is no such.
    pub(crate) fn push(&mut self, level: u8, entry: E) {
        let level = usize::from(level).min(LEVELS_MAX - 1);
        while self.means_ns.len() <= level {
            // K, K-1, … 1 (Rein 3.3.2).
            self.levels
                .add_level((LEVELS_MAX - self.means_ns.len()) as u64);
            self.means_ns.push(0);
        }
        if self.len == 0 && self.out == 0 {
            self.levels.forget();
        }
        self.levels.push(level, entry);
        self.len += 1;
    }

    /// Takes the entry whose level is next.
    pub(crate) fn pop(&mut self) -> Option<(E, LevelTurn)> {
        let (level, entry) = self.levels.pop()?;
        Some((entry, self.begin(level)))
    }

    /// Takes the entry that is the least by `key`, which grows within each level. It is no turn of
    /// its level.
    pub(crate) fn pop_least(&mut self, key: impl Fn(&E) -> u64) -> Option<E> {
        let (level, _) = self.levels.heads().min_by_key(|(_, entry)| key(entry))?;
        self.len -= 1;
        self.levels.take(level)
    }

    /// Takes the first entry of which `is` holds.
    pub(crate) fn pop_where(&mut self, is: impl Fn(&E) -> bool) -> Option<(E, LevelTurn)> {
        let (level, entry) = self.levels.take_where(is)?;
        Some((entry, self.begin(level)))
    }

    fn begin(&mut self, level: usize) -> LevelTurn {
        self.len -= 1;
        self.out += 1;
        let aside_ns = self.means_ns[level];
        self.levels.charge(level, aside_ns);
        LevelTurn {
            level: level as u8,
            aside_ns,
        }
    }

    /// A turn is over, which took so long. It may have been another queue's that was in this
    /// place: then its level may not be here.
    pub(crate) fn settle(&mut self, turn: LevelTurn, used_ns: Nanos) {
        self.out = self.out.saturating_sub(1);
        let level = usize::from(turn.level);
        if self.means_ns.len() < 2 || level >= self.means_ns.len() {
            return;
        }
        let mean = &mut self.means_ns[level];
        *mean = match *mean {
            0 => used_ns,
            mean => mean - mean / TURNS + used_ns / TURNS,
        };
        match used_ns.checked_sub(turn.aside_ns) {
            Some(more) => self.levels.charge(level, more),
            None => self.levels.refund(level, turn.aside_ns - used_ns),
        }
    }

    /// The oldest entry of each level that has any.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &E> {
        self.levels.heads().map(|(_, entry)| entry)
    }

    /// All entries, in no order across levels.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &E> {
        self.levels.entries()
    }

    /// Takes all entries, in no order across levels.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = E> + '_ {
        self.len = 0;
        self.levels.drain()
    }
}
