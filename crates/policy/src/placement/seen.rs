//! What a controller sees.

use super::plan::Node;
use crate::Nanos;

/// A tenant as the controller sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TenantSeen {
    /// Its share of the whole system relative to others.
    pub weight: f64,
    /// What it has before anybody's share, ns/s over all nodes.
    pub reserved: f64,
    /// Whether it had work waiting most of the time somewhere: it would take more.
    pub wants_more: bool,
    /// Its use of the resource that it uses most of the whole system, ns/s over all nodes.
    pub dominant: f64,
}

/// What a tenant was served at a node since the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// The tenant.
    pub tenant: u32,
    /// The node.
    pub node: u32,
    /// Its rate, ns/s.
    pub rate: f64,
}

/// What was seen since the last step, of nodes with `R` resources.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a, const R: usize> {
    /// When.
    pub now: Nanos,
    /// Nodes, with what each can serve of each resource in ns/s; 0: it is lost.
    pub nodes: &'a [Node<R>],
    /// Tenants.
    pub tenants: &'a [TenantSeen],
    /// Rates by tenant and node; what is missing is 0.
    pub served: &'a [Served],
    /// Every partition's, a tenant's one after the other.
    pub partitions: &'a [Asked<R>],
    /// Of each partition; what is missing has none.
    pub bytes: &'a [u64],
    /// Nodes that take part in a move that is not at its end; what is missing does not.
    pub busy: &'a [bool],
}

/// What was asked of a partition since the last step.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked<const R: usize> {
    /// Its tenant.
    pub tenant: u32,
    /// What senders were asked for, served or not, ns/s. What was served says less: while requests
    /// pile up where a share is too small, it is too little of just that.
    pub rate: f64,
    /// The same by resource, as time of a node that only serves this.
    pub uses: [f64; R],
    /// What of `uses` only the first replica can serve: writes.
    pub primary: [f64; R],
    /// How many requests that was.
    pub requests: u64,
    /// What its replicas served, ns/s, in the order of its nodes.
    pub served: Vec<f64>,
}

impl<const R: usize> Seen<'_, R> {
    /// What each tenant was served, ns/s over all nodes.
    pub(super) fn served_in_all(&self) -> Vec<f64> {
        let mut rates = vec![0.0; self.tenants.len()];
        for served in self.served {
            rates[served.tenant as usize] += served.rate;
        }
        rates
    }
}
