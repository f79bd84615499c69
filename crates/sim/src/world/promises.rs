//! Promises at simulated nodes: when requests are due, what became of them, and the controller that
//! ships, asked each interval.

use super::disk::Work;
use super::{Copied, Event, Request, World};
use crate::outcome::Window;
use crate::spec::Spec;
use policy::dispatch::{Allocation, LaneId};
use policy::slo::control::{
    after, permits_each, reserved_at, Controller, Given, Held, LateBy, Piece, PromiseSeen, Seen,
    ShareGiven, Turn, DEVICE, HANDLERS, STAGES,
};
use policy::slo::{Contract, Counts};
use policy::{Nanos, PrincipalId, Promise};
use std::collections::BTreeMap;

/// What is gathered of one promise.
#[derive(Debug)]
struct Promised {
    contract: Option<Contract>,
    /// Since the last step.
    seen: PromiseSeen,
    /// In the window that lasts.
    window: Window,
    window_ends_at: Nanos,
    window_latencies_ns: Vec<Nanos>,
}

/// The controller of all nodes, and what it has to go by.
#[derive(Debug)]
pub(super) struct Keeper {
    controller: Controller,
    interval_ns: Nanos,
    held: Vec<Held>,
    promised: Vec<Promised>,
    of_tenant: BTreeMap<u32, usize>,
    given: Given,
    /// By node and principal: occupied and charged at the stages at the last step.
    before: BTreeMap<(usize, PrincipalId), [u64; 3]>,
    /// By tenant: charged at the disks since the last step.
    charged: BTreeMap<u32, u64>,
    others_bytes: u64,
    pub(super) others_pieces: (u64, u64),
    handled: (u64, u64),
}

impl Keeper {
    pub(super) fn new(spec: &Spec) -> Option<Self> {
        let wanted = spec.keeper.as_ref()?;
        let mut keeper = Keeper {
            controller: wanted.controller.clone(),
            interval_ns: wanted.interval_ns.max(1),
            held: Vec::new(),
            promised: Vec::new(),
            of_tenant: BTreeMap::new(),
            given: Given::default(),
            before: BTreeMap::new(),
            charged: BTreeMap::new(),
            others_bytes: 0,
            others_pieces: (0, 0),
            handled: (0, 0),
        };
        for (tenant, wanted) in (0..).zip(&spec.tenants) {
            let Some(objective) = wanted.objective else {
                continue;
            };
            keeper.of_tenant.insert(tenant, keeper.held.len());
            // A tenant is called the same at a node as here, as long as there is one node.
            keeper.held.push(Held {
                principal: PrincipalId(tenant),
                lane: LaneId::REST,
                objective,
            });
            keeper.promised.push(Promised {
                contract: objective
                    .contract_per_s
                    .map(|per_s| Contract::new(0, per_s)),
                seen: PromiseSeen::default(),
                window: Window::default(),
                window_ends_at: spec.warm_up_ns + objective.window_ns,
                window_latencies_ns: Vec::new(),
            });
        }
        let seen = Seen {
            promises: vec![PromiseSeen::default(); keeper.held.len()],
            ..Seen::default()
        };
        keeper.given = keeper.controller.step(&keeper.held, &seen);
        Some(keeper)
    }

    /// Whether a tenant's work is other work to requests with due times: a promised rate gives it
    /// none, as on a server.
    fn is_other(&self, tenant: u32) -> bool {
        let place = self.of_tenant.get(&tenant);
        place.is_none_or(|place| self.held[*place].objective.latency.is_none())
    }
}

/// What a tenant was set to have at the stages.
fn set(tenant: u32, promise: &Promise) -> ShareGiven {
    ShareGiven {
        principal: PrincipalId(tenant),
        share: [promise.weight; STAGES],
        reserved: [promise.reserved_permits, 0],
    }
}

/// A percentile by nearest rank.
fn percentile(latencies_ns: &mut [Nanos], part: f64) -> Option<Nanos> {
    latencies_ns.sort_unstable();
    let rank = (part * latencies_ns.len() as f64).ceil() as usize;
    latencies_ns.get(rank.max(1) - 1).copied()
}

