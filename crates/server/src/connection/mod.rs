//! One client's connection, as the core that owns it keeps it.

mod apart;
mod at_engine;
mod encoded;
mod inbound;
mod input;
mod outstanding;
mod pushes;
mod ready;
mod tally;
mod watching;

use std::sync::Arc;

use commands::Spec;
use engine::{EngineError, Seq};
use policy::Nanos;
use resp::{Output, OwnedArgs};
use smallvec::SmallVec;
use telemetry::Part;

use crate::session::Session;
use crate::socket::Socket;
use crate::tenants::{Client, Ending, Hold, Tenant};
use crate::unit::{Told, Unit};
pub use apart::{Apart, Piece, Then, Until};
pub use encoded::{Encoded, EncodedPart};
pub use inbound::Inbound;
pub use input::Input;
pub use outstanding::{Alone, Early, Outstanding};
pub use pushes::{Asks, Pushes};
pub use ready::{Finished, Ready};
pub use tally::{Tally, Wait};
pub use watching::{State as WatchState, WatchLink, Watching};

/// What a connection holds without being charged for it: that is planned for with the number of
/// connections.
pub const FREE_BYTES: u64 = 8 << 10;

/// A watched key, or a channel, with what finds it, roughly.
const WATCH_BYTES: usize = 200;

/// Why a connection takes no turn although it may have requests.
pub enum Parked {
    /// A key it wants is latched, its tenant's commit log is full, or what it is to see is not
    /// committed yet.
    Retry,
    /// Its work is queued for a handler or on one.
    Handler(Away),
    /// Its requests are with an engine of its own behind this server, or on their way there.
    Engine(Box<Outstanding>),
    /// An engine behind this server is to answer what it has asked about channels. What is
    /// published meanwhile may leave.
    Subscribing,
    /// Its tenant's database is being opened.
    Opening,
    /// Its password is being checked.
    Login,
    /// A handler makes room for more of its request.
    Growing,
    /// Its tenant holds as much memory in requests as it may.
    Memory,
    /// Its tenant has paused such commands (`CLIENT PAUSE`). What was answered before may leave.
    Paused,
    /// Its command runs apart, in pieces; what there is of the reply may leave meanwhile.
    Apart(Box<Apart>),
}

/// A request that is with a handler, as its connection knows it.
#[derive(Clone, Copy, Debug)]
pub struct Away {
    /// Its bytes, which the connection still answers for.
    pub bytes: u64,
    /// Something that it may have waited for is over, before it waited.
    pub told: bool,
}

/// Writes that were answered and are not committed yet.
#[derive(Default)]
pub struct Uncommitted {
    /// Writes whose replies are held back. All are of the tenant that the connection speaks for:
    /// while there are some, it speaks for no other.
    pub written: SmallVec<[Written; 4]>,
    /// The commit that it waits for before a reply may leave.
    pub awaits: Option<Seq>,
}

/// What a connection has of its tenant's memory for requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Bytes that its tenant's budget was told it holds.
    pub charged: u64,
    /// Since when it waits for more; 0: it does not.
    short_since: Nanos,
    /// Its tenant's refusals ([`crate::tenants::Budget::refusals`]) that it was looked at for.
    refusals: u64,
}

impl Memory {
    /// It holds this many bytes, and its tenant has them for it.
    pub fn holds(&mut self, bytes: u64) {
        self.charged = bytes;
        self.short_since = 0;
    }

    /// Its tenant has none left for it.
    pub fn falls_short(&mut self, now: Nanos) {
        if self.short_since == 0 {
            self.short_since = now;
        }
    }

    /// Its tenant has refused memory so often: whether any of that is news.
    pub fn news(&mut self, refusals: u64) -> bool {
        std::mem::replace(&mut self.refusals, refusals) != refusals
    }

    /// For how long it has waited for more, ns.
    pub fn waited_ns(&self, now: Nanos) -> Nanos {
        match self.short_since {
            0 => 0,
            since => now.saturating_sub(since),
        }
    }
}

