//! A core's connection to the engine. All requests of the core share it, each is answered in its
//! turn.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;

use bytes::BytesMut;
use front::{frame, Scanner};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use policy::Nanos;
use resp::{Output, Protocol};

use super::claim::Claim;
use super::{Forward, Sent};
use crate::upstream::UpstreamOptions;

/// After it was lost a connection is not tried again for so long: requests that come meanwhile are
/// told so at once.
const PAUSE_NS: Nanos = 100_000_000;

/// Parts handed to one `writev`, and bytes.
const SLICES: usize = 32;
const BYTES_AT_ONCE: usize = 1 << 20;

/// A request of more bytes is not copied once more.
const OWN_PART_BYTES: usize = 16 << 10;

/// Lets the next request be served although its slot is still on its way here.
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// Replies to the greeting.
const GREETINGS: u32 = 2;

/// How far a link is.
enum State {
    /// Nobody has asked for it yet, or it was lost; it may be tried from then on.
    Down { from: Nanos },
    /// It connects, or the engine has still to answer so many words of the greeting.
    Opening { since: Nanos, left: u32 },
    /// It carries requests.
    Open,
}

/// One connection.
pub struct Link {
    protocol: Protocol,
    token: Token,
    state: State,
    stream: Option<TcpStream>,
    /// Why it was lost.
    why: String,
    /// What goes before all requests.
    greeting: Output,
    /// Requests that wait for the socket.
    out: Output,
    writable: bool,
    /// Bytes of requests so far, and those of them that the kernel has.
    begun: u64,
    gone: u64,
    /// Requests that are out, in order.
    pub(super) sent: VecDeque<Sent>,
    /// The beginning of a reply.
    pub(super) input: BytesMut,
    pub(super) scanner: Scanner,
    /// When it last said something.
    pub(super) heard: Nanos,
    /// There may be more to read.
    pub(super) unread: bool,
}

/// What was read.
pub(super) enum Heard {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The link is lost.
    Lost(String),
}

impl Link {
    pub(super) fn new(protocol: Protocol, token: Token) -> Self {
        Self {
            protocol,
            token,
            state: State::Down { from: 0 },
            stream: None,
            why: String::new(),
            greeting: Output::new(),
            out: Output::new(),
            writable: false,
            begun: 0,
            gone: 0,
            sent: VecDeque::new(),
            input: BytesMut::new(),
            scanner: Scanner::default(),
            heard: 0,
            unread: false,
        }
    }

    /// For how long somebody has waited for a word.
    pub(super) fn waited_ns(&self, now: Nanos) -> Nanos {
        let since = match (&self.state, self.sent.front()) {
            (State::Opening { since, .. }, _) => *since,
            (_, Some(first)) => first.at.max(self.heard),
            _ => return 0,
        };
        now.saturating_sub(since)
    }

    /// Whether the engine answers for the greeting still.
    pub(super) fn greets(&self) -> bool {
        matches!(self.state, State::Opening { .. })
    }

    /// The engine has answered a word of the greeting.
    pub(super) fn greeted(&mut self, reply: &[u8]) -> Result<(), String> {
        if let Some(error) = reply.strip_prefix(b"-") {
            let why = String::from_utf8_lossy(error);
            return Err(format!("it says: {}", why.trim_end()));
        }
        if let State::Opening { left, .. } = &mut self.state {
            *left -= 1;
            if *left == 0 {
                self.state = State::Open;
            }
        }
        Ok(())
    }

    /// Makes sure that it is there or on its way.
    ///
    /// # Errors
    /// Why the engine is away.
    pub(super) fn ready(
        &mut self,
        now: Nanos,
        at: SocketAddr,
        options: &UpstreamOptions,
        registry: &Registry,
    ) -> Result<(), String> {
        match self.state {
            State::Open | State::Opening { .. } => return Ok(()),
            State::Down { from } if now < from => return Err(self.why.clone()),
            State::Down { .. } => {}
        }
        let stream = TcpStream::connect(at).and_then(|mut stream| {
            stream.set_nodelay(true)?;
            registry.register(
                &mut stream,
                self.token,
                Interest::READABLE | Interest::WRITABLE,
            )?;
            Ok(stream)
        });
        match stream {
            Ok(stream) => self.stream = Some(stream),
            Err(error) => {
                self.lost(now, error.to_string());
                return Err(self.why.clone());
            }
        }
        let left = self.greet(options);
        self.state = State::Opening { since: now, left };
        Ok(())
    }

