//! What the admin address shows of this server.

mod device;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use engine::KeyspaceStats;
use policy::PrincipalId;
use telemetry::{
    Capacities, Connections, LargestTurn, Logins, Memory, PrincipalSnapshot, ProcessUsage,
    ServerSnapshot, StageSnapshot, State, Storage, TenantDevice, TenantSnapshot, TenantStage,
};

use crate::shared::{Phase, Seen, Shared};
use crate::tenants::{Durability, Tenant};

/// Reads the server's gauges; on the admin thread.
pub struct Source {
    shared: Arc<Shared>,
}

impl Source {
    /// What requests of all tenants and of newcomers hold.
    fn requests_bytes(&self) -> u64 {
        let tenants = &self.shared.tenants;
        let held = |tenant: &Arc<Tenant>| tenant.budget.held();
        tenants.list().iter().map(held).sum::<u64>() + held(tenants.nobody())
    }

    /// A source that looks at `shared`.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    fn discipline(&self) -> String {
        crate::session::discipline_word(self.shared.tuning().discipline).to_string()
    }

    fn capacities(&self) -> Capacities {
        let (core, cores) = (
            self.shared.options.capacity,
            self.shared.options.cores as f64,
        );
        Capacities {
            requests_per_s: core.requests_per_s as f64 * cores,
            bytes_in_per_s: core.bytes_in_per_s as f64 * cores,
            bytes_out_per_s: core.bytes_out_per_s as f64 * cores,
            cpu_per_s: cores,
        }
    }

    /// The largest turns of all cores.
    fn largest_turn(&self) -> LargestTurn {
        let turns = self.shared.turns.iter().map(|turn| turn.figures());
        let [words, bytes, steps, cpu_ns] = turns.fold([0; 4], |largest, turn| {
            std::array::from_fn(|unit| largest[unit].max(turn[unit]))
        });
        LargestTurn {
            words,
            bytes,
            steps,
            cpu_ns,
        }
    }

    /// What each tenant's storage holds, of those whose keyspace has been asked for.
    fn stored(&self) -> Vec<KeyspaceStats> {
        let tenants = self.shared.tenants.list();
        tenants
            .iter()
            .filter_map(|tenant| tenant.keyspace())
            .map(|keyspace| keyspace.stats())
            .collect()
    }

    fn connections(&self) -> Connections {
        let shared = &self.shared;
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (newcomers, newcomers_max) = shared.house.newcomers();
        Connections {
            open: shared.clients.count() as u64,
            max: shared.plan().connections as u64,
            newcomers: newcomers as u64,
            newcomers_max: newcomers_max as u64,
            accepted: shared.clients.total(),
            rejected: counted(&shared.counters.rejected),
            hasty: counted(&shared.counters.hasty),
            displaced: counted(&shared.counters.displaced),
            late: counted(&shared.counters.late),
            moved: counted(&shared.counters.moved),
        }
    }

    /// What one stage of one core looks like.
    fn stage(
        &self,
        (stage, permits): (&str, u32),
        core: usize,
        seen: &[(PrincipalId, Seen)],
        names: &BTreeMap<PrincipalId, Arc<Tenant>>,
    ) -> StageSnapshot {
        let busy = seen
            .iter()
            .filter(|(_, seen)| seen.waiting > 0 || seen.permits_in_use > 0);
        let principals = busy.filter_map(|(id, seen)| Some(principal(names.get(id)?, stage, seen)));
        StageSnapshot {
            stage: stage.to_string(),
            core: core as u32,
            policy: self.discipline(),
            permits,
            permits_in_use: seen.iter().map(|(_, seen)| seen.permits_in_use).sum(),
            admitted: seen.iter().map(|(_, seen)| seen.admitted).sum(),
            charged_ns: seen.iter().map(|(_, seen)| seen.charged_ns).sum(),
            forgiven_ns: seen.iter().map(|(_, seen)| seen.forgiven_ns).sum(),
            principals: principals.collect(),
        }
    }
}

