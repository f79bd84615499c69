//! Threads for work that blocks.

use crate::device::{tag, tagged, Tag};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use threads::Duty;

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A thread beyond those kept leaves after this long without work.
const SPARE_IDLE: Duration = Duration::from_secs(10);

struct State {
    /// With the tag of whoever queued it.
    jobs: VecDeque<(Tag, Job)>,
    /// Those whose time has not come: by it, and by a number where times are the same.
    later: BTreeMap<(Instant, u64), (Tag, Job)>,
    numbered: u64,
    idle: usize,
    /// What idle threads sleep on, whoever fell asleep last at the end: it is woken first, for what
    /// it needs is still in the processor's caches.
    asleep: Vec<Arc<Condvar>>,
    threads: usize,
    closed: bool,
}

struct Inner {
    name: &'static str,
    duty: Duty,
    keep: usize,
    max: usize,
    state: Mutex<State>,
    /// Jobs that no thread has begun, for who looks without the lock.
    unbegun: AtomicUsize,
    gone: Condvar,
}

/// At most `max` threads, started when there is work for them and none idle; all but `keep` leave
/// again. A job that panics ends the process: see [`Inner::work`].
pub(crate) struct Pool(Arc<Inner>);

impl Pool {
    pub(crate) fn new(name: &'static str, duty: Duty, keep: usize, max: usize) -> Pool {
        Pool(Arc::new(Inner {
            name,
            duty,
            keep,
            max: max.max(1),
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                later: BTreeMap::new(),
                numbered: 0,
                idle: 0,
                asleep: Vec::new(),
                threads: 0,
                closed: false,
            }),
            unbegun: AtomicUsize::new(0),
            gone: Condvar::new(),
        }))
    }

    /// Queues a job. After [`Pool::close`] it is dropped unrun.
    pub(crate) fn submit(&self, job: Job) {
        let mut state = self.0.state.lock();
        if state.closed {
            drop(state);
            return;
        }
        state.jobs.push_back((tag(), job));
        self.0.unbegun.store(state.jobs.len(), Ordering::Relaxed);
        if state.jobs.len() > state.idle && state.threads < self.0.max {
            self.0.start_thread(&mut state);
        }
        wake_one(state);
    }

    /// Queues a job at a time to come, or at once when the pool is closed before. No thread is
    /// occupied until then.
    pub(crate) fn submit_at(&self, due: Instant, job: Job) {
        let mut state = self.0.state.lock();
        if state.closed {
            return;
        }
        state.numbered += 1;
        let number = state.numbered;
        state.later.insert((due, number), (tag(), job));
        if state.idle == 0 && state.threads < self.0.max {
            self.0.start_thread(&mut state);
        }
        // Somebody must learn until when to wait.
        wake_one(state);
    }

    /// Whether [`Pool::close`] was called.
    pub(crate) fn closed(&self) -> bool {
        self.0.state.lock().closed
    }

    /// Jobs that no thread has begun and whose time has come.
    pub(crate) fn waiting(&self) -> usize {
        self.0.state.lock().jobs.len()
    }

    /// Jobs that some thread runs or none has begun.
    pub(crate) fn jobs(&self) -> usize {
        let state = self.0.state.lock();
        state.jobs.len() + (state.threads - state.idle)
    }

    /// Runs what is queued, takes nothing more, waits until every thread is gone. REQUIRES: not
    /// called from a job.
    pub(crate) fn close(&self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        for bell in state.asleep.drain(..) {
            bell.notify_one();
        }
        while state.threads > 0 {
            self.0.gone.wait(&mut state);
        }
    }
}

/// Wakes the thread that fell asleep last.
fn wake_one(mut state: MutexGuard<'_, State>) {
    let bell = state.asleep.pop();
    drop(state);
    if let Some(bell) = bell {
        bell.notify_one();
    }
}

impl State {
    /// What is to be done now: first what has waited for its time.
    fn take(&mut self) -> Option<(Tag, Job)> {
        let first = self.later.first_entry();
        let due = first.filter(|entry| self.closed || entry.key().0 <= Instant::now());
        match due {
            Some(entry) => Some(entry.remove()),
            None => self.jobs.pop_front(),
        }
    }

    /// Whether a thread that waited in vain may leave. What has come just then was to be seen to by
    /// it: whoever queued that saw it idle.
    fn may_spare_one(&self, keep: usize) -> bool {
        self.jobs.is_empty() && self.later.is_empty() && self.threads > keep
    }
}

