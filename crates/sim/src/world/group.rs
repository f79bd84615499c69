//! A partition as senders see it.

use super::account::R;
use policy::PrincipalId;

/// Where a partition is.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) tenant: u32,
    /// The nodes that serve it; the first one is written.
    pub(super) nodes: Vec<u32>,
    /// Those that have its data, and those to which it is copied.
    pub(super) held: Vec<u32>,
    pub(super) coming: Vec<u32>,
    /// What its tenant is called at each of them.
    pub(super) principals: Vec<PrincipalId>,
    /// Which of its tenant's homes each of them is.
    pub(super) homes: Vec<u32>,
    /// Since the last control step: expected time of what was asked for, how often, and expected
    /// time of what each replica served.
    pub(super) asked_ns: f64,
    pub(super) asked: u64,
    /// What was asked for by resource, as time of a node.
    pub(super) asked_of_ns: [f64; R],
    /// The same of writes, which go to the first replica.
    pub(super) written_of_ns: [f64; R],
    pub(super) served_ns: Vec<f64>,
}

impl Group {
    /// A partition whose data these nodes have, and that nobody is asked for yet.
    pub(super) fn new(tenant: u32, held: Vec<u32>) -> Self {
        Group {
            tenant,
            nodes: Vec::new(),
            held,
            coming: Vec::new(),
            principals: Vec::new(),
            homes: Vec::new(),
            asked_ns: 0.0,
            asked: 0,
            asked_of_ns: [0.0; R],
            written_of_ns: [0.0; R],
            served_ns: Vec::new(),
        }
    }

    /// The nodes that serve it: where it is wanted, as far as it is there; until it is there
    /// everywhere those, too, where it was, and the first of these is written.
    pub(super) fn served_by(&self, wanted: &[u32], lives: impl Fn(u32) -> bool) -> Vec<u32> {
        let held = |node: &u32| self.held.contains(node) && lives(*node);
        let there = wanted.iter().copied().filter(held);
        if wanted.iter().all(|node| self.held.contains(node)) {
            return there.collect();
        }
        let mut nodes: Vec<u32> = self.nodes.iter().copied().filter(held).collect();
        let new: Vec<u32> = there.filter(|node| !nodes.contains(node)).collect();
        nodes.extend(new);
        nodes
    }
}