fn principal(tenant: &Tenant, stage: &str, seen: &Seen) -> PrincipalSnapshot {
    let reserved = tenant.settings().reserved_permits;
    let debt_ms = seen.debt_ns as f64 / 1e6;
    let explanation = match (seen.best_effort, seen.debt_ns) {
        (true, _) => Some(
            "beyond its contract: served when nobody in contract wants the resource".to_string(),
        ),
        (false, 1_000_000..) => Some(format!(
            "{debt_ms:.1} ms ahead of the others' service: they go first"
        )),
        _ => None,
    };
    PrincipalSnapshot {
        name: tenant.name.clone(),
        waiting: seen.waiting,
        permits_in_use: seen.permits_in_use,
        reserved_permits: if stage == "handler" { reserved } else { 0 },
        admitted: seen.admitted,
        explanation,
    }
}

impl telemetry::AdminSource for Source {
    fn state(&self) -> State {
        match self.shared.phase() {
            Phase::Serving => State::Ready,
            Phase::Draining => State::Draining("finishing what is under way before the end".into()),
            Phase::Stopped => State::Draining("stopped".into()),
        }
    }

    fn server(&self) -> ServerSnapshot {
        let shared = &self.shared;
        let stored = self.stored();
        let sum = |of: fn(&KeyspaceStats) -> u64| stored.iter().map(of).sum::<u64>();
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let usage = ProcessUsage::now();
        let memory = Memory {
            object_cache: sum(|s| s.cache_bytes),
            block_cache: shared.engine.block_cache_used_bytes(),
            memtables: sum(|s| s.memtable_bytes),
            resident: usage.resident_bytes,
            requests: self.requests_bytes(),
            requests_max: shared.options.request_bytes_max,
            process_max: shared.options.memory_max,
            max: shared.options.engine.object_cache_bytes
                + shared.options.engine.block_cache_bytes
                + shared.options.engine.write_buffer_bytes,
            ..Memory::default()
        };
        let used =
            memory.object_cache + memory.block_cache + memory.memtables + sum(|s| s.pending_bytes);
        ServerSnapshot {
            version: shared.options.version.clone(),
            redis_version: crate::session::REDIS_VERSION.to_string(),
            process_id: std::process::id(),
            uptime_s: shared.steady_ms().saturating_sub(shared.started_ms) / 1_000,
            cores: shared.options.cores as u32,
            scheduler: self.discipline(),
            capacities: self.capacities(),
            listen: shared
                .addresses
                .get()
                .into_iter()
                .flatten()
                .map(ToString::to_string)
                .collect(),
            connections: self.connections(),
            certificates: shared.certificates.read().clone(),
            logins: Logins {
                waiting: shared.doorkeeper.waiting() as u64,
                hashed: shared.doorkeeper.hashed(),
                refused: shared.doorkeeper.refused(),
            },
            memory: Memory { used, ..memory },
            largest_turn: self.largest_turn(),
            storage: Storage {
                handlers: shared.options.engine.handlers as u64,
                handler_jobs: shared.engine.jobs() as u64,
                commits: sum(|s| s.commits),
                syncs: sum(|s| s.syncs),
                commit_errors: sum(|s| s.failures),
                open_databases: stored.iter().filter(|s| s.open).count() as u64,
                expired_keys: counted(&shared.counters.expired),
            },
            cpu_user_s: usage.user_s,
            cpu_system_s: usage.system_s,
            slowlog_length: shared
                .tenants
                .list()
                .iter()
                .map(|tenant| tenant.slow_log.lock().len() as u64)
                .sum(),
            reloads: counted(&shared.counters.reloads),
            reloads_refused: counted(&shared.counters.reloads_refused),
            log_lines_lost: (shared.options.log_lines_lost)(),
            device: device::server(shared),
            device_doubt: device::doubt(shared),
        }
    }

    fn tenants(&self) -> Vec<TenantSnapshot> {
        let mut stages: BTreeMap<PrincipalId, [TenantStage; 2]> = BTreeMap::new();
        for entries in self.shared.board.cores() {
            for entry in entries.iter() {
                let [request, handler] = stages.entry(entry.principal).or_default();
                add(request, &entry.request);
                add(handler, &entry.handler);
            }
        }
        let tenants = self.shared.tenants.list();
        tenants
            .iter()
            .map(|tenant| {
                let places = stages.remove(&tenant.id).unwrap_or_default();
                TenantSnapshot {
                    connections_max: self.shared.house.connections_max(tenant.id) as u64,
                    ..snapshot(tenant, places, device::tenant(&self.shared, &tenant.name))
                }
            })
            .collect()
    }

