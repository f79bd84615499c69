//! Requests that need a handler after their turn.

use super::World;
use policy::dispatch::Next;
use policy::{Cost, Nanos, PrincipalId};
use std::cmp::Reverse;

impl World<'_> {
    /// Handlers of a core that have done by now give their permits back, and their requests are
    /// answered.
    pub(super) fn handled(&mut self, number: usize) {
        loop {
            let core = &mut self.cores[number];
            let Some(Reverse((at, connection))) = core.ends.peek().copied() else {
                return;
            };
            if at > core.now {
                return;
            }
            core.ends.pop();
            let of = &mut self.connections[connection];
            if let Some(ticket) = of.handling.take() {
                let took_ns = self.node.tenants[of.tenant].disk_ns;
                core.handlers.settle(core.now, ticket, Cost([took_ns]));
                self.served.read[of.tenant] += 1;
            }
            self.answered(connection, number);
        }
    }

    /// Has handlers begin what a core's permits allow.
    pub(super) fn release(&mut self, number: usize) {
        let core = &mut self.cores[number];
        if self.node.lend {
            // Who is to be woken looks for itself, within a round.
            let held = self.lend.ask(core.now, number, core.handlers.need());
            core.handlers.hold(held.permits);
        }
        while let Next::Grant(grant) = core.handlers.next(core.now) {
            let of = &mut self.connections[grant.item];
            let ends_at: Nanos = core.now + self.node.tenants[of.tenant].disk_ns;
            of.handling = Some(grant.ticket);
            core.ends.push(Reverse((ends_at, grant.item)));
        }
    }

    /// Permits of all cores that are in use, and what a tenant has of them.
    #[must_use]
    pub fn outstanding(&self, tenant: usize) -> (u32, u32) {
        let id = PrincipalId(tenant as u32);
        let cores = self.cores.iter();
        let each = cores.map(|core| {
            let of = core.handlers.observe(core.now, id);
            (
                core.handlers.in_flight(),
                of.map_or(0, |seen| seen.in_flight),
            )
        });
        each.fold((0, 0), |(all, own), (more, of)| (all + more, own + of))
    }
}
