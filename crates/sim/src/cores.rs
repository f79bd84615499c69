//! One node of several cores, as a server has them: connections belong to cores, each core decides
//! alone, cores tell each other what they served ([`Dispatch::report`], [`Dispatch::absorb`]), and
//! the busiest gives connections away ([`policy::balance`]).
//!
//! A cluster's nodes ([`crate::world`]) are one stage each. Here is what keeps a tenant's share
//! where its connections are on some of a node's cores only.
//!
//! A request may need the disk after its turn. It waits for a handler of its core then, and cores
//! lend each other permits for those ([`policy::lend`]).
//!
//! Cores run side by side, a round at a time; within a round they do not see each other, as in a
//! server, but for permits that come back.

mod handlers;

use policy::balance::{BalanceOptions, Balancer, CoreLoad, Movable};
use policy::dispatch::{Consumed, Dispatch, DispatchOptions, Meter, Next, Ticket, Verdict};
use policy::generator::{mix64, Generator};
use policy::lend::Lend;
use policy::{Cost, Nanos, PrincipalId, Promise};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Bytes in, requests, bytes out, and nanoseconds of a processor.
const R: usize = 4;
/// The server's: about a round, and about as often as a core compares itself with the others.
const ROUND_NS: Nanos = 1_000_000;
const INTERVAL_NS: Nanos = 100_000_000;

/// A node and its clients.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its cores.
    pub cores: usize,
    /// Whether they tell each other what they served.
    pub exchange: bool,
    /// When connections move from a busy core; none: they stay.
    pub balance: Option<BalanceOptions>,
    /// Threads that wait for the disk.
    pub handlers: u32,
    /// Whether cores lend each other those.
    pub lend: bool,
    /// Who has connections.
    pub tenants: Vec<Tenant>,
    /// Of what differs from turn to turn.
    pub seed: u64,
}

/// A tenant and its clients, each of which sends its next request when it has its reply.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// What it is promised.
    pub promise: Promise,
    /// Connections by core, as they came.
    pub connections: Vec<usize>,
    /// Mean processor time of a request, ns; each takes half of it to one and a half.
    pub turn_ns: Nanos,
    /// What a request then needs of a handler, ns; 0: nothing.
    pub disk_ns: Nanos,
    /// From a reply to the next request, ns.
    pub think_ns: Nanos,
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Processor time that each tenant had, ns.
    pub had_ns: Vec<Nanos>,
    /// Requests that handlers have done for each.
    pub read: Vec<u64>,
    /// Requests that each was refused for a limit.
    pub refused: Vec<u64>,
    /// Connections that moved.
    pub moves: u64,
}

/// Connections by when something happens to them.
type Times = BinaryHeap<Reverse<(Nanos, usize)>>;

struct Connection {
    tenant: usize,
    core: usize,
    /// Goes there after its turn.
    moves_to: Option<usize>,
    /// Processor time of its turns in this interval.
    load_ns: Nanos,
    /// A handler is at work for it.
    handling: Option<Ticket>,
}

struct Core {
    dispatch: Dispatch<usize, R>,
    now: Nanos,
    /// When connections have their next request.
    asks: Times,
    /// Connections that need a handler.
    handlers: Dispatch<usize, 1>,
    /// When handlers have done, by connection.
    ends: Times,
    balancer: Option<Balancer>,
    /// Who was served in this interval.
    active: BTreeSet<usize>,
    turns: u64,
    busy_ns: Nanos,
}

/// A node at work.
pub struct World<'n> {
    node: &'n Node,
    cores: Vec<Core>,
    connections: Vec<Connection>,
    lend: Lend,
    random: Generator,
    interval_began: Nanos,
    served: Served,
}

impl<'n> World<'n> {
    /// The node at time 0.
    #[must_use]
    pub fn new(node: &'n Node) -> Self {
        let meter = Meter {
            requests: 1,
            bytes: [true, false, true, false],
        };
        let core = |number: u64| {
            let mut options = DispatchOptions::new(
                [u64::MAX >> 20, 1 << 40, u64::MAX >> 20, 1_000_000_000],
                meter,
            );
            options.seed = mix64(node.seed ^ number);
            options.queue_max = 1 << 20;
            let mut dispatch = Dispatch::new(options);
            let each = (node.handlers / node.cores as u32).max(1);
            let mut handlers = Dispatch::new(DispatchOptions::handlers(each));
            for (id, tenant) in (0..).zip(&node.tenants) {
                let (id, promise) = (PrincipalId(id), &tenant.promise);
                dispatch.configure(0, id, &promise.at_requests());
                let seat = (number as u32 + id.0) % node.cores as u32;
                handlers.configure(0, id, &promise.at_handlers(seat, node.cores as u32));
            }
            Core {
                dispatch,
                now: 0,
                asks: BinaryHeap::new(),
                handlers,
                ends: BinaryHeap::new(),
                balancer: node.balance.map(Balancer::new),
                active: BTreeSet::new(),
                turns: 0,
                busy_ns: 0,
            }
        };
        let mut cores: Vec<Core> = (0..node.cores as u64).map(core).collect();
        let mut connections = Vec::new();
        for (tenant, of) in node.tenants.iter().enumerate() {
            for (core, count) in of.connections.iter().enumerate() {
                for _ in 0..*count {
                    cores[core].asks.push(Reverse((0, connections.len())));
                    connections.push(Connection {
                        tenant,
                        core,
                        moves_to: None,
                        load_ns: 0,
                        handling: None,
                    });
                }
            }
        }
        let nobody = vec![0; node.tenants.len()];
        World {
            node,
            cores,
            connections,
            lend: Lend::new(node.cores, (node.handlers / node.cores as u32).max(1)),
            random: Generator::new(node.seed),
            interval_began: 0,
            served: Served {
                had_ns: nobody.clone(),
                read: nobody.clone(),
                refused: nobody,
                moves: 0,
            },
        }
    }

