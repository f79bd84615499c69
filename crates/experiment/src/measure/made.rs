//! Runs made by hand.

use crate::observed::{ClassFigures, Figures, Latency, Observed, Series, Tenant};

/// One tenant for each (group, weight, rate), named `group-1`, `group-2`, …; all gets. Its p99 is a tenth
/// of its rate, ms.
pub fn rates(tenants: &[(&str, f64, f64)]) -> Observed {
    let mut run = Observed::default();
    for (group, weight, rate) in tenants {
        let before = run.tenants.iter().filter(|other| other.group == *group);
        let total = Figures {
            offered_per_s: *rate,
            rate_per_s: *rate,
            latency_ms: Latency {
                p99: rate / 10.0,
                ..Latency::default()
            },
            ..Figures::default()
        };
        let name = format!("{group}-{}", before.count() + 1);
        run.tenants.push(Tenant {
            name,
            group: (*group).to_string(),
            weight: *weight,
            classes: vec![ClassFigures {
                class: "get".into(),
                figures: total.clone(),
            }],
            total,
            ..Tenant::default()
        });
    }
    run
}

/// Tenants of weight 1 with rates second by second.
pub fn series(tenants: &[(&str, &[f64])]) -> Observed {
    let names: Vec<(&str, f64, f64)> = tenants.iter().map(|(name, _)| (*name, 1.0, 1.0)).collect();
    let mut run = rates(&names);
    for (tenant, (_, rates)) in run.tenants.iter_mut().zip(tenants) {
        tenant.series = Series {
            t_s: (1..=rates.len()).map(|second| second as f64).collect(),
            rate_per_s: rates.to_vec(),
            ..Series::default()
        };
    }
    run
}
