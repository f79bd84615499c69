//! How many units of work all cores together keep outstanding at the handlers, beside those of tenants in credit: as few as
//! keep busy what is short, found by `policy::depth`.
//!
//! One bound for the whole server: what a core gains by one unit more it may take from another core, where processors are
//! what is short, so that each by itself would find that more is worth it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use policy::depth::{Depth, Slice};
use policy::Nanos;

/// Long enough for some hundred reads from a fast disk.
const SLICE_NS: Nanos = 20_000_000;
/// A slice much longer than it should be says nothing: nobody was there to end it.
const SLICE_MAX_NS: Nanos = 3 * SLICE_NS;

/// A slice tells what can be done if something waited in all of it but such a part.
const LIMITED_PART: Nanos = 4;

/// See the module.
pub struct Outstanding {
    cores: u32,
    most: u32,
    permits: AtomicU32,
    /// Processor time of handlers since the start, ns: a unit of work may be a get or a scan.
    worked_ns: AtomicU64,
    /// Time for which something waited for a permit, of all cores, since the start, ns.
    backlogged_ns: AtomicU64,
    next: AtomicU64,
    found: Mutex<Found>,
}

struct Found {
    depth: Depth,
    since: Nanos,
    worked_ns: u64,
    backlogged_ns: u64,
}

impl Outstanding {
    /// At most `most`, the threads there are, for so many cores; or always as many. Else it begins in the middle.
    pub fn new(most: usize, cores: usize, always: bool) -> Self {
        let cores = u32::try_from(cores).unwrap_or(u32::MAX).max(1);
        let most = u32::try_from(most).unwrap_or(u32::MAX).max(cores);
        let least = if always { most } else { cores };
        let depth = Depth::new(most / 2, least..=most);
        Self {
            cores,
            most,
            permits: AtomicU32::new(depth.permits()),
            worked_ns: AtomicU64::new(0),
            backlogged_ns: AtomicU64::new(0),
            next: AtomicU64::new(0),
            found: Mutex::new(Found {
                depth,
                since: 0,
                worked_ns: 0,
                backlogged_ns: 0,
            }),
        }
    }

    /// Of these the part of one core; at least 1.
    pub fn of(&self, core: usize) -> u32 {
        self.part(self.permits.load(Ordering::Relaxed), core)
    }

    /// The most that [`Outstanding::of`] will ever say.
    pub fn most_of(&self, core: usize) -> u32 {
        self.part(self.most, core)
    }

    fn part(&self, permits: u32, core: usize) -> u32 {
        let more = u64::from(permits % self.cores) > core as u64;
        (permits / self.cores + u32::from(more)).max(1)
    }

    /// A handler has worked for so long.
    pub fn worked(&self, cpu_ns: Nanos) {
        self.worked_ns.fetch_add(cpu_ns, Ordering::Relaxed);
    }

    /// On one core something waited for a permit for so long.
    pub fn backlogged(&self, ns: Nanos) {
        self.backlogged_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Ends a slice, if it is time and nobody else does.
    pub fn step(&self, now: Nanos) {
        if now < self.next.load(Ordering::Relaxed) {
            return;
        }
        let Some(mut found) = self.found.try_lock() else {
            return;
        };
        self.next.store(now + SLICE_NS, Ordering::Relaxed);
        let worked_ns = self.worked_ns.load(Ordering::Relaxed);
        let backlogged_ns = self.backlogged_ns.load(Ordering::Relaxed);
        let ns = now.saturating_sub(found.since);
        // What waits now and then is served at any depth, in which case more of it brings nothing.
        let limited = backlogged_ns - found.backlogged_ns >= ns - ns / LIMITED_PART;
        let slice = Slice {
            done: (worked_ns - found.worked_ns) as f64,
            ns,
            limited: limited && ns < SLICE_MAX_NS,
        };
        (found.since, found.worked_ns, found.backlogged_ns) = (now, worked_ns, backlogged_ns);
        let step = found.depth.step(&slice);
        self.permits.store(step.permits, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cores_together_have_the_bound() {
        let outstanding = Outstanding::new(20, 4, false);
        let parts: Vec<u32> = (0..4).map(|core| outstanding.of(core)).collect();
        assert_eq!(parts, [3, 3, 2, 2]);
        assert_eq!(Outstanding::new(1, 4, false).of(3), 1);
        assert_eq!(Outstanding::new(20, 4, true).of(3), 5);
    }

    /// Processors that give handlers no more than so much, however many are outstanding.
    #[test]
    fn it_comes_down_to_what_keeps_processors_busy() {
        let outstanding = Outstanding::new(32, 2, false);
        let mut now = 0;
        let mut permits = Vec::new();
        for _ in 0..400 {
            now += SLICE_NS;
            let held = (outstanding.of(0) + outstanding.of(1)).min(6);
            outstanding.worked(SLICE_NS * u64::from(held) / 6);
            outstanding.backlogged(SLICE_NS);
            outstanding.step(now);
            permits.push(outstanding.of(0) + outstanding.of(1));
        }
        let settled = &permits[100..];
        assert!(
            settled.iter().all(|held| (5..=12).contains(held)),
            "{settled:?}"
        );
    }
}
