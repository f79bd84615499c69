//! What is done for a keyspace once a tick, on threads of its own: the log is synced, failed writes
//! are tried again, an idle database is closed.
//!
//! Ticks of different keyspaces are spread over the time between two: a thousand syncs at once
//! would hold up the commits of everybody whose log is on the same device.

use crate::device::{tagged, Tag};
use crate::files::directory::check_writable;
use crate::files::rocks::Db;
use crate::keyspace::gate::Patience;
use crate::naming;
use crate::{EngineError, Keyspace, Sync};
use rocksdb::{FlushOptions, ReadOptions};
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An idle database is closed once its memtables hold no more than this: some ms of reading the
/// log.
const REOPEN_BYTES: u64 = 1 << 20;

impl Keyspace {
    /// Once a tick: syncs, retries, or closes, as is needed.
    pub(crate) fn upkeep(&self, idle_close: Option<Duration>) {
        if self.shared.keepers.closed() {
            // The end syncs and closes, too.
            return;
        }
        self.tick_bar();
        if self.log.failure().is_some() {
            return self.retry_later();
        }
        if self.sync() == Sync::EverySecond {
            self.sync_log();
        }
        if idle_close.is_some_and(|limit| self.idle_for() >= limit) && self.log_is_short() {
            self.close();
        }
        self.counters.upkeep.store(false, Ordering::Release);
    }

    /// A retry opens the database, if it comes so far: that is for the threads that do so. It ends
    /// the upkeep.
    fn retry_later(&self) {
        let Some(me) = self.me.upgrade() else { return };
        self.shared.openers.submit(Box::new(move || {
            me.retry();
            me.counters.upkeep.store(false, Ordering::Release);
        }));
    }

    /// For work that may hold the database for as long as a client likes: `leave` is called when
    /// writes have failed and the database is about to be opened again, which nobody's reading may
    /// prevent. It must not block. Kept as a weak reference: drop yours when the work is done.
    pub fn stays_until_told(&self, leave: &Arc<dyn Fn() + Send + std::marker::Sync>) {
        self.gate.will_stay(Arc::downgrade(leave));
    }

    /// Whether little is in memtables. If not, they are flushed, so that they are by one of the
    /// next ticks: who opens the database again would have to wait until its log is read.
    fn log_is_short(&self) -> bool {
        let Some(db) = self.gate.peek() else {
            return false;
        };
        if db.memtable_bytes() <= REOPEN_BYTES {
            return true;
        }
        let mut options = FlushOptions::default();
        options.set_wait(false);
        if let Err(error) = db.rocks.flush_opt(&options) {
            tracing::warn!(tenant = %self.name, %error, "an idle database stays open");
        }
        false
    }

    /// When in the time between two ticks this keyspace has its own, as a part of it: always the
    /// same, so that its log is synced as often as the engine ticks. Multiples of the golden ratio
    /// lie evenly, however many there are.
    pub(crate) fn upkeep_at(&self) -> f64 {
        (self.id as f64 * 0.618_033_988_749_895).fract()
    }

    /// Whether [`Keyspace::upkeep`] has anything to do: asked every tick for every keyspace.
    pub(crate) fn wants_upkeep(&self) -> bool {
        let wanted = self.gate.peek().is_some() || self.log.failure().is_some() || !self.calm();
        wanted && !self.counters.upkeep.swap(true, Ordering::AcqRel)
    }

    fn calm(&self) -> bool {
        self.book.lock().quiet()
    }

    fn sync_log(&self) {
        let Some(db) = self.gate.peek() else { return };
        if !self.counters.unsynced.swap(false, Ordering::AcqRel) {
            return;
        }
        let _tagged = tagged(Tag(self.counters.unsynced_tag.load(Ordering::Relaxed)));
        // Who waits for it is told by the failure.
        let _ = self.sync_now(&db);
    }

    fn sync_now(&self, db: &Db) -> Result<(), EngineError> {
        let counters = &self.counters;
        let writes = counters.writes();
        counters.syncs.fetch_add(1, Ordering::Relaxed);
        match db.sync() {
            Ok(()) => {
                counters.saved(writes);
                Ok(())
            }
            Err(error) => {
                let error = self.write_error(error.into_string());
                // Refuse first, so that the committer runs out of work and leaves the log to us.
                self.log.refuse(&error);
                self.log.seize();
                self.fail(&error);
                Err(error)
            }
        }
    }

    /// Has everything that was written before survive a power cut, whatever the durability. Blocks,
    /// for a commit and a sync. `false`: somebody else does the same at this moment, and nothing
    /// was done.
    ///
    /// # Errors
    /// Why writes failed, or the log.
    pub fn save(&self) -> Result<bool, EngineError> {
        let saving = &self.counters.saving;
        if saving.swap(true, Ordering::AcqRel) {
            return Ok(false);
        }
        let saved = self.wait_commit(self.last_seq()).and_then(|()| {
            self.log.failure().map_or(Ok(()), Err)?;
            let db = self.db()?;
            // Before the sync: what is written meanwhile is not covered.
            self.counters.unsynced.store(false, Ordering::Release);
            self.sync_now(&db)
        });
        saving.store(false, Ordering::Release);
        saved.map(|()| true)
    }

