//! Gives the space of what FLUSHALL removed back, in the background.
//!
//! It does so for one tenant at a time: a thread of its own has RocksDB rewrite the files, on one
//! of the compaction threads that all databases share, so that the other threads stay free. Each
//! tenant is in the line once at most: what it removes while it waits is rewritten together. The
//! I/O is the tenant's at the device stage, like that of any compaction.
//!
//! Why files are not just deleted (`DeleteFilesInRange`): that removes every file in the range, the
//! ones with newer data too, and those that snapshots still read. It would be right only while
//! nothing is written or compacted.

use crate::files::rocks::Db;
use crate::Keyspace;
use std::sync::atomic::Ordering;

/// What FLUSHALL leaves behind is worth a compaction from this size on. Less goes with the next
/// ones.
const RECLAIM_BYTES: u64 = 64 << 20;

impl Keyspace {
    /// Everything was removed: queues a compaction, if it is worth one and none is queued.
    pub(crate) fn reclaim(&self, db: &Db) {
        let Some(me) = self.me.upgrade() else { return };
        if db.files_bytes() < RECLAIM_BYTES || self.counters.reclaim.swap(true, Ordering::AcqRel) {
            return;
        }
        self.shared
            .reclaimer
            .submit(Box::new(move || me.reclaim_now()));
    }

    fn reclaim_now(&self) {
        // What is removed from now on may be missed by the compaction that begins.
        self.counters.reclaim.store(false, Ordering::Release);
        if let Some(db) = self.gate.peek() {
            // The one before may have done the work.
            if db.files_bytes() >= RECLAIM_BYTES {
                db.compact();
            }
        }
    }

    /// Ends the compaction that may be under way, so that nobody waits for it. Its database does no
    /// more background work: REQUIRES that it is about to be closed.
    pub(crate) fn cancel_compaction(&self) {
        if let Some(db) = self.gate.peek() {
            db.rocks.cancel_all_background_work(false);
        }
    }
}
