//! Transactions, and what clients may ask about commands.

use crate::introspect;
use crate::keyspec::{rest, PROBE};
use crate::session::AclCommand;
use crate::session::SessionCommand::{Acl, Discard, Exec, Multi, Unwatch, Watch};
use crate::spec::Group::{Server, Transactions};
use crate::spec::{Flags, Spec};

use super::shapes::{
    container, help, session, table, ANYTIME, BY_BUSY_CLIENT, BY_CLIENT, VARIES_IN_ORDER,
};

/// Commands about commands.
#[rustfmt::skip]
pub(super) const REQUESTS: &[Spec] = &[
    container("acl", Server, ACL, "6.0.0", "Commands about access."),
    table("command", -1, Server, ANYTIME, introspect::command)
        .doc("2.8.13", "O(commands)", "", "Describes every command for clients.")
        .subcommands(COMMAND).categories(&["@connection"]).tips(VARIES_IN_ORDER),
    session("discard",  1, Transactions, BY_BUSY_CLIENT,                     Discard)
        .doc("2.0.0", "O(commands queued)", "", "Drops a transaction."),
    session("exec",     1, Transactions, BY_CLIENT.and(Flags::SKIP_SLOWLOG), Exec)
        .doc("1.2.0", "that of the commands queued", "", "Runs a transaction."),
    session("multi",    1, Transactions, BY_BUSY_CLIENT,                     Multi)
        .doc("1.2.0", "O(1)", "", "Begins a transaction."),
    session("unwatch",  1, Transactions, BY_BUSY_CLIENT,                     Unwatch)
        .doc("2.2.0", "O(1)", "", "Forgets the keys watched."),
    session("watch",   -2, Transactions, BY_BUSY_CLIENT,                     Watch)
        .doc("2.2.0", "O(number of keys)", "key [key ...]", "Lets the next transaction fail if a key changes.")
        .keys(&[rest(PROBE, 1, 1)]),
];

#[rustfmt::skip]
const ACL: &[Spec] = &[
    table("acl|cat", -2, Server, BY_CLIENT, introspect::acl_cat)
        .doc("6.0.0", "O(commands)", "[categoryname]", "Lists the categories of commands, or the commands of one."),
    help("acl|help", Server, "6.0.0", "Lists the subcommands of ACL."),
    session("acl|whoami", 2, Server, BY_CLIENT, Acl(AclCommand::Whoami))
        .doc("6.0.0", "O(1)", "", "Returns the name of the tenant."),
];

#[rustfmt::skip]
const COMMAND: &[Spec] = &[
    table("command|count",            2, Server, ANYTIME, introspect::count)
        .doc("2.8.13", "O(1)", "", "Returns the number of commands.").categories(&["@connection"]),
    table("command|docs",            -2, Server, ANYTIME, introspect::docs)
        .doc("7.0.0", "O(commands)", "[command-name ...]", "Documents commands.")
        .categories(&["@connection"]).tips(VARIES_IN_ORDER),
    table("command|getkeys",         -4, Server, ANYTIME, introspect::getkeys)
        .doc("2.8.13", "O(words)", "command [arg ...]", "Returns the keys in a command line.")
        .categories(&["@connection"]),
    table("command|getkeysandflags", -4, Server, ANYTIME, introspect::getkeysandflags)
        .doc("7.0.0", "O(words)", "command [arg ...]",
             "Returns the keys in a command line and what would be done to them.").categories(&["@connection"]),
    help("command|help", Server, "5.0.0", "Lists the subcommands of COMMAND.").categories(&["@connection"]),
    table("command|info",            -2, Server, ANYTIME, introspect::info)
        .doc("2.8.13", "O(commands)", "[command-name ...]", "Describes commands for clients.")
        .categories(&["@connection"]).tips(VARIES_IN_ORDER),
    table("command|list",            -2, Server, ANYTIME, introspect::list)
        .doc("7.0.0", "O(commands)", "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
             "Lists the names of commands.").categories(&["@connection"]).tips(VARIES_IN_ORDER),
];
