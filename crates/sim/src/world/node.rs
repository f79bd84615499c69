//! A node: a stage, the servers behind it, and the resources that they share.

use super::account::{Account, R};
use super::backlog::Backlog;
use super::disk::Disk;
use super::processors::Processors;
use super::promised::Promised;
use super::{Copied, Event, World};
use crate::prices::Prices;
use crate::spec::{Noise, Service, Spec};
use policy::dispatch::{DispatchOptions, Grant, Meter, Next, Ordered, Ticket, Verdict};
use policy::generator::mix64;
use policy::multiget::{Levels, Options};
use policy::replica::Feedback;
use policy::{Cost, Nanos, PrincipalId, Promise};
use std::collections::BTreeMap;
use workload::rng::Rng;

const REQUESTS: usize = 1;
const BYTES_OUT: usize = 2;
const BYTES: [bool; R] = [true, false, true, false];
/// Operations that may wait for one tenant: more than any run has, so that nothing is lost unseen.
const QUEUE_MAX: usize = 1 << 24;

/// Weight of the newest operation in the mean time that one takes.
const NEWEST: f64 = 1.0 / 256.0;

/// An operation in service.
#[derive(Debug)]
struct Serving {
    copy: Copied,
    ticket: Ticket,
    began_at: Nanos,
    /// What it needs of a processor that is its alone.
    work_ns: Nanos,
    refused: bool,
    /// The node died meanwhile.
    lost: bool,
}

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    stage: Ordered<Copied, R>,
    pub(super) disk: Option<Disk>,
    /// What each tenant that has something here is called by the stage.
    pub(super) tenants: BTreeMap<u32, PrincipalId>,
    /// Each principal's account at the last control step.
    before: Vec<Account>,
    capacity_per_s: [u64; R],
    /// When bytes in, requests and bytes out are free again.
    free_at: [Nanos; 3],
    serving: slab::Slab<Serving>,
    pub(super) slowness: f64,
    pub(super) paused: bool,
    /// It begins nothing before this.
    pub(super) paused_until: Nanos,
    /// What has come and was not taken in yet: first operations of chains.
    pub(super) inbox: Vec<Copied>,
    /// When it takes that in, if it has something else to do until then.
    pub(super) look_at: Nanos,
    pub(super) dead: bool,
    /// Senders and the controller know that it is dead.
    pub(super) given_up: bool,
    /// A partition is copied from here or to here until then.
    pub(super) copying_until: Nanos,
    /// What probes took, which the next operation waits for.
    pub(super) probed_ns: Nanos,
    pub(super) busy_ns: u64,
    backlog: Backlog,
    /// It is told as a count of operations, in the time that one takes on average.
    counts: bool,
    mean_ns: f64,
    /// What was sent here and is not yet served.
    pub(super) promised: Promised,
    /// Operations of nominal speed at a time.
    parallel: f64,
    /// Where there are fewer than permits.
    pub(super) processors: Option<Processors>,
    /// When it asked to be asked again.
    ask_at: Nanos,
}

impl Node {
    pub(super) fn new(spec: &Spec, number: u32, prices: Option<&Prices>) -> Self {
        let scheduler = &spec.scheduler;
        let meter = Meter {
            requests: REQUESTS,
            bytes: BYTES,
        };
        let permits = spec.cluster.permits.max(1);
        let rates = &spec.cluster.resources;
        let per_s = |rate: Option<f64>| rate.map_or(u64::MAX >> 20, |rate| rate.max(1.0) as u64);
        let capacity = [
            per_s(rates.bytes_in_per_s),
            per_s(rates.requests_per_s),
            per_s(rates.bytes_out_per_s),
            1_000_000_000 * u64::from(permits),
        ];
        let mut options = DispatchOptions::new(capacity, meter);
        options.discipline = scheduler.discipline;
        options.permits = permits;
        options.queue_max = QUEUE_MAX;
        options.seed = spec.seed;
        let device = spec.cluster.device.as_ref().zip(prices);
        let seed = mix64(spec.seed ^ u64::from(number));
        let order = Options {
            order: scheduler.order,
            levels: scheduler.levels.clone(),
            guard_ns: scheduler.guard_ns,
        };
        Node {
            stage: Ordered::new(options, order),
            disk: device.map(|(device, prices)| Disk::new(device, prices, QUEUE_MAX, spec, seed)),
            tenants: BTreeMap::new(),
            before: Vec::new(),
            capacity_per_s: capacity,
            free_at: [0; 3],
            serving: slab::Slab::with_capacity(permits as usize),
            slowness: 1.0,
            paused: false,
            paused_until: 0,
            inbox: Vec::new(),
            look_at: 0,
            dead: false,
            given_up: false,
            copying_until: 0,
            probed_ns: 0,
            busy_ns: 0,
            backlog: Backlog::default(),
            counts: scheduler.cost.is_learnt(),
            mean_ns: 0.0,
            promised: Promised::default(),
            parallel: f64::from(spec.cluster.parallel()),
            processors: (spec.cluster.parallel() < permits)
                .then(|| Processors::new(spec.cluster.parallel())),
            ask_at: Nanos::MAX,
        }
    }

