//! The committer's side of a keyspace, and what happens when it fails.
//!
//! A keyspace with something to write is in the committers' line once (its log is `busy` from then
//! on). The line is served in order of arrival, and nothing else is in it. A turn ends after
//! [`TURN_BYTES`] if somebody waits, and its keyspace goes to the end of the line: tenants take
//! turns, however much one of them writes.
//!
//! A failed batch fails everything behind it too, because later writes may rest on what it wrote.
//! The order of a failure matters: (1) nothing more is admitted; (2) the memory of undecided
//! writes is forgotten; (3) they are decided, as failed, and whoever waits is told. A retry opens
//! the database again (RocksDB stays in its error state until then) and drops the whole cache
//! with it: a batch whose sync failed may still be found in the log, and then it counts.

use crate::device::tagged;
use crate::files::rocks::Db;
use crate::keyspace::latch::tell;
use crate::log::batch::Batch;
use crate::memory::shard::Shard;
use crate::{Committed, EngineError, Keyspace, Seq, Sync};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After this many bytes a committer lets other tenants' batches go first.
const TURN_BYTES: usize = 16 << 20;

impl Keyspace {
    /// Writes batches until there are none. `due`: when it was to begin; what it comes late is
    /// taken off the next pause. REQUIRES: the log was made busy for this call.
    pub(crate) fn commit(self: Arc<Self>, mut due: Instant) {
        let db = match self.gate.now() {
            Some(Ok(db)) => db,
            Some(Err(error)) => return self.fail(&error),
            None => return self.commit_once_open(),
        };
        let mut turn = 0;
        let mut cpu = ThreadCpu::start();
        while let Some(mut batch) = self.log.take() {
            let sync = self.sync();
            let tag = batch.tag();
            let _tagged = tagged(tag);
            let begun = Instant::now();
            if let Err(error) = db.write(batch.encode(), sync == Sync::Always) {
                return self.fail(&self.write_error(error.into_string()));
            }
            if sync == Sync::Always {
                self.counters.syncs.fetch_add(1, Ordering::Relaxed);
            } else {
                let counters = &self.counters;
                counters.unsynced_tag.store(tag.0, Ordering::Relaxed);
                counters.unsynced.store(true, Ordering::Release);
            }
            let pause = self.pause(&db, batch.bytes, begun.elapsed(), due.elapsed());
            due = Instant::now();
            turn += batch.bytes;
            // Before the cores are told: they charge it as they answer.
            let used_ns = cpu.lap_ns();
            self.counters
                .commit_cpu_ns
                .fetch_add(used_ns, Ordering::Relaxed);
            // Before anybody is told: whoever saves then must find it counted.
            self.counters.committed(&batch);
            if sync == Sync::Always {
                self.counters.saved(self.counters.writes());
            }
            self.publish(&batch, &db);
            if let Some(pause) = pause {
                return self.commit_after(pause);
            }
            if turn > TURN_BYTES && self.shared.committers.waiting() > 0 {
                return self.commit_soon();
            }
        }
    }

    /// Has a committer begin. REQUIRES: the caller has made the log busy.
    pub(crate) fn commit_soon(self: Arc<Self>) {
        let (due, me) = (Instant::now(), Arc::clone(&self));
        self.shared
            .committers
            .submit(Box::new(move || me.commit(due)));
    }

    /// The same after a pause.
    fn commit_after(self: Arc<Self>, pause: Duration) {
        let (due, me) = (Instant::now() + pause, Arc::clone(&self));
        self.shared
            .committers
            .submit_at(due, Box::new(move || me.commit(due)));
    }

    /// An opening may take long, and others' commits wait for committers.
    fn commit_once_open(self: Arc<Self>) {
        let me = Arc::clone(&self);
        let commit = Box::new(move || me.commit_soon());
        if let Some(commit) = self.await_open(commit) {
            commit();
        }
    }

    fn publish(&self, batch: &Batch, db: &Db) {
        let room = self.log.decide(batch);
        self.notify();
        tell(room);
        self.release_pins();
        for index in bits(batch.stripes) {
            let gone = self.stripes[index].lock().release(batch.number);
            drop(gone);
        }
        if batch.clears {
            self.reclaim(db);
        }
    }

    fn release_pins(&self) {
        for index in bits(self.pinned.load(Ordering::SeqCst)) {
            let mut shard = self.shards[index].lock();
            if shard.release(self.log.decided()) {
                self.pinned.fetch_and(!(1 << index), Ordering::SeqCst);
            }
        }
    }

    /// Remembers that a locked shard has pins, to be released by the committer. `decided` is what
    /// they were made by: should more be decided by now, the committer may have looked before the
    /// bit was set, and nobody would come. (It publishes before it looks, this sets the bit
    /// before it looks again.)
    pub(crate) fn note_pins(&self, index: usize, shard: &mut Shard, decided: Seq) {
        let bit = 1 << index;
        self.pinned.fetch_or(bit, Ordering::SeqCst);
        let now = self.log.decided();
        if now > decided && shard.release(now) {
            self.pinned.fetch_and(!bit, Ordering::SeqCst);
        }
    }

    fn notify(&self) {
        let cores = self.log.take_waiting();
        if cores != 0 {
            (self.options.notify)(Committed {
                keyspace: self.id,
                cores,
                seq: self.log.decided(),
            });
        }
    }

    pub(crate) fn write_error(&self, message: String) -> EngineError {
        EngineError::Write {
            directory: self.directory.clone(),
            message,
        }
    }

    /// Fails everything that is not decided. REQUIRES: the caller has the log (`busy`).
    pub(crate) fn fail(&self, error: &EngineError) {
        let error = &match error {
            EngineError::Open { message, .. } => self.write_error(message.clone()),
            other => other.clone(),
        };
        tracing::error!(tenant = %self.name, %error, "writes failed");
        let decided = self.log.fail(error);
        self.forget_after(decided);
        for stripe in &self.stripes {
            let gone = stripe.lock().clear();
            drop(gone);
        }
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        let room = self.log.decide_failed(error);
        tell(room);
        self.notify();
    }

    fn forget_after(&self, decided: Seq) {
        self.names.forget_after(decided);
        for shard in &self.shards {
            // Unlocked before it is dropped.
            let gone = shard.lock().forget_after(decided);
            drop(gone);
        }
    }

    pub(crate) fn fail_quietly(&self, error: &EngineError) {
        let decided = self.log.fail(error);
        self.forget_after(decided);
        tell(self.log.decide_failed(error));
        self.notify();
    }
}

fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(index)
    })
}

/// Stretches of the calling thread's CPU time.
struct ThreadCpu(u64);

impl ThreadCpu {
    fn start() -> ThreadCpu {
        ThreadCpu(threads::cpu_ns())
    }

    /// Since the start or the last lap, ns.
    fn lap_ns(&mut self) -> u64 {
        let now = threads::cpu_ns();
        now - std::mem::replace(&mut self.0, now)
    }
}