    fn stages(&self) -> Vec<StageSnapshot> {
        let names: BTreeMap<_, _> = self
            .shared
            .tenants
            .list()
            .into_iter()
            // Whoever looks at the stages should see who makes the others wait.
            .chain([Arc::clone(self.shared.tenants.nobody())])
            .map(|tenant| (tenant.id, tenant))
            .collect();
        let mut stages = Vec::new();
        for (core, entries) in self.shared.board.cores().enumerate() {
            let at_request: Vec<_> = entries
                .iter()
                .map(|entry| (entry.principal, entry.request))
                .collect();
            let at_handler: Vec<_> = entries
                .iter()
                .map(|entry| (entry.principal, entry.handler))
                .collect();
            drop(entries);
            stages.push(self.stage(("request", 1), core, &at_request, &names));
            let permits = self.shared.outstanding.of(core);
            stages.push(self.stage(("handler", permits), core, &at_handler, &names));
        }
        stages.extend(device::stage(&self.shared));
        stages
    }
}

fn add(stage: &mut TenantStage, seen: &Seen) {
    stage.waiting += seen.waiting;
    stage.permits_in_use += seen.permits_in_use;
    stage.admitted += seen.admitted;
    stage.waited_ns = stage.waited_ns.saturating_add(seen.waited_ns);
}

fn snapshot(
    tenant: &Tenant,
    [request, handler]: [TenantStage; 2],
    device: Option<(TenantDevice, TenantStage)>,
) -> TenantSnapshot {
    let (device, before_it) = device.unzip();
    let settings = tenant.settings();
    let stored = tenant
        .keyspace()
        .map(|keyspace| keyspace.stats())
        .unwrap_or_default();
    TenantSnapshot {
        name: tenant.name.clone(),
        weight: settings.weight,
        connections_max: 0,
        connections_refused: tenant.refused.load(Ordering::Relaxed),
        request_memory_bytes: tenant.budget.held(),
        request_memory_max_bytes: tenant.budget.bytes_max(),
        reserved_permits: settings.reserved_permits,
        reserve_get_per_s: settings.reserve_get_per_s,
        reserve_put_per_s: settings.reserve_put_per_s,
        limit_requests_per_s: settings.limit.requests_per_s,
        limit_bytes_per_s: settings.limit.bytes_per_s,
        contract_per_s: settings.contract_per_s,
        sync: sync_word(settings.durability).to_string(),
        connections: u64::from(tenant.connections()),
        waiting: request.waiting,
        keys: stored.records_estimate,
        cache_hits: stored.cache_hits,
        cache_misses: stored.cache_misses,
        cache_bytes: stored.cache_bytes,
        cache_granted_bytes: stored.cache_granted_bytes,
        cache_allotment_bytes: stored.allotments.object_cache_bytes,
        block_cache_hits: stored.block_hits,
        block_cache_misses: stored.block_misses,
        block_cache_bytes: stored.block_cache_bytes,
        block_cache_granted_bytes: stored.block_cache_granted_bytes,
        block_cache_allotment_bytes: stored.allotments.block_cache_bytes,
        write_buffer_bytes: stored.memtable_bytes,
        write_buffer_granted_bytes: stored.write_buffer_granted_bytes,
        write_buffer_allotment_bytes: stored.allotments.write_buffer_bytes,
        uncommitted_bytes: stored.pending_bytes,
        write_pressure: stored.write_pressure,
        write_paused_s: stored.write_paused_ns as f64 / 1e9,
        disk_bytes: stored.disk_bytes,
        write_error: stored.error.map(|error| error.to_string()),
        device,
        stages: [("request", request), ("handler", handler)]
            .map(|(name, stage)| TenantStage {
                stage: name.to_string(),
                ..stage
            })
            .into_iter()
            .chain(before_it)
            .filter(|stage| stage.admitted + stage.waiting > 0)
            .collect(),
    }
}

/// As the configuration says it.
fn sync_word(durability: Durability) -> &'static str {
    match durability {
        Durability::Always => "always",
        Durability::EverySecond => "every 1s",
        Durability::Never => "never",
    }
}
