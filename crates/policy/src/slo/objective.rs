//! One promise, and whether it was kept in a window.

use crate::cost::Nanos;
use crate::words::{Choice, Words};

/// A percentile of latency, and what it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// 1 to 99.999.
    pub percentile: f64,
    /// What it should not exceed, in ns.
    pub at_most_ns: Nanos,
}

/// What a class of a workload's requests was promised. At least one of latency and throughput is
/// there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// How fast requests are answered.
    pub latency: Option<Latency>,
    /// Requests a second that are answered, if so many are asked for.
    pub throughput_per_s: Option<f64>,
    /// Requests a second offered up to which the promise holds; `None`: any number.
    pub contract_per_s: Option<f64>,
    /// Who gives way when not all promises can be kept: 1 first, 100 last.
    pub importance: u32,
    /// It holds in each window of this length, in ns; 1 s to 1 h.
    pub window_ns: Nanos,
}

/// What happened to the requests of an objective, in a window or over a longer time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Answered, of those within the contract.
    pub requests: u64,
    /// Of these, answered later than promised.
    pub late: u64,
    /// Answered, of those beyond the contract.
    pub beyond: u64,
    /// Of these, answered later than would have been promised.
    pub beyond_late: u64,
    /// Time that all of them were under way, summed, in ns.
    pub under_way_ns: u64,
    /// Not answered yet, of those within the contract, though later than promised already: as many
    /// as there are at present, and no total.
    pub overdue: u64,
}

impl Counts {
    /// What was added since `earlier`, a reading of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Counts {
            requests: self.requests.saturating_sub(earlier.requests),
            late: self.late.saturating_sub(earlier.late),
            beyond: self.beyond.saturating_sub(earlier.beyond),
            beyond_late: self.beyond_late.saturating_sub(earlier.beyond_late),
            under_way_ns: self.under_way_ns.saturating_sub(earlier.under_way_ns),
            overdue: self.overdue,
        }
    }

    /// Adds another's, of another core or another time.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.late += other.late;
        self.beyond += other.beyond;
        self.beyond_late += other.beyond_late;
        self.under_way_ns = self.under_way_ns.saturating_add(other.under_way_ns);
        self.overdue = other.overdue;
    }
}

/// What was served, in some time: by this a promised throughput is judged. Of several servers that
/// keep one together each can be added, also where each has counted over a time of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Served {
    /// Requests answered, within the contract and beyond it.
    pub requests: f64,
    /// Time that they were under way, summed, in ns.
    pub under_way_ns: f64,
}

impl Served {
    /// What these counts say of it.
    #[must_use]
    pub fn of(counts: &Counts) -> Self {
        Served {
            requests: (counts.requests + counts.beyond) as f64,
            under_way_ns: counts.under_way_ns as f64,
        }
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Served {
            requests: self.requests - earlier.requests,
            under_way_ns: self.under_way_ns - earlier.under_way_ns,
        }
    }

    /// So many times as much: what is served a second, in so many of them.
    #[must_use]
    pub fn times(&self, times: f64) -> Self {
        Served {
            requests: self.requests * times,
            under_way_ns: self.under_way_ns * times,
        }
    }

    /// Adds another server's, or another time's.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.under_way_ns += other.under_way_ns;
    }

    /// How many were under way in the mean of so long a time. With less than one whoever asked did
    /// not want more.
    #[must_use]
    pub fn under_way(&self, over_ns: Nanos) -> f64 {
        self.under_way_ns / over_ns.max(1) as f64
    }
}

/// What a window says of an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing: no request within the contract was answered or late, or less was asked for than
    /// promised.
    NoData,
    /// It was kept.
    Met,
    /// It was not.
    Missed,
}

impl Words for Outcome {
    #[rustfmt::skip]
    const ALL: &'static [(Self, Choice)] = &[
        (Self::NoData, ("no data", "No request within the contract was answered or late, or less was asked for than promised.")),
        (Self::Met, ("met", "It was kept.")),
        (Self::Missed, ("missed", "It was not kept.")),
    ];
}

