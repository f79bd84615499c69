//! How well a promise was kept over a longer time.

use super::{Counts, Latency, Outcome};

/// Windows by what they said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attainment {
    /// Kept.
    pub met: u64,
    /// Not kept.
    pub missed: u64,
    /// Said nothing.
    pub no_data: u64,
}

impl Attainment {
    /// Counts a window.
    pub fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Met => self.met += 1,
            Outcome::Missed => self.missed += 1,
            Outcome::NoData => self.no_data += 1,
        }
    }

    /// Adds another time's.
    pub fn add(&mut self, other: &Self) {
        self.met += other.met;
        self.missed += other.missed;
        self.no_data += other.no_data;
    }

    /// Windows that said something.
    #[must_use]
    pub fn judged(&self) -> u64 {
        self.met + self.missed
    }

    /// The part of these in which it was kept, 0 to 1; `None`: there are none.
    #[must_use]
    pub fn part(&self) -> Option<f64> {
        let judged = self.judged();
        (judged > 0).then(|| self.met as f64 / judged as f64)
    }
}

/// How much of what may be late was late. A p99 allows one request of a hundred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Requests within the contract.
    pub requests: u64,
    /// Of these, late.
    pub late: u64,
    /// How many of this many requests may be late.
    pub allowed: f64,
}

impl Budget {
    /// Of a promise of latency, over the time of these counts.
    #[must_use]
    pub fn of(latency: &Latency, counts: &Counts) -> Self {
        Budget {
            requests: counts.requests,
            late: counts.late,
            allowed: latency.late_part() * counts.requests as f64,
        }
    }

    /// How fast the budget is used: 1 uses up exactly what is allowed, 10 ten times as much;
    /// `None`: there was no request.
    #[must_use]
    pub fn burn(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.late as f64 / self.allowed.max(f64::MIN_POSITIVE))
    }

    /// The part of the budget that is left, 1 to 0, and below 0 what it was overdrawn by; `None`:
    /// there was no request.
    #[must_use]
    pub fn left(&self) -> Option<f64> {
        self.burn().map(|burn| 1.0 - burn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_without_data_are_neither_kept_nor_missed() {
        let mut attainment = Attainment::default();
        assert_eq!(attainment.part(), None);
        for outcome in [Outcome::NoData, Outcome::Met, Outcome::Met, Outcome::Missed] {
            attainment.count(outcome);
        }
        assert_eq!((attainment.judged(), attainment.no_data), (3, 1));
        assert_eq!(attainment.part(), Some(2.0 / 3.0));
    }

    #[test]
    fn a_budget_is_what_may_be_late() {
        let p99 = Latency {
            percentile: 99.0,
            at_most_ns: 1,
        };
        let of = |requests, late| {
            let counts = Counts {
                requests,
                late,
                ..Counts::default()
            };
            Budget::of(&p99, &counts)
        };
        let near = |value: Option<f64>, wanted: f64| (value.expect("one") - wanted).abs() < 1e-9;
        assert_eq!(of(0, 0).left(), None);
        assert!(near(of(1_000, 5).left(), 0.5) && near(of(1_000, 20).burn(), 2.0));
        assert!(near(of(1_000, 20).left(), -1.0));
    }
}