    /// How it stands, with the service time of the operation that it answers.
    pub(super) fn feedback(&self, service_ns: Nanos) -> Feedback {
        // A server knows how many wait, and how long those before them took. It does not know the
        // size of a value before it has read it.
        let each_ns = self.counts.then_some(self.mean_ns);
        let slowness = if self.counts { 1.0 } else { self.slowness };
        let times_ns = self.backlog.times_ns(each_ns);
        let [backlog_ns, urgent_ns] = times_ns.map(|ns| (ns * slowness / self.parallel) as Nanos);
        Feedback {
            in_flight: self.backlog.count(),
            service_ns,
            backlog_ns,
            urgent_ns,
        }
    }

    /// A tenant has something here from now on.
    pub(super) fn enroll(&mut self, now: Nanos, tenant: u32, promise: &Promise) -> PrincipalId {
        let next = PrincipalId(self.tenants.len() as u32);
        let principal = *self.tenants.entry(tenant).or_insert(next);
        if principal == next {
            self.configure(now, principal, promise);
            self.before.push(Account::default());
        }
        principal
    }

    /// A tenant is promised something else here.
    pub(super) fn entitle(&mut self, now: Nanos, tenant: u32, promise: &Promise) {
        if let Some(principal) = self.tenants.get(&tenant).copied() {
            self.configure(now, principal, promise);
        }
    }

    fn configure(&mut self, now: Nanos, principal: PrincipalId, promise: &Promise) {
        self.stage.configure(now, principal, &promise.at_requests());
        if let Some(disk) = &mut self.disk {
            disk.configure(now, principal, promise);
        }
    }

    /// Other levels inside every tenant.
    pub(super) fn set_levels(&mut self, levels: &Levels) {
        for principal in self.tenants.values() {
            self.stage.set_levels(*principal, levels);
        }
    }

    /// Whether it has something to do.
    pub(super) fn is_busy(&self) -> bool {
        !self.serving.is_empty()
    }

    /// A principal's account since the last time this was asked.
    pub(super) fn since(&mut self, now: Nanos, principal: PrincipalId) -> Account {
        let Some(seen) = self.stage.dispatch().observe(now, principal) else {
            return Account::default();
        };
        let mut is = Account {
            charged_ns: seen.charged_ns,
            operations: seen.granted,
            occupied_ns: seen.occupied_ns,
            used_ns: [0.0; R],
        };
        let used = seen.consumed.0.iter().zip(self.capacity_per_s);
        for (ns, (used, per_s)) in is.used_ns.iter_mut().zip(used) {
            *ns = *used as f64 * 1e9 / per_s as f64;
        }
        let was = std::mem::replace(&mut self.before[principal.index()], is);
        is.since(was)
    }

    /// Dies: all that was here is lost.
    pub(super) fn die(&mut self, now: Nanos, spec: &Spec) -> Vec<Copied> {
        self.dead = true;
        let mut lost = Vec::new();
        for (tenant, principal) in self.tenants.clone() {
            lost.extend(self.stage.remove(now, principal));
            if let Some(disk) = &mut self.disk {
                lost.extend(disk.lose(now, principal));
            }
            let promise = &spec.tenants[tenant as usize].promise;
            self.configure(now, principal, promise);
            self.before[principal.index()] = Account::default();
        }
        for (_, serving) in &mut self.serving {
            serving.lost = true;
            lost.push(serving.copy);
        }
        self.backlog = Backlog::default();
        self.promised = Promised::default();
        lost
    }

    /// When an operation is done that is free to use the shared resources at `at`.
    fn through_resources(&mut self, at: Nanos, needs_ns: [f64; 3]) -> Nanos {
        let mut done_at = at;
        for (free_at, ns) in self.free_at.iter_mut().zip(needs_ns) {
            if ns > 0.0 {
                done_at = done_at.max(*free_at) + ns as Nanos;
                *free_at = done_at;
            }
        }
        done_at
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
        if at.dead {
            let lost = self.chain(first);
            self.break_off(lost);
        } else if now < at.look_at && at.is_busy() {
            at.inbox.push(first);
        } else {
            at.look_at = now + self.spec.cluster.look_ns;
            self.take_in(node, first);
            self.serve(node);
        }
    }

    /// The operations of a chain.
    pub(super) fn chain(&self, first: Copied) -> Vec<Copied> {
        let next = |copy: &Copied| {
            let next = self.ops[copy.op()].next[copy.copy()];
            (next != Copied::NONE).then_some(next)
        };
        std::iter::successors(Some(first), next).collect()
    }

    /// A node takes in what has come.
    fn look(&mut self, node: u32) {
        let now = self.agenda.now();
        let at = &mut self.nodes[node as usize];
        at.look_at = now + self.spec.cluster.look_ns;
        let mut inbox = std::mem::take(&mut at.inbox);
        for first in inbox.drain(..) {
            self.take_in(node, first);
        }
        self.nodes[node as usize].inbox = inbox;
    }

