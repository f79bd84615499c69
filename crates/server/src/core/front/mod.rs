//! Before an engine of its own: what stands in the place of handlers and databases when the data is
//! kept by a Redis or Valkey, or by a cluster of them.
//!
//! ```text
//!  turn: parse, mark keys ─▶ [ handler stage ] ─▶ link: one connection for all ─▶ engine
//!                               by share            replies in the order of requests
//! ```
//!
//! Few requests are out at the engine, which serves them as they come: what waits, waits in the
//! stage, where shares decide. How many may be out follows from who else sends there and what the
//! wire takes ([`policy::window`]). Each node of a cluster has a stage and links of its own, so
//! that one that hangs holds up only what is for it.
//!
//! A connection's requests of one turn are out together. It is parked until all are answered. Their
//! replies leave in order, and what the front answers itself comes between none of them.

mod aware;
mod channels;
mod claim;
mod come;
mod encode;
mod later;
mod link;
mod links;
mod listen;
mod nodes;
mod pushes;
mod redirect;
mod reply;
mod request;
mod rewrite;
mod scripts;
mod send;
mod shards;
mod sizes;
mod stale;
mod subscriber;
mod transaction;
mod unblock;
mod walk;
mod watch;
mod weigh;

use std::sync::Arc;

use commands::{Flags, Spec};
use front::{Both, Command, Elsewhere, Gather, Homes, Pieces, Shows, Space, Table, Walker};
use policy::window::QUEUED;
use policy::{Nanos, PrincipalId};
use resp::Protocol;
use smallvec::SmallVec;
use stage::{DispatchOptions, Meter, Permit};

use super::Core;
use crate::connection::{Alone, Connection, Parked};
use crate::shared::Shared;
use crate::tenants::{ConnectionKey, Tenant};
use crate::upstream::{Took, Upstream};
use claim::Claim;
use later::Later;
use links::LinkId;
use nodes::Nodes;
pub use rewrite::Rewritten;
use sizes::{Sizes, Whose, LARGE_BYTES};
use subscriber::Subscribers;
pub use weigh::NodeWeights;

/// Connections have smaller tokens: their place, of 32 bits. Doors have the largest.
const LINK_TOKENS: usize = 1 << 40;

/// Requests of a connection that are out together at most. What comes behind them waits in its
/// buffer.
const OUT_TOGETHER: u32 = 128;

/// What one request is charged at most.
const CHARGE_MAX_NS: Nanos = 10_000_000_000;

/// A node of which others have taken the slots is not waited for longer: it hangs, or is gone.
const GONE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// A request on its way to the engine.
pub struct Forward {
    key: ConnectionKey,
    /// Which of its connection's requests that are out.
    number: u32,
    /// Whose it is.
    whose: Whose,
    /// It goes by a link of its own.
    own: bool,
    space: Arc<Space>,
    spec: &'static Spec,
    protocol: Protocol,
    /// Kept until the reply has come where another node may be asked again.
    pieces: Pieces,
    /// Replies before the one that counts: of a transaction.
    before: u32,
    shows: Shows,
    /// Why it goes by a link to itself.
    alone: Option<Alone>,
    /// It goes as its tenant's own user of the engine, by links of that user's only.
    script: bool,
    /// The walk of which it is a step.
    walk: Option<Box<Walker>>,
    /// Which keys of its request it is about, if that was split.
    keys: Option<Box<[u32]>>,
    /// The place of its node.
    node: usize,
    /// Its hash slot; none: the node does not depend on keys.
    slot: Option<u16>,
    /// Its node is asked although it does not have the slot yet.
    asking: bool,
    /// It lets go whom the engine lets wait for this connection.
    unblocks: Option<ConnectionKey>,
    /// Nodes that have sent it on.
    hops: u32,
    /// When the first of them did.
    sent_on_at: Nanos,
    /// It was tried again so often after a while.
    tries: u32,
}

impl Forward {
    /// One request of a connection: its one reply is passed on as it comes.
    fn new(
        key: ConnectionKey,
        connection: &Connection,
        space: Arc<Space>,
        spec: &'static Spec,
        pieces: Pieces,
        node: usize,
    ) -> Self {
        Self {
            key,
            number: 0,
            whose: (connection.tenant.id, connection.lane),
            own: false,
            space,
            spec,
            protocol: connection.session.state.protocol,
            pieces,
            before: 0,
            shows: Shows::None,
            alone: None,
            script: false,
            walk: None,
            keys: None,
            node,
            slot: None,
            asking: false,
            unblocks: None,
            hops: 0,
            sent_on_at: 0,
            tries: 0,
        }
    }

    /// Whether the engine may keep its answer back until something comes.
    fn waits(&self) -> bool {
        self.alone == Some(Alone::Waits)
    }

