//! What the server tells of itself.

use crate::commands::session::SessionCommand::{
    FunctionFlush, Info, Latency, Lolwut, Slowlog, Time,
};
use crate::commands::session::{LatencyCommand, SlowlogCommand};
use crate::commands::spec::Group::{Scripting, Server};
use crate::commands::spec::{Flags, Spec};

use super::shapes::{
    container, help, report, session, ALL_NODES, ALL_SHARDS, ANYTIME, ANYTIME_FAST, BY_OPERATOR,
    READS_FAST, VARIES, VARIES_BY_NODE, WRITES,
};

/// Commands that ask about the server.
#[rustfmt::skip]
pub(super) const SERVER: &[Spec] = &[
    container("function", Scripting, FUNCTION, "7.0.0",  "Commands about functions, of which there are none."),
    report("info", -1, Server, ANYTIME, Info)
        .doc("1.0.0", "O(1)", "[section ...]",
             "Describes the server as far as it is the tenant’s business.")
        .categories(&["@dangerous"])
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
    container("latency",  Server,    LATENCY,  "2.8.13", "Commands about latencies."),
    session("lolwut", -1, Server, READS_FAST,   Lolwut)
        .doc("5.0.0", "O(1)", "[VERSION version]", "Shows the version in style."),
    container("slowlog",  Server,    SLOWLOG,  "2.2.12", "Commands about slow commands."),
    session("time",    1, Server, ANYTIME_FAST, Time)
        .doc("2.6.0", "O(1)", "", "Returns the time of day.").tips(VARIES),
];

#[rustfmt::skip]
const FUNCTION: &[Spec] = &[
    session("function|flush", -2, Scripting, WRITES.and(Flags::NOSCRIPT), FunctionFlush)
        .doc("7.0.0", "O(1)", "[ASYNC | SYNC]", "Deletes all functions, of which there are none.")
        .tips(ALL_SHARDS),
    help("function|help", Scripting, "7.0.0", "Lists the subcommands of FUNCTION."),
];

#[rustfmt::skip]
const LATENCY: &[Spec] = &[
    help("latency|help", Server, "2.8.13", "Lists the subcommands of LATENCY."),
    report("latency|histogram", -2, Server, BY_OPERATOR, Latency(LatencyCommand::Histogram))
        .doc("7.0.0", "O(commands)", "[command ...]", "Returns the distribution of latencies.")
        .tips(VARIES_BY_NODE),
    report("latency|history",    3, Server, BY_OPERATOR, Latency(LatencyCommand::History))
        .doc("2.8.13", "O(1)", "event", "Returns the latencies of an event.").tips(VARIES_BY_NODE),
    report("latency|latest",     2, Server, BY_OPERATOR, Latency(LatencyCommand::Latest))
        .doc("2.8.13", "O(1)", "", "Returns the last latency of every event.").tips(VARIES_BY_NODE),
    report("latency|reset",     -2, Server, BY_OPERATOR, Latency(LatencyCommand::Reset))
        .doc("2.8.13", "O(1)", "[event ...]", "Forgets latencies.").tips(ALL_NODES),
];

#[rustfmt::skip]
const SLOWLOG: &[Spec] = &[
    report("slowlog|get",   -2, Server, ANYTIME.and(Flags::ADMIN), Slowlog(SlowlogCommand::Get))
        .doc("2.2.12", "O(entries)", "[count]", "Returns the slowest commands of the tenant.")
        .tips(&["request_policy:all_nodes", "nondeterministic_output"]),
    help("slowlog|help", Server, "6.2.0", "Lists the subcommands of SLOWLOG."),
    report("slowlog|len",    2, Server, ANYTIME.and(Flags::ADMIN), Slowlog(SlowlogCommand::Len))
        .doc("2.2.12", "O(1)", "", "Returns the number of entries.")
        .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]),
    report("slowlog|reset",  2, Server, ANYTIME.and(Flags::ADMIN), Slowlog(SlowlogCommand::Reset))
        .doc("2.2.12", "O(1)", "", "Forgets all entries.").tips(ALL_NODES),
];
