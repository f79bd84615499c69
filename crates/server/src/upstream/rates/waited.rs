//! For how long something of a tenant has waited lately.

use std::collections::VecDeque;

use policy::Nanos;

/// Cores say once a second for how long something of a tenant has waited.
const WAITED_OVER_NS: Nanos = 1_100_000_000;

/// For how long something had waited, and by when, the oldest first.
#[derive(Default)]
pub(super) struct Waited(VecDeque<(Nanos, Nanos)>);

impl Waited {
    /// The part of the last time for which something waited, where that was `waited_ns` since the
    /// start.
    pub(super) fn part(&mut self, waited_ns: Nanos, now: Nanos) -> f64 {
        self.0.push_back((now, waited_ns));
        let long_ago = |at: Nanos| now.saturating_sub(at) >= WAITED_OVER_NS;
        while self.0.get(1).is_some_and(|(at, _)| long_ago(*at)) {
            self.0.pop_front();
        }
        let (at, before) = self.0[0];
        match now.saturating_sub(at) {
            0 => 0.0,
            passed => waited_ns.saturating_sub(before) as f64 / passed as f64,
        }
    }
}
