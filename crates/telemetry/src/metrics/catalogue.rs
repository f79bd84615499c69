//! The metrics: name, type, unit, meaning, and where the number comes from.

use super::{Scrape, TenantScrape};
use crate::exposition::Kind::{self, Counter, Gauge};
use crate::model::{StageSnapshot, State, TenantStage};
use crate::snapshot::HistogramSnapshot;
use crate::totals::ClassTotals;

/// A metric that is one number for each `S`.
pub(super) struct Metric<S> {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
    pub(super) value: fn(&S) -> f64,
}

/// A histogram of times for each tenant and class.
pub(super) struct Times {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) times: fn(&ClassTotals) -> &HistogramSnapshot,
}

pub(super) const fn metric<S>(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    help: &'static str,
    value: fn(&S) -> f64,
) -> Metric<S> {
    Metric {
        name,
        kind,
        unit,
        help,
        value,
    }
}

/// One sample each. `redis_db_keys` carries `db="db0"`, there being one database a tenant.
#[rustfmt::skip]
pub(super) const SERVER: &[Metric<Scrape>] = &[
    metric("redis_up", Gauge, "1 or 0", "1 while the server serves requests.", |s| f64::from(s.state == State::Ready)),
    metric("redis_uptime_in_seconds", Gauge, "seconds", "Time since the start.", |s| s.server.uptime_s as f64),
    metric("redis_connected_clients", Gauge, "connections", "Client connections open now.", |s| s.server.connections.open as f64),
    metric("redis_max_clients", Gauge, "connections", "Connections that tenants may have together (max_connections).", |s| s.server.connections.max as f64),
    metric("redis_connections_received_total", Counter, "connections", "Connections accepted.", |s| s.server.connections.accepted as f64),
    metric("redis_rejected_connections_total", Counter, "connections", "Connections refused, when they came or logged in, because too many were open.", |s| s.server.connections.rejected as f64),
    metric("redis_commands_processed_total", Counter, "requests", "Requests answered, all tenants.", |s| s.usage.requests as f64),
    metric("redis_net_input_bytes_total", Counter, "bytes", "Bytes of requests, all tenants.", |s| s.usage.bytes_in as f64),
    metric("redis_net_output_bytes_total", Counter, "bytes", "Bytes of replies, all tenants.", |s| s.usage.bytes_out as f64),
    metric("redis_keyspace_hits_total", Counter, "reads", "Reads that found their key, all tenants.", |s| s.usage.found as f64),
    metric("redis_keyspace_misses_total", Counter, "reads", "Reads that found no key, all tenants.", |s| s.usage.missed as f64),
    metric("redis_expired_keys_total", Counter, "keys", "Keys removed because their time had come, all tenants.", |s| s.server.storage.expired_keys as f64),
    metric("redis_db_keys", Gauge, "keys", "Keys, estimated (fields and members of collections count as well), all tenants whose database is open.", |s| s.sum(|t| t.keys)),
    metric("redis_memory_used_bytes", Gauge, "bytes", "Memory in caches, memtables and uncommitted records.", |s| s.server.memory.used as f64),
    metric("redis_memory_max_bytes", Gauge, "bytes", "Bound of redis_memory_used_bytes.", |s| s.server.memory.max as f64),
    metric("redis_memory_used_rss_bytes", Gauge, "bytes", "Resident memory of the process.", |s| s.server.memory.resident as f64),
    metric("entremet_memory_limit_bytes", Gauge, "bytes", "What the process may take of memory (server.max_memory).", |s| s.server.memory.process_max as f64),
    metric("entremet_request_memory_bytes", Gauge, "bytes", "Memory that requests and replies hold, all tenants.", |s| s.server.memory.requests as f64),
    metric("entremet_request_memory_max_bytes", Gauge, "bytes", "Bound of entremet_request_memory_bytes.", |s| s.server.memory.requests_max as f64),
    metric("redis_cpu_user_seconds_total", Counter, "seconds", "CPU time of the process in user mode.", |s| s.server.cpu_user_s),
    metric("redis_cpu_sys_seconds_total", Counter, "seconds", "CPU time of the process in the kernel.", |s| s.server.cpu_system_s),
    metric("redis_process_id", Gauge, "id", "Process id.", |s| f64::from(s.server.process_id)),
    metric("redis_slowlog_length", Gauge, "entries", "Entries in the slow log.", |s| s.server.slowlog_length as f64),
    metric("entremet_newcomers", Gauge, "connections", "Connections that speak for no tenant yet.", |s| s.server.connections.newcomers as f64),
    metric("entremet_newcomers_share_percent", Gauge, "percent", "What connections that speak for no tenant yet took of what was served in the last 5 to 10 s, by dominant resource.", |s| s.newcomers(|n| n.share.got_percent)),
    metric("entremet_newcomers_cpu_seconds_total", Counter, "seconds", "CPU time of connections that speak for no tenant yet, and of accepting them.", |s| s.newcomers(|n| n.totals.usage.cpu_ns as f64 / 1e9)),
    metric("entremet_newcomers_max", Gauge, "connections", "Most of those (max_newcomers).", |s| s.server.connections.newcomers_max as f64),
    metric("entremet_newcomers_displaced_total", Counter, "connections", "Connections closed for others to come, before they spoke for a tenant.", |s| s.server.connections.displaced as f64),
    metric("entremet_newcomers_late_total", Counter, "connections", "Connections closed because they did not log in in time (login_timeout).", |s| s.server.connections.late as f64),
    metric("entremet_connections_hasty_total", Counter, "connections", "Connections refused because their address connected too often (connection_rate).", |s| s.server.connections.hasty as f64),
    metric("entremet_logins_waiting", Gauge, "log-ins", "Passwords in line for the slow hash that tells whether they are right.", |s| s.server.logins.waiting as f64),
    metric("entremet_login_hashes_total", Counter, "hashes", "Passwords hashed. Equal log-ins wait for the same hash; the last right password of a tenant is known without one.", |s| s.server.logins.hashed as f64),
    metric("entremet_logins_refused_total", Counter, "log-ins", "Log-ins refused because too many waited, most of them from the same peer or for the same tenant.", |s| s.server.logins.refused as f64),
    metric("entremet_cores", Gauge, "cores", "Cores that serve requests.", |s| f64::from(s.server.cores)),
    metric("entremet_tenants", Gauge, "tenants", "Tenants configured.", |s| s.tenants.len() as f64),
    metric("entremet_object_cache_bytes", Gauge, "bytes", "Object cache in use, all tenants.", |s| s.server.memory.object_cache as f64),
    metric("entremet_block_cache_bytes", Gauge, "bytes", "Block cache in use, all tenants.", |s| s.server.memory.block_cache as f64),
    metric("entremet_memtable_bytes", Gauge, "bytes", "RocksDB's memtables, all tenants.", |s| s.server.memory.memtables as f64),
    metric("entremet_handlers", Gauge, "threads", "Handler threads.", |s| s.server.storage.handlers as f64),
    metric("entremet_handler_jobs", Gauge, "jobs", "Jobs on or waiting for a handler thread.", |s| s.server.storage.handler_jobs as f64),
    metric("entremet_open_databases", Gauge, "databases", "Tenant databases open now.", |s| s.server.storage.open_databases as f64),
    metric("entremet_commits_total", Counter, "commits", "Group commits.", |s| s.server.storage.commits as f64),
    metric("entremet_connections_moved_total", Counter, "connections", "Client connections moved to a core with less to do.", |s| s.server.connections.moved as f64),
    metric("entremet_largest_turn_words", Gauge, "words", "Words of requests that a core looked at in one turn, at most since the start.", |s| s.server.largest_turn.words as f64),
    metric("entremet_largest_turn_bytes", Gauge, "bytes", "Bytes that a core read or wrote in one turn, at most since the start.", |s| s.server.largest_turn.bytes as f64),
    metric("entremet_largest_turn_steps", Gauge, "steps", "Keys, records and KiB of values that a core looked at in one turn, at most since the start.", |s| s.server.largest_turn.steps as f64),
    metric("entremet_largest_turn_cpu_seconds", Gauge, "seconds", "Processor time of one turn of a core, at most since the start.", |s| s.server.largest_turn.cpu_ns as f64 / 1e9),
    metric("entremet_commit_syncs_total", Counter, "syncs", "Syncs of tenants' logs to the disk.", |s| s.server.storage.syncs as f64),
    metric("entremet_commit_errors_total", Counter, "commits", "Group commits that failed; the tenant's writes are refused until one succeeds.", |s| s.server.storage.commit_errors as f64),
    metric("entremet_device_in_doubt", Gauge, "1 or 0", "1 while the device is not scheduled (yet), or by a profile made elsewhere; /api/server says why.", |s| f64::from(s.server.device_doubt.is_some())),
    metric("entremet_control_failures_total", Counter, "failures", "Times that a controller of promises failed. What it gave last stays in force until it begins anew, after a second at first and half a minute in the end.", |s| s.server.control.failures as f64),
    metric("entremet_control_failed", Gauge, "1 or 0", "1 while a controller that failed has not begun anew; /api/server says how it failed.", |s| f64::from(s.server.control.failure.is_some())),
    metric("entremet_engine_links", Gauge, "connections", "Connections to the engine behind this server, of all cores; 0 where data is kept here.", |s| s.engine_links().open as f64),
    metric("entremet_engine_links_apart", Gauge, "connections", "Those of them that one tenant has for itself at present, because it moves large values.", |s| s.engine_links().apart as f64),
    metric("entremet_engine_links_turned_total", Counter, "replies", "Large replies that nobody foresaw, so that one of those connections became their tenant's own.", |s| s.engine_links().turned as f64),
    metric("entremet_engine_waiting", Gauge, "requests", "Clients that wait at the engine behind this server at present until something comes for them, for which it watches keys, or that have subscribed to channels, each with a connection of its own.", |s| s.engine_links().waiting as f64),
    metric("entremet_engine_replicas", Gauge, "replicas", "Replicas of the cluster behind this server of which it is known how far behind they are, while some tenant reads from them.", |s| s.engine_replicas().known as f64),
    metric("entremet_engine_replicas_unknown", Gauge, "replicas", "Those of which it is not known. Nothing is read there.", |s| s.engine_replicas().unknown as f64),
    metric("entremet_engine_replica_lag_seconds", Gauge, "seconds", "By how much the furthest of the known ones is behind at most.", |s| s.engine_replicas().lag_ms as f64 / 1e3),
    metric("entremet_engine_replica_reads_total", Counter, "requests", "Requests that were sent to replicas.", |s| s.engine_replicas().reads as f64),
    metric("entremet_config_reloads_total", Counter, "reloads", "Configuration reloads that were taken.", |s| s.server.reloads as f64),
    metric("entremet_config_reloads_refused_total", Counter, "reloads", "Configuration reloads refused because of errors in the file.", |s| s.server.reloads_refused as f64),
    metric("entremet_log_lines_lost_total", Counter, "lines", "Lines of the log that were lost because standard error was not read in time.", |s| s.server.log_lines_lost as f64),
];