    /// Runs until then.
    pub fn run(&mut self, until: Nanos) {
        let mut end = self.cores[0].now / ROUND_NS * ROUND_NS;
        while end < until {
            end += ROUND_NS;
            for core in 0..self.cores.len() {
                while self.cores[core].now < end {
                    self.turn(core, end);
                }
            }
            if self.node.exchange {
                self.exchange();
            }
            if end - self.interval_began >= INTERVAL_NS {
                self.rebalance(end);
            }
        }
    }

    /// What has come out so far.
    #[must_use]
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// A core gives one turn, or waits until there is something to do.
    fn turn(&mut self, number: usize, end: Nanos) {
        self.handled(number);
        self.release(number);
        let core = &mut self.cores[number];
        while let Some(Reverse((at, connection))) = core.asks.peek().copied() {
            if at > core.now {
                break;
            }
            core.asks.pop();
            let principal = PrincipalId(self.connections[connection].tenant as u32);
            // There is room: a connection is in the line once.
            let _ = core.dispatch.enqueue(core.now, principal, connection);
        }
        let first = |times: &Times| times.peek().map_or(end, |Reverse((at, _))| *at);
        let next_ask = first(&core.asks).min(first(&core.ends));
        match core.dispatch.next(core.now) {
            Next::Idle => core.now = next_ask.clamp(core.now + 1, end.max(core.now + 1)),
            Next::At(at) => core.now = at.min(next_ask).clamp(core.now + 1, end.max(core.now + 1)),
            Next::Grant(grant) => {
                let connection = &mut self.connections[grant.item];
                let tenant = &self.node.tenants[connection.tenant];
                let serves = grant.verdict == Verdict::Serve;
                let part = 0.5 + self.random.bits() as f64 / u64::MAX as f64;
                let took_ns = match serves {
                    true => (tenant.turn_ns as f64 * part) as Nanos,
                    false => 0,
                };
                core.now += took_ns.max(1);
                core.dispatch
                    .settle(core.now, grant.ticket, Cost([0, 1, 0, took_ns]));
                core.active.insert(grant.item);
                core.turns += 1;
                core.busy_ns += took_ns;
                connection.load_ns += took_ns;
                self.served.had_ns[connection.tenant] += took_ns;
                self.served.refused[connection.tenant] += u64::from(!serves);
                if serves && tenant.disk_ns > 0 {
                    let id = PrincipalId(connection.tenant as u32);
                    // A connection is in this line once, too.
                    let _ = core.handlers.enqueue(core.now, id, grant.item);
                    return;
                }
                self.answered(grant.item, number);
            }
        }
    }

    /// A connection has its reply: it asks again, perhaps at another core.
    fn answered(&mut self, connection: usize, number: usize) {
        let of = &mut self.connections[connection];
        let asks_at = self.cores[number].now + self.node.tenants[of.tenant].think_ns;
        let to = of.moves_to.take().unwrap_or(number);
        self.arrive(connection, number, to, asks_at);
    }

    /// A connection has its next request then, at the core that it is on from now on.
    fn arrive(&mut self, connection: usize, from: usize, to: usize, asks_at: Nanos) {
        if from != to {
            self.connections[connection].core = to;
            self.served.moves += 1;
            if let Some(balancer) = &mut self.cores[to].balancer {
                balancer.rests(connection as u64);
            }
        }
        self.cores[to].asks.push(Reverse((asks_at, connection)));
    }

    fn exchange(&mut self) {
        let reports = self.cores.iter_mut().map(|core| {
            let mut report = Vec::new();
            core.dispatch.report(&mut report);
            report
        });
        let reports: Vec<Vec<Consumed>> = reports.collect();
        for (to, core) in self.cores.iter_mut().enumerate() {
            let others = reports.iter().enumerate().filter(|(from, _)| *from != to);
            for (_, report) in others {
                core.dispatch.absorb(core.now, report);
            }
        }
    }

    /// Once an interval: each core looks at all loads, and the busiest picks connections.
    fn rebalance(&mut self, now: Nanos) {
        let interval_ns = now - self.interval_began;
        self.interval_began = now;
        let load = |core: &Core| {
            let queued = (0..self.node.tenants.len() as u32)
                .filter_map(|id| core.dispatch.observe(core.now, PrincipalId(id)))
                .map(|seen| seen.queued as u64);
            CoreLoad {
                busy_ns: core.busy_ns,
                backlog_ns: queued.sum::<u64>() * (core.busy_ns / core.turns.max(1)),
            }
        };
        let loads: Vec<CoreLoad> = self.cores.iter().map(load).collect();
        let busiest = loads.iter().map(|core| core.busy_ns).max();
        for number in 0..self.cores.len() {
            let core = &mut self.cores[number];
            let active = std::mem::take(&mut core.active);
            (core.turns, core.busy_ns) = (0, 0);
            // The others' connections are theirs to move.
            let chooses = busiest == Some(loads[number].busy_ns);
            let movable: Vec<Movable> = active
                .iter()
                .map(|id| (*id, &self.connections[*id]))
                .filter(|(_, connection)| {
                    chooses && connection.core == number && connection.moves_to.is_none()
                })
                .map(|(id, connection)| Movable {
                    id: id as u64,
                    core: number,
                    load_ns: connection.load_ns,
                })
                .collect();
            if let Some(balancer) = &mut core.balancer {
                for chosen in balancer.step(interval_ns, &loads, &movable).moves {
                    self.connections[chosen.id as usize].moves_to = Some(chosen.to);
                }
            }
        }
        for connection in &mut self.connections {
            connection.load_ns = 0;
        }
    }
}
