//! When a tenant's keys have to be looked through for those whose time has come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::{Expired, Seq};

/// What the last look found. A write since then may have brought an earlier expiry, so that it
/// counts only while nothing was written.
#[derive(Default)]
pub struct Expiry {
    seen: AtomicU64,
    next_due_ms: AtomicU64,
    deleted: AtomicU64,
    going: AtomicBool,
}

impl Expiry {
    /// True when a look at `now_ms` may find something and none is under way: the caller begins
    /// one, which lasts until [`Expiry::rests`].
    pub fn begins(&self, committed: Seq, now_ms: u64) -> bool {
        let due = committed != self.seen.load(Ordering::Relaxed)
            || self.next_due_ms.load(Ordering::Relaxed) <= now_ms;
        due && !self.going.swap(true, Ordering::AcqRel)
    }

    /// A look has ended.
    pub fn rests(&self) {
        self.going.store(false, Ordering::Release);
    }

    /// What a part of a look found that began after commit `seen`.
    pub fn looked(&self, seen: Seq, found: &Expired) {
        let next_due_ms = found.next_due_ms.unwrap_or(u64::MAX);
        self.next_due_ms.store(next_due_ms, Ordering::Relaxed);
        self.seen.store(seen, Ordering::Relaxed);
        self.deleted.fetch_add(found.deleted, Ordering::Relaxed);
    }

    /// Keys that looks have deleted since the start.
    pub fn deleted(&self) -> u64 {
        self.deleted.load(Ordering::Relaxed)
    }
}
