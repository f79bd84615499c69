//! Requests are drawn, split, tagged and sent.

use super::{Copied, Event, Op, Request, World};
use crate::spec::{AheadKnown, Arrivals, CostKnown, Redundancy, Selection};
use policy::multiget::{split, tag};
use policy::replica::Feedback;
use policy::{Nanos, PrincipalId};
use workload::rng::mix64;

impl World<'_> {
    /// A stream begins.
    pub(super) fn start(&mut self, stream: usize) {
        let source = &self.sources[stream];
        let spec = &self.spec.tenants[source.tenant as usize].streams[source.stream as usize];
        match spec.arrivals {
            Arrivals::Poisson { .. } => self.plan_arrival(stream),
            Arrivals::Closed { clients } => {
                for _ in 0..clients {
                    let stream = stream as u32;
                    self.agenda.after(0, Event::Arrival { stream });
                }
            }
        }
    }

    fn plan_arrival(&mut self, stream: usize) {
        let source = &mut self.sources[stream];
        let spec = &self.spec.tenants[source.tenant as usize].streams[source.stream as usize];
        if let Arrivals::Poisson { per_s } = spec.arrivals {
            let delay_ns = (source.rng.exponential() * 1e9 / per_s.max(1e-9)) as Nanos;
            let stream = stream as u32;
            self.agenda.after(delay_ns, Event::Arrival { stream });
        }
    }

    /// A stream's next request is sent.
    pub(super) fn arrival(&mut self, stream: usize) {
        self.plan_arrival(stream);
        self.draw(stream);
        let router = self.next_router;
        self.next_router = (router + 1) % self.routers.len() as u32;
        let operations = self.scratch.drawn.len() as u32;
        let request = self.requests.insert(Request {
            stream: stream as u32,
            sent_at: self.agenda.now(),
            left: operations,
            operations,
        }) as u32;
        self.tag_opsets(router);
        let mut at = 0;
        for opset in 0..self.scratch.opsets.len() {
            for _ in 0..self.scratch.opsets[opset].operations {
                let (group, expected_ns) = self.scratch.drawn[at];
                at += 1;
                let op = self.ops.insert(Op {
                    request,
                    router,
                    born: self.born,
                    group,
                    tag: self.scratch.tags[opset],
                    cost: self.cost_of(expected_ns),
                    expected_ns,
                    nodes: [0; 2],
                    principals: [PrincipalId(0); 2],
                    next: [Copied::NONE; 2],
                    sent_at: [0; 2],
                    told: [Feedback::default(); 2],
                    away: 0,
                    answered: false,
                });
                self.born = self.born.wrapping_add(1);
                self.send(router, op);
            }
        }
        self.post();
    }

    /// Draws the next request of a stream: its operations, by group.
    fn draw(&mut self, stream: usize) {
        let source = &mut self.sources[stream];
        let tenant = &self.spec.tenants[source.tenant as usize];
        let requests = &tenant.streams[source.stream as usize].requests;
        let count = requests.keys.pick(source.rng.bits());
        let first = self.first_group[source.tenant as usize];
        let drawn = &mut self.scratch.drawn;
        drawn.clear();
        for _ in 0..count {
            let key = requests.popularity.pick(&mut source.rng);
            let partition =
                mix64(key ^ (u64::from(source.tenant) << 40)) % u64::from(tenant.partitions.max(1));
            let bytes = requests.values.of(key, u64::from(source.tenant));
            let expected_ns = self.spec.cluster.service.expected_ns(bytes) as f32;
            drawn.push((first + partition as u32, expected_ns));
        }
        drawn.sort_unstable_by_key(|(group, _)| *group);
    }

    fn cost_of(&self, expected_ns: f32) -> u64 {
        match self.spec.scheduler.cost {
            CostKnown::Operations => 1,
            CostKnown::Expected => expected_ns as u64,
        }
    }

    /// Splits what was drawn into opsets and tags them.
    fn tag_opsets(&mut self, router: u32) {
        let now = self.agenda.now();
        let scheduler = &self.spec.scheduler;
        let mut opsets = std::mem::take(&mut self.scratch.opsets);
        let drawn = self.scratch.drawn.iter();
        split(
            drawn.map(|(group, ns)| (*group, self.cost_of(*ns))),
            &mut opsets,
        );
        for opset in &mut opsets {
            let nodes = &self.groups[opset.group as usize].nodes;
            let ahead_ns = match scheduler.ahead {
                AheadKnown::Nothing => 0,
                AheadKnown::Replies => {
                    let selector = &self.routers[router as usize].selector;
                    let waits = nodes.iter().map(|&node| selector.expected_ns(now, node));
                    waits.min().unwrap_or(0)
                }
                AheadKnown::All => {
                    let level = scheduler.levels.of(opset.cost);
                    let waits = nodes.iter().map(|&node| self.oracle_ns(node, level) as u64);
                    waits.sum::<u64>() / nodes.len() as u64
                }
            };
            opset.ahead = match scheduler.cost {
                CostKnown::Expected => ahead_ns,
                CostKnown::Operations => {
                    ahead_ns / self.spec.cluster.service.operation_ns.max(1.0) as u64
                }
            };
        }
        tag(
            scheduler.strategy,
            now,
            &opsets,
            &scheduler.levels,
            &mut self.scratch.tags,
        );
        self.scratch.opsets = opsets;
    }

    /// What an operation of this level would wait for at a node if nothing else were sent there.
    fn oracle_ns(&self, node: u32, level: usize) -> f64 {
        let node = &self.nodes[node as usize];
        let ahead: f64 = node.promised_ns[..=level].iter().sum();
        ahead * node.slowness / f64::from(self.spec.cluster.permits)
    }

    /// Sends an operation, as often as the redundancy asks.
    fn send(&mut self, router: u32, op: usize) {
        self.transmit(router, op, 0);
        match self.spec.routing.redundancy {
            Redundancy::None => {}
            Redundancy::Duplicate => self.transmit(router, op, 1),
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

    /// Chooses a node for one copy of an operation and adds it to what is posted there.
    fn transmit(&mut self, router: u32, op: usize, copy: usize) {
        let now = self.agenda.now();
        let (group, level) = (self.ops[op].group, usize::from(self.ops[op].tag.level));
        let nodes = &self.groups[group as usize].nodes;
        let mut place = match self.spec.routing.selection {
            Selection::Rule(_) => {
                let selector = &mut self.routers[router as usize].selector;
                selector.choose(now, nodes)
            }
            Selection::Oracle => {
                let waits = nodes.iter().map(|&node| self.oracle_ns(node, level));
                let best = waits.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
                best.map_or(0, |(place, _)| place)
            }
        };
        if copy == 1 && nodes[place] == self.ops[op].nodes[0] {
            place = (place + 1) % nodes.len();
        }
        let node = nodes[place];
        let sent = &mut self.ops[op];
        sent.nodes[copy] = node;
        sent.principals[copy] = self.groups[group as usize].principals[place];
        sent.sent_at[copy] = now;
        sent.away += 1;
        let at = &mut self.nodes[node as usize];
        at.promised_ns[level] += f64::from(sent.expected_ns);
        let backlog_ns = f64::from(sent.expected_ns) / f64::from(self.spec.cluster.permits);
        let selector = &mut self.routers[router as usize].selector;
        selector.sent(node, backlog_ns as Nanos);
        let copy = Copied::new(op, copy);
        let last = &mut self.scratch.last[node as usize];
        match std::mem::replace(last, copy) {
            Copied::NONE => self.scratch.chains.push((node, copy)),
            before => self.ops[before.op()].next[before.copy()] = copy,
        }
    }

    /// Sends off what was transmitted, one message a node.
    fn post(&mut self) {
        for (node, first) in self.scratch.chains.drain(..) {
            self.scratch.last[node as usize] = Copied::NONE;
            let delay_ns = self.spec.cluster.one_way_ns;
            self.agenda.after(delay_ns, Event::Deliver { node, first });
        }
    }

    /// An operation is sent again if it has no reply yet.
    pub(super) fn again(&mut self, op: usize, born: u32) {
        let waits = |op: &Op| op.born == born && !op.answered && op.away == 1;
        if self.ops.get(op).is_some_and(waits) {
            let router = self.ops[op].router;
            self.transmit(router, op, 1);
            self.post();
        }
    }
}
