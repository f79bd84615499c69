//! What happens: the events of a run, and the state they change.

mod account;
mod arm;
mod backlog;
mod control;
mod disk;
mod faults;
mod files;
mod followed;
mod group;
mod lanes;
mod moves;
mod network;
mod node;
mod pauses;
mod pieces;
mod portions;
mod probe;
mod processors;
mod promised;
mod promises;
mod provided;
mod quotas;
mod replies;
mod router;
mod send;
mod tuning;

use crate::agenda::Agenda;
use crate::outcome::{Outcome, TenantOutcome};
use crate::prices::Prices;
use crate::spec::Spec;
use control::Controller;
use group::Group;
use lanes::Waiting;
use network::Network;
use node::Node;
use policy::multiget::{Levels, Opset, Tag};
use policy::replica::Feedback;
use policy::{Nanos, PrincipalId};
use promises::Keeper;
use quotas::Quotas;
use router::Router;
use slab::Slab;
use tuning::Told;
use workload::draw::Popularity;
use workload::rng::Rng;

/// One transmission of an operation: the operation's number and which of its two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copied(u32);

impl Copied {
    /// No transmission.
    const NONE: Copied = Copied(u32::MAX);

    fn new(op: usize, copy: usize) -> Self {
        Copied((op as u32) << 1 | copy as u32)
    }

    fn op(self) -> usize {
        (self.0 >> 1) as usize
    }

    fn copy(self) -> usize {
        (self.0 & 1) as usize
    }
}

/// What happens at a moment.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A stream's next request is sent, by the sender whose client asks; `ANY`: by the next one.
    Arrival { stream: u32, router: u32 },
    /// Operations reach a node: a chain through [`Op::next`].
    Deliver { node: u32, first: Copied },
    /// A node's processors have done with an operation, if nothing began since they were `asked`.
    Processed { node: u32, asked: u32 },
    /// A node has served an operation.
    Served { node: u32, place: u32 },
    /// Servers are asked how they stand for a request that is held back.
    Probe { held: u32 },
    /// They have answered: the request is sent.
    Probed { held: u32 },
    /// A reply reaches its sender.
    Reply { copy: Copied },
    /// A node's device has something done, or may begin something.
    Device { node: u32 },
    /// A handler runs again after an I/O of its node's device.
    Woken { node: u32, piece: u32 },
    /// It has done with what that read.
    Worked { node: u32, handler: u32 },
    /// A sender has read a reply.
    Read { router: u32 },
    /// A machine pauses.
    Pause { pause: u32, machine: u32 },
    /// An operation is sent again if it has no reply yet.
    Again { op: u32, born: u32 },
    /// A node asked to be asked again.
    Ask { node: u32 },
    /// A sender sees that an operation was lost with its node.
    Lost { copy: Copied },
    /// A fault begins or ends.
    Fault { fault: u32, begins: bool },
    /// All know that a node is dead.
    Noticed { node: u32 },
    /// A partition has been copied to a node.
    Copied { group: u32, node: u32 },
    /// Levels are chosen anew.
    Tune,
    /// A control step begins.
    Control,
    /// A node reports to the controller.
    Report { node: u32 },
    /// The controller decides.
    Decide,
    /// What it decided reaches the nodes.
    Decided,
    /// A step of the controller of promises.
    Keep,
    /// The warm-up is over.
    Measure,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct Request {
    stream: u32,
    router: u32,
    sent_at: Nanos,
    left: u32,
    operations: u32,
    /// One of its operations was, for a limit.
    refused: bool,
    /// It came beyond its tenant's contract.
    beyond: bool,
    /// It was late by what was before the handlers.
    held: bool,
}

/// An operation of a request.
#[derive(Clone, Copy, Debug)]
struct Op {
    request: u32,
    router: u32,
    /// Told apart from an earlier one with the same number.
    born: u32,
    group: u32,
    key: u64,
    tag: Tag,
    cost: u64,
    expected_ns: f32,
    /// What its sender takes it to need.
    known_ns: f32,
    bytes: u32,
    /// Of a range; else 1.
    keys: u32,
    put: bool,
    /// By copy.
    nodes: [u32; 2],
    homes: [u32; 2],
    principals: [PrincipalId; 2],
    next: [Copied; 2],
    sent_at: [Nanos; 2],
    /// What the reply will carry.
    told: [Feedback; 2],
    /// Copies not yet back.
    away: u8,
    answered: bool,
    /// By copy: its node did not serve it, for a limit.
    refused: [bool; 2],
}

/// A stream of a tenant.
#[derive(Debug)]
struct Source {
    tenant: u32,
    stream: u32,
    rng: Rng,
    popularity: Popularity,
}

