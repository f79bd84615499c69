//! Where partitions are, and the controller that places them and weighs tenants (Pisces algorithms
//! 1 and 2).

use super::node::{Node, R};
use super::{Event, Group, World};
use crate::spec::Spec;
use policy::generator::mix64;
use policy::placement::{
    self, Asked, Control, ControlOptions, Partition, Seen, Served, TenantSeen,
};
use std::collections::BTreeMap;

/// What a node can serve of each resource: nanoseconds of its time a second.
const CAPACITY: u64 = 1_000_000_000;
/// A local share of a whole node as a weight: weights go from 0.001 to 1,000, shares then from a
/// millionth.
const WHOLE: f64 = 1_000.0;

/// The controller, and what it moves.
#[derive(Debug)]
pub(super) struct Controller {
    control: Control<R>,
    /// Like the groups.
    pub(super) partitions: Vec<Partition<R>>,
    /// By tenant: its nodes, in the order in which it came to them.
    homes: Vec<BTreeMap<u32, u32>>,
    /// Whether it has places and weights to give.
    works: bool,
    /// Replicas that were moved.
    pub(super) moves: u64,
}

/// What a tenant took of the whole since the last step.
#[derive(Clone, Copy, Debug, Default)]
struct Taker {
    /// It had work queued most of the time somewhere.
    wants_more: bool,
    /// By resource, ns/s over all nodes.
    used: [f64; R],
}

/// Places every partition on successors on a ring, each tenant's ring turned by its number.
pub(super) fn ring(spec: &Spec) -> (Vec<u32>, Vec<Group>, Controller) {
    let (count, replicas) = (u64::from(spec.cluster.nodes), spec.cluster.replicas);
    let (mut first, mut groups, mut partitions) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..spec.tenants.len() {
        first.push(groups.len() as u32);
        let turn = mix64(number as u64) % count;
        for partition in 0..u64::from(spec.tenants[number].partitions.max(1)) {
            let ring = (0..u64::from(replicas)).map(|r| ((turn + partition + r) % count) as u32);
            partitions.push(Partition::new([0; R], replicas as usize, ring.collect()));
            groups.push(Group::new(number as u32));
        }
    }
    let wanted = &spec.cluster.control;
    let options = ControlOptions {
        places: wanted.places,
        weighs: wanted.weighs,
        ..ControlOptions::default()
    };
    let controller = Controller {
        control: Control::new(options),
        partitions,
        homes: vec![BTreeMap::new(); spec.tenants.len()],
        works: wanted.places || wanted.weighs,
        moves: 0,
    };
    (first, groups, controller)
}

impl Group {
    /// What was asked of it since the last step, and what its replicas served.
    fn asked_since(&mut self, partition: &Partition<R>, interval_s: f64) -> Asked<R> {
        let mut rate = |node: &u32| {
            let place = self.nodes.iter().position(|other| other == node);
            place.map_or(0.0, |place| {
                std::mem::take(&mut self.served_ns[place]) / interval_s
            })
        };
        let served = partition.nodes.iter().map(&mut rate).collect();
        Asked {
            tenant: self.tenant,
            served,
            rate: std::mem::take(&mut self.asked_ns) / interval_s,
            uses: std::mem::take(&mut self.asked_of_ns).map(|ns| ns / interval_s),
            primary: std::mem::take(&mut self.written_of_ns).map(|ns| ns / interval_s),
            requests: std::mem::take(&mut self.asked),
        }
    }
}

