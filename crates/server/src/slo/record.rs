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
    /// Requests answered a second, of those beyond the contract, too.
    pub served_per_s: f64,
    /// What it says.
    pub outcome: Outcome,
}

/// The part of the promised throughput that is to be served here, and what it comes to in the
/// window that is open.
#[derive(Clone, Copy)]
struct Part {
    is: f64,
    since: Nanos,
    /// Parts that were until then, each times how long, ns.
    before_ns: f64,
}

impl Part {
    fn new(now: Nanos, is: f64) -> Self {
        Self {
            is,
            since: now,
            before_ns: 0.0,
        }
    }

    fn until(&self, now: Nanos) -> f64 {
        self.before_ns + self.is * now.saturating_sub(self.since) as f64
    }
}

/// The windows of one promise.
pub struct Record {
    began: Nanos,
    before: Reading,
    part: Part,
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
            part: Part::new(now, 1.0),
            windows: VecDeque::new(),
            history: History::default(),
        }
    }

    /// The part of the promised throughput that is to be served here: all of it, unless several
    /// fronts keep it together.
    pub fn part(&self) -> f64 {
        self.part.is
    }

    /// It is this part from now on. A window is judged by the mean of what it was meanwhile.
    pub fn set_part(&mut self, now: Nanos, part: f64) {
        self.part = Part {
            before_ns: self.part.until(now),
            ..Part::new(now, part)
        };
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
        self.part = Part::new(now, self.part.is);
    }

    /// The server ends at this time of day: what came of requests in the window that is open
    /// counts.
    pub fn end(&mut self, reading: Reading, unix_s: u64) {
        let counts = reading.counts.since(&self.before.counts);
        self.history.count_rest(unix_s, &counts);
        self.before = reading;
    }

    /// The window that is open, as if it ended at `now`.
    pub fn window(&self, objective: &Objective, reading: &Reading, now: Nanos) -> Window {
        let counts = reading.counts.since(&self.before.counts);
        let mut served = reading.served.since(&self.before.served);
        // Who waits asks for more, though nothing of it was answered yet.
        served.under_way_ns += reading.unanswered.in_window_ns as f64;
        let length_ns = now.saturating_sub(self.began);
        let within = reading.within.since(&self.before.within);
        let latency_ns = objective.latency.filter(|_| !within.is_empty());
        let latency_ns = latency_ns.map(|latency| within.quantile(latency.percentile / 100.0));
        let part = self.part.until(now) / length_ns.max(1) as f64;
        let as_long = Objective {
            window_ns: length_ns,
            throughput_per_s: objective.throughput_per_s.map(|per_s| part * per_s),
            ..*objective
        };
        Window {
            ended: now,
            length_ns,
            counts,
            latency_ns,
            served_per_s: served.requests * 1e9 / length_ns.max(1) as f64,
            outcome: as_long.judge_served(&counts, &served),
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
                waits.count(meter.objective(), waited_ns, false);
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
        waits.count(rate.objective(), 60 * S, false);
        rate.waits(0, waits);
        let window = rate
            .record
            .lock()
            .window(rate.objective(), &rate.read(), 11 * S);
        assert_eq!(window.outcome, Outcome::Missed, "a scan of a minute");
    }

    /// Fronts that keep 40 a second together: half of them are to be served here, and later all.
    #[test]
    fn a_window_is_judged_by_the_part_of_a_throughput_that_is_to_be_served_here() {
        let slo = Slo {
            class: SloClass::Any,
            throughput_per_s: Some(40.0),
            ..Slo::default()
        };
        let meter = Meter::new(slo, 1, S);
        let mut record = meter.record.lock();
        let took = Took {
            latency_ns: S,
            ..Took::default()
        };
        let mut close = |now, requests| {
            meter.answered(0, &took, requests);
            record.close(meter.objective(), meter.read(), now, now / S);
            let last = *record.windows().next_back().expect("one");
            record.set_part(now, 0.5);
            (last.outcome, last.served_per_s)
        };
        assert_eq!(close(11 * S, 399), (Outcome::Missed, 39.9));
        assert_eq!(close(21 * S, 200), (Outcome::Met, 20.0));
        assert_eq!(close(31 * S, 199), (Outcome::Missed, 19.9));
        record.set_part(36 * S, 1.0);
        meter.answered(0, &took, 300);
        record.close(meter.objective(), meter.read(), 41 * S, 41);
        let last = record.windows().next_back().expect("one");
        assert_eq!(
            (last.outcome, record.part()),
            (Outcome::Met, 1.0),
            "{last:?}"
        );
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
