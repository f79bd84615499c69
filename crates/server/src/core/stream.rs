//! Replies that are too large to be made as a whole.
//!
//! The command runs once more, over a snapshot, on a thread of its own, which hands over its reply a piece at a time
//! and then waits. When the client has taken the piece, the next one waits in the handler stage like any other work of
//! the tenant; the permit that it gets there lets the thread go on. So a reply of any size holds about a MiB, or one
//! value, and a client that does not read holds a thread that sleeps. A walk that finds little to write hands over an
//! empty piece now and then, so that it keeps nobody waiting for its permit either.
//!
//! A transaction that writes runs twice there: under the latch of its keys for its effect, with its replies dropped,
//! and, once that is committed, over the snapshot from before it, for its replies.
//!
//! ```text
//!  thread ── piece ──▶ output ─▶ turns of a chunk ─▶ client
//!    ▲                                │ all taken
//!    └──────── permit ◀── [ handler stage ] ◀┘
//! ```

use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

use engine::device::tagged;
use engine::{EngineError, GoOn, Latch, Lookups};
use policy::{Cost, Nanos, PrincipalId};
use stage::Permit;

use super::handler::{Task, Work};
use super::message::{ConnectionKey, Message};
use super::unit::{Ended, Trace};
use super::{Core, Mailbox, Used};
use crate::connection::{Connection, Parked};
use crate::device::tag_of;
use crate::resp::{Output, Reply};
use crate::session::ReplyMode;
use crate::shared::Shared;
use crate::tenants::{Ending, Place, Places};

/// Work after which a command that has nothing to hand over gives its permit back: about what a piece takes, and a
/// hundred times what going round the stage costs.
const STRETCH_NS: Nanos = 5_000_000;

/// Patience with a client that takes nothing while tenants wait for one of the server's places: enough for a packet that
/// was lost to be sent again.
const PATIENCE_WANTED_NS: Nanos = 1_000_000_000;

/// A reply under way, as its connection knows it. Dropped, it ends the thread.
pub struct Stream {
    go: Sender<Permit>,
    class: u8,
    /// The next piece is being made, or waits in the stage for it.
    asked: bool,
    /// When the client last took some of it: by the clock that does not jump.
    pub taken_at: Nanos,
}

impl Stream {
    /// Whether its client has taken nothing for longer than `limit_ns`, though something is there.
    fn stalled(&self, now: Nanos, limit_ns: Nanos) -> bool {
        !self.asked && now.saturating_sub(self.taken_at) > limit_ns
    }
}

/// A piece of a reply.
pub struct Piece {
    output: Output,
    /// With the first one: how the thread is told to go on.
    go: Option<Sender<Permit>>,
    end: Option<End>,
    permit: Permit,
    service_ns: Nanos,
    cpu_ns: Nanos,
    principal: PrincipalId,
}

/// How a streamed reply ended.
enum End {
    Whole(Ending, Lookups, Vec<Ended>),
    /// It cannot be completed: the client must not take what it has for a reply.
    Torn,
}

/// Goes on with `work`, whose reply is too large, on a thread of its own; or has it wait, without its keys, until there
/// may be one more of those. A handler has worked on it since `begin`, under `latch`.
pub fn begin(
    (mut work, permit, latch): (Work, Permit, Latch),
    begin: Nanos,
    (shared, mailbox): (&Arc<Shared>, Mailbox),
) {
    let (own, common) = (&work.tenant.streams, &shared.streams);
    if !work.unit.places.enter(own, common) {
        drop(latch);
        let service_ns = shared.options.clock.now() - begin;
        return mailbox.send(Message::Crowded(work.key, work.unit, permit, service_ns));
    }
    let (go, gone_on) = channel();
    let maker = Maker {
        key: work.key,
        principal: work.tenant.id,
        shared: Arc::clone(shared),
        mailbox,
        first: Some(go),
        gone_on,
        permit: Some(permit),
        begin,
        cpu_begin: 0,
    };
    let latch = work.unit.writes().then_some(latch);
    let make = move || maker.make(work, latch);
    shared.engine.streams().submit(Box::new(make));
}

/// The thread's side.
struct Maker {
    key: ConnectionKey,
    principal: PrincipalId,
    shared: Arc<Shared>,
    mailbox: Mailbox,
    first: Option<Sender<Permit>>,
    gone_on: Receiver<Permit>,
    /// None: nobody waits for the reply any more.
    permit: Option<Permit>,
    begin: Nanos,
    cpu_begin: Nanos,
}

