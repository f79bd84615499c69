//! One client's connection, as the core that owns it keeps it.

pub mod client;
mod house;
mod peer;
mod socket;

use std::sync::Arc;

use bytes::BytesMut;
use engine::{Lookups, Seq};
use policy::Nanos;
use smallvec::SmallVec;
use telemetry::Class;

use crate::commands::Spec;
use crate::core::{Served, Stream, Unit};
use crate::resp::{Output, Parser};
use crate::session::Session;
use crate::shared::OpenError;
use crate::tenants::{Ending, Tenant};
use client::Client;
pub use house::{Hold, House};
pub use peer::Peer;
pub use socket::{Progress, Socket};

/// Why a connection takes no turn although it may have requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// A key it wants is latched, or its tenant's commit log is full.
    Retry,
    /// Its work is queued for a handler or on one.
    Handler,
    /// Its replies wait until this commit is done.
    Commit(Seq),
    /// Its tenant's database is being opened.
    Opening,
    /// Its password is being checked.
    Login,
    /// A handler runs its command of administration.
    Errand,
    /// Its reply is made piece by piece, the next one when it has taken the last.
    Stream,
}

/// A write whose reply is not sent yet, so that a failed commit can take the reply back.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The commit it waits for.
    pub seq: Seq,
    /// Where its reply begins in the output.
    pub start: usize,
    /// Where its reply ends.
    pub end: usize,
}

/// Requests answered but not yet counted: their latency ends when the reply leaves.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// Their class.
    pub class: Class,
    /// How many.
    pub count: u32,
}

/// One connection. An idle one owns no buffer.
pub struct Connection {
    /// Its public face.
    pub client: Arc<Client>,
    /// The byte stream.
    pub socket: Socket,
    /// Its seat; given back once the socket is closed, which is dropped before.
    pub hold: Hold,
    /// Whom it speaks for; nobody ([`crate::tenants::Registry::nobody`]) until it is authenticated.
    pub tenant: Arc<Tenant>,
    /// What commands left behind: protocol, login, transaction.
    pub session: Session,
    /// Bytes read and not yet parsed.
    pub input: BytesMut,
    /// Where parsing stopped.
    pub parser: Parser,
    /// `input` holds no whole request: it needs more bytes.
    pub starved: bool,
    /// Replies not yet sent.
    pub output: Output,
    /// Writes whose replies are held back.
    pub written: SmallVec<[Written; 4]>,
    /// Why it takes no turn.
    pub parked: Option<Parked>,
    /// The reply that is being made piece by piece.
    pub stream: Option<Box<Stream>>,
    /// Work to begin again when what it waits for is over.
    pub pending: Option<Box<Unit>>,
    /// The database that it waited for could not be opened.
    pub open_error: Option<OpenError>,
    /// The core it belongs on, when that is another.
    pub moves_to: Option<usize>,
    /// How much its core did for it of late.
    pub served: Served,
    /// It waits for its turn in the stage.
    pub queued: bool,
    /// The socket may have bytes (notices come once per arrival).
    pub readable: bool,
    /// When the oldest of these came, in ns of the core's clock; 0: that is not known.
    pub unread_since: Nanos,
    /// The socket may take bytes.
    pub writable: bool,
    /// The peer has closed or broken its side; what it had sent is still read.
    pub hung_up: bool,
    /// There is nothing more to read.
    pub ended: bool,
    /// Close it once the output is sent.
    pub closing: bool,
    /// Its last command.
    pub last: Option<&'static Spec>,
    /// When that was noted in its public face, ms since the Unix epoch.
    pub noted_ms: u64,
    /// How the command that was just answered ended, until that is counted.
    pub ending: Option<Ending>,
    /// What the requests under way have cost so far.
    pub tally: Tally,
}

/// What requests have cost until their replies leave.
#[derive(Default)]
pub struct Tally {
    /// Requests answered but not yet counted: their latency ends when the reply leaves.
    pub answered: SmallVec<[Answered; 4]>,
    /// When the oldest of them was noticed, in ns of the core's clock; 0: none is under way.
    pub since: Nanos,
    /// Time in the request stage's queue, ns.
    pub queue_ns: Nanos,
    /// Time on a handler, ns.
    pub disk_ns: Nanos,
    /// Time on the core, ns.
    pub cpu_ns: Nanos,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Requests answered with an error.
    pub failed: u32,
    /// Keys that reads found, and did not.
    pub lookups: Lookups,
}

impl Tally {
    /// Counts the keys that a read looked up.
    pub fn looked_up(&mut self, keys: Lookups) {
        self.lookups.found += keys.found;
        self.lookups.missed += keys.missed;
    }

    /// Counts a request that has been answered.
    pub fn count(&mut self, class: Class) {
        match self.answered.last_mut() {
            Some(last) if last.class == class => last.count += 1,
            _ => self.answered.push(Answered { class, count: 1 }),
        }
    }
}

impl Connection {
    /// A connection that has said nothing yet, and speaks for nobody.
    pub fn new(client: Arc<Client>, socket: Socket, hold: Hold, nobody: Arc<Tenant>) -> Self {
        Self {
            client,
            socket,
            hold,
            tenant: nobody,
            session: Session::default(),
            input: BytesMut::new(),
            parser: Parser::default(),
            starved: true,
            output: Output::default(),
            written: SmallVec::new(),
            parked: None,
            stream: None,
            pending: None,
            open_error: None,
            moves_to: None,
            served: Served::default(),
            queued: false,
            readable: true,
            unread_since: 0,
            writable: true,
            hung_up: false,
            ended: false,
            closing: false,
            last: None,
            noted_ms: 0,
            ending: None,
            tally: Tally::default(),
        }
    }

    /// True when nothing of it is under way.
    pub fn idle(&self) -> bool {
        !self.queued
            && self.parked.is_none()
            && self.output.is_empty()
            && (self.starved || self.input.is_empty())
    }

    /// True when what lies in its output may leave.
    pub fn may_send(&self) -> bool {
        matches!(self.parked, None | Some(Parked::Stream))
    }

    /// True when a turn would move it forward: bytes to read or parse, or output that the socket can take.
    pub fn wants_turn(&self) -> bool {
        if self.queued || !self.may_send() {
            return false;
        }
        if !self.output.is_empty() || self.socket.wants_write() {
            return self.writable;
        }
        if self.parked.is_some() {
            return false;
        }
        self.closing || self.readable || !(self.starved || self.input.is_empty())
    }
}
