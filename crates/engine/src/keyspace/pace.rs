//! Pauses of a tenant's writes, so that its database never stalls them (`policy::stall`).
//!
//! After each batch that could have changed it, a committer asks its database for its debt. If that
//! is high, the committer comes back later: it keeps the tenant's log busy, but no thread. So only
//! clients that write to a slowed tenant wait for it, and their writes queue in its own log, up to
//! its own bound.

use crate::files::rocks::{
    Db, LEVEL0_SLOWDOWN_FILES, MEMTABLES_MAX, MEMTABLE_PARTS, PENDING_SOFT_BYTES,
};
use crate::keyspace::Keyspace;
use policy::stall::{pressure, promised_pause_ns, Debt, Pressure};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where RocksDB delays writers, as it is told to.
const BRINK: Debt = Debt {
    files: LEVEL0_SLOWDOWN_FILES as u64,
    // One before the last.
    memtables: (MEMTABLES_MAX * MEMTABLE_PARTS) as u64 - 1,
    compaction_bytes: PENDING_SOFT_BYTES as u64,
};
/// A debt is looked at anew after this many bytes: the smallest memtable is no larger.
const LOOK_BYTES: u64 = 64 << 10;

/// What a keyspace remembers of it.
#[derive(Default)]
pub(crate) struct Pace {
    /// Bytes written since the debt was looked at.
    unseen: AtomicU64,
    /// Bytes a second that it may write in any case.
    promised_per_s: AtomicU64,
    /// All pauses, ns.
    paused_ns: AtomicU64,
}

impl Keyspace {
    /// How long to pause after a batch of this many bytes, which took this long to write and was
    /// due this long ago; `None`: not at all. Pauses add up to what was promised only if a
    /// committer that came late pauses less.
    pub(crate) fn pause(
        &self,
        db: &Db,
        bytes: usize,
        took: Duration,
        since_due: Duration,
    ) -> Option<Duration> {
        let unseen = self.pace.unseen.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if unseen < LOOK_BYTES {
            return None;
        }
        let (took_ns, since_due_ns) = (took.as_nanos() as u64, since_due.as_nanos() as u64);
        let promised_per_s = self.pace.promised_per_s.load(Ordering::Relaxed);
        let promised_ns = promised_pause_ns(since_due_ns, bytes as u64, promised_per_s);
        let pause_ns = db.pressure().pause_ns(took_ns).min(promised_ns);
        if pause_ns == 0 {
            // Who pauses is looked at every time.
            self.pace.unseen.store(0, Ordering::Relaxed);
            return None;
        }
        self.pace.paused_ns.fetch_add(pause_ns, Ordering::Relaxed);
        Some(Duration::from_nanos(pause_ns))
    }

    /// Bytes a second that it is never slowed below: what was promised to it, with the flushes and
    /// compactions of that.
    pub fn promise_writes(&self, bytes_per_s: u64) {
        self.pace
            .promised_per_s
            .store(bytes_per_s, Ordering::Relaxed);
    }

    /// Time that its writes have paused, ns.
    pub(crate) fn paused_ns(&self) -> u64 {
        self.pace.paused_ns.load(Ordering::Relaxed)
    }
}

impl Db {
    pub(crate) fn pressure(&self) -> Pressure {
        let debt = Debt {
            files: self.property("rocksdb.num-files-at-level0"),
            memtables: self.property("rocksdb.num-immutable-mem-table"),
            compaction_bytes: self.property("rocksdb.estimate-pending-compaction-bytes"),
        };
        pressure(&debt, &BRINK)
    }
}
