//! From a parsed request to the stage before the engine.

use bytes::Bytes;
use commands::{Action, Flags, SessionCommand, Spec};
use front::{Command, Way};
use policy::slo::control::HANDLERS;
use resp::{Args, Protocol};
use stage::Terms;

use super::shards::no_channels;
use super::{Forward, Forwards, Front};
use crate::connection::{Connection, Outstanding, Parked};
use crate::core::answer::{reject, turn_away};
use crate::core::command::{queue, Flow, NOT_IN_MULTI};
use crate::core::handler::Task;
use crate::core::{Core, Used};
use crate::slo::in_lane;
use crate::tenants::ConnectionKey;
use crate::unit::TURN_WORDS_MAX;

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
        if connection.subscriptions() > 0 && connection.session.state.protocol == Protocol::Resp2 {
            if let Some(flow) = self.about_channels_only(&front, connection, args, used) {
                self.front = Some(front);
                return flow;
            }
        }
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
        command: &'static Command,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        // What is answered here comes behind all that is out, and so does what is too much, or must
        // be written elsewhere first.
        let out = connection.outstanding();
        let goes_out = (command.way.scripts()
            || matches!(
                command.way,
                Way::Engine | Way::Sort | Way::Waits | Way::Channel | Way::Shard | Way::EveryShard
            ))
            && command.spec.takes(args.len())
            && args.len() <= TURN_WORDS_MAX
            && self.refusal.is_none()
            && connection.tenant.pause.holds(self.now, true).is_none()
            && !command.may_wait(&args);
        if out > 0 && !(goes_out && front.joins(connection, command, args.len_bytes())) {
            return Flow::Again;
        }
        let transaction = connection.session.transaction.is_some();
        if transaction && command.spec.flags.has(Flags::NO_MULTI) {
            // Which those are differs from engine to engine (`WATCH`, `MULTI`).
            return self.told(connection, command.spec, |connection| {
                reject(connection, command.spec.class, NOT_IN_MULTI, used)
            });
        }
        if command.way == Way::Here {
            return self.here(front, key, connection, args, used);
        }
        let spec = command.spec;
        // Libraries that know of clusters ask for all commands as they connect. Who is refused that
        // does not wait and ask again, but takes the server for one that is broken.
        let opens = spec.name == "command" && args.len() == 1 && connection.client.aware;
        if let Some(flow) = self.not_let_in(key, connection, spec, opens, args, used) {
            return flow;
        }
        if let Some(why) = self.refuses(connection, command) {
            return self.turned_down(connection, spec, why, used);
        }
        match command.way {
            Way::Watch => return self.watch_at_engine(front, key, connection, command, args, used),
            Way::Subscribe => return self.subscribe(front, key, connection, command, args, used),
            Way::EveryShard if front.has_no_part(connection) => {
                return self.told(connection, spec, |connection| {
                    no_channels(connection, spec, &args, used)
                });
            }
            _ => {}
        }
        if transaction {
            return self.queue_for_engine(front, connection, command, args, used);
        }
        if let Way::Walk(walk) = command.way {
            return self.begin_walk(front, key, connection, command, walk, args, used);
        }
        self.encode_request(front, key, connection, command, args, used)
    }

    /// What comes before any command: its answer, if the command is not to be run. No limit refuses
    /// what `opens` a connection.
    fn not_let_in(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        opens: bool,
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
        if let Some((limit, text)) = self.refusal.clone().filter(|_| !opens) {
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

    pub(super) fn turned_down(
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
        let flow = self.answer_here(front, key, connection, args, used);
        front.unwatch_if_over(connection);
        flow
    }

    fn answer_here(
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
            Action::Session(Is::Watch) => {
                self.turned_down(connection, spec, "the engine has no such command", used)
            }
            Action::Session(is @ (Is::Discard | Is::Unwatch))
                if self.refusal.is_none()
                    && connection.watching.is_some()
                    && in_transaction == matches!(is, Is::Discard) =>
            {
                self.unwatch_at_engine(front, key, connection, spec, args, used)
            }
            Action::Session(Is::Select) if args.get(1) != b"0" => {
                let why = "tenants before an engine have one database, 0";
                self.turned_down(connection, spec, why, used)
            }
            // Channels are a tenant's, and come as the connection speaks.
            Action::Session(Is::Auth | Is::Hello) if connection.pushes.is_some() => {
                let text = format!(
                    "ERR '{}' cannot be used with subscriptions: end them",
                    spec.name
                );
                self.told(connection, spec, |connection| {
                    reject(connection, spec.class, &text, used)
                })
            }
            Action::Session(Is::Reset) if connection.pushes.is_some() => {
                let turns = front.end_pushes(key, connection);
                turns
                    .into_iter()
                    .for_each(|turn| self.end_turn(Some(turn), true));
                self.command(key, connection, args, used)
            }
            // The engine answers these in their place among the others.
            Action::Session(Is::Ping | Is::Echo | Is::Time | Is::Unwatch) if in_transaction => {
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

    /// Queues a request before the engine, perhaps in parts, the largest of which is of this level;
    /// its connection waits for one more reply.
    pub(super) fn forward(
        &mut self,
        front: &mut Front,
        connection: &mut Connection,
        (gather, forwards): Forwards,
        level: u8,
    ) -> Flow {
        let pieces = forwards.iter().flat_map(|forward| &forward.pieces);
        let bytes: usize = pieces.map(Bytes::len).sum();
        let whose = (connection.tenant.id, connection.lane);
        let large = front.sizes.note(whose, bytes, self.now);
        // Each uses up its contract; those that go with others go by the terms of the first.
        let begun = forwards.first().map(|first| {
            let class = first.spec.class;
            let due_at = self.principals.begin(connection, class)[HANDLERS];
            let tenant = &connection.tenant;
            let reserved = self.principals.reserved(tenant, class, self.now);
            // What is reserved is due when it comes.
            (first, reserved.then_some(connection.tally.since).or(due_at))
        });
        if let (0, Some((first, due_at))) = (connection.outstanding(), begun) {
            let mut outstanding = Outstanding::none(Terms {
                due_at,
                level,
                ..in_lane(connection.lane)
            });
            outstanding.own = large || front.sizes.knows(whose);
            outstanding.scripts = first.script;
            connection.parked = Some(Parked::Engine(Box::new(outstanding)));
        }
        let Some(Parked::Engine(outstanding)) = &mut connection.parked else {
            unreachable!("made above")
        };
        outstanding.away.bytes += bytes as u64;
        let number = outstanding.begin(gather);
        let own = outstanding.own;
        front.nodes.asked(connection.client.aware);
        for forward in &forwards {
            outstanding.wrote |= !forward.spec.flags.has(Flags::READONLY);
            outstanding.at_replicas |= front.nodes.get(forward.node).reads;
        }
        for forward in forwards {
            let forward = Forward {
                number,
                own,
                ..forward
            };
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
        let terms = match &connection.parked {
            Some(Parked::Engine(outstanding)) => outstanding.terms,
            _ => in_lane(connection.lane),
        };
        let (tenant, place, task) = (forward.whose.0, forward.node, Task::Forward(forward));
        let queued =
            self.stage_before(place)
                .enqueue_on(now, tenant, class.index() as u8, terms, task);
        match queued {
            Err(Task::Forward(forward)) => Some(forward),
            _ => None,
        }
    }
}