    /// Which connection's.
    pub(super) fn key(&self) -> ConnectionKey {
        self.key
    }
}

/// What becomes of a request: how the replies of its parts come together, and those.
type Forwards = (Option<Gather>, SmallVec<[Forward; 1]>);

/// A request that is out.
struct Sent {
    forward: Forward,
    /// None: it waits, and holds no place among those that the engine works for.
    permit: Option<Permit>,
    /// Replies that are still to come before the one that counts.
    before: u32,
    /// The first of those that says that it belongs elsewhere.
    elsewhere: Option<Elsewhere>,
    /// Where it began among the bytes of its link.
    start: u64,
    at: Nanos,
    /// Bytes of the request.
    len: usize,
    /// Its reply is known to be large.
    large: bool,
    /// Time of the engine in which nothing but the beginning of its reply came.
    took: Nanos,
    /// Memory for its reply.
    claim: Claim,
}

/// One core's side of the engine.
pub struct Front {
    upstream: Arc<Upstream>,
    /// It is a cluster: requests may belong elsewhere.
    cluster: bool,
    nodes: Nodes,
    /// Its commands.
    table: &'static Table,
    /// By principal.
    spaces: Vec<Option<Arc<Space>>>,
    /// Which front is the home of what for clients of either kind.
    homes: Both<Option<Arc<Homes>>>,
    /// Requests that are to be tried again.
    later: Later<Forward>,
    /// Who has moved something large of late.
    sizes: Sizes,
    /// Links that have something to send.
    flushes: Vec<LinkId>,
    /// Links of which there may be more to read.
    reads: Vec<LinkId>,
    /// What all were told of its links.
    told: [u64; 2],
    /// What partitions took of the time of nodes, until it is told; none: nobody would read it.
    took: Option<Took>,
    /// Requests that were sent to replicas, until it is told.
    stale_reads: u64,
    /// At which of replicas that are alike to begin.
    turn: usize,
    /// Links by which connections are sent what is published.
    subscribers: Subscribers,
}

impl Front {
    /// Without a connection yet; none: data is kept here.
    pub fn new(shared: &Shared, now: Nanos) -> Option<Box<Self>> {
        let upstream = Arc::clone(shared.upstream.as_ref()?);
        let (found, cluster) = (upstream.found(), upstream.options.cluster);
        let mut nodes = Nodes::new(cluster);
        nodes.follow(&found, upstream.readable(&found), now);
        let homes = upstream.homes();
        nodes.settle_homes(&homes);
        Some(Box::new(Self {
            cluster,
            nodes,
            table: found.table,
            spaces: Vec::new(),
            homes,
            later: Later::new(),
            sizes: Sizes::default(),
            flushes: Vec::new(),
            reads: Vec::new(),
            told: [0; 2],
            took: upstream.options.fronts.as_ref().map(|_| Took::default()),
            stale_reads: 0,
            turn: 0,
            subscribers: Subscribers::default(),
            upstream,
        }))
    }

    /// Whether a request of so many bytes goes out together with those of its connection that are
    /// out. They all go by one link, so one that needs its own, or a script, waits until the others
    /// are back; and what writes waits for reads from replicas.
    fn joins(&self, connection: &Connection, command: &Command, bytes: usize) -> bool {
        let whose = (connection.tenant.id, connection.lane);
        let Some(Parked::Engine(outstanding)) = &connection.parked else {
            return true;
        };
        if outstanding.alone.is_some() || outstanding.scripts != command.way.scripts() {
            return false;
        }
        // A replica could read it before its turn.
        if outstanding.at_replicas && !command.spec.flags.has(Flags::READONLY) {
            return false;
        }
        let most = match bytes >= LARGE_BYTES || self.sizes.knows(whose) {
            false => OUT_TOGETHER,
            true if !outstanding.own => return false,
            true => self.sizes.together(whose, OUT_TOGETHER),
        };
        outstanding.replies() < most
    }

    /// A link may have something to send.
    fn flush_later(&mut self, id: LinkId) {
        if !std::mem::replace(&mut self.nodes.link(id).noted.flush, true) {
            self.flushes.push(id);
        }
    }

    /// There may be more to read on a link.
    fn read_later(&mut self, id: LinkId) {
        if !std::mem::replace(&mut self.nodes.link(id).noted.read, true) {
            self.reads.push(id);
        }
    }

    /// A tenant is gone.
    pub fn forget(&mut self, tenant: PrincipalId) {
        self.nodes.forget(tenant);
    }

    /// How many nodes are known.
    pub fn nodes(&self) -> usize {
        self.nodes.count()
    }

