//! Figures of the tenant that asks, as several commands show them.

use engine::{KeyspaceStats, Site};

use super::Visit;
use crate::shared::Shared;
use crate::tenants::Tenant;

/// The tenant's data in numbers.
pub fn stored(tenant: &Tenant) -> KeyspaceStats {
    let keyspace = tenant.keyspace();
    keyspace
        .map(|keyspace| keyspace.stats())
        .unwrap_or_default()
}

/// Memory that is the tenant's own: copies of its data, what it has written, its requests and
/// replies.
pub fn used_memory(tenant: &Tenant, stored: &KeyspaceStats) -> u64 {
    let data = stored.cache_bytes + stored.block_cache_bytes + stored.memtable_bytes;
    data + stored.pending_bytes + tenant.budget.held()
}

/// When its log was synced at last, in seconds since the Unix epoch; before that, when the server
/// started: whatever it found then is on the disk.
pub fn last_save_s(shared: &Shared, stored: &KeyspaceStats, now_ms: u64) -> u64 {
    let up_ms = shared.steady_ms().saturating_sub(shared.started_ms);
    let ago_ms = stored.saved_ago.map_or(up_ms, |ago| ago.as_millis() as u64);
    now_ms.saturating_sub(ago_ms) / 1_000
}

/// Brings the number of keys up to date, if it is worth it. Reads the disk.
pub fn count_keys(visit: &Visit<'_>) {
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
    let count = &mut |access: &mut engine::Access<'_>| access.census_of_all();
    match keyspace.scan(seen, Site::Apart, visit.now_ms, count) {
        Ok(count) => tenant.keys.counted(seen, at_ms, count),
        Err(error) => tracing::warn!(tenant = tenant.name, %error, "keys could not be counted"),
    }
}
