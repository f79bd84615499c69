//! What is simulated.

mod faults;

pub use faults::{Fault, FaultKind, Machines, Pause};

use crate::friction::Friction;
use crate::keys::KeyCount;
use policy::device::Model;
use policy::dispatch::Discipline;
use policy::multiget::{Levels, Order, Strategy};
use policy::replica::Rule;
use policy::slo::control::Controller;
use policy::slo::Objective;
use policy::{Nanos, Promise};
use workload::draw::{Popularity, Sizes};

/// One run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Every random choice follows from it.
    pub seed: u64,
    /// Length, warm-up included.
    pub duration_ns: Nanos,
    /// What is sent before this is not counted.
    pub warm_up_ns: Nanos,
    /// How long replies are waited for after the end; a request without one has failed.
    pub drain_ns: Nanos,
    /// Nodes and what joins them.
    pub cluster: Cluster,
    /// What stands before each node's servers.
    pub scheduler: Scheduler,
    /// What senders do.
    pub routing: Routing,
    /// Who sends.
    pub tenants: Vec<Tenant>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// What machines do besides, again and again.
    pub pauses: Vec<Pause>,
    /// Who keeps tenants' promises; `None`: nobody, and they are not judged.
    pub keeper: Option<Keeper>,
}

/// The controller of promises, and how often it is asked. It knows tenants by their numbers, so
/// there is one node.
#[derive(Clone, Debug)]
pub struct Keeper {
    /// As it is at the start.
    pub controller: Controller,
    /// From step to step.
    pub interval_ns: Nanos,
}

/// Nodes and what joins them.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Number of nodes, at least 1.
    pub nodes: u32,
    /// Replicas of each partition, 1 to `nodes`.
    pub replicas: u32,
    /// Operations that a node serves at a time.
    pub permits: u32,
    /// Processors of a node: operations beyond that many share them alike.
    pub processors: u32,
    /// Senders; each tenant's requests go through all of them in turn.
    pub routers: u32,
    /// From a sender to a node, or back.
    pub one_way_ns: Nanos,
    /// What a sender's one processor takes for a reply, sending what follows from it included. 0:
    /// nothing.
    pub reply_ns: Nanos,
    /// A node that has something to do takes in what has come this long after the last time. 0: at
    /// once.
    pub look_ns: Nanos,
    /// Time an operation takes.
    pub service: Service,
    /// What all operations of a node share besides its permits.
    pub resources: Resources,
    /// The disk of each node; `None`: all is in memory, and nothing is kept.
    pub device: Option<Disk>,
    /// Who places partitions and gives tenants their weights.
    pub control: Control,
    /// What makes it less even than a model.
    pub friction: Friction,
}

/// Modelled disks under a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// What it is like.
    pub model: Model,
    /// I/Os outstanding at it, at least 1.
    pub depth: u32,
    /// Whether that number follows what the device does, as a server's: then it is the first, and
    /// the least.
    pub follows: bool,
    /// Operations that may wait for it at a time, at least 1, and as many more of tenants in
    /// credit; `None`: any number.
    pub handlers: Option<u32>,
    /// Share of the gets whose value is in memory, 0 to 1; the others read it, a put logs it.
    pub cached: f64,
    /// Larger values are never in memory, bytes.
    pub cached_bytes_max: u64,
    /// No I/O is larger, bytes.
    pub largest_bytes: u64,
    /// Disks, before each of which stands a stage; an operation lies on one of them.
    pub disks: u32,
    /// Who is next before a disk.
    pub discipline: Discipline,
    /// Data lies on this much of each disk, from its outer edge, bytes.
    pub span_bytes: u64,
    /// Larger reads go in pieces of this many bytes; `None`: of what calibrating the model finds.
    pub chunk_bytes: Option<u64>,
    /// Values lie one behind the other in files of this many bytes, each whole on one disk; `None`:
    /// anywhere.
    pub file_bytes: Option<u64>,
    /// Files anywhere that hold little or nothing of a range: it reads twice in each of them first.
    pub other_files: u32,
    /// Small reads that a range then does near its values.
    pub range_reads: u32,
    /// From the end of an I/O until its handler runs, which gives the permit back.
    pub wake_ns: Nanos,
    /// From then until it has done with the piece, and asks for the next one.
    pub piece_ns: Nanos,
}

