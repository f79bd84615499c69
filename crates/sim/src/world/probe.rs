//! Requests that are large enough to ask before they are sent.

use super::{Event, Held, World};
use policy::multiget::{bottleneck, split};
use policy::Nanos;

impl World<'_> {
    /// Whether the request that was drawn is to be held back.
    pub(super) fn asks_first(&mut self) -> bool {
        let Some(from) = self.spec.routing.probe_from else {
            return false;
        };
        let mut opsets = std::mem::take(&mut self.scratch.opsets);
        let drawn = self.scratch.drawn.iter();
        let costs = drawn.map(|op| (op.group, self.cost_of(op.known_ns)));
        split(costs, &mut opsets);
        let asks = bottleneck(&opsets).is_some_and(|place| opsets[place].cost >= from);
        self.scratch.opsets = opsets;
        asks
    }

    /// Holds it back until the servers have answered.
    pub(super) fn hold(&mut self, stream: u32, router: u32) {
        let held = self.held.insert(Held {
            stream,
            router,
            sent_at: self.agenda.now(),
            drawn: std::mem::take(&mut self.scratch.drawn),
            answers: Vec::new(),
        }) as u32;
        let way_ns = self.way_ns();
        self.agenda.after(way_ns, Event::Probe { held });
    }

    /// The probes reach their servers. They answer when they have looked, and the request is sent
    /// when the last answer is there.
    pub(super) fn probe(&mut self, held: usize) {
        let request = &self.held[held];
        let groups = request.drawn.iter().map(|op| op.group as usize);
        let mut nodes: Vec<u32> = groups
            .flat_map(|group| &self.groups[group].nodes)
            .copied()
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        let (now, probe_ns) = (self.agenda.now(), self.spec.cluster.friction.probe_ns);
        let mut answers = std::mem::take(&mut self.held[held].answers);
        let mut last_ns = 0;
        for node in nodes {
            let way_ns = self.way_ns();
            let at = &mut self.nodes[node as usize];
            if at.dead {
                // It answers nobody, and looks as it did.
                continue;
            }
            at.probed_ns += probe_ns;
            let looks_ns = match at.is_busy() {
                true => at.look_at.saturating_sub(now),
                false => 0,
            };
            answers.push((node, at.feedback(0)));
            last_ns = Nanos::max(last_ns, looks_ns + probe_ns + way_ns);
        }
        self.held[held].answers = answers;
        let held = held as u32;
        self.agenda.after(last_ns, Event::Probed { held });
    }

    /// The answers are there.
    pub(super) fn probed(&mut self, held: usize) {
        let now = self.agenda.now();
        let request = self.held.remove(held);
        let selector = &mut self.routers[request.router as usize].selector;
        for (node, feedback) in request.answers {
            selector.told(now, node, feedback);
        }
        self.scratch.drawn = request.drawn;
        self.dispatch(request.stream, request.router, request.sent_at);
    }
}
