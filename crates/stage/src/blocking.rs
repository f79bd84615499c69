//! Admission that blocks: for threads that do the work themselves, many of them before one
//! resource.
//!
//! The callers are RocksDB's threads and the handlers, and the resource is a device: one dispatch
//! for all of them, because many queues before one device defeat scheduling. So the stage is behind
//! a mutex, held for a decision (some hundred nanoseconds beside I/Os of ten microseconds and
//! more).
//!
//! A caller that can be granted at once takes its permit under the lock under which it asked, and
//! neither parks nor wakes anybody. While permits are free this is every caller; when others wait
//! it is a principal in credit. The rest park. The thread that gives a permit back grants it to
//! whoever the policy names, and wakes that one thread. Where the policy names a time instead, one
//! of the parked threads asks again then; the others sleep until they are told.

use crate::stage::{Next, Stage};
use crate::{
    Allocation, Clock, Cost, DispatchOptions, LaneAllocation, LaneId, LaneObservation, Nanos,
    Observation, Others, Permit, PrincipalId, Terms, Verdict,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LockResult, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Why a thread was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// Its principal's queue is full, or the principal is unknown.
    Full,
    /// The principal was removed while it waited.
    Removed,
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Rejected::Full => "the principal's queue is full",
            Rejected::Removed => "the principal was removed",
        })
    }
}

impl std::error::Error for Rejected {}

/// A turn that was granted.
#[derive(Debug)]
pub struct Entry {
    /// How long the thread waited for it, in nanoseconds.
    pub waited_ns: Nanos,
    /// When it was granted.
    pub granted: Nanos,
    /// When the thread had it: later than that by as long as it took to wake.
    pub at: Nanos,
    /// Serve or refuse.
    pub verdict: Verdict,
    /// To be settled when the work is done; if it is dropped, the turn ends at its estimate.
    pub permit: Permit,
}

/// Where a waiting thread finds its turn.
#[derive(Debug, Default)]
struct Seat {
    state: Mutex<Seated>,
    changed: Condvar,
    /// When this thread is to ask for all, if it still waits then; 0: it need not.
    ask_at: AtomicU64,
}

#[derive(Debug, Default)]
enum Seated {
    #[default]
    Waiting,
    Granted(Entry),
    Removed,
}

impl Seat {
    fn remind(&self, at: Nanos) {
        let state = lock(&self.state);
        self.ask_at.store(at, Ordering::Relaxed);
        drop(state);
        self.changed.notify_one();
    }

    fn answer(&self, answer: Seated) {
        *lock(&self.state) = answer;
        self.changed.notify_one();
    }
}

thread_local! {
    /// A thread waits in one place at a time.
    static SEAT: Arc<Seat> = Arc::default();
}

/// Nothing that is held under these locks can be left half done by a panic elsewhere.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    woken(mutex.lock())
}

/// The same of what was waited for.
fn woken<T>(guard: LockResult<T>) -> T {
    guard.unwrap_or_else(PoisonError::into_inner)
}

/// A stage that many threads share.
#[derive(Debug)]
pub struct Blocking<const R: usize, C> {
    stage: Mutex<Stage<Arc<Seat>, R>>,
    clock: C,
    parked: AtomicU64,
    waiting: Mutex<Waiting>,
}

/// Threads that are parked, and when one of them asks again for all.
#[derive(Debug, Default)]
struct Waiting {
    seats: Vec<Arc<Seat>>,
    ask_at: Nanos,
}

