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
            let (node, known_ns, put_off) = (group.nodes[place], op.known_ns, op.tag.puts_off());
            self.count_on(router, node, known_ns, put_off);
            self.transmit(waiting.op as usize, 0, place);
            sent = true;
        }
        if sent {
            self.post();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Plan;
    use crate::World;

    /// One sender and two nodes that both have everything.
    const TWO: &str = "
duration = \"2s\"
warm_up = \"1s\"
[cluster]
nodes = 2
replicas = 2
senders = 1
operation = \"1ms\"
";
    const LOAD: &str = "
[[tenant]]
name = \"a\"
[[tenant.load]]
loop = \"closed\"
mix = { get = 1 }
";

    #[test]
    fn a_sender_counts_what_it_sends_when_a_window_opens() {
        let text = format!("{TWO}replica = \"windows\"\n{LOAD}connections = 200\n");
        let plan = Plan::from_text(&text, "windows").expect("good");
        let mut world = World::new(&plan.spec);
        let mut waited = false;
        while world.step() {
            let mut away = [0; 2];
            for (_, op) in &world.ops {
                waited |= op.away == 0;
                away[op.nodes[0] as usize] += u32::from(op.away > 0);
            }
            let selector = &world.routers[0].selector;
            assert_eq!([0, 1].map(|node| selector.outstanding(node)), away);
        }
        assert!(waited, "no window was ever full");
    }

    #[test]
    fn a_second_copy_counts_where_it_goes() {
        let text = format!("{TWO}again = \"at-once\"\n{LOAD}connections = 1\n");
        let plan = Plan::from_text(&text, "copies").expect("good");
        let mut world = World::new(&plan.spec);
        let mut both = false;
        while world.step() {
            // Nothing of an earlier request is still on its way.
            let first = world.ops.iter().next();
            if world.ops.len() == 1 && first.is_some_and(|(_, op)| op.away == 2) {
                both = true;
                let selector = &world.routers[0].selector;
                assert_eq!([0, 1].map(|node| selector.outstanding(node)), [1, 1]);
            }
        }
        assert!(both);
    }
}
