//! One connection: what waits to be sent, what waits to be answered.

use std::collections::VecDeque;
use std::io::{self, Write};

use mio::net::TcpStream;

use super::reply::{Kind, Reply, ReplyParser};
use super::Identity;
use crate::draw::Class;
use crate::encode;

/// Send buffers that grew beyond this are given back once empty.
const OUT_BYTES_KEPT: usize = 256 * 1024;

/// What the next reply answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Intended send time (open loop) or send time (closed loop), ns since the run began.
    pub(crate) start_ns: u64,
    /// `None`: a command of the handshake.
    pub(crate) class: Option<Class>,
}

/// A reply and the request that it answers.
pub(crate) struct Completion<'a> {
    pub(crate) stream: usize,
    pub(crate) class: Class,
    pub(crate) start_ns: u64,
    pub(crate) now_ns: u64,
    pub(crate) reply: Reply<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Usable (the handshake may still be in flight; requests queue behind it).
    Up,
    /// Lost; to be made again.
    Down,
    /// Given up.
    Retired,
}

pub(crate) struct Conn {
    pub(crate) socket: TcpStream,
    /// Index of the identity (and of the load) that it carries.
    pub(crate) stream: usize,
    pub(crate) status: Status,
    /// Connects that failed in a row.
    pub(crate) failures: u32,
    out: Vec<u8>,
    written: usize,
    parser: ReplyParser,
    sent: VecDeque<Sent>,
    handshaken: bool,
}

impl Conn {
    pub(crate) fn new(socket: TcpStream, stream: usize, identity: &Identity) -> Self {
        let mut conn = Self {
            socket,
            stream,
            status: Status::Up,
            failures: 0,
            out: Vec::new(),
            written: 0,
            parser: ReplyParser::default(),
            sent: VecDeque::new(),
            handshaken: false,
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
        self.handshaken = false;
        self.greet(identity);
    }

    fn greet(&mut self, identity: &Identity) {
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

    /// Bytes that the socket has not taken yet.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.out.len() - self.written
    }

    /// Takes the classes of everything that will never be answered.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = Class> + '_ {
        self.sent.drain(..).filter_map(|sent| sent.class)
    }

    /// Queues one request; `encode` appends its bytes.
    pub(crate) fn push(&mut self, class: Class, start_ns: u64, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.out);
        self.sent.push_back(Sent {
            start_ns,
            class: Some(class),
        });
    }

    /// Writes what the socket takes. Returns the number of bytes written.
    pub(crate) fn flush(&mut self) -> io::Result<u64> {
        let before = self.written;
        let mut total = 0;
        while self.written < self.out.len() {
            match self.socket.write(&self.out[self.written..]) {
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
        let (sent, stream, mut failed) = (&mut self.sent, self.stream, None);
        let (handshaken, failures) = (&mut self.handshaken, &mut self.failures);
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
                    on_completion(Completion {
                        stream,
                        class,
                        start_ns,
                        now_ns,
                        reply,
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
