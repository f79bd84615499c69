//! What the server tells of itself.

use crate::session::SessionCommand::{
    Bgsave, FunctionFlush, Info, Lastsave, Latency, Lolwut, ModuleList, Role, Save, Slowlog, Time,
    Wait,
};
use crate::session::{LatencyCommand, SlowlogCommand};
use crate::spec::Group::{Generic, Scripting, Server};
use crate::spec::{Flags, Spec};

use super::shapes::{
    container, help, report, session, ALL_NODES, ALL_SHARDS, ANYTIME, ANYTIME_FAST, BY_CLIENT,
    BY_OPERATOR, READS_FAST, VARIES, VARIES_BY_NODE, VARIES_IN_ORDER, WRITES,
};

/// Commands that ask about the server.
#[rustfmt::skip]
pub(super) const SERVER: &[Spec] = &[
    report("bgsave",   -1, Server, SAVES, Bgsave)
        .doc("1.0.0", "O(writes that no sync covers)", "[SCHEDULE]",
             "Has the tenant’s writes so far survive a power cut, as SAVE does."),
    container("function", Scripting, FUNCTION, "7.0.0",  "Commands about functions, of which there are none."),
    report("info", -1, Server, ANYTIME, Info)
        .doc("1.0.0", "O(1)", "[section ...]",
             "Describes the server as far as it is the tenant’s business.")
        .categories(&["@dangerous"])
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
    report("lastsave",  1, Server, ANYTIME_FAST, Lastsave)
        .doc("1.0.0", "O(1)", "", "Returns when the tenant’s log was last synced to the disk.")
        .categories(&["@admin", "@dangerous"]).tips(VARIES),
    container("latency",  Server,    LATENCY,  "2.8.13", "Commands about latencies."),
    session("lolwut", -1, Server, READS_FAST,   Lolwut)
        .doc("5.0.0", "O(1)", "[VERSION version]", "Shows the version in style."),
    container("module",   Server,    MODULE,   "4.0.0",  "Commands about modules, of which there are none."),
    session("role",     1, Server, BY_CLIENT.and(Flags::FAST), Role)
        .doc("2.8.12", "O(1)", "", "Says that the server is a master without replicas.")
        .categories(&["@admin", "@dangerous"]),
    report("save",      1, Server, SAVES, Save)
        .doc("1.0.0", "O(writes that no sync covers)", "",
             "Has the tenant’s writes so far survive a power cut."),
    container("slowlog",  Server,    SLOWLOG,  "2.2.12", "Commands about slow commands."),
    session("time",    1, Server, ANYTIME_FAST, Time)
        .doc("2.6.0", "O(1)", "", "Returns the time of day.").tips(VARIES),
    session("wait",    3, Generic, Flags::NOSCRIPT, Wait)
        .doc("3.0.0", "O(1)", "numreplicas timeout", "Returns 0, the number of replicas, at once.")
        .categories(&["@connection"]).tips(&["request_policy:all_shards", "response_policy:agg_min"]),
];

/// For operators: it waits for the disk. It is not allowed in a transaction, because it would not
/// cover the transaction's own writes.
const SAVES: Flags = Flags::ADMIN
    .and(Flags::NOSCRIPT)
    .and(Flags::NO_ASYNC_LOADING)
    .and(Flags::NO_MULTI);

#[rustfmt::skip]
const MODULE: &[Spec] = &[
    help("module|help", Server, "5.0.0", "Lists the subcommands of MODULE."),
    session("module|list", 2, Server, Flags::ADMIN.and(Flags::NOSCRIPT), ModuleList)
        .doc("4.0.0", "O(1)", "", "Lists the modules, of which there are none.").tips(VARIES_IN_ORDER),
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
    report("latency|doctor",     2, Server, BY_OPERATOR, Latency(LatencyCommand::Doctor))
        .doc("2.8.13", "O(1)", "", "Tells where the time of the tenant’s requests went.").tips(VARIES_BY_NODE),
    report("latency|graph",      3, Server, BY_OPERATOR, Latency(LatencyCommand::Graph))
        .doc("2.8.13", "O(1)", "event", "Refused: there are no events.").tips(VARIES_BY_NODE),
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
