//! What the admin address shows of this server.

mod cluster;
mod device;
mod promise;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use engine::KeyspaceStats;
use policy::words::Words;
use policy::{Nanos, PrincipalId};
use settings::tenant::{Setting, SETTINGS};
use telemetry::{
    Capacities, ClusterView, Connections, EngineLinks, EngineReplicas, Explanation, LargestTurn,
    Logins, Memory, PrincipalSnapshot, ProcessUsage, PromiseAttainment, ServerSnapshot, StageKind,
    StageSnapshot, State, Storage, TenantDevice, TenantSetting, TenantSnapshot, TenantStage,
};

use crate::shared::{Phase, Posted, Seen, Shared};
use crate::tenants::Tenant;

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

    /// Where everybody is before the cores' stages.
    fn places(&self) -> BTreeMap<PrincipalId, Vec<TenantStage>> {
        let mut stages: BTreeMap<PrincipalId, Vec<TenantStage>> = BTreeMap::new();
        for core in self.shared.board.cores() {
            for posted in core.iter() {
                for (principal, seen) in &posted.seen {
                    add(stages.entry(*principal).or_default(), posted.kind, seen);
                }
            }
        }
        stages
    }

    fn connections(&self) -> Connections {
        let shared = &self.shared;
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Connections {
            open: shared.clients.count() as u64,
            max: shared.plan().connections as u64,
            newcomers: shared.house.newcomers() as u64,
            newcomers_max: shared.house.newcomers_max() as u64,
            accepted: shared.clients.total(),
            rejected: counted(&shared.counters.rejected),
            hasty: counted(&shared.counters.hasty),
            displaced: counted(&shared.counters.displaced),
            late: counted(&shared.counters.late),
            moved: counted(&shared.counters.moved),
        }
    }

    fn listen(&self) -> Vec<String> {
        let addresses = self.shared.bound(false);
        addresses.map(|(_, addr)| addr.to_string()).collect()
    }

    fn engine_links(&self) -> Option<EngineLinks> {
        let engine = self.shared.upstream.as_ref()?;
        Some(engine.links.read(engine.waits.count()))
    }

    fn engine_replicas(&self) -> Option<EngineReplicas> {
        let engine = self.shared.upstream.as_ref()?;
        let now = self.shared.options.clock.now();
        (engine.options.cluster).then(|| engine.reading.read(now))
    }
}

/// What one stage of one core looks like.
fn stage(
    core: usize,
    posted: &Posted,
    names: &BTreeMap<PrincipalId, Arc<Tenant>>,
) -> StageSnapshot {
    let seen = || posted.seen.iter().map(|(_, seen)| seen);
    let busy = posted
        .seen
        .iter()
        .filter(|(_, seen)| seen.waiting > 0 || seen.permits_in_use > 0);
    let principals =
        busy.filter_map(|(id, seen)| Some(principal(names.get(id)?, posted.kind, seen)));
    StageSnapshot {
        stage: posted.kind.name().to_string(),
        core: core as u32,
        policy: posted.discipline.word().to_string(),
        at_ns: posted.at_ns,
        busy_ns: seen().map(|seen| seen.busy_ns).sum(),
        permits: posted.permits,
        permits_missing: posted.permits_missing,
        permits_in_use: seen().map(|seen| seen.permits_in_use).sum(),
        admitted: seen().map(|seen| seen.admitted).sum(),
        charged_ns: seen().map(|seen| seen.charged_ns).sum(),
        forgiven_ns: seen().map(|seen| seen.forgiven_ns).sum(),
        principals: principals.collect(),
    }
}

fn principal(tenant: &Tenant, stage: StageKind, seen: &Seen) -> PrincipalSnapshot {
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
        reserved_permits: match stage {
            StageKind::Handler => reserved,
            _ => 0,
        },
        admitted: seen.admitted,
        explanation,
    }
}

impl telemetry::AdminSource for Source {
    fn state(&self) -> State {
        match self.shared.phase() {
            Phase::Serving => match self.shared.upstream.as_ref().and_then(|it| it.away()) {
                None => State::Ready,
                Some(why) => State::Failed(format!("the engine is away: {why}")),
            },
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
            scheduler: shared.tuning().discipline.word().to_string(),
            capacities: self.capacities(),
            listen: self.listen(),
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
            engine_links: self.engine_links(),
            engine_replicas: self.engine_replicas(),
            control: promise::control(shared),
        }
    }