/// One sample for each tenant.
#[rustfmt::skip]
pub(super) const TENANT: &[Metric<TenantScrape>] = &[
    metric("entremet_tenant_weight", Gauge, "weight", "Its weight.", |t| t.gauges.weight),
    metric("entremet_tenant_weight_here", Gauge, "weight", "Its weight here: the same, unless several fronts divide it by where they serve it.", |t| t.gauges.weight_here),
    metric("entremet_tenant_share_configured_percent", Gauge, "percent", "Its weight's part of all weights: the least it gets when everybody wants everything.", |t| t.share.configured_percent),
    metric("entremet_tenant_share_entitled_percent", Gauge, "percent", "What its weight entitles it to: its part of the weights of those active in the last 5 to 10 s.", |t| t.share.entitled_percent),
    metric("entremet_tenant_share_got_percent", Gauge, "percent", "Its part of what was served in the last 5 to 10 s, by dominant resource.", |t| t.share.got_percent),
    metric("entremet_tenant_limit_portion", Gauge, "part", "The part of its limits that it may use here: 1, unless several fronts keep them together.", |t| t.gauges.limit_portion),
    metric("entremet_tenant_promised_portion", Gauge, "part", "The part of its contract that it may use here.", |t| t.gauges.promised_portion),
    metric("entremet_tenant_reserve_get_portion", Gauge, "part", "The part of its reserved reads that is this server's: 1, unless several fronts keep them together.", |t| t.gauges.reserve_get_portion),
    metric("entremet_tenant_reserve_put_portion", Gauge, "part", "The part of its reserved writes that is this server's.", |t| t.gauges.reserve_put_portion),
    metric("entremet_tenant_connections", Gauge, "connections", "Connections that speak for it.", |t| t.gauges.connections as f64),
    metric("entremet_tenant_connections_max", Gauge, "connections", "Connections that it may have while the others have no more than is kept for them.", |t| t.gauges.connections_max as f64),
    metric("entremet_tenant_connections_refused_total", Counter, "connections", "Log-ins refused because it, or all together, had as many connections as they may have.", |t| t.gauges.connections_refused as f64),
    metric("entremet_tenant_request_memory_bytes", Gauge, "bytes", "Memory that its requests and replies hold.", |t| t.gauges.request_memory_bytes as f64),
    metric("entremet_tenant_request_memory_max_bytes", Gauge, "bytes", "What they may hold, if others leave what can be lent.", |t| t.gauges.request_memory_max_bytes as f64),
    metric("entremet_tenant_waiting", Gauge, "connections", "Readable connections waiting at the request stage.", |t| t.gauges.waiting as f64),
    metric("entremet_tenant_occupied_seconds_total", Counter, "seconds", "Time with a request waiting at the request stage, summed over cores.", |t| t.totals.usage.occupied_ns as f64 / 1e9),
    metric("entremet_tenant_keys", Gauge, "keys", "Keys, estimated (fields and members of collections count as well); 0 while its database is closed.", |t| t.gauges.keys as f64),
    metric("entremet_tenant_keyspace_hits_total", Counter, "reads", "Reads that found their key.", |t| t.totals.usage.found as f64),
    metric("entremet_tenant_keyspace_misses_total", Counter, "reads", "Reads that found no key.", |t| t.totals.usage.missed as f64),
    metric("entremet_tenant_cache_hits_total", Counter, "reads", "Reads answered from the object cache.", |t| t.gauges.cache_hits as f64),
    metric("entremet_tenant_cache_misses_total", Counter, "reads", "Reads the object cache could not answer.", |t| t.gauges.cache_misses as f64),
    metric("entremet_tenant_cache_bytes", Gauge, "bytes", "Object cache in use.", |t| t.gauges.cache_bytes as f64),
    metric("entremet_tenant_cache_granted_bytes", Gauge, "bytes", "Object cache it may use now; beyond its allotment it is lent by others.", |t| t.gauges.cache_granted_bytes as f64),
    metric("entremet_tenant_cache_allotment_bytes", Gauge, "bytes", "Object cache it is entitled to.", |t| t.gauges.cache_allotment_bytes as f64),
    metric("entremet_tenant_block_cache_hits_total", Counter, "reads", "Reads beyond the object cache, answered from the block cache or from memtables.", |t| t.gauges.block_cache_hits as f64),
    metric("entremet_tenant_block_cache_misses_total", Counter, "reads", "Reads beyond the object cache, not answered from memory.", |t| t.gauges.block_cache_misses as f64),
    metric("entremet_tenant_block_cache_bytes", Gauge, "bytes", "Block cache in use; 0 where all tenants have one together.", |t| t.gauges.block_cache_bytes as f64),
    metric("entremet_tenant_block_cache_granted_bytes", Gauge, "bytes", "Block cache it may use now; beyond its allotment it is lent by others.", |t| t.gauges.block_cache_granted_bytes as f64),
    metric("entremet_tenant_block_cache_allotment_bytes", Gauge, "bytes", "Block cache it is entitled to.", |t| t.gauges.block_cache_allotment_bytes as f64),
    metric("entremet_tenant_write_buffer_bytes", Gauge, "bytes", "Memtables in use.", |t| t.gauges.write_buffer_bytes as f64),
    metric("entremet_tenant_write_buffer_granted_bytes", Gauge, "bytes", "Memtables it may use now.", |t| t.gauges.write_buffer_granted_bytes as f64),
    metric("entremet_tenant_write_buffer_allotment_bytes", Gauge, "bytes", "Memtables it is entitled to.", |t| t.gauges.write_buffer_allotment_bytes as f64),
    metric("entremet_tenant_uncommitted_bytes", Gauge, "bytes", "Written in memory, not yet committed.", |t| t.gauges.uncommitted_bytes as f64),
    metric("entremet_tenant_write_pressure", Gauge, "1 is stalled", "How near its database is to stalling its writes: from 0.5 on they pause, so that it need not.", |t| t.gauges.write_pressure),
    metric("entremet_tenant_write_paused_seconds_total", Counter, "seconds", "Time that its writes have paused for that.", |t| t.gauges.write_paused_s),
    metric("entremet_tenant_disk_requests_total", Counter, "requests", "Requests that a handler ran: their data was not in memory, or they were too long for a core's turn.", |t| t.totals.disk_requests() as f64),
    metric("entremet_tenant_disk_bytes", Gauge, "bytes", "Size of its files.", |t| t.gauges.disk_bytes as f64),
    metric("entremet_tenant_writes_refused", Gauge, "1 or 0", "1 while its writes are refused because a commit failed.", |t| f64::from(t.gauges.write_error.is_some())),
];

