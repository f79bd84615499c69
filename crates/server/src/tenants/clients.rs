//! The public face of a connection: what `CLIENT LIST` shows and `CLIENT KILL` finds.
//!
//! The core that owns the connection writes it, any other may read it; nothing here is touched on
//! the request path but a few relaxed stores.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering,
};
use std::sync::Arc;

use commands::Spec;
use engine::Database;
use parking_lot::Mutex;
use resp::Protocol;

use super::Tenant;

/// Which connection of a core, safe against the place being used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionKey {
    /// Its place in the core's slab.
    pub index: u32,
    /// How often that place had been used before.
    pub generation: u32,
}

impl ConnectionKey {
    /// No connection has it.
    pub const NOBODY: Self = Self {
        index: u32::MAX,
        generation: u32::MAX,
    };

    /// The key as one number.
    pub fn packed(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The key that [`ConnectionKey::packed`] made this number of.
    pub fn unpacked(packed: u64) -> Self {
        Self {
            index: packed as u32,
            generation: (packed >> 32) as u32,
        }
    }
}

/// What a client has told of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// `CLIENT SETNAME`.
    pub name: String,
    /// `CLIENT SETINFO LIB-NAME`.
    pub lib_name: String,
    /// `CLIENT SETINFO LIB-VER`.
    pub lib_ver: String,
}

/// What becomes of a request that waits, and is to wait no longer (`CLIENT UNBLOCK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unblocked {
    /// It is answered as if its time were up.
    TimesOut,
    /// It is answered with an error.
    Fails,
}

/// One connection as others see it.
pub struct Client {
    /// Unique in this process, growing.
    pub id: u64,
    /// The client's address.
    pub addr: SocketAddr,
    /// The address of ours that it reached.
    pub local_addr: SocketAddr,
    /// It speaks TLS.
    pub tls: bool,
    /// It knows of the cluster of fronts: it came where the map leads.
    pub aware: bool,
    /// When it came: ms by the clock that does not jump.
    pub created_ms: u64,
    /// When it last sent a command, by the same clock.
    pub active_ms: AtomicU64,
    last_command: Mutex<&'static str>,
    /// RESP 2 or 3.
    pub protocol: AtomicU8,
    /// The number of the database that it has selected.
    pub database: AtomicU8,
    /// Commands queued after `MULTI`; -1 outside.
    pub queued: AtomicI32,
    /// It waits at an engine, and nobody has had it let go.
    blocked: AtomicBool,
    /// Channels, patterns of channels, and channels of shards that it has subscribed to.
    subscriptions: [AtomicU32; 3],
    /// Set by `CLIENT KILL`; its core closes it at the next look.
    pub killed: AtomicBool,
    /// The core it lives on.
    core: AtomicUsize,
    /// Its key there; [`ConnectionKey::NOBODY`] while it is on its way to the first one.
    key: AtomicU64,
    labels: Mutex<Labels>,
    tenant: Mutex<Arc<Tenant>>,
}

impl Client {
    /// What it has told of itself.
    pub fn labels(&self) -> Labels {
        self.labels.lock().clone()
    }

    /// It has told this of itself; true if that is something new.
    pub fn relabel(&self, labels: &Labels) -> bool {
        let mut shown = self.labels.lock();
        let new = *shown != *labels;
        if new {
            shown.clone_from(labels);
        }
        new
    }

    /// It lives on this core from now on; true if it is to be closed there.
    pub fn arrive(&self, core: usize, key: ConnectionKey) -> bool {
        // The core last: who sees it sees the key too. Whoever kills sets `killed` and then looks
        // where it lives, so that one of the two sees what the other did.
        self.key.store(key.packed(), Ordering::SeqCst);
        self.core.store(core, Ordering::SeqCst);
        self.killed.load(Ordering::SeqCst)
    }

    /// Where it lives; on its way to another core it is found there when it arrives.
    pub fn place(&self) -> (usize, Option<ConnectionKey>) {
        let core = self.core.load(Ordering::SeqCst);
        let key = self.key.load(Ordering::SeqCst);
        let key = ConnectionKey::unpacked(key);
        (core, (key != ConnectionKey::NOBODY).then_some(key))
    }

