//! What a dispatch reports about a principal.

use super::slot::Tier;
use super::Dispatch;
use crate::cost::{Charge, Cost, Nanos, PrincipalId};
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
    /// An item was granted, or refused, after this long; `empty`: it was the last one queued.
    #[inline]
    pub(super) fn granted(&mut self, now: Nanos, waited_ns: Nanos, refused: bool, empty: bool) {
        match refused {
            true => self.refused += 1,
            false => self.granted += 1,
        }
        self.waited_ns = self.waited_ns.saturating_add(waited_ns);
        if empty {
            let occupied = now.saturating_sub(self.occupied_since);
            self.occupied_ns = self.occupied_ns.saturating_add(occupied);
        }
    }

    /// Up to `now` it had this many permits.
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

impl<T, const R: usize> Dispatch<T, R> {
    /// The state and totals of a principal at `now`; `None` if it is unknown.
    #[must_use]
    pub fn observe(&self, now: Nanos, principal: PrincipalId) -> Option<Observation<R>> {
        let slot = self.slots.get(principal.index()).filter(|s| s.configured)?;
        let rounds = &self.rounds[slot.tier as usize];
        let tally: &Tally<R> = &slot.tally;
        let in_flight = slot.permits();
        let held = u64::from(in_flight) * now.saturating_sub(tally.busy_since);
        let busy = !slot.is_empty() || in_flight > 0;
        let occupying = if slot.is_empty() {
            0
        } else {
            now.saturating_sub(tally.occupied_since)
        };
        Some(Observation {
            queued: slot.queued,
            in_flight,
            granted: tally.granted,
            refused: tally.refused,
            rejected: tally.rejected,
            waited_ns: tally.waited_ns,
            occupied_ns: tally.occupied_ns.saturating_add(occupying),
            busy_ns: tally.busy_ns.saturating_add(held),
            consumed: tally.consumed,
            charged_ns: tally.charged.ns(),
            forgiven_ns: tally.forgiven.ns(),
            debt_ns: slot.account.debt(rounds).ns(),
            quanta_left_ns: slot.account.quanta_left(rounds).ns(),
            set_aside_ns: slot.account.estimate().ns(),
            dominant: slot.profile.dominant(),
            state: slot.account.state(busy, rounds),
            best_effort: slot.tier == Tier::BestEffort,
        })
    }
}
