//! An outcome as `result.json` and as a table.

use crate::outcome::{Outcome, TenantOutcome};
use crate::scenario::Plan;
use crate::spec::Tenant;
use serde::Serialize;
use workload::report::figures::{
    self, ErrorFigures, LatencyFigures, LoadFigures, SeriesFigures, TenantFigures,
};
use workload::stats::UNANSWERED;

/// The first word of a server's reply to what a limit refuses.
const THROTTLED: &str = "THROTTLED";

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
    /// Requests of loads that send so many in all which were neither answered nor refused at the
    /// end; `None` where there are no such loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// Events that happened.
    pub events: u64,
    /// Share of all nodes' permits in use, 0 to 1.
    pub utilisation: f64,
    /// Operations a second of the requests answered, each counted once however often it was sent.
    pub operations_per_s: f64,
    /// By tenant, as a load reports it; nothing is told by class.
    pub tenants: Vec<TenantFigures>,
}

impl Summary {
    /// What came out of a plan.
    #[must_use]
    pub fn new(plan: &Plan, outcome: &Outcome) -> Self {
        let elapsed_s = outcome.measured_ns as f64 / 1e9;
        let tenants = outcome.tenants.iter().zip(&plan.spec.tenants);
        let operations: u64 = outcome.tenants.iter().map(|t| t.operations).sum();
        Summary {
            name: plan.name.clone(),
            seed: plan.spec.seed,
            elapsed_s,
            warm_up_s: plan.spec.warm_up_ns as f64 / 1e9,
            left: outcome.left,
            events: outcome.events,
            utilisation: outcome.utilisation,
            operations_per_s: operations as f64 / elapsed_s,
            tenants: tenants
                .map(|(tenant, spec)| figures_of(tenant, spec, elapsed_s))
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
            let latency = &tenant.total.latency_ms;
            text += &format!(
                "{:<20} {:>7} {:>11.1} {:>9.3} {:>9.3} {:>9.3} {:>9.3}\n",
                tenant.name,
                tenant.weight,
                tenant.total.rate_per_s,
                latency.mean,
                latency.p50,
                latency.p95,
                latency.p99,
            );
        }
        text
    }
}

/// Named as the load client names them.
fn errors_of(tenant: &TenantOutcome) -> Vec<ErrorFigures> {
    let counts = [
        (THROTTLED, tenant.refused),
        (UNANSWERED, tenant.unanswered()),
    ];
    let any = counts.into_iter().filter(|(_, count)| *count > 0);
    any.map(|(kind, count)| ErrorFigures {
        kind: kind.into(),
        count,
        ..ErrorFigures::default()
    })
    .collect()
}

fn figures_of(tenant: &TenantOutcome, spec: &Tenant, elapsed_s: f64) -> TenantFigures {
    let at = |p: f64| tenant.quantile_ns(p) as f64 / 1e6;
    let latency_ms = LatencyFigures {
        mean: tenant.latency_ns.mean() / 1e6,
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: at(1.0),
    };
    let [bytes_in, bytes_out] = tenant.bytes.map(|bytes| bytes as f64 / elapsed_s);
    TenantFigures {
        name: tenant.name.clone(),
        weight: spec.promise.weight,
        errors: errors_of(tenant),
        total: LoadFigures {
            offered_per_s: tenant.offered as f64 / elapsed_s,
            rate_per_s: tenant.answered as f64 / elapsed_s,
            completed: tenant.requests,
            failed: tenant.refused + tenant.unanswered(),
            late: tenant.late,
            bytes_in_per_s: bytes_in,
            bytes_out_per_s: bytes_out,
            latency_ms,
            ..LoadFigures::default()
        },
        series: SeriesFigures {
            outstanding: tenant.outstanding_max.clone(),
            share: tenant.shares.iter().map(|part| part * 100.0).collect(),
            permits: tenant.permits.clone(),
            ..figures::series(&tenant.series)
        },
        ..TenantFigures::default()
    }
}
