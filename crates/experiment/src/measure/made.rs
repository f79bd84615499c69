//! Runs made by hand.

use workload::report::figures::{
    ClassFigures, LatencyFigures, LoadFigures, SeriesFigures, TenantFigures,
};

use crate::observed::{Observed, Tenant};

/// One tenant for each (group, weight, rate), named `group-1`, `group-2`, …; all gets. Its p99 is a
/// tenth of its rate, ms.
pub fn rates(tenants: &[(&str, f64, f64)]) -> Observed {
    let mut run = Observed::default();
    for (group, weight, rate) in tenants {
        let before = run.tenants.iter().filter(|other| other.group == *group);
        let total = LoadFigures {
            offered_per_s: *rate,
            rate_per_s: *rate,
            latency_ms: LatencyFigures {
                p99: rate / 10.0,
                ..LatencyFigures::default()
            },
            ..LoadFigures::default()
        };
        let load = TenantFigures {
            name: format!("{group}-{}", before.count() + 1),
            weight: *weight,
            classes: vec![ClassFigures {
                class: "get".into(),
                load: total.clone(),
            }],
            total,
            ..TenantFigures::default()
        };
        run.tenants.push(Tenant {
            group: (*group).to_string(),
            load,
            ..Tenant::default()
        });
    }
    run
}

/// Tenants of weight 1 with rates second by second.
pub fn series(tenants: &[(&str, &[u64])]) -> Observed {
    let names: Vec<(&str, f64, f64)> = tenants.iter().map(|(name, _)| (*name, 1.0, 1.0)).collect();
    let mut run = rates(&names);
    run.elapsed_s = tenants[0].1.len() as f64;
    for (tenant, (_, rates)) in run.tenants.iter_mut().zip(tenants) {
        tenant.load.series = SeriesFigures {
            t_s: (1..=rates.len() as u64).collect(),
            rate_per_s: rates.to_vec(),
            ..SeriesFigures::default()
        };
    }
    run
}
