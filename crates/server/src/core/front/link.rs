//! A core's connection to the engine. Requests of many share it, each is answered in its turn.

mod greeting;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use front::{Pieces, Scanner, ScriptUser};
use mio::{Registry, Token};
use policy::{Nanos, PrincipalId};
use resp::{Output, Protocol};

use super::claim::Claim;
use super::sizes::Whose;
use super::{Forward, Sent, LINK_TOKENS};
use crate::socket::{Progress, Socket};
use crate::tenants::ConnectionKey;
use crate::upstream::{in_words, UpstreamOptions};

/// After it was lost a connection is not tried again for so long: requests that come meanwhile are
/// told so at once.
const PAUSE_NS: Nanos = 100_000_000;

/// Parts handed to one `writev`.
const SLICES: usize = 32;

/// Bytes that are written to a link, or read from it, between two looks at everything else: what a
/// client's turn moves.
pub(super) const BYTES_AT_ONCE: usize = 64 << 10;

/// A long reply is kept in pieces of so many bytes.
const PIECE_BYTES: usize = 256 << 10;

/// A request of more bytes is not copied once more.
const OWN_PART_BYTES: usize = 16 << 10;

/// Lets the next request be served although its slot is still on its way here.
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// Why a link is lost whose node ends it.
const CLOSED: &str = "it has closed the connection";

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
    /// A replica is read from.
    reads: bool,
    token: Token,
    state: State,
    socket: Option<Socket>,
    /// Why it was lost.
    why: String,
    /// It was last lost before it carried anything, and whoever waited for that did so in vain.
    pub(super) in_vain: bool,
    /// What goes before all requests.
    greeting: Output,
    /// Requests that wait for the socket.
    out: Output,
    writable: bool,
    /// Bytes of requests so far, and those of them that the socket has taken. Under TLS it may hold
    /// some back, which count as gone all the same: what was sealed cannot be taken back.
    begun: u64,
    pub(super) gone: u64,
    /// Requests that are out, in order.
    pub(super) sent: VecDeque<Sent>,
    /// Who has it for himself, while something is out.
    pub(super) whose: Option<Whose>,
    /// Of scripts: for whom it goes, and as which user of the engine.
    pub(super) user: Option<(PrincipalId, ScriptUser)>,
    /// Who it is to the engine (`CLIENT ID`).
    pub(super) client_id: Option<i64>,
    /// Who waits by it is let go; the engine may come to that late, and is to meet nobody else.
    pub(super) ends: bool,
    /// For whom the engine watches keys by it.
    pub(super) watches_for: Option<ConnectionKey>,
    /// The beginning of a reply that is long, and how many bytes that is.
    pieces: Vec<Bytes>,
    in_pieces: usize,
    /// What has come of a reply behind that.
    pub(super) input: BytesMut,
    pub(super) scanner: Scanner,
    /// When it last said something.
    pub(super) heard: Nanos,
    /// It is known that something waits to be sent, or read.
    pub(super) noted: Noted,
}

/// Whether a link stands in the lists of those that have something to do.
#[derive(Clone, Copy, Default)]
pub(super) struct Noted {
    pub(super) flush: bool,
    pub(super) read: bool,
}

/// What was read.
pub(super) enum Heard {
    /// So many bytes; the `last` until the poll tells of more.
    Bytes { count: usize, last: bool },
    /// Nothing now.
    Nothing,
    /// The link is lost.
    Lost(String),
}

impl Link {
    pub(super) fn new(protocol: Protocol, reads: bool, number: usize) -> Self {
        Self::at(protocol, reads, Token(LINK_TOKENS + number))
    }

    pub(super) fn at(protocol: Protocol, reads: bool, token: Token) -> Self {
        Self {
            protocol,
            reads,
            token,
            state: State::Down { from: 0 },
            socket: None,
            why: String::new(),
            in_vain: false,
            greeting: Output::new(),
            out: Output::new(),
            writable: false,
            begun: 0,
            gone: 0,
            sent: VecDeque::new(),
            whose: None,
            user: None,
            client_id: None,
            ends: false,
            watches_for: None,
            pieces: Vec::new(),
            in_pieces: 0,
            input: BytesMut::new(),
            scanner: Scanner::default(),
            heard: 0,
            noted: Noted::default(),
        }
    }

