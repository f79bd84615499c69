//! What a tenant is promised and held to, as the server keeps it.

use policy::{Durability, Nanos, Promise, Reads};
use serde::{Deserialize, Serialize};

use super::promised::{Slo, Workload};

/// How the data directory keeps it, whatever users call it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Durability", rename_all = "kebab-case")]
enum Kept {
    Always,
    EverySecond,
    Never,
}

/// The same of where its reads go.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Reads", rename_all = "kebab-case")]
enum KeptReads {
    Master,
    Replica,
}

/// How stale reads from replicas may be where nobody says: several of the looks that tell it, so
/// that one which is late sends nobody to the master.
const REPLICA_LAG_NS_MAX: Nanos = 1_000_000_000;

/// A rate that is not exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// Requests per second; none: unlimited.
    pub requests_per_s: Option<f64>,
    /// Bytes in and out per second; none: unlimited.
    pub bytes_per_s: Option<f64>,
    /// How much of the rate may come at once, in ns of the rate; none: the default.
    pub burst_ns: Option<u64>,
    /// How long a request is held back for the limit before it is refused with `-THROTTLED`, in ns;
    /// none: the default.
    pub wait_ns_max: Option<u64>,
}

/// One tenant's settings; everything here can be changed while it works. Each field has a row in
/// [`SETTINGS`](super::SETTINGS). The data directory keeps them by the names of these fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// It may administer the server: tenants, settings, shutdown.
    pub admin: bool,
    /// Share relative to the other tenants', > 0.
    pub weight: f64,
    /// Connections at most; none: as many as are not kept for others.
    pub connections_max: Option<u32>,
    /// Partitions of its data before a cluster, fixed when it is made.
    pub partitions: u32,
    /// Where its reads go before a cluster.
    #[serde(with = "KeptReads")]
    pub reads: Reads,
    /// How far behind a replica may be that it reads from, in ns; none: the default.
    pub replica_lag_ns_max: Option<u64>,
    /// It may run scripts at an engine behind this server.
    pub scripts: bool,
    /// Handlers kept free for this tenant (Cake's reservation).
    pub reserved_permits: u32,
    /// I/Os at the device kept free for it.
    pub reserved_ios: u32,
    /// Reads per second promised, normalised to 1 KiB.
    pub reserve_get_per_s: Option<f64>,
    /// Writes per second promised, normalised to 1 KiB.
    pub reserve_put_per_s: Option<f64>,
    /// The rate not exceeded.
    pub limit: Limit,
    /// Requests per second beyond which the tenant is served best effort.
    pub contract_per_s: Option<f64>,
    /// When a write counts as done.
    #[serde(with = "Kept")]
    pub durability: Durability,
    /// Bytes of the object cache; none: a share by weight.
    pub cache_bytes: Option<u64>,
    /// Bytes of the block cache; none: a share by weight.
    pub block_cache_bytes: Option<u64>,
    /// Bytes of the write buffers; none: a share by weight.
    pub write_buffer_bytes: Option<u64>,
    /// Bytes that its requests may hold in memory; none: what is there for it.
    pub request_bytes: Option<u64>,
    /// Kinds of its connections that are told apart, each with a queue of its own.
    pub workloads: Vec<Workload>,
    /// What it was promised, by workload and class.
    pub slos: Vec<Slo>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            admin: false,
            weight: 1.0,
            connections_max: None,
            partitions: 1,
            reads: Reads::Master,
            replica_lag_ns_max: None,
            scripts: false,
            reserved_permits: 0,
            reserved_ios: 0,
            reserve_get_per_s: None,
            reserve_put_per_s: None,
            limit: Limit::default(),
            contract_per_s: None,
            // What a Redis user expects of `appendfsync`.
            durability: Durability::EverySecond,
            cache_bytes: None,
            block_cache_bytes: None,
            write_buffer_bytes: None,
            request_bytes: None,
            workloads: Vec::new(),
            slos: Vec::new(),
        }
    }
}

impl Settings {
    /// What these settings promise, and what they hold the tenant to; `policy` says what that comes
    /// to at each stage.
    pub fn promise(&self) -> Promise {
        let default = policy::dispatch::Limit::default();
        Promise {
            weight: self.weight,
            reserved_permits: self.reserved_permits,
            reserved_per_s: [self.reserve_get_per_s, self.reserve_put_per_s]
                .map(Option::unwrap_or_default),
            limit: policy::dispatch::Limit {
                requests_per_s: self.limit.requests_per_s,
                bytes_per_s: self.limit.bytes_per_s,
                burst_ns: self.limit.burst_ns.unwrap_or(default.burst_ns),
                max_wait_ns: self.limit.wait_ns_max.unwrap_or(default.max_wait_ns),
            },
            contract_per_s: self.contract_per_s,
        }
    }

    /// How far behind a replica may be that it reads from; none: its reads go to masters.
    pub fn may_lag_ns(&self) -> Option<Nanos> {
        let most = self.replica_lag_ns_max.unwrap_or(REPLICA_LAG_NS_MAX);
        (self.reads == Reads::Replica).then_some(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_set_promises_nothing_but_a_share() {
        assert_eq!(Settings::default().promise(), Promise::share(1.0));
    }
}
