//! A unit on a handler: phase 2.

use std::sync::Arc;

use engine::device::{on_terms, tagged};
use engine::{Ahead, EngineError, Keyspace, Latch, Seq, Site, Waiter};
use policy::Nanos;
use resp::{Output, Protocol, Reply};
use stage::Terms;

use super::crew::Crew;
use super::help::{Help, Stands};
use super::message::{Message, Worked};
use super::slow::{note_slow, slow_over_ns};
use crate::connection::{Finished, Ready};
use crate::device::{self, tag_of};
use crate::shared::Shared;
use crate::tenants::{Client, ConnectionKey, Ending, Tenant};
use crate::unit::{Scope, Surroundings, Told, Trace, Unit};

/// A unit on its way to a handler.
pub struct Work {
    pub(super) key: ConnectionKey,
    pub(super) core: usize,
    pub(super) tenant: Arc<Tenant>,
    /// None: it needs no data.
    pub(super) keyspace: Option<Arc<Keyspace>>,
    pub(super) unit: Box<Unit>,
    pub(super) protocol: Protocol,
    pub(super) client: Arc<Client>,
    /// On what terms it waits for a handler.
    pub(super) at_handlers: Terms,
    /// On what terms its I/O waits.
    pub(super) terms: Terms,
    /// What others read for it.
    pub(super) ahead: Option<Arc<Ahead>>,
}

/// How a handler's attempt at a unit ended.
pub enum Attempt {
    Finished(Finished),
    /// Somebody else has its keys, or the log is full; its connection is told when that is over.
    Waits(Box<Unit>),
    /// It takes longer than a handler may.
    Long(Box<Work>, Option<Latch>),
}

/// What a thread has used since a moment.
pub struct Stopwatch {
    began: Nanos,
    cpu_began: Nanos,
}

impl Stopwatch {
    /// From now on, for the calling thread.
    pub fn start(shared: &Shared) -> Self {
        Self {
            began: shared.options.clock.now(),
            cpu_began: (shared.options.thread_time)(),
        }
    }

    /// Of work that another thread began then.
    pub fn of_another(began: Nanos) -> Self {
        let cpu_began = 0;
        Self { began, cpu_began }
    }

    /// The calling thread goes on with the work.
    pub fn goes_on_here(&mut self, shared: &Shared) {
        self.cpu_began = (shared.options.thread_time)();
    }

    /// When the work began.
    pub fn began(&self) -> Nanos {
        self.began
    }

    /// Time since it began, waits for the device included, ns.
    pub fn service_ns(&self, shared: &Shared) -> Nanos {
        shared.options.clock.now() - self.began
    }

    /// What it has used so far.
    pub fn read(&self, shared: &Shared) -> Worked {
        self.worked(&Self::start(shared))
    }

    /// The same, and from now on it counts anew: to ask the kernel for a thread's time costs as
    /// much as a small request.
    pub fn lap(&mut self, shared: &Shared) -> Worked {
        let now = Self::start(shared);
        let worked = self.worked(&now);
        *self = now;
        worked
    }

    fn worked(&self, now: &Self) -> Worked {
        Worked {
            service_ns: now.began - self.began,
            cpu_ns: now.cpu_began.saturating_sub(self.cpu_began),
        }
    }
}

impl Work {
    /// Phase 2, on a handler thread.
    pub(super) fn attempt(
        mut self,
        latch: Option<Latch>,
        watch: &Stopwatch,
        crew: &Arc<Crew>,
    ) -> Attempt {
        let (shared, mailbox) = (&crew.shared, &crew.mailbox);
        let key = self.key;
        let look_again = || {
            let mailbox = mailbox.clone();
            Box::new(move || mailbox.send(Message::Ready(key, Ready::Look)))
        };
        let mut latch = latch;
        // What this thread waited before, it waited for others.
        let _ = device::waits();
        // A snapshot needs none, but that the database is open.
        if let (None, Some(keyspace)) = (&latch, self.keyspace.clone()) {
            let Some(mut latched) = self.latch(&keyspace, look_again()) else {
                return Attempt::Waits(self.unit);
            };
            self.ask_for_help(&mut latched, &keyspace, crew);
            latch = Some(latched);
        }
        let mut output = Output::new();
        let mut trace = Trace::new(&*shared.options.clock);
        let empty = output.mark();
        let result = self.run(latch.as_ref(), &mut output, &mut trace, shared);
        let (told, seq) = match result {
            Ok(done) => done,
            Err(EngineError::Large) => return Attempt::Long(Box::new(self), latch),
            Err(EngineError::Full) => {
                let waits = self
                    .keyspace
                    .as_ref()
                    .is_some_and(|k| k.wait_room(look_again()));
                if !waits {
                    look_again()();
                }
                return Attempt::Waits(self.unit);
            }
            Err(error) => {
                output.rollback(empty);
                let text = shared.told(&self.tenant, &error);
                Reply::new(&mut output, self.protocol).error(&text);
                Default::default()
            }
        };
        drop(latch);
        let service_ns = watch.service_ns(shared);
        self.note_if_slow(service_ns, shared);
        Attempt::Finished(Finished {
            ending: Ending::of(output.since(empty)),
            failed: trace.count(&self.tenant.calls, self.core),
            output,
            seq,
            class: self.unit.class,
            service_ns,
            waits: device::waits(),
            told,
        })
    }

