//! What became of a promise at all fronts that keep it together: their counts and latencies are
//! added up, and judged as those of one server are.

use policy::slo::Objective;
use policy::Nanos;

use super::reading::Reading;
use super::record::Record;

/// All fronts together, as this one hears of the others. Nothing, until it has heard of one.
#[derive(Default)]
pub struct Whole {
    fronts: usize,
    /// What the others have counted since they were first heard of, and what waits there now.
    others: Reading,
    record: Option<Record>,
}

impl Whole {
    /// There are so many `fronts` with this one, and the others have counted so much more since
    /// the last time. `own` is what this one has counted since its start.
    pub fn hear(
        &mut self,
        fronts: usize,
        more: &Reading,
        own: impl FnOnce() -> Reading,
        now: Nanos,
    ) {
        self.fronts = fronts;
        if fronts < 2 && self.record.is_none() {
            return;
        }
        self.record.get_or_insert_with(|| Record::since(now, own()));
        self.others.grow(more);
    }

    /// Closes the window that is open, if it is over at `now`.
    pub fn close(
        &mut self,
        objective: &Objective,
        own: impl FnOnce() -> Reading,
        now: Nanos,
        unix_s: u64,
    ) {
        let Some(record) = self.record.as_mut().filter(|it| it.ends(objective) <= now) else {
            return;
        };
        record.close(objective, own().and(&self.others), now, unix_s);
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

    #[test]
    fn a_front_alone_has_no_whole() {
        let meter = meter(None);
        let mut whole = Whole::default();
        whole.hear(1, &Reading::default(), || meter.read(), S);
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
        whole.hear(2, &Reading::default(), || here.read(), S);
        answer(&here, &[5; 900]);
        answer(&there, &[[5; 9].as_slice(), &[50]].concat().repeat(10));
        let judged = |meter: &Meter| meter.objective().judge(&meter.read().counts);
        assert_eq!(judged(&there), Outcome::Missed);
        whole.hear(2, &there.read(), || here.read(), 2 * S);
        whole.close(here.objective(), || here.read(), 30 * S, 30);
        let (fronts, record) = whole.seen().expect("of two");
        let last = record.windows().next_back().expect("one is over");
        assert_eq!((fronts, last.outcome), (2, Outcome::Met));
        assert_eq!((last.counts.requests, last.counts.late), (1_000, 10));
        // What was here before the other came is not of this window; what waits there is.
        let mut stalled = Reading::default();
        stalled.unanswered.overdue = 12;
        whole.hear(2, &stalled, || here.read(), 31 * S);
        whole.close(here.objective(), || here.read(), 60 * S, 60);
        let outcome = |whole: &Whole| {
            let (_, record) = whole.seen().expect("of two");
            record.windows().next_back().map(|last| last.outcome)
        };
        assert_eq!(outcome(&whole), Some(Outcome::Missed));
        // The other is gone, and nobody waits for it any more.
        whole.hear(1, &Reading::default(), || here.read(), 61 * S);
        whole.close(here.objective(), || here.read(), 90 * S, 90);
        assert_eq!(outcome(&whole), Some(Outcome::NoData));
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
            whole.hear(3, &Reading::default(), Reading::default, S);
            let others = fronts[1].read().and(&fronts[2].read());
            whole.hear(3, &others, Reading::default, 2 * S);
            whole.close(one.objective(), || fronts[0].read(), 11 * S, 11);
            let (_, record) = whole.seen().expect("of three");
            prop_assert_eq!(record.windows().next_back(), alone.windows().next_back());
        }
    }
}
