//! Tenants: who they are, what they were promised, where their data is.
//!
//! A tenant is an ACL user, a keyspace of its own and a principal of every stage. The registry is
//! read at `AUTH` and by administration only; the request path holds its tenant by `Arc`.

mod budget;
mod calls;
mod clients;
mod counted;
mod doorkeeper;
mod expiry;
mod house;
mod keys;
mod memory;
mod overlay;
mod password;
mod pause;
mod peer;
mod registry;
mod slow_log;
mod spec;
mod store;
mod streams;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use engine::Keyspace;
use parking_lot::{Mutex, RwLock};
use policy::portion::Portions;
use policy::seats::Claim;
use policy::{Durability, Nanos, PrincipalId};
use settings::tenant::Settings;

pub use budget::{Budget, Pool};
pub use calls::{CommandStats, Ending};
pub use clients::{Client, Clients, ConnectionKey, Labels, Newcomer, OwnClients, Unblocked};
pub use counted::Counted;
pub use doorkeeper::{Answer, Checked, Doorkeeper, Question};
pub use expiry::Expiry;
pub use house::{Hold, House};
pub use keys::KeyCount;
pub use memory::Allotments;
pub use password::{Gate, Password, Plain, Quick};
pub use pause::Pause;
pub use peer::Peer;
pub use registry::{Registry, RegistryError};
pub use slow_log::{SlowCommand, SlowLog};
pub use spec::TenantSpec;
pub use store::StoreError;
pub use streams::{Apart, Pass, Passes};

use crate::data::ScanCursors;
use crate::seldom::Seldom;
use crate::slo::{Meters, Slowest};

/// The tenant of connections that have not named one, where there is such a tenant.
pub const DEFAULT: &str = "default";

/// One tenant.
pub struct Tenant {
    /// Its number in every stage; never used again in this process after the tenant is removed.
    pub id: PrincipalId,
    /// Its name and user name.
    pub name: String,
    gate: Gate,
    settings: RwLock<Settings>,
    /// Keys of the configuration file that it gives otherwise.
    set_at_run_time: RwLock<Vec<&'static str>>,
    meters: RwLock<Arc<Meters>>,
    /// What of its rates and weight it has here, where several fronts keep them together.
    portions: RwLock<Portions>,
    removed: AtomicBool,
    /// Its connections, as they show themselves.
    pub clients: OwnClients,
    /// Says that its storage fails.
    pub faults: Seldom,
    /// Says that it is refused connections.
    pub refusals: Seldom,
    /// Connections that it was refused since the start.
    pub refused: AtomicU64,
    /// Connections that came to speak for it since the start.
    pub received: AtomicU64,
    /// Connections by core, so that a new one goes where the tenant has fewest.
    connections: Box<[AtomicU32]>,
    /// Its data, once somebody has asked for it.
    keyspace: OnceLock<Arc<Keyspace>>,
    /// How many keys it has.
    pub keys: KeyCount,
    /// When its keys expire.
    pub expiry: Expiry,
    /// Its slowest requests.
    pub slowest: Slowest,
    /// Slow commands of this tenant, and of nobody else.
    pub slow_log: Mutex<SlowLog>,
    /// What it had used when it last said `CONFIG RESETSTAT`.
    pub counted_from: Mutex<Counted>,
    /// How often it ran each command, and how that ended.
    pub calls: CommandStats,
    /// Memory of its requests.
    pub budget: Arc<Budget>,
    /// Its commands that run apart.
    pub apart: Apart,
    /// What it has paused.
    pub pause: Pause,
    /// Positions of its unfinished `SCAN`s.
    pub cursors: ScanCursors,
}

impl Tenant {
    fn new(id: PrincipalId, spec: TenantSpec, cores: usize, pool: &Arc<Pool>) -> Self {
        Self {
            id,
            name: spec.name,
            gate: Gate::new(spec.password),
            settings: RwLock::new(spec.settings),
            set_at_run_time: RwLock::default(),
            meters: RwLock::default(),
            portions: RwLock::default(),
            removed: AtomicBool::new(false),
            clients: OwnClients::default(),
            faults: Seldom::default(),
            refusals: Seldom::default(),
            refused: AtomicU64::new(0),
            received: AtomicU64::new(0),
            connections: (0..cores).map(|_| AtomicU32::new(0)).collect(),
            keyspace: OnceLock::new(),
            keys: KeyCount::default(),
            expiry: Expiry::default(),
            slowest: Slowest::default(),
            slow_log: Mutex::new(SlowLog::default()),
            counted_from: Mutex::new(Counted::default()),
            calls: CommandStats::new(cores),
            budget: Arc::new(Budget::new(pool)),
            apart: Apart::default(),
            pause: Pause::default(),
            cursors: ScanCursors::default(),
        }
    }

