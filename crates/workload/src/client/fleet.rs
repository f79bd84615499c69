//! All connections of one client thread on one readiness queue.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use slab::Slab;

use super::conn::{Completion, Conn, Status};
use super::{Clock, Identity};
use crate::draw::Class;
use crate::error::WorkloadError;

/// One read takes at most this; large enough that a pipeline of 1 KiB values is one call.
const READ_BYTES: usize = 128 * 1024;
/// First wait before a lost connection is made again; doubles with each failure.
const RECONNECT_NS_MIN: u64 = 10_000_000;
/// A connection is given up after so many failures in a row (10 ms, 20 ms, … : 2.5 s in all).
const RECONNECTS_MAX: u32 = 8;
/// How long the first connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The token that belongs to no connection: the timer of the open loop.
pub(crate) const TIMER: Token = Token(usize::MAX);

/// Hears what becomes of requests.
pub(crate) trait Observer {
    /// A request was answered.
    fn completed(&mut self, completion: Completion<'_>);
    /// A request will never be answered: its connection broke.
    fn lost(&mut self, stream: usize, class: Class);
}

struct Ready {
    token: usize,
    read: bool,
    write: bool,
    to_the_end: bool,
}

pub(crate) struct Fleet {
    poll: Poll,
    events: Events,
    conns: Slab<Conn>,
    target: SocketAddr,
    identities: Vec<Identity>,
    buffer: Vec<u8>,
    clock: Clock,
    /// What the last poll found and [`Fleet::next_read`] has not served, last one first.
    ready: Vec<Ready>,
    /// Connections with something to write.
    dirty: Vec<usize>,
    /// When to make which connection again.
    retries: Vec<(u64, usize)>,
    retired: usize,
    last_failure: String,
    pub(crate) bytes_out: u64,
    pub(crate) completed: u64,
}

impl Fleet {
    pub(crate) fn new(
        target: SocketAddr,
        identities: Vec<Identity>,
        clock: Clock,
    ) -> Result<Self, WorkloadError> {
        Ok(Self {
            poll: Poll::new().map_err(WorkloadError::system("making a readiness queue"))?,
            events: Events::with_capacity(1024),
            conns: Slab::new(),
            target,
            identities,
            buffer: vec![0; READ_BYTES],
            clock,
            ready: Vec::new(),
            dirty: Vec::new(),
            retries: Vec::new(),
            retired: 0,
            last_failure: String::new(),
            bytes_out: 0,
            completed: 0,
        })
    }

    /// Times are counted from `clock`'s start from here on.
    pub(crate) fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    pub(crate) fn registry(&self) -> &mio::Registry {
        self.poll.registry()
    }

    /// Opens a connection for `stream` (an index into the identities). Blocks until the handshake
    /// of TCP is done, so that thousands of connects never overflow the server's backlog.
    pub(crate) fn open(&mut self, stream: usize) -> Result<usize, WorkloadError> {
        let unreachable = |source| WorkloadError::Unreachable {
            target: self.target.to_string(),
            source,
        };
        let socket = std::net::TcpStream::connect_timeout(&self.target, CONNECT_TIMEOUT)
            .map_err(unreachable)?;
        socket.set_nodelay(true).map_err(unreachable)?;
        socket.set_nonblocking(true).map_err(unreachable)?;
        let socket = TcpStream::from_std(socket);
        let conn = Conn::new(socket, stream, &self.identities[stream]);
        let token = self.conns.insert(conn);
        self.register(token)
            .map_err(WorkloadError::system("watching a connection"))?;
        self.dirty.push(token);
        Ok(token)
    }

    fn register(&mut self, token: usize) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let socket = &mut self.conns[token].socket;
        self.poll
            .registry()
            .register(socket, Token(token), interest)
    }

    pub(crate) fn conn(&self, token: usize) -> &Conn {
        &self.conns[token]
    }

    /// Queues a request; [`Fleet::flush`] sends it.
    pub(crate) fn push(
        &mut self,
        token: usize,
        class: Class,
        start_ns: u64,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        let conn = &mut self.conns[token];
        if conn.unsent_bytes() == 0 {
            self.dirty.push(token);
        }
        conn.push(class, start_ns, encode);
    }

