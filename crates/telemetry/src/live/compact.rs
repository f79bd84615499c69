//! Counters of one class, kept in little room: of a histogram only the buckets that hold something.

use crate::class::Class;
use crate::snapshot::HistogramSnapshot;
use crate::totals::{ClassTotals, TenantTotals};

/// A histogram of some hundred requests is 1 KiB here and 7 KiB as a [`HistogramSnapshot`].
#[derive(Default)]
struct Times {
    /// Bucket and count, rising.
    counts: Vec<(u16, u64)>,
    sum_ns: u64,
}

impl Times {
    fn new(times: &HistogramSnapshot) -> Self {
        Self {
            counts: times
                .buckets()
                .map(|(bucket, count)| (bucket as u16, count))
                .collect(),
            sum_ns: times.sum_ns(),
        }
    }

    /// What was counted since `earlier`, subtracted here: the small form is ten times quicker to
    /// walk.
    fn since(&self, earlier: &Self) -> HistogramSnapshot {
        let mut times = HistogramSnapshot::default();
        let mut before = earlier.counts.iter().copied().peekable();
        for &(bucket, count) in &self.counts {
            while before.next_if(|(other, _)| *other < bucket).is_some() {}
            let less = before.next_if(|(other, _)| *other == bucket);
            let more = count.saturating_sub(less.map_or(0, |(_, count)| count));
            times.add_bucket(usize::from(bucket), more);
        }
        times.add_sum(self.sum_ns.saturating_sub(earlier.sum_ns));
        times
    }
}

/// [`ClassTotals`] to be kept.
pub(super) struct CompactClass {
    pub(super) class: Class,
    /// Without its histograms.
    numbers: ClassTotals,
    latency: Times,
    queue: Times,
    disk: Times,
}

impl CompactClass {
    /// The classes of a tenant that counted anything.
    pub(super) fn of(totals: TenantTotals) -> Vec<Self> {
        let classes = Class::ALL.into_iter().zip(totals.classes);
        classes
            .filter(|(_, totals)| !totals.is_empty())
            .map(|(class, totals)| Self::new(class, totals))
            .collect()
    }

    fn new(class: Class, totals: ClassTotals) -> Self {
        let [latency, queue, disk] = [&totals.latency, &totals.queue, &totals.disk].map(Times::new);
        let none = HistogramSnapshot::default;
        let numbers = ClassTotals {
            latency: none(),
            queue: none(),
            disk: none(),
            ..totals
        };
        Self {
            class,
            numbers,
            latency,
            queue,
            disk,
        }
    }

    /// Requests answered since the start.
    pub(super) fn requests(&self) -> u64 {
        self.numbers.requests
    }

    /// What was counted since `earlier`, or since the start.
    pub(super) fn since(&self, earlier: Option<&Self>) -> ClassTotals {
        let nothing = Self::new(self.class, ClassTotals::default());
        let earlier = earlier.unwrap_or(&nothing);
        ClassTotals {
            latency: self.latency.since(&earlier.latency),
            queue: self.queue.since(&earlier.queue),
            disk: self.disk.since(&earlier.disk),
            ..self.numbers.since(&earlier.numbers)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    #[test]
    fn what_is_kept_comes_back() {
        let histogram = Histogram::new();
        for ns in [5, 90_000, 90_000, 7_000_000_000] {
            histogram.record(ns);
        }
        let totals = ClassTotals {
            requests: 4,
            errors: 1,
            throttled: [2, 3],
            latency: histogram.snapshot(),
            queue: histogram.snapshot(),
            ..ClassTotals::default()
        };
        let kept = CompactClass::new(Class::Put, totals.clone());
        assert_eq!(kept.latency.counts.len(), 3);
        assert_eq!(kept.since(None), totals);
        histogram.record(90_000);
        histogram.record(400);
        let later = ClassTotals {
            requests: 6,
            latency: histogram.snapshot(),
            queue: histogram.snapshot(),
            ..totals.clone()
        };
        let since = CompactClass::new(Class::Put, later.clone()).since(Some(&kept));
        assert_eq!(since, later.since(&totals));
        assert_eq!(
            (since.requests, since.errors, since.latency.count()),
            (2, 0, 2)
        );
    }
}
