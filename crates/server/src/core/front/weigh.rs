//! Weights before the nodes of a cluster. What a tenant weighs at this core goes to the nodes where
//! it is served, as its weight goes to fronts ([`policy::portion`]).

use std::collections::BTreeMap;

use policy::portion::{Divided, Portion, Told};
use policy::{Nanos, PrincipalId};

use crate::core::Core;

/// What each tenant weighs before each node of the engine, times its weight here.
#[derive(Default)]
pub struct NodeWeights {
    /// By place of the node.
    tenants: BTreeMap<PrincipalId, Vec<Node>>,
    at: Nanos,
}

/// One tenant before one node.
struct Node {
    before: AtNode,
    portion: Portion,
}

/// What the stage before a node has seen of a tenant since the start.
#[derive(Clone, Copy, Default)]
struct AtNode {
    /// What it has let through.
    granted: u64,
    /// For how long something has waited there.
    occupied_ns: Nanos,
}

impl NodeWeights {
    /// What the weight of a tenant is multiplied by before the node at this place.
    pub fn times(&self, tenant: PrincipalId, place: usize) -> f64 {
        let nodes = self.tenants.get(&tenant);
        let node = nodes.and_then(|nodes| nodes.get(place));
        node.map_or(1.0, |node| node.portion.times_even())
    }

    /// A tenant is gone.
    pub fn forget(&mut self, tenant: PrincipalId) {
        self.tenants.remove(&tenant);
    }

    /// A tenant has no connection here: what is seen of it next is of one that comes. True: it may
    /// weigh something else now.
    fn rest(&mut self, tenant: PrincipalId) -> bool {
        let nodes = self.tenants.get_mut(&tenant);
        let (nodes, mut changed) = (nodes.map_or(&mut [][..], |nodes| nodes), false);
        let new = Portion::new(Divided::Weight, nodes.len());
        for node in nodes {
            changed |= node.portion != new;
            node.portion = new;
        }
        changed
    }

    /// Takes in what has been seen of a tenant before each node, so long after the last time. True:
    /// it weighs something else before one of them.
    fn learn(&mut self, tenant: PrincipalId, seen: &[AtNode], passed_ns: Nanos) -> bool {
        let count = seen.len();
        let nodes = self.tenants.entry(tenant).or_default();
        let fresh = nodes.len() != count;
        if fresh {
            // There is another node, or the tenant is new here: all begin evenly.
            let portion = Portion::new(Divided::Weight, count);
            let known = nodes.iter().map(|node| node.before);
            let before = known.chain(std::iter::repeat(AtNode::default()));
            let new = |before| Node { before, portion };
            *nodes = before.take(count).map(new).collect();
        }
        let tell = |(node, seen): (&mut Node, &AtNode)| {
            let before = std::mem::replace(&mut node.before, *seen);
            let served = seen.granted.saturating_sub(before.granted) as f64;
            let waited = seen.occupied_ns.saturating_sub(before.occupied_ns) as f64;
            node.portion
                .tell(served, served, waited / passed_ns.max(1) as f64)
        };
        let told: Vec<Told> = nodes.iter_mut().zip(seen).map(tell).collect();
        let mut changed = fresh;
        for (place, node) in nodes.iter_mut().enumerate() {
            let others: Vec<Told> = [&told[..place], &told[place + 1..]].concat();
            let before = node.portion.part();
            node.portion.keep(&others, count);
            changed |= node.portion.part() != before;
        }
        changed
    }
}

impl Core {
    /// Once a second: tenants with connections here weigh more before the nodes where they are
    /// served.
    pub(in crate::core) fn weigh_nodes(&mut self, now: Nanos) {
        if self.beyond.is_empty() {
            return;
        }
        let passed_ns = now.saturating_sub(std::mem::replace(&mut self.node_weights.at, now));
        for tenant in self.shared.tenants.list() {
            if self.principals.of(&tenant).is_none() {
                continue;
            }
            if tenant.connections_on(self.id) == 0 {
                if self.node_weights.rest(tenant.id) {
                    self.configure(&tenant, now);
                }
                continue;
            }
            let crews = [&self.handlers].into_iter().chain(&self.beyond);
            let seen = crews.map(|crew| {
                let seen = crew.stage().observe(now, tenant.id);
                seen.map_or(AtNode::default(), |seen| AtNode {
                    granted: seen.granted,
                    occupied_ns: seen.occupied_ns,
                })
            });
            let seen: Vec<AtNode> = seen.collect();
            if self.node_weights.learn(tenant.id, &seen, passed_ns) {
                self.configure(&tenant, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: PrincipalId = PrincipalId(3);
    const SECOND_NS: Nanos = 1_000_000_000;

    #[test]
    fn a_tenant_weighs_more_before_nodes_that_serve_it() {
        let mut weights = NodeWeights::default();
        assert_eq!(weights.times(TENANT, 1), 1.0);
        let at = |granted, waited: bool, second: u64| AtNode {
            granted: granted * second,
            occupied_ns: SECOND_NS * second * u64::from(waited),
        };
        let seen = |second| {
            [
                at(0, false, second),
                at(300, true, second),
                at(100, true, second),
            ]
        };
        weights.learn(TENANT, &seen(1), SECOND_NS);
        let times = |weights: &NodeWeights| [0, 1, 2].map(|place| weights.times(TENANT, place));
        assert!(
            times(&weights)[1] > 2.2,
            "who comes need not wait: {:?}",
            times(&weights)
        );
        for second in 2..10 {
            weights.learn(TENANT, &seen(second), SECOND_NS);
        }
        // All goes where it is served; where it is not, it has its weight for what might come.
        for (times, expected) in times(&weights).into_iter().zip([1.0, 2.25, 0.75]) {
            assert!((times - expected).abs() < 0.03, "{times} {expected}");
        }
        // It goes, and comes again to another node.
        assert!(weights.rest(TENANT) && !weights.rest(TENANT));
        assert_eq!(times(&weights), [1.0; 3]);
        let [_, second, third] = seen(9);
        weights.learn(TENANT, &[at(50, true, 1), second, third], SECOND_NS);
        assert_eq!(times(&weights), [3.0, 1.0, 1.0]);
        // One more node: the weight is even again, until it is seen.
        assert!(weights.learn(TENANT, &[AtNode::default(); 4], SECOND_NS));
        assert_eq!(weights.times(TENANT, 3), 1.0);
        weights.forget(TENANT);
        assert_eq!(weights.times(TENANT, 3), 1.0);
    }
}