/// Rates that a node's operations share, one after the other: bytes in, requests, bytes out.
/// `None`: any rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resources {
    /// Bytes of values written, a second.
    pub bytes_in_per_s: Option<f64>,
    /// Requests a second.
    pub requests_per_s: Option<f64>,
    /// Bytes of values read, a second.
    pub bytes_out_per_s: Option<f64>,
}

impl Resources {
    /// Nanoseconds that an operation needs of bytes in, requests and bytes out.
    #[must_use]
    pub fn needs_ns(&self, bytes: u32, put: bool) -> [f64; 3] {
        let ns = |amount: f64, per_s: Option<f64>| per_s.map_or(0.0, |rate| amount * 1e9 / rate);
        let (read, written) = match put {
            true => (0.0, f64::from(bytes)),
            false => (f64::from(bytes), 0.0),
        };
        [
            ns(written, self.bytes_in_per_s),
            ns(1.0, self.requests_per_s),
            ns(read, self.bytes_out_per_s),
        ]
    }
}

/// What tenants weigh at each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighs {
    /// Their own weights.
    Fixed,
    /// What a controller has exchanged to where each wants its share.
    Exchanged,
    /// What nodes have divided among themselves by where they serve them.
    Served,
}

/// Which of Pisces' mechanisms work in the background (thesis 4.3.1, 4.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Time from step to step.
    pub interval_ns: Nanos,
    /// Partitions are placed by demand (PP).
    pub places: bool,
    /// What a move gains counts for so long, against the copy that it takes; `None`: partitions
    /// move whenever it helps.
    pub horizon_ns: Option<Nanos>,
    /// Tenants' weights at nodes follow their demand there (WA).
    pub weighs: Weighs,
}

impl Default for Control {
    /// None of them; a step would be a second.
    fn default() -> Self {
        Control {
            interval_ns: 1_000_000_000,
            places: false,
            horizon_ns: None,
            weighs: Weighs::Fixed,
        }
    }
}

impl Cluster {
    /// Operations of nominal speed that a node serves at a time: it has no more than its processors
    /// give.
    #[must_use]
    pub fn parallel(&self) -> u32 {
        self.permits.min(self.processors).max(1)
    }

    /// Cost of a bottleneck, in nanoseconds, from which it is worth a round trip to ask first: the
    /// trip is then a tenth of it at most, and there are several operations whose nodes can be
    /// chosen.
    #[must_use]
    pub fn worth_probing_ns(&self) -> u64 {
        const ROUND_TRIPS: u64 = 10;
        const OPERATIONS: f64 = 4.0;
        let round_trips_ns = 2 * self.one_way_ns * ROUND_TRIPS;
        round_trips_ns.max((OPERATIONS * self.service.operation_ns) as u64)
    }
}

/// Time an operation takes at a node of nominal speed.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Whatever its size.
    pub operation_ns: f64,
    /// For each byte of its value.
    pub byte_ns: f64,
    /// What nobody can know before.
    pub noise: Noise,
}

impl Service {
    /// Expected time of an operation on a value of this many bytes.
    #[must_use]
    pub fn expected_ns(&self, bytes: u32) -> f64 {
        self.operation_ns + self.byte_ns * f64::from(bytes)
    }
}

/// A factor with mean 1 on a service time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Always 1.
    None,
    /// Exponential.
    Exponential,
    /// Log-normal with this sigma.
    LogNormal(f64),
}

/// What stands before each node's servers.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// Between tenants.
    pub discipline: Discipline,
    /// Inside a tenant.
    pub order: Order,
    /// How senders tag.
    pub strategy: Strategy,
    /// The levels.
    pub levels: Levels,
    /// Boost after this wait.
    pub guard_ns: Option<Nanos>,
    /// What senders know of costs.
    pub cost: CostKnown,
    /// What senders know of the queues.
    pub ahead: AheadKnown,
    /// What of this changes with the requests.
    pub tuning: Tuning,
}

