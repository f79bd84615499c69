//! Rates as tags: the point in time up to which consumption is paid for (mClock, OSDI 2010, table
//! 1).
//!
//! A tag moves forward by `1 / rate` for each unit consumed. Three tags use it, each in its own
//! way:
//!
//! * limit: nothing is served while the tag lies ahead of now; an idle principal saves up one
//!   burst;
//! * contract: while the tag lies ahead of now the principal is best effort;
//! * reservation: while the tag lies behind now the principal goes first.
//!
//! As in dmClock, consumption on other cores moves the tags too (its rho and delta), so each core
//! can hold the full rates. Departures from mClock: tags belong to principals instead of requests,
//! because a turn's requests are counted only after it was served; the difference is settled
//! afterwards; and a reservation tag moves with *all* service but never further than one turn ahead
//! of now, which gives `max(reservation, share)` where mClock's rule (served by weight: tag
//! unmoved) gives their sum.

use crate::cost::Nanos;

/// Fraction bits of a tag: a byte at 10 GB/s takes 0.1 ns, and thousands of such fractions a turn
/// add up.
const FRACTION: u32 = 20;
/// Rates are clamped to this range, in units per second: one in 11 days to a thousand billion,
/// which is a million VOPs in millionths.
const PER_S_MIN: f64 = 1e-6;
const PER_S_MAX: f64 = 1e12;

/// A rate and how far it is used up. Units are whatever the caller counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Nanoseconds, times 2^20.
    at: u128,
    /// Nanoseconds per unit, times 2^20.
    unit: u64,
    /// How far the tag may lie behind now, in nanoseconds times 2^20.
    burst: u128,
}

fn fixed(ns: Nanos) -> u128 {
    u128::from(ns) << FRACTION
}

impl Tag {
    /// `per_s` units per second; the tag begins `burst_ns` behind `now`, with a full burst.
    pub(crate) fn new(now: Nanos, per_s: f64, burst_ns: Nanos) -> Self {
        let per_s = if per_s.is_nan() { PER_S_MAX } else { per_s };
        let unit = 1e9 * f64::from(1 << FRACTION) / per_s.clamp(PER_S_MIN, PER_S_MAX);
        Tag {
            at: fixed(now.saturating_sub(burst_ns)),
            unit: (unit as u64).max(1),
            burst: fixed(burst_ns),
        }
    }

    /// Another rate from now on; what is used up stays used up.
    pub(crate) fn change(&mut self, now: Nanos, per_s: f64, burst_ns: Nanos) {
        let next = Tag::new(now, per_s, burst_ns);
        let ahead = self.at.saturating_sub(fixed(now));
        // Debt is a number of units: at another rate it takes another time.
        let ahead = ahead.saturating_mul(u128::from(next.unit)) / u128::from(self.unit);
        let behind = fixed(now).saturating_sub(self.at).min(next.burst);
        *self = Tag {
            at: fixed(now) + ahead - behind,
            ..next
        };
    }

    /// When the tag is reached, rounded up; any time up to `now` means it has been.
    pub(crate) fn reached_at(&self) -> Nanos {
        let up = (self.at + fixed(1) - 1) >> FRACTION;
        u64::try_from(up).unwrap_or(u64::MAX)
    }

    /// Whether the tag lies ahead of `now`.
    pub(crate) fn ahead(&self, now: Nanos) -> bool {
        self.at > fixed(now)
    }

    /// Units that can be consumed before the tag passes `now`.
    pub(crate) fn allowance(&self, now: Nanos) -> u64 {
        let behind = fixed(now).saturating_sub(self.at).min(self.burst);
        u64::try_from(behind / u128::from(self.unit)).unwrap_or(u64::MAX)
    }

    /// Units that are paid for by `now`, if those of before a burst before `from` are lost.
    pub(crate) fn units_between(&self, from: Nanos, now: Nanos) -> u64 {
        let at = self.at.max(fixed(from).saturating_sub(self.burst));
        let units = fixed(now).saturating_sub(at) / u128::from(self.unit);
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    /// `units` are consumed; time unused longer than a burst ago is lost.
    pub(crate) fn take(&mut self, now: Nanos, units: u64) {
        let floor = fixed(now).saturating_sub(self.burst);
        self.at = self.at.max(floor) + u128::from(units) * u128::from(self.unit);
    }

    /// Of the units taken, these were not needed.
    pub(crate) fn give_back(&mut self, units: u64) {
        self.at = self
            .at
            .saturating_sub(u128::from(units) * u128::from(self.unit));
    }

    /// The tag may lie at most `units` ahead of `now`.
    pub(crate) fn bound_ahead(&mut self, now: Nanos, units: u64) {
        let most = fixed(now) + u128::from(units) * u128::from(self.unit);
        self.at = self.at.min(most);
    }

    /// All time unused so far is lost.
    pub(crate) fn catch_up(&mut self, now: Nanos) {
        self.at = self.at.max(fixed(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn a_burst_then_the_rate() {
        let mut tag = Tag::new(1000 * MS, 1000.0, 10 * MS);
        assert_eq!(tag.allowance(1000 * MS), 10);
        tag.take(1000 * MS, 10);
        assert!(!tag.ahead(1000 * MS));
        assert_eq!(tag.allowance(1000 * MS), 0);
        tag.take(1000 * MS, 3);
        assert_eq!(tag.reached_at(), 1003 * MS);
        tag.give_back(1);
        assert_eq!(tag.reached_at(), 1002 * MS);
        assert_eq!(tag.allowance(2000 * MS), 10);
    }

    #[test]
    fn fractions_of_a_nanosecond_count() {
        let mut tag = Tag::new(0, 8e9, 0);
        for _ in 0..8_000_000 {
            tag.take(0, 1);
        }
        assert_eq!(tag.reached_at(), MS);
    }

    #[test]
    fn changing_the_rate_keeps_the_units_owed() {
        let mut tag = Tag::new(0, 1000.0, 0);
        tag.take(0, 100);
        assert_eq!(tag.reached_at(), 100 * MS);
        tag.change(0, 10_000.0, 0);
        assert_eq!(tag.reached_at(), 10 * MS);
        tag.change(4 * MS, 1000.0, 0);
        assert_eq!(tag.reached_at(), 64 * MS);
    }

    #[test]
    fn bounds_on_both_sides() {
        let mut tag = Tag::new(0, 1000.0, 0);
        tag.take(0, 100);
        tag.bound_ahead(0, 5);
        assert_eq!(tag.reached_at(), 5 * MS);
        tag.catch_up(50 * MS);
        assert_eq!(tag.reached_at(), 50 * MS);
    }
}
