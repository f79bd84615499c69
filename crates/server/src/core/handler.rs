//! Work that needs the disk: its own stage, its permits, its way to a handler thread and back.

use std::sync::Arc;

use engine::device::tagged;
use engine::{EngineError, Keyspace, Latch, Lookups, Seq};
use policy::{Cost, Nanos, PrincipalId};
use stage::{Admitted, Next, Permit};
use telemetry::Class;

use super::command::Flow;
use super::message::{ConnectionKey, Message};
use super::slow::{note_slow, slow_over_ns};
use super::stream;
use super::unit::{Ended, Trace, Unit};
use super::{Core, Used};
use crate::connection::client::Client;
use crate::connection::{Connection, Parked, Written};
use crate::device::tag_of;
use crate::resp::{Output, Protocol};
use crate::tenants::{Ending, Tenant};

/// What waits in the handler stage.
pub enum Task {
    /// A unit to be run.
    Run(Work),
    /// The next piece of the reply that is streamed to this connection.
    GoOn(ConnectionKey),
}

/// A unit on its way to a handler.
pub struct Work {
    pub(super) key: ConnectionKey,
    pub(super) tenant: Arc<Tenant>,
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) unit: Box<Unit>,
    pub(super) protocol: Protocol,
    client: Arc<Client>,
}

/// A unit back from its handler.
pub struct Finished {
    output: Output,
    seq: Seq,
    class: Class,
    service_ns: Nanos,
    /// Processor time of the handler.
    cpu_ns: Nanos,
    principal: PrincipalId,
    ending: Ending,
    steps: Vec<Ended>,
    lookups: Lookups,
    permit: Permit,
}

impl Core {
    /// Queues a unit for a handler and parks its connection.
    pub(super) fn hand_over(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        keyspace: Arc<Keyspace>,
        unit: Box<Unit>,
        used: &mut Used,
    ) -> Flow {
        used.requests += unit.requests;
        let protocol = connection.session.protocol;
        let class = unit.class.index() as u8;
        let tenant = Arc::clone(&connection.tenant);
        let client = Arc::clone(&connection.client);
        let work = Work {
            key,
            tenant,
            keyspace,
            unit,
            protocol,
            client,
        };
        let now = self.shared.options.clock.now();
        connection.parked = Some(Parked::Handler);
        if self
            .handlers
            .admit(now, connection.tenant.id, class, Task::Run(work))
            .is_err()
        {
            // One unit a connection at most: the queue holds as many as connections are allowed.
            tracing::error!(tenant = connection.tenant.name, "handler queue is full");
            connection.parked = None;
            connection.closing = true;
        }
        Flow::Stop
    }

    /// Starts as many units as permits allow, in the order the stage decides.
    pub(super) fn release_handlers(&mut self, now: Nanos) {
        loop {
            match self.handlers.next(now) {
                Next::Admitted(admitted) => self.dispatch(admitted, now),
                Next::At(at) => {
                    self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
                    return;
                }
                Next::Idle => return,
            }
        }
    }

    /// Sends a handler work for a tenant that no client waits in line for. The stage is told afterwards what it
    /// cost, and the tenant's next units wait so much longer.
    pub(super) fn submit(&self, tenant: &Arc<Tenant>, work: impl FnOnce() + Send + 'static) {
        let (shared, mailbox) = (Arc::clone(&self.shared), self.mailbox.clone());
        let principal = tenant.id;
        self.shared.engine.handlers().submit(Box::new(move || {
            let begin = shared.options.clock.now();
            work();
            let service_ns = shared.options.clock.now() - begin;
            mailbox.send(Message::Worked(principal, service_ns));
        }));
    }

