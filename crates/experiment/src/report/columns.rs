//! Columns of the table of runs: those that some run has a figure for.

use std::collections::BTreeSet;

use crate::measure::figure::{self, Choice, Combine, Figure};
use crate::measure::median;
use crate::observed::{Observed, Tenant};
use crate::table;
use crate::verdict::Runs;

type Pick = dyn Fn(&Observed) -> Option<f64>;

/// One column.
pub(super) struct Column {
    /// Its heading.
    pub head: String,
    pick: Box<Pick>,
    show: fn(f64) -> String,
}

impl Column {
    fn new(head: &str, pick: impl Fn(&Observed) -> Option<f64> + 'static) -> Self {
        Self {
            head: head.into(),
            pick: Box::new(pick),
            show: table::number,
        }
    }

    /// The median over some runs; empty where none has the figure.
    pub fn median(&self, runs: &[&Observed]) -> String {
        let each: Vec<f64> = runs.iter().filter_map(|run| (self.pick)(run)).collect();
        median(&each).map_or_else(String::new, self.show)
    }
}

/// What tenants got, what it cost a server, and figures of whole runs, each only where some run has
/// it.
pub(super) fn of(runs: &Runs) -> Vec<Column> {
    let of_tenants = |head: &str, figure, combine| {
        let choice = Choice {
            figure,
            combine: Some(combine),
            ..Choice::default()
        };
        Column::new(head, move |run| figure::value(run, &choice).ok())
    };
    let mut columns = Vec::new();
    let all = || runs.all().map(|(.., run)| run);
    if all().any(|run| !run.tenants.is_empty()) {
        columns.extend([
            of_tenants("rate, req/s", Figure::Rate, Combine::Sum),
            of_tenants("p50, ms", Figure::P50, Combine::Highest),
            of_tenants("p99, ms", Figure::P99, Combine::Highest),
            of_tenants("failed", Figure::Failed, Combine::Sum),
        ]);
    }
    if all().any(|run| run.tenants.iter().any(|one| !one.windows.is_empty())) {
        let kept = |run: &Observed| run.tenants.iter().filter_map(Tenant::kept).reduce(f64::min);
        let converged = |run: &Observed| {
            let each = run.tenants.iter().filter_map(Tenant::converged);
            each.reduce(f64::max)
        };
        columns.push(Column::new("windows kept", kept));
        columns.push(Column::new("windows until all were", converged));
    }
    if all().any(served) {
        let busy = |run: &Observed| served(run).then_some(100.0 * run.generator.busy);
        columns.push(Column {
            show: |busy| format!("{busy:.0} %"),
            ..Column::new("load busy", busy)
        });
        let cpu = |run: &Observed| served(run).then_some(run.server.cpu_s);
        columns.push(Column::new("server CPU, s", cpu));
    }
    let names: BTreeSet<&String> = all().flat_map(|run| run.figures.keys()).collect();
    for name in names {
        let unit = Figure::WORDS.iter().find(|(word, ..)| word == name);
        let unit = unit.map_or("", |(.., unit)| unit);
        let comma = if unit.is_empty() { "" } else { ", " };
        let key = name.clone();
        columns.push(Column::new(&format!("{name}{comma}{unit}"), move |run| {
            run.figures.get(&key).copied()
        }));
    }
    columns
}

/// Whether a run was one of a server.
fn served(run: &Observed) -> bool {
    run.server.resident_bytes > 0
}
