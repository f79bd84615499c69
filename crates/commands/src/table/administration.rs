//! What an operator does to the server and its tenants.

use telemetry::Class;

use crate::session::SessionCommand::{Config, Entremet, Shutdown};
use crate::session::{ConfigCommand, EntremetCommand};
use crate::spec::Group::Server;
use crate::spec::{Flags, Spec};

use super::shapes::{container, help, report, session, ALL_NODES, BY_OPERATOR};

/// Commands of an operator.
#[rustfmt::skip]
pub(super) const ADMINISTRATION: &[Spec] = &[
    container("config",   Server, CONFIG,   "2.0.0",        "Commands about settings."),
    container("entremet", Server, ENTREMET, "Entremet 0.1", "Commands about tenants and schedulers.")
        .flags(BY_OPERATOR),
    session("shutdown", -1, Server, BY_OPERATOR.and(Flags::NO_MULTI).and(Flags::ALLOW_BUSY), Shutdown)
        .doc("1.0.0", "O(1)", "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]", "Ends the server in good order.")
        .class(Class::Admin),
];

#[rustfmt::skip]
const CONFIG: &[Spec] = &[
    report("config|get",       -3, Server, BY_OPERATOR, Config(ConfigCommand::Get))
        .doc("2.0.0", "O(parameters)", "parameter [parameter ...]", "Returns the settings whose names match."),
    help("config|help", Server, "5.0.0", "Lists the subcommands of CONFIG."),
    report("config|resetstat",  2, Server, BY_OPERATOR, Config(ConfigCommand::Resetstat))
        .doc("2.0.0", "O(1)", "", "Sets the counters of INFO to zero."),
    report("config|rewrite",    2, Server, BY_OPERATOR, Config(ConfigCommand::Rewrite))
        .doc("2.8.0", "O(1)", "", "Refused: the configuration file belongs to its author."),
    report("config|set",       -4, Server, BY_OPERATOR, Config(ConfigCommand::Set))
        .doc("2.0.0", "O(parameters)", "parameter value [parameter value ...]", "Changes settings.")
        .tips(ALL_NODES),
];

#[rustfmt::skip]
const ENTREMET: &[Spec] = &[
    report("entremet|explain", -2, Server, BY_OPERATOR, Entremet(EntremetCommand::Explain))
        .doc("Entremet 0.1", "O(1)", "tenant", "Tells where the time of a tenant’s requests went."),
    help("entremet|help", Server, "Entremet 0.1", "Lists the subcommands of ENTREMET."),
    report("entremet|slo",     -3, Server, BY_OPERATOR, Entremet(EntremetCommand::Slo))
        .doc("Entremet 0.1", "O(promises)", "LIST [tenant] | GET tenant class [WORKLOAD name] | SET tenant class [WORKLOAD name] [P percentile] [AT-MOST time] [WINDOW time] [THROUGHPUT rate] [CONTRACT rate] [IMPORTANCE number] [CHECK] | DEL tenant class [WORKLOAD name]", "Shows or changes what requests were promised, and how well that was kept."),
    report("entremet|slowest",  -2, Server, BY_OPERATOR, Entremet(EntremetCommand::Slowest))
        .doc("Entremet 0.1", "O(1)", "[tenant] [COUNT n]", "Shows the slowest requests of the last hour, and why they were slow."),
    report("entremet|stage",   -2, Server, BY_OPERATOR, Entremet(EntremetCommand::Stage))
        .doc("Entremet 0.1", "O(tenants)", "[arg ...]", "Shows the queues and permits of a stage."),
    report("entremet|tenant",  -2, Server, BY_OPERATOR, Entremet(EntremetCommand::Tenant))
        .doc("Entremet 0.1", "O(tenants)", "[arg ...]", "Lists, adds, changes or removes tenants."),
    report("entremet|workload", -3, Server, BY_OPERATOR, Entremet(EntremetCommand::Workload))
        .doc("Entremet 0.1", "O(workloads)", "LIST [tenant] | SET tenant name [CLIENTS patterns] [LIBRARIES patterns] [WEIGHT number] | DEL tenant name", "Shows or changes which connections of a tenant are told apart."),
];
