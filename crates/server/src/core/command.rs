//! From a parsed request to its reply, or to whatever it must wait for.

use std::sync::Arc;

use engine::device::tagged;
use engine::{Keys, Outcome, Seq};
use policy::Nanos;
use smallvec::SmallVec;
use stage::Limited;
use telemetry::Class;

use super::message::{ConnectionKey, Message};
use super::unit::{Ended, Trace, Unit};
use super::{touch, Core, Used};
use crate::commands::{self, Flags, Handler, Spec};
use crate::connection::{Connection, Parked, Written};
use crate::device::tag_of;
use crate::resp::{Args, Reply};
use crate::tenants::Ending;

/// A unit of more requests does not run in a turn, where it would keep others from theirs for as long as it takes: a
/// handler runs it, behind a permit and with its keys latched.
const TURN_REQUESTS_MAX: usize = 128;

/// What a connection does after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next command.
    Next,
    /// Nothing more in this turn; the command is done or has gone elsewhere.
    Stop,
    /// Nothing more in this turn; the command must be run again, from its bytes.
    Again,
}

impl Core {
    /// Runs one request of `connection` or sends it on its way.
    pub(super) fn command(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let began = self.now;
        let (spec, flow) = match commands::check(&args) {
            Ok(spec) => (Some(spec), self.admitted(key, connection, spec, args, used)),
            Err(bad) => (bad.spec, unusable(connection, args, &bad.text, used)),
        };
        self.count_call(connection, spec, self.now - began);
        flow
    }

    /// Counts the command that `connection` was just answered, if it was, with the time that it took.
    pub(super) fn count_call(
        &self,
        connection: &mut Connection,
        spec: Option<&'static Spec>,
        took: Nanos,
    ) {
        if let Some(ending) = connection.ending.take() {
            connection.tenant.calls.count(self.id, spec, &ending, took);
        }
    }

    fn admitted(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        if !connection.session.authenticated && !spec.flags.has(Flags::NO_AUTH) {
            return match self.join_default(connection) {
                // Its turns are the tenant's.
                Ok(()) => Flow::Again,
                Err(text) => reject(connection, spec.class, text, used),
            };
        }
        if let Some((limit, text)) = &self.refusal {
            if let Some(recorder) = self.principals.of(&connection.tenant) {
                recorder.throttled(spec.class, *limit);
            }
            return turn_away(connection, text, used);
        }
        self.note(connection, spec);
        let flow = self.execute(key, connection, spec, args, used);
        self.timed(&connection.tenant, &connection.client, spec, args);
        flow
    }

    fn execute(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        if connection.session.transaction.is_some() && !controls_transaction(spec) {
            return queue(connection, spec, args, used);
        }
        match spec.handler {
            Handler::Data(_) => self.data(key, connection, spec, args, used),
            Handler::Keyspace(_) | Handler::KeyspaceWriter(_) => self.start(
                key,
                connection,
                Box::new(Unit::one(spec, args.to_owned())),
                used,
            ),
            Handler::Session(command) => self.session(key, connection, (spec, command), args, used),
            Handler::Table(run) => {
                let before = Before::of(connection);
                run(spec, &args, &mut reply_of(connection));
                answered(connection, spec.class, 1, before, 0, used)
            }
            Handler::Container => unreachable!("the check has refused it"),
        }
    }

    /// Phase 1 of a single command, straight from the read buffer.
    fn data(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let before = Before::of(connection);
        // Lent, not cloned: the count of its references is shared by all cores.
        let Some(keyspace) = connection.tenant.keyspace() else {
            return self.open(key, connection, spec, used);
        };
        let mut names: SmallVec<[&[u8]; 8]> = SmallVec::new();
        spec.each_key(&args, |name| names.push(name));
        if names.len() > TURN_REQUESTS_MAX {
            let unit = Box::new(Unit::one(spec, args.to_owned()));
            return self.start(key, connection, unit, used);
        }
        let protocol = connection.session.protocol;
        let context = self.shared.context(&connection.tenant);
        let output = &mut connection.output;
        let _tagged = tagged(tag_of(spec.class));
        let outcome = keyspace.try_run(&Keys::Some(&names), self.now_ms, &mut |access| {
            output.rollback(before.mark);
            commands::run(spec, access, args, Reply::new(output, protocol), context)?;
            Ok(access.lookups)
        });
        match outcome {
            Outcome::Done { seq, reply } => {
                connection.tally.looked_up(reply);
                touch(&mut self.touched, keyspace, seq);
                answered(
                    connection,
                    spec.class,
                    requests_of(names.len()),
                    before,
                    seq,
                    used,
                )
            }
            Outcome::Failed(error) => {
                connection.output.rollback(before.mark);
                self.failed(connection, spec.class, &error, used)
            }
            Outcome::Disk | Outcome::Busy | Outcome::Full => {
                connection.output.rollback(before.mark);
                self.start(
                    key,
                    connection,
                    Box::new(Unit::one(spec, args.to_owned())),
                    used,
                )
            }
        }
    }