/// What senders know of what an operation costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostKnown {
    /// That it is an operation (Rein 3.2.1).
    Operations,
    /// What operations take on average, in nanoseconds, as replies told their sender.
    Mean,
    /// In nanoseconds, by the sizes of the values that this sender was replied before.
    Learnt,
    /// Its expected time, in nanoseconds, by the true size of the value. No sender knows it.
    Expected,
}

impl CostKnown {
    /// Whether replies tell it.
    #[must_use]
    pub fn is_learnt(self) -> bool {
        matches!(self, CostKnown::Mean | CostKnown::Learnt)
    }
}

/// Who follows the requests with the order inside a tenant ([`policy::multiget::Tuner`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// Nobody: it stays as it is.
    None,
    /// Each sender with its own stretch, from the requests that it sends.
    Stretch,
    /// Levels four times a second, the same for all, from what all senders tell and how busy nodes
    /// are.
    Levels,
}

/// What senders know of the queues that their operations will find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AheadKnown {
    /// Nothing (Rein).
    Nothing,
    /// Everything, work on its way included (Rein 5.3's clairvoyant oracle).
    All,
}

/// What senders do.
#[derive(Clone, Copy, Debug)]
pub struct Routing {
    /// Which replica they ask.
    pub selection: Selection,
    /// What they send twice.
    pub redundancy: Redundancy,
    /// A multiget whose bottleneck costs at least this is sent only after the servers that could
    /// take part were asked how they stand: one more round trip, little for what takes long anyway,
    /// and the choice is as fresh as it can be. `None`: never.
    pub probe_from: Option<u64>,
}

/// Which replica is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// By a rule of ours, with a sender's own knowledge.
    Rule(Rule),
    /// Where the least goes before it, knowing everything.
    Oracle,
    /// By a window for each tenant and server; what finds none open waits with its sender (Pisces
    /// RS).
    Windows,
}

/// What is sent twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Redundancy {
    /// Nothing.
    None,
    /// Every operation, to two replicas at once.
    Duplicate,
    /// An operation without a reply after this quantile of operations' response times so far.
    Speculative {
        /// 0 to 1.
        quantile: f64,
    },
}

/// One tenant.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Its name in the outcome.
    pub name: String,
    /// Its name in the scenario, before a `count` made several of it.
    pub group: String,
    /// What it was promised at every node; where tenants' weights follow their demand, over all
    /// nodes together.
    pub promise: Promise,
    /// What its requests were promised, if the spec has a keeper.
    pub objective: Option<Objective>,
    /// Partitions of its keyspace, at least 1.
    pub partitions: u32,
    /// What it sends.
    pub streams: Vec<Stream>,
}

/// One stream of requests.
#[derive(Clone, Debug)]
pub struct Stream {
    /// When.
    pub arrivals: Arrivals,
    /// It sends nothing before this.
    pub from_ns: Nanos,
    /// It sends nothing from this on.
    pub until_ns: Nanos,
    /// What it sends in all; `None`: there is no end.
    pub quota: Option<Quota>,
    /// What.
    pub requests: Requests,
}

/// What a load's streams send in all. The run ends when all loads that have one are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The load's number among its tenant's.
    pub load: u32,
    /// Requests.
    pub requests: u64,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// A Poisson process.
    Poisson {
        /// Mean rate.
        per_s: f64,
    },
    /// Evenly spaced.
    Constant {
        /// Rate.
        per_s: f64,
    },
    /// So many senders, each with one request outstanding.
    Closed {
        /// Number of senders.
        clients: u32,
    },
}

/// What requests ask for.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Keys of a request.
    pub keys: KeyCount,
    /// They lie one behind the other, and are read as one value: a range.
    pub range: bool,
    /// Share of the requests for one key that write it, 0 to 1. Only the first replica is written.
    pub puts: f64,
    /// Which keys.
    pub popularity: Popularity,
    /// Size of a key's value.
    pub values: Sizes,
}

impl Requests {
    /// Bytes of a tenant's key, or of a range of so many keys that begins with it.
    #[must_use]
    pub fn bytes(&self, key: u64, keys: u32, tenant: u64) -> u32 {
        let each = |key| u64::from(self.values.of(key, tenant));
        let all: u64 = (key..key + u64::from(keys)).map(each).sum();
        u32::try_from(all).unwrap_or(u32::MAX)
    }
}
