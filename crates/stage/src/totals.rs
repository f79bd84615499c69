//! What a stage observes, per principal and class.

use policy::{Nanos, PrincipalId};

/// Is told each single wait and service time, for histograms. Methods are called on the stage's thread,
/// on the path of a turn: they should take nanoseconds and must not block.
pub trait Observer {
    /// An item was granted after waiting `wait_ns` in its queue.
    fn waited(&mut self, principal: PrincipalId, class: u8, wait_ns: Nanos);
    /// A turn ended `service_ns` after it was granted.
    fn served(&mut self, principal: PrincipalId, class: u8, service_ns: Nanos);
}

/// Nobody listens.
impl Observer for () {
    fn waited(&mut self, _: PrincipalId, _: u8, _: Nanos) {}
    fn served(&mut self, _: PrincipalId, _: u8, _: Nanos) {}
}

/// Running totals of one class of one principal. They only grow, until the principal is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTotals {
    /// Items in the queue.
    pub queued: u32,
    /// Turns granted.
    pub granted: u64,
    /// Turns ended.
    pub settled: u64,
    /// Time that granted items had waited, summed, in nanoseconds.
    pub waited_ns: u64,
    /// Time from grant to settlement, summed, in nanoseconds.
    pub service_ns: u64,
    /// Time during which an item of this class was queued, in nanoseconds: over an interval, its occupancy.
    pub occupied_ns: u64,
    /// Since when one is.
    occupied_since: Nanos,
}

impl ClassTotals {
    pub(crate) fn admitted(&mut self, now: Nanos) {
        if self.queued == 0 {
            self.occupied_since = now;
        }
        self.queued += 1;
    }

    fn left(&mut self, now: Nanos) {
        self.queued = self.queued.saturating_sub(1);
        if self.queued == 0 {
            let occupied = now.saturating_sub(self.occupied_since);
            self.occupied_ns = self.occupied_ns.saturating_add(occupied);
        }
    }

    pub(crate) fn granted(&mut self, now: Nanos, waited_ns: Nanos) {
        self.left(now);
        self.granted += 1;
        self.waited_ns = self.waited_ns.saturating_add(waited_ns);
    }

    pub(crate) fn settled(&mut self, service_ns: Nanos) {
        self.settled += 1;
        self.service_ns = self.service_ns.saturating_add(service_ns);
    }

    /// The totals as of `now`: a wait that has not ended counts.
    pub(crate) fn at(mut self, now: Nanos) -> Self {
        if self.queued > 0 {
            let occupying = now.saturating_sub(self.occupied_since);
            self.occupied_ns = self.occupied_ns.saturating_add(occupying);
            self.occupied_since = now;
        }
        self
    }
}
