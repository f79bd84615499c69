//! What the server tells of itself.

use telemetry::Class;

use crate::commands::introspect;
use crate::commands::session::{LatencyCommand, SessionCommand, SlowlogCommand};
use crate::commands::spec::{Flags, Group, Handler, Spec};

/// Commands that ask about the server.
pub(super) const SERVER: &[Spec] = &[
    Spec::new("function", -2, Group::Scripting, Handler::Container)
        .subcommands(FUNCTION)
        .doc(
            "7.0.0",
            "",
            "",
            "Commands about functions, of which there are none.",
        ),
    Spec::new(
        "info",
        -1,
        Group::Server,
        Handler::Report(SessionCommand::Info),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .categories(&["@dangerous"])
    .tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ])
    .doc(
        "1.0.0",
        "O(1)",
        "[section [section ...]]",
        "Describes the server as far as it is the tenant’s business.",
    ),
    Spec::new("latency", -2, Group::Server, Handler::Container)
        .subcommands(LATENCY)
        .doc("2.8.13", "", "", "Commands about latencies."),
    Spec::new(
        "lolwut",
        -1,
        Group::Server,
        Handler::Session(SessionCommand::Lolwut),
    )
    .flags(Flags::READONLY.and(Flags::FAST))
    .doc(
        "5.0.0",
        "O(1)",
        "[VERSION version]",
        "Shows the version in style.",
    ),
    Spec::new("slowlog", -2, Group::Server, Handler::Container)
        .subcommands(SLOWLOG)
        .doc("2.2.12", "", "", "Commands about slow commands."),
    Spec::new(
        "time",
        1,
        Group::Server,
        Handler::Session(SessionCommand::Time),
    )
    .flags(Flags::LOADING.and(Flags::STALE).and(Flags::FAST))
    .tips(&["nondeterministic_output"])
    .doc("2.6.0", "O(1)", "", "Returns the time of day."),
];
const FUNCTION: &[Spec] = &[
    Spec::new(
        "function|flush",
        -2,
        Group::Scripting,
        Handler::Session(SessionCommand::FunctionFlush),
    )
    .flags(Flags::WRITE.and(Flags::NOSCRIPT))
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .doc(
        "7.0.0",
        "O(1)",
        "[ASYNC | SYNC]",
        "Deletes all functions, of which there are none.",
    ),
    Spec::new(
        "function|help",
        2,
        Group::Scripting,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .doc("7.0.0", "O(1)", "", "Lists the subcommands of FUNCTION."),
];
const LATENCY: &[Spec] = &[
    Spec::new(
        "latency|help",
        2,
        Group::Server,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .doc("2.8.13", "O(1)", "", "Lists the subcommands of LATENCY."),
    Spec::new(
        "latency|histogram",
        -2,
        Group::Server,
        Handler::Report(SessionCommand::Latency(LatencyCommand::Histogram)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ])
    .class(Class::Admin)
    .doc(
        "7.0.0",
        "O(commands)",
        "[command ...]",
        "Returns the distribution of latencies.",
    ),
    Spec::new(
        "latency|history",
        3,
        Group::Server,
        Handler::Report(SessionCommand::Latency(LatencyCommand::History)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ])
    .class(Class::Admin)
    .doc(
        "2.8.13",
        "O(1)",
        "event",
        "Returns the latencies of an event.",
    ),
    Spec::new(
        "latency|latest",
        2,
        Group::Server,
        Handler::Report(SessionCommand::Latency(LatencyCommand::Latest)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ])
    .class(Class::Admin)
    .doc(
        "2.8.13",
        "O(1)",
        "",
        "Returns the last latency of every event.",
    ),
    Spec::new(
        "latency|reset",
        -2,
        Group::Server,
        Handler::Report(SessionCommand::Latency(LatencyCommand::Reset)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .class(Class::Admin)
    .doc("2.8.13", "O(1)", "[event ...]", "Forgets latencies."),
];
const SLOWLOG: &[Spec] = &[
    Spec::new(
        "slowlog|get",
        -2,
        Group::Server,
        Handler::Report(SessionCommand::Slowlog(SlowlogCommand::Get)),
    )
    .flags(Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE))
    .tips(&["request_policy:all_nodes", "nondeterministic_output"])
    .class(Class::Admin)
    .doc(
        "2.2.12",
        "O(entries)",
        "[count]",
        "Returns the slowest commands of the tenant.",
    ),
    Spec::new(
        "slowlog|help",
        2,
        Group::Server,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .doc("6.2.0", "O(1)", "", "Lists the subcommands of SLOWLOG."),
    Spec::new(
        "slowlog|len",
        2,
        Group::Server,
        Handler::Report(SessionCommand::Slowlog(SlowlogCommand::Len)),
    )
    .flags(Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE))
    .tips(&[
        "request_policy:all_nodes",
        "response_policy:agg_sum",
        "nondeterministic_output",
    ])
    .class(Class::Admin)
    .doc("2.2.12", "O(1)", "", "Returns the number of entries."),
    Spec::new(
        "slowlog|reset",
        2,
        Group::Server,
        Handler::Report(SessionCommand::Slowlog(SlowlogCommand::Reset)),
    )
    .flags(Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE))
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .class(Class::Admin)
    .doc("2.2.12", "O(1)", "", "Forgets all entries."),
];
