//! Connections come in on one core and are handed out evenly.
//!
//! The door waits for its turn in the request stage like a connection of nobody's: a storm of
//! connections has the share of newcomers, not the core. Accepting one costs about 20 µs. A turn
//! accepts at most [`ACCEPT_MAX`], which takes .3 ms and is charged to newcomers.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Poll, Token};
use policy::Nanos;
use rustix::io::Errno;
use rustls::{ServerConfig, ServerConnection};
use socket2::{SockRef, TcpKeepalive};
use stage::Admitted;
use telemetry::Class;

use super::message::Message;
use super::{Core, Used, RESOURCES};
use crate::connection::{Connection, Ready, Served};
use crate::options::{Listen, Tls, KEEPALIVE};
use crate::socket::Socket;
use crate::tenants::{Client, ConnectionKey, Newcomer, Peer};

/// Tokens of listeners lie above any connection's and below the nudge.
const DOOR_TOKENS: usize = usize::MAX - 1_024;

/// Under this key the door waits for its turn; no connection has it.
pub(super) const DOOR: ConnectionKey = ConnectionKey {
    index: u32::MAX,
    generation: u32::MAX,
};

/// Connections taken in a turn.
const ACCEPT_MAX: usize = 16;

/// Pause when the system has no descriptor or memory for a connection. Those in line wait in the
/// kernel meanwhile.
const STARVED_NS: Nanos = 100_000_000;

/// What Redis says to the connection that is one too many.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// What a peer is told that connects too often.
const HASTY: &[u8] = b"-ERR too many new connections from your address, try again in a second\r\n";

/// The listening sockets.
pub struct Door {
    listeners: Vec<(TcpListener, Listen)>,
    /// Where the next look begins, so that none keeps another waiting.
    first: usize,
    /// The core that the next connection goes to.
    next_core: usize,
    /// It waits for its turn.
    queued: bool,
    /// There was no descriptor for the last who came, and nobody has come in since.
    starved: bool,
    /// It is looked at again then, though nobody may ring.
    starved_until: Option<Nanos>,
}

/// What a look at the door found.
enum Look {
    /// A connection, and where it came.
    Knock(TcpStream, SocketAddr, Listen),
    /// One that has gone again.
    Lost,
    /// Nobody, at any of the listeners.
    Nobody,
    /// Somebody, and the system has no descriptor or memory.
    Starved(io::Error),
}

/// Closes a connection with a word: the socket buffer of a new one has room for it.
fn refuse(stream: &mut TcpStream, text: &[u8], counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
    let _ = io::Write::write(stream, text);
}

/// With a client that must speak TLS.
fn session(tls: &Arc<ServerConfig>) -> io::Result<rustls::Connection> {
    let session = ServerConnection::new(Arc::clone(tls));
    session.map(Into::into).map_err(io::Error::other)
}

/// True for the token of a listener.
pub fn is_door(token: Token) -> bool {
    (DOOR_TOKENS..usize::MAX).contains(&token.0)
}

impl Door {
    /// Binds every address.
    ///
    /// # Errors
    /// The address, and why it cannot be had.
    pub fn open(listen: &[Listen], poll: &Poll) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for (index, listen) in listen.iter().enumerate() {
            let named = |error: io::Error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot listen on {}: {error}", listen.addr),
                )
            };
            let mut listener = TcpListener::bind(listen.addr).map_err(named)?;
            let token = Token(DOOR_TOKENS + index);
            poll.registry()
                .register(&mut listener, token, Interest::READABLE)
                .map_err(named)?;
            listeners.push((listener, listen.clone()));
        }
        Ok(Self {
            listeners,
            first: 0,
            next_core: 0,
            queued: false,
            starved: false,
            starved_until: None,
        })
    }

    /// The addresses bound, with the ports the system chose.
    ///
    /// # Errors
    /// The kernel's.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners
            .iter()
            .map(|(listener, _)| listener.local_addr())
            .collect()
    }

    /// Looks once.
    fn look(&mut self) -> Look {
        for _ in 0..self.listeners.len() {
            let (listener, listen) = &self.listeners[self.first];
            self.first = (self.first + 1) % self.listeners.len();
            let error = match listener.accept() {
                Ok((stream, addr)) => return Look::Knock(stream, addr, listen.clone()),
                Err(error) => error,
            };
            match Errno::from_io_error(&error) {
                Some(Errno::WOULDBLOCK) => {}
                Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    return Look::Starved(error);
                }
                // Errors of the network are told here, too (accept(2)).
                _ => return Look::Lost,
            }
        }
        Look::Nobody
    }

    /// Gives new connections to the cores in turn; after `AUTH` one may move once more, to where
    /// its tenant has fewest.
    fn next_core(&mut self, cores: usize) -> usize {
        self.next_core = (self.next_core + 1) % cores;
        self.next_core
    }

    /// When the door is to be looked at again though nobody has come.
    pub(super) fn looks_at(&self) -> Option<Nanos> {
        self.starved_until
    }
}

