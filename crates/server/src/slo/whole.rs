//! What became of a promise at all fronts that keep it together: their counts and latencies are
//! added up, and judged as those of one server are.

use policy::slo::{Objective, Served};
use policy::Nanos;

use super::history::History;
use super::reading::Reading;
use super::record::Record;

/// What was heard of the others counts for so long: then it is not known what they serve.
const COUNTS_FOR_NS: Nanos = 4_000_000_000;

/// What the other fronts tell of a promise.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    /// What they have counted since the last time, and what waits there now.
    pub more: Reading,
    /// What they serve a second.
    pub per_s: Served,
}

/// All fronts together, as this one hears of the others. Nothing, until it has heard of one.
///
/// What the others count is heard once a second, in pieces of a second. A window of a second may
/// have two of them in it, or none. That is nothing to a percentile, but of a throughput a window
/// of half of the requests would say that half was served. So what others serve counts as so much a
/// second, for as long as nothing else is heard.
#[derive(Default)]
pub struct Whole {
    fronts: usize,
    /// What the others have counted since they were first heard of, and what waits there now; what
    /// they have served, until `heard_at` or later.
    others: Reading,
    /// What they serve a second.
    per_s: Served,
    heard_at: Nanos,
    /// So far is counted what they serve.
    served_until: Nanos,
    /// For some of the window that is open it is not known what they serve.
    unknown: bool,
    record: Option<Record>,
    /// What was known before this server's start, until there is a record.
    before: History,
}

impl Whole {
    /// There are so many `fronts` with this one, and that is what the others tell. `own` is what
    /// this one has counted since its start.
    pub fn hear(
        &mut self,
        fronts: usize,
        elsewhere: &Elsewhere,
        own: impl FnOnce() -> Reading,
        now: Nanos,
    ) {
        self.fronts = fronts;
        if fronts < 2 && self.record.is_none() {
            return;
        }
        match &self.record {
            None => {
                let mut record = Record::since(now, own());
                record.history = std::mem::take(&mut self.before);
                self.record = Some(record);
            }
            Some(_) => self.serve(now),
        }
        self.served_until = now;
        self.others.grow(&elsewhere.more);
        (self.per_s, self.heard_at) = (elsewhere.per_s, now);
    }

    /// Counts what the others have served until `now`.
    fn serve(&mut self, now: Nanos) {
        let until = now.min(self.heard_at.saturating_add(COUNTS_FOR_NS));
        self.unknown |= until < now;
        let passed_s = until.saturating_sub(self.served_until) as f64 / 1e9;
        self.others.served.add(&self.per_s.times(passed_s));
        self.served_until = now;
    }

    /// Closes the window that is open, if it is over at `now`.
    pub fn close(
        &mut self,
        objective: &Objective,
        own: impl FnOnce() -> Reading,
        now: Nanos,
        unix_s: u64,
    ) {
        let ends = self.record.as_ref().map(|record| record.ends(objective));
        if ends.is_none_or(|ends| ends > now) {
            return;
        }
        self.serve(now);
        let unknown = std::mem::take(&mut self.unknown);
        let known = Objective {
            throughput_per_s: objective.throughput_per_s.filter(|_| !unknown),
            ..*objective
        };
        if let Some(record) = &mut self.record {
            record.close(&known, own().and(&self.others), now, unix_s);
        }
    }

    /// The server ends at this time of day.
    pub fn end(&mut self, own: impl FnOnce() -> Reading, unix_s: u64) {
        if let Some(record) = &mut self.record {
            record.end(own().and(&self.others), unix_s);
        }
    }

    /// How well the promise was kept, as far as it is known.
    pub fn history(&self) -> &History {
        let record = self.record.as_ref();
        record.map_or(&self.before, |record| &record.history)
    }

    /// The same, for what was known before this server's start.
    pub fn history_mut(&mut self) -> &mut History {
        match &mut self.record {
            Some(record) => &mut record.history,
            None => &mut self.before,
        }
    }

