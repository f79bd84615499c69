//! A multi-level queue that many threads share (Rein 3.3).
//!
//! A priority queue is one hot spot: whoever puts something in or takes something out fights for its root. K
//! queues in order of arrival, served at rates, approximate it, and a thread meets another only in the
//! same level. Rein stops there; but a queue's two ends are hot spots too, and with more levels than items a
//! consumer looks at all of them. So here each thread has a *lane* of its own, with all levels in it, and puts items only
//! there. It takes from its lane too, but every eighth time, and whenever its lane is empty, from the others' in
//! turn, so that nothing waits for a thread that is gone.
//!
//! *Which* level is served next is no shared state: every handle walks the round of deficit round robin by
//! itself, so the rates hold for each and therefore for all. A lane's lock is the only shared atomic: two
//! read-modify-writes an operation, uncontended but for visitors, that is one operation in sixteen while lanes have
//! items. Visitors never wait for a lane: one whose owner was put to sleep in it is passed over, which is what costs lock-free
//! rings their speed when there are more threads than processors.
//!
//! The price: order of arrival holds in a level of a lane, for what one thread puts in, not between threads.
//!
//! A core of ours owns its queues and needs none of this ([`policy::multiget::Queue`]); it is for pools of threads
//! before one resource.

use crossbeam_utils::CachePadded;
use policy::multiget::Levels;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Longest round: rates are scaled down to it.
const ROUND_MAX: u64 = 64;
/// Every so many times an item is taken from another lane although one's own has some. With less, what others put in
/// and do not take out would wait long; with more, lanes would meet for nothing.
const VISIT_EVERY: usize = 8;

/// K queues in order of arrival. Each thread that puts items in or takes them out has a [`Handle`].
#[derive(Debug)]
pub struct LevelQueue<T> {
    lanes: Box<[CachePadded<Lane<T>>]>,
    /// The levels of one round, each as often as its rate says, as evenly spread as they can be.
    round: Box<[u8]>,
    levels: usize,
}

/// What one thread puts in.
#[derive(Debug)]
struct Lane<T> {
    /// Items in it, written by who holds the lock.
    len: AtomicUsize,
    levels: Mutex<Inside<T>>,
}

#[derive(Debug)]
struct Inside<T> {
    levels: Box<[VecDeque<T>]>,
    /// Bit i: level i has items.
    occupied: u32,
    len: usize,
}

impl<T> Inside<T> {
    fn push(&mut self, level: usize, item: T) {
        self.levels[level].push_back(item);
        self.occupied |= 1 << level;
        self.len += 1;
    }

    /// The next item of level `turn` or, if that is empty, of the fastest that is not.
    fn pop(&mut self, turn: usize) -> Option<T> {
        let level = match self.occupied & 1 << turn {
            0 if self.occupied == 0 => return None,
            0 => self.occupied.trailing_zeros() as usize,
            _ => turn,
        };
        let queue = &mut self.levels[level];
        let item = queue.pop_front();
        if queue.is_empty() {
            self.occupied &= !(1 << level);
        }
        self.len -= 1;
        item
    }
}

impl<T> LevelQueue<T> {
    /// Empty levels with these rates; rates above 64 in sum are scaled down, to at least one turn a round. `lanes` (at
    /// least 1): as many as threads will use it.
    #[must_use]
    pub fn new(levels: &Levels, lanes: usize) -> Self {
        let count = levels.count();
        let rates: Vec<u64> = (0..count).map(|level| levels.rate(level)).collect();
        let lane = |_| {
            CachePadded::new(Lane {
                len: AtomicUsize::new(0),
                levels: Mutex::new(Inside {
                    levels: (0..count).map(|_| VecDeque::new()).collect(),
                    occupied: 0,
                    len: 0,
                }),
            })
        };
        LevelQueue {
            lanes: (0..lanes.max(1)).map(lane).collect(),
            round: round(&rates),
            levels: count,
        }
    }

    /// A thread's way in and out. `number` (its thread's, say) chooses its lane and where in the round it begins.
    #[must_use]
    pub fn handle(&self, number: usize) -> Handle<'_, T> {
        Handle {
            queue: self,
            home: number % self.lanes.len(),
            at: number % self.round.len(),
            visits: number,
            stays: 0,
        }
    }

    /// Items in all levels; at once out of date if others use the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        let lens = self
            .lanes
            .iter()
            .map(|lane| lane.len.load(Ordering::Relaxed));
        lens.sum()
    }

    /// Whether all levels are empty; at once out of date if others use the queue.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One thread's lane of a [`LevelQueue`], and its walk through the rounds.
#[derive(Debug)]
pub struct Handle<'q, T> {
    queue: &'q LevelQueue<T>,
    home: usize,
    at: usize,
    visits: usize,
    stays: usize,
}

impl<T> Handle<'_, T> {
    /// Puts an item into a level; one that does not exist is the last. There is no bound: whoever puts items in
    /// must hold back by other means (permits, [`LevelQueue::len`]).
    #[inline]
    pub fn push(&mut self, level: usize, item: T) {
        let lane = &self.queue.lanes[self.home];
        let mut inside = lane.levels.lock().unwrap_or_else(PoisonError::into_inner);
        inside.push(level.min(self.queue.levels - 1), item);
        lane.len.store(inside.len, Ordering::Relaxed);
    }

    /// The next item: of the level whose turn it is, or, if that is empty, of the fastest that is not.
    /// `None` if all lanes were empty when they were looked at.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let turn = usize::from(self.queue.round[self.at]);
        self.at += 1;
        if self.at == self.queue.round.len() {
            self.at = 0;
        }
        self.stays += 1;
        if self.stays < VISIT_EVERY {
            if let Ok(item) = self.take(self.home, turn) {
                return Some(item);
            }
        }
        self.visit(turn)
    }

    /// Takes from the others in turn, the own lane last.
    fn visit(&mut self, turn: usize) -> Option<T> {
        self.stays = 0;
        loop {
            let mut busy = false;
            for _ in 0..self.queue.lanes.len() {
                self.visits = self.visits.wrapping_add(1);
                match self.take(self.visits % self.queue.lanes.len(), turn) {
                    Ok(item) => return Some(item),
                    Err(Miss::Busy) => busy = true,
                    Err(Miss::Empty) => {}
                }
            }
            if !busy {
                return None;
            }
            // Somebody is in the only lanes that have anything: it may be one who waits for this processor.
            std::thread::yield_now();
        }
    }

    fn take(&self, lane: usize, turn: usize) -> Result<T, Miss> {
        let lane = &self.queue.lanes[lane];
        if lane.len.load(Ordering::Relaxed) == 0 {
            return Err(Miss::Empty);
        }
        let mut inside: MutexGuard<'_, Inside<T>> = match lane.levels.try_lock() {
            Ok(inside) => inside,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(Miss::Busy),
        };
        let item = inside.pop(turn).ok_or(Miss::Empty)?;
        lane.len.store(inside.len, Ordering::Relaxed);
        Ok(item)
    }
}

/// Why a lane gave nothing.
enum Miss {
    Empty,
    Busy,
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
