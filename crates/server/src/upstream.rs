//! The engine that keeps the data where that is not this process: one Redis or Valkey, or a cluster
//! of them: where it is, what commands it has, and whether it is there.
//!
//! Cores have connections of their own to it. What is here uses one that waits for its answers:
//! once at the start, and then on a thread that looks once a second.

mod asker;
mod attained;
mod busy;
mod catalogue;
mod demand;
mod fronts;
mod links;
mod look;
mod lookout;
mod moves;
mod rates;
mod renew;
mod replicas;
mod replication;
mod survey;
mod talk;
mod tls;
mod waits;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use front::{Both, Endpoint, Health, Homes, Table, Topology, Value};
use mio::net::TcpStream;
use mio::{Registry, Token};
use parking_lot::RwLock;
use policy::Nanos;
use ring::hmac;

use crate::socket::Socket;
pub use attained::Which;
use busy::Busy;
use catalogue::Catalogue;
use demand::Counted;
pub use demand::Took;
use links::LinkCounts;
use look::look_around;
use lookout::Call;
pub use lookout::Lookout;
use moves::Moves;
pub use rates::{weights_told, AskedOf, ContractSeen, House, Kept, Seen};
use renew::Renewals;
pub use replicas::{Reading, Replica, Replicas};
use survey::Survey;
use talk::{About, Talk};
pub use tls::{in_words, EngineTls, Trust};
pub use waits::{WaitingPlace, Waits};
use waits::{PATTERNS_MAX, SHARD_CHANNELS_MAX};

/// Where the engine is, and how it is used.
#[derive(Clone, Debug)]
pub struct UpstreamOptions {
    /// `host:port`; of a cluster some nodes, the others it tells itself.
    pub addresses: Vec<String>,
    /// It is a cluster.
    pub cluster: bool,
    /// Its user; none: the default one.
    pub user: Option<String>,
    /// The password; none: it asks for none.
    pub password: Option<String>,
    /// It is reached by TLS; none: in the clear.
    pub tls: Option<Arc<EngineTls>>,
    /// It is taken to be away when it has not said a word for so long while it is waited for.
    pub patience: Duration,
    /// The tenant whose keys have no mark.
    pub unmarked: Option<String>,
    /// Requests that may wait there until something comes, which takes a connection each.
    pub waiting: u32,
    /// Before a cluster: this is one of several fronts, which clients that know of clusters see.
    pub fronts: Option<FrontsOptions>,
}

/// How a front is one of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontsOptions {
    /// What the map of fronts says instead of the address at which it takes the connections of
    /// clients that the map has led there.
    pub announce: Both<Option<Endpoint>>,
    /// The node that it stands before, `host:port`; none: the only one on its own host.
    pub node: Option<String>,
    /// A tenant's weight is one of all fronts; else each goes by all of it.
    pub divide_weights: bool,
}

impl UpstreamOptions {
    /// The words with which a connection logs in; none: it need not.
    pub fn login(&self) -> Option<Vec<&[u8]>> {
        let password = self.password.as_ref()?.as_bytes();
        let user = self.user.as_ref().map(String::as_bytes);
        let mut words: Vec<&[u8]> = vec![b"AUTH"];
        words.extend(user);
        words.push(password);
        Some(words)
    }

    /// The TLS session of a new connection to a node, `host:port`; none: it is spoken to in the
    /// clear.
    ///
    /// # Errors
    /// Nobody can have a certificate for its host.
    pub fn session(&self, node: &str) -> io::Result<Option<rustls::Connection>> {
        self.tls.as_ref().map(|tls| tls.session(node)).transpose()
    }

    /// Begins a connection to a node, `host:port`, that is not waited for. The poll calls it
    /// `token`.
    ///
    /// # Errors
    /// The kernel's, or as [`UpstreamOptions::session`].
    pub fn connect(
        &self,
        node: &str,
        at: SocketAddr,
        token: Token,
        registry: &Registry,
    ) -> io::Result<Socket> {
        let session = self.session(node)?;
        let mut socket = Socket::new(TcpStream::connect(at)?, session)?;
        // When it is lost, or this process ends, nobody waits for its requests any more: done late
        // they would undo what others have done meanwhile.
        socket.reset_on_close();
        socket.register(registry, token)?;
        Ok(socket)
    }

    /// The password of the user of the engine as which a tenant's scripts run; none: whoever can
    /// reach the engine may do anything there, and needs none. All fronts come to the same.
    pub fn password_of(&self, tenant: &str) -> Option<String> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.password.as_ref()?.as_bytes());
        let text = format!("scripts of {tenant}");
        let tag = hmac::sign(&key, text.as_bytes());
        let digits = tag.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Some(digits.collect())
    }
}

