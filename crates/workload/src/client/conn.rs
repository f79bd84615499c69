//! One connection: what waits to be sent, what waits to be answered.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;

use super::plan::{Handshake, Manners};
use super::reply::{Kind, Reply, ReplyParser};
use super::Identity;
use crate::draw::{Class, Draw};
use crate::encode::{self, KeyText};

/// Send buffers that grew beyond this are given back once empty.
const OUT_BYTES_KEPT: usize = 256 * 1024;

/// Bytes per system call: a thread that copies megabytes in one is not interrupted meanwhile, and
/// the open loops beside it are late.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// How a half-open connection introduces itself: the server waits for the rest.
const HALF_A_COMMAND: &[u8] = b"*3\r\n$4\r\nAUTH\r\n$9\r\nnobo";

/// What the next reply answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Intended send time (open loop) or send time (closed loop), ns since the run began.
    pub(crate) start_ns: u64,
    /// `None`: a command of the handshake.
    pub(crate) class: Option<Class>,
}

/// A request of one key as it can be sent again, to another front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) draw: Draw,
    pub(crate) key: u64,
    pub(crate) text: KeyText,
    /// How often it was sent on.
    pub(crate) moves: u32,
}

/// Whose connection it is, and where to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose {
    /// Index of the identity (and of the load) that it carries.
    pub(crate) stream: usize,
    /// Which client of the load it is of.
    pub(crate) client: usize,
    pub(crate) address: SocketAddr,
}

/// A reply and the request that it answers.
pub(crate) struct Completion<'a> {
    pub(crate) stream: usize,
    pub(crate) class: Class,
    pub(crate) start_ns: u64,
    pub(crate) now_ns: u64,
    pub(crate) reply: Reply<'a>,
    /// The request, of a client that knows of a cluster.
    pub(crate) kept: Option<Kept>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Usable (the handshake may still be in flight; requests queue behind it).
    Up,
    /// Lost; to be made again.
    Down,
    /// Given up.
    Retired,
    /// Gets no more requests; closed when the last one is answered.
    Leaving,
}

pub(crate) struct Conn {
    pub(crate) socket: TcpStream,
    pub(crate) whose: Whose,
    pub(crate) status: Status,
    /// Connects that failed in a row.
    pub(crate) failures: u32,
    out: Vec<u8>,
    written: usize,
    parser: ReplyParser,
    sent: VecDeque<Sent>,
    /// The requests among them, of a client that knows of a cluster; of others none.
    kept: VecDeque<Kept>,
    handshaken: bool,
    manners: Manners,
    /// Requests queued on this socket, and those of them that were answered.
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    /// Not to be read before then, ns (a slow reader's pause).
    pub(crate) rests_until_ns: u64,
}

impl Conn {
    pub(crate) fn new(
        socket: TcpStream,
        whose: Whose,
        identity: &Identity,
        manners: Manners,
    ) -> Self {
        let mut conn = Self {
            socket,
            whose,
            status: Status::Up,
            failures: 0,
            out: Vec::new(),
            written: 0,
            parser: ReplyParser::default(),
            sent: VecDeque::new(),
            kept: VecDeque::new(),
            handshaken: false,
            manners,
            asked: 0,
            answered: 0,
            rests_until_ns: 0,
        };
        conn.greet(identity);
        conn
    }

    /// Starts again on a new socket.
    pub(crate) fn reopen(&mut self, socket: TcpStream, identity: &Identity) {
        self.socket = socket;
        self.status = Status::Up;
        self.out.clear();
        self.written = 0;
        self.parser = ReplyParser::default();
        self.sent.clear();
        self.kept.clear();
        self.handshaken = false;
        (self.asked, self.answered, self.rests_until_ns) = (0, 0, 0);
        self.greet(identity);
    }

    fn greet(&mut self, identity: &Identity) {
        match self.manners.handshake {
            Handshake::Full => {}
            Handshake::None => return,
            Handshake::Partial => return self.out.extend_from_slice(HALF_A_COMMAND),
        }
        for words in identity.handshake() {
            encode::command(&mut self.out, &words);
            self.sent.push_back(Sent {
                start_ns: 0,
                class: None,
            });
        }
    }

    /// Requests (and handshake commands) sent or to be sent that were not answered.
    pub(crate) fn outstanding(&self) -> usize {
        self.sent.len()
    }

    /// It can be asked at once, and nothing is waited for.
    pub(crate) fn idle(&self) -> bool {
        self.status == Status::Up && self.sent.is_empty()
    }

    /// How it treats the server.
    pub(crate) fn manners(&self) -> Manners {
        self.manners
    }

    /// It has asked as often as it wants to on one socket.
    pub(crate) fn spent(&self) -> bool {
        self.manners.reconnect_after > 0 && self.asked >= self.manners.reconnect_after
    }

    /// Bytes that the socket has not taken yet.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.out.len() - self.written
    }

    /// Takes the class and start (ns) of everything that will never be answered.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = (Class, u64)> + '_ {
        let asked = |sent: Sent| Some((sent.class?, sent.start_ns));
        self.kept.clear();
        self.sent.drain(..).filter_map(asked)
    }

    /// Queues one request; `encode` appends its bytes.
    pub(crate) fn push(&mut self, class: Class, start_ns: u64, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.out);
        self.asked += 1;
        self.sent.push_back(Sent {
            start_ns,
            class: Some(class),
        });
    }

    /// Keeps the request that was queued last, so that it can be sent again. All of a connection
    /// are kept, or none.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self.kept.push_back(kept);
    }

    /// Writes what the socket takes. Returns the number of bytes written.
    pub(crate) fn flush(&mut self) -> io::Result<u64> {
        let before = self.written;
        let mut total = 0;
        while self.written < self.out.len() {
            let end = self.out.len().min(self.written + WRITE_BYTES_MAX);
            match self.socket.write(&self.out[self.written..end]) {
                Ok(n) => self.written += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        total += (self.written - before) as u64;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
            if self.out.capacity() > OUT_BYTES_KEPT {
                self.out = Vec::new();
            }
        }
        Ok(total)
    }

    /// Matches what was read with what was sent.
    ///
    /// # Errors
    /// Why this connection cannot go on: not RESP, a reply to nothing, or a refused handshake.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        on_completion: &mut impl FnMut(Completion<'_>),
    ) -> Result<(), String> {
        let (sent, stream, mut failed) = (&mut self.sent, self.whose.stream, None);
        let kept = &mut self.kept;
        let (handshaken, failures) = (&mut self.handshaken, &mut self.failures);
        let answered = &mut self.answered;
        self.parser.feed(bytes, |reply| {
            if reply.kind == Kind::Push {
                return;
            }
            match sent.pop_front() {
                Some(Sent {
                    start_ns,
                    class: Some(class),
                }) => {
                    if !*handshaken {
                        (*handshaken, *failures) = (true, 0);
                    }
                    *answered += 1;
                    on_completion(Completion {
                        stream,
                        class,
                        start_ns,
                        now_ns,
                        reply,
                        kept: kept.pop_front(),
                    });
                }
                Some(_) if reply.kind == Kind::Error => {
                    let text = String::from_utf8_lossy(reply.error);
                    failed = Some(format!("the server refused the handshake: {text}"));
                }
                Some(_) => {}
                None => failed = Some("a reply that answers no request".into()),
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}
