//! From the configuration's words to what the server is started with.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use server::tenants::{TenantSpec, DEFAULT};
use server::{
    Capacity, Descriptors, EngineTls, Listen, Options, StorageFiles, Tls, Tuning, UpstreamOptions,
};
use settings::tenant::Settings;
use settings::units;

use super::certificates::Certificates;
use super::clocks::{wall_ms, Monotonic};
use super::descriptors;
use super::device;
use super::log::Log;
use super::Source;
use crate::config::{self, Config, Footprint};

/// Most elements of one `ENTREMET.RANGE`: a reply of 1 KiB values stays near 100 MiB.
const RANGE_COUNT_MAX: usize = 100_000;

/// The server's options.
///
/// # Errors
/// A profile of the device that cannot be used.
pub fn of(
    config: &Config,
    source: &Source,
    certificates: &Certificates,
    log: &Log,
) -> Result<Options, Box<dyn Error>> {
    let scheduler = &config.scheduler;
    let engine = &config.engine;
    let clock: Arc<dyn stage::Clock + Send + Sync> = Arc::new(Monotonic::start());
    let footprint = Footprint::of(config);
    let seed = scheduler.seed.unwrap_or_else(wall_ms);
    Ok(Options {
        listen: listen(config, certificates),
        cores: config.server.cores_or_all(),
        capacity: Capacity {
            requests_per_s: scheduler.requests.per_s() as u64,
            bytes_in_per_s: scheduler.bandwidth_in.per_s() as u64,
            bytes_out_per_s: scheduler.bandwidth_out.per_s() as u64,
        },
        value_bytes_max: config.server.max_value.get() as usize,
        work_bytes_max: config.server.max_command_memory.get(),
        memory_max: footprint.max,
        request_bytes_max: footprint.requests,
        args_max: config.server.max_arguments,
        range_count_max: RANGE_COUNT_MAX,
        chunk_bytes: scheduler.chunk.get() as usize,
        memtable_bytes: engine.memtable.get() as usize,
        pending_bytes: engine.pending.get() as usize,
        seed,
        descriptors: Descriptors {
            files: descriptors::raise(),
            storage: storage_files(engine),
        },
        tuning: tuning(config),
        tenants: tenants(config),
        engine: engine::EngineOptions {
            object_cache_bytes: engine.object_cache.get(),
            block_cache_bytes: engine.block_cache.get(),
            write_buffer_bytes: engine.write_buffers.get(),
            allotted_memory: engine.memory == config::Memory::Allotted,
            handlers: engine.handlers as usize,
            committers: engine.committers as usize,
            flush_threads: engine.flush_threads as i32,
            compaction_threads: engine.compaction_threads as i32,
            direct_io: engine.direct_io,
            idle_close: engine.idle_close.map(units::Time::duration),
            ..engine::EngineOptions::new(&engine.path)
        },
        upstream: upstream(config, certificates),
        data: engine.path.clone(),
        disk: device::of(config, &clock, seed)?,
        clock,
        wall_ms: Arc::new(wall_ms),
        thread_time: threads::cpu_ns,
        thread_times: threads::times,
        log_lines_lost: log.lost(),
        version: crate::cli::VERSION.to_string(),
        config_file: source.file.clone(),
    })
}

fn upstream(config: &Config, certificates: &Certificates) -> Option<UpstreamOptions> {
    let upstream = config.engine.upstream.as_ref()?;
    let url = upstream.url.clone();
    let tls = certificates.trust(config).map(EngineTls::new);
    Some(UpstreamOptions {
        addresses: url.addresses,
        cluster: url.cluster,
        user: url.user,
        password: url.password,
        tls: tls.map(Arc::new),
        patience: upstream.timeout.duration(),
        unmarked: upstream.unmarked.clone(),
        waiting: upstream.waiting,
        fronts: config
            .server
            .cluster
            .as_ref()
            .map(|one| one.options.clone()),
    })
}

/// Connections to an engine beside those of clients that wait there.
const LINKS: u64 = 1_000;

fn storage_files(engine: &config::Engine) -> StorageFiles {
    match &engine.upstream {
        Some(upstream) => StorageFiles::Engine {
            links: LINKS + u64::from(upstream.waiting),
        },
        None => StorageFiles::Databases {
            data_files: engine.max_open_files.into(),
        },
    }
}

/// Settings that a reload changes.
pub fn tuning(config: &Config) -> Tuning {
    let server = &config.server;
    Tuning {
        discipline: config.scheduler.request,
        control: config.control.policy,
        control_interval_ns: config.control.interval.ns(),
        admission: config.control.admission,
        slow_log_over_us: server
            .slow_log_over
            .map_or(-1, |time| (time.ns() / 1_000) as i64),
        slow_log_length: server.slow_log_length as usize,
        idle_timeout_ms: server.idle_timeout.map_or(0, units::Time::ms),
        stalled_timeout_ms: server.stalled_timeout.ms(),
        connections_max: server.max_connections as usize,
        newcomers_max: server.max_newcomers as usize,
        operator_connections: server.operator_connections as usize,
        login_timeout_ms: server.login_timeout.map_or(0, units::Time::ms),
        connections_per_s: server.connection_rate.per_s(),
    }
}

/// Tenants; where the file names none, the default one is the operator's own.
pub fn tenants(config: &Config) -> Vec<TenantSpec> {
    if config.tenants.is_empty() {
        let settings = Settings {
            admin: true,
            ..Settings::default()
        };
        return vec![TenantSpec {
            settings,
            ..TenantSpec::new(DEFAULT)
        }];
    }
    config.tenants.iter().map(tenant).collect()
}

fn tenant(tenant: &config::Tenant) -> TenantSpec {
    TenantSpec {
        name: tenant.name.clone(),
        password: tenant.password.clone(),
        plain: tenant.plain.clone(),
        settings: tenant.settings.clone(),
    }
}

fn listen(config: &Config, certificates: &Certificates) -> Vec<Listen> {
    let server = &config.server;
    let mut listen = Vec::new();
    let mut add = |addresses: &[SocketAddr], tls: Option<&Arc<Tls>>, aware| {
        listen.extend(addresses.iter().map(|addr| Listen {
            addr: *addr,
            tls: tls.cloned(),
            aware,
        }));
    };
    let aware = server.cluster.as_ref().map(|cluster| cluster.listen);
    let aware = aware.unwrap_or_default();
    add(&server.listen, None, false);
    add(aware.plain.as_slice(), None, true);
    if let (Some(tls), Some(loaded)) = (&server.tls, &certificates.clients) {
        let served = Arc::new(Tls::new(Arc::clone(&loaded.config)));
        add(&tls.listen, Some(&served), false);
        add(aware.tls.as_slice(), Some(&served), true);
    }
    listen
}
