//! Latencies against a bound.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::histogram::{bump, Histogram};
use crate::snapshot::HistogramSnapshot;

/// Latencies, and exactly how many of them exceeded a bound: a histogram knows values only to
/// within 1/32 of themselves.
///
/// # Preconditions
/// As [`Histogram`]'s: one thread at a time records, any number reads.
pub struct Lates {
    latency: Histogram,
    late: AtomicU64,
    bound_ns: u64,
}

impl Lates {
    /// None yet; those of more than `bound_ns` will be late.
    pub fn new(bound_ns: u64) -> Self {
        Self {
            latency: Histogram::new(),
            late: AtomicU64::new(0),
            bound_ns,
        }
    }

    /// Counts `count` requests that took so long each, ns.
    #[inline]
    pub fn record(&self, latency_ns: u64, count: u64) {
        self.latency.record_many(latency_ns, count);
        if latency_ns > self.bound_ns {
            bump(&self.late, count);
        }
    }

    /// Adds the latencies to `into`; returns how many were late.
    pub fn add_to(&self, into: &mut HistogramSnapshot) -> u64 {
        // Late ones first: a reading never has more of them than requests.
        let late = self.late.load(Relaxed);
        self.latency.add_to(into);
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_itself_is_in_time_and_the_next_nanosecond_is_not() {
        let lates = Lates::new(20_000_000);
        lates.record(20_000_000, 3);
        lates.record(20_000_001, 2);
        let mut latency = HistogramSnapshot::default();
        assert_eq!(lates.add_to(&mut latency), 2);
        assert_eq!(latency.count(), 5);
    }
}
