//! A multi-level queue that many threads share (Rein 3.3).
//!
//! A priority queue is one hot spot: whoever puts something in or takes something out fights for
//! its root. K queues in order of arrival, served at rates, approximate it, and a thread meets
//! another only in the same level. Rein stops there; but a queue's two ends are hot spots too. So
//! here each thread has a *lane* of its own, with all levels in it, and puts items only there. It
//! takes from its lane too, but every sixteenth time it looks at the next of the others first, and
//! at all of them when its own is empty, so that nothing waits for a thread that is gone.
//!
//! *Which* level is served next is no shared state: every handle walks the round of deficit round
//! robin by itself, so the rates hold for each and therefore for all.
//!
//! A level of a lane is a work-stealing deque in order of arrival (Chase and Lev, SPAA 2005).
//! Putting in writes, and modifies nothing that others modify; taking from one's own lane is one
//! read-modify-write, of a word that a visitor modifies one time in sixteen at most. Nothing is
//! locked, so a thread that is put to sleep keeps nobody waiting.
//!
//! To find a deque empty takes a memory fence, and with more threads than processors most lanes are
//! empty. So each lane has one word that says which of its levels may have something. Only its
//! owner writes it, and only when a level begins or ceases to have items: whoever looks for work
//! reads one word a lane.
//!
//! The price: order of arrival holds in a level of a lane, for what one thread puts in, not between
//! threads.
//!
//! A core of ours owns its queues and needs none of this ([`policy::multiget::Queue`]).

use crossbeam_deque::{Steal, Stealer, Worker};
use policy::multiget::Levels;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};
use std::sync::{Mutex, PoisonError};

/// Longest round: rates are scaled down to it.
const ROUND_MAX: u64 = 64;
/// Every so many times an item is taken from another lane although one's own has some. With less,
/// what others put in and do not take out would wait long; with more, lanes would meet for nothing.
const VISIT_EVERY: usize = 16;

/// K queues in order of arrival. Each thread that puts items in or takes them out has a [`Handle`].
#[derive(Debug)]
pub(super) struct LevelQueue<T> {
    /// By lane: where visitors take.
    visited: Box<[Visited<T>]>,
    /// Lanes that no handle has.
    free: Mutex<Vec<Lane<T>>>,
    /// The levels of one round, each as often as its rate says, as evenly spread as they can be.
    round: Box<[u8]>,
}

/// What visitors see of a lane, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Visited<T> {
    /// Levels that may have items, a bit each; the others have none.
    filled: AtomicU32,
    levels: Box<[Stealer<T>]>,
}

/// What one thread puts in, by level.
#[derive(Debug)]
struct Lane<T> {
    number: usize,
    /// What visitors are told: [`Visited::filled`].
    filled: u32,
    levels: Box<[Worker<T>]>,
}

impl<T> LevelQueue<T> {
    /// Empty levels with these rates; rates above 64 in sum are scaled down, to at least one turn a
    /// round. `lanes` (at least 1): as many as threads will use it at a time.
    #[must_use]
    pub(super) fn new(levels: &Levels, lanes: usize) -> Self {
        let count = levels.count();
        let lane = |number| Lane {
            number,
            filled: 0,
            levels: (0..count).map(|_| Worker::new_fifo()).collect(),
        };
        let mut free: Vec<Lane<T>> = (0..lanes.max(1)).map(lane).collect();
        let visited = |lane: &Lane<T>| Visited {
            filled: AtomicU32::new(0),
            levels: lane.levels.iter().map(Worker::stealer).collect(),
        };
        let visited = free.iter().map(visited).collect();
        // The first handle has the first lane.
        free.reverse();
        LevelQueue {
            visited,
            free: Mutex::new(free),
            round: round(levels),
        }
    }

    /// A thread's way in and out, with a lane that it gives back when it is dropped; what it left
    /// there stays. `None`: all lanes are taken.
    #[must_use]
    pub(super) fn handle(&self) -> Option<Handle<'_, T>> {
        let lane = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()?;
        Some(Handle {
            queue: self,
            at: lane.number % self.round.len(),
            visits: lane.number,
            stays: 0,
            round: &self.round,
            lane,
        })
    }
}

