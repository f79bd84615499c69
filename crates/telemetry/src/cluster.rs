//! The cluster behind a server (`GET /api/cluster`).

use serde::{Deserialize, Serialize};

use crate::promise::{PromiseKept, PromiseWindow};

/// `GET /api/cluster`: what stands where, and what asks most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterView {
    /// Nodes that have slots.
    pub nodes: Vec<ClusterNode>,
    /// Tenants, those that take most first; 100 at most.
    pub tenants: Vec<ClusterTenant>,
    /// How many there are.
    pub tenants_total: u64,
    /// Slots that are being moved.
    pub moves: Vec<ClusterMove>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterNode {
    /// `host:port`, as fronts reach it.
    pub at: String,
    /// Slots that it has.
    pub slots: u32,
    /// Partitions of all tenants that it has.
    pub partitions: u64,
    /// Fronts that stand before it, as clients reach them.
    pub fronts: Vec<String>,
    /// This server stands before it.
    pub here: bool,
    /// The part of the time that it works for all fronts, 0 to 1, as they count it. Left out where
    /// nobody tells: this front is no one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
}

/// A tenant over all nodes (`GET /api/cluster/{name}` has one).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterTenant {
    /// Its name.
    pub name: String,
    /// How many partitions its keys have.
    pub partitions: u16,
    /// Its weight, of all fronts.
    pub weight: f64,
    /// Its weight at this front.
    pub weight_here: f64,
    /// Something of it waits before a node most of the time, at some front.
    pub waits: bool,
    /// Its partitions by node.
    pub nodes: Vec<TenantAtNode>,
    /// How well its promises are kept at all fronts together; empty until this one has heard of
    /// another.
    #[serde(default)]
    pub promises: Vec<ClusterPromise>,
}

/// One promise, at all fronts that keep it together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterPromise {
    /// The workload whose requests it is for; none: the connections of no workload.
    pub workload: Option<String>,
    /// `get`, `put`, `multiget`, `scan` or `any`.
    pub class: String,
    /// How many fronts it is of.
    pub fronts: u64,
    /// The percentile of latency that was promised.
    #[serde(default)]
    pub percentile: Option<f64>,
    /// What it should not exceed, milliseconds.
    #[serde(default)]
    pub at_most_ms: Option<f64>,
    /// It is judged in windows of this length, seconds.
    #[serde(default)]
    pub window_s: f64,
    /// Offered requests per second up to which it holds, of all fronts together.
    pub contract_per_s: Option<f64>,
    /// The part of that which is this front's.
    pub contract_portion: f64,
    /// Requests per second that should be served, by all fronts together.
    #[serde(default)]
    pub throughput_per_s: Option<f64>,
    /// The part of that which is this front's.
    #[serde(default)]
    pub throughput_portion: f64,
    /// The last window that is over.
    pub last: Option<PromiseWindow>,
    /// The last hour.
    pub hour: PromiseKept,
    /// The last 30 days, but not before this front has heard of another.
    pub days: PromiseKept,
}

/// A tenant's part of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantAtNode {
    /// The node, `host:port`.
    pub at: String,
    /// Partitions of it there.
    pub partitions: u16,
    /// The part of the node's time that these take, 0 to 1; left out as for nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
}

/// Slots that are being moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterMove {
    /// A slot, or the first and the last (`7-90`).
    pub slots: String,
    /// Tenants that have partitions in them.
    pub tenants: Vec<String>,
    /// The node that has them still, `host:port`.
    pub from: Option<String>,
}
