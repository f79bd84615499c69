//! What became of promises at each front: told once a second, and heard of the others, so that each
//! front can add all of them up.
//!
//! What is told is what came since it was told last, a round each, with the last few rounds beside
//! it: whoever reads late misses none, and nobody need remember what the others have counted.

use std::collections::{BTreeMap, VecDeque};

use front::Value;
use policy::slo::Counts;
use policy::Nanos;
use serde::{Deserialize, Serialize};
use telemetry::HistogramSnapshot;

use crate::slo::{Reading, Unanswered};

/// Whoever reads so many rounds too late misses some.
const ROUNDS_TOLD: usize = 4;

/// Promises that are told of in a round at most: a text of some hundred KiB. If something came of
/// more, the others are told of in the next rounds.
const PROMISES_MAX: usize = 250;

/// A tenant, and what a promise is called among its promises.
pub type Which = (String, String);

/// What fronts tell each other of promises.
pub struct Attained {
    /// Another after each start.
    era: u64,
    number: u64,
    at: Nanos,
    /// What was counted when it was last told.
    before: BTreeMap<Which, Reading>,
    told: VecDeque<Round>,
    /// By front, what was read of it last: the era, and the number of the round.
    heard: BTreeMap<String, (u64, u64)>,
}

/// All that one front tells.
#[derive(Serialize, Deserialize)]
struct Entry<R> {
    era: u64,
    rounds: R,
}

#[derive(Clone, Serialize, Deserialize)]
struct Round {
    number: u64,
    promises: Vec<Told>,
}

/// What came of one promise in a round, and what waits at its end.
#[derive(Clone, Serialize, Deserialize)]
struct Told {
    tenant: String,
    promise: String,
    /// Requests, late, beyond the contract, late beyond it; time under way, ns.
    counts: [u64; 5],
    /// Overdue; time that they have waited in the window, ns.
    waits: [u64; 2],
    within: HistogramSnapshot,
}

impl Attained {
    /// Of a front that has told nothing. Its `era` is none that it had before.
    pub fn new(era: u64) -> Self {
        Self {
            era,
            number: 0,
            at: 0,
            before: BTreeMap::new(),
            told: VecDeque::new(),
            heard: BTreeMap::new(),
        }
    }

    /// Whether it is time to tell again.
    pub fn is_due(&self, now: Nanos) -> bool {
        now.saturating_sub(self.at) >= super::lookout::LOOK_EVERY_NS
    }

    /// What to tell of these promises, of which so much was counted since the start.
    pub fn tell(&mut self, mut read: Vec<(Which, Reading)>, now: Nanos) -> String {
        self.at = now;
        self.number += 1;
        let first = self.number as usize * PROMISES_MAX % read.len().max(1);
        read.rotate_left(first);
        let mut known = std::mem::take(&mut self.before);
        let mut promises = Vec::new();
        for (which, reading) in read {
            let before = match known.remove(&which) {
                Some(before) => before,
                // Those who hear of this front for the first time count from here, too.
                None if self.number == 1 => reading.clone(),
                None => Reading::default(),
            };
            let since = reading.since(&before);
            let counted = match promises.len() < PROMISES_MAX || since.is_empty() {
                true => reading,
                false => before,
            };
            if promises.len() < PROMISES_MAX && !since.is_empty() {
                promises.push(Told::of(&which, since));
            }
            self.before.insert(which, counted);
        }
        let number = self.number;
        self.told.push_back(Round { number, promises });
        if self.told.len() > ROUNDS_TOLD {
            self.told.pop_front();
        }
        let entry = Entry {
            era: self.era,
            rounds: &self.told,
        };
        // Numbers and texts can always be written.
        serde_json::to_string(&entry).unwrap_or_default()
    }

    /// How many fronts tell, with this one, as it has heard.
    pub fn fronts(&self) -> usize {
        1 + self.heard.len()
    }

    /// Hears what the others tell: names of fronts and texts by turns, and `there` knows which of
    /// them are there and another than this one. Returns what came of each promise since the last
    /// time at all of them, and what waits there now.
    pub fn hear(
        &mut self,
        entries: &Value,
        there: impl Fn(&str) -> bool,
    ) -> BTreeMap<Which, Reading> {
        let mut all: BTreeMap<Which, Reading> = BTreeMap::new();
        let mut heard = BTreeMap::new();
        let pairs = entries.items().chunks_exact(2);
        let texts = pairs.filter_map(|pair| Some((pair[0].text()?, pair[1].text()?)));
        for (front, text) in texts.filter(|(front, _)| there(front)) {
            let Ok(entry) = serde_json::from_str::<Entry<Vec<Round>>>(text) else {
                continue;
            };
            let newest = entry.rounds.last().map_or(0, |round| round.number);
            // Of a front that was not there before, what it counted until now is not known of.
            let from = match self.heard.get(front) {
                None => newest,
                Some((era, number)) if *era == entry.era => *number,
                Some(_) => 0,
            };
            for round in entry.rounds {
                let last = round.number == newest;
                for told in round.promises {
                    let (which, mut reading) = told.reading();
                    if round.number <= from {
                        reading = Reading {
                            unanswered: reading.unanswered,
                            ..Reading::default()
                        };
                    }
                    if !last {
                        reading.unanswered = Unanswered::default();
                    }
                    let sum = all.entry(which).or_default();
                    *sum = std::mem::take(sum).and(&reading);
                }
            }
            heard.insert(front.to_owned(), (entry.era, newest));
        }
        self.heard = heard;
        all
    }
}

