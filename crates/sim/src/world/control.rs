//! Where partitions are, and the controller that places them and weighs tenants (Pisces algorithms
//! 1 and 2).

use super::account::{Account, R};
use super::portions::Portions;
use super::{Event, Group, World};
use crate::spec::{Spec, Weighs};
use policy::generator::mix64;
use policy::placement::{
    self, Asked, Control, ControlOptions, Decided, Partition, PlacerOptions, Price, Seen, Served,
    TenantSeen,
};
use policy::{portion, Promise};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a node can serve of each resource: nanoseconds of its time a second.
const CAPACITY: u64 = 1_000_000_000;
/// A local share of a whole node as a weight: weights go from 0.001 to 1,000, shares then from a
/// millionth.
const WHOLE: f64 = 1_000.0;

/// The controller, and what it moves.
#[derive(Debug)]
pub(super) struct Controller {
    control: Control<R>,
    /// Where nodes divide weights among themselves.
    portions: Option<Portions>,
    /// Like the groups.
    pub(super) partitions: Vec<Partition<R>>,
    /// By tenant: its nodes, in the order in which it came to them.
    homes: Vec<BTreeMap<u32, u32>>,
    /// Whether it has places and weights to give.
    works: bool,
    /// What nodes have told since it decided last: by tenant and node.
    reports: Vec<(u32, u32, Account)>,
    /// What is on its way to nodes.
    decided: VecDeque<Decided>,
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
            let ring: Vec<u32> = ring.collect();
            groups.push(Group::new(number as u32, ring.clone()));
            partitions.push(Partition::new([0; R], replicas as usize, ring));
        }
    }
    let wanted = &spec.cluster.control;
    let priced = wanted.horizon_ns.zip(spec.cluster.friction.copy);
    let priced = priced.map(|(horizon_ns, copy)| {
        PlacerOptions::priced(Price {
            bytes_per_s: copy.bytes_per_s,
            load: copy.load,
            least_s: 0.0,
            horizon_s: horizon_ns as f64 / 1e9,
        })
    });
    let options = ControlOptions {
        placer: priced.unwrap_or_default(),
        places: wanted.places,
        weighs: wanted.weighs == Weighs::Exchanged,
        ..ControlOptions::default()
    };
    let controller = Controller {
        control: Control::new(options),
        portions: (wanted.weighs == Weighs::Served).then(Portions::default),
        partitions,
        homes: vec![BTreeMap::new(); spec.tenants.len()],
        works: wanted.places || wanted.weighs != Weighs::Fixed,
        reports: Vec::new(),
        decided: VecDeque::new(),
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
    /// Partitions go where they are wanted, and are asked where they are.
    pub(super) fn place_all(&mut self) {
        self.copy_partitions();
        self.regroup(0..self.groups.len());
    }

    /// These partitions are asked at those of their nodes that live, as far as senders know. A node
    /// knows only the tenants that have something there.
    pub(super) fn regroup(&mut self, groups: impl IntoIterator<Item = usize>) {
        let changed: BTreeSet<u32> = groups
            .into_iter()
            .filter_map(|group| self.regroup_one(group))
            .collect();
        for router in &mut self.routers {
            for tenant in &changed {
                if let Some(lane) = router.lanes.get_mut(tenant) {
                    lane.grow(self.controller.homes[*tenant as usize].len() as u32);
                }
            }
        }
        self.wait_anew(&changed);
    }

    /// The tenant of a partition that is asked elsewhere from now on.
    fn regroup_one(&mut self, number: usize) -> Option<u32> {
        let now = self.agenda.now();
        let wanted = &self.controller.partitions[number].nodes;
        let lives = |node: u32| !self.nodes[node as usize].given_up;
        let group = &mut self.groups[number];
        let nodes = group.served_by(wanted, lives);
        if nodes == group.nodes {
            return None;
        }
        group.nodes = nodes;
        let promise = &self.spec.tenants[group.tenant as usize].promise;
        let homes = &mut self.controller.homes[group.tenant as usize];
        group.served_ns = vec![0.0; group.nodes.len()];
        group.principals.clear();
        group.homes.clear();
        for &node in &group.nodes {
            let at = &mut self.nodes[node as usize];
            group.principals.push(at.enroll(now, group.tenant, promise));
            let next = homes.len() as u32;
            group.homes.push(*homes.entry(node).or_insert(next));
        }
        Some(group.tenant)
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

    /// A control step begins: nodes report, each at a moment of its own, and then the controller
    /// decides.
    pub(super) fn control(&mut self) {
        self.plan_control();
        let late_ns = self.spec.cluster.friction.late_ns;
        for node in 0..self.nodes.len() as u32 {
            if late_ns == 0 {
                self.report(node);
            } else {
                let moment = mix64(self.spec.seed ^ u64::from(node)) % late_ns;
                self.agenda.after(moment, Event::Report { node });
            }
        }
        match late_ns {
            0 => self.decide(),
            late_ns => self.agenda.after(late_ns, Event::Decide),
        }
    }

    /// A node tells the controller what it counted since its last report.
    pub(super) fn report(&mut self, node: u32) {
        let now = self.agenda.now();
        let at = &mut self.nodes[node as usize];
        let known: Vec<_> = at.tenants.iter().map(|(t, p)| (*t, *p)).collect();
        let accounts = known
            .into_iter()
            .map(|(tenant, principal)| (tenant, node, at.since(now, principal)));
        self.controller.reports.extend(accounts);
    }

    /// What was reported, and what follows from it.
    pub(super) fn decide(&mut self) {
        let interval_s = self.spec.cluster.control.interval_ns as f64 / 1e9;
        let by_served = self.weigh_by_served(interval_s);
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
                capacity: [if node.given_up { 0 } else { CAPACITY }; R],
                domain,
            })
            .collect();
        let (bytes, busy) = self.weight_of_moves();
        let partitions = &self.controller.partitions;
        let asked = self.groups.iter_mut().zip(partitions);
        let asked: Vec<Asked<R>> = asked
            .map(|(group, partition)| group.asked_since(partition, interval_s))
            .collect();
        let seen = Seen {
            now: self.agenda.now(),
            bytes: &bytes,
            busy: &busy,
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
        let mut decided = control.step(&seen, partitions);
        decided.shares.extend(by_served);
        self.controller.decided.push_back(decided);
        match self.spec.cluster.friction.late_ns {
            0 => self.decided(),
            late_ns => self.agenda.after(late_ns, Event::Decided),
        }
    }

    /// The bytes of each partition, and which nodes copy one.
    fn weight_of_moves(&self) -> (Vec<u64>, Vec<bool>) {
        let now = self.agenda.now();
        let of = |group: &Group| self.partition_bytes[group.tenant as usize] as u64;
        let bytes = self.groups.iter().map(of);
        let busy = self.nodes.iter().map(|node| now < node.copying_until);
        (bytes.collect(), busy.collect())
    }

    /// What tenants may have where, if nodes divide their weights among themselves.
    fn weigh_by_served(&mut self, interval_s: f64) -> Vec<placement::Local> {
        let tenants = self.spec.tenants.iter();
        let weights: Vec<f64> = tenants.map(|tenant| tenant.promise.weight).collect();
        let Controller {
            portions, reports, ..
        } = &mut self.controller;
        portions.as_mut().map_or(Vec::new(), |portions| {
            portions.step(reports, interval_s, self.nodes.len(), &weights)
        })
    }

    /// What was decided is done.
    pub(super) fn decided(&mut self) {
        let Some(decided) = self.controller.decided.pop_front() else {
            return;
        };
        self.controller.moves += decided.planned.map_or(0, |planned| planned.moves as u64);
        // Also what had no node to be copied from before.
        self.place_all();
        self.entitle(&decided.shares);
    }

    /// Rates by tenant and node, and what each tenant took of the whole.
    fn served_since(&mut self, interval_s: f64) -> (Vec<Served>, Vec<Taker>) {
        let mut takers = vec![Taker::default(); self.spec.tenants.len()];
        let mut served = Vec::new();
        for (tenant, node, since) in self.controller.reports.drain(..) {
            served.push(Served {
                tenant,
                node,
                rate: since.charged_ns as f64 / interval_s,
            });
            let taker = &mut takers[tenant as usize];
            taker.wants_more |= since.occupied_ns as f64 >= interval_s * 1e9 / 2.0;
            for (used, ns) in taker.used.iter_mut().zip(since.used_ns) {
                *used += ns / interval_s;
            }
        }
        (served, takers)
    }

    /// Tells nodes what tenants may have there. Rates are of the whole system, and divided like the
    /// shares.
    fn entitle(&mut self, shares: &[placement::Local]) {
        let now = self.agenda.now();
        let mut sums = vec![0.0; self.spec.tenants.len()];
        for local in shares {
            sums[local.tenant as usize] += local.share;
        }
        for local in shares {
            let promise = &self.spec.tenants[local.tenant as usize].promise;
            let part = local.share / sums[local.tenant as usize].max(f64::MIN_POSITIVE);
            let here = Promise {
                weight: local.share * WHOLE,
                ..promise.portions(&portion::Portions {
                    limit: part,
                    promised: part,
                    ..portion::Portions::default()
                })
            };
            self.nodes[local.node as usize].entitle(now, local.tenant, &here);
        }
    }
}
