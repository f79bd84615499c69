//! What became of a promise: its last windows, and how well it was kept over longer times.

use std::collections::VecDeque;

use policy::slo::{Counts, Objective, Outcome};
use policy::Nanos;

use super::history::History;
use super::reading::Reading;

/// Windows that are kept one by one.
const WINDOWS_KEPT: usize = 60;

/// A window that is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// When it ended, ns of the server's clock.
    pub ended: Nanos,
    /// How long it was, ns.
    pub length_ns: Nanos,
    /// Requests in it.
    pub counts: Counts,
    /// The promised percentile of those within the contract, ns; none: there were none, or no
    /// latency was promised.
    pub latency_ns: Option<f64>,
    /// What it says.
    pub outcome: Outcome,
}

/// The windows of one promise.
pub struct Record {
    began: Nanos,
    before: Reading,
    windows: VecDeque<Window>,
    /// How well it was kept in the last hour and 30 days.
    pub history: History,
}

impl Record {
    /// The first window begins.
    pub fn new(now: Nanos) -> Self {
        Self {
            began: now,
            before: Reading::default(),
            windows: VecDeque::new(),
            history: History::default(),
        }
    }

    /// The first window begins now, when so much had been counted already.
    pub fn since(now: Nanos, before: Reading) -> Self {
        Self {
            before,
            ..Self::new(now)
        }
    }

    /// When the window that is open is over.
    pub fn ends(&self, objective: &Objective) -> Nanos {
        self.began.saturating_add(objective.window_ns)
    }

    /// Closes the window that is open, at `now`; `unix_s` is the time of day.
    pub fn close(&mut self, objective: &Objective, reading: Reading, now: Nanos, unix_s: u64) {
        let window = self.window(objective, &reading, now);
        if self.windows.len() == WINDOWS_KEPT {
            self.windows.pop_front();
        }
        self.windows.push_back(window);
        self.history.count(unix_s, window.outcome, &window.counts);
        (self.began, self.before) = (now, reading);
    }

    /// The window that is open, as if it ended at `now`.
    pub fn window(&self, objective: &Objective, reading: &Reading, now: Nanos) -> Window {
        let mut counts = reading.counts.since(&self.before.counts);
        // Who waits asks for more, though nothing of it was answered yet.
        counts.under_way_ns += reading.unanswered.in_window_ns;
        let length_ns = now.saturating_sub(self.began);
        let within = reading.within.since(&self.before.within);
        let latency_ns = objective.latency.filter(|_| !within.is_empty());
        let latency_ns = latency_ns.map(|latency| within.quantile(latency.percentile / 100.0));
        let as_long = Objective {
            window_ns: length_ns,
            ..*objective
        };
        Window {
            ended: now,
            length_ns,
            counts,
            latency_ns,
            outcome: as_long.judge(&counts),
        }
    }

    /// The windows that are over, oldest first.
    pub fn windows(&self) -> impl DoubleEndedIterator<Item = &Window> + ExactSizeIterator {
        self.windows.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slo::{Meter, Took, Unanswered};
    use settings::tenant::{Slo, SloClass};

    const S: Nanos = 1_000_000_000;

    #[test]
    fn a_window_of_a_stall_is_missed_and_one_in_which_nobody_waits_says_nothing() {
        let slo = Slo {
            class: SloClass::Get,
            at_most_ns: Some(20_000_000),
            throughput_per_s: Some(1.0),
            ..Slo::default()
        };
        let meter = Meter::new(slo, 2, S);
        let mut record = meter.record.lock();
        let mut close = |now, waited_ns: Option<Nanos>| {
            let mut waits = Unanswered::default();
            if let Some(waited_ns) = waited_ns {
                waits.count(meter.objective(), waited_ns);
            }
            meter.waits(1, waits);
            record.close(meter.objective(), meter.read(), now, now / S);
            record.windows().next_back().expect("one").outcome
        };
        assert_eq!(close(11 * S, None), Outcome::NoData);
        assert_eq!(close(21 * S, Some(10_000_000)), Outcome::NoData);
        assert_eq!(close(31 * S, Some(30_000_000)), Outcome::Missed);
        assert_eq!(close(41 * S, Some(10 * S)), Outcome::Missed);
        assert_eq!(close(51 * S, None), Outcome::NoData);
        drop(record);
        let slo = Slo {
            throughput_per_s: Some(1.0),
            ..Slo::default()
        };
        let rate = Meter::new(slo, 1, S);
        let mut waits = Unanswered::default();
        waits.count(rate.objective(), 60 * S);
        rate.waits(0, waits);
        let window = rate
            .record
            .lock()
            .window(rate.objective(), &rate.read(), 11 * S);
        assert_eq!(window.outcome, Outcome::Missed, "a scan of a minute");
    }

    #[test]
    fn a_window_is_judged_by_what_was_answered_in_it() {
        let slo = Slo {
            class: SloClass::Get,
            at_most_ns: Some(20_000_000),
            ..Slo::default()
        };
        let meter = Meter::new(slo, 1, S);
        let mut record = meter.record.lock();
        let mut close = |now| {
            assert_eq!(record.ends(meter.objective()), now);
            record.close(meter.objective(), meter.read(), now, now / S);
            *record.windows().next_back().expect("one")
        };
        let answer = |at, latency_ns| {
            let took = Took {
                came: at,
                latency_ns,
                ..Took::default()
            };
            meter.answered(0, &took, 1);
        };
        (0..40).for_each(|at| answer(at, 10_000_000));
        let met = close(11 * S);
        assert_eq!((met.outcome, met.counts.requests), (Outcome::Met, 40));
        assert!(met
            .latency_ns
            .is_some_and(|ns| (ns - 1e7).abs() < 1e7 / 32.0));
        answer(0, 30_000_000);
        let missed = close(21 * S);
        assert_eq!((missed.outcome, missed.counts.late), (Outcome::Missed, 1));
        let none = close(31 * S);
        assert_eq!((none.outcome, none.latency_ns), (Outcome::NoData, None));
        let hour = record.history.last_hour(31);
        let Counts { requests, late, .. } = hour.counts();
        assert_eq!((hour.met, hour.missed, requests, late), (1, 1, 41, 1));
    }
}
