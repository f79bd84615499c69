//! What is run against a keyspace as one: a command, or the commands between `MULTI` and `EXEC`.

use engine::{Access, Keys, Stop};
use policy::Nanos;
use smallvec::SmallVec;
use stage::Clock;
use telemetry::Class;

use crate::commands::{self, Context, Handler, Spec};
use crate::resp::{Output, OwnedArgs, Protocol, Reply};
use crate::session::Watched;
use crate::tenants::{Ending, Places};

/// One command of a unit.
pub enum Step {
    /// It works on the keyspace, or on the table of commands.
    Run(&'static Spec, OwnedArgs),
    /// Its reply is known.
    Known(Output),
}

/// How one command of a transaction ended.
pub struct Ended {
    /// Which command it was.
    pub spec: &'static Spec,
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub took: Nanos,
}

/// Notes how the commands of a transaction end, while it runs.
pub struct Trace<'c> {
    clock: &'c (dyn Clock + Send + Sync),
    ended: Vec<Ended>,
}

impl<'c> Trace<'c> {
    /// Nothing has ended yet.
    pub fn new(clock: &'c (dyn Clock + Send + Sync)) -> Self {
        let ended = Vec::new();
        Self { clock, ended }
    }

    /// What has ended; empty for a unit that is no transaction.
    pub fn ended(self) -> Vec<Ended> {
        self.ended
    }
}

/// Commands that take effect together.
pub struct Unit {
    /// The command that the client sent: `EXEC` for a transaction.
    spec: &'static Spec,
    steps: Vec<Step>,
    /// The replies come as one array (`EXEC`).
    transaction: bool,
    /// Keys that must not have changed since they were watched.
    watches: Vec<Watched>,
    /// The class under which it is counted.
    pub class: Class,
    /// Requests it is charged as.
    pub requests: u64,
    /// The places that it has, if it has turned out that it needs some.
    pub places: Places,
}

impl Unit {
    /// A single command.
    pub fn one(spec: &'static Spec, args: OwnedArgs) -> Self {
        let mut keys = 0;
        spec.each_key(&args.args(), |_| keys += 1);
        let requests = super::command::requests_of(keys);
        let steps = vec![Step::Run(spec, args)];
        Self {
            spec,
            steps,
            transaction: false,
            watches: Vec::new(),
            class: spec.class,
            requests,
            places: Places::default(),
        }
    }

    /// The commands of a transaction. The watched keys count among its own, so that nobody can write
    /// them between the check and the effect.
    pub fn transaction(spec: &'static Spec, steps: Vec<Step>, watches: Vec<Watched>) -> Self {
        let requests = steps.len() as u64;
        Self {
            spec,
            steps,
            transaction: true,
            watches,
            class: Class::Multiget,
            requests,
            places: Places::default(),
        }
    }

    /// Calls `use_keys` with every key that the unit names.
    pub fn with_keys<R>(&self, use_keys: impl FnOnce(&Keys<'_>) -> R) -> R {
        let mut whole = None;
        for step in &self.steps {
            match step {
                Step::Run(
                    Spec {
                        handler: Handler::KeyspaceWriter(_),
                        ..
                    },
                    _,
                ) => whole = Some(Keys::All),
                Step::Run(
                    Spec {
                        handler: Handler::Keyspace(_),
                        ..
                    },
                    _,
                ) if self.transaction => {
                    whole = Some(Keys::All);
                }
                Step::Run(
                    Spec {
                        handler: Handler::Keyspace(_),
                        ..
                    },
                    _,
                ) => whole = Some(Keys::None),
                _ => {}
            }
        }
        if let Some(keys) = whole {
            return use_keys(&keys);
        }
        let words: SmallVec<[_; 4]> = self
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Run(spec, args) => Some((*spec, args.args())),
                Step::Known(_) => None,
            })
            .collect();
        let mut names: SmallVec<[&[u8]; 8]> = SmallVec::new();
        for (spec, args) in &words {
            spec.each_key(args, |name| names.push(name));
        }
        names.extend(self.watches.iter().map(|watched| &watched.key[..]));
        use_keys(&Keys::Some(&names))
    }

    /// Whether it may change data.
    pub fn writes(&self) -> bool {
        self.steps.iter().any(
            |step| matches!(step, Step::Run(spec, _) if spec.flags.has(commands::Flags::WRITE)),
        )
    }

    /// Runs every command, unless a watched key has changed; the replies are appended to `output`.
    ///
    /// # Errors
    /// A read that needs the disk, or the engine's; [`Stop::Large`].
    pub fn run(
        &self,
        access: &mut Access<'_>,
        output: &mut Output,
        protocol: Protocol,
        with: (Context<'_>, &mut Trace<'_>),
    ) -> Result<(), Stop> {
        let outdated = self.outdated(access.now_ms());
        self.answer(outdated, access, output, protocol, with)
    }

    /// The same where it was found before whether a watched key has changed.
    ///
    /// # Errors
    /// As [`Unit::run`].
    pub fn answer(
        &self,
        outdated: bool,
        access: &mut Access<'_>,
        output: &mut Output,
        protocol: Protocol,
        with: (Context<'_>, &mut Trace<'_>),
    ) -> Result<(), Stop> {
        if outdated {
            access.show_all();
            // It may have run before, up to a read of the disk.
            with.1.ended.clear();
            Reply::new(output, protocol).null_array();
            return Ok(());
        }
        self.perform(access, output, protocol, with)
    }

    /// Whether a key that it watches has changed.
    pub fn outdated(&self, now_ms: u64) -> bool {
        self.watches
            .iter()
            .any(|watched| watched.watch.dirty_at(watched.since_ms, now_ms))
    }

    /// Runs every command; the replies are appended to `output`.
    fn perform(
        &self,
        access: &mut Access<'_>,
        output: &mut Output,
        protocol: Protocol,
        (context, trace): (Context<'_>, &mut Trace<'_>),
    ) -> Result<(), Stop> {
        trace.ended.clear();
        if self.transaction {
            // Whatever its commands are: their replies are one.
            access.hold_at_most(context.held_bytes_max);
            Reply::new(output, protocol).array(self.steps.len());
        }
        for step in &self.steps {
            match step {
                Step::Known(reply) => {
                    access.hold(reply.len())?;
                    output.write(&reply.to_vec());
                    output.pour();
                }
                Step::Run(spec, args) => {
                    let (begin, mark) =
                        (self.transaction.then(|| trace.clock.now()), output.mark());
                    let reply = Reply::new(output, protocol);
                    commands::run(spec, access, args.args(), reply, context)?;
                    if let Some(begin) = begin {
                        trace.ended.push(Ended {
                            spec,
                            ending: Ending::of(output.since(mark)),
                            took: trace.clock.now() - begin,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// The command that the client sent.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// The words of that command, for the slow log.
    pub fn words(&self) -> Option<&OwnedArgs> {
        self.steps.iter().find_map(|step| match step {
            Step::Run(_, args) => Some(args),
            Step::Known(_) => None,
        })
    }
}
