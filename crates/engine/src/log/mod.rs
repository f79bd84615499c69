//! The commit log of a keyspace: what is written but not yet in the database, in order.
//!
//! A finished write appends its records to the newest batch while its shards are locked, so the
//! order in the log is the order of execution for every key. A committer takes the oldest batch,
//! writes it, publishes how far is **decided**, and takes the next: writes that arrive while a
//! batch is being written share the following one (group commit without a timer).
//!
//! INVARIANTS
//! * One batch of a keyspace is being written at any time (`busy`), oldest first.
//! * `decided` never goes back. A write is decided when its batch is in the database (and synced,
//!   where that was promised), or has failed; failed stretches are remembered in `failed`.
//! * After a failure nothing is admitted until a retry succeeds, and a command that began before
//!   the failure or before the retry (another `epoch`) is refused: what it read may be forgotten.
//! * Bytes not yet decided are bounded, of each log and of all: admission stops there, one write
//!   may overshoot, and so may each command that writes so much that it prepares its batch itself:
//!   it waited for room before it began, and to wait again would keep its keys from others.

pub(crate) mod batch;
pub(crate) mod buffer;
mod draft;

mod waiting;

use crate::log::batch::{Batch, Room};
use crate::log::buffer::Buffer;
use crate::record;
use crate::{EngineError, Seq, Waiter};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// Failed stretches that are remembered. A retry is made once a tick, so the oldest ones have
/// been asked for long ago.
const FAILED_MAX: usize = 1024;
/// Ids of collections are reserved in the database by blocks of this many.
const ID_BLOCK: u64 = 4096;

/// Why a write was not admitted.
pub(crate) enum Refusal {
    Full,
    Failed(EngineError),
}

/// What there was once in a keyspace, and a property of its database says for ever.
#[derive(Clone, Copy, Default)]
pub(crate) struct Noted {
    /// A key with records under an id.
    pub collections: bool,
    /// A name that is not its key.
    pub named: bool,
}

/// Where a write went.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub seq: Seq,
    pub batch: u64,
}

#[derive(Default)]
pub(crate) struct State {
    last_seq: Seq,
    last_batch: u64,
    queue: VecDeque<Batch>,
    /// A committer has this log, or is about to.
    busy: bool,
    failure: Option<EngineError>,
    failed: VecDeque<(Seq, Seq, EngineError)>,
    room: Vec<Waiter>,
    sleepers: usize,
    /// Ids below this are reserved in the database or in the queue.
    ids_reserved: u64,
    /// The properties that say so are in the database or in the queue.
    noted: Noted,
    /// What the batch taken last needed: the next one will need about as much.
    last_room: Room,
}

/// Bytes that wait for commit in all logs.
pub(crate) struct Pending {
    bytes: AtomicUsize,
    max: usize,
}

impl Pending {
    pub(crate) fn new(max: usize) -> Pending {
        let bytes = AtomicUsize::new(0);
        Pending { bytes, max }
    }
}

/// While all logs together have too much, each may have so much.
const LEAST_BYTES: usize = 256 << 10;

/// How much a log takes, bytes.
pub(crate) struct Bounds {
    /// Of one batch.
    pub batch: usize,
    /// Of all that waits for commit.
    pub pending: usize,
}

/// See the module.
pub(crate) struct Log {
    state: Mutex<State>,
    changed: Condvar,
    decided: AtomicU64,
    decided_batch: AtomicU64,
    epoch: AtomicU64,
    /// Seq of the last clear().
    cleared: AtomicU64,
    /// Cores that wait, a bit each.
    waiting: AtomicU64,
    pending: AtomicUsize,
    /// Of all keyspaces together.
    all: Arc<Pending>,
    /// There is work and no committer on it.
    unattended: AtomicBool,
    any_failed: AtomicBool,
    bounds: Bounds,
}

impl Log {
    pub(crate) fn new(bounds: Bounds, all: Arc<Pending>, ids_reserved: u64) -> Log {
        Log {
            all,
            state: Mutex::new(State {
                ids_reserved,
                ..State::default()
            }),
            changed: Condvar::new(),
            decided: AtomicU64::new(0),
            decided_batch: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            cleared: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            pending: AtomicUsize::new(0),
            unattended: AtomicBool::new(false),
            any_failed: AtomicBool::new(false),
            bounds,
        }
    }

    pub(crate) fn decided(&self) -> Seq {
        self.decided.load(Ordering::SeqCst)
    }

