//! What a tenant's share of a whole system is worth in charges at its nodes.
//!
//! A node charges a tenant for the resource that it uses most *there* (dominant resources, Pisces
//! 4.3.4). One that writes at some nodes and reads at others leans on bytes in here and on bytes
//! out there, and is charged more in all than it uses of any resource of the system; held to equal
//! charges it is served less than its dominant share: .62 of it for tenants that read and write
//! alike on eight nodes. So what it may have is counted in the system's resources, and turned into
//! charges by what these were seen to be.
//!
//! That is where it begins. Charges say nothing of a resource that is not charged for: where one
//! leans on bytes in, others may use all bytes out. So the weight of a tenant that wants more is
//! raised until its dominant share of the system is what its weight says among such tenants, and
//! lowered again. Without, eight tenants of which two write as much as they read, with values that
//! differ much (sigma 1), stand at .90; with it at .99.

use super::TenantSeen;

/// Charges over the use of the dominant resource of the whole system; at most as many as there are
/// resources that nodes could charge for instead.
const SPREAD_MAX: f64 = 4.0;

/// How much of the error of a dominant share is mended in one step, as an exponent: what a new
/// weight does is seen one step later, and a third of it overshoots nothing.
const GAIN: f64 = 0.3;
/// The most by which a weight is raised or lowered, as a factor: one that cannot use what it is
/// given must not gather more than others would notice.
const MENDED_MAX: f64 = 4.0;

/// For each tenant: what it is charged for each unit of its dominant resource, at least 1, and the
/// factor that mends what its share still lacks.
#[derive(Clone, Debug, Default)]
pub(super) struct Spreads {
    charged: Vec<f64>,
    mended: Vec<f64>,
}

impl Spreads {
    /// Takes in what each tenant was `charged` in a step, all nodes together; `newest` is the
    /// weight of the step.
    pub(super) fn learn(&mut self, tenants: &[TenantSeen], charged: &[f64], newest: f64) {
        self.charged.resize(tenants.len(), 1.0);
        for (spread, (tenant, charged)) in self.charged.iter_mut().zip(tenants.iter().zip(charged))
        {
            // Of one that did nothing, nothing is learnt.
            if tenant.dominant > 0.0 {
                let now = (charged / tenant.dominant).clamp(1.0, SPREAD_MAX);
                *spread += (now - *spread) * newest;
            }
        }
        self.mend(tenants);
    }

    fn mend(&mut self, tenants: &[TenantSeen]) {
        self.mended.resize(tenants.len(), 1.0);
        // One that does not want more has what it asks for; one with a reservation may have more
        // than its weight says.
        let among = |tenant: &TenantSeen| {
            tenant.wants_more && tenant.reserved <= 0.0 && tenant.dominant > 0.0
        };
        let (mut dominant, mut weight) = (0.0, 0.0);
        for tenant in tenants.iter().filter(|tenant| among(tenant)) {
            dominant += tenant.dominant;
            weight += tenant.weight;
        }
        for (mended, tenant) in self.mended.iter_mut().zip(tenants) {
            *mended = if among(tenant) && weight > 0.0 {
                let wanted = tenant.weight * dominant / weight;
                let next = *mended * (wanted / tenant.dominant).powf(GAIN);
                next.clamp(1.0 / MENDED_MAX, MENDED_MAX)
            } else {
                1.0
            };
        }
    }

    /// The weight of a tenant among charges.
    pub(super) fn weight(&self, tenant: usize, seen: &TenantSeen) -> f64 {
        let of = |factors: &[f64]| factors.get(tenant).copied().unwrap_or(1.0);
        seen.weight * of(&self.charged) * of(&self.mended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(dominant: f64, wants_more: bool) -> TenantSeen {
        TenantSeen {
            weight: 3.0,
            reserved: 0.0,
            wants_more,
            dominant,
        }
    }

    /// A system in which a tenant has half of what its weight is worth to others: it has its share
    /// all the same.
    #[test]
    fn a_weight_is_raised_until_the_dominant_shares_are_alike() {
        let mut spreads = Spreads::default();
        let mut dominant = [50.0, 100.0, 10.0];
        for _ in 0..40 {
            let tenants = [true, true, false].map(|wants| seen(0.0, wants));
            let tenants: Vec<TenantSeen> = tenants
                .into_iter()
                .zip(dominant)
                .map(|(tenant, dominant)| TenantSeen { dominant, ..tenant })
                .collect();
            spreads.learn(&tenants, &dominant, 0.5);
            let weights = [0, 1, 2].map(|tenant| spreads.weight(tenant, &tenants[tenant]));
            assert!((weights[2] - 3.0).abs() < 1e-9, "{weights:?}");
            let whole = 0.5 * weights[0] + weights[1];
            dominant = [75.0 * weights[0] / whole, 150.0 * weights[1] / whole, 10.0];
        }
        assert!(
            (dominant[0] / dominant[1] - 1.0).abs() < 0.01,
            "{dominant:?}"
        );
    }

    #[test]
    fn a_weight_is_raised_by_a_bounded_factor() {
        let (mut spreads, tenants) = (Spreads::default(), [seen(1.0, true), seen(100.0, true)]);
        for _ in 0..100 {
            spreads.learn(&tenants, &[1.0, 100.0], 0.5);
        }
        let weights = [0, 1].map(|tenant| spreads.weight(tenant, &tenants[tenant]));
        assert_eq!(weights, [3.0 * MENDED_MAX, 3.0 / MENDED_MAX]);
    }

    #[test]
    fn one_that_leans_on_two_resources_in_two_places_is_charged_twice_and_weighs_twice() {
        let alike = [100.0, 100.0, 0.0];
        let (mut spreads, tenants) = (
            Spreads::default(),
            alike.map(|dominant| seen(dominant, true)),
        );
        for _ in 0..20 {
            spreads.learn(&tenants, &[100.0, 200.0, 0.0], 0.5);
        }
        let weights = [0, 1, 2].map(|tenant| spreads.weight(tenant, &tenants[tenant]));
        for (weight, wanted) in weights.into_iter().zip([3.0, 6.0, 3.0]) {
            assert!((weight - wanted).abs() < 1e-3, "{weights:?}");
        }
    }
}