    /// Runs a unit that owns its words: in memory if it can be, else by way of a handler.
    pub(super) fn start(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        unit: Box<Unit>,
        used: &mut Used,
    ) -> Flow {
        let Some(keyspace) = connection.tenant.keyspace().map(Arc::clone) else {
            self.open(key, connection, unit.spec(), used);
            if connection.parked.is_some() {
                connection.pending = Some(unit);
            }
            return Flow::Stop;
        };
        loop {
            let before = Before::of(connection);
            let protocol = connection.session.protocol;
            let context = self.shared.context(&connection.tenant);
            let output = &mut connection.output;
            let now_ms = self.now_ms;
            let mut trace = Trace::new(&*self.shared.options.clock);
            let _tagged = tagged(tag_of(unit.class));
            let outcome = unit.with_keys(|keys| match keys {
                Keys::Some(_) if unit.requests <= TURN_REQUESTS_MAX as u64 => {
                    keyspace.try_run(keys, now_ms, &mut |access| {
                        output.rollback(before.mark);
                        unit.run(access, output, protocol, (context, &mut trace))?;
                        Ok(access.lookups)
                    })
                }
                _ => Outcome::Disk,
            });
            if !matches!(outcome, Outcome::Done { .. }) {
                connection.output.rollback(before.mark);
            }
            let registered = match outcome {
                Outcome::Done { seq, reply } => {
                    connection.tally.looked_up(reply);
                    touch(&mut self.touched, &keyspace, seq);
                    let steps = trace.ended();
                    self.count_steps(connection, steps);
                    return answered(connection, unit.class, unit.requests, before, seq, used);
                }
                Outcome::Failed(error) => return self.failed(connection, unit.class, &error, used),
                Outcome::Disk => return self.hand_over(key, connection, keyspace, unit, used),
                Outcome::Busy => unit.with_keys(|keys| keyspace.wait(keys, self.retry(key))),
                Outcome::Full => {
                    keyspace.kick();
                    keyspace.wait_room(self.retry(key))
                }
            };
            if registered {
                connection.pending = Some(unit);
                connection.parked = Some(Parked::Retry);
                return Flow::Stop;
            }
        }
    }

    /// Counts the commands of a transaction.
    pub(super) fn count_steps(&self, connection: &mut Connection, steps: Vec<Ended>) {
        for step in steps {
            connection.tally.failed += u32::from(step.ending.is_error());
            let calls = &connection.tenant.calls;
            calls.count(self.id, Some(step.spec), &step.ending, step.took);
        }
    }

    /// Remembers the connection's last command, where it differs from the one before.
    fn note(&self, connection: &mut Connection, spec: &'static Spec) {
        let same = connection.last.is_some_and(|last| std::ptr::eq(last, spec));
        let now_ms = self.now / 1_000_000;
        if !same || connection.noted_ms != now_ms {
            connection.client.note(spec, now_ms);
            connection.last = Some(spec);
            connection.noted_ms = now_ms;
        }
    }

    /// What a keyspace calls when the thing that `key` waits for may be over.
    pub(super) fn retry(&self, key: ConnectionKey) -> engine::Waiter {
        let mailbox = self.mailbox.clone();
        Box::new(move || mailbox.send(Message::Retry(key)))
    }
}

/// The state of the output before a command, to take its reply back to.
#[derive(Clone, Copy)]
pub(super) struct Before {
    pub(super) mark: crate::resp::Mark,
    start: usize,
}

impl Before {
    pub(super) fn of(connection: &Connection) -> Self {
        Self {
            mark: connection.output.mark(),
            start: connection.output.len(),
        }
    }
}

/// The reply writer of a connection.
pub(super) fn reply_of(connection: &mut Connection) -> Reply<'_> {
    let protocol = connection.session.protocol;
    Reply::new(&mut connection.output, protocol)
}

/// Books a request whose reply has been written, and drops the reply if the client wants none.
pub(super) fn answered(
    connection: &mut Connection,
    class: Class,
    requests: u64,
    before: Before,
    seq: Seq,
    used: &mut Used,
) -> Flow {
    used.requests += requests;
    connection.tally.count(class);
    let ending = Ending::of(connection.output.since(before.mark));
    connection.tally.failed += u32::from(ending.is_error());
    connection.ending = Some(ending);
    if connection.session.reply_mode.suppresses() {
        connection.output.rollback(before.mark);
    }
    if seq > 0 {
        let end = connection.output.len();
        connection.written.push(Written {
            seq,
            start: before.start,
            end,
        });
    }
    if connection.closing {
        Flow::Stop
    } else {
        Flow::Next
    }
}

