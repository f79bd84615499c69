//! From a parsed request to its reply, or to whatever it must wait for.

use commands::{Action, Flags, Spec};
use engine::device::tagged;
use engine::{Access, Keys, Outcome};
use policy::Nanos;
use resp::{Args, Reply};
use smallvec::SmallVec;
use telemetry::Class;

use super::answer::{answered, fail, reject, reply_of, turn_away, Before};
use super::message::Message;
use super::{Core, Used};
use crate::connection::{Connection, LastCommand, Parked, Pending, Ready};
use crate::data;
use crate::device::tag_of;
use crate::tenants::{ConnectionKey, Ending};
use crate::unit::{
    fits_turn, requests_of, Scope, Surroundings, Told, Trace, Unit, TURN_BYTES_MAX, TURN_WORDS_MAX,
};

/// The longest request of those that open connections: room for a name and a password.
const OPENING_BYTES_MAX: usize = 1024;

/// A command that no transaction may have.
pub(super) const NOT_IN_MULTI: &str = "ERR Command not allowed inside a transaction";

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
            Ok(spec) => (Some(spec), self.allowed(key, connection, spec, args, used)),
            Err(bad) => (bad.spec, self.unusable(connection, args, &bad.text, used)),
        };
        if flow != Flow::Again && fits_turn(&args) {
            used.words += args.len() as u64;
        }
        self.count_call(connection, spec, self.now - began);
        flow
    }

    /// Counts the command that `connection` was just answered, if it was, with the time that it
    /// took.
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

    fn allowed(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        if !connection.session.state.authenticated && !spec.flags.has(Flags::NO_AUTH) {
            return match self.join_default(connection) {
                // Its turns are the tenant's.
                Ok(()) => Flow::Again,
                Err(text) => reject(connection, spec.class, text, used),
            };
        }
        if let Some(flow) = self.pause(key, connection, spec) {
            return flow;
        }
        let refusal = self.refusal.as_ref();
        if let Some((limit, text)) = refusal.filter(|_| !opens_connection(spec, &args)) {
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
        if let Some(text) = too_long(spec, &args) {
            return reject(connection, spec.class, &text, used);
        }
        if connection.session.transaction.is_some() && !controls_transaction(spec) {
            return queue(connection, spec, args, used);
        }
        match spec.action {
            Action::Data(_) if fits_turn(&args) && !data::crosses(spec) => {
                self.data(key, connection, spec, args, used)
            }
            Action::Session(command) => self.session(key, connection, spec, command, args, used),
            Action::Data(_)
            | Action::Keyspace(_)
            | Action::KeyspaceWriter(_)
            | Action::Table(_)
            | Action::Report(_) => {
                let state =
                    matches!(spec.action, Action::Report(_)).then_some(&connection.session.state);
                let database = connection.session.state.database;
                let unit = Box::new(Unit::one(spec, args.to_owned(), database, state));
                self.start(key, connection, unit, used)
            }
            Action::Container | Action::Engine => unreachable!("the check has refused it"),
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
        let state = &connection.session.state;
        let (protocol, database) = (state.protocol, state.database);
        let context = self.shared.context(&connection.tenant);
        let output = &mut connection.output;
        let _tagged = tagged(tag_of(spec.class));
        let mut steps = 0;
        let keys = Keys::In(database, &names);
        let run = &mut |access: &mut Access<'_>| {
            access.select(database);
            output.rollback(before.mark);
            let reply = Reply::new(output, protocol);
            let ended = data::run(spec, access, args, reply, context);
            steps = access.steps_taken();
            ended.map(|()| access.lookups)
        };
        let outcome = match spec.flags.has(Flags::WRITE) {
            true => keyspace.try_run(&keys, self.now_ms, run),
            false => keyspace.try_read(&keys, self.now_ms, run),
        };
        used.steps += steps;
        match outcome {
            Outcome::Done { seq, reply } => {
                connection.tally.looked_up(reply);
                self.committers.touch(keyspace, seq);
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
            // It is run again first for those: what is in the way may have gone.
            Outcome::Busy | Outcome::Full => {
                connection.output.rollback(before.mark);
                let unit = Box::new(Unit::one(spec, args.to_owned(), database, None));
                self.start(key, connection, unit, used)
            }
            Outcome::Disk => {
                connection.output.rollback(before.mark);
                let unit = Box::new(Unit::one(spec, args.to_owned(), database, None));
                self.hand_over(key, connection, unit, used)
            }
        }
    }

    /// Runs a unit that owns its words: in memory if it can be, else by way of a handler.
    pub(super) fn start(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        mut unit: Box<Unit>,
        used: &mut Used,
    ) -> Flow {
        if unit.scope() == Scope::Nothing {
            return self.hand_over(key, connection, unit, used);
        }
        if connection.tenant.keyspace().is_none() {
            self.open(key, connection, unit.spec(), used);
            if connection.parked.is_some() {
                connection.pending = Some(Pending::Unit(unit));
            }
            return Flow::Stop;
        }
        if !unit.fits_turn() {
            return self.hand_over(key, connection, unit, used);
        }
        loop {
            let before = Before::of(connection);
            let outcome = self.in_memory(connection, &unit, before, used);
            let Some(keyspace) = connection.tenant.keyspace() else {
                unreachable!("it was open above, and stays so")
            };
            let registered = match outcome {
                Outcome::Done { seq, reply } => {
                    self.committers.touch(keyspace, seq);
                    connection.take_note(reply);
                    let (class, requests) = (unit.class, unit.take_requests());
                    return answered(connection, class, requests, before, seq, used);
                }
                Outcome::Failed(error) => return self.failed(connection, unit.class, &error, used),
                Outcome::Disk => return self.hand_over(key, connection, unit, used),
                Outcome::Busy => unit.wait(keyspace, self.look_again(key)),
                Outcome::Full => {
                    keyspace.kick();
                    keyspace.wait_room(self.look_again(key))
                }
            };
            if registered {
                self.wait_with(key, connection, unit);
                return Flow::Stop;
            }
        }
    }

    /// Phase 1 of a unit. REQUIRES: its tenant's database is open.
    fn in_memory(
        &self,
        connection: &mut Connection,
        unit: &Unit,
        before: Before,
        used: &mut Used,
    ) -> Outcome<Told> {
        let Some(keyspace) = connection.tenant.keyspace() else {
            return Outcome::Disk;
        };
        let mut trace = Trace::new(&*self.shared.options.clock);
        let _tagged = tagged(tag_of(unit.class));
        let (output, mut steps) = (&mut connection.output, 0);
        let outcome = unit.try_run(keyspace, self.now_ms, &mut |access| {
            output.rollback(before.mark);
            let with = Surroundings {
                shared: &self.shared,
                tenant: &connection.tenant,
                client: &connection.client,
                protocol: connection.session.state.protocol,
                now_ms: self.now_ms,
                context: self.shared.context(&connection.tenant),
                trace: &mut trace,
            };
            let ended = unit.run(Some(access), output, with);
            steps = access.steps_taken();
            ended
        });
        used.steps += steps;
        match outcome {
            Outcome::Done { .. } => {
                connection.tally.failed += trace.count(&connection.tenant.calls, self.id);
            }
            _ => connection.output.rollback(before.mark),
        }
        outcome
    }

    /// Parks a connection until it is told to look again, and has it begin `unit` again then.
    pub(super) fn wait_with(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        unit: Box<Unit>,
    ) {
        let told = connection.away().is_some_and(|away| away.told);
        connection.pending = Some(Pending::Unit(unit));
        connection.parked = Some(Parked::Retry);
        if told {
            self.mailbox().send(Message::Ready(key, Ready::Look));
        }
    }

    /// Answers a request that is no command: unknown, or with too few or too many words. A bad
    /// `EXEC` ends its transaction and says that it did, as in Redis, also where there is none.
    fn unusable(
        &mut self,
        connection: &mut Connection,
        args: Args<'_>,
        text: &str,
        used: &mut Used,
    ) -> Flow {
        if !resp::is(args.get(0), "exec") {
            return reject(connection, Class::Other, text, used);
        }
        self.end_transaction(connection);
        self.forget_watches(connection);
        let why = text.strip_prefix("ERR ").unwrap_or(text);
        let text = format!("EXECABORT Transaction discarded because of: {why}");
        let flow = fail(connection, Class::Other, &text, used);
        connection.ending = connection.ending.take().map(Ending::rejected);
        flow
    }

    /// Remembers the connection's last command, where it differs from the one before.
    pub(super) fn note(&self, connection: &mut Connection, spec: &'static Spec) {
        let last = connection.last;
        let same = last.spec.is_some_and(|last| std::ptr::eq(last, spec));
        let now_ms = self.now / 1_000_000;
        if !same || last.noted_ms != now_ms {
            connection.client.note(spec, now_ms);
            connection.last = LastCommand {
                spec: Some(spec),
                noted_ms: now_ms,
            };
        }
    }

    /// What is called when the thing that `key` waits for may be over.
    pub(super) fn look_again(&self, key: ConnectionKey) -> engine::Waiter {
        let mailbox = self.mailbox().clone();
        Box::new(move || mailbox.send(Message::Ready(key, Ready::Look)))
    }
}

/// True for what client libraries send as they connect, which a limit does not refuse: a client
/// that cannot connect does not wait and ask again, but fails. Short, so that a limit on bytes
/// cannot be passed by.
fn opens_connection(spec: &Spec, args: &Args<'_>) -> bool {
    spec.is_about_connection() && args.len_bytes() <= OPENING_BYTES_MAX
}

/// Why a command on the connection cannot be run with words that are this many, or this long: a
/// core would have to look at each, or a handler to compare each with every parameter, without a
/// pause.
fn too_long(spec: &Spec, args: &Args<'_>) -> Option<String> {
    use commands::SessionCommand::{Auth, Config, Echo, Ping, Watch};
    let looks = match spec.action {
        // Of these it needs none: it repeats them, looks at their length, or leaves them to a
        // handler.
        Action::Session(command) => !matches!(command, Auth | Echo | Ping | Watch),
        Action::Report(command) => matches!(command, Config(_)),
        _ => false,
    };
    (looks && !fits_turn(args)).then(|| {
        format!(
            "ERR '{}' takes at most {TURN_WORDS_MAX} words and {TURN_BYTES_MAX} bytes",
            spec.name
        )
    })
}

/// The commands that are not queued inside `MULTI`.
fn controls_transaction(spec: &Spec) -> bool {
    use commands::SessionCommand::{Discard, Exec, Multi, Quit, Reset, Watch};
    matches!(
        spec.action,
        Action::Session(Discard | Exec | Multi | Quit | Reset | Watch)
    )
}

pub(super) fn queue(
    connection: &mut Connection,
    spec: &'static Spec,
    args: Args<'_>,
    used: &mut Used,
) -> Flow {
    if spec.flags.has(Flags::NO_MULTI) {
        return reject(connection, spec.class, NOT_IN_MULTI, used);
    }
    let before = Before::of(connection);
    let transaction = connection
        .session
        .transaction
        .as_mut()
        .expect("queued only inside MULTI");
    if transaction.push((spec, args.to_owned())) {
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