    fn tenants(&self) -> Vec<TenantSnapshot> {
        let mut stages = self.places();
        let options = &self.shared.options;
        let now = (options.clock.now(), (options.wall_ms)() / 1_000);
        let tenants = self.shared.tenants.list();
        tenants
            .iter()
            .map(|tenant| {
                let places = stages.remove(&tenant.id).unwrap_or_default();
                TenantSnapshot {
                    connections_max: self.shared.house.connections_max(tenant.id) as u64,
                    ..snapshot(
                        tenant,
                        places,
                        device::tenant(&self.shared, &tenant.name),
                        now,
                    )
                }
            })
            .collect()
    }

    fn settings(&self, tenant: &str) -> Vec<TenantSetting> {
        let Some(tenant) = self.shared.tenants.get(tenant) else {
            return Vec::new();
        };
        let (settings, changed) = (tenant.settings(), tenant.set_at_run_time());
        let one = |setting: &Setting| TenantSetting {
            key: setting.name().into(),
            value: setting.value_or_default(&settings),
            text: setting.text(&settings),
            default: setting.is_default(&settings),
            set_at_run_time: changed.contains(&setting.name()),
            effect: setting.key.effect.into(),
        };
        SETTINGS.iter().map(one).collect()
    }

    fn cluster(&self, tenant: Option<&str>) -> Option<ClusterView> {
        cluster::view(&self.shared, tenant)
    }

    fn explain(&self, tenant: &str) -> Option<Explanation> {
        let tenant = self.shared.tenants.get(tenant)?;
        Some(promise::explain(&self.shared, &tenant))
    }

    fn attainment(&self, tenant: &str) -> Option<Vec<PromiseAttainment>> {
        let tenant = self.shared.tenants.get(tenant)?;
        let unix_s = (self.shared.options.wall_ms)() / 1_000;
        Some(promise::attainment(&tenant, unix_s))
    }

    fn newcomers(&self) -> TenantSnapshot {
        let nobody = self.shared.tenants.nobody();
        let places = self.places().remove(&nobody.id).unwrap_or_default();
        let house = &self.shared.house;
        TenantSnapshot {
            connections: house.newcomers() as u64,
            connections_max: house.newcomers_max() as u64,
            ..snapshot(nobody, places, None, (0, 0))
        }
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
        for (core, posted) in self.shared.board.cores().enumerate() {
            stages.extend(posted.iter().map(|posted| stage(core, posted, &names)));
        }
        stages.extend(device::stage(&self.shared));
        stages
    }
}

/// Adds what one core saw of a tenant at one stage to what all saw.
fn add(stages: &mut Vec<TenantStage>, kind: StageKind, seen: &Seen) {
    let at = stages.iter().position(|stage| stage.stage == kind.name());
    let at = at.unwrap_or_else(|| {
        stages.push(TenantStage {
            stage: kind.name().to_string(),
            ..TenantStage::default()
        });
        stages.len() - 1
    });
    let stage = &mut stages[at];
    stage.waiting += seen.waiting;
    stage.permits_in_use += seen.permits_in_use;
    stage.admitted += seen.admitted;
    stage.refused += seen.refused;
    stage.busy_ns += seen.busy_ns;
    stage.waited_ns = stage.waited_ns.saturating_add(seen.waited_ns);
}

fn snapshot(
    tenant: &Tenant,
    mut stages: Vec<TenantStage>,
    device: Option<(TenantDevice, TenantStage)>,
    now: (Nanos, u64),
) -> TenantSnapshot {
    let (device, before_it) = device.unzip();
    let mut all = stages.iter();
    let requests = all.find(|stage| stage.stage == StageKind::Request.name());
    let requests = requests.map_or(0, |stage| stage.waiting);
    stages.extend(before_it);
    stages.retain(|stage| stage.admitted + stage.waiting > 0);
    let (settings, portions) = (tenant.settings(), tenant.portions());
    let stored = tenant
        .keyspace()
        .map(|keyspace| keyspace.stats())
        .unwrap_or_default();
    TenantSnapshot {
        name: tenant.name.clone(),
        number: tenant.id.0,
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
        limit_portion: portions.limit,
        promised_portion: portions.promised,
        reserve_get_portion: portions.reserved[0],
        reserve_put_portion: portions.reserved[1],
        weight_here: settings.weight * portions.weight,
        sync: settings.durability.word().to_string(),
        connections: u64::from(tenant.connections()),
        waiting: requests,
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
        stages,
        promises: promise::promises(tenant, now),
    }
}
