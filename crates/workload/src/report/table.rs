//! The final table of a load.

use std::fmt::Write as _;

use super::{duration, rate, Table};
use crate::draw::Class;
use crate::stats::{ClassStats, Outcome, TenantStats};

/// The final table of a load: a line per tenant and class, then what went wrong.
pub fn table(outcome: &Outcome) -> String {
    let mut table = Table::default();
    table.row([
        "tenant",
        "workload",
        "class",
        "offered/s",
        "done/s",
        "failed",
        "missed keys",
        "p50",
        "p95",
        "p99",
        "max",
    ]);
    for stream in &outcome.tenants {
        for class in Class::ALL {
            let stats = stream.class(class);
            if stats.offered > 0 {
                table.row(cells(outcome, stream, class.name(), stats));
            }
        }
    }
    let mut text = table.render(3);
    for stream in &outcome.tenants {
        for (kind, error) in &stream.errors {
            let (tenant, tag) = (&stream.tenant, &stream.tag);
            let _ = writeln!(text, "failed: {tenant} ({tag}): {} x {kind}", error.count);
            if error.example != *kind {
                let _ = writeln!(text, "        first one: {}", error.example);
            }
        }
    }
    text
}

fn cells(outcome: &Outcome, stream: &TenantStats, class: &str, stats: &ClassStats) -> Vec<String> {
    let latency = stats.latency();
    // Where nothing was completed nothing took any time.
    let took = |ns| match latency.count() {
        0 => "-".to_string(),
        _ => duration(ns),
    };
    vec![
        stream.tenant.clone(),
        stream.tag.clone(),
        class.into(),
        rate(stats.offered as f64 / outcome.elapsed_s.max(1e-9)),
        rate(outcome.achieved_per_s(stats)),
        stats.failed.to_string(),
        stats.missed.to_string(),
        took(latency.percentile_ns(50.0)),
        took(latency.percentile_ns(95.0)),
        took(latency.percentile_ns(99.0)),
        took(latency.max_ns()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_tenants_classes_and_errors() {
        let mut stream = TenantStats::new("web", "twitter-1");
        stream.class_mut(Class::Get).offered = 20;
        stream.class_mut(Class::Get).answered = 19;
        stream.fail(Class::Get, "THROTTLED slow down");
        let outcome = Outcome {
            tenants: vec![stream],
            elapsed_s: 2.0,
            ..Outcome::default()
        };
        let text = table(&outcome);
        assert!(
            text.contains("web     twitter-1  get         10.0     9.5       1"),
            "{text}"
        );
        assert!(text.contains("1 x THROTTLED") && text.contains("first one: THROTTLED slow down"));
    }
}