    /// The tenant it speaks for now.
    pub fn tenant(&self) -> Arc<Tenant> {
        Arc::clone(&self.tenant.lock())
    }

    /// Whether it has sent nothing for longer than `limit_ms`.
    pub fn is_silent(&self, now_ms: u64, limit_ms: u64) -> bool {
        now_ms.saturating_sub(self.active_ms.load(Ordering::Relaxed)) > limit_ms
    }

    /// It has sent a command.
    pub fn note(&self, spec: &'static Spec, now_ms: u64) {
        self.active_ms.store(now_ms, Ordering::Relaxed);
        *self.last_command.lock() = spec.name;
    }

    /// The name of its last command, `NULL` before the first (as Redis shows it).
    pub fn last_command(&self) -> &'static str {
        *self.last_command.lock()
    }

    /// It has chosen a protocol.
    pub fn speaks(&self, protocol: Protocol) {
        self.protocol
            .store(protocol.version() as u8, Ordering::Relaxed);
    }

    /// It has selected a database.
    pub fn selects(&self, database: Database) {
        self.database
            .store(database.index() as u8, Ordering::Relaxed);
    }

    /// It has this many commands queued; none: it is outside `MULTI`.
    pub fn queued(&self, commands: Option<usize>) {
        let shown = commands.map_or(-1, |count| i32::try_from(count).unwrap_or(i32::MAX));
        self.queued.store(shown, Ordering::Relaxed);
    }

    /// It begins to wait at an engine, or does so no more.
    pub fn blocks(&self, blocks: bool) {
        self.blocked.store(blocks, Ordering::SeqCst);
    }

    /// Whether it waits at an engine, and nobody has had it let go.
    pub fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::SeqCst)
    }

    /// It is to wait no longer; true if it did, and is told so by whoever asks.
    pub fn unblock(&self) -> bool {
        self.blocked.swap(false, Ordering::SeqCst)
    }

    /// It has subscribed to so many channels, patterns, and channels of shards.
    pub fn subscribes(&self, subscriptions: [u64; 3]) {
        for (shown, count) in self.subscriptions.iter().zip(subscriptions) {
            shown.store(u32::try_from(count).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
    }

    /// How many channels, patterns, and channels of shards it has subscribed to.
    pub fn subscriptions(&self) -> [u32; 3] {
        [0, 1, 2].map(|kind| self.subscriptions[kind].load(Ordering::Relaxed))
    }

    /// Does something while it speaks for this tenant, and cannot become another's; none: it speaks
    /// for another.
    pub fn while_of<R>(&self, tenant: &Tenant, act: impl FnOnce() -> R) -> Option<R> {
        let speaks_for = self.tenant.lock();
        std::ptr::eq(Arc::as_ptr(&speaks_for), tenant).then(act)
    }

    /// It has logged in as another tenant.
    pub fn belongs_to(self: &Arc<Self>, tenant: &Arc<Tenant>) {
        let before = std::mem::replace(&mut *self.tenant.lock(), Arc::clone(tenant));
        before.clients.remove(self);
        tenant.clients.insert(self);
    }
}

/// The connections of one tenant, by id.
#[derive(Default)]
pub struct OwnClients(Mutex<BTreeMap<u64, Arc<Client>>>);

/// Connections that are copied from the list while it is locked: cores want it, too.
const AT_ONCE: usize = 256;

impl OwnClients {
    fn insert(&self, client: &Arc<Client>) {
        self.0.lock().insert(client.id, Arc::clone(client));
    }

    fn remove(&self, client: &Client) {
        self.0.lock().remove(&client.id);
    }

    /// The one with this id.
    pub fn find(&self, id: u64) -> Option<Arc<Client>> {
        self.0.lock().get(&id).cloned()
    }

    /// All of them, oldest first; one that comes or goes meanwhile may be among them or not. Each
    /// may have become another tenant's since it was looked at: [`Client::while_of`].
    pub fn all(&self) -> BTreeMap<u64, Arc<Client>> {
        let mut all = BTreeMap::new();
        let mut from = 0;
        loop {
            let clients = self.0.lock();
            let some = clients.range(from..).take(AT_ONCE);
            let before = all.len();
            all.extend(some.map(|(id, client)| (*id, Arc::clone(client))));
            match all.last_key_value() {
                Some((last, _)) if all.len() == before + AT_ONCE => from = last + 1,
                _ => return all,
            }
        }
    }
}

/// The connections of the process.
#[derive(Default)]
pub struct Clients {
    next_id: AtomicU64,
    open: AtomicUsize,
}

/// Who a new client is.
pub struct Newcomer {
    /// Its address.
    pub addr: SocketAddr,
    /// The address of ours that it reached.
    pub local_addr: SocketAddr,
    /// It speaks TLS.
    pub tls: bool,
    /// It knows of the cluster of fronts.
    pub aware: bool,
}

impl Clients {
    /// Registers a new connection.
    pub fn enter(&self, who: Newcomer, now_ms: u64, tenant: &Arc<Tenant>) -> Arc<Client> {
        let client = Arc::new(Client {
            id: self.next_id.fetch_add(1, Ordering::Relaxed) + 1,
            addr: who.addr,
            local_addr: who.local_addr,
            tls: who.tls,
            aware: who.aware,
            created_ms: now_ms,
            active_ms: AtomicU64::new(now_ms),
            last_command: Mutex::new("NULL"),
            protocol: AtomicU8::new(2),
            database: AtomicU8::new(0),
            queued: AtomicI32::new(-1),
            killed: AtomicBool::new(false),
            core: AtomicUsize::new(0),
            key: AtomicU64::new(ConnectionKey::NOBODY.packed()),
            blocked: AtomicBool::new(false),
            subscriptions: [0; 3].map(AtomicU32::new),
            labels: Mutex::new(Labels::default()),
            tenant: Mutex::new(Arc::clone(tenant)),
        });
        self.open.fetch_add(1, Ordering::Relaxed);
        tenant.clients.insert(&client);
        client
    }

    /// Forgets a connection that is closed.
    pub fn leave(&self, client: &Client) {
        client.tenant().clients.remove(client);
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Connections now.
    pub fn count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections since the start.
    pub fn total(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_counted_from_the_last_command() {
        let here = "127.0.0.1:6380".parse().unwrap();
        let tenant = crate::tenants::tests::tenant("web");
        let who = Newcomer {
            addr: here,
            local_addr: here,
            tls: false,
            aware: false,
        };
        let client = Clients::default().enter(who, 1_000, &tenant);
        assert!(!client.is_silent(3_000, 2_000) && client.is_silent(3_001, 2_000));
        client.note(commands::lookup(b"get").unwrap(), 3_001);
        assert!(!client.is_silent(5_001, 2_000));
    }

    #[test]
    fn a_tenant_has_its_own_connections_only_and_all_of_them() {
        let here = "127.0.0.1:6380".parse().unwrap();
        let (clients, [web, batch]) = (
            Clients::default(),
            ["web", "batch"].map(crate::tenants::tests::tenant),
        );
        let enter = |tenant| {
            let who = Newcomer {
                addr: here,
                local_addr: here,
                tls: false,
                aware: false,
            };
            clients.enter(who, 1_000, tenant)
        };
        let many: Vec<_> = (0..3 * AT_ONCE).map(|_| enter(&web)).collect();
        let other = enter(&batch);
        assert_eq!(
            (web.clients.all().len(), batch.clients.all().len()),
            (3 * AT_ONCE, 1)
        );
        other.belongs_to(&web);
        clients.leave(&many[0]);
        assert_eq!(
            (web.clients.all().len(), batch.clients.all().len()),
            (3 * AT_ONCE, 0)
        );
        assert_eq!(clients.count(), 3 * AT_ONCE);
    }
}
