//! Permits: how much may be outstanding below a stage, and which of it is kept free for whom.
//!
//! A principal's reserved permits are its alone, even while it has no use for them: that is what
//! keeps the front end's latency low at low load (Cake 6.1, fig. 8). The others are shared by
//! everybody. A principal uses its reserved ones first. They are taken from all that there are, or,
//! where these are counted for what everybody shares, come beside them.
//!
//! Beyond all these some may be extra: only for a principal that has had less than its share. What
//! others have outstanding then holds up nobody who is within his share, and there is little of it:
//! whoever uses more is not within his share for long.

use crate::lend::Need;

/// The permits of one dispatch. All numbers count units of outstanding work.
#[derive(Clone, Debug)]
pub(crate) struct Permits {
    /// Those of its own.
    own: u32,
    /// What it may use now: lent to others, or borrowed from them, some may be ([`crate::lend`]).
    total: u32,
    reserved: u64,
    /// Reserved ones come beside the shared.
    beside: bool,
    /// How many of the total anybody may use.
    shared: u32,
    in_flight: u32,
    shared_in_use: u32,
    extra: u32,
    extra_in_use: u32,
}

impl Permits {
    /// `total` permits, at least 1: a stage without any would stand still.
    /// `beside`: those that are reserved come beside them.
    pub(crate) fn new(total: u32, extra: u32, beside: bool) -> Self {
        Permits {
            own: total.max(1),
            total: total.max(1),
            reserved: 0,
            beside,
            shared: total.max(1),
            in_flight: 0,
            shared_in_use: 0,
            extra,
            extra_in_use: 0,
        }
    }

    /// Divides so many permits, beside which reserved ones may come.
    fn share(&mut self, permits: u32) {
        if self.beside {
            let reserved = u32::try_from(self.reserved).unwrap_or(u32::MAX);
            (self.shared, self.total) = (permits, permits.saturating_add(reserved));
            return;
        }
        // One is always shared, even if all are reserved: else reserving the only permit of a core
        // would stop all but one tenant for ever.
        let shared = u64::from(permits).saturating_sub(self.reserved);
        (self.shared, self.total) = (shared.max(1) as u32, permits);
    }

    /// Another total; outstanding work above it is waited for, not cancelled.
    pub(crate) fn resize(&mut self, total: u32) {
        self.own = total.max(1);
        self.hold(total);
    }

    /// Another number of extra ones.
    pub(crate) fn resize_extra(&mut self, extra: u32) {
        self.extra = extra;
    }

    /// So many may be used for now, more or fewer than there are.
    pub(crate) fn hold(&mut self, total: u32) {
        self.share(total.max(1));
    }

    /// What could be used of permits that are lent and borrowed, with so much work queued and so
    /// many permits kept from most of it. Who has reserved permits may not be who has work, so both
    /// are counted.
    pub(crate) fn need(&self, queued: u64, kept: u32) -> Need {
        let reserved = self.reserved.saturating_add(u64::from(kept));
        let count = |permits: u64| u32::try_from(permits).unwrap_or(u32::MAX);
        let useful = u64::from(self.in_flight).saturating_add(queued);
        Need {
            part: self.own,
            in_use: self.in_flight,
            useful: count(useful.saturating_add(reserved)),
            keeps: count(reserved.saturating_add(1)),
        }
    }

    /// Reserved permits that are promised and cannot be kept free: all but one of its own can.
    pub(crate) fn missing(&self) -> u64 {
        if self.beside {
            return 0;
        }
        let most = u64::from(self.own) - 1;
        self.reserved.saturating_sub(most)
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight + self.extra_in_use
    }

    /// The same without extra ones.
    pub(crate) fn usual_in_flight(&self) -> u32 {
        self.in_flight
    }

    /// How many are nobody's own.
    pub(crate) fn all_shared(&self) -> u32 {
        self.shared
    }

    /// How many anybody may have now.
    pub(crate) fn shared_free(&self) -> u32 {
        self.shared.saturating_sub(self.shared_in_use)
    }