    /// For how long somebody has waited for a word `by` then. Nothing need come to who waits until
    /// something does, as long as the node `serves`.
    pub(super) fn waited_ns(&self, by: Nanos, serves: bool) -> Nanos {
        let since = match (&self.state, self.sent.front()) {
            (State::Opening { since, .. }, _) => *since,
            (_, Some(first)) if first.forward.waits() && serves => return 0,
            (_, Some(first)) => first.at.max(self.heard),
            _ => return 0,
        };
        by.saturating_sub(since)
    }

    /// Whether it carries requests.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// Whether nobody has used it for so long.
    pub(super) fn is_idle(&self, now: Nanos, ns: Nanos) -> bool {
        self.is_open()
            && self.sent.is_empty()
            && self.watches_for.is_none()
            && now.saturating_sub(self.heard) > ns
    }

    /// Ends it. REQUIRES: nothing is out for which anybody waits.
    pub(super) fn close(&mut self) {
        let user = self.user.take();
        *self = Self::at(self.protocol, self.reads, self.token);
        self.user = user;
    }

    /// From now on it goes for this tenant. While it is down, it takes over who that is at the
    /// engine. REQUIRES: nothing is out for another.
    pub(super) fn act_for(&mut self, tenant: PrincipalId, user: impl FnOnce() -> ScriptUser) {
        if self.acts_for() != Some(tenant) {
            self.close();
        }
        if matches!(self.state, State::Down { .. }) {
            self.user = Some((tenant, user()));
        }
    }

    /// What is said of one that was waited for in vain.
    pub(super) fn silent(&self, patience: Duration) -> String {
        let what = match self.socket.as_ref().is_some_and(Socket::is_handshaking) {
            true => "it has not ended the TLS handshake",
            false => "it has said nothing",
        };
        format!("{what} for {} s", patience.as_secs())
    }

