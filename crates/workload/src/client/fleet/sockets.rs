//! How connections are made, lost, made again and let go.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Interest, Token};

use super::{Fleet, Observer};
use crate::client::conn::{Conn, Status, Whose};
use crate::client::plan::Manners;
use crate::error::WorkloadError;

/// First wait before a lost connection is made again; doubles with each failure.
const RECONNECT_NS_MIN: u64 = 10_000_000;
/// A connection is given up after this many failures in a row (10 ms, 20 ms, … : 2.5 s in all).
const RECONNECTS_MAX: u32 = 8;
/// How long the first connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Receive buffer of a slow reader: what the kernel took for it would not reach the server as
/// slowness.
const SLOW_BUFFER_BYTES: usize = 64 * 1024;

impl Fleet {
    /// Opens a connection. Blocks until the handshake of TCP is done, so that thousands of connects
    /// never overflow the server's backlog.
    pub(crate) fn open(&mut self, whose: Whose, manners: Manners) -> Result<usize, WorkloadError> {
        let unreachable = |source| WorkloadError::Unreachable {
            target: whose.address.to_string(),
            source,
        };
        let socket = std::net::TcpStream::connect_timeout(&whose.address, CONNECT_TIMEOUT)
            .map_err(unreachable)?;
        socket.set_nodelay(true).map_err(unreachable)?;
        socket.set_nonblocking(true).map_err(unreachable)?;
        self.watch(TcpStream::from_std(socket), whose, manners)
    }

    /// The same without blocking, for while requests are due on other connections. If nobody is
    /// there, it is made again as one that was lost.
    pub(crate) fn open_soon(
        &mut self,
        whose: Whose,
        manners: Manners,
        observer: &mut impl Observer,
    ) -> Result<usize, WorkloadError> {
        let (socket, connected) =
            begin(whose.address).map_err(WorkloadError::system("making a socket"))?;
        let token = self.watch(socket, whose, manners)?;
        if let Err(e) = connected {
            self.lose(token, e.to_string(), observer);
        }
        Ok(token)
    }

    fn watch(
        &mut self,
        socket: TcpStream,
        whose: Whose,
        manners: Manners,
    ) -> Result<usize, WorkloadError> {
        slow_down(&socket, manners);
        let conn = Conn::new(socket, whose, &self.identities[whose.stream], manners);
        let token = self.conns.insert(conn);
        self.register(token)
            .map_err(WorkloadError::system("watching a connection"))?;
        self.dirty.push(token);
        self.opened.push(token);
        Ok(token)
    }

