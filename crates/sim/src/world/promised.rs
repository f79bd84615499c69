//! What is on its way to a node or there, for who knows all of it: the oracle of Rein 5.3.

use super::World;
use crate::spec::CostKnown;
use policy::multiget::{tag, Opset, Tag};
use std::collections::BTreeMap;

/// Expected time of what was sent to a node and is not yet served, in the order in which exact
/// order serves it.
#[derive(Clone, Debug, Default)]
pub(super) struct Promised {
    by_priority: BTreeMap<u64, u64>,
    sum_ns: u64,
}

/// The priority of what is begun.
const BEGUN: u64 = 0;

impl Promised {
    /// An operation is sent there.
    pub(super) fn add(&mut self, priority: u64, ns: f32) {
        *self.by_priority.entry(priority).or_default() += ns as u64;
        self.sum_ns += ns as u64;
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
            self.sum_ns -= taken;
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

    /// All of it.
    pub(super) fn all_ns(&self) -> u64 {
        self.sum_ns
    }
}

/// Looks at what is ahead before the oracle takes what it has: what is ahead moves an opset's
/// priority, and that what is ahead. Most stand after three.
const LOOKS: usize = 16;

impl World<'_> {
    /// What each opset will find ahead of it in exact order, as a cost, the mean over its replicas;
    /// and its tags.
    ///
    /// The tags say what is ahead, and that makes the tags ("a more accurate prediction of the
    /// slack as well as the bottleneck", Rein 5.3), so both are looked for until they stand.
    pub(super) fn look_ahead(&self, opsets: &mut [Opset], tags: &mut Vec<Tag>) {
        let (now, scheduler) = (self.agenda.now(), &self.spec.scheduler);
        for _ in 0..LOOKS {
            tag(scheduler.strategy, now, opsets, &scheduler.levels, tags);
            let mut stands = true;
            for (opset, tag) in opsets.iter_mut().zip(tags.iter()) {
                let ahead = self.ahead(opset.group, tag.priority);
                stands &= opset.ahead == ahead;
                opset.ahead = ahead;
            }
            if stands {
                return;
            }
        }
        tag(scheduler.strategy, now, opsets, &scheduler.levels, tags);
    }

    /// What exact order serves before an operation of this priority, in the unit of costs: work, as
    /// the opset's own is, whatever number of operations is served at a time.
    fn ahead(&self, group: u32, priority: u64) -> u64 {
        let nodes = &self.groups[group as usize].nodes;
        let waits_ns = nodes.iter().map(|node| {
            let node = &self.nodes[*node as usize];
            node.promised.before(priority) as f64 * node.slowness
        });
        let ahead_ns = waits_ns.sum::<f64>() / nodes.len().max(1) as f64;
        match self.spec.scheduler.cost {
            CostKnown::Expected => ahead_ns as u64,
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
        assert_eq!((promised.before(20), promised.all_ns()), (200, 200));
    }
}