/// A request that waits for answers to its probes.
#[derive(Debug)]
struct Held {
    stream: u32,
    router: u32,
    sent_at: Nanos,
    drawn: Vec<Drawn>,
    answers: Vec<(u32, Feedback)>,
}

/// An operation before it is sent.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    group: u32,
    key: u64,
    /// Which of the group's replicas is asked; `NOWHERE`: it waits.
    place: u32,
    expected_ns: f32,
    known_ns: f32,
    bytes: u32,
    /// Of a range; else 1.
    keys: u32,
    put: bool,
}

/// No replica: none is there, or none has a window open.
const NOWHERE: u32 = u32::MAX;
/// No sender in particular.
const ANY: u32 = u32::MAX;

/// Vectors that are emptied and filled again for every request.
#[derive(Debug, Default)]
struct Scratch {
    keys: Vec<u64>,
    drawn: Vec<Drawn>,
    opsets: Vec<Opset>,
    tags: Vec<Tag>,
    /// Last transmission of this request's to a node, by node; first ones in `chains`.
    last: Vec<Copied>,
    chains: Vec<(u32, Copied)>,
    /// Expected time of what this request is about to send, by node.
    planned_ns: Vec<f64>,
}

/// A cluster in a state.
#[derive(Debug)]
pub struct World<'s> {
    spec: &'s Spec,
    agenda: Agenda<Event>,
    sources: Vec<Source>,
    routers: Vec<Router>,
    nodes: Vec<Node>,
    /// What I/Os of their devices cost.
    prices: Option<Prices>,
    /// First group of each tenant, and where each group is.
    first_group: Vec<u32>,
    groups: Vec<Group>,
    /// By tenant: the size of a partition.
    partition_bytes: Vec<f64>,
    controller: Controller,
    keeper: Option<Keeper>,
    quotas: Quotas,
    /// Operations on partitions of which no replica lives.
    stranded: Vec<Waiting>,
    requests: Slab<Request>,
    ops: Slab<Op>,
    held: Slab<Held>,
    born: u32,
    next_router: u32,
    /// By which senders tag and nodes serve.
    levels: Levels,
    told: Told,
    /// Response times of operations, for speculation.
    responses: hdrhistogram::Histogram<u32>,
    again_after_ns: Nanos,
    scratch: Scratch,
    outcome: Vec<TenantOutcome>,
    noise: Rng,
    network: Network,
    /// When machines pause.
    pauses: Rng,
    /// What nodes were busy at the end of the warm-up, and at the end.
    busy_before_ns: u64,
    busy_after_ns: Option<u64>,
    /// Requests sent in the measured time that have no reply.
    awaited: u64,
    events: u64,
}

/// Runs a spec to its end.
#[must_use]
pub fn run(spec: &Spec) -> Outcome {
    let mut world = World::new(spec);
    while world.step() {}
    world.outcome()
}

