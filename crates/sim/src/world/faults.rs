//! What goes wrong at a node, and how senders go on.

use super::lanes::{Lane, Waiting};
use super::{Copied, Event, Op, World};
use crate::spec::FaultKind;
use std::collections::BTreeSet;

impl World<'_> {
    /// A fault begins or ends.
    pub(super) fn fault(&mut self, fault: usize, begins: bool) {
        let now = self.agenda.now();
        let fault = self.spec.faults[fault];
        let node = &mut self.nodes[fault.node as usize];
        match fault.kind {
            FaultKind::Slow(factor) => node.slowness = if begins { factor } else { 1.0 },
            FaultKind::SlowDisks(factor) => {
                let disks = node.disk.iter_mut();
                disks.for_each(|disk| disk.slow(now, if begins { factor } else { 1.0 }));
                return self.work_device(fault.node);
            }
            FaultKind::Pause => node.paused = begins,
            FaultKind::Dead if begins => {
                let mut lost = node.die(now, self.spec);
                for first in std::mem::take(&mut node.inbox) {
                    lost.extend(self.chain(first));
                }
                match self.spec.cluster.friction.notice_ns {
                    0 => self.noticed(fault.node),
                    ns => self.agenda.after(ns, Event::Noticed { node: fault.node }),
                }
                self.break_off(lost);
            }
            FaultKind::Dead => {
                (node.dead, node.given_up) = (false, false);
                self.place_all();
            }
        }
        if !begins {
            self.serve(fault.node);
        }
    }

    /// All know that a node is dead, if it still is: its partitions are asked for elsewhere.
    pub(super) fn noticed(&mut self, node: u32) {
        let at = &mut self.nodes[node as usize];
        if at.dead {
            at.given_up = true;
            self.place_all();
        }
    }

    /// Operations were lost with their node: their senders see the connection break, or give each
    /// up when it has taken too long.
    pub(super) fn break_off(&mut self, lost: Vec<Copied>) {
        let now = self.agenda.now();
        for copy in lost {
            let given_up_at = match self.spec.cluster.friction.notice_ns {
                0 => now + self.spec.cluster.one_way_ns,
                ns => self.ops[copy.op()].sent_at[copy.copy()] + ns,
            };
            let delay_ns = given_up_at.saturating_sub(now);
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
            known_ns,
            put,
            tag,
            ..
        } = self.ops[op];
        match self.choose(router, group, known_ns, put, tag.puts_off()) {
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

    /// Partitions of these tenants are elsewhere, or at nodes that are lost or back: what waits
    /// looks again where it can go.
    pub(super) fn wait_anew(&mut self, tenants: &BTreeSet<u32>) {
        let mut waiting = std::mem::take(&mut self.stranded);
        for router in &mut self.routers {
            for tenant in tenants {
                let lane = router.lanes.get_mut(tenant);
                waiting.extend(lane.into_iter().flat_map(Lane::drain));
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
