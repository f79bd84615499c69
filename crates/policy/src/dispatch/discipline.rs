//! The rules by which the next principal can be chosen. One more takes a row here, and its order in
//! [`super::Dispatch`].

use crate::words::{Choice, Words};

/// The rule by which the next principal is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Weighted fair shares of the dominant resource (Pisces 4.3.4).
    Fair,
    /// A lottery with tickets by weight among queues with work; ignores cost (Frosting 2.2.2).
    Lottery,
    /// Arrival order, for comparison.
    Fifo,
}

impl Words for Discipline {
    #[rustfmt::skip]
    const ALL: &'static [(Self, Choice)] = &[
        (Self::Fair, ("fair", "Tenants share by weight, whatever resource each uses most (requests, bytes or CPU time).")),
        (Self::Lottery, ("lottery", "Tenants share by weight, on average: each turn is drawn by lottery.")),
        (Self::Fifo, ("fifo", "Requests are served first come first served: TENANTS ARE NOT KEPT APART, weights do nothing.")),
    ];
}

impl Discipline {
    /// Whether it holds everybody to a share. A principal that has had less than its share is in
    /// credit then, and may use extra permits.
    #[must_use]
    pub fn keeps_shares(self) -> bool {
        self == Self::Fair
    }

    /// Whether the next is drawn, and not the first of an order.
    pub(super) fn draws(self) -> bool {
        self == Self::Lottery
    }
}
