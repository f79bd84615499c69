//! `INFO`: Redis's sections with the asking tenant's numbers. Nothing in it tells of another
//! tenant.
//!
//! Everything in it is a counter that lies ready, but for the number of keys, which is counted when
//! it is asked for and has changed; what only the whole server has (resident memory, CPU time of
//! the process) is the admin address's to tell. A field of Redis's stands here if its value says
//! something true of the tenant. Those that tools add up, divide by or draw, and of which there is
//! nothing here (replicas, scripts, evictions), are 0.

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use engine::KeyspaceStats;
use policy::words::Words;
use resp::is;
use telemetry::Recent;

use super::figures::{count_keys, last_save_s, stored, used_memory};
use super::Visit;
use crate::shared::Shared;
use crate::tenants::{Counted, Tenant};

/// The version of Redis whose commands and replies are followed.
pub const REDIS_VERSION: &str = "7.0.15";

/// Everything that the sections are written from.
struct Facts<'a> {
    shared: &'a Shared,
    tenant: &'a Arc<Tenant>,
    operator: bool,
    now_ms: u64,
    counted: Counted,
    recent: Recent,
    stored: KeyspaceStats,
}

type Section = (&'static str, fn(&Facts<'_>, &mut Lines));

/// In Redis's order.
const SECTIONS: &[Section] = &[
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("CPU", cpu),
    ("Commandstats", command_stats),
    ("Errorstats", error_stats),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
    ("Entremet", entremet),
];

/// As in Redis, shown only to those who ask for it or for everything.
const ON_REQUEST: &str = "Commandstats";

/// `INFO [section ...]`
pub fn run(visit: &mut Visit<'_>) {
    let words = visit.args.from(1);
    let asked = |names: &[&str]| {
        words
            .iter()
            .any(|word| names.iter().any(|name| is(word, name)))
    };
    let all = asked(&["all", "everything"]);
    let default = words.is_empty() || asked(&["default"]);
    let wanted = |name: &str| all || default && name != ON_REQUEST || asked(&[name]);
    let tenant = visit.tenant;
    if wanted("Keyspace") {
        count_keys(visit);
    }
    let facts = Facts {
        shared: visit.shared,
        tenant,
        operator: visit.operator(),
        now_ms: visit.now_ms,
        counted: Counted::of(&visit.shared.metrics, tenant).since(&tenant.counted_from.lock()),
        recent: visit.shared.metrics.last_turn(&tenant.name),
        stored: stored(tenant),
    };
    let text = render(&facts, wanted);
    visit.reply().verbatim(&text);
}

fn render(facts: &Facts<'_>, wanted: impl Fn(&str) -> bool) -> String {
    let mut lines = Lines(String::new());
    for (name, section) in SECTIONS.iter().filter(|(name, _)| wanted(name)) {
        if !lines.0.is_empty() {
            lines.0.push_str("\r\n");
        }
        let _ = write!(lines.0, "# {name}\r\n");
        section(facts, &mut lines);
    }
    lines.0
}

struct Lines(String);

impl Lines {
    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    /// Lines that never change.
    fn fixed(&mut self, lines: &[(&str, &str)]) {
        lines
            .iter()
            .for_each(|(name, value)| self.line(name, value));
    }
}

/// The port of the first address without TLS; 0: every client must speak TLS.
pub fn plain_port(shared: &Shared) -> u16 {
    let mut bound = shared.bound(false);
    let plain = bound.find(|(listen, _)| listen.tls.is_none());
    plain.map_or(0, |(_, addr)| addr.port())
}

fn server(facts: &Facts<'_>, lines: &mut Lines) {
    let shared = facts.shared;
    let uptime_s = shared.steady_ms().saturating_sub(shared.started_ms) / 1_000;
    lines.line("redis_version", REDIS_VERSION);
    lines.fixed(&[
        ("redis_git_sha1", "00000000"),
        ("redis_git_dirty", "0"),
        ("redis_mode", "standalone"),
    ]);
    lines.line("os", std::env::consts::OS);
    lines.line("arch_bits", usize::BITS);
    lines.line("multiplexing_api", "epoll");
    lines.line("process_id", std::process::id());
    lines.line("run_id", &shared.run_id);
    lines.line("tcp_port", plain_port(shared));
    lines.line("server_time_usec", facts.now_ms * 1_000);
    lines.line("uptime_in_seconds", uptime_s);
    lines.line("uptime_in_days", uptime_s / 86_400);
    let config_file = shared.config_file().filter(|_| facts.operator);
    lines.line(
        "config_file",
        config_file.map_or(String::new(), |path| path.display().to_string()),
    );
    lines.line("io_threads_active", u8::from(shared.options.cores > 1));
}

