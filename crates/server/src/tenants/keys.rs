//! How many keys a tenant has, for `INFO`: counted when asked, not more often than it is worth.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::Seq;
use parking_lot::Mutex;

/// Counting so few keys costs less than asking when they were counted.
const CHEAP: u64 = 1_000;

/// A count stands this long, in ms.
const FRESH_MS: u64 = 1_000;

/// The last count.
#[derive(Default)]
pub struct KeyCount {
    seen: AtomicU64,
    at_ms: AtomicU64,
    count: AtomicU64,
    /// Held by whoever counts.
    pub counting: Mutex<()>,
}

impl KeyCount {
    /// True when something was committed since the last count and another is worth its cost.
    pub fn stale(&self, committed: Seq, now_ms: u64) -> bool {
        let at_ms = self.at_ms.load(Ordering::Relaxed);
        let changed = at_ms == 0 || self.seen.load(Ordering::Relaxed) != committed;
        changed && (self.count() < CHEAP || now_ms.saturating_sub(at_ms) >= FRESH_MS)
    }

    /// A count that began after commit `seen`.
    pub fn counted(&self, seen: Seq, now_ms: u64, count: u64) {
        self.count.store(count, Ordering::Relaxed);
        self.at_ms.store(now_ms.max(1), Ordering::Relaxed);
        self.seen.store(seen, Ordering::Relaxed);
    }

    /// Keys at the last count; exact up to the engine's bound, an estimate beyond.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}
