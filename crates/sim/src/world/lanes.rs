//! Windows of senders, and what waits for them to open (Pisces algorithm 3).

use super::{Group, Op, World};
use crate::spec::Cluster;
use policy::replica::{WindowOptions, Windows};
use slab::Slab;
use std::collections::VecDeque;

/// What a sender has for one tenant.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) windows: Windows,
    /// By home of the tenant, as far as something ever waited: the operations that could go there.
    /// One that has two replicas waits in two of them.
    waiting: Vec<VecDeque<Waiting>>,
}

/// An operation that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) op: u32,
    pub(super) born: u32,
}

impl Waiting {
    /// The operation, if it still waits.
    pub(super) fn of(self, ops: &Slab<Op>) -> Option<&Op> {
        let op = ops.get(self.op as usize)?;
        (op.born == self.born && op.away == 0 && !op.answered).then_some(op)
    }
}

impl Lane {
    pub(super) fn new(cluster: &Cluster, homes: u32) -> Self {
        let service_ns = cluster.service.operation_ns as u64;
        let options = WindowOptions {
            base_ns: (2 * cluster.one_way_ns + service_ns).max(1),
            ..WindowOptions::default()
        };
        Lane {
            windows: Windows::new(options, homes),
            waiting: Vec::new(),
        }
    }

    /// The tenant has so many homes.
    pub(super) fn grow(&mut self, homes: u32) {
        self.windows.grow(homes);
    }

    pub(super) fn wait(&mut self, group: &Group, put: bool, waiting: Waiting) {
        let homes = if put { &group.homes[..1] } else { &group.homes };
        for &home in homes {
            if self.waiting.len() <= home as usize {
                self.waiting.resize_with(home as usize + 1, VecDeque::new);
            }
            self.waiting[home as usize].push_back(waiting);
        }
    }

    fn pop(&mut self, home: u32) -> Option<Waiting> {
        self.waiting.get_mut(home as usize)?.pop_front()
    }

    /// All that waits.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Waiting> + '_ {
        self.waiting.iter_mut().flat_map(|queue| queue.drain(..))
    }
}

impl World<'_> {
    /// Sends what waits for a window that may have opened.
    pub(super) fn release(&mut self, router: u32, tenant: u32, home: u32) {
        let mut sent = false;
        loop {
            let lanes = &mut self.routers[router as usize].lanes;
            let Some(lane) = lanes.get_mut(&tenant) else {
                return;
            };
            if !lane.windows.has_room(home) {
                break;
            }
            let Some(waiting) = lane.pop(home) else {
                break;
            };
            let Some(op) = waiting.of(&self.ops) else {
                continue;
            };
            let (group, put) = (&self.groups[op.group as usize], op.put);
            let Some(place) = group.homes.iter().position(|other| *other == home) else {
                continue;
            };
            if put && place > 0 {
                continue;
            }
            lane.windows.sent(home);
            self.transmit(waiting.op as usize, 0, place);
            sent = true;
        }
        if sent {
            self.post();
        }
    }
}
