//! How much may be under way: see [`crate::permits`].

use super::Dispatch;
use crate::lend::Need;

impl<T, const R: usize> Dispatch<T, R> {
    /// Changes the number of permits, at least 1. Grants above a smaller number run to their end.
    pub fn set_permits(&mut self, permits: u32) {
        self.permits.resize(permits);
        self.options.permits = permits;
        self.bounds = self.options.debt_bounds();
    }

    /// The same, and as many extra ones.
    pub fn set_permits_and_extra(&mut self, permits: u32) {
        self.permits.resize_extra(permits);
        self.options.extra_permits = permits;
        self.set_permits(permits);
    }

    /// What this core could use of permits that cores lend each other.
    #[must_use]
    pub fn need(&self) -> Need {
        self.permits.need(self.queued, self.timed.others.kept)
    }

    /// So many permits may be used until [`Dispatch::need`] is asked for again: some of its own are
    /// lent, or it has borrowed some.
    pub fn hold(&mut self, permits: u32) {
        self.permits.hold(permits);
    }

    /// Whether more is under way than may be now: permits that were borrowed are wanted back, or
    /// there are fewer of them than there were.
    #[must_use]
    pub fn overdrawn(&self) -> bool {
        self.permits.overdrawn()
    }

    /// Grants that may be unsettled at a time, beside those of principals in credit, where none are
    /// lent.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.options.permits
    }

    /// Permits that are reserved and cannot be kept free: one of all is always shared. While there
    /// are any, nobody's reserved permits are sure to be free when it wants them.
    #[must_use]
    pub fn permits_missing(&self) -> u64 {
        self.permits.missing()
    }
}
