//! Weights that nodes divide among themselves, as fronts before a cluster do: each has that part of
//! a tenant's weight which it served of the tenant.

use super::account::Account;
use policy::placement::Local;
use policy::portion::{Divided, Portion, Told};
use std::collections::BTreeMap;

/// By tenant, then node.
#[derive(Debug, Default)]
pub(super) struct Portions(BTreeMap<u32, BTreeMap<u32, Portion>>);

impl Portions {
    /// Takes in what each of so many nodes has counted in a round, and says what tenants may have
    /// where. `weights` are those of the tenants.
    pub(super) fn step(
        &mut self,
        reports: &[(u32, u32, Account)],
        interval_s: f64,
        nodes: usize,
        weights: &[f64],
    ) -> Vec<Local> {
        let mut told: BTreeMap<u32, Vec<(u32, Told)>> = BTreeMap::new();
        for (tenant, node, since) in reports {
            let new = || Portion::new(Divided::Weight, nodes);
            let of_tenant = self.0.entry(*tenant).or_default();
            let portion = of_tenant.entry(*node).or_insert_with(new);
            let waited = since.occupied_ns as f64 / 1e9 / interval_s;
            let charged_ns = since.charged_ns as f64 / interval_s;
            let one = portion.tell(charged_ns, since.operations as f64, waited);
            told.entry(*tenant).or_default().push((*node, one));
        }
        let all: f64 = weights.iter().sum();
        let mut shares = Vec::new();
        for (tenant, told) in told {
            let part = weights[tenant as usize] / all;
            for (node, portion) in self.0.get_mut(&tenant).into_iter().flatten() {
                let others = told.iter().filter(|(other, _)| other != node);
                let others: Vec<Told> = others.map(|(_, told)| *told).collect();
                portion.keep(&others, nodes);
                shares.push(Local {
                    tenant,
                    node: *node,
                    share: part * portion.times_even(),
                });
            }
        }
        shares
    }
}
