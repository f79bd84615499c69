//! What can be promised: the answers by script, and what must hold of all of them.
//!
//! `scenarios/admission.script` is a list of commands, each with what came of it under it:
//!
//! | command | meaning |
//! |---|---|
//! | `drives 4 arm 6ms 11ms 2.6ms` | so many, `arm` or `none`; a small read alone (median, p99) and in a full queue |
//! | `get NAME p99 150ms 100/s [missing 0.2] [importance 80]` | may a percentile be promised for small reads? |
//! | `scan NAME 20/s 4MiB [importance 1]` | may a rate be promised? |
//! | `… force` | made, whatever the answer |
//!
//! What fits is made. `UPDATE_SCENARIOS=1` writes what it gives.

use std::fmt::Write as _;
use std::path::Path;

use policy::slo::admission::{
    admit, stand, takes, Answer, Asked, Capacity, Demand, Drives, Lack, Remedy, Work,
};
use policy::slo::{Latency, Objective};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// Cake's four disks with 5 GB on each.
fn disks() -> Capacity {
    Capacity {
        drives: Drives {
            count: 4,
            seeks: true,
            alone_ns: [5_900_000, 11_000_000],
            together_ns: 2_600_000.0,
            depth: 32,
            stream_bytes_per_s: 120e6,
        },
        handlers: 128,
        requests_per_s: 100_000.0,
        floor: 0.05,
    }
}

fn flash() -> Capacity {
    Capacity {
        drives: Drives {
            count: 1,
            seeks: false,
            alone_ns: [90_000, 200_000],
            together_ns: 26_000.0,
            depth: 32,
            stream_bytes_per_s: 270e6,
        },
        ..disks()
    }
}

const SMALL: Work = Work {
    ios: 1.0,
    moved_ns: 0.0,
};

fn get(percentile: f64, at_most_ns: u64, per_s: f64, missing: f64, importance: u32) -> Asked {
    Asked {
        objective: Objective {
            latency: Some(Latency {
                percentile,
                at_most_ns,
            }),
            throughput_per_s: None,
            contract_per_s: Some(per_s),
            importance,
            window_ns: 10_000 * MS,
        },
        demand: Demand {
            per_s,
            missing,
            work: SMALL,
        },
    }
}

fn scan(per_s: f64, moved_ns: f64, importance: u32) -> Asked {
    Asked {
        objective: Objective {
            latency: None,
            throughput_per_s: Some(per_s),
            contract_per_s: None,
            importance,
            window_ns: 10_000 * MS,
        },
        demand: Demand {
            per_s,
            missing: 1.0,
            work: Work { ios: 1.0, moved_ns },
        },
    }
}

fn fits(capacity: &Capacity, asked: &[Asked]) -> bool {
    stand(capacity, asked).lacks.iter().all(Option::is_none)
}

#[test]
fn what_a_disk_cannot_do_is_impossible_whoever_asks() {
    let slow = Capacity {
        drives: Drives {
            alone_ns: [10 * MS, 20 * MS],
            ..disks().drives
        },
        ..disks()
    };
    let answer = admit(&slow, &[], &get(99.9, MS, 1.0, 1.0, 50));
    assert!(
        matches!(answer.lack_alone, Some(Lack::Alone(ns)) if ns > 20 * MS),
        "{answer:?}"
    );
    assert!(!answer.fits());
    // Of requests that are nearly all in memory, those from the disk may be late.
    assert!(admit(&slow, &[], &get(99.9, MS, 1.0, 0.0009, 50)).fits());
    assert!(!admit(&slow, &[], &get(99.9, MS, 1.0, 0.0011, 50)).fits());
}

/// A simulation of such disks that knows nothing of this code (8 KiB, 200 ms, data over the whole
/// disk): at 200 gets a second all are in time, at 400 1.3 % are late, at 600 55 %.
#[test]
fn it_agrees_with_what_was_simulated_elsewhere() {
    let whole = Capacity {
        drives: Drives {
            alone_ns: [12_800_000, 22_000_000],
            together_ns: 6_200_000.0,
            ..disks().drives
        },
        ..disks()
    };
    let lack = |per_s: f64| stand(&whole, &[get(99.0, 200 * MS, per_s, 1.0, 50)]).lacks[0];
    assert_eq!(lack(200.0), None);
    assert!(
        matches!(lack(600.0), Some(Lack::Late(_) | Lack::Device { .. })),
        "{:?}",
        lack(600.0)
    );
    assert!(
        matches!(lack(800.0), Some(Lack::Device { .. })),
        "{:?}",
        lack(800.0)
    );
}

