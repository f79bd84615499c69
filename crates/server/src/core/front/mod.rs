//! Before an engine of its own: what stands in the place of handlers and databases when the data is
//! kept by a Redis or Valkey, or by a cluster of them.
//!
//! ```text
//!  turn: parse, mark keys ─▶ [ handler stage ] ─▶ link: one connection for all ─▶ engine
//!                               by share            replies in the order of requests
//! ```
//!
//! Few requests are out at the engine, which serves them as they come: what waits, waits in the
//! stage, where shares decide. How many may be out follows from what the engine makes of more
//! ([`policy::depth`]). Each node of a cluster has a stage and links of its own, so that one that
//! hangs holds up only what is for it.
//!
//! A connection's requests of one turn are out together. It is parked until all are answered. Their
//! replies leave in order, and what the front answers itself comes between none of them.

mod aware;
mod claim;
mod link;
mod listen;
mod nodes;
mod redirect;
mod reply;
mod request;
mod walk;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use front::{Elsewhere, Gather, Homes, Shows, Space, Table, Walker};
use policy::{Nanos, PrincipalId};
use resp::Protocol;
use smallvec::SmallVec;
use stage::{DispatchOptions, Meter, Permit};

use super::Core;
use crate::connection::Connection;
use crate::shared::Shared;
use crate::tenants::{ConnectionKey, Tenant};
use crate::upstream::Upstream;
use claim::Claim;
use nodes::Nodes;

/// Connections have smaller tokens: their place. Each node has two; there are as many nodes as a
/// cluster may have in the time that a process lives, some thousands.
const LINK_TOKENS: usize = u32::MAX as usize - (1 << 16);

/// Requests that may be out at the engine, of each core, at the start.
const OUT_AT_START: u32 = 32;
/// And at least: with fewer, replies are too few to be read together.
const OUT_LEAST: u32 = 8;

/// Replies after which it is judged how many requests may be out.
const SLICE_REPLIES: u32 = 512;

/// What one request is charged at most.
const CHARGE_MAX_NS: Nanos = 10_000_000_000;

/// A node of which others have taken the slots is not waited for longer: it hangs, or is gone.
const GONE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// A request on its way to the engine.
pub struct Forward {
    key: ConnectionKey,
    /// Which of its connection's requests that are out.
    number: u32,
    tenant: PrincipalId,
    space: Arc<Space>,
    spec: &'static commands::Spec,
    protocol: Protocol,
    /// Kept until the reply has come where another node may be asked again.
    bytes: Bytes,
    /// Replies before the one that counts: of a transaction.
    before: u32,
    shows: Shows,
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
    /// Nodes that have sent it on.
    hops: u32,
    /// When the first of them did.
    sent_on_at: Nanos,
}

impl Forward {
    /// One request of a connection: its one reply is passed on as it comes.
    fn new(
        key: ConnectionKey,
        connection: &Connection,
        space: Arc<Space>,
        spec: &'static commands::Spec,
        bytes: Vec<u8>,
        node: usize,
    ) -> Self {
        Self {
            key,
            number: 0,
            tenant: connection.tenant.id,
            space,
            spec,
            protocol: connection.session.state.protocol,
            bytes: bytes.into(),
            before: 0,
            shows: Shows::None,
            walk: None,
            keys: None,
            node,
            slot: None,
            asking: false,
            hops: 0,
            sent_on_at: 0,
        }
    }

    /// Whose it is.
    pub(super) fn key(&self) -> ConnectionKey {
        self.key
    }
}

/// What becomes of a request: how the replies of its parts come together, and those.
type Forwards = (Option<Gather>, SmallVec<[Forward; 1]>);

/// A request that is out.
struct Sent {
    forward: Forward,
    permit: Permit,
    /// Replies that are still to come before the one that counts.
    before: u32,
    /// The first of those that says that it belongs elsewhere.
    elsewhere: Option<Elsewhere>,
    /// Where it began among the bytes of its link.
    start: u64,
    at: Nanos,
    /// Bytes of the request.
    len: usize,
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
    /// Where clients come that know of the cluster of fronts.
    aware_at: Option<SocketAddr>,
    /// Which front is the home of what.
    homes: Option<Arc<Homes>>,
    /// Requests that are to be tried again, and when.
    later: Vec<(Nanos, Forward)>,
}

impl Front {
    /// Without a connection yet; none: data is kept here.
    pub fn new(shared: &Shared, now: Nanos) -> Option<Box<Self>> {
        let upstream = Arc::clone(shared.upstream.as_ref()?);
        let (found, cluster) = (upstream.found(), upstream.options.cluster);
        let mut nodes = Nodes::new(cluster);
        nodes.follow(&found, now);
        Some(Box::new(Self {
            cluster,
            nodes,
            table: found.table,
            spaces: Vec::new(),
            aware_at: shared.aware_at.get().copied(),
            homes: upstream.homes(),
            later: Vec::new(),
            upstream,
        }))
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
        permits: OUT_AT_START,
        extra_permits: OUT_AT_START,
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
            front.nodes.follow(&found, now);
            self.make_stages(&front, now);
            self.front = Some(front);
        }
    }

    /// Once a second: an engine that says nothing is not waited for for ever, and a node whose
    /// slots others have not even so long.
    pub(super) fn look_at_links(&mut self, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        let all = front.upstream.options.patience;
        for place in 0..front.nodes.count() {
            let patience = match front.nodes.get(place).serves {
                true => all,
                false => all.min(GONE_PATIENCE),
            };
            let patience_ns = patience.as_nanos() as Nanos;
            for protocol in [Protocol::Resp2, Protocol::Resp3] {
                if front.nodes.link(place, protocol).waited_ns(now) > patience_ns {
                    let why = format!("it has said nothing for {} s", patience.as_secs());
                    self.lose(&mut front, place, protocol, &why, now);
                }
            }
        }
        self.front = Some(front);
    }
}
