//! What one tenant has and wants at one node, and what it can give there.

/// What a tenant has and wants at a node, in any unit of rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The tenant, counted from 0.
    pub tenant: u32,
    /// The node, counted from 0.
    pub node: u32,
    /// Its local share.
    pub share: i64,
    /// Its demand.
    pub demand: i64,
}

impl Entry {
    /// Share beyond demand; negative where it wants more.
    #[must_use]
    pub fn slack(&self) -> i64 {
        self.share - self.demand
    }

    /// What it wants, at least 1: so that there is a part of it.
    pub(super) fn wanted(&self) -> i64 {
        self.demand.max(1)
    }

    /// The part of its demand that it has; above 1 where it has more.
    #[must_use]
    pub fn part(&self) -> f64 {
        self.share as f64 / self.wanted() as f64
    }

    /// How much another may take of it until both have the same part of their demands; not above 0
    /// where it has no greater part, and never more than it has.
    pub(super) fn gives(&self, taker: &Entry) -> i64 {
        let [theirs, own] = [taker, self].map(|entry| entry.wanted() as f64);
        let apart = self.share as f64 * theirs - taker.share as f64 * own;
        ((apart / (theirs + own)) as i64).min(self.share)
    }
}
