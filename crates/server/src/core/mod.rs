//! A core: one thread, its connections, its queues.
//!
//! ```text
//!  poll ─▶ readable connections ─▶ [ request stage ] ─▶ turn: read, run in memory, reply ─┐
//!   ▲                                                     │ disk       │ write            │
//!   │                                              [ handler stage ]   │                  │
//!   │                                                     ▼            ▼                  │
//!   └───────────────── mailbox ◀───────────────────── handlers     committer ◀────────────┘
//! ```
//!
//! Nothing here waits for anything but the poll, and for a lock that others hold for a look or a
//! change (ARCHITECTURE.md, Locks). Cores tell each other what their tenants have used when a round
//! of about a millisecond is over, and the stage charges it to the same tenants here.

mod accept;
mod agenda;
mod ahead;
mod answer;
mod apart;
mod arrival;
mod balance;
mod blame;
mod command;
mod commit;
mod committers;
mod crew;
mod front;
mod growth;
mod handler;
mod help;
mod large;
mod lines;
mod mailbox;
mod memory;
mod message;
mod paused;
mod places;
mod post;
mod principal;
mod processor;
mod sending;
mod serve;
mod session;
mod slow;
mod stages;
mod tenancy;
mod turn;
mod unanswered;
mod waiting;
mod wire;
mod work;

use std::sync::Arc;

use mio::{Events, Poll, Token};
use policy::lend::Need;
use policy::{Cost, Nanos};
use stage::Consumed;

pub use accept::Door;
pub use mailbox::Mailbox;
pub use message::Message;

use crate::connection::Connection;
use crate::shared::{News, Shared};
use crate::tenants::{ConnectionKey, Tenant};
use agenda::Agenda;
use arrival::{Awake, Look};
use balance::Balance;
use blame::Trails;
use committers::Committers;
use crew::Crew;
use front::{Front, NodeWeights};
use lines::Lines;
use paused::Paused;
use places::Places;
use principal::Principals;
use processor::Processor;
use stages::request_stage;
use waiting::Waiting;
use wire::Wire;

/// Messages that are read before others get their turns. Most take a tenth of a microsecond, some a
/// few.
const MAIL_MAX: usize = 256;

/// Resources of the request stage: requests, bytes in, bytes out, CPU ns.
pub const RESOURCES: usize = 4;

/// What a turn has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Requests, a multi-key one counting a request a key.
    pub requests: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Words of requests that were looked at.
    pub words: u64,
    /// Keys, records and KiB of values that were looked at or written ([`engine::TURN_STEPS`]).
    pub steps: u64,
    /// When it began to send replies, the last time that it did.
    pub sent_from: Option<Nanos>,
}

impl Used {
    fn cost(&self, cpu_ns: Nanos) -> Cost<RESOURCES> {
        Cost([self.requests, self.bytes_in, self.bytes_out, cpu_ns])
    }

    /// For [`crate::shared::LargestTurn`].
    fn largest(&self, cpu_ns: Nanos) -> [u64; 4] {
        let bytes = self.bytes_in.max(self.bytes_out);
        [self.words, bytes, self.steps, cpu_ns]
    }
}

/// One core.
pub struct Core {
    id: usize,
    shared: Arc<Shared>,
    poll: Poll,
    /// Those of all cores.
    mailboxes: Arc<[Mailbox]>,
    door: Option<Door>,
    places: Places,
    principals: Principals,
    /// Who waits for a turn.
    lines: Lines,
    /// The handler stage: units of work that need the disk. Its resource is handler time in ns.
    handlers: Arc<Crew>,
    /// The stages before the further nodes of an engine that is a cluster; the handler stage stands
    /// before its first.
    beyond: Vec<Arc<Crew>>,
    /// What tenants weigh before each of those nodes.
    node_weights: NodeWeights,
    /// What was asked last of the handlers' permits that cores share, and how many it may use.
    permits: (Need, u32),
    trails: Trails,
    waiting: Waiting,
    paused: Paused,
    /// Tenants that are gone, and have connections here still.
    leaving: Vec<Arc<Tenant>>,
    balance: Balance,
    processor: Processor,
    committers: Committers,
    /// Its side of the engine behind this server, where there is one.
    front: Option<Box<Front>>,
    /// What tenants used here since the last round; kept to be filled again.
    consumed: Vec<Consumed>,
    wire: Wire,
    /// The clock at its last reading: a reading costs as much as parsing a small request.
    now: Nanos,
    /// Time of day at the last look at the poll.
    now_ms: u64,
    /// The last look at the poll.
    look: Look,
    awake: Awake,
    /// Every request of this turn is answered so: its tenant is over a limit.
    refusal: Option<(telemetry::Limit, String)>,
    agenda: Agenda,
    /// Commands that take longer go to the slow log.
    slow_over_ns: Nanos,
    phase: Phase,
}