impl<'s> World<'s> {
    /// The cluster at time 0.
    #[must_use]
    pub fn new(spec: &'s Spec) -> Self {
        let cluster = &spec.cluster;
        let prices = cluster.device.as_ref().and_then(Prices::of);
        let node = |number| Node::new(spec, number, prices.as_ref());
        let nodes = (0..cluster.nodes).map(node).collect();
        let (first_group, groups, controller) = control::ring(spec);
        let tenants = spec.tenants.iter().enumerate();
        let partition_bytes = tenants.map(|(number, one)| moves::partition_bytes(number, one));
        let senders = cluster.routers.max(1);
        let routers = (0..senders).map(|router| Router::new(spec, router));
        let mut world = World {
            spec,
            agenda: Agenda::default(),
            sources: Vec::new(),
            routers: routers.collect(),
            nodes,
            prices,
            first_group,
            groups,
            partition_bytes: partition_bytes.collect(),
            controller,
            keeper: Keeper::new(spec),
            quotas: Quotas::new(spec),
            stranded: Vec::new(),
            requests: Slab::new(),
            ops: Slab::new(),
            held: Slab::new(),
            born: 0,
            next_router: 0,
            levels: spec.scheduler.levels.clone(),
            told: Told::default(),
            responses: TenantOutcome::new("").latency_ns,
            again_after_ns: Nanos::MAX,
            scratch: Scratch {
                last: vec![Copied::NONE; cluster.nodes as usize],
                planned_ns: vec![0.0; cluster.nodes as usize],
                ..Scratch::default()
            },
            outcome: spec
                .tenants
                .iter()
                .map(|tenant| TenantOutcome::new(&tenant.name))
                .collect(),
            noise: Rng::new(spec.seed, 1 << 40),
            network: Network::new(spec.seed, senders, cluster.friction.skew_ns),
            pauses: Rng::new(spec.seed, 1 << 41),
            busy_before_ns: 0,
            busy_after_ns: None,
            awaited: 0,
            events: 0,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        self.place_all();
        self.plan_control();
        self.plan_tuning();
        self.plan_keeper();
        for (number, tenant) in self.spec.tenants.iter().enumerate() {
            for (stream, spec) in tenant.streams.iter().enumerate() {
                self.sources.push(Source {
                    tenant: number as u32,
                    stream: stream as u32,
                    rng: Rng::new(self.spec.seed, self.sources.len() as u64),
                    popularity: spec.requests.popularity.clone(),
                });
                self.start(self.sources.len() - 1);
            }
        }
        for (number, fault) in self.spec.faults.iter().enumerate() {
            for (at, begins) in [(fault.from_ns, true), (fault.until_ns, false)] {
                let fault = number as u32;
                self.agenda.after(at, Event::Fault { fault, begins });
            }
        }
        self.plan_pauses();
        self.agenda.after(self.spec.warm_up_ns, Event::Measure);
    }

    /// Lets the next event happen; false at the end of the run: nothing is sent after
    /// `ends_ns`, and replies are waited for until all are there, or `drain_ns` longer.
    pub fn step(&mut self) -> bool {
        let Some(event) = self.agenda.pop() else {
            return false;
        };
        let over_ns = self.now().saturating_sub(self.quotas.ends_ns);
        if over_ns > 0 {
            let busy_ns = self.busy_ns();
            self.busy_after_ns.get_or_insert(busy_ns);
            if self.awaited == 0 || over_ns > self.spec.drain_ns {
                return false;
            }
        }
        self.events += 1;
        match event {
            Event::Arrival { stream, router } => self.arrival(stream as usize, router),
            Event::Deliver { node, first } => self.deliver(node, first),
            Event::Processed { node, asked } => self.processed(node, asked),
            Event::Served { node, place } => self.served(node, place),
            Event::Probe { held } => self.probe(held as usize),
            Event::Probed { held } => self.probed(held as usize),
            Event::Reply { copy } if self.spec.cluster.reply_ns > 0 => self.queue_reply(copy),
            Event::Reply { copy } => self.reply(copy),
            Event::Device { node } => self.work_device(node),
            Event::Woken { node, piece } => self.woken(node, piece as usize),
            Event::Worked { node, handler } => self.worked(node, handler as usize),
            Event::Read { router } => self.read(router as usize),
            Event::Pause { pause, machine } => self.pause(pause as usize, machine),
            Event::Again { op, born } => self.again(op as usize, born),
            Event::Ask { node } => self.serve(node),
            Event::Lost { copy } => self.lost(copy),
            Event::Noticed { node } => self.noticed(node),
            Event::Copied { group, node } => self.copied(group, node),
            Event::Tune => self.tune(),
            Event::Control => self.control(),
            Event::Report { node } => self.report(node),
            Event::Decide => self.decide(),
            Event::Decided => self.decided(),
            Event::Keep => self.keep(),
            Event::Fault { fault, begins } => self.fault(fault as usize, begins),
            Event::Measure => self.busy_before_ns = self.busy_ns(),
        }
        true
    }

    /// Simulated time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.agenda.now()
    }

    /// Time since the warm-up, in the measured time.
    fn measured_ns(&self) -> Option<Nanos> {
        let over = self.now() > self.quotas.ends_ns;
        let since = self.now().checked_sub(self.spec.warm_up_ns);
        since.filter(|_| !over)
    }

    fn busy_ns(&self) -> u64 {
        self.nodes.iter().map(|node| node.busy_ns).sum()
    }

    /// What has come out so far.
    #[must_use]
    pub fn outcome(mut self) -> Outcome {
        let measured_ns = self.quotas.ends_ns.saturating_sub(self.spec.warm_up_ns);
        let seconds = measured_ns.div_ceil(1_000_000_000) as usize;
        for tenant in &mut self.outcome {
            tenant.finish(seconds);
        }
        let busy_ns = self.busy_after_ns.unwrap_or_else(|| self.busy_ns());
        let permits = f64::from(self.spec.cluster.nodes) * f64::from(self.spec.cluster.permits);
        Outcome {
            tenants: self.outcome,
            events: self.events,
            utilisation: (busy_ns - self.busy_before_ns) as f64
                / (permits * measured_ns.max(1) as f64),
            measured_ns,
            left: self.quotas.unanswered(),
            moves: self.controller.moves,
        }
    }
}
