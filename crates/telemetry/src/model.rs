//! What the server tells about itself when asked: gauges, read at the moment of a scrape.
//!
//! Names and units here are the JSON of the admin API (docs/reference/admin-api.md).

use serde::{Deserialize, Serialize};

use crate::cluster::ClusterView;
use crate::device::{DeviceSnapshot, TenantDevice};
use crate::promise::{Explanation, PromiseAttainment, PromiseSnapshot};
use crate::shares::Capacities;
use crate::upstream::{EngineLinks, EngineReplicas};

/// The server as the admin address sees it. Called on the admin thread, at most a few times a
/// second; must not wait for a core or the disk.
pub trait AdminSource: Send + Sync + 'static {
    /// Whether requests are being served.
    fn state(&self) -> State;
    /// The server as a whole.
    fn server(&self) -> ServerSnapshot;
    /// Every tenant, in any order.
    fn tenants(&self) -> Vec<TenantSnapshot>;
    /// All settings of the tenant of that name, in the order to show them; none if there is no such
    /// tenant.
    fn settings(&self, tenant: &str) -> Vec<TenantSetting>;
    /// Where the time of a tenant's requests goes, and why; `None` if there is no such tenant.
    fn explain(&self, tenant: &str) -> Option<Explanation>;
    /// How well a tenant's promises were kept, step by step; `None` if there is no such tenant.
    fn attainment(&self, tenant: &str) -> Option<Vec<PromiseAttainment>>;
    /// Connections that speak for no tenant yet, as if they were one's: they take their turns and
    /// use the server like a tenant. No tenant has its name.
    fn newcomers(&self) -> TenantSnapshot;
    /// Every stage of every core.
    fn stages(&self) -> Vec<StageSnapshot>;
    /// The cluster behind the server, if there is one; with this tenant only, if one is named.
    fn cluster(&self, tenant: Option<&str>) -> Option<ClusterView>;
}

/// Whether the server serves; anything but `Ready` makes `/readyz` answer 503 with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "state", content = "reason")]
pub enum State {
    /// Still opening; the text says what is being waited for.
    Starting(String),
    /// Serving.
    Ready,
    /// Finishing what it has; new connections are refused.
    Draining(String),
    /// It cannot serve; the text says why and what to do.
    Failed(String),
}

impl State {
    /// One word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Starting(_) => "starting",
            Self::Ready => "ready",
            Self::Draining(_) => "draining",
            Self::Failed(_) => "failed",
        }
    }

    /// The reason, where there is one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::Starting(why) | Self::Draining(why) | Self::Failed(why) => Some(why),
        }
    }
}

/// The server as a whole. `_total`-like fields only grow; the rest are gauges. Bytes are bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerSnapshot {
    /// Version of the binary, with the commit if it was built from one.
    pub version: String,
    /// Version of Redis whose commands and replies are followed, as INFO says it.
    pub redis_version: String,
    /// Process id.
    pub process_id: u32,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Cores that serve requests.
    pub cores: u32,
    /// Who is next where requests come in: a word of `scheduler.request`.
    pub scheduler: String,
    /// What one second of the server holds.
    pub capacities: Capacities,
    /// Addresses that clients may use.
    pub listen: Vec<String>,
    /// Client connections.
    pub connections: Connections,
    /// Log-ins.
    pub logins: Logins,
    /// Certificates that TLS is served with.
    pub certificates: Vec<CertificateSnapshot>,
    /// Memory.
    pub memory: Memory,
    /// The largest turns of any core.
    #[serde(default)]
    pub largest_turn: LargestTurn,
    /// Storage.
    pub storage: Storage,
    /// CPU time used in user mode, seconds.
    pub cpu_user_s: f64,
    /// CPU time used by the system on our behalf, seconds.
    pub cpu_system_s: f64,
    /// Entries in the slow log.
    pub slowlog_length: u64,
    /// Configuration reloads that were taken.
    pub reloads: u64,
    /// Configuration reloads that were refused because of errors.
    pub reloads_refused: u64,
    /// Lines of the log that were lost because standard error was not read in time.
    #[serde(default)]
    pub log_lines_lost: u64,
    /// The device stage, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceSnapshot>,
    /// Why the device is not scheduled, or may be at wrong prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_doubt: Option<String>,
    /// Connections to the engine behind this server, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_links: Option<EngineLinks>,
    /// Replicas of the cluster behind this server, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_replicas: Option<EngineReplicas>,
    /// What keeps promises.
    #[serde(default)]
    pub control: ControlSnapshot,
}

