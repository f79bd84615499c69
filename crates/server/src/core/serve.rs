//! Turns: who has one next, and what it cost.

use policy::{Cost, Nanos, PrincipalId};
use stage::{Admitted, Next, Permit, Stage, Verdict};

use super::accept::DOOR;
use super::answer::throttled;
use super::turn::After;
use super::{Core, Used, RESOURCES};
use crate::connection::{Connection, Ready};
use crate::tenants::ConnectionKey;

/// Turns are given for so long between two looks at the poll. A tenant with few connections can only use its
/// share if they are noticed soon after they have been served and ask again; a look costs about a µs.
const SLICE_NS: Nanos = 100_000;

/// What came back and new requests take turns in stretches of so long: replies that leave one after the other find their
/// client awake, and waking it costs more than a reply.
const STRETCH_NS: Nanos = 50_000;

/// How often a core lets the same committer run: few enough switches to cost nothing.
const STEP_BACK_NS: Nanos = 500_000;

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
        connection.in_line.returns = self.returns.admit(now, principal, 0, key).is_ok();
        if !connection.in_line.returns {
            tracing::error!(tenant = connection.tenant.name, "queue of returns is full");
        }
    }

    /// Gives turns to those in line, in the order the stages decide.
    pub(super) fn serve(&mut self) {
        let mut now = self.shared.options.clock.now();
        self.now = now;
        self.processor.refresh(now);
        self.wake_at = None;
        let slice_ends = now + SLICE_NS;
        loop {
            if now >= slice_ends {
                self.wake_at = Some(now);
                break;
            }
            if now >= self.stretch_ends {
                self.change_lines(now);
            }
            let mut next = self.line().next(now);
            if !matches!(next, Next::Admitted(_)) {
                self.change_lines(now);
                let other = self.line().next(now);
                match (&next, &other) {
                    (Next::At(_), Next::Idle) => {}
                    _ => next = other,
                }
            }
            match next {
                Next::Admitted(admitted) => now = self.one_turn(admitted, now),
                Next::At(at) => {
                    self.wake_at = Some(at);
                    break;
                }
                Next::Idle => break,
            }
        }
        self.release_handlers(now);
        self.commit(now);
    }

    /// The line that has its turns now. Only requests can have to wait for a time.
    fn line(&mut self) -> &mut Stage<ConnectionKey, RESOURCES> {
        match self.returned {
            true => &mut self.returns,
            false => &mut self.stage,
        }
    }

    /// The other line has its turns from now on.
    fn change_lines(&mut self, now: Nanos) {
        self.returned = !self.returned;
        self.stretch_ends = now + STRETCH_NS;
    }

    /// Starts the commits of what was written. A core that has always more to do never sleeps, and a committer that
    /// shares its processor would not run before the kernel's next tick, up to 4 ms later. So the core steps back:
    /// at once for who writes now and then, every [`STEP_BACK_NS`] for who writes all the time, and for nobody whose batch
    /// takes longer than others would like to wait.
    fn commit(&mut self, now: Nanos) {
        if now >= self.steps_back_at {
            self.steps_back_at = now + STEP_BACK_NS;
            self.let_commit.clear();
        }
        let mut first = false;
        for keyspace in self.touched.drain(..) {
            keyspace.kick();
            first |= !keyspace.commits_long() && self.let_commit.insert(keyspace.id());
        }
        if first {
            std::thread::yield_now();
        }
    }

    /// One turn, of a request or, if `self.returned`, of what has come back.
    fn one_turn(&mut self, admitted: Admitted<ConnectionKey, RESOURCES>, begin: Nanos) -> Nanos {
        let key = admitted.item;
        if key == DOOR {
            return self.door_turn(admitted, begin);
        }
        let mut used = Used::default();
        let Some(mut connection) = self.places.lift(key) else {
            self.end_turn(admitted.permit, admitted.principal, used.cost(0), begin);
            return begin;
        };
        let budget = match self.returned {
            true => {
                connection.in_line.returns = false;
                None
            }
            false => {
                connection.in_line.requests = false;
                connection.tally.queue_ns += admitted.waited_ns;
                Some(&admitted.budget)
            }
        };
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
        let cost = used.cost(cpu_ns);
        self.end_turn(admitted.permit, admitted.principal, cost, end);
        self.shared.turns[self.id].note(used.largest(cpu_ns));
        self.principals.count(&mut connection, &cost, end);
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

    fn end_turn(
        &mut self,
        permit: Permit,
        principal: PrincipalId,
        cost: Cost<RESOURCES>,
        end: Nanos,
    ) {
        if self.returned {
            self.returns.settle(end, permit, cost);
            self.stage.charge(end, principal, cost);
        } else {
            self.stage.settle(end, permit, cost);
        }
    }
}