impl Core {
    /// Somebody is at the door, or may be: it waits for its turn.
    pub(super) fn door_rings(&mut self, now: Nanos) {
        let nobody = Arc::clone(self.shared.tenants.nobody());
        self.enroll(&nobody, now);
        let ready =
            |door: &&mut Door| !door.queued && door.starved_until.is_none_or(|at| now >= at);
        let Some(door) = self.door.as_mut().filter(ready) else {
            return;
        };
        door.starved_until = None;
        door.queued = self.lines.requests.enqueue(now, nobody.id, 0, DOOR).is_ok();
    }

    /// The door's turn: takes some connections and hands each to the core with the fewest.
    pub(super) fn door_turn(
        &mut self,
        admitted: Admitted<ConnectionKey, RESOURCES>,
        begin: Nanos,
    ) -> Nanos {
        let mut used = Used::default();
        let mut more = false;
        if let Some(mut door) = self.door.take() {
            door.queued = false;
            more = self.accept(&mut door, begin, &mut used);
            self.door = Some(door);
        }
        let end = self.shared.options.clock.now();
        self.now = end;
        let cpu_ns = self.processor.used_ns(begin, end);
        if let Some(recorder) = self.principals.of(self.shared.tenants.nobody()) {
            recorder.spent(Class::Other, 0, 0, cpu_ns);
        }
        let cost = used.cost(cpu_ns);
        self.lines.requests.settle(end, admitted.permit, cost);
        if more {
            self.door_rings(end);
        }
        end
    }

    /// Takes connections; true if there may be more.
    fn accept(&self, door: &mut Door, now: Nanos, used: &mut Used) -> bool {
        for _ in 0..ACCEPT_MAX {
            let (stream, addr, listen) = match door.look() {
                Look::Knock(stream, addr, listen) => (stream, addr, listen),
                Look::Lost => continue,
                Look::Nobody => return false,
                Look::Starved(error) => {
                    door.starved_until = Some(now + STARVED_NS);
                    if !std::mem::replace(&mut door.starved, true) {
                        tracing::warn!(%error, "cannot accept connections: they wait, and the server tries again ten times a second");
                    }
                    return false;
                }
            };
            if std::mem::take(&mut door.starved) {
                tracing::info!("connections are accepted again");
            }
            used.requests += 1;
            match self.welcome(stream, addr, &listen, now) {
                Ok(Some(connection)) => {
                    let core = door.next_core(self.mailboxes.len());
                    self.mailboxes[core].send(Message::Adopt(connection));
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(%addr, %error, "connection lost while accepting it"),
            }
        }
        true
    }

    fn welcome(
        &self,
        mut stream: TcpStream,
        addr: SocketAddr,
        listen: &Listen,
        now: Nanos,
    ) -> io::Result<Option<Box<Connection>>> {
        let shared = &self.shared;
        let per_s = shared.tuning().connections_per_s;
        if !shared.house.may_come(now, Peer::of(addr.ip()), per_s) {
            refuse(&mut stream, HASTY, &shared.counters.hasty);
            return Ok(None);
        }
        if stream.as_raw_fd() as u64 >= shared.plan().end {
            refuse(&mut stream, FULL, &shared.counters.rejected);
            return Ok(None);
        }
        let nobody = shared.tenants.nobody();
        let who = Newcomer {
            addr,
            local_addr: stream.local_addr()?,
            tls: listen.tls.is_some(),
            aware: listen.aware,
        };
        let client = shared.clients.enter(who, shared.steady_ms(), nobody);
        let Some((hold, gone)) = shared.house.come(now, &client) else {
            shared.clients.leave(&client);
            refuse(&mut stream, FULL, &shared.counters.rejected);
            return Ok(None);
        };
        self.displace(gone);
        let tls = listen.tls.as_deref().map(Tls::get);
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE)
            .with_interval(KEEPALIVE / 3);
        let socket = SockRef::from(&stream)
            .set_tcp_keepalive(&keepalive)
            .and_then(|()| Socket::new(stream, tls.as_ref().map(session).transpose()?));
        match socket {
            Ok(socket) => {
                let connection = Connection::new(client, socket, hold, Arc::clone(nobody));
                Ok(Some(Box::new(connection)))
            }
            Err(error) => {
                shared.clients.leave(&client);
                Err(error)
            }
        }
    }