/// One sample for each tenant and class that was asked for at all.
#[rustfmt::skip]
pub(super) const CLASS: &[Metric<ClassTotals>] = &[
    metric("entremet_tenant_requests_total", Counter, "requests", "Requests answered, errors included, throttled ones not.", |c| c.requests as f64),
    metric("entremet_tenant_errors_total", Counter, "requests", "Requests answered with an error other than -THROTTLED.", |c| c.errors as f64),
    metric("entremet_tenant_bytes_in_total", Counter, "bytes", "Bytes of requests.", |c| c.bytes_in as f64),
    metric("entremet_tenant_bytes_out_total", Counter, "bytes", "Bytes of replies.", |c| c.bytes_out as f64),
    metric("entremet_tenant_cpu_seconds_total", Counter, "seconds", "CPU time charged at the request stage.", |c| c.cpu_ns as f64 / 1e9),
];

/// Labelled by the limit as well.
pub(super) const THROTTLED: (&str, &str) = (
    "entremet_tenant_throttled_total",
    "Requests answered -THROTTLED, by the limit that was reached.",
);

/// Labelled by whom it is shown to.
pub(super) const CERTIFICATE: (&str, &str) = (
    "entremet_certificate_expires_seconds",
    "When the certificate expires that is shown to `clients`, by `admin` or to the `engine`, seconds since the Unix epoch; nothing without TLS.",
);

