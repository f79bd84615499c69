//! What all cores, handlers and the admin address look at.

mod seating;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use engine::{Engine, KeyspaceOptions};
use parking_lot::RwLock;
use policy::Cost;
use stage::{DispatchOptions, Meter, Nanos};
use telemetry::CertificateSnapshot;

use crate::commands::Context;
use crate::connection::client::Clients;
use crate::connection::{Connection, House};
use crate::core::{Board, LargestTurn, Load, Mailbox, Message, RESOURCES};
use crate::descriptors::Plan;
use crate::options::{Options, Tuning};
use crate::tenants::{Doorkeeper, Registry, Seats, Tenant};
use crate::watchdog::Beats;

/// A queue holds each connection at most once, so that no queue can be longer than the descriptors allow.
const QUEUE_MAX: usize = 1 << 20;

/// Shards of a tenant's memory: enough that two cores seldom want the same.
const SHARDS_PER_CORE: usize = 4;

/// A tenant keeps what it has not used for this long. Its clients are silent while they wait for a commit
/// (some ms where committer and core share a processor), and must not lose their share for that: Pisces
/// 4.3.5 waits for I/O-bound connections before it ends a round, for the same reason.
const ROUND_NS: Nanos = 10_000_000;

/// Requests of a pipeline that are answered together, some tens of us of them: in halves they cost two replies, and their client is
/// woken twice. It holds whatever capacity is configured for requests.
const TOGETHER: u64 = 32;

/// A reply of more values than one whose bytes exceed this is not made as a whole but streamed, piece by piece as the
/// client takes it: clients that ask for much and read little would fill the memory.
const HELD_BYTES_MAX: usize = 8 << 20;

/// The same for a tenant that is short of memory for its requests.
const HELD_BYTES_LEAST: usize = 64 << 10;

const NS_PER_MS: Nanos = 1_000_000;

/// Why a tenant's database could not be opened.
pub type OpenError = engine::EngineError;

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
    /// Places for commands that run apart, of all tenants together.
    pub apart: Seats,
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
    /// The addresses bound.
    pub addresses: OnceLock<Vec<std::net::SocketAddr>>,
    /// When certificates expire.
    pub certificates: RwLock<Vec<CertificateSnapshot>>,
    /// Asked for by `SHUTDOWN`; the binary decides how to end.
    pub on_shutdown: Box<dyn Fn() + Send + Sync>,
    tuning: RwLock<Tuning>,
    plan: RwLock<Plan>,
    mailboxes: OnceLock<Vec<Mailbox>>,
    next_core: AtomicU64,
    phase: AtomicU8,
}

impl Shared {
    /// # Errors
    /// The system allows fewer open files than the databases need.
    pub(crate) fn new(
        options: Options,
        engine: Arc<Engine>,
        tenants: Registry,
        doorkeeper: Doorkeeper,
        run_id: String,
        on_shutdown: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, String> {
        let plan = options.descriptors.plan(tenants.count(), &options.tuning)?;
        let shared = Self {
            engine,
            tenants,
            doorkeeper,
            run_id,
            on_shutdown,
            clients: Clients::default(),
            house: Arc::default(),
            metrics: Arc::new(telemetry::Registry::new(options.cores)),
            counters: Counters::default(),
            board: Board::new(options.cores),
            apart: Seats::new(engine::REPLIES_MAX, engine::WORKS_MAX),
            loads: (0..options.cores).map(|_| Load::default()).collect(),
            beats: Arc::new(Beats::new(options.cores)),
            turns: (0..options.cores).map(|_| LargestTurn::default()).collect(),
            started_ms: options.clock.now() / NS_PER_MS,
            addresses: OnceLock::new(),
            certificates: RwLock::default(),
            tuning: RwLock::new(options.tuning),
            plan: RwLock::new(plan),
            mailboxes: OnceLock::new(),
            next_core: AtomicU64::new(0),
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
        self.broadcast(|| Message::Tuned);
    }

    pub(crate) fn set_mailboxes(&self, mailboxes: Vec<Mailbox>) {
        self.mailboxes
            .set(mailboxes)
            .unwrap_or_else(|_| unreachable!("the cores are started once"));
    }

    /// The mailbox of a core.
    pub fn mailbox(&self, core: usize) -> &Mailbox {
        &self.mailboxes.get().expect("set before the cores run")[core]
    }

    /// Sends every core a message of its own.
    pub fn broadcast(&self, message: impl Fn() -> Message) {
        for mailbox in self.mailboxes.get().into_iter().flatten() {
            mailbox.send(message());
        }
    }

    /// Gives a new connection to the cores in turn; after `AUTH` it may move once more, to where its
    /// tenant has fewest.
    pub(crate) fn hand_out(&self, connection: Box<Connection>) {
        let core = self.next_core.fetch_add(1, Ordering::Relaxed) as usize % self.options.cores;
        self.mailbox(core).send(Message::Adopt(connection));
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

    /// Where the configuration file is, if there is one.
    pub fn config_file(&self) -> Option<&PathBuf> {
        self.options.config_file.as_ref()
    }

    /// The request stage of one core.
    pub(crate) fn request_stage(&self) -> DispatchOptions<RESOURCES> {
        let capacity = self.options.capacity;
        let per_s = [
            capacity.requests_per_s,
            capacity.bytes_in_per_s,
            capacity.bytes_out_per_s,
            // One core has one second of CPU time a second.
            1_000_000_000,
        ];
        let meter = Meter {
            requests: 0,
            bytes: [false, true, true, false],
        };
        DispatchOptions {
            discipline: self.tuning().discipline,
            queue_max: QUEUE_MAX,
            seed: self.options.seed,
            turn_least: Cost([TOGETHER, 0, 0, 0]),
            round_ns: ROUND_NS,
            charge_max_ns: charge_max_ns(self.options.args_max, capacity.requests_per_s),
            ..DispatchOptions::new(per_s, meter)
        }
    }

    /// The handler stage of one core: its part of the handler threads.
    pub(crate) fn handler_stage(&self) -> DispatchOptions<1> {
        let permits = (self.options.engine.handlers / self.options.cores).max(1) as u32;
        DispatchOptions {
            discipline: self.tuning().discipline,
            queue_max: QUEUE_MAX,
            seed: self.options.seed,
            ..DispatchOptions::handlers(permits)
        }
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

    /// What a tenant is told of an error of its storage. Paths are for operators and the log; a fault that a client can
    /// meet with every request is logged once in a while.
    pub(crate) fn told(&self, tenant: &Tenant, error: &OpenError) -> String {
        let of_files = matches!(
            error,
            OpenError::Read { .. }
                | OpenError::Open { .. }
                | OpenError::Log { .. }
                | OpenError::Io { .. }
        );
        if of_files && tenant.faults.now(self.steady_ms()) {
            tracing::error!(tenant = tenant.name, %error, "the tenant's storage failed");
        }
        error.reply(tenant.operator())
    }

    /// Has a tenant's database opened and `done` told, on the thread that opened it or, if there is nothing to do or the
    /// last try is not long ago, here. Whoever asks meanwhile is told together. Does not block, and neither must `done`.
    pub(crate) fn open_keyspace(
        self: &Arc<Self>,
        tenant: &Arc<Tenant>,
        done: Box<dyn FnOnce(Option<OpenError>) + Send>,
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
                        let allotted = shared.allotments().of(&settings);
                        keyspace.set_sync(settings.durability.into());
                        keyspace.set_cache_bytes(allotted.cache_bytes);
                        keyspace.set_allotments(allotted.memory);
                        tenant.opened(keyspace);
                    }
                    done(None);
                }
                Err(error) => done(Some(error)),
            });
    }