/// Fewer requests under way than this, on average over a window, means that the clients asked for
/// less than was promised: one that wants more always has one under way.
const ASKS_FOR_MORE: f64 = 1.0;

/// Less of a request than this is none.
const ROUNDING: f64 = 1e-6;

impl Latency {
    /// How many of this many requests may be late, so that the percentile (by nearest rank) is
    /// still within its bound.
    #[must_use]
    pub fn late_max(&self, requests: u64) -> u64 {
        let rank = (self.percentile / 100.0 * requests as f64).ceil();
        requests - (rank as u64).min(requests)
    }

    /// The part of all requests that may be late, 0 to 1.
    #[must_use]
    pub fn late_part(&self) -> f64 {
        1.0 - self.percentile / 100.0
    }

    /// Requests that it takes for the percentile to be something else than their maximum.
    #[must_use]
    pub fn sample_least(&self) -> u64 {
        (1.0 / self.late_part()).ceil() as u64
    }

    fn judge(&self, counts: &Counts) -> Outcome {
        // Who waits for longer than promised is late, whenever the answer comes.
        let late = counts.late + counts.overdue;
        match counts.requests + counts.overdue {
            0 => Outcome::NoData,
            requests if late > self.late_max(requests) => Outcome::Missed,
            _ => Outcome::Met,
        }
    }
}

impl Objective {
    /// Whether it was kept in a window of [`Objective::window_ns`] in which this happened.
    #[must_use]
    pub fn judge(&self, counts: &Counts) -> Outcome {
        self.judge_served(counts, &Served::of(counts))
    }

    /// The same where what was `served` is not told by the counts of the window: others serve it,
    /// too, and what they counted is known at other times than the window's.
    #[must_use]
    pub fn judge_served(&self, counts: &Counts, served: &Served) -> Outcome {
        let latency = self.latency.map(|latency| latency.judge(counts));
        let throughput = (self.throughput_per_s).map(|per_s| self.judge_rate(per_s, served));
        let mut outcomes = latency.into_iter().chain(throughput);
        let first = outcomes.next().unwrap_or(Outcome::NoData);
        outcomes.fold(first, |all, one| match (all, one) {
            (Outcome::Missed, _) | (_, Outcome::Missed) => Outcome::Missed,
            (Outcome::Met, _) | (_, Outcome::Met) => Outcome::Met,
            _ => Outcome::NoData,
        })
    }

