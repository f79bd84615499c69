//! What a dispatch reports about a principal.

use crate::cost::{Charge, Cost, Nanos};
use crate::fairness::sfq::State;

/// Running totals of one principal.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally<const R: usize> {
    pub(super) granted: u64,
    pub(super) refused: u64,
    pub(super) rejected: u64,
    pub(super) waited_ns: u64,
    pub(super) occupied_ns: u64,
    pub(super) occupied_since: Nanos,
    pub(super) busy_ns: u64,
    pub(super) busy_since: Nanos,
    pub(super) consumed: Cost<R>,
    pub(super) charged: Charge,
    pub(super) forgiven: Charge,
}

impl<const R: usize> Tally<R> {
    /// Up to `now` it had so many permits.
    #[inline]
    pub(super) fn held(&mut self, now: Nanos, permits: u32) {
        let passed = now.saturating_sub(self.busy_since);
        self.busy_ns = self.busy_ns.saturating_add(u64::from(permits) * passed);
        self.busy_since = now;
    }
}

/// The state and the totals of one principal at one dispatch. Totals only grow (and saturate) until
/// the principal is removed; take differences for rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation<const R: usize> {
    /// Items in its queue.
    pub queued: usize,
    /// Grants not yet settled.
    pub in_flight: u32,
    /// Grants to serve.
    pub granted: u64,
    /// Grants to refuse, for a limit.
    pub refused: u64,
    /// Items not taken because the queue was full.
    pub rejected: u64,
    /// Time that granted items had waited, summed.
    pub waited_ns: u64,
    /// Time during which an item was queued: divided by an interval, its occupancy.
    pub occupied_ns: u64,
    /// Time for which it held permits, summed over permits: divided by an interval, the permits it
    /// had on average.
    pub busy_ns: u64,
    /// What its turns really used.
    pub consumed: Cost<R>,
    /// What it was charged for that, in nanoseconds of its dominant resource.
    pub charged_ns: Nanos,
    /// Debt beyond the bounds that was let go; what other cores told of a principal that is idle
    /// here, too.
    pub forgiven_ns: Nanos,
    /// How far it is ahead of the others' service, in nanoseconds of its dominant resource.
    pub debt_ns: Nanos,
    /// What is left of its quanta in this round, in nanoseconds of its dominant resource.
    pub quanta_left_ns: Nanos,
    /// What the next turn will set aside, in nanoseconds of its dominant resource.
    pub set_aside_ns: Nanos,
    /// Index of its dominant resource, 0..R.
    pub dominant: usize,
    /// Its place in the round.
    pub state: State,
    /// Whether it is beyond its contract.
    pub best_effort: bool,
}