/// Labelled by the part as well.
pub(super) const PARTS: (&str, &str) = (
    "entremet_tenant_time_seconds_total",
    "Where the time of its requests went: the parts of all latencies, which add up to them.",
);

/// One sample for each tenant and kind of stage that it was let through.
#[rustfmt::skip]
pub(super) const TENANT_STAGE: &[Metric<TenantStage>] = &[
    metric("entremet_tenant_stage_admitted_total", Counter, "decisions", "Times it was let through: turns at the request stage, pieces of work at the handlers, I/Os at the device.", |s| s.admitted as f64),
    metric("entremet_tenant_stage_refused_total", Counter, "decisions", "Times it was turned away, for a limit or because too many waited.", |s| s.refused as f64),
    metric("entremet_tenant_stage_waiting", Gauge, "decisions", "What of it waits. It asks for what is let through, turned away, and waits.", |s| s.waiting as f64),
    metric("entremet_tenant_stage_wait_seconds_total", Counter, "seconds", "Time that what was let through had waited.", |s| s.waited_ns as f64 / 1e9),
    metric("entremet_tenant_stage_busy_seconds_total", Counter, "seconds", "Time for which it held permits, summed over permits: its rate is the permits it has, on average.", |s| s.busy_ns as f64 / 1e9),
];