impl World<'_> {
    /// The controller's first word.
    pub(super) fn plan_keeper(&mut self) {
        if let Some(keeper) = &self.keeper {
            self.agenda.after(keeper.interval_ns, Event::Keep);
            self.provide();
        }
    }

    /// When an operation is due at the handlers and at the device.
    pub(super) fn due_of(&mut self, copy: Copied) -> Option<[Nanos; STAGES]> {
        let op = &self.ops[copy.op()];
        let tenant = self.groups[op.group as usize].tenant;
        let request = &mut self.requests[op.request as usize];
        let keeper = self.keeper.as_mut()?;
        let place = *keeper.of_tenant.get(&tenant)?;
        let came_at = request.sent_at + self.spec.cluster.one_way_ns;
        if let Some(contract) = &mut keeper.promised[place].contract {
            request.beyond = contract.offer(came_at, 1) == 0;
        }
        let given = keeper.given.promises.get(place)?;
        let due_after_ns = given.due_after_ns(&keeper.held[place].objective);
        let due_after_ns = due_after_ns.filter(|_| !request.beyond)?;
        Some(due_after_ns.map(|ns| came_at + ns))
    }

    /// A handler has done its work for an operation.
    pub(super) fn note_work(&mut self, copy: Copied, work: &Work) {
        let op = &self.ops[copy.op()];
        let tenant = self.groups[op.group as usize].tenant;
        let now = self.agenda.now();
        let Some(keeper) = &mut self.keeper else {
            return;
        };
        if keeper.is_other(tenant) {
            keeper.others_bytes += u64::from(op.bytes);
        }
        let Some(place) = keeper.of_tenant.get(&tenant) else {
            return;
        };
        let seen = &mut keeper.promised[*place].seen;
        let turns = [HANDLERS, DEVICE].map(|stage| Turn {
            queued: work.queued_at[stage],
            granted: work.granted_at[stage],
        });
        let request = &mut self.requests[op.request as usize];
        let came_at = request.sent_at + self.spec.cluster.one_way_ns;
        let (turn, latency) = (turns[HANDLERS], keeper.held[*place].objective.latency);
        let late_by = latency
            .filter(|wanted| now - came_at > wanted.at_most_ns)
            .map(|wanted| LateBy::of(turn, came_at, wanted.at_most_ns));
        if late_by == Some(LateBy::Entry) {
            // The node stood still.
            request.held = true;
            seen.held += 1;
            return;
        }
        let due_at = [HANDLERS, DEVICE].map(|stage| Some(work.due_at?[stage]));
        let after = after(&turns.map(Some), &due_at, now);
        for (tail, after) in seen.after.iter_mut().zip(after) {
            if let Some(after) = after {
                tail.record(after);
            }
        }
        seen.unhandled += u64::from(late_by == Some(LateBy::Handler));
        if latency.is_some() {
            let waited_ns = work.granted_at[DEVICE] - work.queued_at[DEVICE];
            keeper.handled.0 += 1;
            keeper.handled.1 += now - work.granted_at[HANDLERS] - waited_ns;
        }
    }

    /// A request of a tenant is answered.
    pub(super) fn note_answer(&mut self, tenant: u32, latency_ns: Nanos, of: &Request) {
        let (now, warm_up_ns) = (self.agenda.now(), self.spec.warm_up_ns);
        let Some(keeper) = &mut self.keeper else {
            return;
        };
        let Some(place) = keeper.of_tenant.get(&tenant).copied() else {
            return;
        };
        let objective = keeper.held[place].objective;
        let promised = &mut keeper.promised[place];
        while now >= promised.window_ends_at {
            let closed = promised.close(objective.latency.map_or(0.99, |l| l.percentile / 100.0));
            promised.window_ends_at += objective.window_ns;
            self.outcome[tenant as usize].windows.push(closed);
        }
        let late = objective
            .latency
            .is_some_and(|wanted| latency_ns > wanted.at_most_ns);
        let mut counts = Counts::default();
        match of.beyond {
            true => (counts.beyond, counts.beyond_late) = (1, u64::from(late)),
            false => (counts.requests, counts.late) = (1, u64::from(late)),
        }
        counts.under_way_ns = latency_ns;
        promised.seen.counts.add(&counts);
        if !of.beyond && !of.held {
            promised.seen.latencies.record(latency_ns);
        }
        if now >= warm_up_ns {
            promised.window.counts.add(&counts);
            if !of.beyond {
                promised.window_latencies_ns.push(latency_ns);
            }
        }
    }

    /// A step of the controller.
    pub(super) fn keep(&mut self) {
        let Some(mut keeper) = self.keeper.take() else {
            return;
        };
        self.agenda.after(keeper.interval_ns, Event::Keep);
        let seen = self.seen_by(&mut keeper);
        self.note_shares(&mut keeper);
        self.note_permits(&keeper);
        keeper.given = keeper.controller.step(&keeper.held, &seen);
        self.keeper = Some(keeper);
        self.provide();
    }

    fn seen_by(&mut self, keeper: &mut Keeper) -> Seen {
        let (now, elapsed_ns) = (self.agenda.now(), keeper.interval_ns);
        let mut others_occupied: f64 = 0.0;
        for (number, node) in self.nodes.iter().enumerate() {
            let Some(disk) = &node.disk else {
                continue;
            };
            for (tenant, principal) in &node.tenants {
                let (mut device, mut charged) = (0, 0);
                for stage in &disk.stages {
                    let seen = stage.observe(now, *principal);
                    device += seen.map_or(0, |seen| seen.occupied_ns);
                    charged += seen.map_or(0, |seen| seen.charged_ns);
                }
                let handlers = disk.handlers.observe(now, *principal);
                let handlers = handlers.map_or(0, |seen| seen.occupied_ns);
                let is = [handlers, device, charged];
                let was = keeper.before.insert((number, *principal), is);
                let was = was.unwrap_or_default();
                let all_ns = elapsed_ns as f64 * disk.stages.len() as f64;
                let part = |at: usize, whole: f64| is[at].saturating_sub(was[at]) as f64 / whole;
                *keeper.charged.entry(*tenant).or_default() += is[2].saturating_sub(was[2]);
                let occupied = [part(0, elapsed_ns as f64), part(1, all_ns)];
                if let Some(place) = keeper.of_tenant.get(tenant) {
                    let seen = &mut keeper.promised[*place].seen;
                    seen.occupied = occupied.map(|part| part.min(1.0));
                    seen.device = part(2, all_ns);
                }
                if keeper.is_other(*tenant) {
                    others_occupied = others_occupied.max(occupied[DEVICE]);
                }
            }
        }
        let (handled, handled_ns) = std::mem::take(&mut keeper.handled);
        let (pieces_ns, pieces) = std::mem::take(&mut keeper.others_pieces);
        let others_bytes = std::mem::take(&mut keeper.others_bytes);
        let promised = keeper.promised.iter_mut();
        let promises = promised.map(|promised| std::mem::take(&mut promised.seen));
        Seen {
            elapsed_ns,
            promises: promises.collect(),
            handled,
            handled_ns,
            others_bytes_per_s: others_bytes as f64 * 1e9 / elapsed_ns as f64,
            others_occupied: others_occupied.min(1.0),
            others_piece: Piece::mean(pieces, others_bytes, pieces_ns),
            // Nothing is compacted here.
            compaction: 0.0,
        }
    }

    /// What shares tenants had since the last step.
    fn note_shares(&mut self, keeper: &mut Keeper) {
        let now = self.agenda.now();
        let charged = std::mem::take(&mut keeper.charged);
        if now <= self.spec.warm_up_ns || now > self.quotas.ends_ns {
            return;
        }
        let all = charged.values().sum::<u64>().max(1) as f64;
        let unlisted = self.unlisted(&keeper.given);
        for (tenant, outcome) in (0..).zip(&mut self.outcome) {
            let set = set(tenant, &self.spec.tenants[tenant as usize].promise);
            let given = keeper.given.share(&set, unlisted);
            let taken = charged.get(&tenant).copied().unwrap_or_default() as f64 / all;
            outcome
                .shares
                .push(given.map_or(taken, |given| given.share[HANDLERS]));
        }
    }

    /// What tenants without a promise may have outstanding.
    fn note_permits(&mut self, keeper: &Keeper) {
        let now = self.agenda.now();
        if now <= self.spec.warm_up_ns || now > self.quotas.ends_ns {
            return;
        }
        let given = &keeper.given;
        let most = given.others[DEVICE].permits;
        let disks = self.nodes.iter().filter_map(|node| node.disk.as_ref());
        let stages = disks.flat_map(|disk| &disk.stages);
        let at_disks = stages.map(|stage| u64::from(stage.permits().min(most)));
        let permits = given.permits[HANDLERS].map_or_else(|| at_disks.sum(), u64::from);
        for (tenant, outcome) in (0..).zip(&mut self.outcome) {
            if !keeper.of_tenant.contains_key(&tenant) {
                outcome.permits.push(permits);
            }
        }
    }

    /// What tenants weigh together whose shares are not a controller's.
    fn unlisted(&self, given: &Given) -> f64 {
        let all = (0..).zip(&self.spec.tenants);
        let unlisted = all.filter(|(tenant, _)| !given.lists(PrincipalId(*tenant)));
        unlisted.map(|(_, tenant)| tenant.promise.weight).sum()
    }

    /// Tells the stages what was given.
    fn provide(&mut self) {
        let now = self.agenda.now();
        let Some(keeper) = &self.keeper else {
            return;
        };
        let given = &keeper.given;
        let unlisted = self.unlisted(given);
        for node in &mut self.nodes {
            let Some(disk) = &mut node.disk else {
                continue;
            };
            if let Some(permits) = given.permits[HANDLERS] {
                disk.handlers.set_permits(permits);
            }
            disk.handlers.set_others(now, given.others[HANDLERS]);
            if let Some(bytes) = given.chunk_bytes {
                disk.chunk_bytes = bytes;
            }
            let drives = disk.stages.len() as u32;
            disk.hold(given.permits[DEVICE].map(|permits| permits_each(permits, drives)));
            for stage in &mut disk.stages {
                stage.set_others(now, given.others[DEVICE]);
            }
            for (tenant, principal) in &node.tenants {
                let promise = &self.spec.tenants[*tenant as usize].promise;
                let share = given.share(&set(*tenant, promise), unlisted);
                let allocation = |stage: usize| match share {
                    None => Allocation::share(promise.weight),
                    Some(share) => Allocation {
                        reserved_permits: share.reserved[stage],
                        ..Allocation::share(share.share[stage] * 100.0)
                    },
                };
                let place = keeper.of_tenant.get(tenant);
                let part = place.map_or(0.0, |place| given.promises[*place].device);
                let reserved = disk.capacity_per_s * part;
                let device = Allocation {
                    reservation_per_s: (reserved > 0.0).then_some(reserved),
                    ..allocation(DEVICE)
                };
                let kept = |number: u32| Allocation {
                    reserved_permits: reserved_at(number, drives, device.reserved_permits, *tenant),
                    ..device
                };
                if !given.shares.is_empty() {
                    disk.handlers
                        .configure(now, *principal, &allocation(HANDLERS));
                }
                for (number, stage) in (0..).zip(&mut disk.stages) {
                    stage.configure(now, *principal, &kept(number));
                }
            }
        }
    }
}

impl Promised {
    fn close(&mut self, part: f64) -> Window {
        let mut window = std::mem::take(&mut self.window);
        window.latency_ns = percentile(&mut self.window_latencies_ns, part);
        self.window_latencies_ns.clear();
        window
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Plan;
    use crate::World;

    #[test]
    fn a_controller_s_permits_of_the_device_are_those_of_all_disks() {
        let text = "
duration = \"1s\"
[cluster]
device = \"hdd\"
disks = 4
control = \"cake\"
cake_permits = 2
[[tenant]]
name = \"front\"
[[tenant.slo]]
class = \"get\"
latency = { p = 99, at_most = \"150ms\" }
[[tenant.load]]
loop = \"closed\"
connections = 1
mix = { get = 1 }
";
        let plan = Plan::from_text(text, "cake").expect("good");
        let world = World::new(&plan.spec);
        let disk = world.nodes[0].disk.as_ref().expect("disks");
        let each: Vec<u32> = disk.stages.iter().map(|stage| stage.permits()).collect();
        assert_eq!(each, [2; 4]);
    }
}