    /// Operations join the queues of a node.
    fn take_in(&mut self, node: u32, first: Copied) {
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
                at.backlog.add(op.tag.puts_off(), op.expected_ns);
            }
            copy = op.next[copy.copy()];
        }
    }

    /// Begins what may begin.
    pub(super) fn serve(&mut self, node: u32) {
        let now = self.agenda.now();
        loop {
            let at = &mut self.nodes[node as usize];
            if at.paused || at.dead || now < at.paused_until {
                return;
            }
            match at.stage.next(now) {
                Next::Idle | Next::At(_) if !at.is_busy() && !at.inbox.is_empty() => {
                    self.look(node);
                }
                Next::Idle => return,
                Next::At(when) => {
                    if when < at.ask_at || at.ask_at <= now {
                        at.ask_at = when;
                        self.agenda.after(when - now, Event::Ask { node });
                    }
                    return;
                }
                Next::Grant(grant) => self.begin_service(node, grant),
            }
        }
    }

    /// A node begins an operation. One that is refused has come in all the same, and takes no
    /// processor's time.
    fn begin_service(&mut self, node: u32, grant: Grant<Copied, R>) {
        let (now, slowed) = (self.agenda.now(), self.slowed(node));
        let at = &mut self.nodes[node as usize];
        let op = &mut self.ops[grant.item.op()];
        let refused = grant.verdict != Verdict::Serve;
        op.refused[grant.item.copy()] = refused;
        at.promised.begin(op.tag.priority, op.expected_ns);
        at.backlog.begin(op.tag.puts_off(), op.expected_ns);
        let service = &self.spec.cluster.service;
        let work_ns = match refused {
            true => 0,
            false => {
                // What it needs of the shared resources comes on top.
                let expected_ns = service.expected_ns(op.bytes) * slowed;
                let own_ns = draw(service, expected_ns, &mut self.noise).max(1.0) as Nanos;
                own_ns + std::mem::take(&mut at.probed_ns)
            }
        };
        let place = at.serving.insert(Serving {
            copy: grant.item,
            ticket: grant.ticket,
            began_at: now,
            work_ns,
            refused,
            lost: false,
        }) as u32;
        match &mut at.processors {
            Some(processors) if work_ns > 0 => {
                processors.begin(now, place, work_ns);
                self.ask_processors(node);
            }
            _ => self.move_bytes(node, place, now + work_ns),
        }
    }

    /// An operation that needs no processor any more from `at` on uses what all of the node's
    /// operations share.
    pub(super) fn move_bytes(&mut self, node: u32, place: u32, from: Nanos) {
        let (now, slowed) = (self.agenda.now(), self.slowed(node));
        let at = &mut self.nodes[node as usize];
        let serving = &at.serving[place as usize];
        let op = &self.ops[serving.copy.op()];
        let mut needs_ns = self.spec.cluster.resources.needs_ns(op.bytes, op.put);
        if serving.refused {
            needs_ns[BYTES_OUT] = 0.0;
        }
        let ends_at = at.through_resources(from, needs_ns.map(|ns| ns * slowed));
        self.agenda
            .after(ends_at - now, Event::Served { node, place });
    }

    /// A node has served an operation.
    pub(super) fn served(&mut self, node: u32, place: u32) {
        let now = self.agenda.now();
        let at = &mut self.nodes[node as usize];
        let served = at.serving.remove(place as usize);
        if served.lost {
            at.stage.settle(now, served.ticket, Cost::ZERO);
            return;
        }
        let op = &self.ops[served.copy.op()];
        let bytes = u64::from(op.bytes);
        let (bytes_in, bytes_out) = match op.put {
            true => (bytes, 0),
            false if served.refused => (0, 0),
            false => (0, bytes),
        };
        // Its own work: not what it waited for processors, bytes and requests that others used.
        let cost = Cost([bytes_in, 1, bytes_out, served.work_ns]);
        at.stage.settle(now, served.ticket, cost);
        if !served.refused {
            at.mean_ns += (served.work_ns as f64 - at.mean_ns) * NEWEST;
        }
        let service_ns = now - served.began_at;
        at.busy_ns += service_ns;
        let copy = served.copy;
        if !served.refused && self.needs_device(node, copy) {
            self.ask_device(node, copy);
        } else {
            self.finish(node, copy, service_ns);
        }
        let at = &self.nodes[node as usize];
        if now >= at.look_at && !at.inbox.is_empty() {
            self.look(node);
        }
        self.serve(node);
    }

    /// An operation is done, and its reply leaves.
    pub(super) fn finish(&mut self, node: u32, copy: Copied, service_ns: Nanos) {
        let at = &mut self.nodes[node as usize];
        let op = &mut self.ops[copy.op()];
        let group = &mut self.groups[op.group as usize];
        let here = group.nodes.iter().position(|other| *other == node);
        // The controller is told what was served.
        if let Some(place) = here.filter(|_| !op.refused[copy.copy()]) {
            group.served_ns[place] += f64::from(op.expected_ns);
        }
        at.backlog.end(op.expected_ns);
        at.promised.end(op.expected_ns);
        op.told[copy.copy()] = at.feedback(service_ns);
        let way_ns = self.way_ns();
        self.agenda.after(way_ns, Event::Reply { copy });
    }
}