    /// Writes everything that can be written now.
    pub(crate) fn flush(&mut self, observer: &mut impl Observer) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for token in dirty.drain(..) {
            self.flush_one(token, observer);
        }
        self.dirty = dirty;
    }

    /// Writes what one connection can take now.
    pub(crate) fn flush_one(&mut self, token: usize, observer: &mut impl Observer) {
        let conn = &mut self.conns[token];
        if conn.status != Status::Up || conn.unsent_bytes() == 0 {
            return;
        }
        match conn.flush() {
            Ok(n) => self.bytes_out += n,
            Err(e) => self.lose(token, e.to_string(), observer),
        }
    }

    /// Waits until something can be read or written (at most `timeout`); [`Fleet::next_read`] then
    /// takes it. Makes lost connections again when their time has come.
    pub(crate) fn poll(
        &mut self,
        timeout: Option<Duration>,
        observer: &mut impl Observer,
    ) -> Result<(), WorkloadError> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                return Err(WorkloadError::System {
                    what: "waiting for the server",
                    source: e,
                });
            }
            _ => {}
        }
        self.ready.clear();
        self.ready.extend(
            self.events
                .iter()
                .filter(|event| event.token() != TIMER)
                .map(|event| {
                    let to_the_end = event.is_read_closed() || event.is_error();
                    let Token(token) = event.token();
                    let (read, write) = (event.is_readable() || to_the_end, event.is_writable());
                    Ready {
                        token,
                        read,
                        write,
                        to_the_end,
                    }
                }),
        );
        // Taken from the end: the first one first.
        self.ready.reverse();
        self.reconnect(observer)
    }

    /// Serves the next ready connection and returns it if something was read from it. One at a time,
    /// so that a closed loop answers at once and the server works while the client reads on.
    pub(crate) fn next_read(&mut self, observer: &mut impl Observer) -> Option<usize> {
        while let Some(Ready {
            token,
            read,
            write,
            to_the_end,
        }) = self.ready.pop()
        {
            if write {
                self.flush_one(token, observer);
            }
            if read {
                self.read(token, to_the_end, observer);
                return Some(token);
            }
        }
        None
    }

    fn read(&mut self, token: usize, to_the_end: bool, observer: &mut impl Observer) {
        loop {
            let conn = &mut self.conns[token];
            if conn.status != Status::Up {
                return;
            }
            match conn.socket.read(&mut self.buffer) {
                Ok(0) => {
                    return self.lose(token, "the server closed the connection".into(), observer)
                }
                Ok(n) => {
                    let now_ns = self.clock.now_ns();
                    let completed = &mut self.completed;
                    let taken = conn.take(&self.buffer[..n], now_ns, &mut |completion| {
                        *completed += 1;
                        observer.completed(completion);
                    });
                    if let Err(reason) = taken {
                        return self.lose(token, reason, observer);
                    }
                    // A short read emptied the socket; what comes later is a new event.
                    if n < READ_BYTES && !to_the_end {
                        return;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return self.lose(token, e.to_string(), observer),
            }
        }
    }

    fn lose(&mut self, token: usize, reason: String, observer: &mut impl Observer) {
        let conn = &mut self.conns[token];
        if conn.status != Status::Up {
            return;
        }
        conn.status = Status::Down;
        conn.failures += 1;
        let stream = conn.stream;
        for class in conn.abandon() {
            observer.lost(stream, class);
        }
        // The socket may already be closed on the other side: nothing to do if this fails.
        let _ = self.poll.registry().deregister(&mut conn.socket);
        self.last_failure = reason;
        if conn.failures > RECONNECTS_MAX {
            conn.status = Status::Retired;
            self.retired += 1;
        } else {
            let wait_ns = RECONNECT_NS_MIN << (conn.failures - 1);
            self.retries.push((self.clock.now_ns() + wait_ns, token));
        }
    }

    fn reconnect(&mut self, observer: &mut impl Observer) -> Result<(), WorkloadError> {
        if self.retired > 0 && self.retired == self.conns.len() {
            return Err(WorkloadError::ServerGone {
                target: self.target,
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
            let opened = TcpStream::connect(self.target).and_then(|socket| {
                let conn = &mut self.conns[token];
                conn.reopen(socket, &self.identities[conn.stream]);
                self.register(token)
            });
            match opened {
                Ok(()) => self.dirty.push(token),
                Err(e) => {
                    self.conns[token].status = Status::Up;
                    self.lose(token, e.to_string(), observer);
                }
            }
        }
        Ok(())
    }

    /// Requests not answered yet, over all connections.
    pub(crate) fn outstanding(&self) -> usize {
        self.conns.iter().map(|(_, conn)| conn.outstanding()).sum()
    }

    /// Gives up everything that is not answered.
    pub(crate) fn abandon(&mut self, observer: &mut impl Observer) {
        for (_, conn) in &mut self.conns {
            let stream = conn.stream;
            for class in conn.abandon() {
                observer.lost(stream, class);
            }
        }
    }
}