/// One thread's lane of a [`LevelQueue`], and its walk through the rounds.
#[derive(Debug)]
pub(super) struct Handle<'q, T> {
    queue: &'q LevelQueue<T>,
    lane: Lane<T>,
    /// Of the queue; at hand here, because every item taken needs it.
    round: &'q [u8],
    at: usize,
    visits: usize,
    stays: usize,
}

impl<T> Drop for Handle<'_, T> {
    fn drop(&mut self) {
        let lane = Lane {
            number: self.lane.number,
            filled: self.lane.filled,
            levels: std::mem::take(&mut self.lane.levels),
        };
        let free = &self.queue.free;
        free.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(lane);
    }
}

impl<T> Handle<'_, T> {
    /// Puts an item into a level; one that does not exist is the last. There is no bound: whoever
    /// puts items in must hold back by other means (permits).
    #[inline]
    pub(super) fn push(&mut self, level: usize, item: T) {
        let level = level.min(self.lane.levels.len() - 1);
        // Said before it is true: a visitor may look for nothing, but never miss what was put in.
        if self.lane.filled & (1 << level) == 0 {
            self.tell(self.lane.filled | (1 << level));
        }
        self.lane.levels[level].push(item);
    }

    /// The next item: of the level whose turn it is, or, if that is empty, of the fastest that is
    /// not. `None` if all lanes were empty when they were looked at.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let turn = usize::from(self.round[self.at]);
        self.at += 1;
        if self.at == self.round.len() {
            self.at = 0;
        }
        self.stays += 1;
        if self.stays == VISIT_EVERY {
            self.stays = 0;
            let taken = self.visit(turn, &mut false);
            if taken.is_some() {
                return taken;
            }
        }
        self.own(turn).or_else(|| self.search(turn))
    }

    /// Tells visitors which levels of this lane may have items.
    #[inline]
    fn tell(&mut self, filled: u32) {
        self.lane.filled = filled;
        self.queue.visited[self.lane.number]
            .filled
            .store(filled, Release);
    }

    #[inline]
    fn own(&mut self, turn: usize) -> Option<T> {
        while let Some(level) = next(self.lane.filled, turn) {
            let taken = self.lane.levels[level].pop();
            if taken.is_some() {
                return taken;
            }
            self.tell(self.lane.filled & !(1 << level));
        }
        None
    }

    /// Takes from the next of the others' lanes.
    fn visit(&mut self, turn: usize, beaten: &mut bool) -> Option<T> {
        self.visits += 1;
        if self.visits == self.queue.visited.len() {
            self.visits = 0;
        }
        if self.visits == self.lane.number {
            return None;
        }
        let lane = &self.queue.visited[self.visits];
        let mut seen = lane.filled.load(Acquire);
        while let Some(level) = next(seen, turn) {
            match lane.levels[level].steal() {
                Steal::Success(item) => return Some(item),
                Steal::Retry => *beaten = true,
                Steal::Empty => {}
            }
            seen &= !(1 << level);
        }
        None
    }

    /// Takes from the others' lanes, where one's own is empty.
    #[cold]
    fn search(&mut self, turn: usize) -> Option<T> {
        loop {
            let mut beaten = false;
            for _ in 0..self.queue.visited.len() {
                let taken = self.visit(turn, &mut beaten);
                if taken.is_some() {
                    return taken;
                }
            }
            // A thread that was beaten saw an item that another took: there may be more behind it.
            if !beaten {
                return None;
            }
        }
    }
}

/// Of the levels with a bit in `filled` the one whose turn it is, or else the fastest. Whether it
/// has one is as good as a coin toss, so it is computed and not branched on.
#[inline]
fn next(filled: u32, turn: usize) -> Option<usize> {
    let this = filled & (1 << turn);
    let from = if this == 0 { filled } else { this };
    (from != 0).then(|| from.trailing_zeros() as usize)
}

/// A round in which each level has about as many turns as its rate says, spread evenly: each turn
/// goes to the level that is furthest behind its rate.
pub(super) fn round(levels: &Levels) -> Box<[u8]> {
    let rates: Vec<u64> = (0..levels.count())
        .map(|level| levels.rate(level))
        .collect();
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

#[cfg(test)]
mod tests;
