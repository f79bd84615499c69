//! The way to a keyspace's database: open, closed for idleness, or being reopened.
//!
//! The cores pay one shared lock and one reference count for it, and never wait: while a transition
//! is under way they are told "not in memory". Work for a handler asks first ([`Gate::await_open`])
//! and is told once the database is open, so that a long log keeps no handler. Only those that were
//! at work when a transition began wait for it on their threads.

use crate::files::rocks::Db;
use crate::tries::Tries;
use crate::{EngineError, Waiter};
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How often a closing waits a millisecond for readers to leave.
const LEAVE_POLLS: u32 = 1000;
const BRIEF_POLLS: u32 = 10;

enum State {
    Open(Arc<Db>),
    Closed,
    /// It is tried again when [`Tries`] say so.
    Broken(EngineError),
    /// For ever.
    Shut(EngineError),
}

pub(crate) struct Gate {
    state: RwLock<State>,
    /// Held by whoever opens or closes.
    transition: Mutex<()>,
    tries: Mutex<Tries>,
    asked: Mutex<Asked>,
    stayers: Mutex<Vec<Weak<dyn Fn() + Send + Sync>>>,
    uses: AtomicU64,
}

/// Who waits for the database to open.
#[derive(Default)]
struct Asked {
    waiters: Vec<Waiter>,
    /// Somebody sees to it.
    under_way: bool,
}

/// What [`Gate::await_open`] says.
pub(crate) enum Ready {
    /// There is nothing to wait for.
    Now(Waiter),
    /// It is told later. `true`: the caller must have it opened, and those who wait told.
    Later(bool),
}

impl Gate {
    pub(crate) fn new(db: Db) -> Gate {
        Gate {
            state: RwLock::new(State::Open(Arc::new(db))),
            transition: Mutex::new(()),
            tries: Mutex::default(),
            asked: Mutex::default(),
            stayers: Mutex::default(),
            uses: AtomicU64::new(0),
        }
    }

    /// For cores: never waits.
    pub(crate) fn try_get(&self) -> Option<Arc<Db>> {
        let state = self.state.try_read()?;
        let State::Open(db) = &*state else {
            return None;
        };
        self.uses.fetch_add(1, Ordering::Relaxed);
        Some(Arc::clone(db))
    }

    /// Queues `waiter` until the database is open, or known not to open.
    pub(crate) fn await_open(&self, waiter: Waiter) -> Ready {
        if self.now().is_some() {
            return Ready::Now(waiter);
        }
        let mut asked = self.asked.lock();
        asked.waiters.push(waiter);
        Ready::Later(!std::mem::replace(&mut asked.under_way, true))
    }

    /// Those who waited, after [`Gate::get`].
    pub(crate) fn opened(&self) -> Vec<Waiter> {
        std::mem::take(&mut *self.asked.lock()).waiters
    }

    /// Has `leave` called when the database is to be replaced, for as long as somebody else keeps
    /// it.
    pub(crate) fn will_stay(&self, leave: Weak<dyn Fn() + Send + Sync>) {
        let mut stayers = self.stayers.lock();
        stayers.retain(|stayer| stayer.strong_count() > 0);
        stayers.push(leave);
    }

    /// Asks those who hold the database for long to leave it.
    pub(crate) fn send_away(&self) {
        let stayers = std::mem::take(&mut *self.stayers.lock());
        for leave in stayers.iter().filter_map(Weak::upgrade) {
            leave();
        }
    }

    /// Whether an opening is due, if the last ones were in vain.
    pub(crate) fn due(&self) -> bool {
        self.tries.lock().due(Instant::now())
    }

    /// Remembers how an opening ended, and says so if in vain.
    pub(crate) fn tried(&self, error: Option<&EngineError>) {
        let Some(error) = error else {
            return self.tries.lock().succeeded();
        };
        // Unlocked before it is said: cores ask whether another try is due.
        let pause = self.tries.lock().failed(Instant::now());
        let pause_s = pause.as_secs();
        tracing::error!(%error, pause_s, "a tenant's database was not opened again");
    }

