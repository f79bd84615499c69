//! What the binary tells the server at its start, checked and in plain units.

mod descriptors;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use policy::slo::admission::Admission;
use policy::slo::control::Policy;
use stage::{Clock, Discipline};

use crate::tenants::TenantSpec;
use crate::upstream::UpstreamOptions;
pub use descriptors::{Descriptors, Plan, StorageFiles};
use settings::tenant::MEMORIES;

/// An address on which clients are accepted.
#[derive(Clone)]
pub struct Listen {
    /// Address and port; port 0 takes a free one.
    pub addr: SocketAddr,
    /// Clients must speak TLS.
    pub tls: Option<Arc<Tls>>,
    /// For clients that know of the cluster of fronts: its map leads them here.
    pub aware: bool,
}

/// What TLS is served with: connections that come after it was exchanged get the new.
pub struct Tls(RwLock<Arc<rustls::ServerConfig>>);

impl Tls {
    /// Serves with this.
    pub fn new(config: Arc<rustls::ServerConfig>) -> Self {
        Self(RwLock::new(config))
    }

    /// Serves with this from now on.
    pub fn set(&self, config: Arc<rustls::ServerConfig>) {
        *self.0.write() = config;
    }

    /// What it serves with now.
    pub fn get(&self) -> Arc<rustls::ServerConfig> {
        Arc::clone(&self.0.read())
    }
}

/// What one core can do in a second: the yardstick of dominant shares (Pisces eq. 4.15), not a
/// limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Requests per second.
    pub requests_per_s: u64,
    /// Bytes per second from clients.
    pub bytes_in_per_s: u64,
    /// Bytes per second to clients.
    pub bytes_out_per_s: u64,
}

impl Default for Capacity {
    /// A request that is not part of a pipeline costs a core about 10 µs in system calls, so small
    /// requests are what Pisces calls interrupt-bound; the bandwidth is a 10 Gbit/s port's.
    fn default() -> Self {
        Self {
            requests_per_s: 100_000,
            bytes_in_per_s: 1_250_000_000,
            bytes_out_per_s: 1_250_000_000,
        }
    }
}

/// Settings that `CONFIG SET` and a reload can change while the server runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// How the request stage picks.
    pub discipline: Discipline,
    /// What keeps promises.
    pub control: Policy,
    /// How often it decides, ns.
    pub control_interval_ns: u64,
    /// What becomes of a promise that does not fit.
    pub admission: Admission,
    /// Commands slower than this go to the slow log, in µs; negative: none.
    pub slow_log_over_us: i64,
    /// Slow commands kept per tenant.
    pub slow_log_length: usize,
    /// Close a connection that has been silent this long, in ms; 0: never.
    pub idle_timeout_ms: u64,
    /// Cut off a client that takes nothing of a large reply for this long, in ms: it keeps a
    /// snapshot of its tenant's data.
    pub stalled_timeout_ms: u64,
    /// Connections of all tenants together at most.
    pub connections_max: usize,
    /// Connections at most that speak for nobody yet.
    pub newcomers_max: usize,
    /// Connections at most of tenants that may administer, when there is no room among the others.
    pub operator_connections: usize,
    /// Close a connection that speaks for nobody after this long, where it must log in, in ms; 0:
    /// never.
    pub login_timeout_ms: u64,
    /// How often one peer may connect, per second.
    pub connections_per_s: f64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            discipline: Discipline::Fair,
            control: Policy::Auto,
            control_interval_ns: 1_000_000_000,
            admission: Admission::default(),
            slow_log_over_us: 10_000,
            slow_log_length: 128,
            idle_timeout_ms: 0,
            stalled_timeout_ms: 60_000,
            connections_max: 10_000,
            newcomers_max: 1_000,
            operator_connections: 32,
            login_timeout_ms: 10_000,
            connections_per_s: 1_000.0,
        }
    }
}

/// Processor time of the calling thread since its start, ns.
pub type ThreadTime = fn() -> policy::Nanos;

/// A peer that has vanished without a word is found out after this long (Redis's `tcp-keepalive`).
pub const KEEPALIVE: std::time::Duration = std::time::Duration::from_secs(300);

/// Everything the server is started with.
pub struct Options {
    /// Where clients are accepted.
    pub listen: Vec<Listen>,
    /// Cores that serve clients, each a thread, >= 1.
    pub cores: usize,
    /// Yardstick of one core.
    pub capacity: Capacity,
    /// Largest value, in bytes (Redis's `proto-max-bulk-len`).
    pub value_bytes_max: usize,
    /// Memory that one command may work with, in bytes.
    pub work_bytes_max: u64,
    /// Memory that requests of all tenants may hold together, in bytes.
    pub request_bytes_max: u64,
    /// What the process may take of memory, all in all, bytes: shown.
    pub memory_max: u64,
    /// Most words of one request.
    pub args_max: u32,
    /// Most elements that one `ENTREMET.RANGE` returns.
    pub range_count_max: usize,
    /// Bytes read or written in one turn before the connection goes to the back of its queue.
    pub chunk_bytes: usize,
    /// Size of one memtable of a tenant at most, in bytes.
    pub memtable_bytes: usize,
    /// Uncommitted bytes of a tenant at which further writes wait.
    pub pending_bytes: usize,
    /// Seed of everything random that the schedulers do.
    pub seed: u64,
    /// Open files: what of `tuning` they leave room for holds.
    pub descriptors: Descriptors,
    /// Settings that can change later.
    pub tuning: Tuning,
    /// Tenants of the configuration file.
    pub tenants: Vec<TenantSpec>,
    /// Storage.
    pub engine: engine::EngineOptions,
    /// What the tenants' databases lie on.
    pub disk: Arc<crate::device::Disk>,
    /// The engine that keeps the data instead; none: this process does.
    pub upstream: Option<UpstreamOptions>,
    /// The data directory; also keeps run-time tenants.
    pub data: PathBuf,
    /// Time for latencies and schedulers.
    pub clock: Arc<dyn Clock + Send + Sync>,
    /// Time of day, in ms since the Unix epoch, for expiry.
    pub wall_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Processor time of the calling thread, in ns, for what a long turn is charged.
    pub thread_time: ThreadTime,
    /// What the calling thread did since its start: what came while it waited for a processor came
    /// before it saw it.
    pub thread_times: fn() -> threads::Times,
    /// How many lines of the log were lost: shown.
    pub log_lines_lost: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Version text for `INFO`.
    pub version: String,
    /// The configuration file, for `INFO`.
    pub config_file: Option<PathBuf>,
}

impl Options {
    /// One core's own part of the handlers' permits. Cores lend each other what they do not use.
    pub(crate) fn handlers_each(&self) -> u32 {
        (self.engine.handlers / self.cores).max(1) as u32
    }

    /// Bytes of the memories that tenants share, in the order of [`MEMORIES`].
    pub(crate) fn memory_budgets(&self) -> [u64; MEMORIES.len()] {
        [
            self.engine.object_cache_bytes,
            self.engine.block_cache_bytes,
            self.engine.write_buffer_bytes,
        ]
    }
}
