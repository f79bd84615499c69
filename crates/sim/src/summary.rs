//! An outcome as `result.json` and as a table.

use crate::outcome::{Outcome, TenantOutcome};
use crate::scenario::Plan;
use serde::Serialize;

/// An outcome in the units of reports. No clock has a part in it: equal seeds give equal files.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The scenario.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// Measured simulated time, seconds.
    pub elapsed_s: f64,
    /// Warm-up before it, seconds.
    pub warm_up_s: f64,
    /// Events that happened.
    pub events: u64,
    /// Share of all nodes' permits in use, 0 to 1.
    pub utilisation: f64,
    /// By tenant.
    pub tenants: Vec<TenantSummary>,
}

/// One tenant's part of a [`Summary`].
#[derive(Clone, Debug, Serialize)]
pub struct TenantSummary {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: f64,
    /// Requests completed a second.
    pub rate_per_s: f64,
    /// Operations of those a second.
    pub operations_per_s: f64,
    /// Latencies of its requests.
    pub latency_ms: LatencyMs,
}

/// Percentiles, milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LatencyMs {
    /// Mean.
    pub mean: f64,
    /// Half are faster.
    pub p50: f64,
    /// Nine in ten are.
    pub p90: f64,
    /// All but one in twenty.
    pub p95: f64,
    /// All but one in a hundred.
    pub p99: f64,
    /// All but one in a thousand.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
}

impl Summary {
    /// What came out of a plan.
    #[must_use]
    pub fn new(plan: &Plan, outcome: &Outcome) -> Self {
        let elapsed_s = outcome.measured_ns as f64 / 1e9;
        let one = |(tenant, spec): (&TenantOutcome, &crate::spec::Tenant)| TenantSummary {
            name: tenant.name.clone(),
            weight: spec.allocation.weight,
            rate_per_s: tenant.requests as f64 / elapsed_s,
            operations_per_s: tenant.operations as f64 / elapsed_s,
            latency_ms: LatencyMs::of(tenant),
        };
        Summary {
            name: plan.name.clone(),
            seed: plan.spec.seed,
            elapsed_s,
            warm_up_s: plan.spec.warm_up_ns as f64 / 1e9,
            events: outcome.events,
            utilisation: outcome.utilisation,
            tenants: outcome
                .tenants
                .iter()
                .zip(&plan.spec.tenants)
                .map(one)
                .collect(),
        }
    }

    /// As a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{}: {} s simulated, {} events, nodes busy {:.1} %\n\n{:<20} {:>7} {:>11} {:>9} {:>9} {:>9} {:>9}\n",
            self.name,
            self.elapsed_s,
            self.events,
            self.utilisation * 100.0,
            "tenant",
            "weight",
            "requests/s",
            "mean ms",
            "p50 ms",
            "p95 ms",
            "p99 ms",
        );
        for tenant in &self.tenants {
            let latency = &tenant.latency_ms;
            text += &format!(
                "{:<20} {:>7} {:>11.1} {:>9.3} {:>9.3} {:>9.3} {:>9.3}\n",
                tenant.name,
                tenant.weight,
                tenant.rate_per_s,
                latency.mean,
                latency.p50,
                latency.p95,
                latency.p99,
            );
        }
        text
    }
}

impl LatencyMs {
    fn of(tenant: &TenantOutcome) -> Self {
        let at = |p: f64| tenant.quantile_ns(p) as f64 / 1e6;
        LatencyMs {
            mean: tenant.latency_ns.mean() / 1e6,
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        }
    }
}
