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

    #[test]
    fn tenants_in_one_partition_move_as_one() {
        let tenants = [
            asking(1.0, false, &[(0, 200.0)]),
            asking(1.0, false, &[(0, 300.0)]),
        ];
        assert_eq!(demands(2_000.0, 1_000.0, &tenants, 1), [500]);
    }
}
