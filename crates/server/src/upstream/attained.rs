//! What became of promises at each front: told once a second, and heard of the others, so that each
//! front can add all of them up.
//!
//! What is told is what came since it was told last, a round each, with the last few rounds beside
//! it: whoever reads late misses none, and nobody need remember what the others have counted.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use front::Value;
use policy::slo::{Counts, Served};
use policy::Nanos;
use serde::{Deserialize, Serialize};
use telemetry::HistogramSnapshot;

use crate::slo::{Elsewhere, Reading, Unanswered};

/// Whoever reads so many rounds too late misses some.
const ROUNDS_TOLD: usize = 4;

/// Promises that are told of in a round at most: a text of some hundred KiB. If something came of
/// more, the others are told of in the next rounds.
const PROMISES_MAX: usize = 250;

/// What a front has left is taken away after so many rounds without news of it.
const LEFT_ROUNDS: u32 = 8;

/// A tenant, and what a promise is called among its promises.
pub type Which = (String, String);

/// What fronts tell each other of promises.
pub struct Attained {
    /// Another after each start.
    era: u64,
    /// Rounds that it has told.
    number: u64,
    /// When it told last, or began to count.
    at: Nanos,
    /// What was counted when it was last told.
    before: BTreeMap<Which, Reading>,
    told: VecDeque<Round>,
    /// By front, what was read of it last.
    heard: BTreeMap<String, Heard>,
    /// It has heard what others tell.
    heard_any: bool,
}

/// What was read of another front.
struct Heard {
    era: u64,
    /// The round that it told last.
    number: u64,
    /// What it serves a second, by the rounds that were new then.
    per_s: BTreeMap<Which, Served>,
    /// So many times, one after the other, nothing was new.
    silent: u32,
    /// It was there, and did not only leave what it had counted.
    there: bool,
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
    /// How long it was, ns. A front of an older version does not say.
    #[serde(default = "usual_ns")]
    length_ns: Nanos,
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

fn usual_ns() -> Nanos {
    super::lookout::LOOK_EVERY_NS
}

impl Attained {
    /// Of a front that begins to count now. Its `era` is none that it had before.
    pub fn new(era: u64, now: Nanos) -> Self {
        Self {
            era,
            number: 0,
            at: now,
            before: BTreeMap::new(),
            told: VecDeque::new(),
            heard: BTreeMap::new(),
            heard_any: false,
        }
    }

    /// Whether it is time to tell again.
    pub fn is_due(&self, now: Nanos) -> bool {
        self.number == 0 || now.saturating_sub(self.at) >= super::lookout::LOOK_EVERY_NS
    }

    /// What to tell of these promises, of which so much was counted since the start.
    pub fn tell(&mut self, mut read: Vec<(Which, Reading)>, now: Nanos) -> String {
        let length_ns = now.saturating_sub(self.at);
        self.at = now;
        self.number += 1;
        let first = self.number as usize * PROMISES_MAX % read.len().max(1);
        read.rotate_left(first);
        let mut known = std::mem::take(&mut self.before);
        let mut promises = Vec::new();
        for (which, reading) in read {
            let before = known.remove(&which).unwrap_or_default();
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
        self.told.push_back(Round {
            number,
            length_ns,
            promises,
        });
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
        let there = self.heard.values().filter(|heard| heard.there);
        1 + there.count()
    }

    /// Fronts that have left what they had counted, for so long that all others have heard it.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        let left = |heard: &Heard| !heard.there && heard.silent > LEFT_ROUNDS;
        let left = self.heard.iter().filter(move |(_, heard)| left(heard));
        left.map(|(front, _)| front.as_str())
    }

    /// Hears what the fronts beside `me` tell: names of fronts and texts by turns, and `there`
    /// knows which of them are there. One that has left may have told something before. Returns
    /// what came of each promise since the last time at all of them, what waits there now, and what
    /// they serve of it a second.
    pub fn hear(
        &mut self,
        entries: &Value,
        me: &str,
        there: impl Fn(&str) -> bool,
    ) -> BTreeMap<Which, Elsewhere> {
        let begins = !std::mem::replace(&mut self.heard_any, true);
        let mut all: BTreeMap<Which, Elsewhere> = BTreeMap::new();
        let mut before = std::mem::take(&mut self.heard);
        let pairs = entries.items().chunks_exact(2);
        let texts = pairs.filter_map(|pair| Some((pair[0].text()?, pair[1].text()?)));
        for (front, text) in texts.filter(|(front, _)| *front != me) {
            let Ok(entry) = serde_json::from_str::<Entry<Vec<Round>>>(text) else {
                continue;
            };
            let mut heard = Heard::of(entry, before.remove(front), begins, &mut all);
            heard.there = there(front);
            for (which, per_s) in &heard.per_s {
                all.entry(which.clone()).or_default().per_s.add(per_s);
            }
            self.heard.insert(front.to_owned(), heard);
        }
        all
    }
}

impl Heard {
    /// Takes in what a front tells of which this was heard `before`: what is new of it goes to
    /// `all`. Whoever `begins` to hear counts from now on.
    fn of(
        entry: Entry<Vec<Round>>,
        before: Option<Self>,
        begins: bool,
        all: &mut BTreeMap<Which, Elsewhere>,
    ) -> Self {
        let newest = entry.rounds.last().map_or(0, |round| round.number);
        let starts = entry.rounds.first().is_some_and(|round| round.number == 1);
        let from = match &before {
            Some(before) if before.era == entry.era => before.number,
            // It has started, perhaps again: all that it has counted is new.
            Some(_) => 0,
            None if starts && !begins => 0,
            // What it counted until now is not known of.
            None => newest,
        };
        let (mut served, mut length_ns) = (BTreeMap::<Which, Served>::new(), 0);
        for round in entry.rounds {
            let (last, new) = (round.number == newest, round.number > from);
            length_ns += if new { round.length_ns } else { 0 };
            for told in round.promises {
                let (which, mut reading) = told.reading();
                if new {
                    let of_all = served.entry(which.clone()).or_default();
                    of_all.add(&Served::of(&reading.counts));
                } else {
                    reading = Reading {
                        unanswered: reading.unanswered,
                        ..Reading::default()
                    };
                }
                if !last {
                    reading.unanswered = Unanswered::default();
                }
                let sum = &mut all.entry(which).or_default().more;
                *sum = std::mem::take(sum).and(&reading);
            }
        }
        let new = newest > from;
        // A front that ends tells of less than a round, which is heard for as long as others.
        let length_s = length_ns.max(usual_ns()) as f64 / 1e9;
        let per_s = |served: Served| served.times(1.0 / length_s);
        let per_s = match before {
            _ if new => {
                let each = served.into_iter();
                each.map(|(which, served)| (which, per_s(served))).collect()
            }
            // It is a little late: it tells as often as it is heard, and not at the same times. One
            // that is later stands still, for all that is known.
            Some(ref before) if before.silent == 0 => before.per_s.clone(),
            _ => BTreeMap::new(),
        };
        let silent = before.map_or(0, |before| before.silent);
        Self {
            era: entry.era,
            number: newest,
            per_s,
            silent: if new { 0 } else { silent.saturating_add(1) },
            there: true,
        }
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