impl<const R: usize, C> Blocking<R, C>
where
    C: Clock + Send + Sync + 'static,
{
    /// A stage as by [`Stage::new`].
    ///
    /// # Panics
    /// As [`Stage::new`] does.
    #[must_use]
    pub fn new(options: DispatchOptions<R>, clock: C) -> Arc<Self> {
        Arc::new_cyclic(|me: &std::sync::Weak<Self>| {
            let me = me.clone();
            // A permit that was dropped may be what somebody waits for. Never under the lock:
            // nothing drops one there.
            let wake = move || {
                if let Some(me) = me.upgrade() {
                    me.pump();
                }
            };
            Blocking {
                stage: Mutex::new(Stage::new(options).with_wake(Box::new(wake))),
                clock,
                parked: AtomicU64::new(0),
                waiting: Mutex::default(),
            }
        })
    }

    /// Waits for a turn, on this thread.
    ///
    /// # Errors
    /// The principal's queue is full, or it is unknown, or was removed meanwhile. Nothing is held
    /// then.
    pub fn admit(&self, principal: PrincipalId, class: u8) -> Result<Entry, Rejected> {
        self.admit_on(principal, class, Terms::default())
    }

    /// The same in a lane, or with a due time.
    ///
    /// # Errors
    /// As [`Blocking::admit`].
    pub fn admit_on(
        &self,
        principal: PrincipalId,
        class: u8,
        terms: Terms,
    ) -> Result<Entry, Rejected> {
        let seat = SEAT.with(Arc::clone);
        let mut stage = lock(&self.stage);
        let now = self.clock.now();
        if stage
            .enqueue_on(now, principal, class, terms, Arc::clone(&seat))
            .is_err()
        {
            return Err(Rejected::Full);
        }
        let granted = grant(&mut stage, now, Some(&seat));
        drop(stage);
        match self.tell(now, granted) {
            Some(entry) => Ok(entry),
            None => self.wait(&seat),
        }
    }

    #[cold]
    fn wait(&self, seat: &Arc<Seat>) -> Result<Entry, Rejected> {
        self.parked.fetch_add(1, Ordering::Relaxed);
        let mut waiting = lock(&self.waiting);
        let alone = waiting.seats.is_empty();
        waiting.seats.push(Arc::clone(seat));
        drop(waiting);
        if alone {
            // Nobody was there who could have been told when to ask.
            self.pump();
        }
        let answer = self.wait_for_answer(seat);
        let mut waiting = lock(&self.waiting);
        waiting.seats.retain(|other| !Arc::ptr_eq(other, seat));
        match seat.ask_at.swap(0, Ordering::Relaxed) {
            0 => {}
            ask_at => waiting.remind(ask_at),
        }
        answer
    }

    fn wait_for_answer(&self, seat: &Seat) -> Result<Entry, Rejected> {
        let mut state = lock(&seat.state);
        loop {
            match std::mem::take(&mut *state) {
                Seated::Granted(entry) => {
                    let at = self.clock.now();
                    return Ok(Entry { at, ..entry });
                }
                Seated::Removed => return Err(Rejected::Removed),
                Seated::Waiting => {}
            }
            state = match seat.ask_at.load(Ordering::Relaxed) {
                0 => woken(seat.changed.wait(state)),
                at => {
                    let left_ns = at.saturating_sub(self.clock.now());
                    if left_ns > 0 {
                        let left = Duration::from_nanos(left_ns);
                        woken(seat.changed.wait_timeout(state, left)).0
                    } else {
                        seat.ask_at.store(0, Ordering::Relaxed);
                        // The stage's lock is never taken inside a seat's.
                        drop(state);
                        self.pump();
                        lock(&seat.state)
                    }
                }
            };
        }
    }

    /// Tells others that they have a turn, or one of them when to ask again.
    fn tell(&self, now: Nanos, granted: Granted) -> Option<Entry> {
        for (seat, entry) in granted.others {
            seat.answer(Seated::Granted(entry));
        }
        if let Some(at) = granted.ask_at {
            let mut waiting = lock(&self.waiting);
            if waiting.ask_at <= now || at < waiting.ask_at {
                waiting.remind(at);
            }
        }
        granted.mine
    }

    /// Ends a turn, now; it used `actual`. Whoever is next goes.
    pub fn settle(&self, permit: Permit, actual: Cost<R>) -> Nanos {
        let mut stage = lock(&self.stage);
        let now = self.clock.now();
        stage.settle(now, permit, actual);
        let granted = grant(&mut stage, now, None);
        drop(stage);
        self.tell(now, granted);
        now
    }

    /// Books consumption that was not waited for, now; see [`Stage::charge`].
    pub fn charge(&self, principal: PrincipalId, cost: Cost<R>) -> Nanos {
        let now = self.clock.now();
        lock(&self.stage).charge(now, principal, cost);
        now
    }

    /// See [`Stage::configure`].
    pub fn configure(&self, principal: PrincipalId, allocation: &Allocation) {
        let now = self.clock.now();
        lock(&self.stage).configure(now, principal, allocation);
        self.pump();
    }

    /// See [`Stage::configure_lane`].
    pub fn configure_lane(
        &self,
        principal: PrincipalId,
        lane: LaneId,
        allocation: &LaneAllocation,
    ) {
        let now = self.clock.now();
        lock(&self.stage).configure_lane(now, principal, lane, allocation);
        self.pump();
    }

    /// See [`Stage::remove_lane`].
    pub fn remove_lane(&self, principal: PrincipalId, lane: LaneId) {
        let now = self.clock.now();
        lock(&self.stage).remove_lane(now, principal, lane);
        self.pump();
    }

    /// See [`Stage::set_others`].
    pub fn set_others(&self, others: Others) {
        let now = self.clock.now();
        lock(&self.stage).set_others(now, others);
        self.pump();
    }

    /// See [`Stage::end_stream`].
    pub fn end_stream(&self, principal: PrincipalId, stream: u32) {
        lock(&self.stage).end_stream(principal, stream);
        self.pump();
    }

    /// See [`Stage::others`].
    #[must_use]
    pub fn others(&self) -> Others {
        lock(&self.stage).others()
    }

    /// Forgets a principal; its waiting threads are told so.
    pub fn remove(&self, principal: PrincipalId) {
        let now = self.clock.now();
        let seats = lock(&self.stage).remove(now, principal);
        for seat in seats {
            seat.answer(Seated::Removed);
        }
        self.pump();
    }

    /// Changes the number of permits; see [`Stage::set_permits`].
    pub fn set_permits(&self, permits: u32) {
        lock(&self.stage).set_permits(permits);
        self.pump();
    }

    /// Grants what can be granted now. Everything that changes an answer does so by itself; only
    /// time does not.
    pub fn pump(&self) {
        let mut stage = lock(&self.stage);
        let now = self.clock.now();
        let granted = grant(&mut stage, now, None);
        drop(stage);
        self.tell(now, granted);
    }

    /// Threads that had to park, ever.
    #[must_use]
    pub fn parked(&self) -> u64 {
        self.parked.load(Ordering::Relaxed)
    }

    /// Threads that wait, of all principals.
    #[must_use]
    pub fn queued(&self) -> u64 {
        lock(&self.stage).queued()
    }

    /// Permits that there are.
    #[must_use]
    pub fn permits(&self) -> u32 {
        lock(&self.stage).permits()
    }

    /// Permits out, of all principals.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        lock(&self.stage).in_flight()
    }

    /// See [`Stage::observe`].
    #[must_use]
    pub fn observe(&self, principal: PrincipalId) -> Option<Observation<R>> {
        let now = self.clock.now();
        lock(&self.stage).observe(now, principal)
    }

    /// See [`Stage::observe_lane`].
    #[must_use]
    pub fn observe_lane(&self, principal: PrincipalId, lane: LaneId) -> Option<LaneObservation> {
        let now = self.clock.now();
        lock(&self.stage).observe_lane(now, principal, lane)
    }
}

