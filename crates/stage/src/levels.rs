//! A multi-level queue that many threads share (Rein 3.3).
//!
//! A priority queue is one hot spot: whoever puts something in or takes something out fights for its root. K
//! queues in order of arrival, served at rates, approximate it, and a thread meets another only in the
//! same level. Rein stops there; but a queue's two ends are hot spots too. So here each thread has a *lane* of its own,
//! with all levels in it, and puts items only there. It takes from its lane too, but every eighth time, and
//! whenever its lane is empty, from the others' in turn, so that nothing waits for a thread that is gone.
//!
//! *Which* level is served next is no shared state: every handle walks the round of deficit round robin by
//! itself, so the rates hold for each and therefore for all.
//!
//! A level of a lane is a work-stealing deque in order of arrival (Chase and Lev, SPAA 2005). Putting in writes, and
//! modifies nothing that others modify; taking from one's own lane is one read-modify-write, of a word that a visitor
//! modifies one time in eight at most. Nothing is locked, so a thread that is put to sleep keeps nobody waiting.
//!
//! The price: order of arrival holds in a level of a lane, for what one thread puts in, not between threads.
//!
//! A core of ours owns its queues and needs none of this ([`policy::multiget::Queue`]); it is for pools of threads
//! before one resource.

use crossbeam_deque::{Steal, Stealer, Worker};
use policy::multiget::Levels;
use std::sync::{Mutex, PoisonError};

/// Longest round: rates are scaled down to it.
const ROUND_MAX: u64 = 64;
/// Every so many times an item is taken from another lane although one's own has some. With less, what others put in
/// and do not take out would wait long; with more, lanes would meet for nothing.
const VISIT_EVERY: usize = 8;

/// K queues in order of arrival. Each thread that puts items in or takes them out has a [`Handle`].
#[derive(Debug)]
pub struct LevelQueue<T> {
    /// By lane and level: where visitors take.
    visited: Box<[Box<[Stealer<T>]>]>,
    /// Lanes that no handle has.
    free: Mutex<Vec<Lane<T>>>,
    /// The levels of one round, each as often as its rate says, as evenly spread as they can be.
    round: Box<[u8]>,
}

/// What one thread puts in, by level.
#[derive(Debug)]
struct Lane<T> {
    number: usize,
    levels: Box<[Worker<T>]>,
}

impl<T> LevelQueue<T> {
    /// Empty levels with these rates; rates above 64 in sum are scaled down, to at least one turn a round. `lanes` (at
    /// least 1): as many as threads will use it at a time.
    #[must_use]
    pub fn new(levels: &Levels, lanes: usize) -> Self {
        let count = levels.count();
        let rates: Vec<u64> = (0..count).map(|level| levels.rate(level)).collect();
        let lane = |number| Lane {
            number,
            levels: (0..count).map(|_| Worker::new_fifo()).collect(),
        };
        let mut free: Vec<Lane<T>> = (0..lanes.max(1)).map(lane).collect();
        let visited = |lane: &Lane<T>| lane.levels.iter().map(Worker::stealer).collect();
        let visited = free.iter().map(visited).collect();
        // The first handle has the first lane.
        free.reverse();
        LevelQueue {
            visited,
            free: Mutex::new(free),
            round: round(&rates),
        }
    }

    /// A thread's way in and out, with a lane that it gives back when it is dropped; what it left there stays.
    /// `None`: all lanes are taken.
    #[must_use]
    pub fn handle(&self) -> Option<Handle<'_, T>> {
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
            lane,
        })
    }

    /// Items in all levels; at once out of date if others use the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.visited.iter().flatten().map(Stealer::len).sum()
    }

    /// Whether all levels are empty; at once out of date if others use the queue.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.visited.iter().flatten().all(Stealer::is_empty)
    }
}

/// One thread's lane of a [`LevelQueue`], and its walk through the rounds.
#[derive(Debug)]
pub struct Handle<'q, T> {
    queue: &'q LevelQueue<T>,
    lane: Lane<T>,
    at: usize,
    visits: usize,
    stays: usize,
}

impl<T> Drop for Handle<'_, T> {
    fn drop(&mut self) {
        let lane = Lane {
            number: self.lane.number,
            levels: std::mem::take(&mut self.lane.levels),
        };
        let free = &self.queue.free;
        free.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(lane);
    }
}

impl<T> Handle<'_, T> {
    /// Puts an item into a level; one that does not exist is the last. There is no bound: whoever puts items in
    /// must hold back by other means (permits, [`LevelQueue::len`]).
    #[inline]
    pub fn push(&mut self, level: usize, item: T) {
        let levels = &self.lane.levels;
        levels[level.min(levels.len() - 1)].push(item);
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
            if let Some(item) = self.own(turn) {
                return Some(item);
            }
        }
        self.visit(turn)
    }

    #[inline]
    fn own(&self, turn: usize) -> Option<T> {
        let levels = &self.lane.levels;
        levels[turn]
            .pop()
            .or_else(|| levels.iter().find_map(Worker::pop))
    }

    /// Takes from all lanes in turn.
    fn visit(&mut self, turn: usize) -> Option<T> {
        self.stays = 0;
        loop {
            let mut beaten = false;
            for _ in 0..self.queue.visited.len() {
                self.visits = (self.visits + 1) % self.queue.visited.len();
                let taken = match self.visits == self.lane.number {
                    true => self.own(turn),
                    false => steal(&self.queue.visited[self.visits], turn, &mut beaten),
                };
                if taken.is_some() {
                    return taken;
                }
            }
            // Who was beaten saw an item that another took: there may be more behind it.
            if !beaten {
                return None;
            }
        }
    }
}

/// Takes from another's lane, as [`Handle::own`] from one's own.
fn steal<T>(levels: &[Stealer<T>], turn: usize, beaten: &mut bool) -> Option<T> {
    let order = std::iter::once(turn).chain(0..levels.len());
    let filled = order.filter(|level| !levels[*level].is_empty());
    for level in filled {
        match levels[level].steal() {
            Steal::Success(item) => return Some(item),
            Steal::Retry => *beaten = true,
            Steal::Empty => {}
        }
    }
    None
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