#[test]
fn a_newcomer_that_would_break_a_promise_of_others_does_not_fit() {
    let loose = get(99.0, 400 * MS, 900.0, 1.0, 50);
    let tight = get(99.0, 100 * MS, 700.0, 1.0, 50);
    assert!(admit(&disks(), &[], &loose).fits() && admit(&disks(), &[], &tight).fits());
    let answer = admit(&disks(), &[loose], &tight);
    assert_eq!(
        (answer.fits(), answer.harmed.as_slice()),
        (false, &[0][..]),
        "{answer:?}"
    );
}

#[test]
fn what_nobody_asks_for_yet_takes_nothing() {
    let asked = get(99.0, 100 * MS, 300.0, 1.0, 50);
    for at_most_ns in [50 * MS, 100 * MS, 200 * MS] {
        let idle = get(99.0, at_most_ns, 0.0, 1.0, 50);
        let alone = stand(&disks(), &[idle]);
        assert_eq!((alone.used, alone.lacks[0]), (0.0, None));
        let [with, without] = [&[idle, asked][..], &[asked]].map(|all| stand(&disks(), all));
        assert_eq!(with.used, without.used, "{with:?}");
        assert_eq!(with.lacks, [None, None]);
        let flood = get(99.0, 100 * MS, 3_000.0, 1.0, 50);
        assert!(stand(&disks(), &[idle, flood]).lacks[1].is_some());
    }
}

fn any_get() -> impl Strategy<Value = Asked> {
    let percentile = prop::sample::select(vec![50.0, 90.0, 99.0, 99.9]);
    (
        percentile,
        1u64..2_000,
        1.0..600.0f64,
        0.01..1.0f64,
        1u32..=100,
    )
        .prop_map(|(p, ms, per_s, missing, importance)| get(p, ms * MS, per_s, missing, importance))
}

fn any_scan() -> impl Strategy<Value = Asked> {
    (0.1..60.0f64, 0.0..40e6f64, 1u32..=100)
        .prop_map(|(per_s, moved_ns, importance)| scan(per_s, moved_ns, importance))
}

fn any_set() -> impl Strategy<Value = Vec<Asked>> {
    prop::collection::vec(prop_oneof![3 => any_get(), 1 => any_scan()], 1..8)
}

fn any_capacity() -> impl Strategy<Value = Capacity> {
    prop::sample::select(vec![disks(), flash()])
}

