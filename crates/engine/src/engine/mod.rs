//! The engine: opens, shares, closes.

mod slots;

use crate::engine::slots::Slots;
use crate::files::directory::Directory;
use crate::files::rocks::Commons;
use crate::keyspace::shared::Shared;
use crate::keyspace::Keyspace;
use crate::log::Pending;
use crate::memory::budgets::Memory;
use crate::pool::{Handlers, Pool};
use crate::{EngineError, EngineOptions, KeyspaceOptions};
use parking_lot::{Condvar, Mutex};
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use threads::Duty;

/// As many tenants may stall on slow devices before others' commits wait.
const COMMITTERS_MAX: usize = 32;
/// Threads of [`Engine::streams`] for replies, which mostly wait for a client to read.
pub const REPLIES_MAX: usize = 256;
/// Threads of [`Engine::streams`] for long work that waits for no client.
pub const WORKS_MAX: usize = 64;
/// Databases that are opened at a time. One whose log is as long as it can be takes seconds; as
/// many of those before others wait, as after a crash of a machine with many tenants.
const OPENERS_MAX: usize = 8;
/// Logs that are synced at a time, beside the commits: each waits for the device. As many slow
/// devices may hold up upkeep before it is late for others.
const KEEPERS_MAX: usize = 8;

/// A data directory and the threads that serve it.
pub struct Engine {
    shared: Arc<Shared>,
    slots: Arc<Slots>,
    ticker: Mutex<Option<Ticker>>,
    tick: Duration,
    idle_close: Option<Duration>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

struct Ticker {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: JoinHandle<()>,
}

impl Engine {
    /// Locks the data directory (creating it if it is new) and starts the threads.
    ///
    /// # Errors
    /// The directory is in use, has an unknown format, or cannot be created.
    pub fn open(options: EngineOptions) -> Result<Arc<Engine>, EngineError> {
        let directory = Directory::open(&options.data, options.direct_io)?;
        let commons = Commons::new(&options, &directory)?;
        let shared = Arc::new(Shared {
            directory,
            commons,
            memory: Memory::new(&options),
            pending: Arc::new(Pending::new(options.pending_bytes)),
            handlers: Handlers(Pool::new(
                "handler",
                Duty::Handle,
                options.handlers,
                options.handlers,
            )),
            // Such work may have every usual permit and every extra one: it waits for them, and not
            // for a thread.
            first_handlers: Handlers(Pool::new(
                "first",
                Duty::HandleFirst,
                0,
                2 * options.handlers,
            )),
            streams: Handlers(Pool::new(
                "stream",
                Duty::Handle,
                0,
                REPLIES_MAX + WORKS_MAX,
            )),
            committers: Pool::new(
                "committer",
                Duty::Commit,
                options.committers,
                COMMITTERS_MAX,
            ),
            openers: Pool::new("opener", Duty::Handle, 0, OPENERS_MAX),
            keepers: Pool::new("keeper", Duty::Background, 1, KEEPERS_MAX),
            reclaimer: Pool::new("reclaimer", Duty::Background, 0, 1),
        });
        Ok(Arc::new_cyclic(|me| Engine {
            shared,
            slots: Arc::default(),
            ticker: Mutex::new(Some(Ticker::start(Weak::clone(me), options.tick))),
            tick: options.tick,
            idle_close: options.idle_close,
        }))
    }

    /// Has `opened` told of a tenant's keyspace, opened or created: the same one for the same name.
    /// `options` are asked for by the call that opens it; calls that come meanwhile wait for that
    /// one. A database that did not open is tried again after a pause, a second at first and half a
    /// minute in the end; until then its error is the answer, at once.
    ///
    /// `opened` is called on a thread that opens, or here; it must not block.
    pub fn open_keyspace(
        &self,
        name: &str,
        options: impl FnOnce() -> KeyspaceOptions + Send + 'static,
        opened: impl FnOnce(Result<Arc<Keyspace>, EngineError>) + Send + 'static,
    ) {
        let (options, opened) = (Box::new(options), Box::new(opened));
        self.slots.open(&self.shared, name, options, opened);
    }

    /// The same, waited for: see [`Engine::open_keyspace`].
    ///
    /// # Errors
    /// The name cannot be used, or the database does not open.
    pub fn keyspace(
        &self,
        name: &str,
        options: KeyspaceOptions,
    ) -> Result<Arc<Keyspace>, EngineError> {
        let (tell, told) = channel();
        self.open_keyspace(name, || options, move |opened| drop(tell.send(opened)));
        told.recv().unwrap_or(Err(EngineError::Shutdown))
    }