/// What keeps promises, and what it did last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlSnapshot {
    /// A word of `control.policy`.
    pub controller: String,
    /// When it last changed something, s since the Unix epoch; 0: never.
    pub changed_unix_s: u64,
    /// What it changed, and why.
    pub why: Vec<String>,
    /// Times that a controller failed since the start.
    #[serde(default)]
    pub failures: u64,
    /// How it failed, until it begins anew; what it gave last stays in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Client connections of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Open now.
    pub open: u64,
    /// Most that tenants may have together.
    pub max: u64,
    /// Of those open, that speak for no tenant yet.
    pub newcomers: u64,
    /// Most of those.
    pub newcomers_max: u64,
    /// Accepted since the start.
    pub accepted: u64,
    /// Refused since the start, when they came or logged in, because too many were open.
    pub rejected: u64,
    /// Refused since the start because their address connected too often.
    pub hasty: u64,
    /// Closed since the start for others to come, before they spoke for a tenant.
    pub displaced: u64,
    /// Closed since the start because they did not log in in time.
    pub late: u64,
    /// Moved since the start to a core with less to do.
    pub moved: u64,
}

/// Checks of passwords that take a slow hash; others are known from before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logins {
    /// In line for their hash.
    pub waiting: u64,
    /// Hashes since the start.
    pub hashed: u64,
    /// Refused since the start because too many waited.
    pub refused: u64,
}

/// A certificate of the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateSnapshot {
    /// Who is shown it: `clients` or `admin`.
    pub shown_to: String,
    /// When it expires, s since the Unix epoch.
    pub expires_unix_s: i64,
}

/// Memory of the process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Resident set.
    pub resident: u64,
    /// Bounded parts together: object cache, block cache, memtables, uncommitted records.
    pub used: u64,
    /// Bound of those parts.
    pub max: u64,
    /// Object cache.
    pub object_cache: u64,
    /// RocksDB's block cache.
    pub block_cache: u64,
    /// RocksDB's memtables.
    pub memtables: u64,
    /// What requests and replies hold.
    pub requests: u64,
    /// What they may hold together.
    pub requests_max: u64,
    /// What the process may take, all in all (`server.max_memory`).
    pub process_max: u64,
}

/// The largest turns of a core since the start: what one request made others wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestTurn {
    /// Words of requests that were looked at.
    pub words: u64,
    /// Bytes read or written, whichever were more.
    pub bytes: u64,
    /// Keys, records and KiB of values that were looked at or written.
    pub steps: u64,
    /// Processor time, in ns.
    #[serde(default)]
    pub cpu_ns: u64,
}

/// The storage engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Handler threads.
    pub handlers: u64,
    /// Jobs on or waiting for a handler thread.
    pub handler_jobs: u64,
    /// Group commits since the start.
    pub commits: u64,
    /// Syncs of tenants' logs to the disk since the start.
    pub syncs: u64,
    /// Commits that failed.
    pub commit_errors: u64,
    /// Tenant databases open now.
    pub open_databases: u64,
    /// Keys removed since the start because their time had come.
    pub expired_keys: u64,
}

/// One tenant: what it was promised and what it holds now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantSnapshot {
    /// Its name.
    pub name: String,
    /// Its number: small, and its own for as long as the server runs.
    pub number: u32,
    /// Its weight.
    pub weight: f64,
    /// Connections that it may have while the others have no more than is kept for them.
    pub connections_max: u64,
    /// Connections refused since the start because it, or all together, had as many as they may
    /// have.
    pub connections_refused: u64,
    /// Memory that its requests and replies hold, bytes.
    pub request_memory_bytes: u64,
    /// What they may hold, bytes, if others leave what can be lent.
    pub request_memory_max_bytes: u64,
    /// Reserved permits.
    pub reserved_permits: u32,
    /// Reservation for gets, 1 KiB-normalised per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve_get_per_s: Option<f64>,
    /// Reservation for puts, 1 KiB-normalised per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve_put_per_s: Option<f64>,
    /// Limit on requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_requests_per_s: Option<f64>,
    /// Limit on bytes per second, in and out together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes_per_s: Option<f64>,
    /// Offered rate up to which its promises hold, requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_per_s: Option<f64>,
    /// The part of its limits that it may use here: 1, unless several fronts keep them together.
    #[serde(default)]
    pub limit_portion: f64,
    /// The part of its reserved reads that is this server's: 1, unless several fronts keep them
    /// together.
    #[serde(default)]
    pub reserve_get_portion: f64,
    /// The same of its reserved writes.
    #[serde(default)]
    pub reserve_put_portion: f64,
    /// The part of its contract that it may use here.
    #[serde(default)]
    pub promised_portion: f64,
    /// Its weight here: as configured, unless several fronts divide it.
    #[serde(default)]
    pub weight_here: f64,
    /// `always`, `every 1s` or `never`.
    pub sync: String,
    /// Connections that speak for it.
    pub connections: u64,
    /// Requests waiting at the request stage.
    pub waiting: u64,
    /// Keys, estimated; fields and members of collections count as well. 0 while its database is
    /// closed.
    pub keys: u64,
    /// Object cache: reads answered from it.
    pub cache_hits: u64,
    /// Object cache: reads that had to go further.
    pub cache_misses: u64,
    /// Object cache: bytes held.
    pub cache_bytes: u64,
    /// Object cache: bytes that it may hold now; beyond the allotment they are lent.
    pub cache_granted_bytes: u64,
    /// Object cache: its allotment in bytes.
    pub cache_allotment_bytes: u64,
    /// Block cache: reads that the object cache did not answer, answered from it or from memtables.
    pub block_cache_hits: u64,
    /// Block cache: reads that it did not answer either.
    pub block_cache_misses: u64,
    /// Block cache: bytes held; 0 where all tenants have one together.
    pub block_cache_bytes: u64,
    /// Block cache: bytes that it may hold now; beyond the allotment they are lent.
    pub block_cache_granted_bytes: u64,
    /// Block cache: its allotment in bytes.
    pub block_cache_allotment_bytes: u64,
    /// Write buffers: bytes in memtables.
    pub write_buffer_bytes: u64,
    /// Write buffers: bytes that it may hold now.
    pub write_buffer_granted_bytes: u64,
    /// Write buffers: its allotment in bytes.
    pub write_buffer_allotment_bytes: u64,
    /// Written in memory, not yet committed, bytes.
    pub uncommitted_bytes: u64,
    /// How near its database is to stalling its writes: they pause from 0.5 on, at 1 it stalls
    /// them.
    pub write_pressure: f64,
    /// Time that they have paused, seconds.
    pub write_paused_s: f64,
    /// Bytes of its files.
    pub disk_bytes: u64,
    /// Why its writes are refused, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_error: Option<String>,
    /// Its part of the device, where that has a stage before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<TenantDevice>,
    /// Before each kind of stage it was ever let through, all cores together.
    pub stages: Vec<TenantStage>,
    /// What it was promised of latency and throughput, and how well that was kept.
    #[serde(default)]
    pub promises: Vec<PromiseSnapshot>,
}