/// Where a core is between its start and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serves,
    /// It takes no new connection, and closes each as soon as it has nothing under way.
    Drains,
    Stopped,
}

impl Core {
    /// A core with a poll of its own; `door` is given to the one that accepts connections.
    pub fn new(
        id: usize,
        shared: Arc<Shared>,
        poll: Poll,
        mailboxes: Arc<[Mailbox]>,
        door: Option<Door>,
    ) -> Self {
        let options = &shared.options;
        let now = options.clock.now();
        let front = Front::new(&shared, now);
        let crew = || crew::new(&shared, &mailboxes[id]);
        let beyond = 1..front.as_ref().map_or(1, |front| front.nodes());
        let (handlers, beyond) = (crew(), beyond.map(|_| crew()).collect());
        Self {
            id,
            poll,
            mailboxes,
            door,
            places: Places::default(),
            principals: Principals::new(id),
            lines: Lines::new(|| request_stage(&shared), now),
            handlers,
            beyond,
            node_weights: NodeWeights::default(),
            permits: (Need::default(), 0),
            trails: Trails::default(),
            waiting: Waiting::default(),
            paused: Paused::default(),
            leaving: Vec::new(),
            balance: Balance::new(options.cores, now),
            processor: Processor::new(options.thread_time),
            committers: Committers::new(now),
            front,
            consumed: Vec::new(),
            wire: Wire::new(options),
            now,
            now_ms: (options.wall_ms)(),
            awake: Awake::default(),
            look: Look {
                from: now,
                until: now,
                woken: false,
            },
            refusal: None,
            agenda: Agenda::new(now),
            slow_over_ns: slow::slow_over_ns(shared.tuning().slow_log_over_us),
            phase: Phase::Serves,
            shared,
        }
    }

    /// Its own mailbox.
    fn mailbox(&self) -> &Mailbox {
        &self.mailboxes[self.id]
    }

    /// Serves until it is told to stop.
    pub fn run(mut self) {
        let mut events = Events::with_capacity(1_024);
        self.post(self.now);
        while self.phase != Phase::Stopped {
            self.wait(&mut events);
            let looks_at = self.door.as_ref().and_then(Door::looks_at);
            if looks_at.is_some_and(|at| self.now >= at) {
                self.door_rings(self.now);
            }
            self.read_mail();
            self.end_pauses();
            let left = self.serve();
            self.see_on(self.now);
            self.end_round();
            if self.lines.returns.queued() > left {
                // Something ended without anybody's word: its engine is away, or silent.
                self.agenda.wake_by(self.now);
            }
        }
        self.handlers.end();
        self.close_all();
        self.mailbox().close();
    }