    fn retry(&self) {
        if !self.gate.due() {
            return;
        }
        if let Err(error) = check_writable(&self.directory) {
            tracing::debug!(tenant = %self.name, %error, "still not writable");
            return;
        }
        let works = Cell::new(false);
        let naming = RefCell::new(None);
        let open = |old| {
            drop(old);
            let writable = self.open_db().and_then(|db| {
                let found = naming::read(&db.rocks, &ReadOptions::default());
                naming.replace(found.map_err(|error| self.read_error(error))?);
                Ok(db)
            });
            works.set(writable.is_ok());
            self.gate.tried(writable.as_ref().err());
            let db = writable.or_else(|error| {
                if matches!(error, EngineError::Log { .. }) {
                    // What is behind the damage would look as if it had never been.
                    return Err(error);
                }
                self.open_read_only().map_err(|_| error)
            });
            (db, ())
        };
        let install = |install: &mut dyn FnMut()| {
            let mut shards = self.lock_all();
            // All that was written is decided: nothing is pinned.
            let decided = self.log.decided();
            let dropped = shards
                .iter_mut()
                .map(|(_, shard)| shard.drop_cache(decided));
            let dropped: Vec<_> = dropped.collect();
            install();
            if works.get() {
                self.names.reset(naming.take());
                self.log.recover();
            }
            drop(shards);
            drop(dropped);
        };
        self.cancel_compaction();
        self.gate.send_away();
        self.gate.replace(Patience::Some, open, install);
        if works.get() {
            tracing::info!(tenant = %self.name, "writing works again");
        }
    }

    /// How long nobody used it.
    fn idle_for(&self) -> Duration {
        let lookups: u64 = self.shards.iter().map(|shard| shard.lock().lookups()).sum();
        let used = lookups + self.gate.uses() + self.log.last_seq();
        let mut last = self.counters.last_use.lock();
        match &*last {
            Some((seen, since)) if *seen == used => since.elapsed(),
            _ => {
                *last = Some((used, Instant::now()));
                Duration::ZERO
            }
        }
    }

    /// Closes the database, if nobody uses it at this moment, and gives the cache's memory back.
    /// Everything goes on as before: the next access that needs the database opens it again.
    /// Blocks. `false`: it was in use, or closed already.
    pub fn close(&self) -> bool {
        if !self.calm() || !self.log.sleep_until_quiet() {
            return false;
        }
        let closed = self.gate.close(|db| {
            // What is written but not synced would be nobody's to sync once the log is closed.
            let synced = self.seal(db);
            let close = synced.is_ok() && self.log.quiet();
            if close {
                // Here, since whoever opens it again must find that it left.
                self.shared.memory.leave(self.id, &self.buffers);
            }
            close
        });
        if closed {
            self.fit_objects();
        }
        closed
    }

    /// Before the database is closed. REQUIRES: nobody writes.
    fn seal(&self, db: &Db) -> Result<(), rocksdb::Error> {
        match self.sync() {
            Sync::Never => db.rocks.flush_wal(false),
            _ => db.seal(),
        }
    }

    /// The end: what is written is committed, everything later is refused with `error`.
    pub(crate) fn shut(&self, error: &EngineError) {
        self.wait_all_decided();
        self.log.refuse(error);
        self.log.seize();
        self.fail_quietly(error);
        self.cancel_compaction();
        self.gate.shut(error.clone(), |db| {
            if let Err(error) = self.seal(db) {
                tracing::error!(tenant = %self.name, %error, "the last sync failed");
            }
        });
        self.shared.memory.leave(self.id, &self.buffers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Allotments, Database, Engine, EngineOptions, Entry, Keys, KeyspaceOptions};
    use bytes::Bytes;
    use std::sync::atomic::AtomicUsize;
    use std::sync::Weak;

    /// A value that looks, as it goes, whether a shard is locked.
    struct Value {
        keyspace: Weak<Keyspace>,
        locked: Arc<AtomicUsize>,
        gone: Arc<AtomicUsize>,
    }

    impl AsRef<[u8]> for Value {
        fn as_ref(&self) -> &[u8] {
            b"a value"
        }
    }

    impl Drop for Value {
        fn drop(&mut self) {
            self.gone.fetch_add(1, Ordering::Relaxed);
            let Some(keyspace) = self.keyspace.upgrade() else {
                return;
            };
            let mut shards = keyspace.shards.iter();
            if shards.any(|shard| shard.try_lock().is_none()) {
                self.locked.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Cores want the shards, and a cache of a million objects goes in a tenth of a second.
    #[test]
    fn caches_are_dropped_while_no_shard_is_locked() {
        let directory = tempfile::tempdir().unwrap();
        let mut options = EngineOptions::new(directory.path());
        options.idle_close = None;
        let engine = Engine::open(options).unwrap();
        let options = KeyspaceOptions::new(Sync::Never, Allotments::objects(8 << 20));
        let keyspace = engine.keyspace("t", options).unwrap();
        let drops: [(&str, &dyn Fn()); 3] = [
            ("closed", &|| assert!(keyspace.close())),
            ("opened again", &|| keyspace.retry()),
            ("without a cache", &|| {
                keyspace.set_allotments(Allotments::default())
            }),
        ];
        for (what, drop_it) in drops {
            keyspace.db().unwrap();
            let (locked, gone) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
            for number in 0..100u32 {
                let value = Value {
                    keyspace: Arc::downgrade(&keyspace),
                    locked: Arc::clone(&locked),
                    gone: Arc::clone(&gone),
                };
                let mut value = Some(Bytes::from_owner(value));
                let key = number.to_be_bytes();
                keyspace.try_run(&Keys::In(Database::FIRST, &[&key]), 1, &mut |access| {
                    access.put(&key, Entry::string(value.take().unwrap_or_default()))
                });
            }
            keyspace.wait_all_decided();
            assert!(keyspace.log.sleep_until_quiet());
            assert_eq!(gone.load(Ordering::Relaxed), 0, "they are cached");
            drop_it();
            let seen = (gone.load(Ordering::Relaxed), locked.load(Ordering::Relaxed));
            assert_eq!(seen, (100, 0), "{what}");
        }
        engine.shutdown();
    }
}
