//! A histogram's counts at one moment: merged across cores, subtracted over time, asked for
//! quantiles.

use serde::{Deserialize, Serialize};

use crate::histogram::{bounds_of, bucket_of, BUCKETS};

/// Counts of values in nanoseconds, taken from a [`crate::Histogram`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct HistogramSnapshot {
    /// Empty while nothing was counted, else [`BUCKETS`] long.
    counts: Vec<u64>,
    count: u64,
    sum_ns: u64,
}

impl HistogramSnapshot {
    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all values, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// True when nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The mean in nanoseconds, 0 when nothing was counted.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum_ns as f64 / self.count as f64
    }

    /// The value, in nanoseconds, that a share `p` (0 to 1) of the counted values does not exceed;
    /// straight-line interpolation inside a bucket. 0 when nothing was counted.
    ///
    /// The error is below 1/32 of the value, or 32 ns for values under 1 µs.
    pub fn quantile(&self, p: f64) -> f64 {
        let rank = (p.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0);
        let mut below = 0u64;
        for (bucket, &count) in self.counts.iter().enumerate() {
            if count > 0 && (below + count) as f64 >= rank {
                let (from, to) = bounds_of(bucket);
                let part = (rank - below as f64) / count as f64;
                return from as f64 + (to - from) as f64 * part;
            }
            below += count;
        }
        0.0
    }

    /// The end of the highest bucket that holds a value, in nanoseconds: the maximum, rounded up by
    /// less than 1/32. 0 when nothing was counted.
    pub fn max(&self) -> u64 {
        self.counts
            .iter()
            .rposition(|&count| count > 0)
            .map_or(0, |bucket| bounds_of(bucket).1)
    }

    /// How many values were at most `bound_ns`. The bucket that holds the bound counts when the
    /// larger part of it lies below, so the bound in effect is off by at most 1/64.
    pub fn count_up_to(&self, bound_ns: u64) -> u64 {
        let bucket = bucket_of(bound_ns);
        let (from, to) = bounds_of(bucket);
        let end = if bound_ns >= from + (to - from) / 2 {
            bucket + 1
        } else {
            bucket
        };
        self.counts.iter().take(end).sum()
    }

    /// Adds another snapshot's counts to this one's.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, &count) in other.counts.iter().enumerate() {
            self.add_bucket(bucket, count);
        }
        self.add_sum(other.sum_ns);
    }

    /// What was counted between `earlier` and this snapshot of the same histogram.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = Self::default();
        for (bucket, &count) in self.counts.iter().enumerate() {
            let before = earlier.counts.get(bucket).copied().unwrap_or(0);
            difference.add_bucket(bucket, count.saturating_sub(before));
        }
        difference.add_sum(self.sum_ns.saturating_sub(earlier.sum_ns));
        difference
    }

    /// The buckets that hold something: place and count, rising.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|(_, count)| *count > 0)
    }

    pub(crate) fn add_bucket(&mut self, bucket: usize, count: u64) {
        if count == 0 {
            return;
        }
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        self.counts[bucket] += count;
        self.count += count;
    }

    pub(crate) fn add_sum(&mut self, sum_ns: u64) {
        self.sum_ns = self.sum_ns.wrapping_add(sum_ns);
    }
}

/// A snapshot in JSON.
#[derive(Serialize, Deserialize)]
struct Written {
    sum_ns: u64,
    /// Of the buckets that hold something, rising: the values lie below this, ns, and not below the
    /// bucket before; how many.
    buckets: Vec<(u64, u64)>,
}

impl From<HistogramSnapshot> for Written {
    fn from(snapshot: HistogramSnapshot) -> Self {
        let buckets = snapshot.buckets();
        Self {
            sum_ns: snapshot.sum_ns,
            buckets: buckets
                .map(|(bucket, count)| (bounds_of(bucket).1, count))
                .collect(),
        }
    }
}

impl From<Written> for HistogramSnapshot {
    fn from(written: Written) -> Self {
        let mut snapshot = Self::default();
        for (below_ns, count) in written.buckets {
            snapshot.add_bucket(bucket_of(below_ns.saturating_sub(1)), count);
        }
        snapshot.add_sum(written.sum_ns);
        snapshot
    }
}

#[cfg(test)]
mod tests {
    use super::HistogramSnapshot;
    use crate::Histogram;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let histogram = Histogram::new();
        values.iter().for_each(|&v| histogram.record(v));
        histogram
    }

    #[test]
    fn nothing_counted_says_zero() {
        let empty = Histogram::new().snapshot();
        assert_eq!(
            (empty.count(), empty.max(), empty.count_up_to(u64::MAX)),
            (0, 0, 0)
        );
        assert_eq!((empty.mean(), empty.quantile(0.99)), (0.0, 0.0));
    }

    #[test]
    fn a_bound_inside_a_bucket_takes_it_when_most_lies_below() {
        // 1 ms lies in the bucket from 999,424 to 1,015,808 ns, near its start.
        let snapshot = of(&[990_000, 1_000_000, 1_010_000, 1_020_000]).snapshot();
        assert_eq!(snapshot.count_up_to(1_000_000), 1);
        assert_eq!(snapshot.count_up_to(1_010_000), 3);
        assert_eq!(snapshot.count_up_to(u64::MAX), 4);
    }

    proptest! {
        #[test]
        fn merging_is_recording_both(
            a in prop::collection::vec(0u64..200_000_000_000, 0..50),
            b in prop::collection::vec(0u64..200_000_000_000, 0..50),
        ) {
            let mut merged = of(&a).snapshot();
            merged.merge(&of(&b).snapshot());
            prop_assert_eq!(&merged, &of(&[a.clone(), b].concat()).snapshot());
            prop_assert_eq!(merged.since(&of(&a).snapshot()).count(), merged.count() - a.len() as u64);
        }

        #[test]
        fn a_difference_is_what_came_between(
            a in prop::collection::vec(0u64..200_000_000_000, 0..50),
            b in prop::collection::vec(0u64..200_000_000_000, 1..50),
        ) {
            let histogram = of(&a);
            let before = histogram.snapshot();
            b.iter().for_each(|&v| histogram.record(v));
            prop_assert_eq!(histogram.snapshot().since(&before), of(&b).snapshot());
        }

        #[test]
        fn what_is_written_is_read(values in prop::collection::vec(0u64..200_000_000_000, 0..50)) {
            let snapshot = of(&values).snapshot();
            let text = serde_json::to_string(&snapshot).expect("JSON");
            let again: HistogramSnapshot = serde_json::from_str(&text).expect("as written");
            prop_assert_eq!(again, snapshot);
        }

        #[test]
        fn counts_up_to_rising_bounds_rise(values in prop::collection::vec(0u64..200_000_000_000, 0..50)) {
            let snapshot = of(&values).snapshot();
            let counts: Vec<u64> = (0..38).map(|log2| snapshot.count_up_to(1 << log2)).collect();
            prop_assert!(counts.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert_eq!(counts[37], values.len() as u64);
        }
    }
}
