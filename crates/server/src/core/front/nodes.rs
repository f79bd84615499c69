//! The nodes of the engine, as one core sees them: one, or those of a cluster.

use std::net::SocketAddr;
use std::sync::Arc;

use front::{Both, Homes, Space, SLOTS};
use mio::Registry;
use parking_lot::MutexGuard;
use policy::cost::spans::{Member, Spans};
use policy::window::{part, Place, Window};
use policy::{Nanos, PrincipalId};
use resp::Protocol;
use stage::Stage;

use super::link::Link;
use super::links::{LinkId, Links};
use super::Front;
use crate::core::handler::Task;
use crate::core::{crew, Core};
use crate::upstream::{Found, Replica, UpstreamOptions};

/// Nobody has this slot.
const NOBODY: u16 = u16::MAX;

/// One node.
pub(super) struct Node {
    /// `host:port`, as the cluster calls it.
    name: String,
    /// Where it is.
    pub(super) at: SocketAddr,
    /// For each protocol: replies are passed on as they are.
    links: [Links; 2],
    /// When it last said something.
    pub(super) heard: Nanos,
    /// It has slots, or copies what a master has, as far as is known.
    pub(super) serves: bool,
    /// Its links are for what is read from a replica: what is for a master goes by others.
    pub(super) reads: bool,
    /// Replicas of it that may be read from.
    pub(super) replicas: Vec<Follower>,
    /// Another front is its home: what is sent there waits behind that front's own.
    pub(super) elsewhere: bool,
    /// Slots came or went then: its replicas may know less of them than of the rest.
    pub(super) unsettled_at: Nanos,
    /// What its requests cost.
    pub(super) spans: Spans,
    /// How many requests may be out there.
    window: Window,
}

impl Node {
    /// `host:port`, as the cluster calls it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is called so, and read from only, or not.
    fn is(&self, name: &str, reads: bool) -> bool {
        self.name == name && self.reads == reads
    }
}

/// A replica of a node.
pub(super) struct Follower {
    pub(super) place: usize,
    pub(super) known: Arc<Replica>,
}

impl Node {
    fn new(place: usize, name: &str, at: SocketAddr, reads: bool, now: Nanos) -> Self {
        let protocols = [Protocol::Resp2, Protocol::Resp3];
        let links = protocols.map(|protocol| Links::new(place, protocol, reads));
        Self {
            name: name.to_owned(),
            at,
            links,
            heard: 0,
            serves: true,
            reads,
            replicas: Vec::new(),
            elsewhere: false,
            unsettled_at: 0,
            spans: Spans::default(),
            window: Window::new(now),
        }
    }
}

/// All of them. A node keeps its place while the process lives; as a replica it has another than as
/// a master.
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// By slot.
    owners: Box<[u16]>,
    /// Places of those that have slots, in the order in which `SCAN` goes.
    serving: Vec<usize>,
    cluster: bool,
    /// Requests of clients that know of the cluster, and of others, since the last look.
    asked: [u64; 2],
    /// The part of all requests that the others' are.
    spread: f64,
}

impl Nodes {
    pub(super) fn new(cluster: bool) -> Self {
        Self {
            nodes: Vec::new(),
            owners: vec![NOBODY; SLOTS.into()].into(),
            serving: Vec::new(),
            cluster,
            asked: [0; 2],
            spread: 1.0,
        }
    }

    /// A tenant is gone.
    pub(super) fn forget(&mut self, tenant: PrincipalId) {
        self.nodes
            .iter_mut()
            .for_each(|node| node.spans.forget(tenant));
    }

    /// Takes over what the lookout has found.
    pub(super) fn follow(&mut self, found: &Found, replicas: &[Arc<Replica>], now: Nanos) {
        if let (false, Some(only)) = (self.cluster, self.nodes.first_mut()) {
            // It may have another address. It is called as the configuration does.
            only.at = found.nodes[0];
            return;
        }
        self.nodes.iter_mut().for_each(|node| node.serves = false);
        let named = found.topology.nodes.iter().zip(found.nodes.iter());
        let places: Vec<u16> = named
            .map(|(name, at)| self.enter(name, *at, false, now) as u16)
            .collect();
        for slot in 0..SLOTS {
            let place = found.topology.place(slot);
            self.give(slot, place.map_or(NOBODY, |place| places[place]), now);
        }
        self.follow_replicas(replicas, now);
        let mut serving: Vec<usize> = places.into_iter().map(usize::from).collect();
        serving.sort_by(|one, other| self.nodes[*one].name.cmp(&self.nodes[*other].name));
        self.serving = serving;
    }

    /// Fronts are the homes of nodes as these say; none: there is this one only. A node is another
    /// front's if this one is its home for clients of neither kind.
    pub(super) fn settle_homes(&mut self, homes: &Both<Option<Arc<Homes>>>) {
        for node in &mut self.nodes {
            let mut known = homes.all().into_iter().flatten().peekable();
            let others = known.peek().is_some() && known.all(|homes| !homes.mine(&node.name));
            node.elsewhere = !node.reads && others;
        }
    }