    /// Whether one is free for a principal in credit.
    #[inline]
    pub(crate) fn extra(&self) -> bool {
        self.extra_in_use < self.extra
    }

    pub(crate) fn take_extra(&mut self) {
        self.extra_in_use += 1;
    }

    pub(crate) fn give_back_extra(&mut self) {
        self.extra_in_use = self.extra_in_use.saturating_sub(1);
    }

    /// Whether anything at all can be granted.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.in_flight < self.total
    }

    /// Whether more are out than may be now: some that were borrowed are wanted back.
    pub(crate) fn overdrawn(&self) -> bool {
        self.in_flight > self.total
    }

    /// Whether a shared permit is free.
    #[inline]
    pub(crate) fn shared(&self) -> bool {
        self.any() && self.shared_in_use < self.shared
    }

    /// A principal with `held` permits of which `reserved` are its own takes one more.
    #[inline]
    pub(crate) fn take(&mut self, held: u32, reserved: u32) {
        self.in_flight += 1;
        if held >= reserved {
            self.shared_in_use += 1;
        }
    }

    /// A principal with `held` permits (at least 1) gives one back.
    #[inline]
    pub(crate) fn give_back(&mut self, held: u32, reserved: u32) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if held > reserved {
            self.shared_in_use = self.shared_in_use.saturating_sub(1);
        }
    }

    /// A principal that holds `held` permits gets `new` reserved ones instead of `old`.
    pub(crate) fn reserve(&mut self, held: u32, old: u32, new: u32) {
        self.reserved = (self.reserved + u64::from(new)).saturating_sub(u64::from(old));
        self.share(match self.beside {
            true => self.shared,
            false => self.total,
        });
        self.shared_in_use = (self.shared_in_use + held.saturating_sub(new))
            .saturating_sub(held.saturating_sub(old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_permits_stay_free_for_their_owner() {
        let mut permits = Permits::new(3, 0, false);
        permits.reserve(0, 0, 1);
        permits.take(0, 0);
        permits.take(1, 0);
        assert!(permits.any() && !permits.shared());
        permits.take(0, 1);
        assert!(!permits.any());
        permits.give_back(2, 0);
        assert!(permits.shared());
    }

    #[test]
    fn reserved_permits_beside_the_others_are_not_taken_from_them() {
        let mut permits = Permits::new(2, 0, true);
        permits.reserve(0, 0, 3);
        assert_eq!((permits.missing(), permits.all_shared()), (0, 2));
        permits.take(0, 0);
        permits.take(1, 0);
        assert!(permits.any() && !permits.shared());
        for held in 0..3 {
            permits.take(held, 3);
        }
        assert!(!permits.any());
        permits.resize(4);
        permits.reserve(3, 3, 1);
        assert_eq!((permits.all_shared(), permits.shared_free()), (4, 0));
        assert!(
            !permits.any(),
            "two of its three are in the way of others now"
        );
        permits.give_back(3, 1);
        assert!(permits.shared());
    }

    #[test]
    fn what_is_reserved_beyond_the_total_is_said() {
        let mut permits = Permits::new(4, 0, false);
        permits.reserve(0, 0, 3);
        assert_eq!(permits.missing(), 0, "one is shared");
        permits.reserve(0, 0, 2);
        assert_eq!(permits.missing(), 2);
        permits.resize(2);
        assert_eq!(permits.missing(), 4);
        permits.reserve(0, 3, 0);
        permits.reserve(0, 2, 0);
        assert_eq!(permits.missing(), 0);
    }

    #[test]
    fn changing_reservations_recounts_what_is_held() {
        let mut permits = Permits::new(4, 0, false);
        permits.reserve(0, 0, 2);
        for held in 0..3 {
            permits.take(held, 2);
        }
        permits.reserve(3, 2, 0);
        assert_eq!(permits.shared_in_use, 3);
        assert!(permits.shared());
        permits.reserve(3, 0, 9);
        assert_eq!(permits.shared_in_use, 0);
        assert!(permits.shared());
        permits.take(0, 0);
        assert!(!permits.shared() && !permits.any());
    }
}
