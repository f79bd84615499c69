//! Metrics of promises of latency and throughput.

use super::catalogue::{metric, Metric};
use super::Scrape;
use crate::exposition::Kind::{self, Counter, Gauge};
use crate::exposition::Page;
use crate::promise::{PromiseKept, PromiseSnapshot, PromiseWindow};

/// A number that may not be there.
pub(super) struct Perhaps {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
    pub(super) value: fn(&PromiseSnapshot) -> Option<f64>,
}

/// Labels `tenant`, `workload` and `class`.
#[rustfmt::skip]
pub(super) const PROMISE: &[Metric<PromiseSnapshot>] = &[
    metric("entremet_promise_window_seconds", Gauge, "seconds", "It is judged in windows of so long.", |p| p.window_s),
    metric("entremet_promise_importance", Gauge, "1 to 100", "Who gives way when not all promises can be kept; 100 last.", |p| f64::from(p.importance)),
    metric("entremet_promise_requests_total", Counter, "requests", "Requests within the contract that were answered.", |p| p.requests as f64),
    metric("entremet_promise_late_total", Counter, "requests", "Of these, answered later than promised.", |p| p.late as f64),
    metric("entremet_promise_beyond_total", Counter, "requests", "Requests beyond the contract that were answered.", |p| p.beyond as f64),
    metric("entremet_promise_beyond_late_total", Counter, "requests", "Of these, answered later than would have been promised.", |p| p.beyond_late as f64),
];

fn last(promise: &PromiseSnapshot, value: fn(&PromiseWindow) -> Option<f64>) -> Option<f64> {
    promise.last.as_ref().and_then(value)
}

/// The same labels; left out where there is no such number.
#[rustfmt::skip]
pub(super) const PERHAPS: &[Perhaps] = &[
    Perhaps { name: "entremet_promise_target_seconds", unit: "seconds", help: "What the percentile of latency should not exceed.", value: |p| p.at_most_ms.map(|ms| ms / 1e3) },
    Perhaps { name: "entremet_promise_late_allowed_ratio", unit: "0 to 1", help: "The part of the requests that may be late: 0.01 for a p99.", value: |p| p.percentile.map(|p| 1.0 - p / 100.0) },
    Perhaps { name: "entremet_promise_throughput_per_second", unit: "requests/s", help: "The rate that should be served.", value: |p| p.throughput_per_s },
    Perhaps { name: "entremet_promise_throughput_portion", unit: "part", help: "The part of that rate that should be served here: 1, unless several fronts keep it together.", value: |p| p.throughput_per_s.map(|_| p.throughput_portion) },
    Perhaps { name: "entremet_contract_per_second", unit: "requests/s", help: "The offered rate up to which it holds.", value: |p| p.contract_per_s },
    Perhaps { name: "entremet_promise_contract_portion", unit: "part", help: "The part of that rate up to which it holds here: 1, unless several fronts keep it together.", value: |p| p.contract_per_s.map(|_| p.contract_portion) },
    Perhaps { name: "entremet_promise_latency_seconds", unit: "seconds", help: "The promised percentile in the last window that is over.", value: |p| last(p, |w| w.latency_ms.map(|ms| ms / 1e3)) },
    Perhaps { name: "entremet_promise_sample_requests", unit: "requests", help: "Requests within the contract in the last window that is over.", value: |p| last(p, |w| Some(w.sample as f64)) },
    Perhaps { name: "entremet_promise_served_per_second", unit: "requests/s", help: "Requests served in the last window that is over.", value: |p| last(p, |w| Some(w.served_per_s)) },
];

/// Also labelled `over` (`1h`, `30d`) and `outcome`.
pub(super) const WINDOWS: (&str, &str) = (
    "entremet_promise_windows",
    "Windows of the last hour and of 30 days, by what they say (`met`, `missed`, `no_data`).",
);

/// Also labelled `over`.
pub(super) const MET: (&str, &str) = (
    "entremet_promise_met_ratio",
    "The part of the windows that said something in which it was kept.",
);

/// Also labelled `over`.
pub(super) const BUDGET: (&str, &str) = (
    "entremet_promise_budget_left_ratio",
    "What is left of the requests that may be late: 1 is all, 0 none; below 0, more were late.",
);

/// Writes them; nothing where nothing is promised.
pub(super) fn write(page: &mut Page, scrape: &Scrape) {
    if promises(scrape).next().is_none() {
        return;
    }
    for metric in PROMISE {
        page.family(metric.name, metric.kind, metric.help);
        each(scrape, |labels, promise| {
            page.sample(metric.name, labels, (metric.value)(promise));
        });
    }
    for metric in PERHAPS {
        page.family(metric.name, Kind::Gauge, metric.help);
        each(scrape, |labels, promise| {
            if let Some(value) = (metric.value)(promise) {
                page.sample(metric.name, labels, value);
            }
        });
    }
    windows(page, scrape);
    for ((name, help), percent) in [
        (
            MET,
            (|kept| kept.met_percent) as fn(&PromiseKept) -> Option<f64>,
        ),
        (BUDGET, |kept| kept.budget_left_percent),
    ] {
        page.family(name, Kind::Gauge, help);
        over(scrape, |labels, kept| {
            if let Some(percent) = percent(kept) {
                page.sample(name, labels, percent / 100.0);
            }
        });
    }
}

fn windows(page: &mut Page, scrape: &Scrape) {
    let (name, help) = WINDOWS;
    page.family(name, Kind::Gauge, help);
    over(scrape, |labels, kept| {
        for (outcome, windows) in [
            ("met", kept.windows_met),
            ("missed", kept.windows_missed),
            ("no_data", kept.windows_without_data),
        ] {
            let mut labels = labels.to_vec();
            labels.push(("outcome", outcome));
            page.sample(name, &labels, windows as f64);
        }
    });
}

fn promises(scrape: &Scrape) -> impl Iterator<Item = (&str, &PromiseSnapshot)> {
    let tenants = scrape.tenants.iter();
    tenants.flat_map(|(name, tenant)| {
        let promises = tenant.gauges.promises.iter();
        promises.map(move |promise| (name.as_str(), promise))
    })
}

fn each(scrape: &Scrape, mut write: impl FnMut(&[(&str, &str)], &PromiseSnapshot)) {
    for (tenant, promise) in promises(scrape) {
        let workload = promise.workload.as_deref().unwrap_or_default();
        let labels = [
            ("tenant", tenant),
            ("workload", workload),
            ("class", &promise.class),
        ];
        write(&labels, promise);
    }
}

fn over(scrape: &Scrape, mut write: impl FnMut(&[(&str, &str)], &PromiseKept)) {
    each(scrape, |labels, promise| {
        for (over, kept) in [("1h", &promise.hour), ("30d", &promise.days)] {
            let mut labels = labels.to_vec();
            labels.push(("over", over));
            write(&labels, kept);
        }
    });
}
