//! `INFO`: Redis's sections with the asking tenant's numbers. Nothing in it tells of another tenant.
//!
//! Everything in it is a counter that lies ready, but for the number of keys, which is counted when it is asked for and
//! has changed; what only the whole server has (resident memory, CPU time of the process) is the admin address's to tell.

use std::fmt::Write;
use std::sync::Arc;

use engine::{KeyspaceStats, Place};
use policy::words::Words;

use super::Visit;
use crate::commands::is;
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
        stored: tenant
            .keyspace()
            .map(|keyspace| keyspace.stats())
            .unwrap_or_default(),
    };
    let text = render(&facts, wanted);
    visit.reply().verbatim(&text);
}

/// Brings the number of keys up to date, if it is worth it. Reads the disk.
fn count_keys(visit: &Visit<'_>) {
    let (tenant, at_ms) = (visit.tenant, visit.shared.steady_ms());
    let Some(keyspace) = tenant.keyspace() else {
        return;
    };
    // Nobody waits for somebody else's count, with a permit in hand: the last one stands.
    let Some(_counting) = tenant.keys.counting.try_lock() else {
        return;
    };
    let seen = keyspace.committed();
    if !tenant.keys.stale(seen, at_ms) {
        return;
    }
    let count = &mut |access: &mut engine::Access<'_>| access.estimate_keys();
    match keyspace.scan(seen, Place::Apart, visit.now_ms, count) {
        Ok(count) => tenant.keys.counted(seen, at_ms, count),
        Err(error) => tracing::warn!(tenant = tenant.name, %error, "keys could not be counted"),
    }
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
    let addresses = shared.addresses.get().into_iter().flatten();
    let mut plain = addresses
        .zip(&shared.options.listen)
        .filter(|(_, listen)| listen.tls.is_none());
    plain.next().map_or(0, |(addr, _)| addr.port())
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
    lines.fixed(&[("blocked_clients", "0"), ("tracking_clients", "0")]);
}

fn memory(facts: &Facts<'_>, lines: &mut Lines) {
    let stored = &facts.stored;
    let used = stored.cache_bytes + stored.memtable_bytes + stored.pending_bytes;
    lines.line("used_memory", used);
    lines.line("used_memory_human", human(used));
    lines.line("used_memory_dataset", stored.cache_bytes);
    lines.line("mem_clients_normal", facts.tenant.budget.held());
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
    lines.fixed(&[
        ("loading", "0"),
        ("async_loading", "0"),
        ("rdb_changes_since_last_save", "0"),
        ("rdb_bgsave_in_progress", "0"),
        ("rdb_last_bgsave_status", "ok"),
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
    } = &facts.counted;
    lines.line("total_commands_processed", usage.requests);
    lines.line("total_net_input_bytes", usage.bytes_in);
    lines.line("total_net_output_bytes", usage.bytes_out);
    lines.line("total_error_replies", errors + throttled);
    lines.line("expired_keys", expired);
    lines.line("keyspace_hits", usage.found);
    lines.line("keyspace_misses", usage.missed);
    lines.fixed(&[
        ("evicted_keys", "0"),
        ("evicted_clients", "0"),
        ("pubsub_channels", "0"),
        ("pubsub_patterns", "0"),
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
    // RocksDB's estimate, in which a field of a hash and the expiry of a key count too.
    let keys = facts.tenant.keys.count();
    if keys > 0 {
        // How many of them expire is not counted.
        lines.line("db0", format_args!("keys={keys},expires=0,avg_ttl=0"));
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
        count("hidden", 7_777);
        let tenant = shared.tenants.get("web").unwrap();
        let facts = Facts {
            shared: &shared,
            tenant: &tenant,
            operator: false,
            now_ms: 0,
            counted: Counted::of(&shared.metrics, &tenant),
            stored: KeyspaceStats::default(),
        };
        let text = render(&facts, |_| true);
        assert!(text.contains("total_commands_processed:3\r\n") && text.contains("tenant:web\r\n"));
        assert!(!text.contains("hidden") && !text.contains("7777"), "{text}");
        assert!(render(&facts, |name| name == "Cluster") == "# Cluster\r\ncluster_enabled:0\r\n");
        shared.engine.shutdown();
    }
}