/// The lines that a connection stands in. It may be in both: what it waited for can come while a
/// request waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct InLine {
    /// It waits for its turn in the request stage.
    pub requests: bool,
    /// It waits for a turn to see to what is ready, or to send what it was answered.
    pub returns: bool,
}

impl InLine {
    /// True when it stands in one of them.
    pub fn any(self) -> bool {
        self.requests || self.returns
    }
}

/// A connection's last command.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastCommand {
    /// None: it has had none.
    pub spec: Option<&'static Spec>,
    /// When it was noted in the connection's public face, ms of the core's clock.
    pub noted_ms: u64,
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
    /// The lane of its workload; 0: of none.
    pub lane: usize,
    /// What commands left behind: protocol, login, transaction.
    pub session: Session,
    /// What it has said and was not run yet.
    pub input: Input,
    /// Replies not yet sent.
    pub output: Output,
    /// Writes that were answered and are not committed yet.
    pub uncommitted: Uncommitted,
    /// What it has of its tenant's memory.
    pub memory: Memory,
    /// When bytes last moved between it and its client.
    pub moved_at: Nanos,
    /// When the last of what it wrote at an engine behind this server was answered; 0: it wrote
    /// nothing.
    pub wrote_at: Nanos,
    /// What an engine behind this server watches for it.
    pub watching: Option<Box<Watching>>,
    /// What such an engine sends it unasked.
    pub pushes: Option<Box<Pushes>>,
    /// Why it takes no turn.
    pub parked: Option<Parked>,
    /// Work to begin again when what it waits for is over.
    pub pending: Option<Pending>,
    /// What it has got of what it waited for; it sees to that in its next turn.
    pub ready: SmallVec<[Ready; 1]>,
    /// The database that it waited for could not be opened.
    pub open_error: Option<EngineError>,
    /// The core it belongs on, when that is another.
    pub moves_to: Option<usize>,
    /// How much its core did for it of late.
    pub served: Served,
    /// The lines that it stands in.
    pub in_line: InLine,
    /// What its client sends.
    pub inbound: Inbound,
    /// The socket may take bytes.
    pub writable: bool,
    /// Close it once the output is sent.
    pub closing: bool,
    /// Its last command.
    pub last: LastCommand,
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
        if self.session.state.publish(&self.client) {
            self.find_lane();
        }
        self.closing |= self.session.state.closing;
    }

    /// Finds to which of its tenant's workloads it belongs, when either has changed.
    pub fn find_lane(&mut self) {
        let labels = &self.session.state.labels;
        let workloads = &self.tenant.meters().workloads;
        self.lane = workloads.lane(&labels.name, &labels.lib_name);
    }

    /// A connection that has said nothing yet, and speaks for nobody.
    pub fn new(client: Arc<Client>, socket: Socket, hold: Hold, nobody: Arc<Tenant>) -> Self {
        Self {
            client,
            socket,
            hold,
            tenant: nobody,
            lane: 0,
            session: Session::default(),
            input: Input::default(),
            output: Output::default(),
            uncommitted: Uncommitted::default(),
            memory: Memory::default(),
            moved_at: 0,
            wrote_at: 0,
            watching: None,
            pushes: None,
            parked: None,
            pending: None,
            ready: SmallVec::new(),
            open_error: None,
            moves_to: None,
            served: Served::default(),
            in_line: InLine::default(),
            inbound: Inbound::unknown(),
            writable: true,
            closing: false,
            last: LastCommand::default(),
            ending: None,
            tally: Tally::default(),
        }
    }

    /// True when nothing of it is under way.
    pub fn idle(&self) -> bool {
        !self.in_line.any()
            && self.parked.is_none()
            && self.pending.is_none()
            && self.output.is_empty()
            && !self.socket.wants_write()
            && !self.input.may_hold_request()
    }

    /// Bytes that it holds of requests and replies; nothing, if they are few.
    pub fn held_bytes(&self) -> u64 {
        let waits = match &self.pending {
            Some(Pending::Unit(unit)) => unit.bytes(),
            Some(Pending::Request(request)) => request.len_bytes(),
            None => 0,
        };
        let transaction = self.session.transaction.as_ref();
        let held = self.input.held_bytes()
            + self.output.len()
            + waits
            + transaction.map_or(0, |transaction| transaction.bytes())
            + self.watched() * WATCH_BYTES
            + self.pushes.as_ref().map_or(0, |pushes| pushes.held_bytes());
        match held as u64 + self.away().map_or(0, |away| away.bytes) {
            ..FREE_BYTES => 0,
            bytes => bytes,
        }
    }

    /// Of how many parts what it holds is made: what it takes to free them.
    pub fn parts(&self) -> usize {
        let transaction = self.session.transaction.as_ref();
        transaction.map_or(0, |transaction| transaction.calls.len())
            + self.session.watches.len()
            + self.output.parts()
    }

    /// True when nothing of it is under way anywhere, so that another core can take it over.
    pub fn rests(&self) -> bool {
        self.parked.is_none()
            && self.uncommitted.awaits.is_none()
            && self.watching.is_none()
            && self.pushes.is_none()
            && self.pending.is_none()
            && self.ready.is_empty()
            && !self.in_line.any()
    }

    /// True when it is parked, and nothing of what lies in its output may leave until it is back.
    pub fn is_kept(&self) -> bool {
        let goes_on = matches!(
            self.parked,
            None | Some(Parked::Apart(_) | Parked::Paused | Parked::Subscribing)
        );
        !goes_on && !self.waits_at_engine()
    }

    /// The command that runs apart.
    pub fn apart(&self) -> Option<&Apart> {
        match &self.parked {
            Some(Parked::Apart(apart)) => Some(apart),
            _ => None,
        }
    }

    /// Its request that is with a handler, or runs apart.
    pub fn away(&self) -> Option<&Away> {
        match &self.parked {
            Some(Parked::Handler(away)) => Some(away),
            Some(Parked::Apart(apart)) => Some(&apart.away),
            Some(Parked::Engine(outstanding)) => Some(&outstanding.away),
            _ => None,
        }
    }

    /// What its requests under way have waited for since its last turn, before it stood in line for
    /// the next.
    pub fn waits_for(&self) -> Part {
        let sends = !self.output.is_empty() || self.socket.wants_write();
        match &self.parked {
            _ if self.uncommitted.awaits.is_some() => Part::Commit,
            Some(Parked::Handler(_) | Parked::Engine(_)) => Part::Disk,
            Some(Parked::Apart(_)) if !sends => Part::Disk,
            None | Some(Parked::Apart(_)) if sends => Part::Reply,
            None => Part::Arrival,
            Some(_) => Part::Hold,
        }
    }

    /// True when what lies in its output may leave.
    pub fn may_send(&self) -> bool {
        !self.is_kept() && self.uncommitted.awaits.is_none()
    }

    /// True when it may begin a request: nothing of an earlier one is under way.
    pub fn takes_requests(&self) -> bool {
        self.output.is_empty()
            && !self.closing
            && self.parked.is_none()
            && self.uncommitted.awaits.is_none()
            && self.uncommitted.written.is_empty()
    }

    /// True when a turn would move it forward: bytes to read or parse, or output that the socket
    /// can take.
    pub fn wants_turn(&self) -> bool {
        if self.in_line.any() || !self.may_send() {
            return false;
        }
        if !self.output.is_empty() || self.socket.wants_write() {
            return self.writable;
        }
        if self.takes_pushes() {
            return true;
        }
        if self.parked.is_some() {
            return false;
        }
        self.closing
            || self.pending.is_some()
            || self.inbound.wants_turn()
            || self.input.may_hold_request()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_found_memory_waits_anew_when_there_is_none_again() {
        let mut memory = Memory::default();
        memory.falls_short(10);
        memory.falls_short(15);
        assert_eq!(memory.waited_ns(30), 20);
        memory.holds(5);
        assert_eq!((memory.charged, memory.waited_ns(1_000)), (5, 0));
        memory.falls_short(2_000);
        assert_eq!(memory.waited_ns(2_001), 1);
    }
}