    /// Makes sure that it is there or on its way, to the node at `at` that is called `node`. Who is
    /// told that it is away need not wait: it is on its way all the same, if its time has come.
    ///
    /// # Errors
    /// Why the engine is away, or was when others last waited for it.
    pub(super) fn ready(
        &mut self,
        now: Nanos,
        node: &str,
        at: SocketAddr,
        options: &UpstreamOptions,
        registry: &Registry,
    ) -> Result<(), String> {
        match self.state {
            State::Open => return Ok(()),
            State::Opening { .. } => return self.is_worth_waiting(),
            State::Down { from } if now < from => return Err(self.why.clone()),
            State::Down { .. } => {}
        }
        match options.connect(node, at, self.token, registry) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => {
                self.lost(now, error.to_string());
                return Err(self.why.clone());
            }
        }
        let left = self.greet(options);
        self.state = State::Opening { since: now, left };
        self.is_worth_waiting()
    }

    /// Of one that is on its way.
    fn is_worth_waiting(&self) -> Result<(), String> {
        match self.in_vain {
            true => Err(self.why.clone()),
            false => Ok(()),
        }
    }

    /// What the wire takes to the engine and back, if that is known, ns.
    pub(super) fn round_trip_ns(&self) -> Option<Nanos> {
        self.socket.as_ref().and_then(Socket::round_trip_ns)
    }

    /// Takes a request to be sent; `keeps` its bytes, too. REQUIRES: [`Link::ready`].
    pub(super) fn push(
        &mut self,
        mut forward: Forward,
        keeps: bool,
        permit: Option<stage::Permit>,
        now: Nanos,
    ) {
        let pieces = match keeps {
            true => forward.pieces.clone(),
            false => std::mem::take(&mut forward.pieces),
        };
        let mut before = forward.before;
        let (start, mut len) = (self.begun, pieces.iter().map(Bytes::len).sum());
        if forward.asking {
            self.out.write(ASKING);
            before += 1;
            len += ASKING.len();
        }
        self.begun += len as u64;
        for piece in pieces {
            match piece.len() < OWN_PART_BYTES {
                true => self.out.write(&piece),
                false => self.out.write_bytes(piece),
            }
        }
        self.sent.push_back(Sent {
            forward,
            permit,
            before,
            elsewhere: None,
            start,
            at: now,
            len,
            large: false,
            took: 0,
            claim: Claim::default(),
        });
    }

    /// Takes bytes to be sent of which it keeps no account. REQUIRES: [`Link::ready`].
    pub(super) fn say(&mut self, pieces: Pieces) {
        for piece in pieces {
            self.out.write_bytes(piece);
        }
    }

    /// The socket takes bytes again.
    pub(super) fn takes(&mut self) {
        self.writable = true;
    }

    /// Sends what waits, as far as the socket takes it; requests only behind the greeting's
    /// answers, so that none is sent where it would not be understood. True: it takes more.
    pub(super) fn flush(&mut self) -> Result<bool, String> {
        let Some(socket) = &mut self.socket else {
            return Ok(false);
        };
        let (mut left, mut more) = (BYTES_AT_ONCE, false);
        while self.writable {
            let greets = !self.greeting.is_empty();
            let out = match self.state {
                _ if greets => &mut self.greeting,
                State::Open => &mut self.out,
                _ => break,
            };
            if out.is_empty() || left == 0 {
                more = !out.is_empty();
                break;
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = out.io_slices(&mut slices, left);
            match socket
                .write(&slices[..count])
                .map_err(|why| in_words(&why))?
            {
                Progress::Moved(count) => {
                    out.advance(count);
                    left -= count;
                    if !greets {
                        self.gone += count as u64;
                    }
                }
                Progress::Blocked => self.writable = false,
                Progress::Closed => return Err(CLOSED.into()),
            }
        }
        // What TLS holds back: nothing above tells of it.
        if self.writable {
            let flushed = socket.flush().map_err(|why| in_words(&why))?;
            self.writable = flushed != Progress::Blocked;
        }
        Ok(more)
    }

    /// Reads what is there.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Heard {
        let Some(socket) = &mut self.socket else {
            return Heard::Nothing;
        };
        match socket.read(into) {
            Ok(Progress::Moved(count)) => Heard::Bytes {
                count,
                last: socket.is_emptied(count, into.len()),
            },
            Ok(Progress::Blocked) => Heard::Nothing,
            Ok(Progress::Closed) => Heard::Lost(CLOSED.into()),
            Err(why) => Heard::Lost(in_words(&why)),
        }
    }

    /// What the reply at hand needs at least, as far as it has come.
    pub(super) fn needs(&self) -> usize {
        self.in_pieces + self.scanner.needs().max(self.input.len())
    }

    /// Keeps what has come of a reply. What is long is not gathered in one buffer, which would have
    /// to be copied as it grows, and freed at once.
    pub(super) fn keep(&mut self) {
        if self.input.len() >= PIECE_BYTES {
            let understood = self.scanner.forget(self.input.len());
            if understood > 0 {
                self.in_pieces += understood;
                self.pieces.push(self.input.split_to(understood).freeze());
            }
        }
        let more = self.scanner.needs().saturating_sub(self.input.len());
        self.input.reserve(more.min(PIECE_BYTES));
    }

    /// Forgets what has come of a reply that is let go; returns what takes long to free.
    pub(super) fn let_go(&mut self) -> Vec<Bytes> {
        let gone = self.scanner.forget(self.input.len());
        // A copy: the buffer may be a long one.
        self.input = BytesMut::from(&self.input[gone..]);
        let (pieces, in_pieces) = self.take_pieces();
        if let Some(sent) = self.sent.front_mut() {
            sent.claim.lets_go(gone + in_pieces);
        }
        pieces
    }

    /// The beginning of the reply at hand, and how many bytes that is.
    pub(super) fn take_pieces(&mut self) -> (Vec<Bytes>, usize) {
        let bytes = std::mem::take(&mut self.in_pieces);
        (std::mem::take(&mut self.pieces), bytes)
    }

    /// Whether a request had begun to leave.
    pub(super) fn has_left(&self, sent: &Sent) -> bool {
        sent.start < self.gone
    }

    /// It is gone; what was out is given back.
    pub(super) fn lost(&mut self, now: Nanos, why: String) -> VecDeque<Sent> {
        let sent = std::mem::take(&mut self.sent);
        let (gone, user) = (self.gone, self.user.take());
        let waited_ns = match self.state {
            State::Opening { since, .. } => now.saturating_sub(since),
            _ => 0,
        };
        *self = Self::at(self.protocol, self.reads, self.token);
        self.in_vain = waited_ns > PAUSE_NS;
        self.user = user;
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
