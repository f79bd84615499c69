//! What a tenant's share of a whole system is worth in charges at its nodes.
//!
//! A node charges a tenant for the resource that it uses most *there* (dominant resources, Pisces 4.3.4). One that writes at
//! some nodes and reads at others leans on bytes in here and on bytes out there, and is charged more in all than it
//! uses of any resource of the system; held to equal charges it is served less than its dominant share: .62 of it for
//! tenants that read and write alike on eight nodes. So what it may have is counted in the system's resources, and
//! turned into charges by what these were seen to be.

use super::TenantSeen;

/// Charges over the use of the dominant resource of the whole system; at most as many as there are resources that nodes
/// could charge for instead.
const SPREAD_MAX: f64 = 4.0;

/// For each tenant: what it is charged for each unit of its dominant resource, at least 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Spreads(Vec<f64>);

impl Spreads {
    /// Takes in what each tenant was `charged` in a step, all nodes together; `newest` is the weight of the step.
    pub(super) fn learn(&mut self, tenants: &[TenantSeen], charged: &[f64], newest: f64) {
        self.0.resize(tenants.len(), 1.0);
        for (spread, (tenant, charged)) in self.0.iter_mut().zip(tenants.iter().zip(charged)) {
            // Of one that did nothing, nothing is learnt.
            if tenant.dominant > 0.0 {
                let now = (charged / tenant.dominant).clamp(1.0, SPREAD_MAX);
                *spread += (now - *spread) * newest;
            }
        }
    }

    /// The weight of a tenant among charges.
    pub(super) fn weight(&self, tenant: usize, seen: &TenantSeen) -> f64 {
        seen.weight * self.0.get(tenant).copied().unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_leans_on_two_resources_in_two_places_is_charged_twice_and_weighs_twice() {
        let seen = |dominant| TenantSeen {
            weight: 3.0,
            reserved: 0.0,
            wants_more: true,
            dominant,
        };
        let (mut spreads, tenants) = (Spreads::default(), [seen(100.0), seen(100.0), seen(0.0)]);
        for _ in 0..20 {
            spreads.learn(&tenants, &[100.0, 200.0, 0.0], 0.5);
        }
        let weights = [0, 1, 2].map(|tenant| spreads.weight(tenant, &tenants[tenant]));
        for (weight, wanted) in weights.into_iter().zip([3.0, 6.0, 3.0]) {
            assert!((weight - wanted).abs() < 1e-3, "{weights:?}");
        }
    }
}
