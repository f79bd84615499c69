//! The JSON of what happened in the last seconds (docs/reference/admin-api.md).

use serde::{Deserialize, Serialize};

use crate::api::TimesView;
use crate::class::Class;
use crate::device::DeviceSnapshot;
use crate::model::{PrincipalSnapshot, State, TenantSetting, TenantSnapshot};
use crate::parts::{Part, TimeParts};
use crate::shares::Share;

/// `GET /api/live`, and the event `live` of `/api/events`: everybody in the last seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveView {
    /// When it was read, milliseconds since 1970.
    pub at_ms: u64,
    /// Length of the time that rates and latencies are over, seconds.
    pub span_s: f64,
    /// The server as a whole.
    pub server: ServerLive,
    /// The busiest tenants, those with the largest share first.
    pub tenants: Vec<TenantLive>,
    /// How many tenants there are; more than in `tenants` when those are too many to list.
    pub tenants_total: u64,
    /// Connections that speak for no tenant yet, as if they were one's.
    pub newcomers: TenantLive,
    /// Every stage of every core.
    pub stages: Vec<StageLive>,
}

/// `GET /api/history`: the last hour of the busiest tenants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastView {
    /// The oldest first: of 5 s each in the last five minutes, of 30 s before.
    pub steps: Vec<PastStep>,
}

/// Some seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastStep {
    /// Their end, milliseconds since 1970.
    pub at_ms: u64,
    /// How many they are. Rates and shares are means over them; latencies those of its worst 5 s.
    pub span_s: u32,
    /// At most 16 of the tenants that did anything, those with the largest share first.
    pub tenants: Vec<PastTenant>,
    /// How many more did.
    pub others: u64,
}

/// What one tenant did in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastTenant {
    /// Its name.
    pub name: String,
    /// Requests answered.
    pub requests_per_s: f64,
    /// Median latency of its busiest class. None when it was not listed in the step before.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the same.
    pub p99_ms: Option<f64>,
    /// As in [`Share::got_percent`].
    pub got_percent: f64,
}

/// `GET /api/live/{name}`, and the event `tenant` of `/api/events/{name}`: one tenant in the last
/// seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantDetail {
    /// When it was read, milliseconds since 1970.
    pub at_ms: u64,
    /// Length of the time that rates and latencies are over, seconds.
    pub span_s: f64,
    /// As in [`LiveView::tenants`].
    pub live: TenantLive,
    /// What it was promised and what it holds.
    pub tenant: TenantSnapshot,
    /// Its settings.
    pub settings: Vec<TenantSetting>,
    /// By class; classes not used in that time are left out.
    pub classes: Vec<ClassLive>,
    /// Where the time of its mean request went.
    pub time: TimeSpent,
    /// Where it is before the stages now.
    pub places: Vec<PlaceLive>,
    /// Those with the largest shares, itself left out, at most five.
    pub others: Vec<TenantLive>,
}

/// The server in the last seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerLive {
    /// Whether requests are served, and if not why.
    #[serde(flatten)]
    pub state: State,
    /// Version of the binary.
    pub version: String,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// As in [`crate::ServerSnapshot::scheduler`].
    pub scheduler: String,
    /// Cores that serve requests.
    pub cores: u32,
    /// Client connections open now.
    pub connections: u64,
    /// Most that may be open.
    pub connections_max: u64,
    /// Memory that the process has, bytes.
    pub memory_resident: u64,
    /// What it may take, bytes.
    pub memory_process_max: u64,
    /// Of that, in caches, memtables and uncommitted records, bytes.
    pub memory_used: u64,
    /// Bound of those, bytes.
    pub memory_max: u64,
    /// CPU seconds per second of the process.
    pub cpu_per_s: f64,
    /// What all tenants did together.
    #[serde(flatten)]
    pub rates: Rates,
    /// The device stage, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceSnapshot>,
    /// Why the device is not scheduled, or may be at wrong prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_doubt: Option<String>,
    /// How what keeps promises failed, until it begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_failure: Option<String>,
}

/// What was done per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Requests answered.
    pub requests_per_s: f64,
    /// Requests turned away because of a limit.
    pub throttled_per_s: f64,
    /// Bytes of requests.
    pub bytes_in_per_s: f64,
    /// Bytes of replies.
    pub bytes_out_per_s: f64,
}

