//! Which keyspaces there are, and who waits for one that is being opened.
//!
//! A keyspace is opened once at a time, on a thread for openings. Others that ask meanwhile join,
//! and nobody waits on a thread of another kind. So a damaged or long log, or three hundred clients
//! that want the same database, cost other tenants one place among the openings and nothing else.
//! If it does not open, the error is kept and answered at once until it is tried again
//! ([`crate::tries`]).

use crate::device::on_these_terms;
use crate::keyspace::shared::Shared;
use crate::keyspace::Keyspace;
use crate::tries::Tries;
use crate::{EngineError, KeyspaceOptions};
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

/// Asked for the options by the opening itself: they count at that moment.
pub(crate) type Options = Box<dyn FnOnce() -> KeyspaceOptions + Send>;
/// Told what became of an opening, on its thread or on the caller's: must not block.
pub(crate) type Opened = Box<dyn FnOnce(Result<Arc<Keyspace>, EngineError>) + Send>;

enum Slot {
    /// It is being opened, or removed; these want it.
    Busy(Vec<(Options, Opened)>),
    Open(Arc<Keyspace>),
    Broken(EngineError),
}

#[derive(Default)]
struct Names {
    slots: HashMap<String, Slot>,
    /// Of those that did not open, the last time.
    tries: HashMap<String, Tries>,
    closed: bool,
}

#[derive(Default)]
pub(crate) struct Slots {
    names: Mutex<Names>,
    /// A slot is busy no more.
    changed: Condvar,
    ids: AtomicU64,
}

impl Slots {
    /// Has `opened` told of the keyspace of this name, opened or created if it is not there.
    pub(crate) fn open(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        name: &str,
        options: Options,
        opened: Opened,
    ) {
        let mut names = self.names.lock();
        if names.closed {
            drop(names);
            return opened(Err(EngineError::Shutdown));
        }
        let due = names.tries.get(name).is_none_or(|t| t.due(Instant::now()));
        match names.slots.get_mut(name) {
            Some(Slot::Busy(waiting)) => waiting.push((options, opened)),
            Some(Slot::Open(keyspace)) => {
                let keyspace = Arc::clone(keyspace);
                drop(names);
                opened(Ok(keyspace));
            }
            Some(Slot::Broken(error)) if !due => {
                let error = error.clone();
                drop(names);
                opened(Err(error));
            }
            Some(Slot::Broken(_)) | None => {
                names.slots.insert(name.to_owned(), Slot::Busy(Vec::new()));
                drop(names);
                let (me, name, for_it) = (Arc::clone(self), name.to_owned(), Arc::clone(shared));
                shared.openers.submit(Box::new(on_these_terms(move || {
                    me.open_now(&for_it, &name, options, opened);
                })));
            }
        }
    }

    /// REQUIRES: its slot was made busy for this.
    fn open_now(&self, shared: &Arc<Shared>, name: &str, options: Options, opened: Opened) {
        let id = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        let result = Keyspace::open(shared, id, name, options());
        let mut names = self.names.lock();
        let mut pause = None;
        let slot = match &result {
            Ok(keyspace) => {
                names.tries.remove(name);
                Slot::Open(Arc::clone(keyspace))
            }
            Err(error) => {
                let tries = names.tries.entry(name.to_owned()).or_default();
                pause = Some(tries.failed(Instant::now()));
                Slot::Broken(error.clone())
            }
        };
        let before = names.slots.insert(name.to_owned(), slot);
        self.changed.notify_all();
        drop(names);
        // Not before: a log that nobody reads must not hold up all who open a database.
        if let (Some(pause), Err(error)) = (pause, &result) {
            let pause_s = pause.as_secs();
            tracing::error!(tenant = name, %error, pause_s, "a tenant's database was not opened");
        }
        opened(result.clone());
        if let Some(Slot::Busy(waiting)) = before {
            for (_, opened) in waiting {
                opened(result.clone());
            }
        }
    }

    /// Takes a keyspace out, calls `remove` with it, and lets those who want one of that name begin
    /// anew. Blocks.
    pub(crate) fn remove<T>(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        name: &str,
        remove: impl FnOnce(Option<Arc<Keyspace>>) -> T,
    ) -> T {
        let keyspace = {
            let mut names = self.names.lock();
            while matches!(names.slots.get(name), Some(Slot::Busy(_))) {
                self.changed.wait(&mut names);
            }
            names.tries.remove(name);
            match names.slots.insert(name.to_owned(), Slot::Busy(Vec::new())) {
                Some(Slot::Open(keyspace)) => Some(keyspace),
                _ => None,
            }
        };
        let removed = remove(keyspace);
        let before = self.names.lock().slots.remove(name);
        self.changed.notify_all();
        if let Some(Slot::Busy(waiting)) = before {
            for (options, opened) in waiting {
                self.open(shared, name, options, opened);
            }
        }
        removed
    }

    /// Those that are open, but for the ones being removed.
    pub(crate) fn list(&self) -> Vec<Arc<Keyspace>> {
        let names = self.names.lock();
        let open = |slot: &Slot| match slot {
            Slot::Open(keyspace) => Some(Arc::clone(keyspace)),
            _ => None,
        };
        names.slots.values().filter_map(open).collect()
    }

    /// Opens nothing more, waits for what is under way, and gives away what is open. Blocks.
    pub(crate) fn close(&self) -> Vec<Arc<Keyspace>> {
        let mut names = self.names.lock();
        names.closed = true;
        let busy = |names: &mut Names| {
            let mut slots = names.slots.values();
            slots.any(|slot| matches!(slot, Slot::Busy(_)))
        };
        self.changed.wait_while(&mut names, busy);
        let open = |(_, slot)| match slot {
            Slot::Open(keyspace) => Some(keyspace),
            _ => None,
        };
        names.slots.drain().filter_map(open).collect()
    }
}
