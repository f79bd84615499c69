//! `MEMORY …`: what the asking tenant's memory is used for, and what is wrong with it.

use commands::MemoryCommand;
use engine::KeyspaceStats;

use super::figures::{count_keys, stored, used_memory};
use super::Visit;

/// So many lookups tell something of a cache.
const LOOKUPS_MIN: u64 = 1_000;
/// A cache that answers fewer of them than this part, and is full, is too small.
const HITS_MIN: f64 = 0.8;
/// A cache is full from this part of what it may have.
const FULL: f64 = 0.9;
/// Writes pause from here on (`write_pressure`).
const PRESSURE: f64 = 0.5;

/// Runs a `MEMORY` subcommand.
pub fn run(command: MemoryCommand, visit: &mut Visit<'_>) {
    match command {
        MemoryCommand::Stats => stats(visit),
        MemoryCommand::Doctor => {
            let short = visit.tenant.budget.short();
            let text = diagnosis(&stored(visit.tenant), short);
            visit.reply().verbatim(&text);
        }
        // The allocator serves all tenants at once; what it holds for all is for the admin address
        // to tell.
        MemoryCommand::MallocStats => {
            let text =
                "The allocator does not count by tenant. MEMORY STATS tells what is counted.";
            visit.reply().verbatim(text);
        }
    }
}

/// `MEMORY STATS`: Redis's names where Redis has the same, and bytes.
fn stats(visit: &mut Visit<'_>) {
    count_keys(visit);
    let tenant = visit.tenant;
    let stored = stored(tenant);
    let used = used_memory(tenant, &stored);
    let dataset = stored.cache_bytes + stored.block_cache_bytes;
    let figures = [
        ("total.allocated", used),
        ("startup.allocated", 0),
        ("replication.backlog", 0),
        ("clients.slaves", 0),
        ("clients.normal", tenant.budget.held()),
        ("aof.buffer", stored.pending_bytes),
        ("overhead.total", used - dataset),
        ("keys.count", tenant.keys.keys()),
        ("dataset.bytes", dataset),
        ("cache.bytes", stored.cache_bytes),
        ("cache.bytes.max", stored.cache_granted_bytes),
        ("block-cache.bytes", stored.block_cache_bytes),
        ("block-cache.bytes.max", stored.block_cache_granted_bytes),
        ("write-buffers.bytes", stored.memtable_bytes),
        ("write-buffers.bytes.max", stored.write_buffer_granted_bytes),
        ("disk.bytes", stored.disk_bytes),
    ];
    let percentage = 100.0 * dataset as f64 / used.max(1) as f64;
    let mut reply = visit.reply();
    reply.map(figures.len() + 1);
    for (name, bytes) in figures {
        reply.bulk(name.as_bytes());
        reply.int(bytes as i64);
    }
    reply.bulk(b"dataset.percentage");
    reply.double(percentage);
}

/// What `MEMORY DOCTOR` says.
fn diagnosis(stored: &KeyspaceStats, short_of_requests: bool) -> String {
    let mut found = Vec::new();
    let lookups = stored.cache_hits + stored.cache_misses;
    let hits = stored.cache_hits as f64 / lookups.max(1) as f64;
    let full = stored.cache_bytes as f64 >= FULL * stored.cache_granted_bytes as f64;
    if lookups >= LOOKUPS_MIN && hits < HITS_MIN && full {
        found.push(format!(
            "The object cache is full and answered {:.0} % of the lookups. More would stay in memory with a larger `cache`.",
            100.0 * hits
        ));
    }
    if stored.write_pressure >= PRESSURE {
        found.push(format!(
            "Writes pause: compaction is {} MiB behind. It catches up when less is written; larger `write_buffers` mean less of it.",
            stored.compaction_debt_bytes >> 20
        ));
    }
    if short_of_requests {
        found.push(
            "There was too little memory for requests lately: they waited, or were refused. Send smaller ones, read replies \
             sooner, or have `request_memory` raised."
                .into(),
        );
    }
    if stored.error.is_some() {
        found.push(
            "Writes are refused, as the storage failed: a write is answered with the reason."
                .into(),
        );
    }
    match found.is_empty() {
        true => "I can find no problem with your memory.\n".into(),
        false => found.iter().map(|line| format!("* {line}\n")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_cache_late_compactions_and_a_shortage_are_told() {
        let well = KeyspaceStats {
            cache_hits: 900,
            cache_misses: 100,
            cache_bytes: 99,
            cache_granted_bytes: 100,
            ..KeyspaceStats::default()
        };
        assert_eq!(
            diagnosis(&well, false),
            "I can find no problem with your memory.\n"
        );
        let small = KeyspaceStats {
            cache_misses: 300,
            ..well.clone()
        };
        assert!(
            diagnosis(&small, false).starts_with("* The object cache is full and answered 75 %")
        );
        let roomy = KeyspaceStats {
            cache_granted_bytes: 1_000,
            ..small.clone()
        };
        assert!(diagnosis(&roomy, false).starts_with("I can find no problem"));
        let behind = KeyspaceStats {
            write_pressure: 0.7,
            compaction_debt_bytes: 5 << 20,
            ..small
        };
        let told = diagnosis(&behind, true);
        assert_eq!(told.lines().count(), 3, "{told}");
        assert!(told.contains("compaction is 5 MiB behind"), "{told}");
    }
}
