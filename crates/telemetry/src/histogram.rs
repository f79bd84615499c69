//! A histogram that one thread writes while others read it.
//!
//! Log-linear: every power of two is cut into 32 equal parts, so a value is known to within 1/32
//! (3.2 %) of itself from 1 µs up; below that the parts are 32 ns wide. Memory is taken a power of
//! two at a time when the first value falls there: an unused histogram is 0.5 KiB, a busy one
//! typically 3 KiB, a full one 8 KiB.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

use crate::snapshot::HistogramSnapshot;

/// Parts a power of two is cut into.
const PARTS: usize = 32;
const PARTS_LOG2: u32 = PARTS.trailing_zeros();

/// Values below 2^10 ns (1.024 µs) share one linear group.
const LINEAR_LOG2: u32 = 10;

/// Values from 2^37 ns (137 s) up count as the largest value told apart.
const MAX_LOG2: u32 = 37;

const GROUPS: usize = (MAX_LOG2 - LINEAR_LOG2) as usize + 1;

/// Buckets of a full histogram.
pub const BUCKETS: usize = GROUPS * PARTS;

/// The bucket of a value in nanoseconds.
#[inline]
pub(crate) fn bucket_of(value_ns: u64) -> usize {
    if value_ns < 1 << LINEAR_LOG2 {
        return (value_ns >> (LINEAR_LOG2 - PARTS_LOG2)) as usize;
    }
    let value = value_ns.min((1 << MAX_LOG2) - 1);
    let log2 = 63 - value.leading_zeros();
    let part = (value >> (log2 - PARTS_LOG2)) as usize & (PARTS - 1);
    (log2 - LINEAR_LOG2 + 1) as usize * PARTS + part
}

/// The values of a bucket in nanoseconds: from the first (included) to the second (excluded).
pub(crate) fn bounds_of(bucket: usize) -> (u64, u64) {
    let (group, part) = ((bucket / PARTS) as u32, (bucket % PARTS) as u64);
    let (base, width) = if group == 0 {
        (0, 1 << (LINEAR_LOG2 - PARTS_LOG2))
    } else {
        let log2 = LINEAR_LOG2 + group - 1;
        (1 << log2, 1u64 << (log2 - PARTS_LOG2))
    };
    (base + part * width, base + (part + 1) * width)
}

type Group = Box<[AtomicU64; PARTS]>;

/// Counts of values in nanoseconds, from 1 µs to 137 s.
///
/// # Preconditions
/// One thread at a time calls [`Histogram::record`]: it loads and stores, so of two concurrent
/// writers one may be lost (nothing worse). [`crate::Recorder`] makes that a rule of types. Any
/// number may read meanwhile.
#[derive(Default)]
pub struct Histogram {
    groups: [OnceLock<Group>; GROUPS],
    sum_ns: AtomicU64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one value, in nanoseconds.
    #[inline]
    pub fn record(&self, value_ns: u64) {
        self.record_many(value_ns, 1);
    }

    /// Counts `count` equal values, in nanoseconds each.
    #[inline]
    pub fn record_many(&self, value_ns: u64, count: u64) {
        let bucket = bucket_of(value_ns);
        let group = self.groups[bucket / PARTS].get_or_init(Group::default);
        bump(&group[bucket % PARTS], count);
        bump(&self.sum_ns, value_ns.saturating_mul(count));
    }

    /// Adds this histogram's counts to `into`. A writer may go on meanwhile: what it adds during
    /// the call is seen or not, but nothing is seen twice and later calls never see less.
    pub fn add_to(&self, into: &mut HistogramSnapshot) {
        into.add_sum(self.sum_ns.load(Relaxed));
        for (place, group) in self.groups.iter().enumerate() {
            let Some(group) = group.get() else { continue };
            for (part, count) in group.iter().enumerate() {
                into.add_bucket(place * PARTS + part, count.load(Relaxed));
            }
        }
    }

    /// The counts now.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let mut snapshot = HistogramSnapshot::default();
        self.add_to(&mut snapshot);
        snapshot
    }
}

/// Adds to a counter that only the calling thread writes: a load and a store cost a third of a
/// locked add.
#[inline]
pub(crate) fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_tile_the_range() {
        let mut end = 0;
        for bucket in 0..BUCKETS {
            let (from, to) = bounds_of(bucket);
            assert_eq!(from, end, "bucket {bucket} leaves no gap");
            assert_eq!(bucket_of(from), bucket);
            assert_eq!(bucket_of(to - 1), bucket);
            end = to;
        }
        assert_eq!(end, 1 << MAX_LOG2);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn an_unused_histogram_is_small() {
        assert!(std::mem::size_of::<Histogram>() <= 512);
    }

    #[test]
    fn one_writer_and_a_reader_lose_nothing() {
        let histogram = Histogram::new();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200_000u64).for_each(|i| histogram.record(i * 37)));
            let mut seen = 0;
            while seen < 200_000 {
                let now = histogram.snapshot().count();
                assert!(now >= seen, "counts never go back");
                seen = now;
            }
        });
        assert_eq!(
            histogram.snapshot().sum_ns(),
            (0..200_000u64).map(|i| i * 37).sum::<u64>()
        );
    }

    proptest! {
        #[test]
        fn a_bucket_is_at_most_one_part_in_32_wide(value in 1_024u64..100_000_000_000) {
            let (from, to) = bounds_of(bucket_of(value));
            prop_assert!(from <= value && value < to);
            prop_assert!((to - from) * 32 <= value + 31);
        }

        #[test]
        fn quantiles_are_near_the_exact_ones(
            mut values in prop::collection::vec(prop_oneof![0u64..5_000, 1_000u64..120_000_000_000], 1..400),
            p in 0.0f64..=1.0,
        ) {
            let histogram = Histogram::new();
            values.iter().for_each(|&v| histogram.record(v));
            values.sort_unstable();
            let rank = (p * values.len() as f64).ceil().max(1.0) as usize;
            let exact = values[rank - 1] as f64;
            let got = histogram.snapshot().quantile(p);
            prop_assert!((got - exact).abs() <= (exact / 32.0).max(32.0), "{got} for {exact}");
        }
    }
}