    fn judge_rate(&self, per_s: f64, served: &Served) -> Outcome {
        let window_s = self.window_ns as f64 / 1e9;
        // Sums of rates are not exact.
        let requests = served.requests + ROUNDING;
        if requests >= (per_s * window_s).floor() && served.requests > ROUNDING {
            Outcome::Met
        } else if served.under_way(self.window_ns) < ASKS_FOR_MORE {
            Outcome::NoData
        } else {
            Outcome::Missed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW_S: u64 = 10;

    fn objective(latency: Option<f64>, throughput_per_s: Option<f64>) -> Objective {
        Objective {
            latency: latency.map(|percentile| Latency {
                percentile,
                at_most_ns: 20_000_000,
            }),
            throughput_per_s,
            contract_per_s: None,
            importance: 50,
            window_ns: WINDOW_S * 1_000_000_000,
        }
    }

    fn counts(requests: u64, late: u64) -> Counts {
        Counts {
            requests,
            late,
            ..Counts::default()
        }
    }

    #[test]
    fn a_percentile_is_kept_while_few_enough_are_late() {
        let p99 = objective(Some(99.0), None);
        assert_eq!(p99.judge(&counts(0, 0)), Outcome::NoData);
        assert_eq!(p99.judge(&counts(40, 0)), Outcome::Met);
        assert_eq!(
            p99.judge(&counts(40, 1)),
            Outcome::Missed,
            "it is their maximum"
        );
        assert_eq!(p99.judge(&counts(1_000, 10)), Outcome::Met);
        assert_eq!(p99.judge(&counts(1_000, 11)), Outcome::Missed);
        assert_eq!(p99.latency.expect("one").sample_least(), 100);
    }

    #[test]
    fn who_waits_for_longer_than_promised_is_late_before_the_answer_comes() {
        let p99 = objective(Some(99.0), None);
        let waits = |requests, overdue| Counts {
            overdue,
            ..counts(requests, 0)
        };
        assert_eq!(p99.judge(&waits(0, 1)), Outcome::Missed, "a stall");
        assert_eq!(p99.judge(&waits(199, 1)), Outcome::Met);
        assert_eq!(p99.judge(&waits(50, 1)), Outcome::Missed);
        assert_eq!(waits(0, 1).since(&waits(0, 5)).overdue, 1, "no total");
    }

    #[test]
    fn requests_beyond_the_contract_break_no_promise() {
        let beyond = Counts {
            beyond: 500,
            beyond_late: 500,
            ..Counts::default()
        };
        assert_eq!(objective(Some(99.0), None).judge(&beyond), Outcome::NoData);
    }

    #[test]
    fn a_rate_is_missed_only_by_whom_wants_more() {
        let rate = objective(None, Some(40.0));
        let served = |requests, under_way: f64| {
            rate.judge(&Counts {
                under_way_ns: (under_way * rate.window_ns as f64) as u64,
                ..counts(requests, 0)
            })
        };
        assert_eq!(served(400, 8.0), Outcome::Met);
        assert_eq!(served(399, 8.0), Outcome::Missed);
        assert_eq!(served(200, 0.4), Outcome::NoData);
        assert_eq!(served(0, 0.0), Outcome::NoData);
        let both = objective(Some(99.0), Some(40.0));
        assert_eq!(both.judge(&counts(200, 0)), Outcome::Met);
        assert_eq!(both.judge(&counts(200, 3)), Outcome::Missed);
    }

    /// Two of three that keep 40 requests a second together have served them, each in another time.
    #[test]
    fn a_rate_is_kept_by_all_who_serve_together() {
        let rate = objective(None, Some(40.0));
        let per_s = |requests, under_way| Served {
            requests,
            under_way_ns: under_way * 1e9,
        };
        let judge = |all: [Served; 3]| {
            let mut sum = Served::default();
            all.iter()
                .for_each(|one| sum.add(&one.times(WINDOW_S as f64)));
            rate.judge_served(&Counts::default(), &sum)
        };
        let idle = Served::default();
        assert_eq!(
            judge([per_s(10.1, 8.0), per_s(29.9, 1.0), idle]),
            Outcome::Met
        );
        assert_eq!(
            judge([per_s(10.1, 8.0), per_s(29.8, 0.1), idle]),
            Outcome::Missed
        );
        assert_eq!(
            judge([per_s(10.1, 0.3), per_s(9.0, 0.6), idle]),
            Outcome::NoData
        );
        assert_eq!(judge([idle; 3]), Outcome::NoData);
    }

    proptest! {
        /// By counts it is the same as by the percentile itself.
        #[test]
        fn counts_say_what_the_percentile_says(
            mut latencies in prop::collection::vec(0u64..100, 1..300),
            percentile in 1.0..99.999f64,
        ) {
            let target = Latency { percentile, at_most_ns: 50 };
            let late = latencies.iter().filter(|ns| **ns > 50).count() as u64;
            latencies.sort_unstable();
            let rank = (percentile / 100.0 * latencies.len() as f64).ceil() as usize;
            let met = latencies[rank.max(1) - 1] <= 50;
            prop_assert_eq!(late <= target.late_max(latencies.len() as u64), met);
        }
    }
}
