//! From a parsed request to the stage before the engine.

use std::borrow::Cow;
use std::sync::Arc;

use commands::{Action, SessionCommand, Spec};
use front::{frame, Command, Gather, Shows, Way, Written};
use resp::Args;
use smallvec::{smallvec, SmallVec};

use super::{Forward, Forwards, Front};
use crate::connection::{Connection, Outstanding, Parked};
use crate::core::answer::{refuse, reject, turn_away};
use crate::core::command::{queue, Flow};
use crate::core::handler::Task;
use crate::core::{Core, Used};
use crate::session::Transaction;
use crate::tenants::ConnectionKey;
use crate::unit::requests_of;

/// Requests of a connection that are out together at most. What comes behind them waits in its
/// buffer.
const OUT_TOGETHER: u32 = 128;

/// Nobody serves the keys of a request, while a node is down and none has taken its place.
pub(super) const NO_NODE: &str =
    "ERR engine: no node of its cluster serves these keys at present; nothing was done";
/// A tenant that this front has not written down at the cluster, as it was away.
pub(super) const NO_SPACE: &str =
    "ERR engine: how many partitions this tenant has is not known yet; nothing was done";

impl Core {
    /// Runs one request of `connection`, or sends it on its way to the engine.
    pub(in crate::core) fn front_request(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let Some(mut front) = self.front.take() else {
            return self.command(key, connection, args, used);
        };
        let flow = match front.table.find(&args) {
            Some(command) => self.front_command(&mut front, key, connection, command, args, used),
            None => self.not_known(key, connection, args, used),
        };
        self.front = Some(front);
        flow
    }

    /// A request that the engine knows no command for.
    fn not_known(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        if connection.outstanding() > 0 {
            return Flow::Again;
        }
        match commands::check(&args) {
            Ok(spec)
                if !matches!(
                    spec.action,
                    Action::Session(_) | Action::Report(_) | Action::Table(_)
                ) =>
            {
                self.turned_down(connection, spec, "the engine has no such command", used)
            }
            _ => self.command(key, connection, args, used),
        }
    }

    fn front_command(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        command: &Command,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        // What is answered here comes behind all that is out, and so does what is too much.
        let out = connection.outstanding();
        let goes_out = matches!(command.way, Way::Engine | Way::Sort | Way::Waits)
            && command.spec.takes(args.len())
            && self.refusal.is_none()
            && connection.tenant.pause.holds(self.now, true).is_none()
            && !command.may_wait(&args);
        if out > 0 && !goes_out || out >= OUT_TOGETHER {
            return Flow::Again;
        }
        if command.way == Way::Here {
            return self.here(front, key, connection, args, used);
        }
        if let Some(flow) = self.not_let_in(key, connection, command.spec, args, used) {
            return flow;
        }
        let spec = command.spec;
        if let Way::Refused(why) = command.way {
            return self.turned_down(connection, spec, why, used);
        }
        if connection.session.transaction.is_some() {
            return self.queue_for_engine(front, connection, command, args, used);
        }
        if let Way::Walk(walk) = command.way {
            return self.begin_walk(front, key, connection, command, walk, args, used);
        }
        if command.may_wait(&args) {
            return self.turned_down(
                connection,
                spec,
                "a connection that waits is not there yet",
                used,
            );
        }
        match self.forwards(front, key, connection, command, args, used) {
            Ok((gather, forwards)) => self.forward(connection, gather, forwards),
            Err(text) if out == 0 => self.told(connection, spec, |connection| {
                refuse(connection, spec.class, &text, used)
            }),
            Err(_) => Flow::Again,
        }
    }