    /// Whether the batch's pins are of no more use.
    pub(crate) fn batch_is_decided(&self, batch: u64) -> bool {
        self.decided_batch.load(Ordering::Acquire) >= batch
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }

    /// Whether a write has to wait for room.
    fn full(&self) -> bool {
        let pending = self.pending();
        let all = || self.all.bytes.load(Ordering::Relaxed);
        pending >= self.bounds.pending || (pending >= LEAST_BYTES && all() >= self.all.max)
    }

    /// So many bytes wait no more.
    fn gone(&self, bytes: usize) {
        self.pending.fetch_sub(bytes, Ordering::Relaxed);
        self.all.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The seq of a clear() that the database does not show yet: until then what is not pinned
    /// is absent, whatever the database says.
    pub(crate) fn clearing(&self) -> Option<Seq> {
        let cleared = self.cleared.load(Ordering::Acquire);
        (cleared > self.decided()).then_some(cleared)
    }

    pub(crate) fn last_seq(&self) -> Seq {
        self.state.lock().last_seq
    }

    /// Appends a command's writes. REQUIRES: its shards are locked, or its keys latched, until
    /// memory shows them. `stripes`: bit *i* for each stripe that will have pins of it. `prepared`:
    /// the writes as a batch of their own; these are admitted even if there is no room.
    pub(crate) fn append(
        &self,
        buffer: &Buffer,
        prepared: Option<Batch>,
        stripes: u64,
        note: Noted,
        epoch: u64,
    ) -> Result<Position, Refusal> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        self.may_append(state, prepared.is_some(), epoch)?;
        state.last_seq += 1;
        let seq = state.last_seq;
        let bytes = buffer.bytes();
        let reserved = state.reserve(buffer);
        let noted = std::mem::replace(&mut state.noted, note);
        let alone = prepared.is_some();
        let batch = match prepared {
            Some(batch) => state.enqueue(batch),
            None => self.open_batch(state, bytes),
        };
        if let Some(reserved) = reserved {
            let value = Bytes::copy_from_slice(&reserved.to_be_bytes());
            batch.note(record::NEXT_ID, value);
        }
        if note.collections && !noted.collections {
            batch.note(record::COLLECTIONS, Bytes::from_static(b"1"));
        }
        if note.named && !noted.named {
            batch.note(record::FORMAT, Bytes::from_static(record::FORMAT_NAMED));
        }
        if let Some(naming) = buffer.naming() {
            batch.note(record::DATABASES, naming.encode());
        }
        if alone {
            batch.last_seq = seq;
        } else {
            batch.add(buffer, seq);
        }
        batch.stripes |= stripes;
        batch.held.extend(buffer.held.clone());
        if buffer.cleared() {
            self.cleared.store(seq, Ordering::Release);
        }
        let position = Position {
            seq,
            batch: batch.number,
        };
        self.pending.fetch_add(bytes, Ordering::Relaxed);
        self.all.bytes.fetch_add(bytes, Ordering::Relaxed);
        if !state.busy {
            self.unattended.store(true, Ordering::Release);
        }
        Ok(position)
    }

    fn may_append(&self, state: &State, overfill: bool, epoch: u64) -> Result<(), Refusal> {
        if let Some(error) = &state.failure {
            return Err(Refusal::Failed(error.clone()));
        }
        if self.epoch() != epoch {
            return Err(Refusal::Failed(state.lost()));
        }
        if self.full() && !overfill {
            return Err(Refusal::Full);
        }
        Ok(())
    }

