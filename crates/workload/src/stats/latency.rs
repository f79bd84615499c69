//! How long requests took.

use hdrhistogram::Histogram;

/// Latencies are kept from 1 µs to 10 minutes with three significant figures.
const LATENCY_NS: (u64, u64) = (1_000, 600_000_000_000);

/// A latency histogram in nanoseconds. What lies outside its range is counted at the nearer end.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        // Constant and valid bounds: 1 <= low, 2 * low <= high, figures <= 5.
        let made = Histogram::new_with_bounds(LATENCY_NS.0, LATENCY_NS.1, 3);
        Self(made.expect("constant bounds are valid"))
    }
}

impl Latency {
    /// Counts one latency.
    pub fn record(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns);
    }

    /// Adds another histogram's counts.
    pub fn add(&mut self, other: &Latency) {
        // Both have the same bounds, so this cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// The latency that `percent` (0 to 100) of the requests did not exceed, ns; 0 when empty.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        if self.0.is_empty() {
            0
        } else {
            self.0.value_at_percentile(percent)
        }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The histogram itself, for those who write it down.
    pub fn raw(&self) -> &Histogram<u64> {
        &self.0
    }

    /// The highest latency, ns; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// The mean latency, ns; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.0.is_empty() {
            0.0
        } else {
            self.0.mean()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_saturates_and_answers_when_empty() {
        let mut latency = Latency::default();
        assert_eq!((latency.percentile_ns(99.0), latency.max_ns()), (0, 0));
        latency.record(u64::MAX);
        latency.record(0);
        assert!(latency.max_ns() >= LATENCY_NS.1);
        assert_eq!(latency.count(), 2);
    }
}
