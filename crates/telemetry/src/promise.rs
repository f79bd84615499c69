//! What a tenant was promised of latency and throughput, and how well it was kept.

use serde::{Deserialize, Serialize};

use crate::live::view::PartSpent;
use crate::model::TenantSnapshot;

/// One promise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromiseSnapshot {
    /// The workload whose requests it is for; none: the connections of no workload.
    pub workload: Option<String>,
    /// `get`, `put`, `multiget`, `scan` or `any`.
    pub class: String,
    /// The percentile of latency that was promised.
    pub percentile: Option<f64>,
    /// What it should not exceed, milliseconds.
    pub at_most_ms: Option<f64>,
    /// It is judged in windows of this length, seconds.
    pub window_s: f64,
    /// Requests per second that should be served.
    pub throughput_per_s: Option<f64>,
    /// Offered requests per second up to which it holds.
    pub contract_per_s: Option<f64>,
    /// The part of that which is this server's: 1, unless several fronts keep it together.
    pub contract_portion: f64,
    /// The part of the throughput that is this server's: 1, unless several fronts keep it together.
    pub throughput_portion: f64,
    /// 1 to 100.
    pub importance: u32,
    /// Requests within the contract, answered since the promise was made.
    pub requests: u64,
    /// Of these, later than promised.
    pub late: u64,
    /// Requests beyond the contract.
    pub beyond: u64,
    /// Of these, later than would have been promised.
    pub beyond_late: u64,
    /// The last window that is over.
    pub last: Option<PromiseWindow>,
    /// The last hour.
    pub hour: PromiseKept,
    /// The last 30 days.
    pub days: PromiseKept,
    /// Where the time of those went that were late in the last minutes.
    pub late_time: LateTime,
}

/// Where the time of late requests went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LateTime {
    /// How many they are; when very many are late, not all are looked at.
    pub looked_at: u64,
    /// The parts of the mean one's time, those that took none left out.
    pub parts: Vec<PartSpent>,
    /// Behind whom it waited for turns, the longest first.
    pub delays: Vec<Delay>,
}

/// A wait for a turn while somebody else had it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// For what: `core`, `handler` or `device`.
    pub line: String,
    /// Who had it: a tenant, or its background work.
    pub behind: String,
    /// Milliseconds.
    pub mean_ms: f64,
}

/// One row of `GET /api/delays`: who was delayed, and by whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayRow {
    /// The tenant whose requests were late.
    pub tenant: String,
    /// Their workload.
    pub workload: Option<String>,
    /// Their class.
    pub class: String,
    /// How many were looked at.
    pub looked_at: u64,
    /// Behind whom the mean one waited.
    #[serde(flatten)]
    pub delay: Delay,
}

impl DelayRow {
    /// Who delayed whom, of all these tenants.
    pub fn of(tenants: &[TenantSnapshot]) -> Vec<Self> {
        let each = |tenant: &TenantSnapshot, promise: &PromiseSnapshot| {
            let row = |delay: &Delay| Self {
                tenant: tenant.name.clone(),
                workload: promise.workload.clone(),
                class: promise.class.clone(),
                looked_at: promise.late_time.looked_at,
                delay: delay.clone(),
            };
            let rows = promise.late_time.delays.iter().map(row);
            rows.collect::<Vec<_>>()
        };
        let of = |tenant: &TenantSnapshot| {
            let rows = tenant
                .promises
                .iter()
                .flat_map(|promise| each(tenant, promise));
            rows.collect::<Vec<_>>()
        };
        tenants.iter().flat_map(of).collect()
    }
}

/// `GET /api/explain/{name}`: where the time of a tenant's requests goes, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// In words, a line each.
    pub lines: Vec<String>,
    /// The slowest requests of the last hour, the slowest first.
    pub slowest: Vec<SlowRequest>,
}

/// One of the slowest requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowRequest {
    /// When it was answered, milliseconds since 1970.
    pub at_ms: u64,
    /// From its arrival to its reply's last byte.
    pub latency_ms: f64,
    /// Its class.
    pub class: String,
    /// The workload of its connection.
    pub workload: Option<String>,
    /// The last command of its connection.
    pub command: String,
    /// What its client calls itself, or its address.
    pub client: String,
    /// How many were answered with it, itself included.
    pub together: u32,
    /// The parts of its time, those that took none left out.
    pub parts: Vec<PartSpent>,
    /// Behind whom it waited for turns, the longest first.
    pub delays: Vec<Delay>,
    /// The same in words.
    pub words: String,
}

/// A window that is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromiseWindow {
    /// `met`, `missed` or `no data`.
    pub outcome: String,
    /// The promised percentile, milliseconds; none where no latency was promised, or there was no
    /// request within the contract.
    pub latency_ms: Option<f64>,
    /// Requests within the contract that it is of: few say little.
    pub sample: u64,
    /// Of these, late.
    pub sample_late: u64,
    /// Requests served per second, those beyond the contract as well.
    pub served_per_s: f64,
}

/// How well it was kept over a longer time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromiseKept {
    /// Windows in which it was kept.
    pub windows_met: u64,
    /// And in which it was not.
    pub windows_missed: u64,
    /// And which said nothing.
    pub windows_without_data: u64,
    /// Requests within the contract in all of these: few say little.
    pub requests: u64,
    /// Of these, late.
    pub late: u64,
    /// The part of the windows that said something in which it was kept, percent.
    pub met_percent: Option<f64>,
    /// What is left of the requests that may be late, percent; below 0: more were.
    pub budget_left_percent: Option<f64>,
}

/// One promise of `GET /api/attainment/{name}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromiseAttainment {
    /// As in [`PromiseSnapshot::workload`].
    pub workload: Option<String>,
    /// As in [`PromiseSnapshot::class`].
    pub class: String,
    /// As in [`PromiseSnapshot::percentile`].
    pub percentile: Option<f64>,
    /// The last hour by the minute, the oldest first. Steps in which no window ended are left out.
    pub hour: Vec<PromiseStep>,
    /// The last 30 days by six hours.
    pub days: Vec<PromiseStep>,
}

/// How well it was kept in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromiseStep {
    /// When that began, milliseconds since 1970.
    pub at_ms: u64,
    /// As in [`PromiseKept::windows_met`].
    pub windows_met: u64,
    /// As in [`PromiseKept::windows_missed`].
    pub windows_missed: u64,
    /// As in [`PromiseKept::windows_without_data`].
    pub windows_without_data: u64,
    /// Requests within the contract.
    pub requests: u64,
    /// Of these, late.
    pub requests_late: u64,
}