/// Answers a request that is no command: unknown, or with too few or too many words. A bad `EXEC` ends its
/// transaction, as in Redis.
fn unusable(connection: &mut Connection, args: Args<'_>, text: &str, used: &mut Used) -> Flow {
    if !commands::is(args.get(0), "exec") || connection.session.transaction.take().is_none() {
        return reject(connection, Class::Other, text, used);
    }
    connection.client.queued(None);
    connection.session.watches.clear();
    let why = text.strip_prefix("ERR ").unwrap_or(text);
    let text = format!("EXECABORT Transaction discarded because of: {why}");
    let flow = fail(connection, Class::Other, &text, used);
    connection.ending = connection.ending.take().map(Ending::rejected);
    flow
}

/// Answers with an error before the command begins.
fn reject(connection: &mut Connection, class: Class, text: &str, used: &mut Used) -> Flow {
    let flow = refuse(connection, class, text, used);
    connection.ending = connection.ending.take().map(Ending::rejected);
    flow
}

/// Answers with an error; inside `MULTI` that spoils the transaction.
pub(super) fn refuse(
    connection: &mut Connection,
    class: Class,
    text: &str,
    used: &mut Used,
) -> Flow {
    if let Some(transaction) = &mut connection.session.transaction {
        transaction.spoiled = true;
    }
    fail(connection, class, text, used)
}

/// Answers that a limit forbids it. Such a request is charged like another, since it was read and answered, but it
/// is in no count of answered or failed requests and in no latency.
fn turn_away(connection: &mut Connection, text: &str, used: &mut Used) -> Flow {
    if let Some(transaction) = &mut connection.session.transaction {
        transaction.spoiled = true;
    }
    let before = Before::of(connection);
    reply_of(connection).error(text);
    connection.ending = Some(Ending::of(connection.output.since(before.mark)).rejected());
    used.requests += 1;
    if connection.session.reply_mode.suppresses() {
        connection.output.rollback(before.mark);
    }
    let tally = &mut connection.tally;
    if tally.answered.is_empty() {
        // Its wait must not be taken for that of the next one that is served.
        (tally.since, tally.queue_ns) = (0, 0);
    }
    Flow::Next
}

/// The answer to every request of a turn that a limit forbids.
pub(super) fn throttled(
    connection: &Connection,
    limit: Limited,
    retry_ns: Nanos,
) -> (telemetry::Limit, String) {
    let settings = connection.tenant.settings();
    let (limit, text) = match limit {
        Limited::Requests => {
            let rate = settings.limit.requests_per_s.unwrap_or_default();
            (telemetry::Limit::Requests, format!("requests = {rate}/s"))
        }
        Limited::Bytes => {
            let rate = settings.limit.bytes_per_s.unwrap_or_default();
            (telemetry::Limit::Bytes, format!("bytes = {rate}/s"))
        }
    };
    let retry_ms = retry_ns.div_ceil(1_000_000);
    let text = format!(
        "THROTTLED tenant '{}' is over its limit of {text}; retry after {retry_ms} ms",
        connection.tenant.name
    );
    (limit, text)
}

/// Answers with an error.
pub(super) fn fail(connection: &mut Connection, class: Class, text: &str, used: &mut Used) -> Flow {
    let before = Before::of(connection);
    reply_of(connection).error(text);
    answered(connection, class, 1, before, 0, used)
}

/// Requests a command is charged as: one, and one more for each further key.
pub(super) fn requests_of(keys: usize) -> u64 {
    keys.max(1) as u64
}

/// The commands that are not queued inside `MULTI`.
fn controls_transaction(spec: &Spec) -> bool {
    use crate::commands::SessionCommand::{Discard, Exec, Multi, Quit, Reset, Watch};
    matches!(
        spec.handler,
        Handler::Session(Discard | Exec | Multi | Quit | Reset | Watch)
    )
}

fn queue(
    connection: &mut Connection,
    spec: &'static Spec,
    args: Args<'_>,
    used: &mut Used,
) -> Flow {
    if spec.flags.has(Flags::NO_MULTI) {
        let text = "ERR Command not allowed inside a transaction";
        return reject(connection, spec.class, text, used);
    }
    let before = Before::of(connection);
    let transaction = connection
        .session
        .transaction
        .as_mut()
        .expect("queued only inside MULTI");
    if transaction.push(spec, args.to_owned()) {
        connection.client.queued(Some(transaction.calls.len()));
        reply_of(connection).simple("QUEUED");
        let flow = answered(connection, Class::Other, 1, before, 0, used);
        // It has not run yet.
        connection.ending = None;
        flow
    } else {
        let text = "ERR the transaction holds more than 256 MiB of commands";
        reject(connection, spec.class, text, used)
    }
}
