//! A node: a stage, and the servers behind it.

use super::{Copied, Event, World};
use crate::spec::{Noise, Service, Spec};
use policy::dispatch::{Allocation, DispatchOptions, Meter, Next, Ordered, Ticket};
use policy::multiget::{Options, LEVELS_MAX};
use policy::replica::Feedback;
use policy::{Cost, Nanos, PrincipalId};
use std::collections::BTreeMap;
use workload::rng::Rng;

/// Requests, and nanoseconds of a permit.
const R: usize = 2;
/// Operations that may wait for one tenant: more than any run has, so that nothing is lost unseen.
const QUEUE_MAX: usize = 1 << 24;

/// An operation in service.
#[derive(Debug)]
struct Serving {
    copy: Copied,
    ticket: Ticket,
    began_at: Nanos,
    ends_at: Nanos,
}

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    stage: Ordered<Copied, R>,
    /// What each tenant that has something here is called by the stage.
    tenants: BTreeMap<u32, PrincipalId>,
    serving: slab::Slab<Serving>,
    pub(super) slowness: f64,
    pub(super) paused: bool,
    pub(super) busy_ns: u64,
    /// Expected time of what is queued or in service, as one permit would need it.
    pub(super) backlog_ns: f64,
    in_flight: u32,
    /// Expected time of what was sent here and not yet served, by level (for the oracle).
    pub(super) promised_ns: [f64; LEVELS_MAX],
    permits: f64,
    /// When it asked to be asked again.
    ask_at: Nanos,
}

impl Node {
    pub(super) fn new(spec: &Spec) -> Self {
        let scheduler = &spec.scheduler;
        let meter = Meter {
            requests: 0,
            bytes: [false; R],
        };
        let permits = spec.cluster.permits.max(1);
        let capacity = [u64::MAX >> 20, 1_000_000_000 * u64::from(permits)];
        let mut options = DispatchOptions::new(capacity, meter);
        options.discipline = scheduler.discipline;
        options.permits = permits;
        options.queue_max = QUEUE_MAX;
        options.seed = spec.seed;
        let order = Options {
            order: scheduler.order,
            levels: scheduler.levels.clone(),
            guard_ns: scheduler.guard_ns,
        };
        Node {
            stage: Ordered::new(options, order),
            tenants: BTreeMap::new(),
            serving: slab::Slab::with_capacity(permits as usize),
            slowness: 1.0,
            paused: false,
            busy_ns: 0,
            backlog_ns: 0.0,
            in_flight: 0,
            promised_ns: [0.0; LEVELS_MAX],
            permits: f64::from(permits),
            ask_at: Nanos::MAX,
        }
    }

    /// How it stands, with the service time of the operation that it answers.
    pub(super) fn feedback(&self, service_ns: Nanos) -> Feedback {
        Feedback {
            in_flight: self.in_flight,
            service_ns,
            backlog_ns: (self.backlog_ns * self.slowness / self.permits) as Nanos,
        }
    }

    /// A tenant has something here from now on.
    pub(super) fn admit(&mut self, tenant: u32, allocation: &Allocation) -> PrincipalId {
        let next = PrincipalId(self.tenants.len() as u32);
        let principal = *self.tenants.entry(tenant).or_insert(next);
        if principal == next {
            self.stage.configure(0, principal, allocation);
        }
        principal
    }
}

/// A service time as it turns out.
fn draw(service: &Service, expected_ns: f64, rng: &mut Rng) -> f64 {
    match service.noise {
        Noise::None => expected_ns,
        Noise::Exponential => expected_ns * rng.exponential(),
        Noise::LogNormal(sigma) => expected_ns * (sigma * rng.normal() - sigma * sigma / 2.0).exp(),
    }
}

impl World<'_> {
    /// Operations reach a node.
    pub(super) fn deliver(&mut self, node: u32, first: Copied) {
        let now = self.agenda.now();
        let at = &mut self.nodes[node as usize];
        let mut copy = first;
        while copy != Copied::NONE {
            let op = &self.ops[copy.op()];
            let principal = op.principals[copy.copy()];
            if at
                .stage
                .enqueue(now, principal, op.tag, op.cost, copy)
                .is_ok()
            {
                at.backlog_ns += f64::from(op.expected_ns);
                at.in_flight += 1;
            }
            copy = op.next[copy.copy()];
        }
        self.serve(node);
    }

    /// Begins what may begin.
    pub(super) fn serve(&mut self, node: u32) {
        let now = self.agenda.now();
        let at = &mut self.nodes[node as usize];
        if at.paused {
            return;
        }
        loop {
            match at.stage.next(now) {
                Next::Idle => return,
                Next::At(when) => {
                    if when < at.ask_at || at.ask_at <= now {
                        at.ask_at = when;
                        self.agenda.after(when - now, Event::Ask { node });
                    }
                    return;
                }
                Next::Grant(grant) => {
                    let op = &self.ops[grant.item.op()];
                    let expected_ns = f64::from(op.expected_ns) * at.slowness;
                    let service = &self.spec.cluster.service;
                    let service_ns = draw(service, expected_ns, &mut self.noise).max(1.0) as Nanos;
                    let place = at.serving.insert(Serving {
                        copy: grant.item,
                        ticket: grant.ticket,
                        began_at: now,
                        ends_at: now + service_ns,
                    }) as u32;
                    self.agenda.after(service_ns, Event::Served { node, place });
                }
            }
        }
    }

    /// A node has served an operation.
    pub(super) fn served(&mut self, node: u32, place: u32) {
        let now = self.agenda.now();
        let at = &mut self.nodes[node as usize];
        let served = at.serving.remove(place as usize);
        let service_ns = served.ends_at - served.began_at;
        at.stage.settle(now, served.ticket, Cost([1, service_ns]));
        at.busy_ns += service_ns;
        at.in_flight -= 1;
        let op = &mut self.ops[served.copy.op()];
        let expected_ns = f64::from(op.expected_ns);
        at.backlog_ns = (at.backlog_ns - expected_ns).max(0.0);
        let promised = &mut at.promised_ns[usize::from(op.tag.level)];
        *promised = (*promised - expected_ns).max(0.0);
        op.told[served.copy.copy()] = at.feedback(service_ns);
        let copy = served.copy;
        self.agenda
            .after(self.spec.cluster.one_way_ns, Event::Reply { copy });
        self.serve(node);
    }
}
