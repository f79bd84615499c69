//! Answers of a single node to clients that ask about a cluster.

use crate::commands::introspect;
use crate::commands::session::{ClusterCommand, SessionCommand};
use crate::commands::spec::{Flags, Group, Handler, Spec};

/// Commands about the cluster.
pub(super) const CLUSTER: &[Spec] = &[Spec::new("cluster", -2, Group::Cluster, Handler::Container)
    .subcommands(SUBCOMMANDS)
    .doc("3.0.0", "", "", "Commands about the cluster.")];
const SUBCOMMANDS: &[Spec] = &[
    Spec::new(
        "cluster|help",
        2,
        Group::Cluster,
        Handler::Table(introspect::help),
    )
    .flags(Flags::LOADING.and(Flags::STALE))
    .doc("5.0.0", "O(1)", "", "Lists the subcommands of CLUSTER."),
    Spec::new(
        "cluster|info",
        2,
        Group::Cluster,
        Handler::Report(SessionCommand::Cluster(ClusterCommand::Info)),
    )
    .flags(Flags::STALE)
    .tips(&["nondeterministic_output"])
    .doc("3.0.0", "O(1)", "", "Describes the cluster of one node."),
    Spec::new(
        "cluster|keyslot",
        3,
        Group::Cluster,
        Handler::Report(SessionCommand::Cluster(ClusterCommand::Keyslot)),
    )
    .flags(Flags::STALE)
    .doc(
        "3.0.0",
        "O(length of the key)",
        "key",
        "Returns the hash slot of a key.",
    ),
    Spec::new(
        "cluster|myid",
        2,
        Group::Cluster,
        Handler::Report(SessionCommand::Cluster(ClusterCommand::Myid)),
    )
    .flags(Flags::STALE)
    .doc("3.0.0", "O(1)", "", "Returns the name of the node."),
    Spec::new(
        "cluster|nodes",
        2,
        Group::Cluster,
        Handler::Report(SessionCommand::Cluster(ClusterCommand::Nodes)),
    )
    .flags(Flags::STALE)
    .tips(&["nondeterministic_output"])
    .doc(
        "3.0.0",
        "O(1)",
        "",
        "Lists the nodes, of which there is one.",
    ),
    Spec::new(
        "cluster|shards",
        2,
        Group::Cluster,
        Handler::Report(SessionCommand::Cluster(ClusterCommand::Shards)),
    )
    .flags(Flags::STALE)
    .tips(&["nondeterministic_output"])
    .doc(
        "7.0.0",
        "O(1)",
        "",
        "Maps hash slots to shards: all to one.",
    ),
    Spec::new(
        "cluster|slots",
        2,
        Group::Cluster,
        Handler::Report(SessionCommand::Cluster(ClusterCommand::Slots)),
    )
    .flags(Flags::STALE)
    .tips(&["nondeterministic_output"])
    .doc("3.0.0", "O(1)", "", "Maps hash slots to nodes: all to one."),
];