    /// The connections that were made or made again since the last time.
    pub(crate) fn opened(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.opened)
    }

    /// Has a connection among those of [`Fleet::opened`], though it is an old one.
    pub(crate) fn look_at(&mut self, token: usize) {
        self.opened.push(token);
    }

    /// Lets a connection go when its last request is answered.
    pub(crate) fn leave(&mut self, token: usize) {
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        if conn.status == Status::Up && conn.outstanding() > 0 && !conn.manners().rude() {
            conn.status = Status::Leaving;
        } else {
            self.close(token);
        }
    }

    /// Closes a connection that was told to leave and has nothing to wait for any more. True if it
    /// is gone.
    pub(crate) fn left(&mut self, token: usize) -> bool {
        let done = self
            .conns
            .get(token)
            .is_none_or(|conn| conn.status == Status::Leaving && conn.outstanding() == 0);
        if done {
            self.close(token);
        }
        done
    }

    fn close(&mut self, token: usize) {
        let Some(mut conn) = self.conns.try_remove(token) else {
            return;
        };
        self.retired -= usize::from(conn.status == Status::Retired);
        self.retries.retain(|(_, other)| *other != token);
        // A socket that is gone already needs no more watching.
        let _ = self.poll.registry().deregister(&mut conn.socket);
    }

    /// Makes a connection anew that has nothing to wait for.
    pub(crate) fn renew(&mut self, token: usize, observer: &mut impl Observer) {
        let conn = &mut self.conns[token];
        let _ = self.poll.registry().deregister(&mut conn.socket);
        self.reopen(token, observer);
    }

    /// Tries a connection again that was given up: its front is said to be there.
    pub(crate) fn revive(&mut self, token: usize, observer: &mut impl Observer) {
        let conn = &mut self.conns[token];
        if conn.status == Status::Retired {
            conn.failures = 0;
            self.retired -= 1;
            self.reopen(token, observer);
        }
    }

    pub(super) fn reopen(&mut self, token: usize, observer: &mut impl Observer) {
        let opened = TcpStream::connect(self.conns[token].whose.address).and_then(|socket| {
            let conn = &mut self.conns[token];
            let _ = socket.set_nodelay(true);
            slow_down(&socket, conn.manners());
            conn.reopen(socket, &self.identities[conn.whose.stream]);
            self.register(token)
        });
        match opened {
            Ok(()) => {
                self.dirty.push(token);
                self.opened.push(token);
            }
            Err(e) => {
                self.conns[token].status = Status::Up;
                self.lose(token, e.to_string(), observer);
            }
        }
    }

    fn register(&mut self, token: usize) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let socket = &mut self.conns[token].socket;
        self.poll
            .registry()
            .register(socket, Token(token), interest)
    }

    pub(super) fn lose(&mut self, token: usize, reason: String, observer: &mut impl Observer) {
        let now_ns = self.clock.now_ns();
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        let leaving = conn.status == Status::Leaving;
        if conn.status != Status::Up && !leaving {
            return;
        }
        conn.status = Status::Down;
        conn.failures += 1;
        let (stream, rude) = (conn.whose.stream, conn.manners().rude());
        for (class, start_ns) in conn.abandon() {
            observer.lost(stream, class, start_ns, now_ns);
        }
        if leaving {
            return self.close(token);
        }
        // The socket may already be closed on the other side: nothing to do if this fails.
        let _ = self.poll.registry().deregister(&mut conn.socket);
        self.last_failure = reason;
        self.lost.insert(stream);
        let conn = &mut self.conns[token];
        // Whoever misbehaves is thrown out, and comes back.
        if rude {
            conn.failures = conn.failures.min(RECONNECTS_MAX);
        }
        if conn.failures > RECONNECTS_MAX {
            conn.status = Status::Retired;
            self.retired += 1;
        } else {
            let wait_ns = RECONNECT_NS_MIN << (conn.failures - 1);
            self.retries.push((now_ns + wait_ns, token));
        }
    }

    pub(super) fn reconnect(&mut self, observer: &mut impl Observer) -> Result<(), WorkloadError> {
        if self.retired > 0 && self.retired == self.conns.len() {
            return Err(WorkloadError::ServerGone {
                target: self.goal.first(),
                reason: self.last_failure.clone(),
                completed: self.completed,
            });
        }
        if self.retries.is_empty() {
            return Ok(());
        }
        let now_ns = self.clock.now_ns();
        let (due, later) = self
            .retries
            .drain(..)
            .partition(|(at_ns, _)| *at_ns <= now_ns);
        self.retries = later;
        let due: Vec<(u64, usize)> = due;
        for (_, token) in due {
            self.reopen(token, observer);
        }
        Ok(())
    }
}

/// A socket that connects to `address`, and why it does not if that is known at once.
fn begin(address: SocketAddr) -> io::Result<(TcpStream, io::Result<()>)> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let _ = socket.set_tcp_nodelay(true);
    let connected = match socket.connect(&address.into()) {
        Err(e) if e.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Err(e),
        _ => Ok(()),
    };
    Ok((TcpStream::from_std(socket.into()), connected))
}

/// Keeps the kernel from reading for a slow reader.
fn slow_down(socket: &TcpStream, manners: Manners) {
    if manners.read_rate.is_some() {
        // Where this is refused the reader is slow only once the kernel's buffer is full.
        let _ = socket2::SockRef::from(socket).set_recv_buffer_size(SLOW_BUFFER_BYTES);
    }
}
