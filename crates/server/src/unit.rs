//! What is run as one: a command, or the commands between `MULTI` and `EXEC`.

mod keys;
mod level;
mod trace;

use std::collections::BTreeMap;
use std::sync::Arc;

use commands::{Action, SessionCommand, Spec};
use engine::{Access, Database, Lookups, Seq, Stop, Watch};
use parking_lot::Mutex;
use policy::slo::control::STAGES;
use policy::Nanos;
use resp::{Args, Output, OwnedArgs, Protocol, Reply};
use telemetry::Class;

use crate::data::{self, Context};
use crate::session::{self, Calls, Extent, State, Transaction, Visit, Watches};
use crate::shared::Shared;
use crate::tenants::{Client, Ending, Passes, Tenant};

#[cfg(test)]
pub use level::tests;
pub use level::{level_apart, BYTES_OF_KEY};
pub use trace::Trace;

/// Words of a request that a core looks at in a turn: others wait for it meanwhile.
pub const TURN_WORDS_MAX: usize = 128;
/// Bytes of such a request.
pub const TURN_BYTES_MAX: usize = 64 << 10;
/// Words of a request that a handler takes on: others wait for its permit.
const HANDLER_WORDS_MAX: usize = 1_024;
/// Bytes of such a request.
const HANDLER_BYTES_MAX: usize = 1 << 20;
/// Keys that are latched one by one. Who names more reads a snapshot, or has all of its tenant's
/// keys while it writes: a latch for each would take longer than most commands, and the memory of a
/// hundred bytes a key.
const LATCHES_MAX: usize = 4_096;
/// Times that a unit with several keys finds one of them taken, before it asks for what is not key
/// by key: those who have one while it waits for another may follow each other for ever.
const VAIN_MAX: u8 = 8;

/// Bytes that commands that report may have replied in one transaction, before the next of them is
/// refused: they are kept until its end.
const SAID_BYTES_MAX: usize = 1 << 20;

/// Whether a request is small enough for a core to look at each of its words.
pub fn fits_turn(args: &Args<'_>) -> bool {
    args.len() <= TURN_WORDS_MAX && args.len_bytes() <= TURN_BYTES_MAX
}

/// Requests a command is charged as: one, and one more for each further key.
pub fn requests_of(keys: usize) -> u64 {
    keys.max(1) as u64
}

/// One command of a unit.
#[derive(Clone, Copy)]
struct Step<'a> {
    /// Which of the unit's.
    place: usize,
    spec: &'static Spec,
    args: Args<'a>,
}

/// What a unit works with besides the data.
pub struct Surroundings<'a, 'c> {
    /// The whole server.
    pub shared: &'a Arc<Shared>,
    /// Whose unit it is.
    pub tenant: &'a Arc<Tenant>,
    /// Which connection's.
    pub client: &'a Arc<Client>,
    /// The protocol of its replies.
    pub protocol: Protocol,
    /// The time it runs at, ms since the Unix epoch.
    pub now_ms: u64,
    /// Limits.
    pub context: Context<'a>,
    /// How its commands end.
    pub trace: &'a mut Trace<'c>,
}

/// What a unit leaves behind beside its reply and its writes.
#[derive(Default)]
pub struct Told {
    /// Keys looked up.
    pub lookups: Lookups,
    /// Steps taken.
    pub steps: u64,
    /// What its commands on the connection have changed.
    pub state: Option<Box<State>>,
    /// What it has watched.
    pub watches: Vec<Watch>,
}

/// What a unit needs of its tenant's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Nothing.
    Nothing,
    /// The keys it names.
    Keys,
    /// All keys as they were when it began.
    Snapshot,
    /// All keys, alone.
    Everything,
}

/// What commands that report have replied, by their place in their unit.
#[derive(Default)]
struct Said {
    replies: BTreeMap<usize, Vec<u8>>,
    bytes: usize,
}

/// Commands that take effect together.
pub struct Unit {
    /// The command that the client sent: `EXEC` for a transaction.
    spec: &'static Spec,
    calls: Calls,
    extent: Extent,
    /// The replies come as one array (`EXEC`).
    transaction: bool,
    /// Keys that must not have changed since they were watched.
    watches: Watches,
    /// The database that its first command is for.
    database: Database,
    /// What the connection remembers, for commands that look at it.
    state: Option<Box<State>>,
    /// A unit may run more than once, and what such commands changed of the server is changed.
    said: Mutex<Said>,
    /// The class under which it is counted.
    pub class: Class,
    /// Requests it is charged as, until it has been.
    pub requests: u64,
    /// When it must have its turn at the stages, if it was promised something: once it is known.
    pub due_at: Option<[Option<Nanos>; STAGES]>,
    /// What it is to show at least, where it reads a snapshot.
    pub shows: Option<Seq>,
    /// The passes that it has, if it has turned out that it must run apart.
    pub passes: Passes,
    /// How often it found its keys taken.
    vain: u8,
}