proptest! {
    /// Whoever asks for less is never in anybody's way.
    #[test]
    fn what_fits_fits_without_one_of_them(capacity in any_capacity(), asked in any_set(), at in any::<prop::sample::Index>()) {
        if fits(&capacity, &asked) {
            let mut fewer = asked.clone();
            fewer.remove(at.index(asked.len()));
            prop_assert!(fits(&capacity, &fewer));
        }
    }

    /// A looser promise at a lower rate fits where the tighter did.
    #[test]
    fn less_fits_where_more_does(capacity in any_capacity(), asked in any_set(), at in any::<prop::sample::Index>(), part in 0.1..1.0f64) {
        if fits(&capacity, &asked) {
            let mut less = asked.clone();
            let one = &mut less[at.index(asked.len())];
            one.demand.per_s *= part;
            if let Some(rate) = &mut one.objective.throughput_per_s {
                *rate *= part;
            }
            prop_assert!(fits(&capacity, &less));
        }
    }

    /// More drives are no worse.
    #[test]
    fn more_drives_do_more(capacity in any_capacity(), asked in any_set()) {
        let more = Capacity {
            drives: Drives { count: 2 * capacity.drives.count, ..capacity.drives },
            handlers: 2 * capacity.handlers,
            ..capacity
        };
        prop_assert!(!fits(&capacity, &asked) || fits(&more, &asked));
    }

    /// What is kept of promises that do not fit together does fit, gives up by importance, and is
    /// everything if they fit.
    #[test]
    fn what_gives_way_fits(capacity in any_capacity(), asked in any_set()) {
        // What requests hold that wait longer than was promised is not in the model.
        let capacity = Capacity { handlers: 1 << 20, ..capacity };
        let standing = stand(&capacity, &asked);
        prop_assert_eq!(standing.kept.len(), asked.len());
        if fits(&capacity, &asked) {
            prop_assert!(standing.kept.iter().all(|kept| *kept == 1.0));
        }
        let lost = asked.iter().zip(&standing.kept).map(|(one, kept)| {
            f64::from(one.objective.importance) * (1.0 - kept)
        });
        let given: Vec<f64> = standing.kept.iter().copied().zip(lost).filter(|(kept, _)| *kept > 0.0).map(|(_, lost)| lost).collect();
        for pair in given.windows(2) {
            prop_assert!((pair[0] - pair[1]).abs() < 1e-6, "badness is alike: {given:?}");
        }
        let mut left = Vec::new();
        for (one, kept) in asked.iter().zip(&standing.kept).filter(|(_, kept)| **kept > 0.0) {
            let mut one = *one;
            if let Some(latency) = &mut one.objective.latency {
                latency.at_most_ns = (latency.at_most_ns as f64 / kept * 1.000_001) as u64;
            }
            if let Some(rate) = &mut one.objective.throughput_per_s {
                *rate *= kept;
            }
            left.push(one);
        }
        prop_assert!(fits(&capacity, &left), "{standing:?}");
    }

    /// The least that is offered instead could be promised, and not much less.
    #[test]
    fn the_least_latency_fits(capacity in any_capacity(), present in any_set(), new in any_get()) {
        let answer = admit(&capacity, &present, &new);
        let lack = |at_most_ns: u64| {
            let latency = new.objective.latency.map(|latency| Latency { at_most_ns, ..latency });
            let objective = Objective { latency, ..new.objective };
            admit(&capacity, &present, &Asked { objective, ..new }).lack
        };
        if let Some(least_ns) = answer.least_ns {
            prop_assert_eq!(lack(least_ns), None);
            prop_assert!(least_ns <= 10_000 || lack((least_ns as f64 * 0.98) as u64).is_some());
        }
    }

    /// What is said to do does, as it is said, and is less of the promise that it names.
    #[test]
    fn with_what_it_takes_it_fits(capacity in any_capacity(), asked in any_set(), at in any::<prop::sample::Index>()) {
        let own = at.index(asked.len());
        prop_assume!(stand(&capacity, &asked).lacks[own].is_some());
        for remedy in takes(&capacity, &asked, own, &[]) {
            let (mut capacity, mut asked) = (capacity, asked.clone());
            let (place, part) = match remedy {
                Remedy::Rate(per_s) => (own, per_s / asked[own].demand.per_s),
                Remedy::Other { place, per_s } => (place, per_s / asked[place].demand.per_s),
                Remedy::Drives(_) | Remedy::AtMost(_) => (own, 1.0),
            };
            asked[place].demand.per_s *= part;
            asked[place].objective.throughput_per_s.iter_mut().for_each(|rate| *rate *= part);
            let before = asked[own].objective.latency.map(|latency| latency.at_most_ns);
            match remedy {
                Remedy::Drives(count) => {
                    capacity.handlers = capacity.handlers * count / capacity.drives.count;
                    capacity.drives.count = count;
                }
                Remedy::AtMost(ns) => asked[own].objective.latency.iter_mut().for_each(|latency| latency.at_most_ns = ns),
                Remedy::Rate(_) | Remedy::Other { .. } => prop_assert!(part < 1.0, "{remedy:?}"),
            }
            prop_assert!(asked[own].objective.latency.map(|latency| latency.at_most_ns) >= before);
            prop_assert!(asked[place].objective.importance <= asked[own].objective.importance);
            prop_assert_eq!(stand(&capacity, &asked).lacks[own], None, "{:?}", remedy);
        }
    }
}

fn ns(word: &str) -> u64 {
    let ms = word
        .strip_suffix("ms")
        .and_then(|number| number.parse::<f64>().ok());
    (ms.expect("a time in ms") * 1e6) as u64
}

fn per_s(word: &str) -> f64 {
    let rate = word
        .strip_suffix("/s")
        .and_then(|number| number.parse().ok());
    rate.expect("a rate a second")
}