    /// The threads for blocking work.
    pub fn handlers(&self) -> &Handlers {
        &self.shared.handlers
    }

    /// The threads for blocking work of tenants that have had less than their share: where
    /// processors are short, they run before the others.
    pub fn first_handlers(&self) -> &Handlers {
        &self.shared.first_handlers
    }

    /// Jobs on handlers of both kinds or waiting for one.
    pub fn jobs(&self) -> usize {
        self.shared.handlers.jobs() + self.shared.first_handlers.jobs()
    }

    /// The threads for work that takes long, and waits between its pieces for its turn, or until
    /// somebody has taken the last one. REQUIRES: no more of it at a time than [`REPLIES_MAX`] and
    /// [`WORKS_MAX`] say.
    pub fn streams(&self) -> &Handlers {
        &self.shared.streams
    }

    /// Bytes in the block caches of all keyspaces.
    pub fn block_cache_used_bytes(&self) -> u64 {
        self.shared.memory.block_cache_used(&self.slots.list())
    }

    /// Removes a tenant's keyspace and its files. Whoever still holds it gets
    /// [`EngineError::Dropped`]. Blocks, as long as its readers need to leave.
    ///
    /// # Errors
    /// The files could not be removed.
    pub fn drop_keyspace(&self, name: &str) -> Result<(), EngineError> {
        let grave = self.slots.remove(&self.shared, name, |keyspace| {
            if let Some(keyspace) = keyspace {
                keyspace.shut(&EngineError::Dropped {
                    tenant: name.to_owned(),
                });
            }
            self.shared.directory.bury(name)
        })?;
        match grave {
            Some(grave) => {
                std::fs::remove_dir_all(&grave).map_err(EngineError::io("remove", &grave))
            }
            None => Ok(()),
        }
    }

    /// Finishes handlers' jobs and commits, syncs and closes every database, stops the threads.
    /// Afterwards everything is refused with [`EngineError::Shutdown`]. Blocks; not for handlers.
    pub fn shutdown(&self) {
        let ticker = self.ticker.lock().take();
        if let Some(ticker) = ticker {
            ticker.stop();
        }
        self.shared.keepers.close();
        let keyspaces = self.slots.close();
        for keyspace in &keyspaces {
            keyspace.wait_all_decided();
            keyspace.cancel_compaction();
        }
        self.shared.reclaimer.close();
        self.shared.streams.0.close();
        self.shared.handlers.0.close();
        self.shared.first_handlers.0.close();
        for keyspace in &keyspaces {
            keyspace.shut(&EngineError::Shutdown);
        }
        self.shared.openers.close();
        self.shared.committers.close();
    }

    fn tick(&self) {
        let keyspaces = self.slots.list();
        let moves = self.shared.memory.step(&keyspaces);
        for keyspace in moves.memtables {
            let fit = move || keyspace.fit_memtables();
            self.shared.keepers.submit(Box::new(fit));
        }
        if !moves.objects.is_empty() {
            // One after the other: those who give come first.
            let fit = move || {
                moves
                    .objects
                    .iter()
                    .for_each(|keyspace| keyspace.fit_objects())
            };
            self.shared.keepers.submit(Box::new(fit));
        }
        let now = Instant::now();
        for keyspace in keyspaces {
            if keyspace.wants_upkeep() {
                let due = now + self.tick.mul_f64(keyspace.upkeep_at());
                let idle_close = self.idle_close;
                let job = move || keyspace.upkeep(idle_close);
                self.shared.keepers.submit_at(due, Box::new(job));
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Ticker {
    fn start(engine: Weak<Engine>, every: Duration) -> Ticker {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let stopped = Arc::clone(&stop);
        let tick = move || {
            Duty::Background.begin();
            let _whole = threads::Whole;
            let (stopped, changed) = &*stopped;
            let mut stopped = stopped.lock();
            while !*stopped {
                let timed_out = changed.wait_for(&mut stopped, every).timed_out();
                if !timed_out || *stopped {
                    continue;
                }
                let Some(engine) = engine.upgrade() else {
                    return;
                };
                parking_lot::MutexGuard::unlocked(&mut stopped, || engine.tick());
            }
        };
        let thread = std::thread::Builder::new().name("engine-tick".into());
        Ticker {
            stop,
            thread: thread.spawn(tick).expect("a thread for the engine's tick"),
        }
    }

    fn stop(self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        // The tick itself may hold the last reference to the engine, and then this runs on it.
        if self.thread.thread().id() != std::thread::current().id() {
            let _ = self.thread.join();
        }
    }
}