impl Told {
    fn of((tenant, promise): &Which, reading: Reading) -> Self {
        let counts = reading.counts;
        Self {
            tenant: tenant.clone(),
            promise: promise.clone(),
            counts: [
                counts.requests,
                counts.late,
                counts.beyond,
                counts.beyond_late,
                counts.under_way_ns,
            ],
            waits: [reading.unanswered.overdue, reading.unanswered.in_window_ns],
            within: reading.within,
        }
    }

    fn reading(self) -> (Which, Reading) {
        let [requests, late, beyond, beyond_late, under_way_ns] = self.counts;
        let [overdue, in_window_ns] = self.waits;
        let reading = Reading {
            counts: Counts {
                requests,
                late,
                beyond,
                beyond_late,
                under_way_ns,
                overdue,
            },
            within: self.within,
            unanswered: Unanswered {
                overdue,
                in_window_ns,
                ..Unanswered::default()
            },
            ..Reading::default()
        };
        ((self.tenant, self.promise), reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    fn get() -> Which {
        ("web".into(), "get".into())
    }

    fn reading(requests: u64, late: u64, overdue: u64) -> Reading {
        let histogram = telemetry::Histogram::new();
        histogram.record_many(1_000_000, requests);
        Reading {
            counts: Counts {
                requests,
                late,
                under_way_ns: requests * 1_000_000,
                overdue,
                ..Counts::default()
            },
            within: histogram.snapshot(),
            unanswered: Unanswered {
                overdue,
                ..Unanswered::default()
            },
            ..Reading::default()
        }
    }

    fn entries(told: &[(&str, &str)]) -> Value {
        let words = told.iter().flat_map(|(front, text)| [*front, *text]);
        let text = |word: &str| Value::Text(word.as_bytes().to_vec());
        Value::List(words.map(text).collect())
    }

    /// One front tells and another reads.
    struct Pair {
        teller: Attained,
        reader: Attained,
        text: String,
    }

    impl Pair {
        fn new() -> Self {
            Self {
                teller: Attained::new(7),
                reader: Attained::new(8),
                text: String::new(),
            }
        }

        fn tell(&mut self, requests: u64, late: u64, overdue: u64) -> &mut Self {
            let read = vec![(get(), reading(requests, late, overdue))];
            self.text = self.teller.tell(read, S);
            self
        }

        fn hear(&mut self) -> (u64, u64, u64, u64) {
            let told = entries(&[("a", &self.text), ("gone", &self.text), ("b", "?")]);
            let heard = self.reader.hear(&told, |front| front != "gone");
            let one = heard.get(&get()).cloned().unwrap_or_default();
            assert_eq!(one.counts.overdue, one.unanswered.overdue);
            (
                one.counts.requests,
                one.counts.late,
                one.within.count(),
                one.counts.overdue,
            )
        }
    }

    #[test]
    fn what_is_counted_elsewhere_is_heard_once_and_whole() {
        let mut pair = Pair::new();
        // What came before they knew each other is nobody's.
        assert_eq!(pair.tell(1_000, 10, 0).hear(), (0, 0, 0, 0));
        assert_eq!(pair.tell(1_200, 12, 0).hear(), (200, 2, 200, 0));
        assert_eq!(pair.hear(), (0, 0, 0, 0), "it was heard already");
        // Some rounds late.
        pair.tell(1_210, 12, 5)
            .tell(1_220, 13, 0)
            .tell(1_230, 13, 0);
        assert_eq!(pair.hear(), (30, 1, 30, 0), "nobody waits any more");
        assert_eq!(pair.tell(1_230, 13, 4).hear(), (0, 0, 0, 4));
        assert_eq!(pair.hear(), (0, 0, 0, 4), "they still wait");
        assert_eq!(pair.tell(1_230, 13, 0).hear(), (0, 0, 0, 0));
        assert!(
            !pair.text.contains("web\",\"promise\":\"put"),
            "{}",
            pair.text
        );
    }

    #[test]
    fn of_very_many_promises_some_are_told_of_later() {
        let (mut teller, mut reader) = (Attained::new(7), Attained::new(8));
        let read = |requests: u64| {
            let which = |number| ("web".to_owned(), format!("get:w{number}"));
            let all =
                (0..2 * PROMISES_MAX + 9).map(|number| (which(number), reading(requests, 0, 0)));
            all.collect::<Vec<_>>()
        };
        let mut heard: BTreeMap<Which, u64> = BTreeMap::new();
        for round in 0..5 {
            let text = teller.tell(read(if round == 0 { 5 } else { 12 }), S);
            assert!(teller
                .told
                .iter()
                .all(|round| round.promises.len() <= PROMISES_MAX));
            for (which, one) in reader.hear(&entries(&[("a", &text)]), |_| true) {
                *heard.entry(which).or_default() += one.counts.requests;
            }
        }
        assert_eq!(heard.len(), 2 * PROMISES_MAX + 9);
        assert!(heard.values().all(|requests| *requests == 7), "each once");
    }

    #[test]
    fn a_front_that_starts_anew_is_heard_from_its_start() {
        let mut pair = Pair::new();
        pair.tell(1_000, 10, 0).hear();
        pair.teller = Attained::new(9);
        pair.tell(0, 0, 0);
        assert_eq!(pair.tell(40, 4, 0).hear(), (40, 4, 40, 0));
        // A promise that was changed there counts from nothing, too.
        assert_eq!(pair.tell(30, 1, 0).hear(), (30, 1, 30, 0));
        // One that was away is as one that comes.
        let empty = pair.reader.hear(&entries(&[]), |_| true);
        assert!(empty.is_empty());
        assert_eq!(pair.tell(90, 1, 0).hear(), (0, 0, 0, 0));
        assert_eq!(pair.tell(91, 1, 0).hear(), (1, 0, 1, 0));
    }
}
