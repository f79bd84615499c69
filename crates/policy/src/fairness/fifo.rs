//! Arrival order: the baseline that any other discipline is measured against.

/// Numbers arrivals. Two items that arrive at the same nanosecond still have an order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    next: u64,
}

impl Arrivals {
    /// The number of the item that arrives now. 2^64 of them do not run out.
    pub(crate) fn arrive(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }
}
