//! Answers to clients that ask about a cluster: of fronts before one, or of this server alone.

use crate::session::{ClusterCommand, SessionCommand};
use crate::spec::Group::Cluster;
use crate::spec::{Flags, Spec};

use super::shapes::{container, help, report, VARIES};

/// Commands about the cluster.
#[rustfmt::skip]
pub(super) const CLUSTER: &[Spec] = &[
    container("cluster", Cluster, SUBCOMMANDS, "3.0.0", "Commands about the cluster."),
];

#[rustfmt::skip]
const SUBCOMMANDS: &[Spec] = &[
    help("cluster|help", Cluster, "5.0.0", "Lists the subcommands of CLUSTER."),
    report("cluster|info",    2, Cluster, Flags::STALE, SessionCommand::Cluster(ClusterCommand::Info))
        .doc("3.0.0", "O(1)", "", "Describes the cluster: the fronts that are one, or this server alone.").tips(VARIES),
    report("cluster|keyslot", 3, Cluster, Flags::STALE, SessionCommand::Cluster(ClusterCommand::Keyslot))
        .doc("3.0.0", "O(length of the key)", "key", "Returns the hash slot of a key."),
    report("cluster|myid",    2, Cluster, Flags::STALE, SessionCommand::Cluster(ClusterCommand::Myid))
        .doc("3.0.0", "O(1)", "", "Returns the name of this node."),
    report("cluster|nodes",   2, Cluster, Flags::STALE, SessionCommand::Cluster(ClusterCommand::Nodes))
        .doc("3.0.0", "O(1)", "", "Lists the nodes: the fronts that are one cluster, or this server alone.").tips(VARIES),
    report("cluster|shards",  2, Cluster, Flags::STALE, SessionCommand::Cluster(ClusterCommand::Shards))
        .doc("7.0.0", "O(1)", "", "Maps hash slots to shards: the fronts that are one cluster, or this server alone.").tips(VARIES),
    report("cluster|slots",   2, Cluster, Flags::STALE, SessionCommand::Cluster(ClusterCommand::Slots))
        .doc("3.0.0", "O(1)", "", "Maps hash slots to nodes: the fronts that are one cluster, or this server alone.").tips(VARIES),
];