    /// A request as the engine is sent it, in parts if its keys have several nodes.
    fn forwards(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &Connection,
        command: &Command,
        args: Args<'_>,
        used: &mut Used,
    ) -> Result<Forwards, Cow<'static, str>> {
        let space = front.space(&connection.tenant).ok_or(NO_SPACE)?;
        let nodes = &front.nodes;
        let new = |bytes, part: Option<u16>| -> Result<Forward, &'static str> {
            let node = match part {
                Some(part) => nodes.of(&space, part),
                None => nodes.serving().first().copied(),
            };
            let node = node.ok_or(NO_NODE)?;
            let forward = Forward::new(
                key,
                connection,
                Arc::clone(&space),
                command.spec,
                bytes,
                node,
            );
            Ok(Forward {
                slot: part.map(|part| space.slot(part)),
                ..forward
            })
        };
        if let Some((gather, parts)) = command.split(&args, &space)? {
            let mut forwards = SmallVec::new();
            for part in parts {
                used.requests += requests_of(part.keys.len());
                forwards.push(Forward {
                    keys: Some(part.keys),
                    ..new(part.bytes, Some(part.part))?
                });
            }
            return Ok((Some(gather), forwards));
        }
        let mut bytes = Vec::with_capacity(args.len_bytes() + 64);
        let written = command.write(&args, &space, &mut bytes)?;
        let at = (&*space, written.part);
        front.stays(connection, command, &args, at, self.now)?;
        used.requests += requests_of(written.keys);
        let forward = Forward {
            shows: command.shows.clone(),
            ..new(bytes, written.part)?
        };
        Ok((None, smallvec![forward]))
    }

    /// What comes before any command: its answer, if the command is not to be run.
    fn not_let_in(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        args: Args<'_>,
        used: &mut Used,
    ) -> Option<Flow> {
        if !connection.session.state.authenticated {
            return Some(match self.join_default(connection) {
                Ok(()) => Flow::Again,
                Err(text) => self.told(connection, spec, |connection| {
                    reject(connection, spec.class, text, used)
                }),
            });
        }
        if let Some(flow) = self.pause(key, connection, spec) {
            return Some(flow);
        }
        if let Some((limit, text)) = self.refusal.clone() {
            if let Some(recorder) = self.principals.of(&connection.tenant) {
                recorder.throttled(spec.class, limit);
            }
            return Some(self.told(connection, spec, |connection| {
                turn_away(connection, &text, used)
            }));
        }
        self.note(connection, spec);
        if !spec.takes(args.len()) {
            let text = format!("ERR wrong number of arguments for '{}' command", spec.name);
            return Some(self.told(connection, spec, |connection| {
                reject(connection, spec.class, &text, used)
            }));
        }
        None
    }

    /// Counts what `answer` has answered.
    pub(super) fn told(
        &self,
        connection: &mut Connection,
        spec: &'static Spec,
        answer: impl FnOnce(&mut Connection) -> Flow,
    ) -> Flow {
        let flow = answer(connection);
        self.count_call(connection, Some(spec), 0);
        flow
    }

    fn turned_down(
        &self,
        connection: &mut Connection,
        spec: &'static Spec,
        why: &str,
        used: &mut Used,
    ) -> Flow {
        let text = format!("ERR '{}' cannot be used before an engine: {why}", spec.name);
        self.told(connection, spec, |connection| {
            reject(connection, spec.class, &text, used)
        })
    }

    /// A command that the front answers. Nothing of the connection is out.
    fn here(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        use SessionCommand as Is;
        let Ok(spec) = commands::check(&args) else {
            return self.command(key, connection, args, used);
        };
        let in_transaction = connection.session.transaction.is_some();
        match spec.action {
            Action::Session(Is::Exec) if self.refusal.is_none() => {
                self.exec_at_engine(front, key, connection, spec, args, used)
            }
            Action::Session(Is::Watch) => self.turned_down(
                connection,
                spec,
                "a connection that watches is not there yet",
                used,
            ),
            Action::Session(Is::Select) if args.get(1) != b"0" => {
                let why = "tenants before an engine have one database, 0";
                self.turned_down(connection, spec, why, used)
            }
            // The engine answers these in their place among the others.
            Action::Session(Is::Ping | Is::Echo | Is::Time) if in_transaction => {
                let flow = queue(connection, spec, args, used);
                self.count_call(connection, Some(spec), 0);
                flow
            }
            Action::Session(Is::Multi | Is::Discard | Is::Exec | Is::Reset | Is::Quit) => {
                self.command(key, connection, args, used)
            }
            _ if in_transaction => {
                let why = "it cannot be part of a transaction";
                self.turned_down(connection, spec, why, used)
            }
            _ => self.command(key, connection, args, used),
        }
    }

    /// Queues a command between `MULTI` and `EXEC`, if the engine can be sent it.
    fn queue_for_engine(
        &mut self,
        front: &mut Front,
        connection: &mut Connection,
        command: &Command,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let spec = command.spec;
        if matches!(command.way, Way::Walk(_)) {
            return self.turned_down(connection, spec, "it cannot be part of a transaction", used);
        }
        let space = front.space(&connection.tenant);
        let stays = space.ok_or(Cow::from(NO_SPACE)).and_then(|space| {
            let part = command.write(&args, &space, &mut Vec::new())?.part;
            let at = (&*space, part);
            Ok(front.stays(connection, command, &args, at, self.now)?)
        });
        self.told(connection, spec, |connection| match stays {
            Ok(()) => queue(connection, spec, args, used),
            Err(text) => reject(connection, spec.class, &text, used),
        })
    }

    /// `EXEC`: the engine is sent the transaction as a whole, so that nothing of others comes
    /// between.
    fn exec_at_engine(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let whole = |transaction: &crate::session::Transaction| {
            !transaction.spoiled && !transaction.calls.is_empty()
        };
        if !connection.session.transaction.as_deref().is_some_and(whole) {
            return self.command(key, connection, args, used);
        }
        let Some(transaction) = connection.session.transaction.take() else {
            unreachable!("it was there above")
        };
        connection.client.queued(None);
        match write_transaction(front, key, connection, spec, &transaction) {
            Ok((forward, requests)) => {
                used.requests += requests;
                self.forward(connection, None, smallvec![forward])
            }
            Err(text) => self.told(connection, spec, |connection| {
                refuse(connection, spec.class, &text, used)
            }),
        }
    }

    /// Queues a request before the engine, perhaps in parts; its connection waits for one more
    /// reply.
    pub(super) fn forward(
        &mut self,
        connection: &mut Connection,
        gather: Option<Gather>,
        forwards: SmallVec<[Forward; 1]>,
    ) -> Flow {
        let bytes: usize = forwards.iter().map(|forward| forward.bytes.len()).sum();
        if connection.outstanding() == 0 {
            connection.parked = Some(Parked::Engine(Box::new(Outstanding::none())));
        }
        let Some(Parked::Engine(outstanding)) = &mut connection.parked else {
            unreachable!("made above")
        };
        outstanding.away.bytes += bytes as u64;
        let number = outstanding.begin(gather);
        for forward in forwards {
            let forward = Forward { number, ..forward };
            if self.line_up(connection, forward).is_some() {
                // The queue holds more than all connections may have out.
                tracing::error!(
                    tenant = connection.tenant.name,
                    "the queue before the engine is full"
                );
                connection.closing = true;
                connection.parked = None;
                return Flow::Stop;
            }
        }
        Flow::Next
    }

    /// Puts a request, or a further step of one, into its tenant's queue; returns it if that is
    /// full.
    pub(super) fn line_up(&mut self, connection: &Connection, forward: Forward) -> Option<Forward> {
        let (now, class) = (self.now, forward.spec.class);
        let [terms, _] = self.principals.terms_of(connection, class);
        let (tenant, place, task) = (forward.tenant, forward.node, Task::Forward(forward));
        let queued =
            self.stage_before(place)
                .enqueue_on(now, tenant, class.index() as u8, terms, task);
        match queued {
            Err(Task::Forward(forward)) => Some(forward),
            _ => None,
        }
    }
}