    /// Writes the greeting; returns how many replies it has.
    fn greet(&mut self, options: &UpstreamOptions) -> u32 {
        let mut bytes = Vec::new();
        let login = options.login();
        if let Some(words) = &login {
            frame(words.iter().copied(), &mut bytes);
        }
        let hello: &[&[u8]] = match self.protocol {
            Protocol::Resp2 => &[b"PING"],
            Protocol::Resp3 => &[b"HELLO", b"3"],
        };
        frame(hello.iter().copied(), &mut bytes);
        let name: [&[u8]; 3] = [b"CLIENT", b"SETNAME", b"entremet"];
        frame(name.into_iter(), &mut bytes);
        self.greeting = Output::new();
        self.greeting.write(&bytes);
        GREETINGS + u32::from(login.is_some())
    }

    /// Takes a request to be sent; `keeps` its bytes, too. REQUIRES: [`Link::ready`].
    pub(super) fn push(
        &mut self,
        mut forward: Forward,
        keeps: bool,
        permit: stage::Permit,
        now: Nanos,
    ) {
        let bytes = match keeps {
            true => forward.bytes.clone(),
            false => std::mem::take(&mut forward.bytes),
        };
        let mut before = forward.before;
        let (start, mut len) = (self.begun, bytes.len());
        if forward.asking {
            self.out.write(ASKING);
            before += 1;
            len += ASKING.len();
        }
        self.begun += len as u64;
        match len < OWN_PART_BYTES {
            true => self.out.write(&bytes),
            false => self.out.write_bytes(bytes),
        }
        self.sent.push_back(Sent {
            forward,
            permit,
            before,
            elsewhere: None,
            start,
            at: now,
            len,
            claim: Claim::default(),
        });
    }

    /// The socket takes bytes again.
    pub(super) fn takes(&mut self) {
        self.writable = true;
    }

    /// Sends what waits, as far as the socket takes it; requests only behind the greeting's
    /// answers, so that none is sent where it would not be understood.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        while self.writable {
            let greets = !self.greeting.is_empty();
            let out = match self.state {
                _ if greets => &mut self.greeting,
                State::Open => &mut self.out,
                _ => return Ok(()),
            };
            if out.is_empty() {
                return Ok(());
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = out.io_slices(&mut slices, BYTES_AT_ONCE);
            match stream.write_vectored(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    out.advance(count);
                    if !greets {
                        self.gone += count as u64;
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => self.writable = false,
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Reads what is there.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Heard {
        let Some(stream) = &mut self.stream else {
            return Heard::Nothing;
        };
        loop {
            return match stream.read(into) {
                Ok(0) => Heard::Lost("it has closed the connection".into()),
                Ok(count) => Heard::Bytes(count),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => Heard::Nothing,
                    io::ErrorKind::Interrupted => continue,
                    _ => Heard::Lost(error.to_string()),
                },
            };
        }
    }

    /// Forgets what has come of a reply that is let go.
    pub(super) fn let_go(&mut self) {
        let gone = self.scanner.forget(self.input.len());
        // A copy: the buffer may have become large before.
        self.input = BytesMut::from(&self.input[gone..]);
        if let Some(sent) = self.sent.front_mut() {
            sent.claim.lets_go(gone);
        }
    }

    /// Whether a request had begun to leave.
    pub(super) fn has_left(&self, sent: &Sent) -> bool {
        sent.start < self.gone
    }

    /// It is gone; what was out is given back.
    pub(super) fn lost(&mut self, now: Nanos, why: String) -> VecDeque<Sent> {
        let sent = std::mem::take(&mut self.sent);
        let (protocol, token, gone) = (self.protocol, self.token, self.gone);
        *self = Self::new(protocol, token);
        self.state = State::Down {
            from: now + PAUSE_NS,
        };
        // For `has_left` of those that are given back.
        self.gone = gone;
        self.begun = gone;
        self.why = why;
        sent
    }
}