impl World<'_> {
    /// Every partition is asked at those of its nodes that live. A node knows only the tenants that
    /// have something there.
    pub(super) fn regroup(&mut self) {
        let now = self.agenda.now();
        for (group, partition) in self.groups.iter_mut().zip(&self.controller.partitions) {
            let alive = |node: &u32| !self.nodes[*node as usize].dead;
            if partition
                .nodes
                .iter()
                .copied()
                .filter(alive)
                .eq(group.nodes.iter().copied())
            {
                continue;
            }
            group.nodes = partition.nodes.iter().copied().filter(alive).collect();
            let promise = &self.spec.tenants[group.tenant as usize].promise;
            let homes = &mut self.controller.homes[group.tenant as usize];
            let (nodes, admit) = (&mut self.nodes, |node: &mut Node| {
                node.enroll(now, group.tenant, promise)
            });
            group.served_ns = vec![0.0; group.nodes.len()];
            group.principals.clear();
            group.homes.clear();
            for &node in &group.nodes {
                group.principals.push(admit(&mut nodes[node as usize]));
                let next = homes.len() as u32;
                group.homes.push(*homes.entry(node).or_insert(next));
            }
        }
        for router in &mut self.routers {
            for (tenant, lane) in &mut router.lanes {
                lane.grow(self.controller.homes[*tenant as usize].len() as u32);
            }
        }
        self.wait_anew();
    }

    /// Nodes that a tenant has or had something at.
    pub(super) fn homes(&self, tenant: u32) -> u32 {
        self.controller.homes[tenant as usize].len() as u32
    }

    /// The controller's first step, if there is one.
    pub(super) fn plan_control(&mut self) {
        if self.controller.works {
            let interval_ns = self.spec.cluster.control.interval_ns;
            self.agenda.after(interval_ns, Event::Control);
        }
    }

    /// A control step: what was seen, what follows from it.
    pub(super) fn control(&mut self) {
        self.plan_control();
        let interval_s = self.spec.cluster.control.interval_ns as f64 / 1e9;
        let (served, takers) = self.served_since(interval_s);
        let spec = self.spec;
        let operation_ns = spec.cluster.service.operation_ns / f64::from(spec.cluster.parallel());
        let tenants = spec.tenants.iter().zip(&takers);
        let tenants: Vec<TenantSeen> = tenants
            .map(|(tenant, taker)| TenantSeen {
                weight: tenant.promise.weight,
                reserved: tenant.promise.requests_per_s() * operation_ns,
                wants_more: taker.wants_more,
                dominant: taker.used.into_iter().fold(0.0, f64::max),
            })
            .collect();
        let nodes: Vec<placement::Node<R>> = (0..)
            .zip(&self.nodes)
            .map(|(domain, node)| placement::Node {
                capacity: [if node.dead { 0 } else { CAPACITY }; R],
                domain,
            })
            .collect();
        let partitions = &self.controller.partitions;
        let asked = self.groups.iter_mut().zip(partitions);
        let asked: Vec<Asked<R>> = asked
            .map(|(group, partition)| group.asked_since(partition, interval_s))
            .collect();
        let seen = Seen {
            nodes: &nodes,
            tenants: &tenants,
            served: &served,
            partitions: &asked,
        };
        let Controller {
            control,
            partitions,
            ..
        } = &mut self.controller;
        let decided = control.step(&seen, partitions);
        if let Some(planned) = decided.planned {
            self.controller.moves += planned.moves as u64;
            self.regroup();
        }
        self.entitle(&decided);
    }

    /// Rates by tenant and node, and what each tenant took of the whole.
    fn served_since(&mut self, interval_s: f64) -> (Vec<Served>, Vec<Taker>) {
        let now = self.agenda.now();
        let mut takers = vec![Taker::default(); self.spec.tenants.len()];
        let mut served = Vec::new();
        for (number, node) in (0..).zip(&mut self.nodes) {
            let known: Vec<_> = node.tenants.iter().map(|(t, p)| (*t, *p)).collect();
            for (tenant, principal) in known {
                let since = node.since(now, principal);
                served.push(Served {
                    tenant,
                    node: number,
                    rate: since.charged_ns as f64 / interval_s,
                });
                let taker = &mut takers[tenant as usize];
                taker.wants_more |= since.occupied_ns as f64 >= interval_s * 1e9 / 2.0;
                for (used, ns) in taker.used.iter_mut().zip(since.used_ns) {
                    *used += ns / interval_s;
                }
            }
        }
        (served, takers)
    }

    /// Tells nodes what tenants may have there. Rates are of the whole system, and divided like the
    /// shares.
    fn entitle(&mut self, decided: &placement::Decided) {
        let now = self.agenda.now();
        let mut sums = vec![0.0; self.spec.tenants.len()];
        for local in &decided.shares {
            sums[local.tenant as usize] += local.share;
        }
        for local in &decided.shares {
            let promise = &self.spec.tenants[local.tenant as usize].promise;
            let part = local.share / sums[local.tenant as usize].max(f64::MIN_POSITIVE);
            let here = promise.part(local.share * WHOLE, part);
            self.nodes[local.node as usize].entitle(now, local.tenant, &here);
        }
    }
}
