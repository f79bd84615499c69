//! What a server's own histograms say of the time between two looks at them.

use std::collections::BTreeMap;

use telemetry::api::{HistogramsView, TimesView};
use telemetry::HistogramSnapshot;
use workload::report::figures::LatencyFigures;

/// One tenant's latencies as the server counted them, by the server's name of the class; [`ALL`]
/// has all together.
pub type Latencies = BTreeMap<String, LatencyFigures>;

/// All classes together.
pub const ALL: &str = "all";

/// The latencies of what was answered between `before` and `after`, by tenant.
pub(super) fn latencies(
    before: &[HistogramsView],
    after: &[HistogramsView],
) -> BTreeMap<String, Latencies> {
    let mut counted: BTreeMap<String, BTreeMap<String, HistogramSnapshot>> = BTreeMap::new();
    for now in after {
        let earlier = before
            .iter()
            .find(|one| one.tenant == now.tenant && one.class == now.class);
        let between = match earlier {
            Some(earlier) => now.latency.since(&earlier.latency),
            None => now.latency.clone(),
        };
        if between.is_empty() {
            continue;
        }
        let tenant = counted.entry(now.tenant.clone()).or_default();
        tenant.entry(ALL.into()).or_default().merge(&between);
        tenant.insert(now.class.name().into(), between);
    }
    let tenants = counted.into_iter();
    let told = |classes: BTreeMap<String, HistogramSnapshot>| {
        let classes = classes.into_iter();
        classes
            .map(|(class, times)| (class, figures(&times)))
            .collect()
    };
    tenants
        .map(|(tenant, classes)| (tenant, told(classes)))
        .collect()
}

fn figures(times: &HistogramSnapshot) -> LatencyFigures {
    let view = TimesView::new(times);
    LatencyFigures {
        mean: view.mean_ms,
        p50: view.p50_ms,
        p90: view.p90_ms,
        p95: view.p95_ms,
        p99: view.p99_ms,
        p999: view.p999_ms,
        max: view.max_ms,
    }
}

/// The server's name of a class of the load.
pub fn class_of(class: &str) -> &str {
    match class {
        "range" => "scan",
        "delete" | "increment" => "put",
        "bitcount" => "get",
        "ping" | "invalid" => "other",
        class => class,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::{Class, Histogram};

    fn view(tenant: &str, class: Class, latency: &Histogram) -> HistogramsView {
        HistogramsView {
            tenant: tenant.into(),
            class,
            latency: latency.snapshot(),
            queue: HistogramSnapshot::default(),
            disk: HistogramSnapshot::default(),
        }
    }

    #[test]
    fn only_what_came_between_counts() {
        let (get, put) = (Histogram::new(), Histogram::new());
        // Of the warm-up.
        get.record_many(80_000_000, 1_000);
        let before = [
            view("web", Class::Get, &get),
            view("idle", Class::Get, &get),
        ];
        get.record_many(100_000, 98);
        get.record_many(2_000_000, 2);
        put.record_many(4_000_000, 10);
        let after = [
            view("web", Class::Get, &get),
            view("web", Class::Put, &put),
            before[1].clone(),
        ];
        let told = latencies(&before, &after);
        assert_eq!(
            told.keys().collect::<Vec<_>>(),
            ["web"],
            "the other was idle"
        );
        let near = |is: f64, ms: f64| (is - ms).abs() <= ms / 32.0;
        let web = &told["web"];
        assert!(
            near(web["get"].p50, 0.1) && near(web["get"].p99, 2.0),
            "{web:?}"
        );
        assert!(near(web["put"].p50, 4.0), "{web:?}");
        assert!(
            near(web[ALL].p50, 0.1) && near(web[ALL].p95, 4.0),
            "{web:?}"
        );
        assert!((web["get"].mean - 0.138).abs() < 1e-9);
    }

    #[test]
    fn every_class_of_a_load_is_one_of_the_servers() {
        for class in workload::draw::Class::ALL {
            assert!(
                Class::from_name(class_of(class.name())).is_some(),
                "{class:?}"
            );
        }
    }
}
