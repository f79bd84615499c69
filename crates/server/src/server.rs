//! Starting, changing and ending a server.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use front::Both;
use mio::Poll;
use policy::{Nanos, PrincipalId};
use ring::rand::{SecureRandom, SystemRandom};
use telemetry::StageKind;

use crate::control::Controller;
use crate::core::{Core, Door, Mailbox};
use crate::options::{Options, Tuning};
use crate::provide::Provider;
use crate::session::kept_at_all_fronts;
use crate::shared::{News, Phase, Shared};
use crate::slo::{throughput, Elsewhere, Meter, Meters, Reading};
use crate::tenants::{Doorkeeper, Pool, Registry, StoreError, Tenant, TenantSpec};
use crate::upstream::{self, AskedOf, ContractSeen, Kept, Lookout, Trust, Upstream, Which};
use crate::watchdog::Watchdog;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Storage.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// The list of tenants.
    #[error(transparent)]
    Tenants(#[from] StoreError),
    /// The network or the system.
    #[error("{0}")]
    System(String),
}

/// A running server. Dropping it does not stop it; [`Server::stop`] does.
pub struct Server {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    provider: Option<Provider>,
    controller: Controller,
    watchdog: Watchdog,
    lookout: Option<Lookout>,
}

impl Server {
    /// Opens the data, binds the addresses, starts the cores.
    ///
    /// `on_shutdown` is called when a client asks for `SHUTDOWN`.
    ///
    /// # Errors
    /// Anything that keeps it from serving, with what to do about it.
    pub fn start(
        options: Options,
        on_shutdown: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, ServerError> {
        let engine = engine::Engine::open(options.engine.clone())?;
        let upstream = options.upstream.clone().map(Upstream::find).transpose();
        let upstream = upstream.map_err(ServerError::System)?.map(Arc::new);
        let tenants = Registry::open(
            &options.data,
            &options.tenants,
            options.cores,
            Pool::new(options.request_bytes_max),
            Arc::clone(&options.clock),
        )?;
        if let Some(upstream) = &upstream {
            let list = tenants.list();
            let parts = list
                .iter()
                .map(|one| (one.name.clone(), one.settings().partitions));
            let enrolled = upstream.enroll(&parts.collect::<Vec<_>>());
            enrolled.map_err(ServerError::System)?;
        }
        warn_of_idle_settings(&tenants, upstream.as_deref());
        let doorkeeper =
            Doorkeeper::start(Arc::clone(&options.clock)).map_err(ServerError::System)?;
        let run_id = run_id()?;
        let shared = Shared::new(
            options,
            engine,
            upstream,
            tenants,
            doorkeeper,
            run_id,
            on_shutdown,
        )
        .map_err(ServerError::System)?;
        let shared = Arc::new(shared);
        let threads = start_cores(&shared).map_err(|e| ServerError::System(e.to_string()))?;
        let lookout = start_lookout(&shared).map_err(|e| ServerError::System(e.to_string()))?;
        let watchdog = Watchdog::start(Arc::clone(&shared.beats))
            .map_err(|e| ServerError::System(e.to_string()))?;
        let provider = Provider::start(&shared).map_err(|e| ServerError::System(e.to_string()))?;
        let controller =
            Controller::start(&shared).map_err(|e| ServerError::System(e.to_string()))?;
        shared.promise_the_device();
        shared.allot_memory();
        Ok(Self {
            shared,
            threads,
            provider,
            controller,
            watchdog,
            lookout,
        })
    }

    /// The addresses on which clients are accepted: those that know of the cluster of fronts, or
    /// all others.
    pub fn addresses(&self, aware: bool) -> Vec<SocketAddr> {
        let bound = self.shared.bound(aware);
        bound.map(|(_, address)| address).collect()
    }

    /// What the admin address shows.
    pub fn admin_source(&self) -> Arc<dyn telemetry::AdminSource> {
        Arc::new(crate::source::Source::new(Arc::clone(&self.shared)))
    }

    /// The measurements of every tenant.
    pub fn metrics(&self) -> Arc<telemetry::Registry> {
        Arc::clone(&self.shared.metrics)
    }

    /// Takes over the tenants and tunings of a configuration read anew.
    pub fn reload(&self, tenants: &[TenantSpec], tuning: Tuning) {
        self.shared.tune(|now| *now = tuning);
        self.shared.reload(tenants);
    }

    /// Says when the certificates that are served expire.
    pub fn certificates(&self, certificates: Vec<telemetry::CertificateSnapshot>) {
        *self.shared.certificates.write() = certificates;
    }

    /// Serves TLS with this from now on, where it is served.
    pub fn renew(&self, tls: &Arc<rustls::ServerConfig>) {
        for listen in self.shared.options.listen.iter() {
            if let Some(served) = &listen.tls {
                served.set(Arc::clone(tls));
            }
        }
    }

    /// Trusts the engine so from now on, where TLS is spoken to it.
    pub fn trust(&self, trust: Trust) {
        let upstream = self.shared.options.upstream.as_ref();
        if let Some(tls) = upstream.and_then(|upstream| upstream.tls.as_ref()) {
            tls.set(trust);
        }
    }

    /// A reload was refused for its errors; counted for the metrics.
    pub fn reload_refused(&self) {
        self.shared
            .counters
            .reloads_refused
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    /// Takes no new connection and no new request; what is under way is finished.
    pub fn drain(&self) {
        self.shared.enter_phase(Phase::Draining);
        self.shared.tell_all(|| News::Drain);
    }

    /// True once no connection is left.
    pub fn drained(&self) -> bool {
        self.shared.clients.count() == 0
    }

    /// Ends the cores, then the storage: every committed write is on the disk when it returns.
    pub fn stop(self) {
        self.watchdog.stop();
        if let Some(lookout) = self.lookout {
            lookout.stop();
        }
        self.shared.enter_phase(Phase::Stopped);
        self.shared.tell_all(|| News::Stop);
        for thread in self.threads {
            // A panic would have ended the process.
            let _ = thread.join();
        }
        if let Some(provider) = self.provider {
            provider.stop();
        }
        self.controller.stop();
        self.shared.engine.shutdown();
    }
}

/// Looks at the engine behind this server, where there is one.
fn start_lookout(shared: &Arc<Shared>) -> io::Result<Option<Lookout>> {
    let Some(upstream) = &shared.upstream else {
        return Ok(None);
    };
    let house = Told(Arc::clone(shared));
    let at = Both::each(|tls| {
        let mut bound = shared.bound(true);
        let kind = bound.find(|(listen, _)| listen.tls.is_some() == tls);
        kind.map(|(_, address)| address)
    });
    let clock = Arc::clone(&shared.options.clock);
    Lookout::start(Arc::clone(upstream), at, clock, house).map(Some)
}

/// Who is told what follows from a look at the engine.
struct Told(Arc<Shared>);

impl Told {
    /// For how long something of each tenant has waited at handlers, which before an engine stand
    /// for its nodes.
    fn held_ns(&self) -> HashMap<PrincipalId, Nanos> {
        let mut held = HashMap::new();
        for core in self.0.board.cores() {
            let posted = core.iter();
            for handlers in posted.filter(|one| one.kind == StageKind::Handler) {
                for (principal, seen) in &handlers.seen {
                    *held.entry(*principal).or_default() += seen.occupied_ns;
                }
            }
        }
        held
    }
}

impl upstream::House for Told {
    fn tenants(&self) -> Vec<upstream::Seen> {
        let mut usages: HashMap<_, _> = self.0.metrics.usages().into_iter().collect();
        let held = self.held_ns();
        let tenants = self.0.tenants.list();
        let seen = tenants.iter().map(|tenant| upstream::Seen {
            tenant: tenant.name.clone(),
            principal: tenant.id,
            promise: tenant.settings().promise(),
            contracts: contracts(&tenant.meters()),
            usage: usages.remove(&tenant.name).unwrap_or_default(),
            held_ns: held.get(&tenant.id).copied().unwrap_or_default(),
            connected: tenant.connections() > 0,
        });
        seen.collect()
    }

    fn keep(&self, tenant: &str, kept: &Kept) {
        let Some(tenant) = self.0.tenants.get(tenant) else {
            return; // It was removed just now.
        };
        let now = self.0.options.clock.now();
        let contracts = tenant.meters().keep(now, &kept.contracts);
        if tenant.portions() == kept.portions && !contracts {
            return;
        }
        tenant.set_portions(kept.portions);
        self.0.tell_all(|| News::Configure(Arc::clone(&tenant)));
    }

    fn promises(&self) -> Vec<(Which, Reading)> {
        let tenants = self.0.tenants.list().into_iter();
        let of = |tenant: Arc<Tenant>| {
            let meters = tenant.meters();
            let read = |meter: &Arc<Meter>| ((tenant.name.clone(), meter.name()), meter.read());
            meters.all().iter().map(read).collect::<Vec<_>>()
        };
        tenants.flat_map(of).collect()
    }

    fn attained(&self, fronts: usize, mut elsewhere: BTreeMap<Which, Elsewhere>) {
        let now = self.0.options.clock.now();
        for tenant in self.0.tenants.list() {
            for meter in tenant.meters().all() {
                let which = (tenant.name.clone(), meter.name());
                let told = elsewhere.remove(&which).unwrap_or_default();
                let mut whole = meter.whole.lock();
                whole.hear(fronts, &told, || meter.read(), now);
            }
        }
    }

    fn kept(&self) -> String {
        kept_at_all_fronts(&self.0).join("\n")
    }

    fn reads_replicas(&self) -> bool {
        let tenants = self.0.tenants.list();
        tenants.iter().any(|tenant| tenant.may_lag_ns().is_some())
    }

    fn runs_scripts(&self) -> bool {
        self.0.tenants.run_scripts()
    }

    fn changed(&self) {
        self.0.tell_all(|| News::Engine);
    }
}

/// The contracts and throughputs of a tenant's promises, what is reserved for it, and what was
/// asked of them.
fn contracts(meters: &Meters) -> Vec<ContractSeen> {
    let offered = |name: String, (per_s, offered)| ContractSeen {
        name,
        per_s,
        asked: AskedOf::Offered(offered),
    };
    let contracts = meters.all().iter();
    let contracts = contracts.filter_map(|meter| Some(offered(meter.name(), meter.offered()?)));
    let throughputs = meters.all().iter().filter_map(|meter| {
        let per_s = meter.objective().throughput_per_s?;
        let reading = meter.read();
        Some(ContractSeen {
            name: throughput(&meter.name()),
            per_s,
            asked: AskedOf::Served(reading.served, reading.unanswered.longest_ns),
        })
    });
    let reserves = meters.reserves.asked();
    let reserves = reserves.map(|(name, per_s, asked)| offered(name.to_owned(), (per_s, asked)));
    contracts.chain(throughputs).chain(reserves).collect()
}

/// Says what tenants were given at run time, with another engine than today's, and what has no
/// effect with this one. Of what the file says its reader has told.
fn warn_of_idle_settings(tenants: &Registry, upstream: Option<&Upstream>) {
    for tenant in tenants.list() {
        if tenant.may_script() && upstream.is_none() {
            tracing::warn!(
                tenant = tenant.name,
                "scripts, as set before, has no effect: no engine keeps the data"
            );
        }
    }
    if upstream.is_some_and(|upstream| upstream.options.cluster) {
        return;
    }
    for tenant in tenants.list() {
        let idle = [
            (tenant.may_lag_ns().is_some(), "reads = \"replica\""),
            (tenant.settings().partitions > 1, "partitions"),
        ];
        for (_, what) in idle.into_iter().filter(|(is, _)| *is) {
            tracing::warn!(
                tenant = tenant.name,
                "{what}, as set before, has no effect: no cluster keeps the data"
            );
        }
    }
}

fn start_cores(shared: &Arc<Shared>) -> io::Result<Vec<JoinHandle<()>>> {
    let mut polls = Vec::new();
    let mut mailboxes = Vec::new();
    for _ in 0..shared.options.cores {
        let poll = Poll::new()?;
        mailboxes.push(Mailbox::new(&poll)?);
        polls.push(poll);
    }
    let door = Door::open(&shared.options.listen, &polls[0])?;
    shared
        .addresses
        .set(door.addresses()?)
        .unwrap_or_else(|_| unreachable!("set once"));
    let mailboxes: Arc<[Mailbox]> = mailboxes.into();
    shared.set_cores(Box::new(Arc::clone(&mailboxes)));
    let (mut door, mut threads) = (Some(door), Vec::new());
    for (id, poll) in polls.into_iter().enumerate() {
        let (shared, mailboxes, door) = (Arc::clone(shared), Arc::clone(&mailboxes), door.take());
        let thread = thread::Builder::new().name(format!("core-{id}"));
        threads.push(thread.spawn(move || {
            threads::Duty::Prompt.begin();
            let _whole = threads::Whole;
            Core::new(id, shared, poll, mailboxes, door).run();
        })?);
    }
    Ok(threads)
}

/// Forty hexadecimal digits, as Redis names its runs.
fn run_id() -> Result<String, ServerError> {
    let mut bytes = [0u8; 20];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| ServerError::System("no system randomness for a run id".into()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