/// A transaction as the engine is sent it, and how many requests it counts as.
///
/// # Errors
/// The text of an error: it cannot be sent.
fn write_transaction(
    front: &mut Front,
    key: ConnectionKey,
    connection: &Connection,
    spec: &'static Spec,
    transaction: &Transaction,
) -> Result<(Forward, u64), String> {
    let space = front.space(&connection.tenant).ok_or(NO_SPACE)?;
    let mut bytes = Vec::with_capacity(transaction.extent.bytes + 64);
    let mut shows = Vec::new();
    let mut all = Written {
        keys: 0,
        part: None,
    };
    frame([&b"MULTI"[..]].into_iter(), &mut bytes);
    for (_, call) in transaction.calls.iter() {
        let call = call.args();
        let found = front.table.find(&call);
        match found.filter(|found| found.way != Way::Here) {
            Some(command) => {
                shows.push(command.shows.clone());
                // The engine may have been exchanged since it was queued.
                let written = command.write(&call, &space, &mut bytes);
                let written = written
                    .map_err(|why| format!("EXECABORT Transaction discarded because of: {why}"))?;
                all = all.and(written)?;
            }
            None => {
                shows.push(Shows::None);
                let words: SmallVec<[&[u8]; 4]> = call.iter().collect();
                frame(words.into_iter(), &mut bytes);
            }
        }
    }
    frame([&b"EXEC"[..]].into_iter(), &mut bytes);
    let requests = requests_of(all.keys.max(shows.len()));
    let part = all.part.unwrap_or_default();
    let node = front.nodes.of(&space, part).ok_or(NO_NODE)?;
    let slot = space.slot(part);
    let forward = Forward {
        before: 1 + shows.len() as u32,
        shows: match shows.iter().all(|shows| *shows == Shows::None) {
            true => Shows::None,
            false => Shows::Several(shows),
        },
        slot: Some(slot),
        ..Forward::new(key, connection, space, spec, bytes, node)
    };
    Ok((forward, requests))
}