/// One setting of one tenant, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantSetting {
    /// Its key in `[[tenant]]`.
    pub key: String,
    /// Its value as the file writes it; none where nothing is set and there is no default.
    pub value: Option<String>,
    /// The same, or what holds without one.
    pub text: String,
    /// It is what it is where nobody says anything.
    pub default: bool,
    /// It was set at run time, and the file says something else.
    pub set_at_run_time: bool,
    /// What it does.
    pub effect: String,
}

/// One tenant before one kind of stage, all cores together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantStage {
    /// [`StageKind::name`](crate::StageKind::name).
    pub stage: String,
    /// Waiting.
    pub waiting: u64,
    /// Permits in use.
    pub permits_in_use: u32,
    /// Let through since the start.
    pub admitted: u64,
    /// Turned away since the start, for a limit or because too many waited.
    pub refused: u64,
    /// Time that those let through had waited, summed since the start, ns.
    pub waited_ns: u64,
    /// Time for which it held permits since the start, summed over permits, ns.
    pub busy_ns: u64,
}

/// One stage of one core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageSnapshot {
    /// [`StageKind::name`](crate::StageKind::name).
    pub stage: String,
    /// The core it belongs to; 0 for the device's, which is one for all.
    pub core: u32,
    /// The rule in force, a word of `scheduler.request`.
    pub policy: String,
    /// When its totals were read, ns of the server's clock: up to a second ago.
    #[serde(default)]
    pub at_ns: u64,
    /// Units of work that may be outstanding below it.
    pub permits: u32,
    /// Permits that are reserved and cannot be kept free: one of all is always shared. While there
    /// are any, nobody's reserved permits are sure to be free when it wants them.
    #[serde(default)]
    pub permits_missing: u64,
    /// Of those, in use.
    pub permits_in_use: u32,
    /// Time for which permits were in use since the start, summed over permits, ns.
    #[serde(default)]
    pub busy_ns: u64,
    /// Decisions since the start.
    pub admitted: u64,
    /// Charged since the start, ns of each principal's dominant resource.
    #[serde(default)]
    pub charged_ns: u64,
    /// Debt that was forgiven since the start, ns of the dominant resource: beyond what one piece
    /// of work can cost, or told by other cores of a principal that is idle at this one.
    #[serde(default)]
    pub forgiven_ns: u64,
    /// Those who have something waiting or outstanding.
    pub principals: Vec<PrincipalSnapshot>,
}

/// One principal at a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrincipalSnapshot {
    /// The tenant or background task.
    pub name: String,
    /// Waiting.
    pub waiting: u64,
    /// Outstanding.
    pub permits_in_use: u32,
    /// Kept free for it.
    pub reserved_permits: u32,
    /// Let through since the start.
    pub admitted: u64,
    /// Why it is where it is, in the policy's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}