impl Unit {
    /// A single command; `state` is for those that look at the connection.
    pub fn one(
        spec: &'static Spec,
        args: OwnedArgs,
        database: Database,
        state: Option<&State>,
    ) -> Self {
        let mut extent = Extent::default();
        let call = (spec, args);
        extent.add(&call);
        let requests = requests_of(extent.keys);
        let mut calls = Calls::default();
        calls.push(call);
        Self {
            spec,
            calls,
            extent,
            transaction: false,
            watches: Watches::default(),
            database,
            state: state.map(|state| Box::new(state.clone())),
            said: Mutex::default(),
            class: spec.class,
            requests,
            due_at: None,
            shows: None,
            passes: Passes::default(),
            vain: 0,
        }
    }

    /// The commands of a transaction. The watched keys count among its own, so that nobody can
    /// write them between the check and the effect.
    pub fn transaction(
        spec: &'static Spec,
        transaction: Transaction,
        watches: Watches,
        state: &State,
    ) -> Self {
        Self {
            spec,
            // A command that names many keys costs as much as alone.
            requests: requests_of(transaction.calls.len().max(transaction.extent.keys)),
            calls: transaction.calls,
            extent: transaction.extent,
            transaction: true,
            watches,
            database: state.database,
            state: Some(Box::new(state.clone())),
            said: Mutex::default(),
            class: Class::Multiget,
            due_at: None,
            shows: None,
            passes: Passes::default(),
            vain: 0,
        }
    }

    fn is_watch(&self) -> bool {
        matches!(self.spec.action, Action::Session(SessionCommand::Watch))
    }

    fn keys(&self) -> usize {
        self.extent.keys + self.watches.len()
    }

    /// What it needs of the data.
    pub fn scope(&self) -> Scope {
        let alone = !self.only_reads();
        let data = self.extent.data || self.is_watch() || !self.watches.is_empty();
        let many = self.keys() > LATCHES_MAX || (self.keys() > 1 && self.vain >= VAIN_MAX);
        match (data, self.extent.whole || many) {
            (false, _) => Scope::Nothing,
            (true, false) => Scope::Keys,
            (true, true) if alone => Scope::Everything,
            (true, true) => Scope::Snapshot,
        }
    }

    /// Whether a core may run it in a turn, and look at each of its words.
    pub fn fits_turn(&self) -> bool {
        self.scope() == Scope::Keys
            && !self.extent.reports
            && self.extent.words <= TURN_WORDS_MAX
            && self.extent.bytes <= TURN_BYTES_MAX
            && self.keys() <= TURN_WORDS_MAX
    }

    /// Whether it is known from the start to take longer than a handler may.
    pub fn is_long(&self) -> bool {
        self.extent.words > HANDLER_WORDS_MAX || self.extent.bytes > HANDLER_BYTES_MAX
    }

    /// Bytes of its words.
    pub fn bytes(&self) -> usize {
        self.extent.bytes
    }

    /// Whether its replies could come from a snapshot as well.
    pub fn only_reads(&self) -> bool {
        !self.extent.writes && !self.is_watch()
    }

    /// Runs every command, unless a watched key has changed; the replies are appended to `output`.
    /// `access` is missing where the unit needs no data.
    ///
    /// # Errors
    /// A read that needs the disk, or the engine's; [`Stop::Large`].
    pub fn run(
        &self,
        access: Option<&mut Access<'_>>,
        output: &mut Output,
        with: Surroundings<'_, '_>,
    ) -> Result<Told, Stop> {
        let outdated = self.outdated(with.now_ms);
        self.answer(outdated, access, output, with)
    }

    /// The same where it was found before whether a watched key has changed.
    ///
    /// # Errors
    /// As [`Unit::run`].
    pub fn answer(
        &self,
        outdated: bool,
        access: Option<&mut Access<'_>>,
        output: &mut Output,
        with: Surroundings<'_, '_>,
    ) -> Result<Told, Stop> {
        // It may have run before, up to where it was stopped.
        with.trace.restart();
        if outdated {
            if let Some(access) = access {
                access.show_all();
            }
            Reply::new(output, with.protocol).null_array();
            return Ok(Told::default());
        }
        self.perform(access, output, with)
    }