/// What the last look found.
#[derive(Clone)]
pub struct Found {
    /// Which node has which slot.
    pub topology: Arc<Topology>,
    /// Where its nodes are, in the same order.
    pub nodes: Arc<[SocketAddr]>,
    /// Replicas of those, as far as they are there.
    pub replicas: Replicas,
    /// How the nodes of a cluster are.
    pub health: Arc<Health>,
    /// Its commands. Lists of commands live as long as the process: they are few, since an engine
    /// that comes back usually is the one that went.
    pub table: &'static Table,
    /// What the list was read from.
    words: Arc<Value>,
    /// What it said of itself.
    pub about: About,
    /// Why it is away; none: it is there.
    pub away: Option<String>,
}

impl Found {
    /// Slots that were on their way are served by nobody until a master that is new knows it.
    fn hold(&mut self, renewals: &mut Renewals, options: &UpstreamOptions) {
        let held = renewals.look(&self.topology, options);
        if !held.is_empty() {
            self.topology = Arc::new(self.topology.without(&held));
        }
    }
}

/// What the lookout keeps from look to look.
#[derive(Default)]
struct Looks {
    talk: Option<Talk>,
    renewals: Renewals,
}

/// The engine, as all threads see it.
pub struct Upstream {
    /// As configured.
    pub options: UpstreamOptions,
    found: RwLock<Found>,
    /// Connections to it.
    pub links: LinkCounts,
    /// Requests that wait there until something comes.
    pub waits: Arc<Waits>,
    /// Nodes that are busy with a script.
    busy: Busy,
    /// Room for patterns of channels, of all connections.
    pub patterns: Arc<Waits>,
    /// Likewise for channels of shards.
    pub shard_channels: Arc<Waits>,
    /// Reading from replicas.
    pub reading: Reading,
    /// Of a cluster: how many partitions each tenant has.
    catalogue: Catalogue,
    /// Which of its slots somebody is moving.
    pub moves: Moves,
    /// What partitions took of the time of nodes here, until it is told.
    pub took: Counted,
    /// Which front is the home of what for clients of either kind; none: this one shows itself
    /// only.
    homes: RwLock<Both<Option<Arc<Homes>>>>,
    /// What all fronts tell of the nodes.
    pub survey: Survey,
    /// When the entries of all fronts were last read.
    fronts_read_at: AtomicU64,
    /// How many they are, with this one.
    fronts: AtomicU32,
    lookout: OnceLock<Sender<Call>>,
    /// The lookout was asked to look, and has not begun.
    called: AtomicBool,
}

impl Upstream {
    /// Looks for the engine for the first time.
    ///
    /// # Errors
    /// What keeps it from being used, with what to do.
    pub fn find(options: UpstreamOptions) -> Result<Self, String> {
        let (_, mut found) = look_around(&options, None, None).map_err(|why| {
            format!(
                "the engine at {} cannot be used: {why}. Start it, or correct engine.url",
                options.addresses.join(", ")
            )
        })?;
        if options.cluster {
            found.hold(&mut Renewals::default(), &options);
        }
        Ok(Self {
            waits: Waits::new(options.waiting),
            patterns: Waits::new(PATTERNS_MAX),
            shard_channels: Waits::new(SHARD_CHANNELS_MAX),
            options,
            found: RwLock::new(found),
            links: LinkCounts::default(),
            busy: Busy::default(),
            reading: Reading::default(),
            catalogue: Catalogue::default(),
            moves: Moves::default(),
            took: Counted::default(),
            homes: RwLock::default(),
            survey: Survey::default(),
            fronts_read_at: AtomicU64::new(0),
            fronts: AtomicU32::new(1),
            lookout: OnceLock::new(),
            called: AtomicBool::new(false),
        })
    }

    /// What the last look found.
    pub fn found(&self) -> Found {
        self.found.read().clone()
    }