    /// Takes note of what the poll says of a connection; it `came` then.
    fn noticed(&mut self, token: Token, event: &mio::event::Event, came: Nanos) {
        let place = u32::try_from(token.0).ok();
        let Some(key) = place.and_then(|place| self.places.key_at(place)) else {
            return self.link_noticed(event);
        };
        let Some(mut connection) = self.places.lift(key) else {
            return;
        };
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            let last = event.is_read_closed() || event.is_error();
            connection.inbound.notice(came, last);
            connection.hold.heard();
        }
        if event.is_writable() {
            connection.writable = true;
        }
        let now = self.now;
        self.put_back(key, connection, now);
    }

    /// Puts a connection back in its place, and in its tenant's queue if it has something to do.
    fn put_back(&mut self, key: ConnectionKey, mut connection: Box<Connection>, now: Nanos) {
        if connection.wants_turn() {
            // What came while the last request was under way has waited since then.
            let came = connection.inbound.came().unwrap_or(now);
            connection.tally.begin(came, now);
            connection.in_line.requests = true;
            let terms = self.principals.terms(&connection);
            let principal = connection.tenant.id;
            let requests = &mut self.lines.requests;
            if requests.enqueue_on(now, principal, 0, terms, key).is_err() {
                // The queue is as long as connections are allowed: it cannot be full of others.
                tracing::error!(tenant = connection.tenant.name, "request queue is full");
                connection.in_line.requests = false;
            }
        }
        let drains = self.phase == Phase::Drains;
        // It may wait for ever, for nobody or in vain.
        let waits = (drains || connection.inbound.is_last()) && connection.waits_at_engine();
        if waits || drains && connection.idle() {
            self.close(key, connection);
        } else {
            self.places.back(key, connection);
        }
    }

    /// Takes no new connection, and closes each as soon as it has nothing under way.
    fn drain(&mut self) {
        self.door = None;
        if self.phase == Phase::Serves {
            self.phase = Phase::Drains;
            self.paused.look_soon();
        }
        let now = self.shared.options.clock.now();
        for key in self.places.keys() {
            if let Some(connection) = self.places.lift(key) {
                self.put_back(key, connection, now);
            }
        }
    }

    /// Reads what others have left, so much at a time: reading only queues what they say.
    fn read_mail(&mut self) {
        self.mailbox().open();
        let now = self.shared.options.clock.now();
        let unread = self.front.is_some() && self.listen_on(now);
        for _ in 0..MAIL_MAX {
            let Some(message) = self.mailbox().take() else {
                self.agenda.mail_waits = self.tell_committed(now) || unread;
                return;
            };
            self.read(message, now);
        }
        self.tell_committed(now);
        self.agenda.mail_waits = true;
    }

    fn read(&mut self, message: Message, now: Nanos) {
        match message {
            Message::Adopt(connection) => self.adopt(connection, now),
            Message::Ready(key, ready) => self.ready(key, ready, now),
            Message::Rewritten(made) => self.rewritten(made),
            Message::Handled(handled) => self.handled(*handled, now),
            Message::Granted(admitted) => self.dispatch(*admitted, now),
            Message::Consumed(consumption) => self.lines.requests.absorb(now, &consumption),
            Message::Spent(principal, cpu_ns) => {
                let cost = Used::default().cost(cpu_ns);
                self.lines.requests.charge(now, principal, cost);
            }
            Message::Expire(tenant) => self.expire(tenant),
            Message::News(news) => self.hear(news, now),
        }
    }

    fn hear(&mut self, news: News, now: Nanos) {
        match news {
            News::Committed(tenant) => self.committed(tenant, now),
            News::Configure(tenant) => self.configure(&tenant, now),
            News::Forget(tenant) => self.forget(tenant, now),
            News::Kill(key) => self.close_killed(key, now),
            News::Tuned => self.tuned(now),
            News::Steered => self.steered(now),
            News::Look => self.see_unanswered(now),
            News::Unblock(key, how) => self.unblock(key, how, now),
            News::Unpaused => self.paused.look_soon(),
            News::Drain => self.drain(),
            News::Engine => self.engine_changed(now),
            News::Stop => self.phase = Phase::Stopped,
        }
    }

    /// The end of a round: tell the other cores what was used here, look after idle things.
    fn end_round(&mut self) {
        let now = self.shared.options.clock.now();
        if self.agenda.round_is_over(now) {
            self.tell_consumption();
            self.forget_left(now);
        }
        if self.shared.options.cores > 1 {
            self.rebalance(now);
        }
        if self.agenda.ticks(now) {
            self.tick();
        }
    }
}