    /// Its keys, some of which others may read for it from now on.
    pub(super) fn latch(&mut self, keyspace: &Arc<Keyspace>, waiter: Waiter) -> Option<Latch> {
        let _on_terms = on_terms(self.terms);
        let mut latch = self.unit.latch(keyspace, waiter)?;
        if let Some(ahead) = &self.ahead {
            latch.read_ahead(Arc::clone(ahead));
        }
        Some(latch)
    }

    /// Has others read for it if that is of use: its core has not looked at what it lacks.
    fn ask_for_help(&self, latch: &mut Latch, keyspace: &Keyspace, crew: &Arc<Crew>) {
        let (unit, by_key) = (&self.unit, self.unit.scope() == Scope::Keys);
        if !by_key || unit.fits_turn() || unit.is_long() {
            return;
        }
        let reads = unit.reads(Some(keyspace));
        let help = Help::with(unit, reads, self.terms, Stands::Runs, crew);
        if let Some(help) = help {
            latch.read_ahead(help.ahead());
            help.enqueue(self.tenant.id, self.at_handlers);
            crew.mailbox.wake();
        }
    }

    /// Runs the unit with its reply into `output`.
    fn run(
        &self,
        latch: Option<&Latch>,
        output: &mut Output,
        trace: &mut Trace<'_>,
        shared: &Arc<Shared>,
    ) -> Result<(Told, Seq), EngineError> {
        let _tagged = tagged(tag_of(self.unit.class));
        let _on_terms = device::on_terms(self.terms, shared.options.disk.stage());
        let now_ms = (shared.options.wall_ms)();
        let Some(keyspace) = &self.keyspace else {
            let with = self.surroundings(now_ms, trace, shared);
            return match self.unit.run(None, output, with) {
                Ok(told) => Ok((told, 0)),
                Err(_) => Err(EngineError::Misuse("a unit without data was stopped")),
            };
        };
        let empty = output.mark();
        let mut run = |access: &mut engine::Access<'_>| {
            output.rollback(empty);
            let with = self.surroundings(now_ms, trace, shared);
            self.unit.run(Some(access), output, with)
        };
        match latch {
            Some(latch) => keyspace.run(latch, Site::Handler, now_ms, &mut run),
            None => {
                let shows = self.unit.shows.unwrap_or_else(|| keyspace.last_seq());
                let told = keyspace.scan(shows, Site::Handler, now_ms, &mut run)?;
                Ok((told, 0))
            }
        }
    }

    /// What the unit works with.
    pub(super) fn surroundings<'a, 'c>(
        &'a self,
        now_ms: u64,
        trace: &'a mut Trace<'c>,
        shared: &'a Arc<Shared>,
    ) -> Surroundings<'a, 'c> {
        Surroundings {
            shared,
            tenant: &self.tenant,
            client: &self.client,
            protocol: self.protocol,
            now_ms,
            context: shared.context(&self.tenant),
            trace,
        }
    }

    /// Puts the unit into the slow log, if it took that long.
    pub(super) fn note_if_slow(&self, service_ns: Nanos, shared: &Shared) {
        if service_ns < slow_over_ns(shared.tuning().slow_log_over_us) {
            return;
        }
        if let Some(words) = self.unit.words() {
            let spec = self.unit.spec();
            let args = words.args();
            note_slow(shared, &self.tenant, &self.client, spec, args, service_ns);
        }
    }
}
