//! The shapes that rows of the table have: what a command acts on, and the flags and hints that
//! many commands share.
//!
//! A row begins with the command's name, its number of words with the name (negative: at least so
//! many), its group and its flags. It ends with what its implementation is known by. What follows
//! from a shape is said there. Behind the row is its documentation: Redis's version that introduced
//! it, its cost, its arguments, and a sentence.

use resp::{Args, Reply};
use telemetry::Class;

use crate::data::{
    DataCommand, HashCommand, KeyCommand, KeyspaceCommand, SortedSetCommand, StringCommand,
};
use crate::introspect;
use crate::keyspec::KeySpec;
use crate::session::SessionCommand;
use crate::spec::{Action, Flags, Group, Spec};

/// Reads data.
pub const READS: Flags = Flags::READONLY;
/// Reads little.
pub const READS_FAST: Flags = READS.and(Flags::FAST);
/// Changes data, and needs no more storage for it.
pub const WRITES: Flags = Flags::WRITE;
/// Changes little, and needs no more storage for it.
pub const WRITES_FAST: Flags = WRITES.and(Flags::FAST);
/// Changes data, and may need more storage.
pub const GROWS: Flags = WRITES.and(Flags::DENYOOM);
/// Changes little, and may need more storage.
pub const GROWS_FAST: Flags = GROWS.and(Flags::FAST);
/// Needs no data, so runs whatever state they are in.
pub const ANYTIME: Flags = Flags::LOADING.and(Flags::STALE);
/// The same, in constant time.
pub const ANYTIME_FAST: Flags = ANYTIME.and(Flags::FAST);
/// Needs no data, and a client rather than a script.
pub const BY_CLIENT: Flags = ANYTIME.and(Flags::NOSCRIPT);
/// The same, in constant time, and while a script is busy.
pub const BY_BUSY_CLIENT: Flags = BY_CLIENT.and(Flags::FAST).and(Flags::ALLOW_BUSY);
/// The same, before it is authenticated.
pub const BY_ANYBODY: Flags = BY_BUSY_CLIENT.and(Flags::NO_AUTH);
/// Needs no data, and an operator.
pub const BY_OPERATOR: Flags = BY_CLIENT.and(Flags::ADMIN);

/// Hints for clients of a cluster, and about replies.
type Tips = &'static [&'static str];

/// The same request may get another reply.
pub const VARIES: Tips = &["nondeterministic_output"];
/// The same request may get its reply in another order.
pub const VARIES_IN_ORDER: Tips = &["nondeterministic_output_order"];
/// For every node, each of which has something else to say.
pub const VARIES_BY_NODE: Tips = &[
    "nondeterministic_output",
    "request_policy:all_nodes",
    "response_policy:special",
];
/// For every node.
pub const ALL_NODES: Tips = &["request_policy:all_nodes", "response_policy:all_succeeded"];
/// For every shard.
pub const ALL_SHARDS: Tips = &["request_policy:all_shards", "response_policy:all_succeeded"];
/// For every shard with one of the keys, whose replies are added.
pub const SUM_OF_SHARDS: Tips = &["request_policy:multi_shard", "response_policy:agg_sum"];

/// Shapes of commands on the keys that they name, a shape a family.
macro_rules! on_keys {
    ($($shape:ident: $family:ident($command:ident);)*) => {$(
        /// On the keys it names.
        pub const fn $shape(
            name: &'static str,
            arity: i8,
            group: Group,
            flags: Flags,
            class: Class,
            keys: &'static [KeySpec],
            command: $command,
        ) -> Spec {
            let action = Action::Data(DataCommand::$family(command));
            Spec::new(name, arity, group, flags, action).class(class).keys(keys)
        }
    )*};
}

on_keys! {
    string: String(StringCommand);
    hash: Hash(HashCommand);
    sorted_set: SortedSet(SortedSetCommand);
    key: Key(KeyCommand);
}

/// On a snapshot of the whole keyspace.
pub const fn keyspace_reader(
    name: &'static str,
    arity: i8,
    group: Group,
    flags: Flags,
    command: KeyspaceCommand,
) -> Spec {
    Spec::new(name, arity, group, flags, Action::Keyspace(command)).class(Class::Scan)
}

/// On the whole keyspace, alone.
pub const fn keyspace_writer(
    name: &'static str,
    arity: i8,
    group: Group,
    flags: Flags,
    command: KeyspaceCommand,
) -> Spec {
    Spec::new(name, arity, group, flags, Action::KeyspaceWriter(command)).class(Class::Put)
}

/// On nothing but the table of commands.
pub const fn table(
    name: &'static str,
    arity: i8,
    group: Group,
    flags: Flags,
    run: fn(&Spec, &Args, &mut Reply),
) -> Spec {
    Spec::new(name, arity, group, flags, Action::Table(run))
}

/// The session's own business.
pub const fn session(
    name: &'static str,
    arity: i8,
    group: Group,
    flags: Flags,
    command: SessionCommand,
) -> Spec {
    Spec::new(name, arity, group, flags, Action::Session(command))
}

/// What the server says of itself or has changed of itself; an operator's is filed as such.
pub const fn report(
    name: &'static str,
    arity: i8,
    group: Group,
    flags: Flags,
    command: SessionCommand,
) -> Spec {
    let spec = Spec::new(name, arity, group, flags, Action::Report(command));
    if flags.has(Flags::ADMIN) {
        spec.class(Class::Admin)
    } else {
        spec
    }
}

/// `… HELP`.
pub const fn help(
    name: &'static str,
    group: Group,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    table(name, 2, group, ANYTIME, introspect::help).doc(since, "O(1)", "", summary)
}

/// Nothing without a subcommand.
pub const fn container(
    name: &'static str,
    group: Group,
    subcommands: &'static [Spec],
    since: &'static str,
    summary: &'static str,
) -> Spec {
    let spec = Spec::new(name, -2, group, Flags::NONE, Action::Container);
    spec.subcommands(subcommands).doc(since, "", "", summary)
}
