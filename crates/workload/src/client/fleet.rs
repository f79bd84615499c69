//! All connections of one client thread on one readiness queue.

mod moved;
mod sockets;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::io::{self, Read};
use std::time::Duration;

use mio::{Events, Poll, Token};
use slab::Slab;

use super::conn::{Completion, Conn, Kept, Status};
use super::{Clock, Goal, Identity};
use crate::draw::Class;
use crate::error::WorkloadError;

pub(crate) use moved::Moved;

/// One read takes at most this; large enough that a pipeline of 1 KiB values is one call.
const READ_BYTES: usize = 128 * 1024;
/// A slow reader reads so often a second.
const SLOW_READS_PER_S: f64 = 20.0;
/// The token that belongs to no connection: the timer of the open loop.
pub(crate) const TIMER: Token = Token(usize::MAX);

/// Hears what becomes of requests.
pub(crate) trait Observer {
    /// A request was answered.
    fn completed(&mut self, completion: Completion<'_>);
    /// A request will never be answered: its connection broke.
    fn lost(&mut self, stream: usize, class: Class, start_ns: u64, now_ns: u64);
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
    goal: Goal,
    identities: Vec<Identity>,
    buffer: Vec<u8>,
    clock: Clock,
    /// What the last poll found and [`Fleet::next_read`] has not served, last one first.
    ready: Vec<Ready>,
    /// Connections with something to write.
    dirty: Vec<usize>,
    /// When to make which connection again.
    retries: Vec<(u64, usize)>,
    /// Slow readers and when they read again.
    resting: BinaryHeap<Reverse<(u64, usize)>>,
    /// Connections that were made or made again since [`Fleet::opened`] was asked.
    opened: Vec<usize>,
    /// Requests that are to be sent again elsewhere.
    moved: Vec<Moved>,
    /// Streams that have lost a connection since [`Fleet::take_lost`] was asked.
    lost: BTreeSet<usize>,
    retired: usize,
    last_failure: String,
    pub(crate) bytes_out: u64,
    pub(crate) completed: u64,
}

impl Fleet {
    pub(crate) fn new(
        goal: Goal,
        identities: Vec<Identity>,
        clock: Clock,
    ) -> Result<Self, WorkloadError> {
        Ok(Self {
            poll: Poll::new().map_err(WorkloadError::system("making a readiness queue"))?,
            events: Events::with_capacity(1024),
            conns: Slab::new(),
            goal,
            identities,
            buffer: vec![0; READ_BYTES],
            clock,
            ready: Vec::new(),
            dirty: Vec::new(),
            retries: Vec::new(),
            resting: BinaryHeap::new(),
            opened: Vec::new(),
            moved: Vec::new(),
            lost: BTreeSet::new(),
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

    pub(crate) fn goal(&self) -> &Goal {
        &self.goal
    }

    pub(crate) fn identity(&self, stream: usize) -> &Identity {
        &self.identities[stream]
    }

    /// REQUIRES: the connection was not told to leave.
    pub(crate) fn conn(&self, token: usize) -> &Conn {
        &self.conns[token]
    }

    pub(crate) fn find(&self, token: usize) -> Option<&Conn> {
        self.conns.get(token)
    }

    /// Queues a request; [`Fleet::flush`] sends it. Returns its length, bytes.
    pub(crate) fn push(
        &mut self,
        token: usize,
        class: Class,
        start_ns: u64,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> u64 {
        let conn = &mut self.conns[token];
        let unsent = conn.unsent_bytes();
        if unsent == 0 {
            self.dirty.push(token);
        }
        conn.push(class, start_ns, encode);
        (conn.unsent_bytes() - unsent) as u64
    }

    /// Keeps the request that was queued last on a connection: it is sent again where a reply says
    /// that it belongs.
    pub(crate) fn keep(&mut self, token: usize, kept: Kept) {
        self.conns[token].keep(kept);
    }

    /// The requests that are to be sent again elsewhere, and have been told to nobody yet.
    pub(crate) fn take_moved(&mut self) -> Vec<Moved> {
        std::mem::take(&mut self.moved)
    }

    /// There are such requests.
    pub(crate) fn has_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    /// The streams that have lost a connection since the last time.
    pub(crate) fn take_lost(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.lost)
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
    fn flush_one(&mut self, token: usize, observer: &mut impl Observer) {
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        if !matches!(conn.status, Status::Up | Status::Leaving) || conn.unsent_bytes() == 0 {
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

    /// Serves the next ready connection and returns it if something was read from it. One at a
    /// time, so that a closed loop answers at once and the server works while the client reads on.
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
        let Reverse((at_ns, token)) = *self.resting.peek()?;
        if at_ns > self.clock.now_ns() {
            return None;
        }
        self.resting.pop();
        self.read(token, false, observer);
        Some(token)
    }

    /// When the next slow reader reads again, ns.
    pub(crate) fn rested_ns(&self) -> u64 {
        self.resting.peek().map_or(u64::MAX, |next| next.0 .0)
    }

    fn read(&mut self, token: usize, to_the_end: bool, observer: &mut impl Observer) {
        loop {
            let Some(conn) = self.conns.get_mut(token) else {
                return;
            };
            if !matches!(conn.status, Status::Up | Status::Leaving) {
                return;
            }
            let mut limit = READ_BYTES;
            if let Some(rate) = conn.manners().read_rate {
                let now_ns = self.clock.now_ns();
                if now_ns < conn.rests_until_ns {
                    return;
                }
                limit = ((rate / SLOW_READS_PER_S) as usize).clamp(1, READ_BYTES);
                conn.rests_until_ns = now_ns + (limit as f64 / rate * 1e9) as u64;
                self.resting.push(Reverse((conn.rests_until_ns, token)));
            }
            match conn.socket.read(&mut self.buffer[..limit]) {
                Ok(0) => {
                    return self.lose(token, "the server closed the connection".into(), observer)
                }
                Ok(n) => {
                    let now_ns = self.clock.now_ns();
                    let (completed, moved) = (&mut self.completed, &mut self.moved);
                    let whose = conn.whose;
                    let taken = conn.take(&self.buffer[..n], now_ns, &mut |completion| {
                        if let Some(on) = Moved::of(&completion, whose) {
                            return moved.push(on);
                        }
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

    /// Requests not answered yet, over all connections.
    pub(crate) fn outstanding(&self) -> usize {
        self.conns.iter().map(|(_, conn)| conn.outstanding()).sum()
    }

    /// The same without those that misbehave.
    pub(crate) fn expected(&self) -> usize {
        let polite = self.conns.iter().filter(|(_, conn)| !conn.manners().rude());
        polite.map(|(_, conn)| conn.outstanding()).sum()
    }

    /// Gives up everything that is not answered.
    pub(crate) fn abandon(&mut self, observer: &mut impl Observer) {
        let now_ns = self.clock.now_ns();
        for (_, conn) in &mut self.conns {
            let stream = conn.whose.stream;
            for (class, start_ns) in conn.abandon() {
                observer.lost(stream, class, start_ns, now_ns);
            }
        }
    }
}
