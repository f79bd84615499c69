//! What tenants are asked for and where, as fronts and nodes tell.

use std::collections::{BTreeMap, BTreeSet};

use front::SLOTS;
use policy::placement::{demands, speeds, Asking, Node, NodeSeen, Partition};

use super::figures::Told;
use super::nodes::Views;

/// What a node can serve in a second, in the mean: one thread serves its requests, ns.
pub const OF_NODE: u64 = 1_000_000_000;

/// What is asked for, and where it goes.
pub struct Asked {
    /// By the names of tenants.
    pub tenants: BTreeMap<String, Asking>,
    /// By slot, the place of its node.
    owners: Vec<usize>,
    /// By the place of a node, what it can serve of [`OF_NODE`].
    speeds: Vec<f64>,
}

/// What tenants are asked for, as fronts `told`, where a node `uses` so much of its time and
/// charges such `prices`.
///
/// # Errors
/// Nobody has some of the slots: in words.
pub fn asked(
    views: &Views,
    told: &BTreeMap<String, Told>,
    uses: &BTreeMap<String, f64>,
    prices: &BTreeMap<String, f64>,
    ids: &[&str],
) -> Result<Asked, String> {
    let owner = |slot: u16| {
        let owner = views.owner(slot)?;
        ids.iter().position(|id| *id == owner.id)
    };
    let owners: Option<Vec<usize>> = (0..SLOTS).map(owner).collect();
    let owners = owners.ok_or("nothing moves: some slots are at no node that is there")?;
    let mut took = vec![0.0; ids.len()];
    for (slot, ns) in told.values().flat_map(|told| &told.slots) {
        took[owners[usize::from(*slot)]] += *ns as f64;
    }
    let seen = |id: &&str| NodeSeen {
        used: uses.get(*id).copied().unwrap_or(0.0),
        price: prices.get(*id).copied().unwrap_or(0.0),
    };
    let seen: Vec<NodeSeen> = ids.iter().map(seen).collect();
    let speeds = speeds(&seen);
    // Fronts see how long their requests took, the way there and back counted. How they share a
    // node's time follows from that; how much of it there was, the node knows. At a node of the
    // mean they would take so much of it.
    let rate = |slot: &u16, ns: &u64| {
        let node = owners[usize::from(*slot)];
        let used = seen[node].used * speeds[node];
        (
            u32::from(*slot),
            used * OF_NODE as f64 * *ns as f64 / took[node].max(1.0),
        )
    };
    let asking = |told: &Told| Asking {
        weight: told.weight,
        wants_more: told.waits,
        rates: told.slots.iter().map(|(slot, ns)| rate(slot, ns)).collect(),
    };
    let tenants = told.iter().map(|(name, told)| (name.clone(), asking(told)));
    Ok(Asked {
        tenants: tenants.collect(),
        owners,
        speeds,
    })
}

impl Asked {
    /// What each node can serve; nothing of those that were emptied.
    pub fn nodes(&self, ids: &[&str], leaving: &BTreeSet<String>) -> Vec<Node<1>> {
        let node = |(domain, (id, speed)): (usize, (&&str, &f64))| Node {
            capacity: [match leaving.contains(*id) {
                true => 0,
                false => (OF_NODE as f64 * speed) as u64,
            }],
            domain: domain as u32,
        };
        let nodes = ids.iter().zip(&self.speeds).enumerate();
        nodes.map(node).collect()
    }
}

/// All slots, each at the place of its node, with what they are asked for of what these `nodes` can
/// serve.
pub fn partitions(asked: &Asked, nodes: &[Node<1>]) -> Vec<Partition<1>> {
    let whole: u64 = nodes.iter().map(|node| node.capacity[0]).sum();
    let asking: Vec<Asking> = asked.tenants.values().cloned().collect();
    let (of_node, count) = (OF_NODE as f64, usize::from(SLOTS));
    let demands = demands(whole as f64, of_node, &asking, count);
    let owners = asked.owners.iter();
    let one = |(demand, owner): (u64, &usize)| Partition::new([demand], 1, vec![*owner as u32]);
    demands.into_iter().zip(owners).map(one).collect()
}