/// What comes of asking who is next, to be told when the stage is free again.
struct Granted {
    mine: Option<Entry>,
    others: Vec<(Arc<Seat>, Entry)>,
    /// When to ask again.
    ask_at: Option<Nanos>,
}

impl Waiting {
    /// One of those who wait is to ask again at that time.
    fn remind(&mut self, at: Nanos) {
        self.ask_at = 0;
        if let Some(seat) = self.seats.last() {
            self.ask_at = at;
            seat.remind(at);
        }
    }
}

/// Takes everything that can be granted; what is for `mine` comes back by itself.
fn grant<const R: usize>(
    stage: &mut Stage<Arc<Seat>, R>,
    now: Nanos,
    mine: Option<&Arc<Seat>>,
) -> Granted {
    let mut granted = Granted {
        mine: None,
        others: Vec::new(),
        ask_at: None,
    };
    loop {
        let admitted = match stage.next(now) {
            Next::Admitted(admitted) => admitted,
            Next::At(at) => {
                granted.ask_at = Some(at);
                return granted;
            }
            Next::Idle => return granted,
        };
        let entry = Entry {
            waited_ns: admitted.waited_ns,
            granted: now,
            at: now,
            verdict: admitted.verdict,
            permit: admitted.permit,
        };
        if mine.is_some_and(|mine| Arc::ptr_eq(mine, &admitted.item)) {
            granted.mine = Some(entry);
        } else {
            granted.others.push((admitted.item, entry));
        }
    }
}
