//! The connection and its tenant.

use telemetry::Class;

use crate::commands::introspect;
use crate::commands::session::{ClientCommand, SessionCommand};
use crate::commands::spec::{Flags, Group, Handler, Spec};

/// Commands about the connection.
pub(super) const CONNECTION: &[Spec] = &[
    Spec::new(
        "auth",
        -2,
        Group::Connection,
        Handler::Session(SessionCommand::Auth),
    )
    .flags(
        Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::NO_AUTH)
            .and(Flags::ALLOW_BUSY),
    )
    .doc(
        "1.0.0",
        "O(1)",
        "[username] password",
        "Makes the connection a tenant’s.",
    ),
    Spec::new("client", -2, Group::Connection, Handler::Container)
        .subcommands(CLIENT)
        .doc("2.4.0", "", "", "Commands about connections."),
    Spec::new(
        "echo",
        2,
        Group::Connection,
        Handler::Session(SessionCommand::Echo),
    )
    .flags(Flags::LOADING.and(Flags::STALE).and(Flags::FAST))
    .doc("1.0.0", "O(1)", "message", "Returns the message."),
    Spec::new(
        "hello",
        -1,
        Group::Connection,
        Handler::Session(SessionCommand::Hello),
    )
    .flags(
        Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::NO_AUTH)
            .and(Flags::ALLOW_BUSY),
    )
    .doc(
        "6.0.0",
        "O(1)",
        "[protover [AUTH username password] [SETNAME clientname]]",
        "Chooses the protocol and authenticates.",
    ),
    Spec::new(
        "ping",
        -1,
        Group::Connection,
        Handler::Session(SessionCommand::Ping),
    )
    .flags(Flags::FAST)
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .doc("1.0.0", "O(1)", "[message]", "Returns PONG or the message."),
    Spec::new(
        "quit",
        -1,
        Group::Connection,
        Handler::Session(SessionCommand::Quit),
    )
    .flags(
        Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::NO_AUTH)
            .and(Flags::ALLOW_BUSY),
    )
    .doc("1.0.0", "O(1)", "", "Closes the connection."),
    Spec::new(
        "readonly",
        1,
        Group::Cluster,
        Handler::Session(SessionCommand::Readonly),
    )
    .flags(Flags::LOADING.and(Flags::STALE).and(Flags::FAST))
    .categories(&["@connection"])
    .doc(
        "3.0.0",
        "O(1)",
        "",
        "Accepted for cluster clients; there is one node.",
    ),
    Spec::new(
        "readwrite",
        1,
        Group::Cluster,
        Handler::Session(SessionCommand::Readwrite),
    )
    .flags(Flags::LOADING.and(Flags::STALE).and(Flags::FAST))
    .categories(&["@connection"])
    .doc(
        "3.0.0",
        "O(1)",
        "",
        "Accepted for cluster clients; there is one node.",
    ),
    Spec::new(
        "reset",
        1,
        Group::Connection,
        Handler::Session(SessionCommand::Reset),
    )
    .flags(
        Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::NO_AUTH)
            .and(Flags::ALLOW_BUSY),
    )
    .doc("6.2.0", "O(1)", "", "Makes the connection as new."),
    Spec::new(
        "select",
        2,
        Group::Connection,
        Handler::Session(SessionCommand::Select),
    )
    .flags(Flags::LOADING.and(Flags::STALE).and(Flags::FAST))
    .doc(
        "1.0.0",
        "O(1)",
        "0",
        "Accepted for database 0, the only one.",
    ),
];
const CLIENT: &[Spec] = &[
    Spec::new(
        "client|getname",
        2,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::Getname)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc("2.6.9", "O(1)", "", "Returns the name of the connection."),
    Spec::new(
        "client|getredir",
        2,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::Getredir)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc(
        "6.0.0",
        "O(1)",
        "",
        "Returns -1: tracking is not supported.",
    ),
    Spec::new(
        "client|help",
        2,
        Group::Connection,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .doc("5.0.0", "O(1)", "", "Lists the subcommands of CLIENT."),
    Spec::new(
        "client|id",
        2,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::Id)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc("5.0.0", "O(1)", "", "Returns the number of the connection."),
    Spec::new(
        "client|info",
        2,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::Info)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .tips(&["nondeterministic_output"])
    .doc("6.2.0", "O(1)", "", "Describes the connection."),
    Spec::new(
        "client|kill",
        -3,
        Group::Connection,
        Handler::Report(SessionCommand::Client(ClientCommand::Kill)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .class(Class::Admin)
    .doc(
        "2.4.0",
        "O(connections)",
        "ip:port | [ID client-id] [TYPE NORMAL] [USER username] [ADDR \
                ip:port] [LADDR ip:port] [SKIPME YES | NO]",
        "Closes connections of the tenant.",
    ),
    Spec::new(
        "client|list",
        -2,
        Group::Connection,
        Handler::Report(SessionCommand::Client(ClientCommand::List)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .tips(&["nondeterministic_output"])
    .class(Class::Admin)
    .doc(
        "2.4.0",
        "O(connections)",
        "[TYPE NORMAL] [ID client-id [client-id ...]]",
        "Lists the connections of the tenant.",
    ),
    Spec::new(
        "client|no-evict",
        3,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::NoEvict)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .doc(
        "7.0.0",
        "O(1)",
        "ON | OFF",
        "Accepted; connections are not evicted.",
    ),
    Spec::new(
        "client|no-touch",
        3,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::NoTouch)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc(
        "7.2.0",
        "O(1)",
        "ON | OFF",
        "Accepted; reads do not keep keys alive.",
    ),
    Spec::new(
        "client|reply",
        3,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::Reply)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc(
        "3.2.0",
        "O(1)",
        "ON | OFF | SKIP",
        "Chooses whether commands are answered.",
    ),
    Spec::new(
        "client|setinfo",
        4,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::Setinfo)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc(
        "7.2.0",
        "O(1)",
        "LIB-NAME name | LIB-VER version",
        "Notes the library that a client uses.",
    ),
    Spec::new(
        "client|setname",
        3,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::Setname)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc("2.6.9", "O(1)", "name", "Names the connection."),
    Spec::new(
        "client|tracking",
        -3,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::Tracking)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc(
        "6.0.0",
        "O(1)",
        "ON | OFF",
        "ON is refused: there is no client-side caching.",
    ),
    Spec::new(
        "client|trackinginfo",
        2,
        Group::Connection,
        Handler::Session(SessionCommand::Client(ClientCommand::Trackinginfo)),
    )
    .flags(Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE))
    .doc("6.2.0", "O(1)", "", "Tells that tracking is off."),
];
