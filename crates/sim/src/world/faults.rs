//! What goes wrong at a node, and how senders go on.

use super::lanes::Waiting;
use super::{Copied, Event, Op, World};
use crate::spec::FaultKind;

impl World<'_> {
    /// A fault begins or ends.
    pub(super) fn fault(&mut self, fault: usize, begins: bool) {
        let now = self.agenda.now();
        let fault = self.spec.faults[fault];
        let node = &mut self.nodes[fault.node as usize];
        match fault.kind {
            FaultKind::Slow(factor) => node.slowness = if begins { factor } else { 1.0 },
            FaultKind::Pause => node.paused = begins,
            FaultKind::Dead if begins => {
                let mut lost = node.die(now, self.spec);
                for first in std::mem::take(&mut node.inbox) {
                    lost.extend(self.chain(first));
                }
                self.regroup();
                self.break_off(lost);
            }
            FaultKind::Dead => {
                node.dead = false;
                self.regroup();
            }
        }
        if !begins {
            self.serve(fault.node);
        }
    }

    /// Operations were lost with their node: their senders see the connection break.
    pub(super) fn break_off(&mut self, lost: Vec<Copied>) {
        for copy in lost {
            let delay_ns = self.spec.cluster.one_way_ns;
            self.agenda.after(delay_ns, Event::Lost { copy });
        }
    }

    /// A sender sees that an operation was lost, and sends it to another replica.
    pub(super) fn lost(&mut self, copied: Copied) {
        let op = &mut self.ops[copied.op()];
        let (copy, router) = (copied.copy(), op.router);
        op.away -= 1;
        let (node, home) = (op.nodes[copy], op.homes[copy]);
        let (again, gone) = (!op.answered && op.away == 0, op.away == 0);
        let tenant = self.groups[op.group as usize].tenant;
        let router = &mut self.routers[router as usize];
        router.selector.lost(node);
        if let Some(lane) = router.lanes.get_mut(&tenant) {
            lane.windows.lost(home);
        }
        if again {
            self.send_anew(copied.op());
            self.post();
        } else if gone {
            self.ops.remove(copied.op());
        }
    }

    /// Sends an operation of which no copy is on its way.
    fn send_anew(&mut self, op: usize) {
        let Op {
            router,
            group,
            expected_ns,
            put,
            ..
        } = self.ops[op];
        match self.choose(router, group, expected_ns, put) {
            Some(place) => self.transmit(op, 0, place),
            None => self.wait(op),
        }
    }

    /// An operation waits with its sender: for a window, or for a replica of its partition to come
    /// back.
    pub(super) fn wait(&mut self, op: usize) {
        let Op {
            router,
            group,
            born,
            put,
            ..
        } = self.ops[op];
        let group = &self.groups[group as usize];
        let op = op as u32;
        if group.nodes.is_empty() {
            self.stranded.push(Waiting { op, born });
        } else if let Some(lane) = self.routers[router as usize].lanes.get_mut(&group.tenant) {
            lane.wait(group, put, Waiting { op, born });
        }
    }

    /// Partitions are elsewhere, or nodes are lost or back: what waits looks again where it can go.
    pub(super) fn wait_anew(&mut self) {
        let mut waiting = std::mem::take(&mut self.stranded);
        for router in &mut self.routers {
            for lane in router.lanes.values_mut() {
                waiting.extend(lane.drain());
            }
        }
        // In order of sending; one with two replicas waited in two places.
        waiting.sort_unstable_by_key(|one| one.born);
        waiting.dedup_by_key(|one| one.born);
        for one in waiting {
            if one.of(&self.ops).is_some() {
                self.send_anew(one.op as usize);
            }
        }
        self.post();
    }
}