    /// Whether a key that it watches has changed.
    pub fn outdated(&self, now_ms: u64) -> bool {
        self.watches.outdated(now_ms)
    }

    /// Runs every command; the replies are appended to `output`.
    fn perform(
        &self,
        mut access: Option<&mut Access<'_>>,
        output: &mut Output,
        mut with: Surroundings<'_, '_>,
    ) -> Result<Told, Stop> {
        let mut told = Told {
            state: self.state.clone(),
            ..Told::default()
        };
        if self.transaction {
            if let Some(access) = &mut access {
                // Whatever its commands are: their replies are one.
                access.hold_at_most(with.context.held_bytes_max);
            }
            Reply::new(output, with.protocol).array(self.calls.len());
        }
        let mut database = self.database;
        for (place, (spec, args)) in self.calls.iter().enumerate() {
            if let Some(access) = &mut access {
                access.select(database);
            }
            let (begin, mark) = (self.transaction.then(|| with.trace.now()), output.mark());
            let args = args.args();
            let step = Step { place, spec, args };
            self.step(step, access.as_deref_mut(), output, &mut with, &mut told)?;
            database = told.state.as_ref().map_or(database, |state| state.database);
            if let Some(begin) = begin {
                let ending = Ending::of(output.since(mark));
                with.trace.note(spec, ending, begin);
            }
        }
        if let Some(access) = access {
            (told.lookups, told.steps) = (access.lookups, access.steps_taken());
        }
        Ok(told)
    }

    fn step(
        &self,
        step: Step<'_>,
        access: Option<&mut Access<'_>>,
        output: &mut Output,
        with: &mut Surroundings<'_, '_>,
        told: &mut Told,
    ) -> Result<(), Stop> {
        let protocol = told
            .state
            .as_ref()
            .map_or(with.protocol, |state| state.protocol);
        let before = output.len();
        let Step { spec, args, .. } = step;
        match (spec.action, access) {
            (Action::Session(SessionCommand::Watch), Some(access)) => {
                told.watches = access.watch(args.from(1).iter())?;
                Reply::new(output, protocol).ok();
            }
            (Action::Session(command) | Action::Report(command), access) => {
                self.visit(step, command, output, with, told);
                if let Some(access) = access {
                    access.hold(output.len().saturating_sub(before))?;
                }
            }
            (Action::Table(run), access) => {
                run(spec, &args, &mut Reply::new(output, protocol));
                if let Some(access) = access {
                    access.hold(output.len().saturating_sub(before))?;
                }
            }
            (_, Some(access)) => {
                let reply = Reply::new(output, protocol);
                data::run(spec, access, args, reply, with.context)?;
            }
            (_, None) => unreachable!("a unit with data commands has a scope"),
        }
        output.pour();
        Ok(())
    }

    /// Runs a command on the connection or the server.
    fn visit(
        &self,
        step: Step<'_>,
        command: SessionCommand,
        output: &mut Output,
        with: &Surroundings<'_, '_>,
        told: &mut Told,
    ) {
        let Step { place, spec, args } = step;
        let reports = matches!(spec.action, Action::Report(_)) && self.calls.len() > 1;
        let mut said = self.said.lock();
        if let Some(reply) = said.replies.get(&place).filter(|_| reports) {
            return output.write(reply);
        }
        if reports && said.bytes > SAID_BYTES_MAX {
            return Reply::new(output, with.protocol).error(
                "ERR the replies of connection and server commands in this transaction came to more than 1 MiB",
            );
        }
        let Some(state) = &mut told.state else {
            unreachable!("such a unit is made with its connection's state")
        };
        let mut reply = Output::new();
        let mut visit = Visit {
            shared: with.shared,
            tenant: with.tenant,
            client: with.client,
            state,
            hold: None,
            output: &mut reply,
            args,
            now_ms: with.now_ms,
        };
        let left = session::run(command, &mut visit);
        debug_assert!(left.is_none(), "who has no seat at hand cannot log in");
        if reports {
            said.bytes += reply.len();
            said.replies.insert(place, reply.to_vec());
        }
        output.append(reply);
    }

    /// The command that the client sent.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// The words of its first command, for the slow log.
    pub fn words(&self) -> Option<&OwnedArgs> {
        self.calls.iter().next().map(|(_, args)| args)
    }

    /// The requests to be charged for it, the first time it is asked.
    pub fn take_requests(&mut self) -> u64 {
        std::mem::take(&mut self.requests)
    }
}
