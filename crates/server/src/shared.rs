//! What all cores, handlers and the admin address look at.

mod admission;
mod board;
mod change;
mod largest;
mod load;
mod news;
mod seating;
mod steered;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use engine::{Engine, EngineError, KeyspaceOptions};
use parking_lot::{Mutex, RwLock};
use policy::lend::Lend;
use policy::slo::control::DEVICE;
use policy::Nanos;
use telemetry::CertificateSnapshot;

use crate::data::Context;
use crate::options::{Listen, Options, Plan, Tuning};
use crate::slo::Demands;
use crate::tenants::{Apart, Clients, Doorkeeper, House, Registry, Tenant};
use crate::upstream::Upstream;
use crate::watchdog::Beats;

pub use admission::{Admitted, Party};
pub use board::{Board, Posted, Seen};
pub use largest::LargestTurn;
pub use load::Load;
pub use news::{Cores, News};
pub use steered::{Controlled, Steered};

/// Shards of a tenant's memory: enough that two cores seldom want the same.
const SHARDS_PER_CORE: usize = 4;

/// A reply of more values than one whose bytes exceed this is not made as a whole but streamed,
/// piece by piece as the client takes it: clients that ask for much and read little would fill the
/// memory.
const HELD_BYTES_MAX: usize = 8 << 20;

/// The same for a tenant that is short of memory for its requests.
const HELD_BYTES_LEAST: usize = 64 << 10;

const NS_PER_MS: Nanos = 1_000_000;

/// Counts of the whole server.
#[derive(Default)]
pub struct Counters {
    /// Connections refused because too many were open.
    pub rejected: AtomicU64,
    /// Connections refused because their peer connected too often.
    pub hasty: AtomicU64,
    /// Connections closed for others to come, before they spoke for a tenant.
    pub displaced: AtomicU64,
    /// Connections closed because they did not log in in time.
    pub late: AtomicU64,
    /// Connections moved to a core with less to do.
    pub moved: AtomicU64,
    /// Configuration reloads taken.
    pub reloads: AtomicU64,
    /// Configuration reloads refused for errors.
    pub reloads_refused: AtomicU64,
    /// Keys deleted because their time had come.
    pub expired: AtomicU64,
}

/// How far the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Serving.
    Serving = 0,
    /// Finishing what it has.
    Draining = 1,
    /// Stopped.
    Stopped = 2,
}

/// The common state.
pub struct Shared {
    /// What the server was started with.
    pub options: Options,
    /// Storage.
    pub engine: Arc<Engine>,
    /// The engine that keeps the data instead.
    pub upstream: Option<Arc<Upstream>>,
    /// Tenants.
    pub tenants: Registry,
    /// Connections.
    pub clients: Clients,
    /// Who may hold a connection.
    pub house: Arc<House>,
    /// Password checks.
    pub doorkeeper: Doorkeeper,
    /// Measurements.
    pub metrics: Arc<telemetry::Registry>,
    /// Counts.
    pub counters: Counters,
    /// What the cores' stages last looked like.
    pub board: Board,
    /// Passes for commands that run apart, of all tenants together.
    pub apart: Apart,
    /// Permits of the handlers, which cores lend each other.
    pub permits: Mutex<Lend>,
    /// What the cores show each other of their load.
    pub loads: Box<[Load]>,
    /// Whether each core goes on.
    pub beats: Arc<Beats>,
    /// The largest turns of each core.
    pub turns: Box<[LargestTurn]>,
    /// When the server started, ms since the Unix epoch.
    pub started_ms: u64,
    /// A random name of this process, 40 hexadecimal digits, as `CLUSTER MYID` wants it.
    pub run_id: String,
    /// The addresses bound, in the order of the options.
    pub addresses: OnceLock<Vec<SocketAddr>>,
    /// When certificates expire.
    pub certificates: RwLock<Vec<CertificateSnapshot>>,
    /// Asked for by `SHUTDOWN`; the binary decides how to end.
    pub on_shutdown: Box<dyn Fn() + Send + Sync>,
    /// What requests asked for lately.
    pub demands: RwLock<Demands>,
    tuning: RwLock<Tuning>,
    steered: RwLock<Arc<Steered>>,
    controlled: RwLock<Controlled>,
    plan: RwLock<Plan>,
    cores: OnceLock<Box<dyn Cores>>,
    phase: AtomicU8,
}

