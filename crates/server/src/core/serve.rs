//! Turns: who has one next, and what it cost.

use policy::Nanos;
use stage::{Admitted, Next, Verdict};
use telemetry::Part;

use super::accept::DOOR;
use super::answer::throttled;
use super::lines::Line;
use super::turn::After;
use super::{Core, Used, RESOURCES};
use crate::connection::{Connection, Ready};
use crate::tenants::ConnectionKey;

/// Turns are given for this long between two looks at the poll. A tenant with few connections can
/// only use its share if they are noticed soon after they have been served and ask again; a look
/// costs about a µs.
const SLICE_NS: Nanos = 100_000;

impl Core {
    /// A connection has got something that it waited for, and is queued to see to it.
    pub(super) fn ready(&mut self, key: ConnectionKey, ready: Ready, now: Nanos) {
        let Some(mut connection) = self.places.lift(key) else {
            // It is gone. What was made for it may take long to free.
            if !matches!(ready, Ready::Look) {
                let handlers = self.shared.engine.handlers();
                handlers.submit(Box::new(move || drop(ready)));
            }
            return;
        };
        if let Ready::Finished(finished) = &ready {
            connection.tally.at_device(&finished.waits);
        }
        connection.ready.push(ready);
        self.returns_later(key, &mut connection, now);
        self.places.back(key, connection);
    }

    /// Queues a connection to see to what has come back, or to send what it was answered.
    pub(super) fn returns_later(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        now: Nanos,
    ) {
        if connection.in_line.returns {
            return;
        }
        let principal = connection.tenant.id;
        let terms = self.principals.terms(connection);
        let returns = &mut self.lines.returns;
        let queued = returns.enqueue_on(now, principal, 0, terms, key);
        connection.in_line.returns = queued.is_ok();
        if !connection.in_line.returns {
            tracing::error!(tenant = connection.tenant.name, "queue of returns is full");
        }
    }

    /// Gives turns to those in line, in the order the stages decide. Returns how many are left in
    /// the line of what came back.
    pub(super) fn serve(&mut self) -> u64 {
        let mut now = self.shared.options.clock.now();
        self.now = now;
        self.processor.refresh(now);
        self.agenda.wake_at = None;
        let slice_ends = now + SLICE_NS;
        loop {
            if now >= slice_ends {
                self.agenda.wake_at = Some(now);
                break;
            }
            match self.lines.next(now) {
                Next::Admitted(admitted) => now = self.one_turn(admitted, now),
                Next::At(at) => {
                    self.agenda.wake_at = Some(at);
                    break;
                }
                Next::Idle => break,
            }
        }
        let left = self.lines.returns.queued();
        self.release_handlers(now);
        self.committers.start(now);
        left
    }

    /// One turn, of a request or of what has come back.
    fn one_turn(&mut self, admitted: Admitted<ConnectionKey, RESOURCES>, begin: Nanos) -> Nanos {
        let key = admitted.item;
        if key == DOOR {
            return self.door_turn(admitted, begin);
        }
        let mut used = Used::default();
        let Some(mut connection) = self.places.lift(key) else {
            let cost = used.cost(0);
            self.lines
                .settle(begin, admitted.permit, admitted.principal, cost);
            return begin;
        };
        let what = connection.waits_for();
        let (line, budget) = match self.lines.turn() {
            Line::Returns => {
                connection.in_line.returns = false;
                (Part::Return, None)
            }
            Line::Requests => {
                connection.in_line.requests = false;
                connection.tally.queue_ns += admitted.waited_ns;
                connection.tally.timed = admitted.permit.timed();
                (Part::Turn, Some(&admitted.budget))
            }
        };
        let tally = &mut connection.tally;
        tally.waited(what, line, admitted.waited_ns, begin);
        self.refusal = match admitted.verdict {
            Verdict::Serve => None,
            Verdict::Refuse {
                limit,
                retry_after_ns,
            } => Some(throttled(&connection, limit, retry_after_ns)),
        };
        let after = self.turn(key, &mut connection, budget, &mut used);
        let end = self.shared.options.clock.now();
        self.now = end;
        let cpu_ns = self.processor.used_ns(begin, end);
        let tally = &mut connection.tally;
        tally.worked(begin, end, used.sent_from, cpu_ns);
        let cost = used.cost(cpu_ns);
        let principal = admitted.principal;
        self.lines.settle(end, admitted.permit, principal, cost);
        self.shared.turns[self.id].note(used.largest(cpu_ns));
        self.trails.core.note(principal.0, begin, end);
        if let Some(noticed) = self.principals.count(&mut connection, &cost, end) {
            self.explain(&connection, &noticed, end);
        }
        self.balance
            .served(key, &mut connection.served, end - begin);
        if after == After::Keep {
            self.account(key, &mut connection);
        }
        match after {
            After::Close => self.close(key, connection),
            After::Keep => match connection.moves_to {
                Some(core) if connection.rests() => {
                    connection.moves_to = None;
                    self.move_to(core, key, connection);
                }
                _ => self.put_back(key, connection, end),
            },
        }
        end
    }
}
