//! What tenants are asked for and where, as fronts and nodes tell.

use std::collections::{BTreeMap, BTreeSet};

use front::SLOTS;
use policy::placement::{demands, Asking, Partition};

use super::figures::Told;
use super::nodes::Views;

/// What a node can serve in a second: one thread serves its requests, ns.
pub const OF_NODE: u64 = 1_000_000_000;

/// What is asked for, and where it goes.
pub struct Asked {
    /// By the names of tenants.
    pub tenants: BTreeMap<String, Asking>,
    /// By slot, the place of its node.
    owners: Vec<usize>,
}

/// What tenants are asked for, as fronts `told`, where a node `uses` so much of its time.
///
/// # Errors
/// Nobody has some of the slots: in words.
pub fn asked(
    views: &Views,
    told: &BTreeMap<String, Told>,
    uses: &BTreeMap<String, f64>,
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
    // Fronts see how long their requests took, the way there and back counted. How they share a
    // node's time follows from that; how much of it there was, the node knows.
    let rate = |slot: &u16, ns: &u64| {
        let node = owners[usize::from(*slot)];
        let used = uses.get(ids[node]).copied().unwrap_or(0.0);
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
    })
}

/// All slots, each at the place of its node, with what they are asked for, where nodes that were
/// emptied serve none.
pub fn partitions(asked: &Asked, ids: &[&str], leaving: &BTreeSet<String>) -> Vec<Partition<1>> {
    let able = ids.iter().filter(|id| !leaving.contains(**id)).count();
    let asking: Vec<Asking> = asked.tenants.values().cloned().collect();
    let (of_node, count) = (OF_NODE as f64, usize::from(SLOTS));
    let demands = demands(of_node * able as f64, of_node, &asking, count);
    let owners = asked.owners.iter();
    let one = |(demand, owner): (u64, &usize)| Partition::new([demand], 1, vec![*owner as u32]);
    demands.into_iter().zip(owners).map(one).collect()
}