    /// What a tenant's keys are called; none: that is not known yet.
    fn space(&mut self, tenant: &Tenant) -> Option<Arc<Space>> {
        let index = tenant.id.index();
        if self.spaces.len() <= index {
            self.spaces.resize(index + 1, None);
        }
        if self.spaces[index].is_none() {
            let unmarked = self.upstream.options.unmarked.as_ref();
            let space = match unmarked == Some(&tenant.name) {
                true => Space::unmarked(),
                false => Space::in_parts(&tenant.name, self.upstream.parts(&tenant.name)?),
            };
            self.spaces[index] = Some(Arc::new(space));
        }
        self.spaces[index].clone()
    }
}

/// The stage before the engine: its one resource is the engine's time.
pub fn engine_stage() -> DispatchOptions<1> {
    let meter = Meter {
        requests: 0,
        bytes: [false],
    };
    DispatchOptions {
        permits: QUEUED,
        extra_permits: QUEUED,
        // They are computed for what all may have out.
        reserved_beside: true,
        charge_max_ns: CHARGE_MAX_NS,
        ..DispatchOptions::new([1_000_000_000], meter)
    }
}

impl Core {
    /// The engine may have other commands, or be elsewhere.
    pub(super) fn engine_changed(&mut self, now: Nanos) {
        if let Some(mut front) = self.front.take() {
            let found = front.upstream.found();
            front.table = found.table;
            front.homes = front.upstream.homes();
            let replicas = front.upstream.readable(&found);
            front.nodes.follow(&found, replicas, now);
            front.nodes.settle_homes(&front.homes);
            self.make_stages(&front, now);
            self.front = Some(front);
        }
    }

    /// Once a second: an engine that says nothing is not waited for for ever, and a node whose
    /// slots others have not even so long. What is not used any more is closed.
    pub(super) fn look_at_links(&mut self, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        let all = front.upstream.options.patience;
        // What has come since then has not been looked for: who stands still hears nothing.
        let looked_at = self.look.until;
        let mut open = [0; 2];
        for place in 0..front.nodes.count() {
            let patience = match front.nodes.get(place).serves {
                true => all,
                false => all.min(GONE_PATIENCE),
            };
            let (patience_ns, serves) =
                (patience.as_nanos() as Nanos, front.nodes.get(place).serves);
            for id in front.nodes.links_of(place) {
                if front.nodes.link(id).waited_ns(looked_at, serves) > patience_ns {
                    let why = front.nodes.link(id).silent(patience);
                    self.lose(&mut front, id, &why, now);
                }
                if serves && front.nodes.link(id).in_vain {
                    // Nobody waits for it, and so it comes back before anybody asks.
                    let (options, registry) = (&front.upstream.options, self.poll.registry());
                    let _ = front.nodes.ready(id, now, options, registry);
                }
                // What asked for that may have been lost.
                let link = front.nodes.link(id);
                let lets_go = link.sent.front().filter(|_| link.ends);
                if let Some(key) = lets_go.map(|first| first.forward.key) {
                    self.unblock_at_engine(&mut front, key);
                }
            }
            for protocol in [Protocol::Resp2, Protocol::Resp3] {
                let links = front.nodes.links(place, protocol);
                links.close_idle(now);
                let [some, apart] = links.open();
                open = [open[0] + some, open[1] + apart];
            }
        }
        if let Some(took) = &mut front.took {
            front.upstream.took.add(took, front.nodes.price());
        }
        let silent = self.look_at_subscribers(&mut front, looked_at);
        open[0] += front.subscribers.len() as u64;
        front.nodes.look_at_spread();
        front.sizes.forget(now);
        front.upstream.links.count(&mut front.told, open);
        self.front = Some(front);
        silent
            .into_iter()
            .for_each(|whose| self.may_take_pushes(whose, true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::PrincipalId;
    use stage::{Allocation, Next, Stage};

    #[test]
    fn what_is_reserved_before_an_engine_is_not_taken_from_the_others() {
        let mut stage = Stage::new(engine_stage());
        let (reserves, greedy) = (PrincipalId(0), PrincipalId(1));
        let allocation = Allocation {
            reserved_permits: 2 * QUEUED,
            ..Allocation::share(1.0)
        };
        stage.configure(0, reserves, &allocation);
        stage.configure(0, greedy, &Allocation::share(1.0));
        for item in 0..4 * QUEUED {
            assert_eq!(stage.enqueue(0, greedy, 0, item), Ok(()));
        }
        let mut out = Vec::new();
        while let Next::Admitted(admitted) = stage.next(0) {
            // Not settled: it stays out.
            out.push(admitted);
        }
        assert!(out.len() as u32 >= QUEUED, "{} are out", out.len());
        for item in 0..2 * QUEUED {
            assert_eq!(stage.enqueue(0, reserves, 0, item), Ok(()));
            assert!(matches!(stage.next(0), Next::Admitted(_)), "{item}");
        }
    }
}
