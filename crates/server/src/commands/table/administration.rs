//! What an operator does to the server and its tenants.

use telemetry::Class;

use crate::commands::introspect;
use crate::commands::session::{ConfigCommand, EntremetCommand, SessionCommand};
use crate::commands::spec::{Flags, Group, Handler, Spec};

/// Commands of an operator.
pub(super) const ADMINISTRATION: &[Spec] = &[
    Spec::new("config", -2, Group::Server, Handler::Container)
        .subcommands(CONFIG)
        .doc("2.0.0", "", "", "Commands about settings."),
    Spec::new("entremet", -2, Group::Server, Handler::Container)
        .flags(
            Flags::ADMIN
                .and(Flags::NOSCRIPT)
                .and(Flags::LOADING)
                .and(Flags::STALE),
        )
        .subcommands(ENTREMET)
        .doc(
            "Entremet 0.1",
            "",
            "",
            "Commands about tenants and schedulers.",
        ),
    Spec::new(
        "shutdown",
        -1,
        Group::Server,
        Handler::Session(SessionCommand::Shutdown),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::NO_MULTI)
            .and(Flags::ALLOW_BUSY),
    )
    .class(Class::Admin)
    .doc(
        "1.0.0",
        "O(1)",
        "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
        "Ends the server in good order.",
    ),
];
const CONFIG: &[Spec] = &[
    Spec::new(
        "config|get",
        -3,
        Group::Server,
        Handler::Report(SessionCommand::Config(ConfigCommand::Get)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .class(Class::Admin)
    .doc(
        "2.0.0",
        "O(parameters)",
        "parameter [parameter ...]",
        "Returns the settings whose names match.",
    ),
    Spec::new(
        "config|help",
        2,
        Group::Server,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .doc("5.0.0", "O(1)", "", "Lists the subcommands of CONFIG."),
    Spec::new(
        "config|resetstat",
        2,
        Group::Server,
        Handler::Report(SessionCommand::Config(ConfigCommand::Resetstat)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .class(Class::Admin)
    .doc("2.0.0", "O(1)", "", "Sets the counters of INFO to zero."),
    Spec::new(
        "config|rewrite",
        2,
        Group::Server,
        Handler::Report(SessionCommand::Config(ConfigCommand::Rewrite)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .class(Class::Admin)
    .doc(
        "2.8.0",
        "O(1)",
        "",
        "Refused: the configuration file belongs to its author.",
    ),
    Spec::new(
        "config|set",
        -4,
        Group::Server,
        Handler::Report(SessionCommand::Config(ConfigCommand::Set)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .class(Class::Admin)
    .doc(
        "2.0.0",
        "O(parameters)",
        "parameter value [parameter value ...]",
        "Changes settings.",
    ),
];
const ENTREMET: &[Spec] = &[
    Spec::new(
        "entremet|explain",
        -2,
        Group::Server,
        Handler::Report(SessionCommand::Entremet(EntremetCommand::Explain)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .class(Class::Admin)
    .doc(
        "Entremet 0.1",
        "O(1)",
        "tenant",
        "Tells where the time of a tenant’s requests went.",
    ),
    Spec::new(
        "entremet|help",
        2,
        Group::Server,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .doc(
        "Entremet 0.1",
        "O(1)",
        "",
        "Lists the subcommands of ENTREMET.",
    ),
    Spec::new(
        "entremet|slo",
        -2,
        Group::Server,
        Handler::Report(SessionCommand::Entremet(EntremetCommand::Slo)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .class(Class::Admin)
    .doc(
        "Entremet 0.1",
        "O(1)",
        "[arg ...]",
        "Shows or changes what a tenant was promised.",
    ),
    Spec::new(
        "entremet|stage",
        -2,
        Group::Server,
        Handler::Report(SessionCommand::Entremet(EntremetCommand::Stage)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .class(Class::Admin)
    .doc(
        "Entremet 0.1",
        "O(tenants)",
        "[arg ...]",
        "Shows the queues and permits of a stage.",
    ),
    Spec::new(
        "entremet|tenant",
        -2,
        Group::Server,
        Handler::Report(SessionCommand::Entremet(EntremetCommand::Tenant)),
    )
    .flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
    )
    .class(Class::Admin)
    .doc(
        "Entremet 0.1",
        "O(tenants)",
        "[arg ...]",
        "Lists, adds, changes or removes tenants.",
    ),
];