    fn keyspace_options(self: &Arc<Self>, tenant: &Tenant) -> KeyspaceOptions {
        let settings = tenant.settings();
        let allotted = self.allotments().of(&settings);
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
            allotments: allotted.memory,
            ..KeyspaceOptions::new(settings.durability.into(), allotted.cache_bytes)
        };
        options.notify(move |committed| notified.tell_committed(&name, committed.cores))
    }

    /// The tenant's place at the device, which is told its share.
    pub(crate) fn device_hook(&self, tenant: &Tenant) -> Option<engine::device::DeviceHook> {
        let device = self.options.device.as_ref()?;
        let (principal, settings) = (device.number(&tenant.name), tenant.settings());
        device.configure(principal, settings.weight);
        device.promise(principal, settings.promise().reserved_per_s);
        Some(engine::device::DeviceHook {
            stage: Arc::clone(device) as Arc<dyn engine::device::DeviceStage>,
            principal,
        })
    }

    /// By name, since a keyspace outlives a tenant that is removed and added again.
    fn tell_committed(&self, name: &str, cores: u64) {
        let Some(tenant) = self.tenants.get(name) else {
            return;
        };
        for core in (0..self.options.cores).filter(|core| cores >> core & 1 == 1) {
            self.mailbox(core)
                .send(Message::Committed(Arc::clone(&tenant)));
        }
    }
}

/// What a request can be charged at most: one request for each of its words, and what else happens in its turn.
fn charge_max_ns(args_max: u32, requests_per_s: u64) -> Nanos {
    const TURN_NS: Nanos = 100_000_000;
    let words_ns = u128::from(args_max) * 1_000_000_000 / u128::from(requests_per_s.max(1));
    Nanos::try_from(words_ns)
        .unwrap_or(Nanos::MAX)
        .saturating_add(TURN_NS)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::descriptors::Descriptors;
    use crate::tenants::{Pool, TenantSpec};

    /// A server's state without its threads, with these tenants besides `default`. Its clocks stand still.
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
            object_cache_bytes: 64 << 20,
            memtable_bytes: 1 << 20,
            pending_bytes: 1 << 20,
            work_bytes_max: 1 << 30,
            request_bytes_max: 1 << 30,
            memory_max: 4 << 30,
            seed: 0,
            descriptors: Descriptors {
                files: 2_000,
                data_files: 16,
            },
            tuning: Tuning::default(),
            tenants: specs.clone(),
            engine: engine::EngineOptions::new(directory),
            device: None,
            data: directory.to_path_buf(),
            clock: Arc::new(stage::ManualClock::default()),
            wall_ms: Arc::new(|| 1_700_000_000_000),
            thread_time: || 0,
            thread_waited: || 0,
            log_lines_lost: Arc::new(|| 0),
            version: "0.0.0".into(),
            config_file: None,
        };
        let engine = Engine::open(options.engine.clone()).expect("an engine");
        let pool = Pool::new(options.request_bytes_max);
        let registry = Registry::open(directory, &specs, options.cores, pool).expect("a registry");
        let doorkeeper = Doorkeeper::start(Arc::clone(&options.clock)).expect("a doorkeeper");
        Shared::new(
            options,
            engine,
            registry,
            doorkeeper,
            "0".repeat(40),
            Box::new(|| {}),
        )
        .expect("enough files")
    }
}
