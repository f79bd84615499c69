//! The connection and its tenant.

use crate::session::ClientCommand;
use crate::session::SessionCommand::{
    Auth, Client, Echo, Hello, Ping, Quit, Readonly, Readwrite, Reset, Select,
};
use crate::spec::Group::{Cluster, Connection};
use crate::spec::{Flags, Spec};

use super::shapes::{
    container, help, report, session, ALL_SHARDS, ANYTIME_FAST, BY_ANYBODY, BY_CLIENT, BY_OPERATOR,
    VARIES,
};

/// Commands about the connection.
#[rustfmt::skip]
pub(super) const CONNECTION: &[Spec] = &[
    session("auth",      -2, Connection, BY_ANYBODY,   Auth)
        .doc("1.0.0", "O(1)", "[username] password", "Makes the connection a tenant’s."),
    container("client", Connection, CLIENT, "2.4.0", "Commands about connections."),
    session("echo",       2, Connection, ANYTIME_FAST, Echo)
        .doc("1.0.0", "O(1)", "message", "Returns the message."),
    session("hello",     -1, Connection, BY_ANYBODY,   Hello)
        .doc("6.0.0", "O(1)", "[protover [AUTH username password] [SETNAME clientname]]",
             "Chooses the protocol and authenticates."),
    session("ping",      -1, Connection, Flags::FAST,  Ping)
        .doc("1.0.0", "O(1)", "[message]", "Returns PONG or the message.").tips(ALL_SHARDS),
    session("quit",      -1, Connection, BY_ANYBODY,   Quit)
        .doc("1.0.0", "O(1)", "", "Closes the connection."),
    session("readonly",   1, Cluster,    ANYTIME_FAST, Readonly)
        .doc("3.0.0", "O(1)", "", "Lets a cluster client read at any front, of which none is behind another.")
        .categories(&["@connection"]),
    session("readwrite",  1, Cluster,    ANYTIME_FAST, Readwrite)
        .doc("3.0.0", "O(1)", "", "Takes back READONLY.")
        .categories(&["@connection"]),
    session("reset",      1, Connection, BY_ANYBODY,   Reset)
        .doc("6.2.0", "O(1)", "", "Makes the connection as new."),
    session("select",     2, Connection, ANYTIME_FAST, Select)
        .doc("1.0.0", "O(1)", "index", "Chooses one of the tenant’s 16 databases."),
];

#[rustfmt::skip]
const CLIENT: &[Spec] = &[
    session("client|capa",         -3, Connection, BY_CLIENT,   Client(ClientCommand::Capa))
        .doc("Valkey 8.0", "O(words)", "capability [capability ...]",
             "Accepted; nobody is sent elsewhere with REDIRECT."),
    session("client|getname",       2, Connection, BY_CLIENT,   Client(ClientCommand::Getname))
        .doc("2.6.9", "O(1)", "", "Returns the name of the connection."),
    session("client|getredir",      2, Connection, BY_CLIENT,   Client(ClientCommand::Getredir))
        .doc("6.0.0", "O(1)", "", "Returns -1: tracking is not supported."),
    help("client|help", Connection, "5.0.0", "Lists the subcommands of CLIENT."),
    session("client|id",            2, Connection, BY_CLIENT,   Client(ClientCommand::Id))
        .doc("5.0.0", "O(1)", "", "Returns the number of the connection."),
    session("client|info",          2, Connection, BY_CLIENT,   Client(ClientCommand::Info))
        .doc("6.2.0", "O(1)", "", "Describes the connection.").tips(VARIES),
    report("client|kill", -3, Connection, BY_OPERATOR, Client(ClientCommand::Kill))
        .doc("2.4.0", "O(connections)",
             "ip:port | [ID client-id] [TYPE NORMAL] [USER username] [ADDR ip:port] [LADDR ip:port] \
              [SKIPME <YES | NO>]", "Closes connections of the tenant."),
    report("client|list", -2, Connection, BY_OPERATOR, Client(ClientCommand::List))
        .doc("2.4.0", "O(connections)", "[TYPE NORMAL] [ID client-id [client-id ...]]",
             "Lists the connections of the tenant.").tips(VARIES),
    session("client|no-evict",      3, Connection, BY_OPERATOR, Client(ClientCommand::NoEvict))
        .doc("7.0.0", "O(1)", "ON | OFF", "Accepted; connections are not evicted."),
    session("client|no-touch",      3, Connection, BY_CLIENT,   Client(ClientCommand::NoTouch))
        .doc("7.2.0", "O(1)", "ON | OFF", "Accepted; reads do not keep keys alive."),
    session("client|pause",        -3, Connection, BY_OPERATOR, Client(ClientCommand::Pause))
        .doc("3.0.0", "O(1)", "timeout [WRITE | ALL]",
             "Holds back the tenant’s commands, or those that write, for a number of milliseconds."),
    session("client|reply",         3, Connection, BY_CLIENT,   Client(ClientCommand::Reply))
        .doc("3.2.0", "O(1)", "ON | OFF | SKIP", "Chooses whether commands are answered."),
    session("client|setinfo",       4, Connection, BY_CLIENT,   Client(ClientCommand::Setinfo))
        .doc("7.2.0", "O(1)", "LIB-NAME name | LIB-VER version", "Notes the library that a client uses."),
    session("client|setname",       3, Connection, BY_CLIENT,   Client(ClientCommand::Setname))
        .doc("2.6.9", "O(1)", "connection-name", "Names the connection."),
    session("client|tracking",     -3, Connection, BY_CLIENT,   Client(ClientCommand::Tracking))
        .doc("6.0.0", "O(1)", "ON | OFF", "ON is refused: there is no client-side caching."),
    session("client|trackinginfo",  2, Connection, BY_CLIENT,   Client(ClientCommand::Trackinginfo))
        .doc("6.2.0", "O(1)", "", "Tells that tracking is off."),
    session("client|unblock",      -3, Connection, BY_OPERATOR, Client(ClientCommand::Unblock))
        .doc("5.0.0", "O(1)", "client-id [TIMEOUT | ERROR]", "Ends what a connection of the tenant waits for before an engine, as if its time were up or with an error."),
    session("client|unpause",       2, Connection, BY_OPERATOR, Client(ClientCommand::Unpause))
        .doc("6.2.0", "O(tenant’s connections)", "", "Ends a pause."),
];
