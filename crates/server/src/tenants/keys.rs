//! How many keys a tenant has, for `INFO`: counted when asked, not more often than it is worth.

use engine::{Census, Seq, DATABASES};
use parking_lot::Mutex;

/// Counting so few keys costs less than asking when they were counted.
const CHEAP: u64 = 1_000;

/// A count stands this long, in ms.
const FRESH_MS: u64 = 1_000;

/// What was counted, and when.
#[derive(Clone, Copy)]
struct Count {
    /// The last commit before it.
    seen: Seq,
    at_ms: u64,
    censuses: [Census; DATABASES],
}

impl Count {
    fn keys(&self) -> u64 {
        self.censuses.iter().map(|census| census.keys).sum()
    }
}

/// The last count.
#[derive(Default)]
pub struct KeyCount {
    last: Mutex<Option<Count>>,
    /// Held by whoever counts.
    pub counting: Mutex<()>,
}

impl KeyCount {
    /// True when something was committed since the last count and another is worth its cost.
    pub fn stale(&self, committed: Seq, now_ms: u64) -> bool {
        let last = *self.last.lock();
        last.is_none_or(|last| {
            let due = now_ms.saturating_sub(last.at_ms) >= FRESH_MS;
            last.seen != committed && (last.keys() < CHEAP || due)
        })
    }

    /// A count that began after commit `seen`.
    pub fn counted(&self, seen: Seq, now_ms: u64, censuses: [Census; DATABASES]) {
        *self.last.lock() = Some(Count {
            seen,
            at_ms: now_ms,
            censuses,
        });
    }

    /// The last count of each database; exact up to the engine's bound, an estimate beyond.
    pub fn censuses(&self) -> [Census; DATABASES] {
        let last = self.last.lock();
        last.map(|last| last.censuses).unwrap_or_default()
    }

    /// Keys of all databases at the last count.
    pub fn keys(&self) -> u64 {
        self.last.lock().map_or(0, |last| last.keys())
    }
}