    /// Whether another front's requests go first to the node at this place: those for a replica do
    /// where those for its master do.
    fn is_beside(&self, place: usize) -> bool {
        let copies = |node: &&Node| node.replicas.iter().any(|one| one.place == place);
        match self.nodes[place].reads {
            true => self
                .nodes
                .iter()
                .find(copies)
                .is_some_and(|node| node.elsewhere),
            false => self.nodes[place].elsewhere,
        }
    }

    /// A client has asked, which knows of the cluster or does not.
    pub(super) fn asked(&mut self, aware: bool) {
        self.asked[usize::from(!aware)] += 1;
    }

    /// Once a second: looks at how far what is sent is spread over the nodes of all fronts. Clients
    /// that know of the cluster ask each front for what is at its node, and plain ones for all.
    pub(super) fn look_at_spread(&mut self) {
        let [aware, plain] = std::mem::take(&mut self.asked);
        if aware + plain > 0 {
            let spread = plain as f64 / (aware + plain) as f64;
            self.spread += (spread - self.spread) / 2.0;
        }
    }

    /// How many requests may be out at the node at this place, of each of `cores`, with `fronts`
    /// before the cluster.
    fn window(&self, place: usize, fronts: u32, cores: u32) -> u32 {
        let at = match self.is_beside(place) {
            true => Place::Beside,
            false => Place::Home,
        };
        let part = part(at, fronts, self.spread) / f64::from(cores.max(1));
        let node = &self.nodes[place];
        let wire = node.links.iter().find_map(Links::round_trip_ns);
        node.window.permits(wire.unwrap_or(0), part)
    }

    /// What a reply is charged that came from this place. How long another front's node took says
    /// how long it was busy with what that one sent, so there it is as much as at the own node.
    pub(super) fn charge(&self, place: usize, member: Member) -> Nanos {
        let at = &self.nodes[place];
        match at.elsewhere.then(|| self.own()).flatten() {
            Some(own) => own.spans.usual(member),
            None => at.spans.charge(member),
        }
    }

    /// The node that this front is before, if it has answered something.
    fn own(&self) -> Option<&Node> {
        let own = |node: &&Node| !node.elsewhere && !node.reads && node.spans.knows();
        self.nodes.iter().find(own)
    }

    /// What a unit of weight is charged there, ns.
    pub(super) fn price(&self) -> Option<f64> {
        self.own().map(|own| own.spans.price_ns())
    }

    fn follow_replicas(&mut self, replicas: &[Arc<Replica>], now: Nanos) {
        self.nodes.iter_mut().for_each(|node| node.replicas.clear());
        for known in replicas {
            let place = self.enter(&known.node, known.at, true, now);
            let master = self
                .nodes
                .iter_mut()
                .find(|node| node.is(&known.master, false));
            if let Some(master) = master {
                let known = Arc::clone(known);
                master.replicas.push(Follower { place, known });
            }
        }
    }

    /// A slot is at this place from now on.
    fn give(&mut self, slot: u16, place: u16, now: Nanos) {
        let before = std::mem::replace(&mut self.owners[usize::from(slot)], place);
        for place in [before, place] {
            if before != self.owners[usize::from(slot)] && place != NOBODY {
                self.nodes[usize::from(place)].unsettled_at = now;
            }
        }
    }

    fn enter(&mut self, name: &str, at: SocketAddr, reads: bool, now: Nanos) -> usize {
        match self.nodes.iter().position(|node| node.is(name, reads)) {
            Some(place) => {
                (self.nodes[place].at, self.nodes[place].serves) = (at, true);
                place
            }
            None => {
                let place = self.nodes.len();
                self.nodes.push(Node::new(place, name, at, reads, now));
                self.nodes.len() - 1
            }
        }
    }

    /// The place of the node that is called so by the one at `from`; none: it must be found out.
    pub(super) fn named(&mut self, name: &str, from: usize, now: Nanos) -> Option<usize> {
        let name = self.full_name(name, from);
        if let Some(place) = self.known(&name) {
            return Some(place);
        }
        let at = name.parse().ok()?;
        Some(self.enter(&name, at, false, now))
    }

    /// What the node at `from` calls so.
    pub(super) fn full_name(&self, name: &str, from: usize) -> String {
        match name.strip_prefix(':') {
            // "The same host as I."
            Some(port) => format!(
                "{}:{port}",
                front::bracketed(&self.nodes[from].at.ip().to_string())
            ),
            None => name.to_owned(),
        }
    }

