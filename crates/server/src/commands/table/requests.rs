//! Transactions, and what clients may ask about commands.

use crate::commands::introspect;
use crate::commands::keyspec::{KeySpec, PROBE};
use crate::commands::session::{AclCommand, SessionCommand};
use crate::commands::spec::{Flags, Group, Handler, Spec};

/// Commands about commands.
pub(super) const REQUESTS: &[Spec] = &[
    Spec::new("acl", -2, Group::Server, Handler::Container)
        .subcommands(ACL)
        .doc("6.0.0", "", "", "Commands about access."),
    Spec::new(
        "command",
        -1,
        Group::Server,
        Handler::Table(introspect::command),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .categories(&["@connection"])
    .tips(&["nondeterministic_output_order"])
    .subcommands(COMMAND)
    .doc(
        "2.8.13",
        "O(commands)",
        "",
        "Describes every command for clients.",
    ),
    Spec::new(
        "discard",
        1,
        Group::Transactions,
        Handler::Session(SessionCommand::Discard),
    )
    .flags(
        Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::ALLOW_BUSY),
    )
    .doc("2.0.0", "O(commands queued)", "", "Drops a transaction."),
    Spec::new(
        "exec",
        1,
        Group::Transactions,
        Handler::Session(SessionCommand::Exec),
    )
    .flags(
        Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::SKIP_SLOWLOG),
    )
    .doc(
        "1.2.0",
        "that of the commands queued",
        "",
        "Runs a transaction.",
    ),
    Spec::new(
        "multi",
        1,
        Group::Transactions,
        Handler::Session(SessionCommand::Multi),
    )
    .flags(
        Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::ALLOW_BUSY),
    )
    .doc("1.2.0", "O(1)", "", "Begins a transaction."),
    Spec::new(
        "unwatch",
        1,
        Group::Transactions,
        Handler::Session(SessionCommand::Unwatch),
    )
    .flags(
        Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::ALLOW_BUSY),
    )
    .doc("2.2.0", "O(1)", "", "Forgets the keys watched."),
    Spec::new(
        "watch",
        -2,
        Group::Transactions,
        Handler::Session(SessionCommand::Watch),
    )
    .flags(
        Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::ALLOW_BUSY),
    )
    .keys(&[KeySpec::rest(PROBE, 1, 1)])
    .doc(
        "2.2.0",
        "O(number of keys)",
        "key [key ...]",
        "Lets the next transaction fail if a key changes.",
    ),
];
const ACL: &[Spec] = &[
    Spec::new(
        "acl|cat",
        -2,
        Group::Server,
        Handler::Table(introspect::acl_cat),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc(
        "6.0.0",
        "O(commands)",
        "[category]",
        "Lists the categories of commands, or the commands of one.",
    ),
    Spec::new(
        "acl|help",
        2,
        Group::Server,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .doc("6.0.0", "O(1)", "", "Lists the subcommands of ACL."),
    Spec::new(
        "acl|whoami",
        2,
        Group::Server,
        Handler::Session(SessionCommand::Acl(AclCommand::Whoami)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc("6.0.0", "O(1)", "", "Returns the name of the tenant."),
];
const COMMAND: &[Spec] = &[
    Spec::new(
        "command|count",
        2,
        Group::Server,
        Handler::Table(introspect::count),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .categories(&["@connection"])
    .doc("2.8.13", "O(1)", "", "Returns the number of commands."),
    Spec::new(
        "command|docs",
        -2,
        Group::Server,
        Handler::Table(introspect::docs),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .categories(&["@connection"])
    .tips(&["nondeterministic_output_order"])
    .doc(
        "7.0.0",
        "O(commands)",
        "[command-name ...]",
        "Documents commands.",
    ),
    Spec::new(
        "command|getkeys",
        -4,
        Group::Server,
        Handler::Table(introspect::getkeys),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .categories(&["@connection"])
    .doc(
        "2.8.13",
        "O(words)",
        "command [arg ...]",
        "Returns the keys in a command line.",
    ),
    Spec::new(
        "command|getkeysandflags",
        -4,
        Group::Server,
        Handler::Table(introspect::getkeysandflags),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .categories(&["@connection"])
    .doc(
        "7.0.0",
        "O(words)",
        "command [arg ...]",
        "Returns the keys in a command line and what would be done to them.",
    ),
    Spec::new(
        "command|help",
        2,
        Group::Server,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .categories(&["@connection"])
    .doc("5.0.0", "O(1)", "", "Lists the subcommands of COMMAND."),
    Spec::new(
        "command|info",
        -2,
        Group::Server,
        Handler::Table(introspect::info),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .categories(&["@connection"])
    .tips(&["nondeterministic_output_order"])
    .doc(
        "2.8.13",
        "O(commands)",
        "[command-name ...]",
        "Describes commands for clients.",
    ),
    Spec::new(
        "command|list",
        -2,
        Group::Server,
        Handler::Table(introspect::list),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .categories(&["@connection"])
    .tips(&["nondeterministic_output_order"])
    .doc(
        "7.0.0",
        "O(commands)",
        "[FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]",
        "Lists the names of commands.",
    ),
];