    /// How many fronts there are, and what became of the promise at all of them; none: this server
    /// was alone all the time.
    pub fn seen(&self) -> Option<(usize, &Record)> {
        Some((self.fronts, self.record.as_ref()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slo::{Meter, Took};
    use policy::slo::Outcome;
    use proptest::prelude::*;
    use settings::tenant::{Slo, SloClass};

    const S: Nanos = 1_000_000_000;
    const MS: Nanos = 1_000_000;

    fn meter(contract_per_s: Option<f64>) -> Meter {
        let slo = Slo {
            class: SloClass::Get,
            at_most_ns: Some(20 * MS),
            contract_per_s,
            ..Slo::default()
        };
        Meter::new(slo, 1, S)
    }

    fn answer(meter: &Meter, latencies_ms: &[u64]) {
        for latency_ms in latencies_ms {
            let took = Took {
                came: S,
                latency_ns: latency_ms * MS,
                ..Took::default()
            };
            meter.answered(0, &took, 1);
        }
    }

    /// What another front tells that has counted so much since.
    fn counted(more: Reading) -> Elsewhere {
        let more = Reading {
            served: Served::default(),
            ..more
        };
        Elsewhere {
            more,
            per_s: Served::default(),
        }
    }

    #[test]
    fn a_front_alone_has_no_whole() {
        let meter = meter(None);
        let mut whole = Whole::default();
        whole.hear(1, &Elsewhere::default(), || meter.read(), S);
        whole.close(meter.objective(), || meter.read(), 60 * S, 60);
        assert!(whole.seen().is_none());
    }

    /// Ten requests are late at one front of two. There that is one of ten; of all it is one of a
    /// hundred.
    #[test]
    fn late_requests_of_one_front_are_those_of_all() {
        let [here, there] = [meter(None), meter(None)];
        let mut whole = Whole::default();
        answer(&here, &[5; 7]);
        whole.hear(2, &Elsewhere::default(), || here.read(), S);
        answer(&here, &[5; 900]);
        answer(&there, &[[5; 9].as_slice(), &[50]].concat().repeat(10));
        let judged = |meter: &Meter| meter.objective().judge(&meter.read().counts);
        assert_eq!(judged(&there), Outcome::Missed);
        whole.hear(2, &counted(there.read()), || here.read(), 2 * S);
        whole.close(here.objective(), || here.read(), 30 * S, 30);
        let (fronts, record) = whole.seen().expect("of two");
        let last = record.windows().next_back().expect("one is over");
        assert_eq!((fronts, last.outcome), (2, Outcome::Met));
        assert_eq!((last.counts.requests, last.counts.late), (1_000, 10));
        // What was here before the other came is not of this window; what waits there is.
        let mut stalled = Elsewhere::default();
        stalled.more.unanswered.overdue = 12;
        whole.hear(2, &stalled, || here.read(), 31 * S);
        whole.close(here.objective(), || here.read(), 60 * S, 60);
        let outcome = |whole: &Whole| {
            let (_, record) = whole.seen().expect("of two");
            record.windows().next_back().map(|last| last.outcome)
        };
        assert_eq!(outcome(&whole), Some(Outcome::Missed));
        // The other is gone, and nobody waits for it any more.
        whole.hear(1, &Elsewhere::default(), || here.read(), 61 * S);
        whole.close(here.objective(), || here.read(), 90 * S, 90);
        assert_eq!(outcome(&whole), Some(Outcome::NoData));
    }

    /// Of 100 a second this front serves 30, and all others 70: every window of a second says so,
    /// though there is one in which nothing of the others was heard, and one in which twice was.
    #[test]
    fn a_throughput_is_that_of_all_fronts_in_windows_that_end_when_nothing_was_heard() {
        let slo = Slo {
            class: SloClass::Get,
            throughput_per_s: Some(100.0),
            window_ns: Some(S),
            ..Slo::default()
        };
        let here = Meter::new(slo, 1, S);
        let mut whole = Whole::default();
        let mut told = Elsewhere {
            per_s: Served {
                requests: 70.0,
                under_way_ns: 3e9,
            },
            ..Elsewhere::default()
        };
        let last = |whole: &Whole| {
            let (_, record) = whole.seen().expect("of several");
            record
                .windows()
                .next_back()
                .map(|last| (last.outcome, last.served_per_s.round()))
        };
        whole.hear(3, &told, || here.read(), S);
        for (second, heard) in [(2, &[1_200, 1_700][..]), (3, &[]), (4, &[3_100, 3_900])] {
            for at_ms in heard {
                whole.hear(3, &told, || here.read(), at_ms * MS);
            }
            answer(&here, &[5; 30]);
            whole.close(here.objective(), || here.read(), second * S, second);
            assert_eq!(
                last(&whole),
                Some((Outcome::Met, 100.0)),
                "in second {second}"
            );
        }
        // One request less, and somebody wants more.
        answer(&here, &[5; 29]);
        whole.close(here.objective(), || here.read(), 5 * S, 5);
        assert_eq!(last(&whole), Some((Outcome::Missed, 99.0)));
        // Less is asked for.
        told.per_s.under_way_ns = 0.2e9;
        told.per_s.requests = 60.0;
        whole.hear(3, &told, || here.read(), 5 * S);
        whole.close(here.objective(), || here.read(), 6 * S, 6);
        assert_eq!(last(&whole), Some((Outcome::NoData, 60.0)));
        // Who hears of nobody does not know what is served.
        told.per_s.under_way_ns = 3e9;
        whole.hear(3, &told, || here.read(), 6 * S);
        for second in 7..=11 {
            whole.close(here.objective(), || here.read(), second * S, second);
        }
        assert_eq!(last(&whole).map(|last| last.0), Some(Outcome::NoData));
    }

    proptest! {
        /// Requests spread over fronts in any way make the window that they make at one.
        #[test]
        fn a_window_is_the_same_however_requests_are_spread(
            requests in prop::collection::vec((0..3usize, 1u64..100), 1..200),
        ) {
            let one = meter(None);
            let mut alone = one.record.lock();
            let fronts = [meter(None), meter(None), meter(None)];
            for (front, latency_ms) in &requests {
                answer(&one, &[*latency_ms]);
                answer(&fronts[*front], &[*latency_ms]);
            }
            alone.close(one.objective(), one.read(), 11 * S, 11);
            let mut whole = Whole::default();
            whole.hear(3, &Elsewhere::default(), Reading::default, S);
            let others = fronts[1].read().and(&fronts[2].read());
            let mut others = counted(others);
            // All that they served in the window, which ends nine seconds later.
            others.per_s = Served::of(&others.more.counts).times(1.0 / 9.0);
            for second in 2..11 {
                whole.hear(3, &others, Reading::default, second * S);
                others.more = Reading::default();
            }
            whole.close(one.objective(), || fronts[0].read(), 11 * S, 11);
            let (_, record) = whole.seen().expect("of three");
            let last = |record: &Record| {
                let mut last = *record.windows().next_back().expect("one");
                last.served_per_s = (last.served_per_s * 1e6).round();
                last
            };
            prop_assert_eq!(last(record), last(&alone));
        }
    }
}
