//! Replies come back, and requests are done.

use super::{Copied, Event, World};
use crate::outcome::record;
use crate::spec::{Arrivals, Redundancy};
use policy::Nanos;

/// Replies between two looks at the quantile after which an operation is sent again.
const LOOK_EVERY: u64 = 4_096;

impl World<'_> {
    /// A reply reaches its sender.
    pub(super) fn reply(&mut self, copied: Copied) {
        let now = self.agenda.now();
        let op = &mut self.ops[copied.op()];
        let (copy, request) = (copied.copy(), op.request as usize);
        let (node, response_ns) = (op.nodes[copy], now - op.sent_at[copy]);
        op.away -= 1;
        let refused = op.refused[copy];
        // One copy that is refused is no answer while the other may be served.
        let first = !op.answered && (!refused || op.away == 0);
        op.answered |= first;
        let (told, gone, since_ns) = (op.told[copy], op.away == 0, now - op.sent_at[0]);
        let (number, home) = (op.router, op.homes[copy]);
        let (bytes, put, key) = (op.bytes, op.put, op.key);
        let tenant = self.groups[op.group as usize].tenant;
        let router = &mut self.routers[number as usize];
        router.selector.replied(now, node, response_ns, told);
        if let Some(costs) = router.costs.as_mut().filter(|_| !refused && !put) {
            costs.observe(key, bytes, told.service_ns);
        }
        let windows = router.lanes.get_mut(&tenant).map(|lane| &mut lane.windows);
        let opens = windows.map(|windows| windows.replied(home, response_ns));
        if first {
            self.note_response(since_ns);
            if !refused && self.measured_ns().is_some() {
                self.outcome[tenant as usize].moved(bytes, put);
            }
        }
        if gone {
            self.ops.remove(copied.op());
        }
        if first {
            self.requests[request].refused |= refused;
            self.requests[request].left -= 1;
            if self.requests[request].left == 0 {
                self.complete(request);
            }
        }
        if opens.is_some() {
            self.release(number, tenant, home);
        }
    }

    fn note_response(&mut self, response_ns: Nanos) {
        let Redundancy::Speculative { quantile } = self.spec.routing.redundancy else {
            return;
        };
        record(&mut self.responses, response_ns);
        if self.responses.len() % LOOK_EVERY == 0 {
            self.again_after_ns = self.responses.value_at_quantile(quantile);
        }
    }

    fn complete(&mut self, request: usize) {
        let now = self.agenda.now();
        let done = self.requests.remove(request);
        let at_ns = self.measured_ns();
        let source = &self.sources[done.stream as usize];
        let outcome = &mut self.outcome[source.tenant as usize];
        outcome.ended(at_ns, done.operations);
        let due = done.sent_at >= self.spec.warm_up_ns;
        self.awaited -= u64::from(due);
        let latency_ns = now - done.sent_at;
        let tenant = source.tenant;
        match at_ns {
            _ if done.refused && due => outcome.refused(at_ns),
            _ if done.refused => {}
            Some(at_ns) => outcome.answered(at_ns, latency_ns, due.then_some(done.operations)),
            None if due => outcome.answered_late(latency_ns),
            None => {}
        }
        let spec = &self.spec.tenants[tenant as usize];
        let stream = &spec.streams[source.stream as usize];
        let warm_up_ns = self.spec.warm_up_ns;
        self.quotas.ended(tenant, stream.quota, now, warm_up_ns);
        if !done.refused {
            self.note_answer(tenant, latency_ns, &done);
        }
        if let Arrivals::Closed { .. } = stream.arrivals {
            let (stream, router) = (done.stream, done.router);
            self.agenda.after(0, Event::Arrival { stream, router });
        }
    }
}