impl Maker {
    fn make(mut self, mut work: Work, latch: Option<Latch>) {
        self.cpu_begin = (self.shared.options.thread_time)();
        let shared = Arc::clone(&self.shared);
        let maker = Arc::new(parking_lot::Mutex::new(self));
        let (sink, asked) = (Arc::clone(&maker), Arc::clone(&maker));
        let go_on = move || asked.lock().go_on();
        let mut output =
            Output::streamed(Box::new(move |piece| sink.lock().hand_over(piece, None)));
        let empty = output.mark();
        let (lookups, steps) = match run(&work, latch, &mut output, &shared, Box::new(go_on)) {
            Ok(done) => done,
            Err(EngineError::Abandoned) => return,
            Err(error) => {
                output.rollback(empty);
                Reply::new(&mut output, work.protocol).error(&shared.told(&work.tenant, &error));
                Default::default()
            }
        };
        let ending = Ending::of(output.since(empty));
        let (rest, whole) = output.end_stream();
        // The places are free before the client knows that it has its reply.
        work.unit.places = Places::default();
        let end = match whole {
            true => End::Whole(ending, lookups, steps),
            false => End::Torn,
        };
        maker.lock().hand_over(rest, Some(end));
    }

    /// Whether anybody waits for the rest of the command. After a stretch of work it is not known before the stage lets
    /// the tenant go on.
    fn go_on(&mut self) -> bool {
        let worked_ns = self.shared.options.clock.now() - self.begin;
        if self.permit.is_some() && worked_ns >= STRETCH_NS {
            self.hand_over(Output::new(), None);
        }
        self.permit.is_some()
    }

    /// Gives a piece to the connection and, unless it was the last, waits for leave to make the next.
    fn hand_over(&mut self, output: Output, end: Option<End>) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        let (clock, thread_time) = (&self.shared.options.clock, self.shared.options.thread_time);
        let last = end.is_some();
        let piece = Piece {
            output,
            go: self.first.take(),
            end,
            permit,
            service_ns: clock.now() - self.begin,
            cpu_ns: thread_time().saturating_sub(self.cpu_begin),
            principal: self.principal,
        };
        self.mailbox.send(Message::Piece(self.key, Box::new(piece)));
        if last {
            return;
        }
        if let Ok(permit) = self.gone_on.recv() {
            self.permit = Some(permit);
            (self.begin, self.cpu_begin) = (clock.now(), thread_time());
        }
    }
}

/// Runs the command once more, with its reply into `output`.
fn run(
    work: &Work,
    latch: Option<Latch>,
    output: &mut Output,
    shared: &Shared,
    go_on: GoOn,
) -> Result<(Lookups, Vec<Ended>), EngineError> {
    let (unit, protocol, now_ms) = (&work.unit, work.protocol, (shared.options.wall_ms)());
    let mut context = shared.context(&work.tenant);
    context.held_bytes_max = usize::MAX;
    let (mut trace, mut go_on) = (Trace::new(&*shared.options.clock), Some(go_on));
    let _tagged = tagged(tag_of(unit.class));
    let lookups = match latch {
        None => work.keyspace.scan(now_ms, &mut |access| {
            access.go_on_if(go_on.take());
            unit.run(access, output, protocol, (context, &mut trace))?;
            Ok(access.lookups)
        }),
        // As long as it holds the latch it does not wait for its client.
        Some(latch) => work.keyspace.run_twice(
            latch,
            now_ms,
            &mut |access| {
                let (mut unseen, mut unheard) = (
                    Output::streamed(Box::new(drop)),
                    Trace::new(&*shared.options.clock),
                );
                let outdated = unit.outdated(access.now_ms());
                let with = (context, &mut unheard);
                unit.answer(outdated, access, &mut unseen, protocol, with)?;
                Ok(outdated)
            },
            &mut |access, outdated| {
                access.go_on_if(go_on.take());
                unit.answer(outdated, access, output, protocol, (context, &mut trace))?;
                Ok(access.lookups)
            },
        ),
    }?;
    Ok((lookups, trace.ended()))
}

impl Core {
    /// A piece of a reply is there: it joins the connection's output.
    pub(super) fn piece(&mut self, key: ConnectionKey, piece: Piece, now: Nanos) {
        let class = piece.permit.class();
        self.handlers
            .settle(now, piece.permit, Cost([piece.service_ns]));
        let cost = Used::default().cost(piece.cpu_ns);
        self.stage.charge(now, piece.principal, cost);
        if let Some(mut connection) = self.places.lift(key) {
            if let Some(go) = piece.go {
                // What was answered before it is committed: the snapshot came after.
                connection.parked = None;
                self.settle_replies(key, &mut connection);
                connection.stream = Some(Box::new(Stream {
                    go,
                    class,
                    asked: false,
                    taken_at: now,
                }));
            }
            connection.tally.disk_ns += piece.service_ns;
            if connection.session.reply_mode == ReplyMode::On {
                connection.output.append(piece.output);
            }
            connection.parked = Some(Parked::Stream);
            if let Some(stream) = &mut connection.stream {
                (stream.asked, stream.taken_at) = (false, now);
            }
            match piece.end {
                None => {}
                Some(End::Whole(ending, lookups, steps)) => {
                    self.count_steps(&mut connection, steps);
                    self.end_stream(&mut connection, ending, lookups, piece.service_ns);
                }
                Some(End::Torn) => {
                    self.close(key, connection);
                    return self.release_handlers(now);
                }
            }
            self.after_work(key, connection, Used::default(), now);
        }
        self.release_handlers(now);
    }