    /// The place of the node of this name, if there is one.
    pub(super) fn known(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.is(name, false))
    }

    /// Whether the word of the node at `from` is enough that another has a slot now. Who was no
    /// master when the lookout looked last may not know what is on its way from there.
    pub(super) fn follows(&self, slot: u16, name: &str, from: usize) -> bool {
        let place = self.known(&self.full_name(name, from));
        self.at_slot(slot).is_some() && place.is_some_and(|place| self.nodes[place].serves)
    }

    /// A node has said that another has this slot.
    pub(super) fn moved(&mut self, slot: u16, place: usize, now: Nanos) {
        self.give(slot, place as u16, now);
    }

    /// The place of the node that has a partition; none: nobody has it.
    pub(super) fn of(&self, space: &Space, part: u16) -> Option<usize> {
        match self.cluster {
            true => self.at_slot(space.slot(part)),
            false => Some(0),
        }
    }

    /// The place of the node that has a slot.
    pub(super) fn at_slot(&self, slot: u16) -> Option<usize> {
        let owner = self.owners[usize::from(slot)];
        (owner != NOBODY).then_some(owner.into())
    }

    /// Places of all that have slots.
    pub(super) fn serving(&self) -> &[usize] {
        &self.serving
    }

    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn get(&self, place: usize) -> &Node {
        &self.nodes[place]
    }

    pub(super) fn get_mut(&mut self, place: usize) -> &mut Node {
        &mut self.nodes[place]
    }

    /// The links to a node, for one protocol.
    pub(super) fn links(&mut self, place: usize, protocol: Protocol) -> &mut Links {
        &mut self.nodes[place].links[usize::from(protocol == Protocol::Resp3)]
    }

    pub(super) fn link(&mut self, id: LinkId) -> &mut Link {
        self.links(id.place, id.protocol).get(id.index)
    }

    /// Makes sure that a link is there or on its way.
    ///
    /// # Errors
    /// Why its node is away.
    pub(super) fn ready(
        &mut self,
        id: LinkId,
        now: Nanos,
        options: &UpstreamOptions,
        registry: &Registry,
    ) -> Result<(), String> {
        let node = &mut self.nodes[id.place];
        let link = node.links[usize::from(id.protocol == Protocol::Resp3)].get(id.index);
        link.ready(now, &node.name, node.at, options, registry)
    }

    /// Whether there is such a link.
    pub(super) fn has(&self, id: LinkId) -> bool {
        let node = self.nodes.get(id.place);
        let links = node.map(|node| &node.links[usize::from(id.protocol == Protocol::Resp3)]);
        links.is_some_and(|links| links.has(id.index))
    }

    /// All links to a node.
    pub(super) fn links_of(&self, place: usize) -> Vec<LinkId> {
        let of = |protocol: Protocol| {
            let links = &self.nodes[place].links[usize::from(protocol == Protocol::Resp3)];
            links.all().map(move |index| LinkId {
                place,
                protocol,
                index,
            })
        };
        of(Protocol::Resp2).chain(of(Protocol::Resp3)).collect()
    }

    /// Who has scripts out at a node.
    pub(super) fn script_tenants(&self, place: usize) -> Vec<PrincipalId> {
        let links = &self.nodes[place].links;
        links.iter().flat_map(Links::script_tenants).collect()
    }

    /// What an error calls a node.
    pub(super) fn says(&self, place: usize) -> String {
        match self.cluster {
            true if self.nodes[place].reads => {
                format!("engine: replica {}", self.nodes[place].name)
            }
            true => format!("engine: node {}", self.nodes[place].name),
            false => "engine".to_owned(),
        }
    }
}

impl Core {
    /// The stage before the node at this place. The first is the handler stage itself.
    pub(in crate::core) fn stage_before(&self, place: usize) -> MutexGuard<'_, Stage<Task, 1>> {
        match place.checked_sub(1) {
            None => self.handlers.stage(),
            Some(place) => self.beyond[place].stage(),
        }
    }

    /// Every node has a stage before it, which knows the tenants.
    pub(super) fn make_stages(&mut self, front: &Front, now: Nanos) {
        if self.beyond.len() + 1 >= front.nodes.count() {
            return;
        }
        while self.beyond.len() + 1 < front.nodes.count() {
            self.beyond.push(crew::new(&self.shared, self.mailbox()));
        }
        for tenant in self.shared.tenants.list() {
            if self.principals.of(&tenant).is_some() {
                self.configure(&tenant, now);
            }
        }
        self.steered(now);
    }

    /// So many replies have come from a node. How many requests may be out there follows from how
    /// fast they come.
    pub(super) fn replied(&mut self, front: &mut Front, place: usize, replies: u32, now: Nanos) {
        if !front.nodes.get_mut(place).window.replied(replies, now) {
            return;
        }
        let cores = self.shared.options.cores as u32;
        let permits = front.nodes.window(place, front.upstream.fronts(), cores);
        let mut stage = self.stage_before(place);
        if permits != stage.permits() {
            stage.set_permits_and_extra(permits);
        }
    }
}