/// What an answer says.
fn told(answer: &Answer, names: &[String]) -> String {
    let mut text = match answer.fits() {
        true => "  fits".to_string(),
        false => "  does not fit".to_string(),
    };
    for (what, lack) in [
        ("alone", answer.lack_alone),
        ("beside the others", answer.lack),
    ] {
        if let Some(lack) = lack {
            let _ = write!(text, "; {what}: {}", lack_told(&lack));
        }
    }
    for place in &answer.harmed {
        let _ = write!(text, "; breaks {}", names[*place]);
    }
    let _ = write!(
        text,
        "\n  of the disk: {:.3}, before {:.3}",
        answer.after.used, answer.before.used
    );
    if let Some(ns) = answer.least_ns {
        let _ = write!(text, "\n  the least: {:.1}ms", ns as f64 / 1e6);
    }
    if !answer.takes.is_empty() {
        let each = answer.takes.iter().map(|remedy| match remedy {
            Remedy::Rate(per_s) => format!("{per_s}/s"),
            Remedy::AtMost(ns) => format!("{}ms", *ns as f64 / 1e6),
            Remedy::Drives(count) => format!("{count} drives"),
            Remedy::Other { place, per_s } => format!("{} {per_s}/s", names[*place]),
        });
        let each: Vec<String> = each.collect();
        let _ = write!(text, "\n  it takes: {}", each.join(" or "));
    }
    if answer.after.kept.iter().any(|kept| *kept < 1.0) {
        let kept = names
            .iter()
            .map(String::as_str)
            .chain(["it"])
            .zip(&answer.after.kept);
        let kept: Vec<String> = kept
            .map(|(name, kept)| format!("{name} {kept:.2}"))
            .collect();
        let _ = write!(text, "\n  kept: {}", kept.join(", "));
    }
    text + "\n"
}

fn lack_told(lack: &Lack) -> String {
    match lack {
        Lack::Alone(ns) => format!("takes {:.1}ms", *ns as f64 / 1e6),
        Lack::Behind => "too long behind a piece".into(),
        Lack::Handlers(held) => format!("{held:.0} handlers held"),
        Lack::Late(part) => format!("{:.4} late", part),
        Lack::Device { needed, most } => format!("{needed:.2} of the disk, {most:.2} at most"),
        Lack::Cores(times) => format!("{times:.2} of the cores"),
    }
}

/// Plays the commands of a script; returns it with what came of each.
fn played(script: &str) -> String {
    let (mut capacity, mut made, mut names) = (disks(), Vec::new(), Vec::new());
    let mut out = String::new();
    for line in script.lines().filter(|line| !line.starts_with("  ")) {
        out += line;
        out.push('\n');
        let words: Vec<&str> = line.split_whitespace().collect();
        let option = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words
                .get(at + 1)
                .map(|word| word.parse::<f64>().expect("a number"))
        };
        let importance = option("importance").unwrap_or(50.0) as u32;
        let asked = match words[..] {
            ["drives", count, arm, alone, tail, together] => {
                capacity.drives.count = count.parse().expect("a number");
                capacity.drives.seeks = arm == "arm";
                capacity.drives.alone_ns = [ns(alone), ns(tail)];
                capacity.drives.together_ns = ns(together) as f64;
                (made, names) = (Vec::new(), Vec::new());
                continue;
            }
            ["get", _, percentile, at_most, rate, ..] => {
                let percentile = percentile
                    .trim_start_matches('p')
                    .parse()
                    .expect("a percentile");
                let missing = option("missing").unwrap_or(1.0);
                get(percentile, ns(at_most), per_s(rate), missing, importance)
            }
            ["scan", _, rate, bytes, ..] => {
                let mib = bytes
                    .strip_suffix("MiB")
                    .and_then(|number| number.parse::<f64>().ok());
                let moved_ns = mib.expect("MiB") * 1_048_576e9 / capacity.drives.stream_bytes_per_s;
                scan(per_s(rate), moved_ns, importance)
            }
            _ => continue,
        };
        let answer = admit(&capacity, &made, &asked);
        out += &told(&answer, &names);
        if answer.fits() || words.last() == Some(&"force") {
            made.push(asked);
            names.push(words[1].to_string());
        }
    }
    out
}

#[test]
fn the_answers_are_as_written() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/admission.script");
    let script = std::fs::read_to_string(&path).expect("the script");
    let now = played(&script);
    if std::env::var_os("UPDATE_SCENARIOS").is_some() {
        std::fs::write(&path, &now).expect("written");
    }
    assert_eq!(script, now, "UPDATE_SCENARIOS=1 writes it anew");
}