    fn end_stream(
        &self,
        connection: &mut Connection,
        ending: Ending,
        lookups: Lookups,
        took: Nanos,
    ) {
        let spec = connection.last;
        connection.parked = None;
        connection.stream = None;
        connection.session.reply_mode.suppresses();
        let class = spec.map_or(telemetry::Class::Other, |spec| spec.class);
        connection.tally.count(class);
        connection.tally.looked_up(lookups);
        connection.tally.failed += u32::from(ending.is_error());
        connection.ending = Some(ending);
        self.count_call(connection, spec, took);
    }

    /// The client has taken the last piece: the next one is asked for, behind what else its tenant has in line.
    pub(super) fn ask_on(&mut self, key: ConnectionKey, connection: &mut Connection) {
        let Some(stream) = &mut connection.stream else {
            return;
        };
        if connection.output.is_empty() && !stream.asked {
            stream.asked = true;
            let (now, tenant) = (self.shared.options.clock.now(), connection.tenant.id);
            let task = Task::GoOn(key);
            if self
                .handlers
                .admit(now, tenant, stream.class, task)
                .is_err()
            {
                tracing::error!(tenant = connection.tenant.name, "handler queue is full");
                connection.stream = None;
                connection.parked = None;
                connection.closing = true;
            }
        }
    }

    /// Lets the thread make the next piece.
    pub(super) fn go_on(&mut self, key: ConnectionKey, permit: Permit, now: Nanos) {
        let connection = self.places.lift(key);
        let stream = connection.as_ref().and_then(|c| c.stream.as_ref());
        let refused = match stream {
            Some(stream) => stream.go.send(permit).err().map(|unsent| unsent.0),
            None => Some(permit),
        };
        if let Some(permit) = refused {
            self.handlers.settle(now, permit, Cost([0]));
        }
        if let Some(connection) = connection {
            self.places.back(key, connection);
        }
    }

    /// As many large replies are under way as may be, of the tenant or of all: the unit begins again once it has a place.
    pub(super) fn crowded(
        &mut self,
        key: ConnectionKey,
        unit: Box<super::Unit>,
        (permit, service_ns): (Permit, Nanos),
        now: Nanos,
    ) {
        self.handlers.settle(now, permit, Cost([service_ns]));
        let Some(mut connection) = self.places.lift(key) else {
            return;
        };
        connection.pending = Some(unit);
        connection.parked = Some(Parked::Retry);
        self.await_place(key, &connection);
        self.places.back(key, connection);
    }

    fn await_place(&self, key: ConnectionKey, connection: &Connection) {
        let Some(unit) = &connection.pending else {
            return;
        };
        let (own, common) = (&connection.tenant.streams, &self.shared.streams);
        let mailbox = self.mailbox.clone();
        let taker = move |place| mailbox.send(Message::Placed(key, place));
        unit.places.queue(own, common, Box::new(taker));
    }

    /// A place has come to a unit that waits for it.
    pub(super) fn placed(&mut self, key: ConnectionKey, place: Place, now: Nanos) {
        let Some(mut connection) = self.places.lift(key) else {
            return;
        };
        let whole = (connection.pending.as_mut()).is_some_and(|unit| unit.places.add(place));
        if !whole {
            self.await_place(key, &connection);
        }
        self.places.back(key, connection);
        if whole {
            self.resume(key, now);
        }
    }

    /// Closes connections that take nothing of a reply which is made as they take it.
    pub(super) fn close_stalled(&mut self) {
        let now = self.now;
        let mut limit_ns = self.shared.tuning().stalled_timeout_ms * 1_000_000;
        if self.shared.streams.wanted() {
            limit_ns = limit_ns.min(PATIENCE_WANTED_NS);
        }
        self.close_where(|connection| {
            let stream = connection.stream.as_deref();
            let stalled = stream.is_some_and(|stream| stream.stalled(now, limit_ns));
            if stalled {
                tracing::info!(
                    tenant = connection.tenant.name,
                    client = connection.client.id,
                    "it took nothing of a large reply for longer than stalled_timeout, or than 1 s while others wait for a place: cut off"
                );
            }
            stalled
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_nothing_for_long_has_stalled_unless_nothing_is_there_to_take() {
        let (go, _gone_on) = channel();
        let mut stream = Stream {
            go,
            class: 0,
            asked: false,
            taken_at: 7,
        };
        assert!(!stream.stalled(107, 100));
        assert!(stream.stalled(108, 100));
        stream.asked = true;
        assert!(!stream.stalled(108, 100), "the server is at it");
    }
}
