//! What is on its way to a node or there, for who knows all of it: the oracle of Rein 5.3.

use super::{Drawn, World, NOWHERE};
use crate::spec::CostKnown;
use policy::multiget::{tag, Opset, Tag};
use std::collections::BTreeMap;

/// Expected time of what was sent to a node and is not yet served, in the order in which exact
/// order serves it.
#[derive(Clone, Debug, Default)]
pub(super) struct Promised {
    by_priority: BTreeMap<u64, u64>,
}

/// The priority of what is begun.
const BEGUN: u64 = 0;

impl Promised {
    /// An operation is sent there.
    pub(super) fn add(&mut self, priority: u64, ns: f32) {
        *self.by_priority.entry(priority).or_default() += ns as u64;
    }

    /// It is begun: whatever comes now waits for it.
    pub(super) fn begin(&mut self, priority: u64, ns: f32) {
        self.take(priority, ns);
        self.add(BEGUN, ns);
    }

    /// It is served.
    pub(super) fn end(&mut self, ns: f32) {
        self.take(BEGUN, ns);
    }

    /// One that was sent to a node that died since is not known.
    fn take(&mut self, priority: u64, ns: f32) {
        if let Some(sum) = self.by_priority.get_mut(&priority) {
            let taken = (*sum).min(ns as u64);
            *sum -= taken;
            if *sum == 0 {
                self.by_priority.remove(&priority);
            }
        }
    }

    /// What exact order serves before an operation that is sent there now.
    fn before(&self, priority: u64) -> u64 {
        // Equal ones go in the order in which they came.
        self.by_priority.range(..=priority).map(|(_, ns)| ns).sum()
    }
}

/// Looks at what is ahead before the oracle takes what it has: what is ahead moves an opset's
/// priority, and that what is ahead. Most stand after three.
const LOOKS: usize = 16;

impl World<'_> {
    /// Chooses the replica of each operation, knowing what goes before it there by the tags that
    /// its request has so far.
    pub(super) fn choose_knowing(&mut self, drawn: &mut [Drawn]) {
        let mut rest = drawn.iter_mut();
        for opset in 0..self.scratch.opsets.len() {
            let count = self.scratch.opsets[opset].operations as usize;
            let priority = self.scratch.tags[opset].priority;
            for op in rest.by_ref().take(count) {
                op.place = NOWHERE;
                let nodes = &self.groups[op.group as usize].nodes;
                if nodes.is_empty() {
                    continue;
                }
                let place = match op.put {
                    true => 0,
                    false => self.place_knowing(op.group, priority),
                };
                op.place = place as u32;
                let node = self.groups[op.group as usize].nodes[place];
                let parallel = f64::from(self.spec.cluster.parallel());
                self.scratch.planned_ns[node as usize] += f64::from(op.expected_ns) / parallel;
            }
        }
    }

    /// The replica where the least goes before an operation of this priority, what this request
    /// sends there included.
    pub(super) fn place_knowing(&self, group: u32, priority: u64) -> usize {
        let parallel = f64::from(self.spec.cluster.parallel());
        let waits = self.groups[group as usize].nodes.iter().map(|&node| {
            let before_ns = self.nodes[node as usize].promised.before(priority) as f64;
            before_ns * self.slowed(node) / parallel + self.scratch.planned_ns[node as usize]
        });
        let best = waits.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(0, |(place, _)| place)
    }

    /// What each opset will find ahead of it in exact order, as a cost; and its tags.
    ///
    /// The tags say what is ahead, and that makes the tags ("a more accurate prediction of the
    /// slack as well as the bottleneck", Rein 5.3), so both are looked for until they stand.
    pub(super) fn look_ahead(&self, drawn: &[Drawn], opsets: &mut [Opset], tags: &mut Vec<Tag>) {
        let (now, scheduler) = (self.agenda.now(), &self.spec.scheduler);
        for _ in 0..LOOKS {
            tag(scheduler.strategy, now, opsets, &scheduler.levels, tags);
            let mut stands = true;
            let mut rest = drawn;
            for (opset, tag) in opsets.iter_mut().zip(tags.iter()) {
                let (own, others) = rest.split_at(opset.operations as usize);
                rest = others;
                let ahead = self.ahead(own, tag.priority);
                stands &= opset.ahead == ahead;
                opset.ahead = ahead;
            }
            if stands {
                return;
            }
        }
        tag(scheduler.strategy, now, opsets, &scheduler.levels, tags);
    }

    /// What exact order serves before an opset of this priority, in the unit of costs: work, as the
    /// opset's own is, whatever number of operations is served at a time. The mean over the nodes
    /// of its operations, or over all replicas as long as none is chosen.
    fn ahead(&self, drawn: &[Drawn], priority: u64) -> u64 {
        let before_ns = |node: u32| {
            let promised = &self.nodes[node as usize].promised;
            promised.before(priority) as f64 * self.slowed(node)
        };
        let (mut sum_ns, mut count) = (0.0, 0);
        for op in drawn {
            let nodes = &self.groups[op.group as usize].nodes;
            match nodes.get(op.place as usize) {
                Some(&node) => {
                    sum_ns += before_ns(node);
                    count += 1;
                }
                // All of an opset's operations have the same replicas.
                None => {
                    sum_ns = nodes.iter().map(|&node| before_ns(node)).sum();
                    count = nodes.len();
                    break;
                }
            }
        }
        let ahead_ns = sum_ns / count.max(1) as f64;
        match self.spec.scheduler.cost {
            CostKnown::Mean | CostKnown::Learnt | CostKnown::Expected => ahead_ns as u64,
            CostKnown::Operations => {
                (ahead_ns / self.spec.cluster.service.operation_ns.max(1.0)) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_goes_before_is_ahead() {
        let mut promised = Promised::default();
        for (priority, ns) in [(10, 100.0), (20, 50.0), (20, 50.0), (30, 400.0)] {
            promised.add(priority, ns);
        }
        assert_eq!(
            [5, 10, 25, 99].map(|priority| promised.before(priority)),
            [0, 100, 200, 600]
        );
        promised.begin(30, 400.0);
        assert_eq!(
            [5, 10].map(|priority| promised.before(priority)),
            [400, 500]
        );
        promised.end(400.0);
        promised.take(11, 100.0);
        assert_eq!(promised.before(u64::MAX), 200);
    }
}