    /// The batch that takes `bytes` more: the newest, or a new one behind it.
    fn open_batch<'s>(&self, state: &'s mut State, bytes: usize) -> &'s mut Batch {
        let fits = |batch: &Batch| batch.bytes + bytes <= self.bounds.batch;
        if !state.queue.back().is_some_and(fits) {
            let batch = Batch::new(state.last_room);
            return state.enqueue(batch);
        }
        let newest = state.queue.len() - 1;
        &mut state.queue[newest]
    }

    /// Whether the caller must see to it that a committer comes.
    pub(crate) fn wants_committer(&self) -> bool {
        if !self.unattended.load(Ordering::Acquire) {
            return false;
        }
        let mut state = self.state.lock();
        self.unattended.store(false, Ordering::Release);
        let wants = !state.busy && !state.queue.is_empty();
        state.busy |= wants;
        wants
    }

    /// The oldest batch; `None`: nothing to do, the committer leaves.
    pub(crate) fn take(&self) -> Option<Batch> {
        let mut state = self.state.lock();
        let batch = state.queue.pop_front();
        match &batch {
            Some(batch) => state.last_room = batch.room(),
            None => {
                state.busy = false;
                if state.sleepers > 0 {
                    self.changed.notify_all();
                }
            }
        }
        batch
    }

    /// Admits nothing more; what is queued is still written.
    pub(crate) fn refuse(&self, error: &EngineError) {
        self.state.lock().failure = Some(error.clone());
    }

    /// A batch is in the database. Returns who waited for room.
    pub(crate) fn decide(&self, batch: &Batch) -> Vec<Waiter> {
        self.decided_batch.store(batch.number, Ordering::Release);
        self.decided.store(batch.last_seq, Ordering::SeqCst);
        let mut state = self.state.lock();
        self.gone(batch.bytes);
        self.wake(&mut state)
    }

    fn wake(&self, state: &mut MutexGuard<'_, State>) -> Vec<Waiter> {
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
        if !self.full() {
            std::mem::take(&mut state.room)
        } else {
            Vec::new()
        }
    }

    /// First step of a failure: everything not decided is refused from now on, nothing more is
    /// admitted. Returns the last decided seq.
    pub(crate) fn fail(&self, error: &EngineError) -> Seq {
        let mut state = self.state.lock();
        state.failure = Some(error.clone());
        let lost = std::mem::take(&mut state.queue);
        state.ids_reserved = 0;
        state.noted = Noted::default();
        self.epoch.fetch_add(1, Ordering::AcqRel);
        drop(state);
        drop(lost);
        self.decided()
    }

    /// Last step of a failure, after the memory of failed writes was forgotten.
    pub(crate) fn decide_failed(&self, error: &EngineError) -> Vec<Waiter> {
        let mut state = self.state.lock();
        let (from, to) = (self.decided() + 1, state.last_seq);
        if from <= to {
            state.failed.push_back((from, to, error.clone()));
            self.any_failed.store(true, Ordering::SeqCst);
        }
        while state.failed.len() > FAILED_MAX {
            state.failed.pop_front();
        }
        self.cleared.store(0, Ordering::Release);
        self.decided_batch
            .store(state.last_batch, Ordering::Release);
        self.decided.store(to, Ordering::SeqCst);
        self.gone(self.pending());
        state.busy = false;
        self.wake(&mut state)
    }

    /// Why writes are refused.
    pub(crate) fn failure(&self) -> Option<EngineError> {
        self.state.lock().failure.clone()
    }

    /// Why what a command began with counts no longer. REQUIRES: it does not.
    pub(crate) fn lost(&self) -> EngineError {
        self.state.lock().lost()
    }

    /// Writing works again.
    pub(crate) fn recover(&self) {
        let mut state = self.state.lock();
        state.failure = None;
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// The error of a decided seq, if it failed.
    pub(crate) fn error_of(&self, seq: Seq) -> Option<EngineError> {
        if !self.any_failed.load(Ordering::SeqCst) {
            return None;
        }
        let state = self.state.lock();
        let stretch = state
            .failed
            .iter()
            .find(|(from, to, _)| (*from..=*to).contains(&seq));
        stretch.map(|(_, _, error)| error.clone())
    }

    /// Nothing is queued, nothing is being written, nothing failed.
    pub(crate) fn quiet(&self) -> bool {
        let state = self.state.lock();
        !state.busy && state.queue.is_empty() && state.failure.is_none()
    }
}

impl State {
    fn lost(&self) -> EngineError {
        let last = self.failed.back();
        last.map_or(EngineError::Shutdown, |(_, _, error)| error.clone())
    }

    /// Puts a batch behind the others.
    fn enqueue(&mut self, mut batch: Batch) -> &mut Batch {
        self.last_batch += 1;
        batch.number = self.last_batch;
        self.queue.push_back(batch);
        let newest = self.queue.len() - 1;
        &mut self.queue[newest]
    }

    /// A new id's number must lie below the reserved mark in the database, in this batch or an
    /// earlier one: after a crash numbers go on from the mark, so none is used twice.
    fn reserve(&mut self, buffer: &Buffer) -> Option<u64> {
        let number = buffer.extra.as_ref()?.new_id?;
        if number < self.ids_reserved {
            return None;
        }
        self.ids_reserved = number + ID_BLOCK;
        Some(self.ids_reserved)
    }
}
