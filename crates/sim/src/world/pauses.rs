//! What machines do besides: pauses of nodes and senders, and the processor on which a sender reads
//! replies.

use super::{Copied, Event, World};
use crate::spec::Machines;
use policy::Nanos;

impl World<'_> {
    /// The first pause of every machine.
    pub(super) fn plan_pauses(&mut self) {
        let spec = self.spec;
        for (number, pause) in (0..).zip(&spec.pauses) {
            let machines = match pause.of {
                Machines::Nodes => self.nodes.len(),
                Machines::Senders => self.routers.len(),
            };
            for machine in 0..machines as u32 {
                self.plan_pause(number, machine);
            }
        }
    }

    fn plan_pause(&mut self, pause: u32, machine: u32) {
        let every_ns = self.spec.pauses[pause as usize].every_ns;
        let delay_ns = (self.pauses.exponential() * every_ns) as u64;
        self.agenda.after(delay_ns, Event::Pause { pause, machine });
    }

    /// A machine pauses; one that does so already stands still for longer. What it has begun it
    /// ends.
    pub(super) fn pause(&mut self, pause: usize, machine: u32) {
        self.plan_pause(pause as u32, machine);
        let pause = self.spec.pauses[pause];
        match pause.of {
            Machines::Nodes => self.rest_node(machine, pause.length_ns),
            Machines::Senders => self.rest_sender(machine, pause.length_ns),
        }
    }

    /// A node does nothing for this long, after what keeps it already.
    fn rest_node(&mut self, node: u32, ns: Nanos) {
        let now = self.agenda.now();
        let until = &mut self.nodes[node as usize].paused_until;
        *until = now.max(*until) + ns;
        let delay_ns = *until - now;
        self.agenda.after(delay_ns, Event::Ask { node });
    }

    /// The same for a sender: it reads nothing.
    fn rest_sender(&mut self, router: u32, ns: Nanos) {
        let now = self.agenda.now();
        let until = &mut self.routers[router as usize].paused_until;
        *until = now.max(*until) + ns;
    }

    /// A reply reaches its sender, which reads one after the other.
    pub(super) fn queue_reply(&mut self, copy: Copied) {
        let router = self.ops[copy.op()].router;
        let unread = &mut self.routers[router as usize].unread;
        unread.push_back(copy);
        if unread.len() == 1 {
            self.plan_read(router);
        }
    }

    fn plan_read(&mut self, router: u32) {
        let now = self.agenda.now();
        let waits_ns = (self.routers[router as usize].paused_until).saturating_sub(now);
        let delay_ns = waits_ns + self.spec.cluster.reply_ns;
        self.agenda.after(delay_ns, Event::Read { router });
    }

    /// A sender has read the reply that came first, and acts on it.
    pub(super) fn read(&mut self, router: usize) {
        let unread = &mut self.routers[router].unread;
        let Some(copy) = unread.pop_front() else {
            return;
        };
        if !unread.is_empty() {
            self.plan_read(router as u32);
        }
        self.reply(copy);
    }
}
