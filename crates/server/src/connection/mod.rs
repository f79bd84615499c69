//! One client's connection, as the core that owns it keeps it.

mod apart;
mod ready;
mod socket;

use std::sync::Arc;

use bytes::BytesMut;
use engine::{EngineError, Lookups, Seq};
use policy::Nanos;
use smallvec::SmallVec;
use telemetry::Class;

use crate::commands::Spec;
use crate::resp::{Output, OwnedArgs, Parser};
use crate::session::Session;
use crate::tenants::{Client, Ending, Hold, Tenant};
use crate::unit::{Told, Unit};
pub use apart::{Apart, Piece, Then, Until};
pub use ready::{Finished, Ready};
pub use socket::{Progress, Socket};

/// What a connection holds without being charged for it: that is planned for with the number of connections.
pub const FREE_BYTES: u64 = 8 << 10;

/// A watched key with what finds it, roughly.
const WATCH_BYTES: usize = 200;

/// Why a connection takes no turn although it may have requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// A key it wants is latched, its tenant's commit log is full, or what it is to see is not committed yet.
    Retry,
    /// Its work is queued for a handler or on one.
    Handler,
    /// Its tenant's database is being opened.
    Opening,
    /// Its password is being checked.
    Login,
    /// A handler makes room for more of its request.
    Growing,
    /// Its tenant holds as much memory in requests as it may.
    Memory,
    /// Its command runs apart, in pieces; what there is of the reply may leave meanwhile.
    Apart,
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

/// Work to begin again when what it waits for is over.
pub enum Pending {
    /// A unit, which owns its words.
    Unit(Box<Unit>),
    /// A request, which has done nothing yet.
    Request(OwnedArgs),
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
    /// At least so many.
    pub missing: usize,
    /// Replies not yet sent.
    pub output: Output,
    /// Writes whose replies are held back. All are of the tenant that it speaks for: while there are some, it speaks
    /// for no other.
    pub written: SmallVec<[Written; 4]>,
    /// Bytes that its tenant's budget was told it holds.
    pub charged: u64,
    /// Bytes of requests of its that are away: queued for a handler, or on one.
    pub away: u64,
    /// Since when it waits for memory; 0: it does not.
    pub short_since: Nanos,
    /// When bytes last moved between it and its client.
    pub moved_at: Nanos,
    /// The commit that it waits for before a reply may leave.
    pub awaits: Option<Seq>,
    /// Why it takes no turn.
    pub parked: Option<Parked>,
    /// The command that runs apart.
    pub apart: Option<Box<Apart>>,
    /// Work to begin again when what it waits for is over.
    pub pending: Option<Pending>,
    /// What it has got of what it waited for; it sees to that in its next turn.
    pub ready: SmallVec<[Ready; 1]>,
    /// It was told that something it may have waited for is over, before it waited.
    pub told: bool,
    /// The database that it waited for could not be opened.
    pub open_error: Option<EngineError>,
    /// The core it belongs on, when that is another.
    pub moves_to: Option<usize>,
    /// How much its core did for it of late.
    pub served: Served,
    /// It waits for its turn in the stage.
    pub queued: bool,
    /// It waits for a turn to see to what is ready, or to send what it was answered.
    pub returning: bool,
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

/// A connection's turns in the interval that is named; nothing in any other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Served {
    /// Which; 0: none.
    pub interval: u64,
    /// Their time, ns.
    pub ns: Nanos,
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
    /// Takes over what a unit leaves behind.
    pub fn take_note(&mut self, told: Told) {
        self.tally.looked_up(told.lookups);
        if !told.watches.is_empty() {
            self.session.watches.add(told.watches);
        }
        if let Some(state) = told.state {
            self.session.state = *state;
            self.publish();
        }
    }

    /// Shows others what commands on the connection have changed.
    pub fn publish(&mut self) {
        self.session.state.publish(&self.client);
        self.closing |= self.session.state.closing;
    }

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
            missing: 0,
            output: Output::default(),
            written: SmallVec::new(),
            charged: 0,
            away: 0,
            short_since: 0,
            moved_at: 0,
            awaits: None,
            parked: None,
            apart: None,
            pending: None,
            ready: SmallVec::new(),
            told: false,
            open_error: None,
            moves_to: None,
            served: Served::default(),
            queued: false,
            returning: false,
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
            && !self.returning
            && self.parked.is_none()
            && self.pending.is_none()
            && self.output.is_empty()
            && !self.socket.wants_write()
            && (self.starved || self.input.is_empty())
    }

    /// Bytes that it holds of requests and replies; nothing, if they are few.
    pub fn held_bytes(&self) -> u64 {
        let waits = match &self.pending {
            Some(Pending::Unit(unit)) => unit.bytes(),
            Some(Pending::Request(request)) => request.len_bytes(),
            None => 0,
        };
        let transaction = self.session.transaction.as_ref();
        let held = self.input.len()
            + self.parser.capacity()
            + self.output.len()
            + waits
            + transaction.map_or(0, |transaction| transaction.bytes())
            + self.session.watches.len() * WATCH_BYTES;
        match held as u64 + self.away {
            ..FREE_BYTES => 0,
            bytes => bytes,
        }
    }

    /// Of how many parts what it holds is made: what it takes to free them.
    pub fn parts(&self) -> usize {
        let transaction = self.session.transaction.as_ref();
        transaction.map_or(0, |transaction| transaction.calls.len()) + self.session.watches.len()
    }

    /// True when nothing of it is under way anywhere, so that another core can take it over.
    pub fn rests(&self) -> bool {
        self.parked.is_none()
            && self.awaits.is_none()
            && self.pending.is_none()
            && self.ready.is_empty()
            && !self.returning
            && !self.queued
    }

    /// True when what lies in its output may leave.
    pub fn may_send(&self) -> bool {
        matches!(self.parked, None | Some(Parked::Apart)) && self.awaits.is_none()
    }

    /// True when it may begin a request: nothing of an earlier one is under way.
    pub fn takes_requests(&self) -> bool {
        self.output.is_empty()
            && !self.closing
            && self.parked.is_none()
            && self.awaits.is_none()
            && self.written.is_empty()
    }

    /// True when a turn would move it forward: bytes to read or parse, or output that the socket can take.
    pub fn wants_turn(&self) -> bool {
        if self.queued || self.returning || !self.may_send() {
            return false;
        }
        if !self.output.is_empty() || self.socket.wants_write() {
            return self.writable;
        }
        if self.parked.is_some() {
            return false;
        }
        self.closing
            || self.pending.is_some()
            || self.readable
            || !(self.starved || self.input.is_empty())
    }
}
