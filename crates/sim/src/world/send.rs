//! Requests are drawn, split, tagged and sent.

use super::lanes::Lane;
use super::router::Router;
use super::{Copied, Drawn, Event, Group, Op, Request, World, ANY, NOWHERE};
use crate::spec::{AheadKnown, Arrivals, CostKnown, Redundancy, Selection};
use policy::generator::mix64;
use policy::multiget::{split, tag};
use policy::replica::Feedback;
use policy::{Nanos, PrincipalId};

impl World<'_> {
    /// A stream begins.
    pub(super) fn start(&mut self, stream: usize) {
        let source = &self.sources[stream];
        let spec = &self.spec.tenants[source.tenant as usize].streams[source.stream as usize];
        match spec.arrivals {
            Arrivals::Poisson { .. } | Arrivals::Constant { .. } => {
                self.plan_arrival(stream, spec.from_ns);
            }
            Arrivals::Closed { clients } => {
                // A client has one sender for good; each stream's first has another one.
                let (stream, senders) = (stream as u32, self.routers.len() as u32);
                for client in 0..clients {
                    let router = stream.wrapping_add(client) % senders;
                    self.agenda
                        .after(spec.from_ns, Event::Arrival { stream, router });
                }
            }
        }
    }

    /// Plans a stream's next request, the first one `after_ns` later.
    fn plan_arrival(&mut self, stream: usize, after_ns: Nanos) {
        let source = &mut self.sources[stream];
        let spec = &self.spec.tenants[source.tenant as usize].streams[source.stream as usize];
        let delay = match spec.arrivals {
            Arrivals::Poisson { per_s } => source.rng.exponential() / per_s,
            Arrivals::Constant { per_s } => 1.0 / per_s,
            Arrivals::Closed { .. } => return,
        };
        // A rate of zero is a pause that does not end.
        if delay.is_finite() {
            let delay_ns = after_ns.saturating_add((delay * 1e9) as Nanos);
            let (stream, router) = (stream as u32, ANY);
            self.agenda
                .after(delay_ns, Event::Arrival { stream, router });
        }
    }

    /// A stream's next request is sent.
    pub(super) fn arrival(&mut self, stream: usize, router: u32) {
        let source = &self.sources[stream];
        let spec = &self.spec.tenants[source.tenant as usize].streams[source.stream as usize];
        let now = self.agenda.now();
        if now >= spec.until_ns || now > self.quotas.ends_ns {
            return;
        }
        if !self.quotas.take(source.tenant, spec.quota) {
            return;
        }
        let tenant = source.tenant as usize;
        if let Some(at_ns) = self.measured_ns() {
            self.outcome[tenant].sent(at_ns);
            self.awaited += 1;
        }
        self.plan_arrival(stream, 0);
        let router = match router {
            ANY => self.any_router(),
            router => router,
        };
        self.draw(stream, router);
        let (at_ns, operations) = (self.measured_ns(), self.scratch.drawn.len() as u32);
        self.outcome[tenant].begun(at_ns, operations);
        if self.asks_first() {
            self.hold(stream as u32, router);
        } else {
            self.dispatch(stream as u32, router, self.agenda.now());
        }
    }

    /// The next sender in turn.
    fn any_router(&mut self) -> u32 {
        let router = self.next_router;
        self.next_router = (router + 1) % self.routers.len() as u32;
        router
    }

    /// Sends the request that was drawn: chooses its nodes, tags it, posts it.
    pub(super) fn dispatch(&mut self, stream: u32, router: u32, sent_at: Nanos) {
        let mut drawn = std::mem::take(&mut self.scratch.drawn);
        let request = self.requests.insert(Request {
            stream,
            router,
            sent_at,
            left: drawn.len() as u32,
            operations: drawn.len() as u32,
            refused: false,
            beyond: false,
            held: false,
        }) as u32;
        self.tag_opsets(router, &drawn);
        if self.spec.routing.selection == Selection::Oracle {
            self.choose_knowing(&mut drawn);
            self.tag_opsets(router, &drawn);
        } else {
            let mut rest = drawn.iter_mut();
            for opset in 0..self.scratch.opsets.len() {
                let count = self.scratch.opsets[opset].operations as usize;
                let put_off = self.scratch.tags[opset].puts_off();
                for op in rest.by_ref().take(count) {
                    let place = self.choose(router, op.group, op.known_ns, op.put, put_off);
                    op.place = place.map_or(NOWHERE, |place| place as u32);
                }
            }
        }
        let mut ops = drawn.iter();
        for opset in 0..self.scratch.opsets.len() {
            let count = self.scratch.opsets[opset].operations as usize;
            for drawn in ops.by_ref().take(count) {
                let op = self.ops.insert(Op {
                    request,
                    router,
                    born: self.born,
                    group: drawn.group,
                    key: drawn.key,
                    tag: self.scratch.tags[opset],
                    cost: self.cost_of(drawn.known_ns),
                    expected_ns: drawn.expected_ns,
                    known_ns: drawn.known_ns,
                    bytes: drawn.bytes,
                    keys: drawn.keys,
                    put: drawn.put,
                    nodes: [0; 2],
                    homes: [0; 2],
                    principals: [PrincipalId(0); 2],
                    next: [Copied::NONE; 2],
                    sent_at: [0; 2],
                    told: [Feedback::default(); 2],
                    away: 0,
                    answered: false,
                    refused: [false; 2],
                });
                self.born = self.born.wrapping_add(1);
                match drawn.place {
                    NOWHERE => self.wait(op),
                    place => self.send(op, place as usize),
                }
            }
        }
        self.scratch.drawn = drawn;
        self.post();
    }

    /// Draws the next request of a stream: its operations, by group.
    fn draw(&mut self, stream: usize, router: u32) {
        // Scenarios count from the end of the warm-up.
        let now = self.agenda.now().saturating_sub(self.spec.warm_up_ns);
        let source = &mut self.sources[stream];
        let tenant = &self.spec.tenants[source.tenant as usize];
        let requests = &tenant.streams[source.stream as usize].requests;
        let count = requests.keys.pick(source.rng.bits());
        let (wanted, each) = match requests.range {
            true => (1, count),
            false => (count, 1),
        };
        let put = requests.puts > 0.0 && count == 1 && source.rng.unit() < requests.puts;
        let first = self.first_group[source.tenant as usize];
        let drawn = &mut self.scratch.drawn;
        drawn.clear();
        let keys = &mut self.scratch.keys;
        keys.clear();
        source
            .popularity
            .pick_distinct(&mut source.rng, now, wanted, keys);
        for &key in keys.iter() {
            let partition =
                mix64(key ^ (u64::from(source.tenant) << 40)) % u64::from(tenant.partitions.max(1));
            let bytes = requests.bytes(key, each, u64::from(source.tenant));
            let cluster = &self.spec.cluster;
            let needs_ns = cluster.resources.needs_ns(bytes, put);
            let alone_ns = cluster.service.expected_ns(bytes);
            let expected_ns = alone_ns + needs_ns.iter().sum::<f64>();
            let group = &mut self.groups[(first + partition as u32) as usize];
            group.asked_ns += expected_ns;
            group.asked += 1;
            let permit_ns = alone_ns / f64::from(cluster.parallel());
            let uses = needs_ns.into_iter().chain([permit_ns]);
            let written = group.written_of_ns.iter_mut();
            for ((of_ns, written_ns), ns) in group.asked_of_ns.iter_mut().zip(written).zip(uses) {
                *of_ns += ns;
                *written_ns += if put { ns } else { 0.0 };
            }
            let costs = self.routers[router as usize].costs.as_ref();
            let known_ns = match (self.spec.scheduler.cost, costs) {
                (CostKnown::Mean, Some(costs)) => costs.mean_ns() as f64,
                (CostKnown::Learnt, Some(costs)) => costs.expected_ns(key) as f64,
                _ => expected_ns,
            };
            drawn.push(Drawn {
                group: first + partition as u32,
                key,
                place: NOWHERE,
                expected_ns: expected_ns as f32,
                known_ns: known_ns as f32,
                bytes,
                keys: each,
                put,
            });
        }
        // Neighbours in turn also spread an opset over its replicas.
        drawn.sort_by_key(|op| op.group);
    }

    pub(super) fn cost_of(&self, known_ns: f32) -> u64 {
        match self.spec.scheduler.cost {
            CostKnown::Operations => 1,
            CostKnown::Mean | CostKnown::Learnt | CostKnown::Expected => known_ns as u64,
        }
    }

    /// Splits what was drawn into opsets, in its own order, and tags them.
    fn tag_opsets(&mut self, router: u32, drawn: &[Drawn]) {
        let scheduler = &self.spec.scheduler;
        let mut opsets = std::mem::take(&mut self.scratch.opsets);
        let costs = drawn.iter().map(|op| (op.group, self.cost_of(op.known_ns)));
        split(costs, &mut opsets);
        let mut tags = std::mem::take(&mut self.scratch.tags);
        match scheduler.ahead {
            AheadKnown::All => self.look_ahead(drawn, &mut opsets, &mut tags),
            AheadKnown::Nothing => {
                let now = self.clock_of(router);
                self.tell(&opsets);
                let tagging = &mut self.routers[router as usize].tagging;
                tagging.sees(&opsets);
                tag(tagging.strategy, now, &opsets, &self.levels, &mut tags);
            }
        }
        (self.scratch.opsets, self.scratch.tags) = (opsets, tags);
    }

    /// Chooses which replica of a group is asked, and counts on the operation to be there. `None`:
    /// it has to wait.
    pub(super) fn choose(
        &mut self,
        router: u32,
        group: u32,
        known_ns: f32,
        put: bool,
        put_off: bool,
    ) -> Option<usize> {
        let place = self.pick(router, group, put, put_off)?;
        let node = self.groups[group as usize].nodes[place];
        self.count_on(router, node, known_ns, put_off);
        Some(place)
    }

    /// A sender takes into account that an operation will be at a node.
    pub(super) fn count_on(&mut self, router: u32, node: u32, known_ns: f32, put_off: bool) {
        let backlog_ns = f64::from(known_ns) / f64::from(self.spec.cluster.parallel());
        let selector = &mut self.routers[router as usize].selector;
        selector.sent(node, backlog_ns as Nanos, put_off);
    }

    /// The replica of a group that is asked; a window of it is used up.
    fn pick(&mut self, router: u32, group: u32, put: bool, put_off: bool) -> Option<usize> {
        let tenant = self.groups[group as usize].tenant;
        if self.groups[group as usize].nodes.is_empty() {
            return None;
        }
        Some(match self.spec.routing.selection {
            Selection::Windows => self.open_window(router, tenant, group, put)?,
            _ if put => 0,
            Selection::Rule(_) => {
                let nodes = &self.groups[group as usize].nodes;
                let selector = &mut self.routers[router as usize].selector;
                selector.choose(self.agenda.now(), nodes, put_off)
            }
            // One that was lost is asked for again where it fits least badly.
            Selection::Oracle => self.place_knowing(group, u64::MAX),
        })
    }

    /// A replica of which the tenant's window is open.
    fn open_window(&mut self, router: u32, tenant: u32, group: u32, put: bool) -> Option<usize> {
        let homes = self.homes(tenant);
        let Router {
            lanes, selector, ..
        } = &mut self.routers[router as usize];
        let lane = lanes
            .entry(tenant)
            .or_insert_with(|| Lane::new(&self.spec.cluster, homes));
        let Group { homes, nodes, .. } = &self.groups[group as usize];
        let candidates = if put { &homes[..1] } else { &homes[..] };
        let place = if candidates.len() > 1 && lane.windows.is_idle(candidates) {
            selector.choose(self.agenda.now(), nodes, false)
        } else {
            lane.windows.choose(candidates)?
        };
        lane.windows.sent(candidates[place]);
        Some(place)
    }

    /// Sends an operation, as often as the redundancy asks.
    fn send(&mut self, op: usize, place: usize) {
        self.transmit(op, 0, place);
        match self.spec.routing.redundancy {
            Redundancy::None => {}
            Redundancy::Duplicate => self.send_second(op),
            Redundancy::Speculative { .. } if self.again_after_ns < Nanos::MAX => {
                let again = Event::Again {
                    op: op as u32,
                    born: self.ops[op].born,
                };
                self.agenda.after(self.again_after_ns, again);
            }
            Redundancy::Speculative { .. } => {}
        }
    }

    /// Sends a second copy, to another replica than the first.
    fn send_second(&mut self, op: usize) {
        let Op {
            router,
            group,
            known_ns,
            put,
            tag,
            nodes: [first, _],
            ..
        } = self.ops[op];
        let Some(mut place) = self.pick(router, group, put, tag.puts_off()) else {
            return;
        };
        let nodes = &self.groups[group as usize].nodes;
        if nodes[place] == first {
            place = (place + 1) % nodes.len();
        }
        let node = nodes[place];
        self.count_on(router, node, known_ns, tag.puts_off());
        self.transmit(op, 1, place);
    }

    /// Adds one copy of an operation to what is posted to its node.
    pub(super) fn transmit(&mut self, op: usize, copy: usize, place: usize) {
        let sent = &mut self.ops[op];
        let group = &self.groups[sent.group as usize];
        let node = group.nodes[place];
        sent.nodes[copy] = node;
        sent.homes[copy] = group.homes[place];
        sent.principals[copy] = group.principals[place];
        sent.next[copy] = Copied::NONE;
        sent.sent_at[copy] = self.agenda.now();
        sent.away += 1;
        let at = &mut self.nodes[node as usize];
        at.promised.add(sent.tag.priority, sent.expected_ns);
        let copy = Copied::new(op, copy);
        let last = &mut self.scratch.last[node as usize];
        match std::mem::replace(last, copy) {
            Copied::NONE => self.scratch.chains.push((node, copy)),
            before => self.ops[before.op()].next[before.copy()] = copy,
        }
    }

    /// Sends off what was transmitted, one message a node.
    pub(super) fn post(&mut self) {
        let mut chains = std::mem::take(&mut self.scratch.chains);
        for (node, first) in chains.drain(..) {
            self.scratch.last[node as usize] = Copied::NONE;
            self.scratch.planned_ns[node as usize] = 0.0;
            let way_ns = self.way_ns();
            self.agenda.after(way_ns, Event::Deliver { node, first });
        }
        self.scratch.chains = chains;
    }

    /// An operation is sent again if it has no reply yet.
    pub(super) fn again(&mut self, op: usize, born: u32) {
        let waits = |op: &Op| op.born == born && !op.answered && op.away == 1;
        if self.ops.get(op).is_some_and(waits) {
            self.send_second(op);
            self.post();
        }
    }
}