impl Inner {
    fn start_thread(self: &Arc<Self>, state: &mut State) {
        let inner = Arc::clone(self);
        let name = format!("{}-{}", self.name, state.threads);
        let thread = std::thread::Builder::new().name(name);
        match thread.spawn(move || inner.work()) {
            Ok(_) => state.threads += 1,
            // The threads there are will get to the job; without any there is no way on.
            Err(error) => {
                tracing::error!(pool = self.name, %error, "cannot start a thread");
                assert!(state.threads > 0, "no thread for {}: {error}", self.name);
            }
        }
    }

    fn work(self: &Arc<Self>) {
        self.duty.begin();
        // What a panic leaves half done (a busy log, a latch, a permit) nobody would ever finish.
        let _whole = threads::Whole;
        let bell = Arc::default();
        while let Some((tag, job)) = self.next(&bell) {
            let _tagged = tagged(tag);
            job();
            threads::turns::end();
        }
    }

    fn next(self: &Arc<Self>, bell: &Arc<Condvar>) -> Option<(Tag, Job)> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.take() {
                self.unbegun.store(state.jobs.len(), Ordering::Relaxed);
                // Whoever waited for the time of the next one is away now.
                if state.idle == 0 && !state.later.is_empty() && state.threads < self.max {
                    self.start_thread(&mut state);
                }
                return Some(job);
            }
            if state.closed {
                break;
            }
            let spare = state.threads > self.keep && state.later.is_empty();
            let next = state.later.keys().next().map(|(due, _)| *due);
            let until = next.or_else(|| spare.then(|| Instant::now() + SPARE_IDLE));
            state.idle += 1;
            state.asleep.push(Arc::clone(bell));
            let timed_out = match until {
                Some(until) => bell.wait_until(&mut state, until).timed_out(),
                None => {
                    bell.wait(&mut state);
                    false
                }
            };
            state.idle -= 1;
            // Nobody has called it if its time was over.
            state.asleep.retain(|other| !Arc::ptr_eq(other, bell));
            if spare && timed_out && state.may_spare_one(self.keep) {
                break;
            }
        }
        state.threads -= 1;
        self.gone.notify_all();
        None
    }
}

/// The handler threads: blocking work of requests. The queue before them is not bounded here:
/// the stage in front of the engine decides how much is let in.
pub struct Handlers(pub(crate) Pool);

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handlers")
            .field("jobs", &self.jobs())
            .finish()
    }
}

impl Handlers {
    /// Runs `job` on a handler as soon as one is free. A panic in it ends the process. After
    /// [`crate::Engine::shutdown`] the job is dropped unrun.
    pub fn submit(&self, job: Box<dyn FnOnce() + Send>) {
        self.0.submit(job);
    }

    /// Whether a job waits for a handler. One that has work of its own at hand lets that wait
    /// behind it.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.0 .0.unbegun.load(Ordering::Relaxed) > 0
    }

    /// Jobs on a handler or waiting for one.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.0.jobs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_waited_in_vain_stays_for_what_has_come_just_then() {
        let mut state = State {
            jobs: VecDeque::new(),
            later: BTreeMap::new(),
            numbered: 0,
            idle: 0,
            asleep: Vec::new(),
            threads: 2,
            closed: false,
        };
        assert!(state.may_spare_one(1) && !state.may_spare_one(2));
        let job = || -> (Tag, Job) { (Tag::default(), Box::new(|| {})) };
        state.later.insert((Instant::now(), 1), job());
        assert!(
            !state.may_spare_one(1),
            "who else would know when to begin?"
        );
        state.later.clear();
        state.jobs.push_back(job());
        assert!(!state.may_spare_one(1));
    }

    #[test]
    fn the_thread_that_fell_asleep_last_is_woken_first() {
        let pool = Pool::new("test", Duty::Handle, 4, 4);
        let (say, said) = channel();
        // All four are at work at a time, each until it may go.
        let gates: Vec<_> = (0..4)
            .map(|_| {
                let ((open, gate), say) = (channel::<()>(), say.clone());
                pool.submit(Box::new(move || {
                    let _ = say.send(std::thread::current().id());
                    let _ = gate.recv();
                }));
                (open, said.recv().expect("it has begun"))
            })
            .collect();
        let idle = |count: usize| {
            while pool.0.state.lock().asleep.len() < count {
                std::thread::yield_now();
            }
        };
        let mut last = None;
        for (count, (open, thread)) in (1..).zip(gates) {
            drop(open);
            idle(count);
            last = Some(thread);
        }
        for _ in 0..3 {
            let say = say.clone();
            pool.submit(Box::new(move || {
                let _ = say.send(std::thread::current().id());
            }));
            assert_eq!(said.recv().ok(), last);
            idle(4);
        }
        pool.close();
    }
}