fn clients(facts: &Facts<'_>, lines: &mut Lines) {
    lines.line("connected_clients", facts.tenant.connections());
    lines.line("cluster_connections", 0);
    let connections_max = facts.shared.house.connections_max(facts.tenant.id);
    lines.line("maxclients", connections_max);
    // No command blocks; those wait that a pause of the tenant's own holds back.
    let paused = facts.tenant.pause.waiting.load(Ordering::Relaxed);
    lines.line("blocked_clients", paused);
    lines.fixed(&[("tracking_clients", "0"), ("clients_in_timeout_table", "0")]);
}

fn memory(facts: &Facts<'_>, lines: &mut Lines) {
    let stored = &facts.stored;
    let used = used_memory(facts.tenant, stored);
    let dataset = stored.cache_bytes + stored.block_cache_bytes;
    lines.line("used_memory", used);
    lines.line("used_memory_human", human(used));
    // All of it is in memory, and nobody counts what the allocator adds by tenant.
    lines.line("used_memory_rss", used);
    lines.line("used_memory_rss_human", human(used));
    lines.line("used_memory_overhead", used - dataset);
    lines.line("used_memory_startup", 0);
    lines.line("used_memory_dataset", dataset);
    let percent = 100.0 * dataset as f64 / used.max(1) as f64;
    lines.line("used_memory_dataset_perc", format_args!("{percent:.2}%"));
    lines.line("mem_clients_normal", facts.tenant.budget.held());
    lines.line("mem_aof_buffer", stored.pending_bytes);
    lines.fixed(&[
        ("mem_fragmentation_ratio", "1.00"),
        ("mem_clients_slaves", "0"),
        ("mem_replication_backlog", "0"),
        ("mem_not_counted_for_evict", "0"),
        ("used_memory_lua", "0"),
        ("used_memory_lua_human", "0B"),
        ("used_memory_scripts", "0"),
        ("used_memory_scripts_human", "0B"),
        ("number_of_cached_scripts", "0"),
        ("number_of_functions", "0"),
        ("active_defrag_running", "0"),
        ("lazyfree_pending_objects", "0"),
    ]);
    // Data is bounded by the disk, so no key is ever evicted; only copies of it leave the cache.
    lines.fixed(&[
        ("maxmemory", "0"),
        ("maxmemory_human", "0B"),
        ("maxmemory_policy", "noeviction"),
    ]);
}

fn persistence(facts: &Facts<'_>, lines: &mut Lines) {
    let status = if facts.stored.error.is_none() {
        "ok"
    } else {
        "err"
    };
    lines.fixed(&[("loading", "0"), ("async_loading", "0")]);
    let stored = &facts.stored;
    lines.line("rdb_changes_since_last_save", stored.unsaved_writes);
    lines.line("rdb_bgsave_in_progress", u8::from(stored.saving));
    let saved_s = last_save_s(facts.shared, stored, facts.now_ms);
    lines.line("rdb_last_save_time", saved_s);
    lines.line("rdb_last_bgsave_status", status);
    lines.fixed(&[
        ("aof_enabled", "1"),
        ("aof_rewrite_in_progress", "0"),
        ("aof_rewrite_scheduled", "0"),
        ("aof_last_bgrewrite_status", "ok"),
    ]);
    lines.line("aof_last_write_status", status);
    lines.line("aof_current_size", facts.stored.disk_bytes);
    lines.line("aof_buffer_length", facts.stored.pending_bytes);
}

fn stats(facts: &Facts<'_>, lines: &mut Lines) {
    let Counted {
        usage,
        errors,
        throttled,
        expired,
        received,
        refused,
    } = &facts.counted;
    let recent = &facts.recent;
    let kib = |bytes: f64| format!("{:.2}", bytes / 1_024.0);
    lines.line("total_connections_received", received);
    lines.line("total_commands_processed", usage.requests);
    let rate = recent.requests_per_s.round();
    lines.line("instantaneous_ops_per_sec", rate);
    lines.line("total_net_input_bytes", usage.bytes_in);
    lines.line("total_net_output_bytes", usage.bytes_out);
    lines.line("instantaneous_input_kbps", kib(recent.bytes_in_per_s));
    lines.line("instantaneous_output_kbps", kib(recent.bytes_out_per_s));
    lines.line("rejected_connections", refused);
    lines.line("total_error_replies", errors + throttled);
    lines.line("expired_keys", expired);
    lines.line("keyspace_hits", usage.found);
    lines.line("keyspace_misses", usage.missed);
    lines.fixed(&[
        ("sync_full", "0"),
        ("sync_partial_ok", "0"),
        ("sync_partial_err", "0"),
        ("evicted_keys", "0"),
        ("evicted_clients", "0"),
        ("pubsub_channels", "0"),
        ("pubsub_patterns", "0"),
        ("latest_fork_usec", "0"),
        ("total_forks", "0"),
    ]);
}

fn replication(facts: &Facts<'_>, lines: &mut Lines) {
    lines.fixed(&[
        ("role", "master"),
        ("connected_slaves", "0"),
        ("master_failover_state", "no-failover"),
    ]);
    lines.line("master_replid", &facts.shared.run_id);
    lines.fixed(&[
        ("master_replid2", "0000000000000000000000000000000000000000"),
        ("master_repl_offset", "0"),
        ("second_repl_offset", "-1"),
        ("repl_backlog_active", "0"),
        ("repl_backlog_size", "0"),
        ("repl_backlog_first_byte_offset", "0"),
        ("repl_backlog_histlen", "0"),
    ]);
}

