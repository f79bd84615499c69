//! The page of one simulated run that belongs to no experiment.

use serde_json::json;
use sim::scenario::Plan;
use sim::Outcome;

use super::html::{self, escape, row};
use super::pictures::Picture;
use super::time;
use crate::measure::figure::Figure;
use crate::observed::Observed;
use crate::simulated;
use crate::table::number;

/// The page: what every tenant got, second by second, and the scenario's text.
pub fn of_simulation(plan: &Plan, outcome: &Outcome, text: &str) -> String {
    let observed = simulated::observed(plan, outcome);
    let pictures = pictures(&observed);
    let body = [
        head(plan, &observed),
        tenants(&observed),
        html::pictures(&pictures),
        format!(
            "<section><h2>To repeat it</h2>{}</section>\n",
            super::folded("The scenario", text)
        ),
    ]
    .concat();
    html::page(&plan.name, &body, &pictures)
}

fn head(plan: &Plan, observed: &Observed) -> String {
    let figure = |name: &str| observed.figures.get(name).copied().unwrap_or_default();
    let cluster = &plan.spec.cluster;
    let line = format!(
        "Simulated: {} nodes of {} permits, {} replicas, {} s after a warm-up, {} events, seed {}. Nodes were busy {:.1} %.",
        cluster.nodes,
        cluster.permits,
        cluster.replicas,
        number(observed.elapsed_s),
        figure("events"),
        plan.spec.seed,
        100.0 * figure("utilisation"),
    );
    format!(
        "<header><h1>{}</h1><p>{}</p></header>\n",
        escape(&plan.name),
        escape(&line)
    )
}

/// Columns of the table of tenants.
const COLUMNS: [&str; 9] = [
    "tenant",
    "weight",
    "offered, req/s",
    "rate, req/s",
    "mean, ms",
    "p50, ms",
    "p95, ms",
    "p99, ms",
    "highest, ms",
];

fn tenants(observed: &Observed) -> String {
    let mut rows = row("th", &COLUMNS.map(String::from));
    for tenant in &observed.tenants {
        let (load, latency) = (&tenant.load.total, &tenant.load.total.latency_ms);
        let figures = [
            tenant.load.weight,
            load.offered_per_s,
            load.rate_per_s,
            latency.mean,
            latency.p50,
            latency.p95,
            latency.p99,
            latency.max,
        ];
        let cells = std::iter::once(tenant.load.name.clone()).chain(figures.map(number));
        rows += &row("td", &cells.collect::<Vec<String>>());
    }
    format!("<section><h2>Tenants</h2><div class=\"wide\"><table>{rows}</table></div></section>\n")
}

/// Rates and 99th percentiles over time.
fn pictures(observed: &Observed) -> Vec<Picture> {
    let drawn = [
        ("Requests answered", Figure::Rate, "rate"),
        ("99th percentile of latency", Figure::P99, "p99"),
    ];
    let each = drawn.into_iter().map(|(title, figure, label)| {
        let spec = json!({
            "x": { "label": "time", "unit": "s" },
            "y": { "label": label, "unit": figure.unit(), "scale": "linear", "min": 0 },
            "series": time::series(observed, figure),
            "targets": [],
        });
        Picture {
            title: title.into(),
            specs: vec![spec],
        }
    });
    each.collect()
}
