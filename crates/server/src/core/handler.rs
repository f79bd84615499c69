//! Work that does not fit a turn: its own stage, its permits, its way to a handler thread and back.

use std::sync::Arc;

use policy::Nanos;
use stage::{Admitted, Next, Terms};
use telemetry::Class;

use super::apart;
use super::command::Flow;
use super::crew::{turn, Granted, Piece};
use super::front::Forward;
use super::help::{Help, Stands};
use super::message::Handled;
use super::work::Work;
use super::{Core, Used};
use crate::connection::{Away, Connection, Finished, Parked, Pending, Ready, Written};
use crate::shared::Shared;
use crate::slo::in_lane;
use crate::tenants::{ConnectionKey, Tenant};
use crate::unit::{Scope, Unit, TURN_WORDS_MAX};

/// What waits in the handler stage.
pub enum Task {
    /// A unit to be run.
    Run(Box<Work>),
    /// A request for the engine behind this server.
    Forward(Forward),
    /// The next piece of the command that runs apart for this connection.
    GoOn(ConnectionKey),
    /// Something else; what it returns is for the connection.
    Job(Job),
}

impl Task {
    /// Whether only the core can begin it.
    pub(super) fn is_for_core(&self) -> bool {
        match self {
            Self::Run(work) => work.unit.is_long(),
            Self::Forward(_) | Self::GoOn(_) => true,
            Self::Job(_) => false,
        }
    }

    /// The connection that waits for it, if it is told at once that its turn has come. Of a unit
    /// it hears with the result.
    fn key(&self) -> Option<ConnectionKey> {
        match self {
            Self::GoOn(key) => Some(*key),
            Self::Forward(forward) => Some(forward.key()),
            Self::Run(_) | Self::Job(_) => None,
        }
    }
}

/// Work for a tenant that is not a unit.
pub type Job = Box<dyn FnOnce(&Arc<Shared>) -> Option<(ConnectionKey, Ready)> + Send>;

impl Core {
    /// Queues a unit for a handler and parks its connection.
    pub(super) fn hand_over(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        mut unit: Box<Unit>,
        used: &mut Used,
    ) -> Flow {
        used.requests += unit.take_requests();
        let scope = unit.scope();
        let keyspace = match scope {
            Scope::Nothing => None,
            _ => connection.tenant.keyspace().cloned(),
        };
        if let (Scope::Snapshot, Some(keyspace)) = (scope, &keyspace) {
            // It shows what was there when it was asked for. Should that not be committed yet, it
            // waits here and not with a permit in hand.
            let shows = *unit.shows.get_or_insert_with(|| keyspace.last_seq());
            if !keyspace.await_commit(self.id, shows) {
                keyspace.kick();
                self.waiting.enter(connection.tenant.id, shows, key);
                self.wait_with(key, connection, unit);
                return Flow::Stop;
            }
        }
        // Of what has more words only its handler looks for each in memory.
        let looked_at = unit.fits_turn();
        let reads = unit.reads(keyspace.as_deref().filter(|_| looked_at));
        let (class, level) = (unit.class.index() as u8, unit.level(reads));
        let [at_handlers, at_device] = self.terms_of(connection, &mut unit, level);
        let stands = Stands::Waits;
        let help = Help::with(&unit, reads, at_device, stands, &self.handlers);
        let help = help.filter(|_| looked_at);
        let work = Box::new(Work {
            key,
            core: self.id,
            tenant: Arc::clone(&connection.tenant),
            keyspace,
            unit,
            protocol: connection.session.state.protocol,
            client: Arc::clone(&connection.client),
            at_handlers,
            terms: at_device,
            ahead: help.as_ref().map(Help::ahead),
        });
        connection.parked = Some(Parked::Handler(Away {
            bytes: work.unit.bytes() as u64,
            told: false,
        }));
        let tenant = connection.tenant.id;
        let task = Task::Run(work);
        if !self.handlers.enqueue(tenant, class, at_handlers, task) {
            // One unit a connection at most: the queue holds as many as connections are allowed.
            tracing::error!(tenant = connection.tenant.name, "handler queue is full");
            connection.parked = None;
            connection.closing = true;
            return Flow::Stop;
        }
        if let Some(help) = help {
            help.enqueue(tenant, at_handlers);
        }
        Flow::Stop
    }

    /// On what terms a unit waits for a handler, and its I/O for the device. When it is due is
    /// settled when it begins for the first time.
    fn terms_of(&self, connection: &mut Connection, unit: &mut Unit, level: u8) -> [Terms; 2] {
        let begin = || self.principals.begin(connection, unit.class);
        let due_at = *unit.due_at.get_or_insert_with(begin);
        let lane = in_lane(connection.lane);
        due_at.map(|due_at| Terms {
            due_at,
            level,
            ..lane
        })
    }

    /// Queues a job for a handler, in the line of a tenant. `false`: the tenant is gone, and so is
    /// the job.
    pub(super) fn submit(&mut self, tenant: &Tenant, job: Job) -> bool {
        let now = self.shared.options.clock.now();
        self.enroll(tenant, now);
        let class = Class::Other.index() as u8;
        let task = Task::Job(job);
        // What is submitted behind a turn's handlers would wait until something else comes.
        self.agenda.wake_by(now);
        let terms = Terms::default();
        self.handlers.enqueue(tenant.id, class, terms, task)
    }

    /// Drops something that is made of this many parts, elsewhere if they are many.
    pub(super) fn drop_later(&mut self, tenant: &Tenant, parts: usize, heavy: impl Send + 'static) {
        if parts <= TURN_WORDS_MAX {
            return;
        }
        if tenant.removed() {
            // It has no line any more.
            return self
                .shared
                .engine
                .handlers()
                .submit(Box::new(move || drop(heavy)));
        }
        let job: Job = Box::new(move |_| {
            drop(heavy);
            None
        });
        self.submit(tenant, job);
    }

