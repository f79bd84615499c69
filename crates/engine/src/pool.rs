//! Threads for work that blocks.

use crate::device::{tag, tagged, Tag};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;
use threads::Duty;

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A thread beyond those kept leaves after this long without work.
const SPARE_IDLE: Duration = Duration::from_secs(10);

struct State {
    /// With the tag of whoever queued it.
    jobs: VecDeque<(Tag, Job)>,
    idle: usize,
    threads: usize,
    closed: bool,
}

struct Inner {
    name: &'static str,
    duty: Duty,
    keep: usize,
    max: usize,
    state: Mutex<State>,
    work: Condvar,
    gone: Condvar,
}

/// At most `max` threads, started when there is work for them and none idle; all but `keep` leave
/// again. A job that panics is reported and costs nobody else anything.
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
                idle: 0,
                threads: 0,
                closed: false,
            }),
            work: Condvar::new(),
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
        if state.jobs.len() > state.idle && state.threads < self.0.max {
            self.start_thread(&mut state);
        }
        drop(state);
        self.0.work.notify_one();
    }

    fn start_thread(&self, state: &mut State) {
        let inner = Arc::clone(&self.0);
        let name = format!("{}-{}", self.0.name, state.threads);
        let thread = std::thread::Builder::new().name(name);
        match thread.spawn(move || inner.work()) {
            Ok(_) => state.threads += 1,
            // The threads there are will get to the job; without any there is no way on.
            Err(error) => {
                tracing::error!(pool = self.0.name, %error, "cannot start a thread");
                assert!(state.threads > 0, "no thread for {}: {error}", self.0.name);
            }
        }
    }

    /// Jobs that no thread has begun.
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
        self.0.work.notify_all();
        while state.threads > 0 {
            self.0.gone.wait(&mut state);
        }
    }
}

impl Inner {
    fn work(&self) {
        self.duty.begin();
        while let Some((tag, job)) = self.next() {
            let _tagged = tagged(tag);
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!(pool = self.name, "a job panicked");
            }
        }
    }

    fn next(&self) -> Option<(Tag, Job)> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            let spare = state.threads > self.keep;
            if state.closed {
                break;
            }
            state.idle += 1;
            let timed_out = if spare {
                self.work.wait_for(&mut state, SPARE_IDLE).timed_out()
            } else {
                self.work.wait(&mut state);
                false
            };
            state.idle -= 1;
            if timed_out && state.jobs.is_empty() && state.threads > self.keep {
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
    /// Runs `job` on a handler as soon as one is free. A panic in it is caught. After
    /// [`crate::Engine::shutdown`] the job is dropped unrun.
    pub fn submit(&self, job: Box<dyn FnOnce() + Send>) {
        self.0.submit(job);
    }

    /// Jobs on a handler or waiting for one.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.0.jobs()
    }
}
