//! Connections come in on one core and are handed out evenly.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Poll, Token};
use rustls::ServerConfig;
use socket2::{SockRef, TcpKeepalive};

use super::message::{Message, Ready};
use super::Core;
use crate::connection::client::Newcomer;
use crate::connection::{Connection, Socket};
use crate::options::Listen;

/// Tokens of listeners lie above any connection's and below the nudge.
const DOOR_TOKENS: usize = usize::MAX - 1_024;

/// Connections taken per look, so that a reconnect storm cannot keep a core from its requests.
const ACCEPT_MAX: usize = 64;

/// A peer that has vanished without a word is found out after this long (Redis's `tcp-keepalive`).
pub const KEEPALIVE: std::time::Duration = std::time::Duration::from_secs(300);

/// What Redis says to the connection that is one too many.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// The listening sockets.
pub struct Door {
    listeners: Vec<(TcpListener, Option<Arc<ServerConfig>>)>,
    /// A look ended early: there may be more to accept without a new notice.
    more: bool,
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
            listeners.push((listener, listen.tls.clone()));
        }
        Ok(Self {
            listeners,
            more: false,
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

    fn next(&mut self) -> Option<(TcpStream, SocketAddr, Option<Arc<ServerConfig>>)> {
        for (listener, tls) in &self.listeners {
            match listener.accept() {
                Ok((stream, addr)) => return Some((stream, addr, tls.clone())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    // Out of descriptors, most likely: those in line wait in the kernel meanwhile.
                    tracing::warn!(%error, "cannot accept a connection");
                }
            }
        }
        None
    }
}

impl Core {
    /// Takes connections from the door and hands each to the core with the fewest.
    pub(super) fn accept(&mut self) {
        let Some(mut door) = self.door.take() else {
            return;
        };
        door.more = true;
        for _ in 0..ACCEPT_MAX {
            let Some((stream, addr, tls)) = door.next() else {
                door.more = false;
                break;
            };
            match self.welcome(stream, addr, tls.as_ref()) {
                Ok(Some(connection)) => self.shared.hand_out(connection),
                Ok(None) => {}
                Err(error) => tracing::debug!(%addr, %error, "connection lost while accepting it"),
            }
        }
        self.door = Some(door);
    }

    /// True when the door must be looked at again without a notice.
    pub(super) fn door_waits(&self) -> bool {
        self.door.as_ref().is_some_and(|door| door.more)
    }

    fn welcome(
        &self,
        mut stream: TcpStream,
        addr: SocketAddr,
        tls: Option<&Arc<ServerConfig>>,
    ) -> io::Result<Option<Box<Connection>>> {
        let shared = &self.shared;
        if shared.clients.count() >= shared.tuning().connections_max {
            shared.counters.rejected.fetch_add(1, Ordering::Relaxed);
            // A best-effort word: the socket buffer of a new connection has room for it.
            let _ = io::Write::write(&mut stream, FULL);
            return Ok(None);
        }
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE)
            .with_interval(KEEPALIVE / 3);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        let Some(tenant) = shared.tenants.get(crate::tenants::DEFAULT) else {
            return Ok(None);
        };
        let socket = Socket::new(stream, tls)?;
        let who = Newcomer {
            addr,
            local_addr: socket.local_addr()?,
            tls: tls.is_some(),
        };
        let client = shared.clients.enter(who, shared.steady_ms(), &tenant);
        Ok(Some(Box::new(Connection::new(client, socket, tenant))))
    }

    /// A connection lives here from now on.
    pub(super) fn adopt(&mut self, mut connection: Box<Connection>, now: policy::Nanos) {
        connection.client.core.store(self.id, Ordering::Relaxed);
        connection.tenant.joined(self.id);
        let tenant = Arc::clone(&connection.tenant);
        self.enroll(&tenant, now);
        let key = self.places.reserve();
        // Its intervals were another core's.
        connection.served = super::Served::default();
        self.balance.rests(key);
        let registered = connection
            .socket
            .register(self.poll.registry(), Token(key.index as usize));
        let killed = connection.client.killed.load(Ordering::Acquire);
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
        key: super::ConnectionKey,
        mut connection: Box<Connection>,
    ) {
        let _ = connection.socket.deregister(self.poll.registry());
        connection.tenant.left(self.id);
        self.places.give_up(key);
        // What arrived meanwhile was noticed here; the other core must look for itself.
        connection.readable = true;
        connection.writable = true;
        self.shared.mailbox(core).send(Message::Adopt(connection));
    }

    /// Closes a lifted connection and frees its place.
    pub(super) fn close(&mut self, key: super::ConnectionKey, mut connection: Box<Connection>) {
        let _ = connection.socket.deregister(self.poll.registry());
        connection.tenant.left(self.id);
        self.shared.clients.leave(&connection.client);
        self.places.give_up(key);
        Self::give_back_memory(&mut connection);
        let (tenant, parts) = (Arc::clone(&connection.tenant), connection.parts());
        self.free(std::mem::take(&mut connection.input), &tenant);
        self.drop_later(&tenant, parts, connection);
    }

    /// Closes the connections that `CLIENT KILL` has marked, or whose tenant is gone.
    pub(super) fn close_killed(&mut self) {
        self.close_where(|connection| {
            connection.client.killed.load(Ordering::Acquire) || connection.tenant.removed()
        });
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