/// One tenant in the last seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantLive {
    /// Its name.
    pub name: String,
    /// As in [`TenantSnapshot::number`].
    pub number: u32,
    /// Its weight.
    pub weight: f64,
    /// Requests per second that it asks for: answered, throttled, and all that wait now, at the
    /// request stage or for a handler.
    pub asked_per_s: f64,
    /// What it did.
    #[serde(flatten)]
    pub rates: Rates,
    /// Of the requests answered, those with an error. None when its classes were not looked at.
    pub errors_per_s: Option<f64>,
    /// CPU seconds per second charged to it.
    pub cpu_charged_per_s: f64,
    /// Share of the time, 0 to 1 a core, with a request waiting at the request stage, summed over
    /// cores.
    pub occupancy: f64,
    /// What it is entitled to and what it got.
    pub share: Share,
    /// The class that the latency is of: its busiest.
    pub class: Option<Class>,
    /// Readable to answered, milliseconds: half of the requests of that class were at most this.
    pub p50_ms: Option<f64>,
    /// 99 % of them.
    pub p99_ms: Option<f64>,
    /// Before each kind of stage, all cores together.
    pub stages: Vec<WaitLive>,
    /// Connections that speak for it.
    pub connections: u64,
    /// Its limit on requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_requests_per_s: Option<f64>,
    /// Why its writes are refused, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_error: Option<String>,
    /// Of its promises, how well the one was kept in the last hour that was kept least, percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_percent: Option<f64>,
}

/// One tenant before one kind of stage in the last seconds, all cores together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitLive {
    /// [`StageKind::name`](crate::StageKind::name).
    pub stage: String,
    /// Waiting now.
    pub waiting: u64,
    /// Permits in use, on average.
    pub permits_busy: f64,
    /// Let through per second.
    pub admitted_per_s: f64,
    /// Asked for per second: let through, turned away, and all that wait now.
    pub asked_per_s: f64,
    /// Mean wait of those let through, milliseconds; none when nobody was.
    pub wait_mean_ms: Option<f64>,
}

/// One class of one tenant in the last seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassLive {
    /// The class.
    pub class: Class,
    /// What was done.
    #[serde(flatten)]
    pub rates: Rates,
    /// Of the requests answered, those with an error.
    pub errors_per_s: f64,
    /// Turned away because of `limit.requests`.
    pub throttled_requests_per_s: f64,
    /// Turned away because of `limit.bytes`.
    pub throttled_bytes_per_s: f64,
    /// Readable to answered.
    pub latency: TimesView,
    /// Waiting at the request stage.
    pub queue: TimesView,
    /// On a handler; only requests whose data was not in memory.
    pub disk: TimesView,
}

/// The mean latency over all requests of a tenant, in parts that add up to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSpent {
    /// All of it, milliseconds.
    pub mean_ms: f64,
    /// Every [`crate::Part`], in their order.
    pub parts: Vec<PartSpent>,
}

/// A part of a mean request's time. It brings its words, so that whoever shows it needs no list of
/// parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartSpent {
    /// [`crate::PartWords::name`].
    pub part: String,
    /// [`crate::PartWords::words`].
    pub words: String,
    /// [`crate::PartWords::short`].
    pub short: String,
    /// [`crate::PartWords::about`].
    pub about: String,
    /// Milliseconds.
    pub mean_ms: f64,
}

impl PartSpent {
    /// Parts of a time, each divided by `by`.
    pub fn of(parts: &TimeParts, by: u64) -> impl Iterator<Item = Self> + '_ {
        Part::ALL.into_iter().map(move |part| Self {
            part: part.words().name.to_string(),
            words: part.words().words.to_string(),
            short: part.words().short.to_string(),
            about: part.words().about.to_string(),
            mean_ms: super::frame::short(parts[part] as f64 / by.max(1) as f64 / 1e6),
        })
    }
}

/// One stage of one core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageLive {
    /// `request` or `handler`, later also `device`.
    pub stage: String,
    /// The core it belongs to.
    pub core: u32,
    /// As in [`crate::ServerSnapshot::scheduler`].
    pub policy: String,
    /// Units of work that may be outstanding below it.
    pub permits: u32,
    /// Of those, in use on average.
    pub permits_busy: f64,
    /// Decisions per second.
    pub admitted_per_s: f64,
    /// Waiting, everybody together.
    pub waiting: u64,
    /// Those with something waiting or outstanding, the longest queues first, at most 16.
    pub principals: Vec<PrincipalSnapshot>,
    /// How many there are; more than in `principals` when those are too many to list.
    pub principals_total: u64,
}

/// One tenant before one stage of one core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlaceLive {
    /// [`StageKind::name`](crate::StageKind::name).
    pub stage: String,
    /// The core.
    pub core: u32,
    /// All in line there, this tenant included.
    pub waiting_all: u64,
    /// The tenant's part.
    #[serde(flatten)]
    pub principal: PrincipalSnapshot,
}
