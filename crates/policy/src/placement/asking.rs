//! What partitions are asked for where nobody knows more than what was measured: before somebody
//! else's engine.

use super::fair::{fair_shares, Claim};
use super::plan::fair_demand;

/// A tenant, and what its partitions were served.
#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    /// Its share relative to others.
    pub weight: f64,
    /// Whether something of it waited most of the time before a node: it would take more.
    pub wants_more: bool,
    /// The places of its partitions, and what each was served, ns of a node a second.
    pub rates: Vec<(u32, f64)>,
}

/// A node, as it was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeSeen {
    /// The part of its time that it used.
    pub used: f64,
    /// What a unit of weight is charged there, ns (`policy::cost::spans`); 0: that is not known.
    pub price: f64,
}

/// A node that uses so much of its time shows what requests take. One that has room takes longer
/// for a request that it finds alone than for one of many.
const BUSY: f64 = 0.75;
/// Prices that are no further apart than this, as a part of them, are what nodes differ by.
const ALIKE: f64 = 0.15;
/// And from here on they are of what the nodes are asked for: weights know no more of commands.
/// Whoever went by those would move what is dear to where it makes all else dear.
const UNLIKE: f64 = 0.3;

/// What nodes can serve of what requests weigh, as parts of the mean.
///
/// Where tenants compete, fronts have all served alike, by what requests weigh
/// (`crate::portion`). A node at which they take a tenth longer serves a tenth less of that in all
/// of its time. Placed by time alone, tenants that are there have a tenth less than others.
#[must_use]
pub fn speeds(nodes: &[NodeSeen]) -> Vec<f64> {
    let known = |node: &NodeSeen| node.used >= BUSY && node.price > 0.0;
    let all = || nodes.iter().filter(|node| known(node));
    let mean = all().map(|node| 1.0 / node.price).sum::<f64>() / all().count().max(1) as f64;
    let speed = |node: &NodeSeen| match known(node) {
        true => 1.0 / node.price / mean,
        false => 1.0,
    };
    let apart = all().map(|node| speed(node).ln().abs()).fold(0.0, f64::max);
    let believed = ((UNLIKE - apart) / (UNLIKE - ALIKE)).clamp(0.0, 1.0);
    let speeds = nodes.iter().map(speed);
    speeds.map(|speed| 1.0 + (speed - 1.0) * believed).collect()
}

/// What each of `count` partitions is asked for, on nodes that can serve `whole` together and
/// `of_node` each: of a tenant that wants more its part of the tenant's fair share, of the others
/// what they were served. A partition is on one node, so it is asked for no more than that has.
/// Several tenants may have the same partition, which moves as one.
#[must_use]
pub fn demands(whole: f64, of_node: f64, tenants: &[Asking], count: usize) -> Vec<u64> {
    let served = |tenant: &Asking| tenant.rates.iter().map(|(_, rate)| rate).sum::<f64>();
    let claims = tenants.iter().map(|tenant| {
        let parts = tenant.rates.iter().filter(|(_, rate)| *rate > 0.0).count();
        Claim {
            weight: tenant.weight,
            reserved: 0.0,
            asks: Some(match tenant.wants_more {
                true => of_node * parts as f64,
                false => served(tenant),
            }),
        }
    });
    let (_, shares) = fair_shares(whole, &claims.collect::<Vec<_>>());
    let mut demands = vec![0u64; count];
    for (tenant, share) in tenants.iter().zip(shares) {
        if served(tenant) <= 0.0 {
            continue;
        }
        let uses: Vec<[u64; 1]> = tenant.rates.iter().map(|(_, r)| [*r as u64]).collect();
        let parts = fair_demand(share as u64, &uses);
        for ((place, _), [part]) in tenant.rates.iter().zip(parts) {
            if let Some(demand) = demands.get_mut(*place as usize) {
                *demand = demand.saturating_add(part.min(of_node as u64));
            }
        }
    }
    demands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(weight: f64, wants_more: bool, rates: &[(u32, f64)]) -> Asking {
        Asking {
            weight,
            wants_more,
            rates: rates.to_vec(),
        }
    }

    #[test]
    fn who_wants_more_is_asked_for_its_share_and_the_others_for_what_they_had() {
        // Three nodes; two tenants wait at one of them, and one has what it asks for elsewhere.
        let tenants = [
            asking(1.0, true, &[(0, 500.0)]),
            asking(2.0, true, &[(1, 400.0), (2, 100.0)]),
            asking(1.0, false, &[(3, 300.0), (2, 0.0)]),
            asking(1.0, false, &[]),
        ];
        let demands = demands(3_000.0, 1_000.0, &tenants, 4);
        // The second might have two nodes of the 2,700 that are left, and one partition no more
        // than a node.
        assert_eq!(demands[3], 300);
        assert!(demands[0].abs_diff(900) <= 1, "{demands:?}");
        assert_eq!(demands[1], 1_000);
        assert!(demands[2].abs_diff(360) <= 1, "{demands:?}");
    }

    fn seen(used: f64, price: f64) -> NodeSeen {
        NodeSeen { used, price }
    }

    #[test]
    fn a_node_at_which_requests_take_longer_can_serve_less() {
        let speeds = speeds(&[seen(1.0, 230.0), seen(0.9, 270.0), seen(1.0, 230.0)]);
        let mean = (2.0 / 230.0 + 1.0 / 270.0) / 3.0;
        for (speed, price) in speeds.iter().zip([230.0, 270.0, 230.0]) {
            assert!((speed * price * mean - 1.0).abs() < 1e-9, "{speeds:?}");
        }
        assert!((speeds.iter().sum::<f64>() - 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_known_is_as_it_is_elsewhere() {
        // One has room, and of one nothing is told.
        let speeds = speeds(&[seen(1.0, 230.0), seen(0.3, 900.0), seen(1.0, 0.0)]);
        assert_eq!(speeds, [1.0; 3]);
        assert_eq!(super::speeds(&[]), []);
    }

    #[test]
    fn prices_that_are_far_apart_are_of_what_is_asked_for() {
        let slower = |price: f64| speeds(&[seen(1.0, 100.0), seen(1.0, price)])[1];
        assert_eq!(slower(300.0), 1.0);
        // From the one to the other nothing leaps: a little dearer is a little slower.
        let all: Vec<f64> = (100..300).map(|price| slower(f64::from(price))).collect();
        let leaps = all.windows(2).map(|two| (two[1] - two[0]).abs());
        assert!(leaps.fold(0.0, f64::max) < 0.01, "{all:?}");
        assert!(
            all.iter().all(|speed| (0.85..=1.0).contains(speed)),
            "{all:?}"
        );
    }

    #[test]
    fn tenants_in_one_partition_move_as_one() {
        let tenants = [
            asking(1.0, false, &[(0, 200.0)]),
            asking(1.0, false, &[(0, 300.0)]),
        ];
        assert_eq!(demands(2_000.0, 1_000.0, &tenants, 1), [500]);
    }
}