/// The tenant's own CPU time on the cores, system calls for it included.
fn cpu(facts: &Facts<'_>, lines: &mut Lines) {
    lines.line("used_cpu_sys", "0.000000");
    lines.line(
        "used_cpu_user",
        format_args!("{:.6}", facts.counted.usage.cpu_ns as f64 / 1e9),
    );
}

fn command_stats(facts: &Facts<'_>, lines: &mut Lines) {
    for (name, calls) in facts.tenant.calls.commands() {
        let usec = calls.took_ns / 1_000;
        let usec_per_call = usec as f64 / calls.calls.max(1) as f64;
        lines.line(
            &format!("cmdstat_{name}"),
            format_args!(
                "calls={},usec={usec},usec_per_call={usec_per_call:.2},rejected_calls={},failed_calls={}",
                calls.calls, calls.rejected, calls.failed
            ),
        );
    }
}

fn error_stats(facts: &Facts<'_>, lines: &mut Lines) {
    for (code, count) in facts.tenant.calls.errors() {
        lines.line(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn cluster(_facts: &Facts<'_>, lines: &mut Lines) {
    lines.line("cluster_enabled", 0);
}

fn keyspace(facts: &Facts<'_>, lines: &mut Lines) {
    // Of many keys RocksDB's estimate, in which a field of a hash and the expiry of a key count
    // too.
    let censuses = facts.tenant.keys.censuses();
    for (number, census) in censuses.iter().enumerate().filter(|(_, c)| c.keys > 0) {
        let (keys, expires) = (census.keys, census.expiring);
        let ttl_ms = census.expire_at_ms_mean.saturating_sub(facts.now_ms);
        let figures = format_args!("keys={keys},expires={expires},avg_ttl={ttl_ms}");
        lines.line(&format!("db{number}"), figures);
    }
}

fn entremet(facts: &Facts<'_>, lines: &mut Lines) {
    let shared = facts.shared;
    let settings = facts.tenant.settings();
    let total = shared.tenants.totals().weight;
    lines.line("entremet_version", &shared.options.version);
    lines.line("tenant", &facts.tenant.name);
    lines.line("weight", settings.weight);
    lines.line(
        "share_percent",
        format_args!("{:.2}", 100.0 * settings.weight / total),
    );
    lines.line("scheduler", shared.tuning().discipline.word());
    lines.line("throttled_requests", facts.counted.throttled);
    lines.line("cache_bytes", facts.stored.cache_bytes);
    lines.line("cache_bytes_max", facts.stored.cache_granted_bytes);
    lines.line("cache_hits", facts.stored.cache_hits);
    lines.line("cache_misses", facts.stored.cache_misses);
}

/// As Redis's `bytesToHuman`.
fn human(bytes: u64) -> String {
    let units = [
        (1u64 << 40, "T"),
        (1 << 30, "G"),
        (1 << 20, "M"),
        (1 << 10, "K"),
    ];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, letter)) => format!("{:.2}{letter}", bytes as f64 / *unit as f64),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_in_redis() {
        assert_eq!(
            [0, 1_023, 1_024, 1_410_152].map(human),
            ["0B", "1023B", "1.00K", "1.34M"]
        );
    }

    #[test]
    fn info_tells_of_nobody_else() {
        let directory = tempfile::tempdir().unwrap();
        let shared = crate::shared::tests::shared(directory.path(), &["web", "hidden"]);
        let count = |tenant: &str, count| {
            let request = telemetry::Request {
                class: telemetry::Class::Get,
                latency_ns: 1,
                queue_ns: 1,
                disk_ns: 0,
                bytes_in: 10,
                bytes_out: 10,
                cpu_ns: 1,
                failed: false,
                parts: telemetry::TimeParts::default(),
            };
            shared
                .metrics
                .recorder(tenant, 0)
                .expect("the first")
                .record_many(&request, count);
        };
        count("web", 3);
        // More than any process's number has digits.
        count("hidden", 77_777_777);
        let tenant = shared.tenants.get("web").unwrap();
        let facts = Facts {
            shared: &shared,
            tenant: &tenant,
            operator: false,
            now_ms: 0,
            counted: Counted::of(&shared.metrics, &tenant),
            recent: shared.metrics.last_turn(&tenant.name),
            stored: KeyspaceStats::default(),
        };
        let text = render(&facts, |_| true);
        assert!(text.contains("total_commands_processed:3\r\n") && text.contains("tenant:web\r\n"));
        assert!(
            !text.contains("hidden") && !text.contains("7777777"),
            "{text}"
        );
        assert!(render(&facts, |name| name == "Cluster") == "# Cluster\r\ncluster_enabled:0\r\n");
        shared.engine.shutdown();
    }
}