    /// Replicas to read from: those that were found, if some tenant does.
    pub fn readable<'f>(&self, found: &'f Found) -> &'f [Arc<Replica>] {
        match self.reading.wanted() {
            true => &found.replicas,
            false => &[],
        }
    }

    /// Why it is away; none: it is there.
    pub fn away(&self) -> Option<String> {
        self.found.read().away.clone()
    }

    /// Which front is the home of what for clients of either kind; none: this one shows itself
    /// only.
    pub fn homes(&self) -> Both<Option<Arc<Homes>>> {
        self.homes.read().clone()
    }

    /// When the entries of all fronts were last read.
    pub fn fronts_read_at(&self) -> Nanos {
        self.fronts_read_at.load(Ordering::Relaxed)
    }

    /// How many fronts are before the cluster, with this one.
    pub fn fronts(&self) -> u32 {
        self.fronts.load(Ordering::Relaxed)
    }

    /// Has the lookout look soon: something is not where it was.
    pub fn look_soon(&self) {
        if !self.called.swap(true, Ordering::AcqRel) {
            if let Some(lookout) = self.lookout.get() {
                // It has ended: so does the process.
                let _ = lookout.send(Call::Look);
            }
        }
    }

    /// A node has said that it is busy with a script; these tenants have some out there. If it
    /// `may` be one of ours, the lookout has it end that.
    pub fn is_busy(
        &self,
        node: &str,
        tenants: Vec<String>,
        now: Nanos,
        may: impl FnOnce() -> bool,
    ) {
        if self.busy.hears(node, tenants, now, may) {
            if let Some(lookout) = self.lookout.get() {
                let _ = lookout.send(Call::Busy);
            }
        }
    }

    /// How many partitions a tenant has; none: not known yet.
    pub fn parts(&self, tenant: &str) -> Option<u16> {
        match self.options.cluster {
            true => self.catalogue.parts(tenant),
            false => Some(1),
        }
    }

    /// Writes down how many partitions these tenants are to have, unless that is written down.
    ///
    /// # Errors
    /// It is written down that they have others, or nothing can be written.
    pub fn enroll(&self, tenants: &[(String, u32)]) -> Result<(), String> {
        if !self.options.cluster {
            return match tenants.iter().find(|(_, parts)| *parts > 1) {
                Some((name, _)) => Err(format!(
                    "partitions of tenant {name:?} have no effect: no cluster keeps the data"
                )),
                None => Ok(()),
            };
        }
        let topology = self.found().topology;
        self.catalogue.enroll(tenants, &topology, &self.options)
    }

    /// One more look. True: its commands may be others now, or in other places.
    fn look(&self, looks: &mut Looks, house: &impl House, now: Nanos) -> bool {
        let other = self.look_again(looks) | self.wants(house);
        let found = self.found();
        if self.options.cluster {
            self.moves.look(&found.topology, &self.options, now);
        }
        let busy = found.away.is_some_and(|why| why.contains(busy::SAYS));
        if busy && !self.options.cluster {
            // Cores hear of it only while somebody asks them for something.
            let may = || house.runs_scripts();
            if self
                .busy
                .hears(&found.topology.nodes[0], Vec::new(), now, may)
            {
                self.busy.end_scripts(&self.options);
            }
        }
        other
    }

    /// Whether replicas are to be read from may have changed. True: it has.
    fn wants(&self, house: &impl House) -> bool {
        let wanted = self.options.cluster && house.reads_replicas();
        self.reading.want(wanted, &self.found().replicas)
    }

    fn look_again(&self, looks: &mut Looks) -> bool {
        let before = self.found();
        let at = || self.options.addresses.join(", ");
        match look_around(&self.options, looks.talk.take(), Some(&before)) {
            Ok((begun, mut found)) => {
                looks.talk = Some(begun);
                if self.options.cluster {
                    found.hold(&mut looks.renewals, &self.options);
                }
                match (&before.away, &found.away) {
                    (Some(why), None) => tracing::info!(
                        "the engine at {} is back: {}; it was away: {why}",
                        at(),
                        found.about.name
                    ),
                    (None, Some(why)) => tracing::warn!("the engine at {}: {why}", at()),
                    _ => {}
                }
                let other = !std::ptr::eq(found.table, before.table)
                    || found.nodes != before.nodes
                    || found.topology != before.topology
                    || !replicas::same(&found.replicas, &before.replicas);
                *self.found.write() = found;
                other
            }
            Err(why) => {
                if before.away.is_none() {
                    tracing::warn!(
                        "the engine at {} is away: {why}; requests that need it get an error",
                        at()
                    );
                }
                self.found.write().away = Some(why);
                false
            }
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Of an engine at this address.
    pub fn options(address: &str) -> UpstreamOptions {
        UpstreamOptions {
            addresses: vec![address.to_owned()],
            cluster: false,
            user: None,
            password: None,
            tls: None,
            patience: Duration::from_secs(1),
            unmarked: None,
            waiting: 0,
            fronts: None,
        }
    }

    #[test]
    fn nobody_there_is_said_with_what_to_do() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let why = Upstream::find(options(&address))
            .err()
            .expect("nobody listens");
        assert!(
            why.contains(&address) && why.contains("correct engine.url"),
            "{why}"
        );
    }
}
