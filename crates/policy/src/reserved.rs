//! Requests a second that go before shares, where it is only known later how large each was.
//!
//! It is mClock's reservation tag with the departures of [`crate::rate`]: the tag moves with *all*
//! that is served, by shares as well, so that its owner has the larger of reservation and share,
//! and it never lies further ahead of now than what came at once.

use crate::cost::Nanos;
use crate::rate::Tag;

/// A reservation that could not be met is remembered for so long, and caught up on. As at a stage
/// (`dispatch::rates`).
const CATCH_UP_NS: Nanos = 100_000_000;

/// The rate, how far it is used up, and what was asked of it.
#[derive(Clone, Copy, Debug)]
pub struct Reserved {
    tag: Tag,
    asked: u64,
    /// The most that came at once since the tag was last reached.
    most: u64,
}

impl Reserved {
    /// So many requests of 1 KiB a second.
    #[must_use]
    pub fn new(now: Nanos, per_s: f64) -> Self {
        Reserved {
            tag: Tag::new(now, per_s, CATCH_UP_NS),
            asked: 0,
            most: 0,
        }
    }

    /// Another rate from now on.
    pub fn change(&mut self, now: Nanos, per_s: f64) {
        self.tag.change(now, per_s, CATCH_UP_NS);
    }

    /// What was asked since the start, requests of 1 KiB.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Requests come: whether they go before shares.
    pub fn first(&self, now: Nanos) -> bool {
        !self.tag.ahead(now)
    }

    /// So many are served at once, or turned out to be so many more than was taken for them.
    pub fn take(&mut self, now: Nanos, requests: u64) {
        self.asked = self.asked.saturating_add(requests);
        self.most = match self.first(now) {
            true => requests,
            false => self.most.max(requests),
        };
        self.tag.take(now, requests);
        self.tag.bound_ahead(now, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: Nanos = 1_000_000_000;

    /// Of batches of so many requests, one after the other, those that go first in ten seconds.
    fn first(per_s: f64, batch: u64, every: Nanos) -> f64 {
        let mut reserved = Reserved::new(S, per_s);
        let mut first = 0;
        for now in (S..11 * S).step_by(every as usize) {
            if reserved.first(now) {
                first += batch;
                reserved.take(now, batch);
            }
        }
        first as f64 / 10.0
    }

    #[test]
    fn what_goes_first_is_the_rate_whatever_comes_at_once() {
        for (batch, every) in [(1, S / 1_000), (128, S / 1_000), (128, S / 10)] {
            let per_s = first(100.0, batch, every);
            // And what is caught up on at the start, and the last batch.
            let more = 2.0 + batch as f64 / 10.0;
            assert!((99.0..=100.0 + more).contains(&per_s), "{per_s} by {batch}");
        }
    }

    #[test]
    fn who_has_more_by_shares_does_not_go_first_and_is_owed_nothing_for_it_later() {
        let mut reserved = Reserved::new(S, 100.0);
        for at in 0..1_000 {
            reserved.take(S + at * S / 1_000, 1);
        }
        assert_eq!(reserved.asked(), 1_000);
        assert!(!reserved.first(2 * S));
        // A hundredth of a second later it is as if it had only had its rate.
        assert!(reserved.first(2 * S + S / 100));
    }

    #[test]
    fn a_large_request_is_many() {
        let mut reserved = Reserved::new(S, 1_000.0);
        reserved.take(S, 1);
        reserved.take(S, 1_100);
        assert!(!reserved.first(S + S / 2) && reserved.first(S + 11 * S / 10));
    }

    proptest! {
        /// Whoever goes first whenever he may, has his rate and no more than a batch beyond it.
        #[test]
        fn the_rate_is_had_and_not_exceeded(
            per_s in 10.0..10_000.0,
            batches in prop::collection::vec((1..200u64, 1..50_000_000u64), 50..200),
        ) {
            let (mut reserved, mut now, mut had) = (Reserved::new(S, per_s), S, 0.0);
            for (batch, after) in batches {
                now += after;
                if reserved.first(now) {
                    had += batch as f64;
                    reserved.take(now, batch);
                }
            }
            let allowed = per_s * ((now - S + CATCH_UP_NS) as f64 / 1e9) + 201.0;
            prop_assert!(had <= allowed, "{had} of {allowed}");
        }
    }
}