    /// Sees to it that what it has no work for can be used by other cores, and the other way round.
    fn share_permits(&mut self, now: Nanos) {
        // There is nobody to lend to, or what may be out at the engine is each core's own.
        if self.mailboxes.len() == 1 || self.shared.upstream.is_some() {
            return;
        }
        // Until it is known what may be in use, no handler begins anything more.
        let mut stage = self.handlers.stage();
        let need = stage.need();
        let (asked, holds) = self.permits;
        if need == asked && need.useful <= holds {
            return;
        }
        let held = self.shared.permits.lock().ask(now, self.id, need);
        self.permits = (need, held.permits);
        stage.hold(held.permits);
        drop(stage);
        for core in held.wake {
            self.mailboxes[core].wake();
        }
    }

    /// Starts as many tasks as permits allow, in the order the stage decides.
    pub(super) fn release_handlers(&mut self, now: Nanos) {
        self.share_permits(now);
        loop {
            let next = self.handlers.stage().next(now);
            match next {
                Next::Admitted(admitted) => self.dispatch(admitted, now),
                Next::At(at) => {
                    self.agenda.wake_by(at);
                    break;
                }
                Next::Idle => break,
            }
        }
        if self.front.is_some() {
            self.release_requests(now);
        }
    }

    /// Begins with what the stage has let go.
    pub(super) fn dispatch(&mut self, admitted: Admitted<Task, 1>, now: Nanos) {
        let key = admitted.item.key();
        if let Some(connection) = key.and_then(|key| self.places.get(key)) {
            (connection.tally).at_handler(turn(admitted.waited_ns, now));
        }
        if admitted.item.is_for_core() {
            return self.dispatch_here(admitted, now);
        }
        let mut granted = Granted::of(admitted, now);
        if let Piece::Unit(work, latch) = &mut granted.piece {
            if let (true, Some(keyspace)) = (work.unit.fits_turn(), work.keyspace.clone()) {
                *latch = work.latch(&keyspace, self.look_again(work.key));
                if latch.is_none() {
                    return self.wait_for_keys(granted);
                }
            }
        }
        self.handlers.submit(granted);
    }

    /// Somebody else has the key on a handler; when it comes back this may need no disk at all.
    fn wait_for_keys(&mut self, granted: Granted) {
        self.handlers.settle(granted.permit, 0);
        let Piece::Unit(work, _) = granted.piece else {
            return;
        };
        if let Some(mut connection) = self.places.lift(work.key) {
            self.wait_with(work.key, &mut connection, work.unit);
            self.places.back(work.key, connection);
        }
    }

    /// The same, of what is the core's to begin.
    fn dispatch_here(&mut self, admitted: Admitted<Task, 1>, now: Nanos) {
        let permit = admitted.permit;
        match admitted.item {
            Task::Forward(forward) => self.send_to_engine(forward, permit, now),
            Task::GoOn(key) => self.go_on(key, permit),
            Task::Run(work) => {
                let turn = turn(admitted.waited_ns, now);
                apart::begin(*work, permit, None, now, turn, &self.handlers);
            }
            Task::Job(_) => unreachable!("a handler can do it"),
        }
    }

    /// A handler has done a piece of work.
    pub(super) fn handled(&mut self, handled: Handled, now: Nanos) {
        let worked = handled.worked;
        let began = now.saturating_sub(worked.service_ns);
        self.trails.handlers.note(handled.principal.0, began, now);
        let cost = Used::default().cost(worked.cpu_ns);
        self.lines.requests.charge(now, handled.principal, cost);
        if let Some((key, ready)) = handled.then {
            if let (Some(turn), Some(connection)) = (handled.turn, self.places.get(key)) {
                connection.tally.at_handler(turn);
            }
            self.ready(key, ready, now);
        }
    }

    /// A unit is back: its reply joins its connection's.
    pub(super) fn finish(&mut self, connection: &mut Connection, finished: Finished) {
        connection.parked = None;
        connection.tally.disk_ns = connection.tally.disk_ns.max(finished.service_ns);
        connection.tally.count(finished.class);
        connection.tally.failed += u32::from(finished.ending.is_error()) + finished.failed;
        connection.ending = Some(finished.ending);
        let spec = connection.last.spec;
        self.count_call(connection, spec, finished.service_ns);
        connection.take_note(finished.told);
        // After what it has left behind: with `CLIENT REPLY SKIP` before it, that state still says
        // to skip this one.
        let suppressed = connection.session.state.reply_mode.suppresses();
        let start = connection.output.len();
        if !suppressed {
            connection.output.append(finished.output);
        }
        if finished.seq > 0 {
            let end = connection.output.len();
            connection.uncommitted.written.push(Written {
                seq: finished.seq,
                start,
                end,
            });
        }
    }

    /// What a connection waited for may be over: it begins again what it had begun.
    pub(super) fn begin_again(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        used: &mut Used,
    ) {
        match &mut connection.parked {
            Some(Parked::Retry | Parked::Memory) => connection.parked = None,
            // It does not wait yet; a handler is about to say that it must.
            Some(Parked::Handler(away)) => return away.told = true,
            Some(Parked::Apart(apart)) => return apart.away.told = true,
            _ => return,
        }
        if let Some(Pending::Unit(_)) = &connection.pending {
            let Some(Pending::Unit(unit)) = connection.pending.take() else {
                return;
            };
            let begin = self.now;
            self.start(key, connection, unit, used);
            let spec = connection.last.spec;
            let took = self.shared.options.clock.now() - begin;
            self.count_call(connection, spec, took);
        }
    }
}
