//! The JSON of the admin API (docs/reference/admin-api.md).

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::metrics::TenantScrape;
use crate::model::{ServerSnapshot, State, TenantSetting, TenantSnapshot};
use crate::shares::{Recent, Share};
use crate::snapshot::HistogramSnapshot;
use crate::totals::{ClassTotals, TenantTotals, Usage};

/// `GET /api/server`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerView {
    /// Whether requests are served, and if not why.
    #[serde(flatten)]
    pub state: State,
    /// The server's gauges.
    #[serde(flatten)]
    pub server: ServerSnapshot,
    /// All tenants together since the start.
    pub usage: Usage,
}

/// One element of `GET /api/tenants`, and `GET /api/tenants/{name}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantView {
    /// The tenant's configuration and gauges.
    #[serde(flatten)]
    pub tenant: TenantSnapshot,
    /// What it should get and what it got.
    pub share: Share,
    /// What it used in the last 5 to 10 s.
    pub recent: Recent,
    /// Since the start, by class; classes nobody used are left out.
    pub classes: Vec<ClassView>,
    /// Its settings; in the answer about one tenant only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<TenantSetting>,
}

impl TenantView {
    pub(crate) fn new(scraped: TenantScrape) -> Self {
        let classes = scraped
            .totals
            .active()
            .map(|(class, totals)| ClassView::new(class, totals))
            .collect();
        Self {
            tenant: scraped.gauges,
            share: scraped.share,
            recent: scraped.recent,
            classes,
            settings: Vec::new(),
        }
    }
}

/// One tenant's requests of one class since the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassView {
    /// The class.
    pub class: Class,
    /// Requests answered, errors included, throttled ones not.
    pub requests: u64,
    /// Of those, answered with an error.
    pub errors: u64,
    /// Turned away because of `limit.requests`.
    pub throttled_requests: u64,
    /// Turned away because of `limit.bytes`.
    pub throttled_bytes: u64,
    /// Bytes of requests.
    pub bytes_in: u64,
    /// Bytes of replies.
    pub bytes_out: u64,
    /// CPU time charged, seconds.
    pub cpu_s: f64,
    /// Readable to answered.
    pub latency: TimesView,
    /// Waiting at the request stage.
    pub queue: TimesView,
    /// On a handler; only requests whose data was not in memory.
    pub disk: TimesView,
}

impl ClassView {
    fn new(class: Class, totals: &ClassTotals) -> Self {
        Self {
            class,
            requests: totals.requests,
            errors: totals.errors,
            throttled_requests: totals.throttled[0],
            throttled_bytes: totals.throttled[1],
            bytes_in: totals.bytes_in,
            bytes_out: totals.bytes_out,
            cpu_s: totals.cpu_ns as f64 / 1e9,
            latency: TimesView::new(&totals.latency),
            queue: TimesView::new(&totals.queue),
            disk: TimesView::new(&totals.disk),
        }
    }
}

/// A histogram of times in a few numbers, milliseconds; exact to 3.2 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimesView {
    /// How many were measured.
    pub count: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90 % were at most this.
    pub p90_ms: f64,
    /// 95 % were at most this.
    pub p95_ms: f64,
    /// 99 % were at most this.
    pub p99_ms: f64,
    /// 99.9 % were at most this.
    pub p999_ms: f64,
    /// All were at most this.
    pub max_ms: f64,
}

impl TimesView {
    /// The numbers of a histogram.
    pub fn new(times: &HistogramSnapshot) -> Self {
        // Digits below a nanosecond are the arithmetic's, not the clock's.
        let ms = |ns: f64| ns.round() / 1e6;
        Self {
            count: times.count(),
            mean_ms: ms(times.mean()),
            p50_ms: ms(times.quantile(0.5)),
            p90_ms: ms(times.quantile(0.9)),
            p95_ms: ms(times.quantile(0.95)),
            p99_ms: ms(times.quantile(0.99)),
            p999_ms: ms(times.quantile(0.999)),
            max_ms: ms(times.max() as f64),
        }
    }
}

/// One element of `GET /api/histograms`: one tenant's requests of one class since the start, all
/// that is known of their times. The difference of two answers has the quantiles of the time
/// between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramsView {
    /// The tenant.
    pub tenant: String,
    /// The class.
    pub class: Class,
    /// As in [`ClassView`].
    pub latency: HistogramSnapshot,
    /// As in [`ClassView`].
    pub queue: HistogramSnapshot,
    /// As in [`ClassView`].
    pub disk: HistogramSnapshot,
}

impl HistogramsView {
    pub(crate) fn of(tenant: &str, totals: TenantTotals) -> Vec<Self> {
        let classes = Class::ALL.into_iter().zip(totals.classes);
        let used = classes.filter(|(_, totals)| !totals.latency.is_empty());
        let view = |(class, totals): (Class, ClassTotals)| Self {
            tenant: tenant.into(),
            class,
            latency: totals.latency,
            queue: totals.queue,
            disk: totals.disk,
        };
        used.map(view).collect()
    }
}

/// Every error of the admin API: `{"error": {"what", "where", "do"}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorView {
    /// The error.
    pub error: ErrorText,
}

/// What is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorText {
    /// What is wrong.
    pub what: String,
    /// Where: the path asked for.
    #[serde(rename = "where")]
    pub place: String,
    /// What to do.
    #[serde(rename = "do")]
    pub advice: String,
}