/// Histograms for each tenant and class.
#[rustfmt::skip]
pub(super) const TIMES: &[Times] = &[
    Times { name: "entremet_tenant_latency_seconds", help: "From when the whole of it could be read, whether or not its core had a processor then, to the reply written.", times: |c| &c.latency },
    Times { name: "entremet_tenant_queue_seconds", help: "Of the latency, the wait at the request stage.", times: |c| &c.queue },
    Times { name: "entremet_tenant_disk_seconds", help: "Of the latency, the time on a handler; only requests that one ran.", times: |c| &c.disk },
];

/// One sample for each stage of each core.
#[rustfmt::skip]
pub(super) const STAGE: &[Metric<StageSnapshot>] = &[
    metric("entremet_stage_permits", Gauge, "permits", "Units of work that may be outstanding below the stage, beside those of tenants that have had less than their share: at the handlers, as many again, and what other cores lend.", |s| f64::from(s.permits)),
    metric("entremet_stage_busy_seconds_total", Counter, "seconds", "Time for which permits were in use, summed over permits: its rate is the permits in use, on average.", |s| s.busy_ns as f64 / 1e9),
    metric("entremet_stage_admitted_total", Counter, "decisions", "Times somebody was let through.", |s| s.admitted as f64),
    metric("entremet_stage_charged_seconds_total", Counter, "seconds", "Charged, in time of each principal's dominant resource.", |s| s.charged_ns as f64 / 1e9),
    metric("entremet_stage_forgiven_seconds_total", Counter, "seconds", "Debt that was forgiven: beyond what one piece of work can cost, or told by other cores of a tenant that is idle at this one.", |s| s.forgiven_ns as f64 / 1e9),
];