    /// For openers, handlers and committers: waits for transitions, opens what is closed.
    pub(crate) fn get(
        &self,
        open: impl FnOnce() -> Result<Db, EngineError>,
    ) -> Result<Arc<Db>, EngineError> {
        if let Some(result) = self.now() {
            return result;
        }
        let _transition = self.transition.lock();
        if let Some(result) = self.now() {
            return result;
        }
        let opened = open();
        self.tried(opened.as_ref().err());
        let (state, result) = match opened {
            Ok(db) => {
                let db = Arc::new(db);
                (State::Open(Arc::clone(&db)), Ok(db))
            }
            Err(error) => (State::Broken(error.clone()), Err(error)),
        };
        *self.state.write() = state;
        result
    }

    /// As it is, if it need not be opened first.
    pub(crate) fn now(&self) -> Option<Result<Arc<Db>, EngineError>> {
        match &*self.state.read() {
            State::Open(db) => {
                self.uses.fetch_add(1, Ordering::Relaxed);
                Some(Ok(Arc::clone(db)))
            }
            State::Shut(error) => Some(Err(error.clone())),
            State::Broken(error) if !self.due() => Some(Err(error.clone())),
            State::Closed | State::Broken(_) => None,
        }
    }

    /// The open database, for statistics: does not count as use.
    pub(crate) fn peek(&self) -> Option<Arc<Db>> {
        match &*self.state.try_read()? {
            State::Open(db) => Some(Arc::clone(db)),
            _ => None,
        }
    }

    /// How often the database was asked for: the same number twice means idle between.
    pub(crate) fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Takes the database away from everybody, hands it to `replace` (alone: nobody else has a
    /// reference), and installs what that returns, through `install`. If somebody holds on to it
    /// for longer than `patience` allows, nothing happens and `None` is returned.
    pub(crate) fn replace<T>(
        &self,
        patience: Patience,
        replace: impl FnOnce(Option<Db>) -> (Result<Db, EngineError>, T),
        install: impl FnOnce(&mut dyn FnMut()),
    ) -> Option<T> {
        let _transition = self.transition.lock();
        let db = match self.take(patience)? {
            Taken::Db(db) => Some(db),
            Taken::None => None,
        };
        let (result, value) = replace(db);
        let mut state = Some(match result {
            Ok(db) => State::Open(Arc::new(db)),
            Err(error) => State::Broken(error),
        });
        install(&mut || {
            if let Some(state) = state.take() {
                *self.state.write() = state;
            }
        });
        Some(value)
    }

    /// Closes an open database nobody uses at this moment. `false`: it was in use or not open.
    pub(crate) fn close(&self, before: impl FnOnce(&Db) -> bool) -> bool {
        let _transition = self.transition.lock();
        match self.take(Patience::Brief) {
            Some(Taken::Db(db)) if before(&db) => true,
            Some(Taken::Db(db)) => {
                *self.state.write() = State::Open(Arc::new(db));
                false
            }
            _ => false,
        }
    }

    /// Closes for good: every later request gets `error`. Waits for readers as long as they need.
    pub(crate) fn shut(&self, error: EngineError, before: impl FnOnce(&Db)) {
        let _transition = self.transition.lock();
        let mut before = Some(before);
        loop {
            if matches!(&*self.state.read(), State::Shut(_)) {
                return;
            }
            match self.take(Patience::Some) {
                Some(Taken::Db(db)) => {
                    if let Some(before) = before.take() {
                        before(&db);
                    }
                    drop(db);
                }
                Some(Taken::None) => {}
                None => continue,
            }
            *self.state.write() = State::Shut(error);
            return;
        }
    }

    /// REQUIRES: the transition lock is held. Leaves `Closed` behind if it succeeds.
    fn take(&self, patience: Patience) -> Option<Taken> {
        let previous = std::mem::replace(&mut *self.state.write(), State::Closed);
        let mut db = match previous {
            State::Open(db) => db,
            State::Shut(error) => {
                *self.state.write() = State::Shut(error);
                return None;
            }
            State::Closed | State::Broken(_) => return Some(Taken::None),
        };
        let polls = match patience {
            Patience::Brief => BRIEF_POLLS,
            Patience::Some => LEAVE_POLLS,
        };
        for _ in 0..polls {
            match Arc::try_unwrap(db) {
                Ok(db) => return Some(Taken::Db(db)),
                Err(shared) => db = shared,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        *self.state.write() = State::Open(db);
        None
    }
}

/// How long to wait for readers.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    /// Long enough for a point read to finish.
    Brief,
    /// About a second.
    Some,
}

enum Taken {
    Db(Db),
    None,
}