    fn dispatch(&mut self, admitted: Admitted<Task, 1>, now: Nanos) {
        let permit = admitted.permit;
        let work = match admitted.item {
            Task::Run(work) => work,
            Task::GoOn(key) => return self.go_on(key, permit, now),
        };
        let latch = work
            .unit
            .with_keys(|keys| work.keyspace.latch(keys, self.retry(work.key)));
        let Some(latch) = latch else {
            // Somebody else has the key on a handler; when it comes back this may need no disk at all.
            self.handlers.settle(now, permit, Cost([0]));
            if let Some(mut connection) = self.places.lift(work.key) {
                connection.parked = Some(Parked::Retry);
                connection.pending = Some(work.unit);
                self.places.back(work.key, connection);
            }
            return;
        };
        let shared = Arc::clone(&self.shared);
        let mailbox = self.mailbox.clone();
        self.shared.engine.handlers().submit(Box::new(move || {
            let (key, begin) = (work.key, shared.options.clock.now());
            match work.run(latch, permit, &shared) {
                Ok(finished) => mailbox.send(Message::Finished(key, Box::new(finished))),
                Err(large) => stream::begin(*large, begin, (&shared, mailbox)),
            }
        }));
    }

    /// A unit is back: its reply joins its connection's, its handler is free for the next.
    pub(super) fn finish(&mut self, key: ConnectionKey, finished: Finished, now: Nanos) {
        self.handlers
            .settle(now, finished.permit, Cost([finished.service_ns]));
        self.stage.charge(
            now,
            finished.principal,
            Used::default().cost(finished.cpu_ns),
        );
        if let Some(mut connection) = self.places.lift(key) {
            connection.parked = None;
            connection.tally.disk_ns = connection.tally.disk_ns.max(finished.service_ns);
            connection.tally.count(finished.class);
            connection.tally.failed += u32::from(finished.ending.is_error());
            connection.ending = Some(finished.ending);
            self.count_steps(&mut connection, finished.steps);
            let spec = connection.last;
            self.count_call(&mut connection, spec, finished.service_ns);
            connection.tally.looked_up(finished.lookups);
            let start = connection.output.len();
            if !connection.session.reply_mode.suppresses() {
                connection.output.append(finished.output);
            }
            if finished.seq > 0 {
                let end = connection.output.len();
                connection.written.push(Written {
                    seq: finished.seq,
                    start,
                    end,
                });
            }
            self.after_work(key, connection, Used::default(), now);
        }
        self.release_handlers(now);
    }
}

impl Work {
    /// Phase 2, on a handler thread. An error is no failure: the reply is too large to be made as a whole.
    fn run(
        self,
        latch: Latch,
        permit: Permit,
        shared: &crate::shared::Shared,
    ) -> Result<Finished, Box<(Self, Permit, Latch)>> {
        let thread_time = shared.options.thread_time;
        let (begin, cpu_begin) = (shared.options.clock.now(), thread_time());
        let mut output = Output::new();
        let context = shared.context(&self.tenant);
        let mut trace = Trace::new(&*shared.options.clock);
        let empty = output.mark();
        let _tagged = tagged(tag_of(self.unit.class));
        let result = self
            .keyspace
            .run(&latch, (shared.options.wall_ms)(), &mut |access| {
                output.rollback(empty);
                self.unit
                    .run(access, &mut output, self.protocol, (context, &mut trace))?;
                Ok(access.lookups)
            });
        let (seq, lookups) = match result {
            Ok((lookups, seq)) => (seq, lookups),
            Err(EngineError::Large) => return Err(Box::new((self, permit, latch))),
            Err(error) => {
                output.rollback(empty);
                let text = shared.told(&self.tenant, &error);
                crate::resp::Reply::new(&mut output, self.protocol).error(&text);
                (0, Lookups::default())
            }
        };
        drop(latch);
        if seq > 0 {
            self.keyspace.kick();
        }
        let service_ns = shared.options.clock.now() - begin;
        let cpu_ns = thread_time().saturating_sub(cpu_begin);
        if service_ns >= slow_over_ns(shared.tuning().slow_log_over_us) {
            if let Some(words) = self.unit.words() {
                note_slow(
                    shared,
                    &self.tenant,
                    &self.client,
                    self.unit.spec(),
                    words.args(),
                    service_ns,
                );
            }
        }
        Ok(Finished {
            ending: Ending::of(output.since(empty)),
            steps: trace.ended(),
            output,
            seq,
            class: self.unit.class,
            service_ns,
            cpu_ns,
            principal: self.tenant.id,
            lookups,
            permit,
        })
    }
}