    /// True when anybody may log in.
    pub fn open(&self) -> bool {
        self.gate.open()
    }

    /// The keys of the configuration file of which it says something else.
    pub fn set_at_run_time(&self) -> Vec<&'static str> {
        self.set_at_run_time.read().clone()
    }

    /// Its workloads, and the meters of what it was promised.
    pub fn meters(&self) -> Arc<Meters> {
        Arc::clone(&self.meters.read())
    }

    /// What of its rates and weight it has here: all, unless several fronts keep them together.
    pub fn portions(&self) -> Portions {
        *self.portions.read()
    }

    /// From now on it has these here. The cores are to be told.
    pub fn set_portions(&self, portions: Portions) {
        *self.portions.write() = portions;
    }

    /// A copy of what it is promised now.
    pub fn settings(&self) -> Settings {
        self.settings.read().clone()
    }

    /// How far behind a replica may be that it reads from; none: it reads from masters.
    pub fn may_lag_ns(&self) -> Option<Nanos> {
        self.settings.read().may_lag_ns()
    }

    /// Whether it may run scripts at an engine.
    pub fn may_script(&self) -> bool {
        self.settings.read().scripts
    }

    /// True when it may administer the server.
    pub fn operator(&self) -> bool {
        self.settings.read().admin
    }

    /// How many connections it may have.
    pub fn claim(&self) -> Claim {
        let settings = self.settings.read();
        Claim {
            connections_max: settings.connections_max.map(|max| max as usize),
            // Anybody is an operator without a password: what is kept for operators would be kept
            // for nobody.
            operator: settings.admin && !self.gate.open(),
        }
    }

    /// As it is now, for a change or for the file.
    fn spec(&self) -> TenantSpec {
        TenantSpec {
            password: self.gate.password(),
            settings: self.settings(),
            ..TenantSpec::new(&self.name)
        }
    }

    /// Changes when its writes count as done, until the configuration is read anew.
    pub fn set_durability(&self, durability: Durability) {
        self.settings.write().durability = durability;
    }

    /// True once an administrator has removed it; its connections are being closed.
    pub fn removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    /// Its data; none until it is opened.
    pub fn keyspace(&self) -> Option<&Arc<Keyspace>> {
        self.keyspace.get()
    }

    /// Its data is open now. The engine opens a keyspace once, so whoever is first brings the same.
    pub fn opened(&self, keyspace: Arc<Keyspace>) {
        let _ = self.keyspace.set(keyspace);
    }

    /// Counts a connection that now lives on `core`.
    pub fn joined(&self, core: usize) {
        self.connections[core].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection gone from `core`.
    pub fn left(&self, core: usize) {
        self.connections[core].fetch_sub(1, Ordering::Relaxed);
    }

    /// Its connections on one core now.
    pub fn connections_on(&self, core: usize) -> u32 {
        self.connections[core].load(Ordering::Relaxed)
    }

    /// Its connections now.
    pub fn connections(&self) -> u32 {
        self.connections
            .iter()
            .map(|c| c.load(Ordering::Relaxed))
            .sum()
    }

    /// The core where it has fewest connections; `here` unless another has at least two fewer, so
    /// that a connection moves only when that evens things out.
    pub fn roomiest_core(&self, here: usize) -> usize {
        let count = |core: usize| self.connections[core].load(Ordering::Relaxed);
        let best = (0..self.connections.len())
            .min_by_key(|core| count(*core))
            .unwrap_or(here);
        if count(here) >= count(best) + 2 {
            best
        } else {
            here
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A tenant without a password, on two cores.
    pub fn tenant(name: &str) -> std::sync::Arc<Tenant> {
        let (id, spec) = (PrincipalId(0), TenantSpec::new(name));
        let tenant = Tenant::new(id, spec, 2, &Pool::new(1 << 30));
        tenant.budget.allot(1.0, None);
        std::sync::Arc::new(tenant)
    }
}