    /// This newcomer has to go for another.
    pub(super) fn displace(&self, gone: Option<Arc<Client>>) {
        if let Some(gone) = gone {
            self.shared
                .counters
                .displaced
                .fetch_add(1, Ordering::Relaxed);
            self.shared.kill(&gone);
        }
    }

    /// Closes newcomers that have not logged in in time, where they must: who need not may be
    /// silent.
    pub(super) fn close_late(&self, now: Nanos) {
        let limit_ms = self.shared.tuning().login_timeout_ms;
        if limit_ms == 0 || self.door.is_none() || self.shared.tenants.open_default().is_some() {
            return;
        }
        for client in self
            .shared
            .house
            .overdue(now.saturating_sub(limit_ms * 1_000_000))
        {
            self.shared.counters.late.fetch_add(1, Ordering::Relaxed);
            self.shared.kill(&client);
        }
    }

    /// A connection lives here from now on.
    pub(super) fn adopt(&mut self, mut connection: Box<Connection>, now: Nanos) {
        connection.tenant.joined(self.id);
        let tenant = Arc::clone(&connection.tenant);
        self.enroll(&tenant, now);
        let key = self.places.reserve();
        // Its intervals were another core's.
        connection.served = Served::default();
        self.balance.rests(key);
        let registered = connection
            .socket
            .register(self.poll.registry(), Token(key.index as usize));
        let killed = connection.client.arrive(self.id, key);
        if registered.is_err() || killed || tenant.removed() {
            self.close(key, connection);
            return;
        }
        self.put_back(key, connection, now);
    }

    /// Gives a connection to another core; nothing of it may be under way here.
    pub(super) fn move_to(
        &mut self,
        core: usize,
        key: ConnectionKey,
        mut connection: Box<Connection>,
    ) {
        let _ = connection.socket.deregister(self.poll.registry());
        connection.tenant.left(self.id);
        self.places.give_up(key);
        // What arrived meanwhile was noticed here; the other core must look for itself.
        connection.inbound.look_again();
        connection.writable = true;
        self.mailboxes[core].send(Message::Adopt(connection));
    }

    /// Closes a lifted connection and frees its place.
    pub(super) fn close(&mut self, key: ConnectionKey, mut connection: Box<Connection>) {
        let _ = connection.socket.deregister(self.poll.registry());
        self.leave_pause(key, &mut connection);
        self.wait_no_more(key, &mut connection);
        connection.tenant.left(self.id);
        self.shared.clients.leave(&connection.client);
        self.places.give_up(key);
        self.principals.left(&connection);
        Self::give_back_memory(&mut connection);
        let (tenant, parts) = (Arc::clone(&connection.tenant), connection.parts());
        self.free(std::mem::take(&mut connection.input.bytes), &tenant);
        self.drop_later(&tenant, parts, connection);
    }

    /// Has a connection closed if it is marked so; another may be in its place by now.
    pub(super) fn close_killed(&mut self, key: ConnectionKey, now: Nanos) {
        let Some(connection) = self.places.lift(key) else {
            return;
        };
        let killed = connection.client.killed.load(Ordering::SeqCst);
        self.places.back(key, connection);
        if killed {
            self.ready(key, Ready::Killed, now);
        }
    }

    /// Has the connections of which that holds closed, each in a turn of its tenant's.
    pub(super) fn close_where(&mut self, ends: impl Fn(&Connection) -> bool) {
        let now = self.now;
        for key in self.places.keys() {
            let Some(connection) = self.places.lift(key) else {
                continue;
            };
            let ends = ends(&connection);
            self.places.back(key, connection);
            if ends {
                self.ready(key, Ready::Killed, now);
            }
        }
    }

    /// Closes everything: the end.
    pub(super) fn close_all(&mut self) {
        for key in self.places.keys() {
            if let Some(connection) = self.places.lift(key) {
                self.close(key, connection);
            }
        }
    }
}
