//! What one front tells of promises, and what another hears.

use super::*;

const S: Nanos = 1_000_000_000;
const MS: Nanos = 1_000_000;

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
    now: Nanos,
}

impl Pair {
    fn new() -> Self {
        Self {
            teller: Attained::new(7, S),
            reader: Attained::new(8, S),
            text: String::new(),
            now: S,
        }
    }

    fn tell(&mut self, requests: u64, late: u64, overdue: u64) -> &mut Self {
        let read = vec![(get(), reading(requests, late, overdue))];
        self.now += 1_250 * MS;
        self.text = self.teller.tell(read, self.now);
        self
    }

    fn hear_all(&mut self) -> Elsewhere {
        let told = entries(&[("a", &self.text), ("me", &self.text), ("b", "?")]);
        let heard = self.reader.hear(&told, "me", |_| true);
        heard.get(&get()).cloned().unwrap_or_default()
    }

    fn hear(&mut self) -> (u64, u64, u64, u64) {
        let one = self.hear_all().more;
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

/// Rounds are of a second and a quarter. Two of them are heard at once, or none.
#[test]
fn what_is_served_elsewhere_is_known_by_the_second() {
    let mut pair = Pair::new();
    let per_s = |pair: &mut Pair| {
        let served = pair.hear_all().per_s;
        (served.requests.round(), (served.under_way_ns / 1e6).round())
    };
    pair.tell(1_000, 0, 0);
    assert_eq!(per_s(&mut pair), (0.0, 0.0), "that was before");
    pair.tell(1_100, 0, 0);
    assert_eq!(per_s(&mut pair), (80.0, 80.0), "of 1 ms each");
    pair.tell(1_150, 0, 0).tell(1_300, 0, 0);
    assert_eq!(per_s(&mut pair), (80.0, 80.0));
    assert_eq!(per_s(&mut pair), (80.0, 80.0), "it is late");
    assert_eq!(per_s(&mut pair), (0.0, 0.0), "it stands still");
    pair.tell(1_350, 0, 0);
    assert_eq!(per_s(&mut pair), (40.0, 40.0));
    pair.tell(1_350, 0, 0);
    assert_eq!(per_s(&mut pair), (0.0, 0.0));
    // A front of an older version does not say how long its rounds are.
    pair.tell(1_400, 0, 0);
    pair.text = pair.text.replace("\"length_ns\":1250000000,", "");
    assert_eq!(per_s(&mut pair), (50.0, 50.0));
}

#[test]
fn of_very_many_promises_some_are_told_of_later() {
    let (mut teller, mut reader) = (Attained::new(7, S), Attained::new(8, S));
    let read = |requests: u64| {
        let which = |number| ("web".to_owned(), format!("get:w{number}"));
        let all = (0..2 * PROMISES_MAX + 9).map(|number| (which(number), reading(requests, 0, 0)));
        all.collect::<Vec<_>>()
    };
    let mut heard: BTreeMap<Which, u64> = BTreeMap::new();
    for round in 0..5 {
        let text = teller.tell(read(if round == 0 { 0 } else { 7 }), S);
        assert!(teller
            .told
            .iter()
            .all(|round| round.promises.len() <= PROMISES_MAX));
        for (which, one) in reader.hear(&entries(&[("a", &text)]), "me", |_| true) {
            *heard.entry(which).or_default() += one.more.counts.requests;
        }
    }
    assert_eq!(heard.len(), 2 * PROMISES_MAX + 9);
    assert!(heard.values().all(|requests| *requests == 7), "each once");
}

#[test]
fn a_front_that_starts_anew_is_heard_from_its_start() {
    let mut pair = Pair::new();
    pair.tell(1_000, 10, 0).hear();
    // What it was asked before it told for the first time counts, too.
    pair.teller = Attained::new(9, pair.now);
    assert_eq!(pair.tell(10, 1, 0).hear(), (10, 1, 10, 0));
    assert_eq!(pair.tell(40, 4, 0).hear(), (30, 3, 30, 0));
    // A promise that was changed there counts from nothing, too.
    assert_eq!(pair.tell(30, 1, 0).hear(), (30, 1, 30, 0));
    // One that was away is as one that comes.
    let empty = pair.reader.hear(&entries(&[]), "me", |_| true);
    assert!(empty.is_empty());
    pair.tell(50, 1, 0).tell(60, 1, 0);
    assert_eq!(pair.tell(90, 1, 0).hear(), (0, 0, 0, 0));
    assert_eq!(pair.tell(91, 1, 0).hear(), (1, 0, 1, 0));
    // One that was away and has started anew meanwhile counts from its start.
    pair.reader.hear(&entries(&[]), "me", |_| true);
    pair.teller = Attained::new(11, pair.now);
    assert_eq!(pair.tell(5, 0, 0).tell(8, 0, 0).hear(), (8, 0, 8, 0));
}

/// The last round of a front that ends is read by those to which it is not there any more.
#[test]
fn what_a_front_told_before_it_left_counts_still() {
    let mut pair = Pair::new();
    pair.tell(1_000, 10, 0).hear();
    assert_eq!(pair.reader.fronts(), 2);
    pair.tell(1_200, 12, 0);
    let told = entries(&[("a", &pair.text)]);
    let hear = |reader: &mut Attained| {
        let heard = reader.hear(&told, "me", |_| false);
        heard.get(&get()).map_or(0, |one| one.more.counts.requests)
    };
    assert_eq!(hear(&mut pair.reader), 200);
    assert_eq!(pair.reader.fronts(), 1);
    for _ in 0..=LEFT_ROUNDS {
        assert_eq!(pair.reader.left().count(), 0, "others may not have read it");
        assert_eq!(hear(&mut pair.reader), 0);
    }
    assert_eq!(pair.reader.left().collect::<Vec<_>>(), ["a"]);
    // Whoever comes later has never heard of it.
    assert_eq!(hear(&mut Attained::new(5, S)), 0);
}