impl Shared {
    /// # Errors
    /// The system allows fewer open files than the databases need.
    pub(crate) fn new(
        options: Options,
        engine: Arc<Engine>,
        upstream: Option<Arc<Upstream>>,
        tenants: Registry,
        doorkeeper: Doorkeeper,
        run_id: String,
        on_shutdown: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, String> {
        let plan = options.descriptors.plan(tenants.count(), &options.tuning)?;
        let shared = Self {
            engine,
            upstream,
            tenants,
            doorkeeper,
            run_id,
            on_shutdown,
            clients: Clients::default(),
            house: Arc::default(),
            metrics: Arc::new(telemetry::Registry::new(options.cores)),
            counters: Counters::default(),
            board: Board::new(options.cores),
            apart: Apart::new(engine::REPLIES_MAX, engine::WORKS_MAX),
            permits: Mutex::new(Lend::new(options.cores, options.handlers_each())),
            loads: (0..options.cores).map(|_| Load::default()).collect(),
            beats: Arc::new(Beats::new(options.cores)),
            turns: (0..options.cores).map(|_| LargestTurn::default()).collect(),
            started_ms: options.clock.now() / NS_PER_MS,
            addresses: OnceLock::new(),
            certificates: RwLock::default(),
            demands: RwLock::default(),
            tuning: RwLock::new(options.tuning),
            steered: RwLock::default(),
            controlled: RwLock::default(),
            plan: RwLock::new(plan),
            cores: OnceLock::new(),
            phase: AtomicU8::new(Phase::Serving as u8),
            options,
        };
        for tenant in shared.tenants.list() {
            shared.house.enter(tenant.id, tenant.claim());
        }
        shared.carry_out(plan);
        shared.say_shortage(&plan);
        Ok(shared)
    }

    /// Settings that can change at run time.
    pub fn tuning(&self) -> Tuning {
        *self.tuning.read()
    }

    /// Changes settings and tells the cores.
    pub fn tune(&self, change: impl FnOnce(&mut Tuning)) {
        let mut tuning = self.tuning.write();
        change(&mut tuning);
        drop(tuning);
        self.seat();
        self.tell_all(|| News::Tuned);
    }

    /// What a controller has given.
    pub fn steered(&self) -> Arc<Steered> {
        Arc::clone(&self.steered.read())
    }

    /// From now on, this is what a controller gives. Those who must know are told afterwards.
    pub(crate) fn steer(&self, steered: Arc<Steered>) {
        *self.steered.write() = steered;
    }

    /// What the controller did last, and why.
    pub fn last_control(&self) -> Controlled {
        self.controlled.read().clone()
    }

    /// The controller has decided or failed: that is noted, with the time of the day in s.
    pub(crate) fn note_control(&self, note: impl FnOnce(&mut Controlled, u64)) {
        let unix_s = (self.options.wall_ms)() / 1_000;
        note(&mut self.controlled.write(), unix_s);
    }

    /// The cores are there.
    pub(crate) fn set_cores(&self, cores: Box<dyn Cores>) {
        let again = self.cores.set(cores).is_err();
        assert!(!again, "the cores are started once");
    }

    /// Tells a core; before they are there, nobody.
    pub fn tell(&self, core: usize, news: News) {
        if let Some(cores) = self.cores.get() {
            cores.tell(core, news);
        }
    }

    /// Tells every core.
    pub fn tell_all(&self, news: impl Fn() -> News) {
        (0..self.options.cores).for_each(|core| self.tell(core, news()));
    }

    /// How far the server is.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Serving,
            1 => Phase::Draining,
            _ => Phase::Stopped,
        }
    }

    pub(crate) fn enter_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// Where clients are accepted: those that know of the cluster of fronts, or all others.
    pub fn bound(&self, aware: bool) -> impl Iterator<Item = (&Listen, SocketAddr)> {
        let addresses = self.addresses.get().into_iter().flatten().copied();
        let bound = self.options.listen.iter().zip(addresses);
        bound.filter(move |(listen, _)| listen.aware == aware)
    }

    /// Where the configuration file is, if there is one.
    pub fn config_file(&self) -> Option<&PathBuf> {
        self.options.config_file.as_ref()
    }

    /// Milliseconds by the clock that does not jump: for how long something has been so.
    pub(crate) fn steady_ms(&self) -> u64 {
        self.options.clock.now() / NS_PER_MS
    }

    /// What a command of `tenant` needs besides its keys.
    pub(crate) fn context<'t>(&self, tenant: &'t Tenant) -> Context<'t> {
        Context {
            cursors: &tenant.cursors,
            value_bytes_max: self.options.value_bytes_max,
            range_count_max: self.options.range_count_max,
            held_bytes_max: match tenant.budget.short() {
                true => HELD_BYTES_LEAST,
                false => HELD_BYTES_MAX,
            },
        }
    }

    /// What a tenant is told of an error of its storage. Paths are for operators and the log; a
    /// fault that a client can meet with every request is logged once in a while.
    pub(crate) fn told(&self, tenant: &Tenant, error: &EngineError) -> String {
        let of_files = matches!(
            error,
            EngineError::Read { .. }
                | EngineError::Open { .. }
                | EngineError::Log { .. }
                | EngineError::Io { .. }
        );
        if of_files && tenant.faults.now(self.steady_ms()) {
            tracing::error!(tenant = tenant.name, %error, "the tenant's storage failed");
        }
        error.reply(tenant.operator())
    }

    /// Has a tenant's database opened and `done` told, on the thread that opened it or, if there is
    /// nothing to do or the last try is not long ago, here. Whoever asks meanwhile is told
    /// together. Does not block, and neither must `done`.
    pub(crate) fn open_keyspace(
        self: &Arc<Self>,
        tenant: &Arc<Tenant>,
        done: Box<dyn FnOnce(Option<EngineError>) + Send>,
    ) {
        if tenant.keyspace().is_some() {
            return done(None);
        }
        let (asked, of) = (Arc::clone(self), Arc::clone(tenant));
        let options = move || asked.keyspace_options(&of);
        let (shared, tenant) = (Arc::clone(self), Arc::clone(tenant));
        let name = tenant.name.clone();
        self.engine
            .open_keyspace(&name, options, move |opened| match opened {
                Ok(keyspace) => {
                    if tenant.keyspace().is_none() {
                        // It may be open still from a tenant of this name that was removed.
                        let settings = tenant.settings();
                        let allotments = shared.allotments().of(&settings);
                        keyspace.set_sync(settings.durability);
                        keyspace.set_allotments(allotments);
                        tenant.opened(keyspace);
                    }
                    done(None);
                }
                Err(error) => done(Some(error)),
            });
    }

    fn keyspace_options(self: &Arc<Self>, tenant: &Tenant) -> KeyspaceOptions {
        let settings = tenant.settings();
        let allotments = self.allotments().of(&settings);
        let (notified, name) = (Arc::clone(self), tenant.name.clone());
        let limits = &self.options;
        let options = KeyspaceOptions {
            memtable_bytes: limits.memtable_bytes,
            pending_bytes: limits.pending_bytes,
            work_bytes_max: limits.work_bytes_max,
            allowance: Some(Arc::clone(&tenant.budget) as Arc<dyn engine::Allowance>),
            max_open_files: i32::try_from(self.plan().data_files).unwrap_or(i32::MAX),
            shards: (SHARDS_PER_CORE * limits.cores).clamp(8, 64),
            device: self.device_hook(tenant),
            ..KeyspaceOptions::new(settings.durability, allotments)
        };
        options.notify(move |committed| notified.tell_committed(&name, committed.cores))
    }

    /// The tenant's place at the device, which is told its share.
    pub(crate) fn device_hook(&self, tenant: &Tenant) -> Option<engine::device::DeviceHook> {
        let hook = self.options.disk.hook(&tenant.name)?;
        // Read after the tenant is listed: a stage that comes now is told of all that are.
        if let Some(device) = self.options.disk.stage() {
            let settings = tenant.settings();
            let (share, part) = self.steered().of(tenant.id);
            let weight = share.map(|given| given.share[DEVICE] * self.tenants.totals().weight);
            device.configure(hook.principal, weight.unwrap_or(settings.weight));
            let kept = share.map_or(settings.reserved_ios, |given| given.reserved[DEVICE]);
            device.keep_free(hook.principal, kept, part);
            device.set_lanes(hook.principal, &tenant.meters().lanes(false));
            device.promise(hook.principal, settings.promise().reserved_per_s);
        }
        Some(hook)
    }

    /// By name, since a keyspace outlives a tenant that is removed and added again.
    fn tell_committed(&self, name: &str, cores: u64) {
        let Some(tenant) = self.tenants.get(name) else {
            return;
        };
        for core in (0..self.options.cores).filter(|core| cores >> core & 1 == 1) {
            self.tell(core, News::Committed(Arc::clone(&tenant)));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::options::{Descriptors, StorageFiles};
    use crate::tenants::{Pool, TenantSpec};

    /// A server's state without its threads, with these tenants besides `default`. Its clocks stand
    /// still.
    pub fn shared(directory: &std::path::Path, tenants: &[&str]) -> Shared {
        let specs: Vec<TenantSpec> = tenants.iter().map(|name| TenantSpec::new(name)).collect();
        let options = Options {
            listen: Vec::new(),
            cores: 2,
            capacity: crate::Capacity::default(),
            value_bytes_max: 512 << 20,
            args_max: 1 << 20,
            range_count_max: 1_000,
            chunk_bytes: 64 << 10,
            memtable_bytes: 1 << 20,
            pending_bytes: 1 << 20,
            work_bytes_max: 1 << 30,
            request_bytes_max: 1 << 30,
            memory_max: 4 << 30,
            seed: 0,
            descriptors: Descriptors {
                files: 2_000,
                storage: StorageFiles::Databases { data_files: 16 },
            },
            tuning: Tuning::default(),
            tenants: specs.clone(),
            engine: engine::EngineOptions::new(directory),
            disk: crate::device::Disk::unscheduled("nobody asks for it"),
            upstream: None,
            data: directory.to_path_buf(),
            clock: Arc::new(stage::ManualClock::default()),
            wall_ms: Arc::new(|| 1_700_000_000_000),
            thread_time: || 0,
            thread_times: threads::Times::default,
            log_lines_lost: Arc::new(|| 0),
            version: "0.0.0".into(),
            config_file: None,
        };
        let engine = Engine::open(options.engine.clone()).expect("an engine");
        let pool = Pool::new(options.request_bytes_max);
        let clock = Arc::clone(&options.clock);
        let registry = Registry::open(directory, &specs, options.cores, pool, clock);
        let registry = registry.expect("a registry");
        let doorkeeper = Doorkeeper::start(Arc::clone(&options.clock)).expect("a doorkeeper");
        Shared::new(
            options,
            engine,
            None,
            registry,
            doorkeeper,
            "0".repeat(40),
            Box::new(|| {}),
        )
        .expect("enough files")
    }
}
