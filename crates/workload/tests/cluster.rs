//! Clients that know of a cluster, against fronts that the test plays.

#[path = "support/fronts.rs"]
mod fronts;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fronts::{Fronts, Homes};
use workload::client::drive::{self, Progress};
use workload::client::plan::{Handshake, KeyText, Manners, Pace, Period, Plan, Stream};
use workload::client::preload::{self, Keyspace};
use workload::client::{Goal, Identity};
use workload::draw::{Asks, Class, Mixture, Shares};
use workload::rng::Rng;
use workload::source::{Curve, CurveSource};
use workload::stats::{Outcome, LOST, MOVED, UNSENT};
use workload::WorkloadError;

static RUNNING: AtomicBool = AtomicBool::new(false);

/// A part of the slots for each of three fronts, …
const THIRDS: Homes = |slot| usize::from(slot / 100 % 3);
/// … for each of the first two, …
const HALVES: Homes = |slot| usize::from(slot / 100 % 2);
/// … and all for the first.
const FIRST: Homes = |_| 0;

const MIXED: Shares = Shares {
    put: 1.0,
    ..Shares::GETS
};

fn web() -> Identity {
    Identity {
        credentials: Some(("web".into(), "secret".into())),
        tag: "shop".into(),
        ..Identity::default()
    }
}

fn mixture(shares: Shares) -> Mixture {
    Mixture::new(
        7,
        1,
        Asks {
            shares,
            ..Asks::gets(500)
        },
    )
}

fn closed(shares: Shares) -> Stream {
    let pace = Pace::closed(mixture(shares), 4);
    Stream::new(web(), Period::new(3, KeyText::new(7, 24), pace))
}

fn open(rate_per_s: f64) -> Stream {
    let (rates_per_s, step_s) = (vec![rate_per_s], 1.0);
    let curve = Curve {
        rates_per_s,
        step_s,
    };
    let source = CurveSource::new(curve, vec![MIXED], mixture(MIXED), Rng::new(3, 2));
    let pace = Pace::open(Box::new(source));
    Stream::new(web(), Period::new(3, KeyText::new(7, 24), pace))
}

fn plan(fronts: &Fronts, streams: Vec<Stream>, duration: Duration) -> Plan {
    Plan {
        goal: Goal::Cluster(fronts.address(0)),
        streams,
        warm_up: Duration::ZERO,
        duration,
        drain: Duration::from_secs(5),
        threads: 1,
        spin: false,
    }
}

/// Plays until `done` says so, or fails after a minute.
fn play(
    fronts: &mut Fronts,
    stream: Stream,
    mut done: impl FnMut(&mut Fronts, &Progress) -> bool,
) -> Outcome {
    let stop = AtomicBool::new(false);
    let plan = plan(fronts, vec![stream], Duration::from_secs(60));
    let outcome = drive::run(plan, &stop, &mut |progress| {
        if done(fronts, progress) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let outcome = outcome.expect("run");
    assert!(outcome.cut_short.is_some(), "it took a minute");
    outcome
}

fn nothing_failed(outcome: &Outcome) {
    let total = outcome.tenants[0].total();
    assert_eq!(
        (total.failed, total.completed),
        (0, total.offered),
        "{:?}",
        outcome.tenants[0].errors
    );
    assert!(total.completed > 0);
}

#[test]
fn each_request_goes_to_the_home_of_its_key() {
    let mut fronts = Fronts::start(3, THIRDS);
    for stream in [closed(MIXED), open(3_000.0)] {
        let before = fronts.served();
        let outcome = play(&mut fronts, stream, |_, now| now.completed > 500);
        nothing_failed(&outcome);
        assert_eq!(outcome.generator.moved, 0);
        let served = fronts.served();
        let each = served.iter().zip(before).map(|(now, before)| now - before);
        assert!(each.clone().all(|served| served > 100), "{served:?}");
        assert_eq!(each.sum::<u64>(), outcome.tenants[0].total().completed);
    }
    let two = plan(
        &fronts,
        vec![closed(MIXED), open(500.0)],
        Duration::from_millis(200),
    );
    let outcome = drive::run(Plan { threads: 2, ..two }, &RUNNING, &mut |_| {}).expect("run");
    nothing_failed(&outcome);
}

#[test]
fn what_has_moved_is_followed_and_is_no_failure() {
    for stream in [closed(MIXED), open(3_000.0)] {
        // The map names two of three fronts, and most slots are elsewhere.
        let mut fronts = Fronts::start(3, THIRDS);
        fronts.tell(HALVES);
        let outcome = play(&mut fronts, stream, |_, now| now.completed > 500);
        nothing_failed(&outcome);
        assert!(outcome.generator.moved > 50, "{}", outcome.generator.moved);
        assert!(
            fronts.served().iter().all(|served| *served > 100),
            "{:?}",
            fronts.served()
        );
    }
}

/// One answer about a slot is enough, and a new map is enough for all.
#[test]
fn a_map_is_mended_and_asked_for_anew() {
    let mut fronts = Fronts::start(3, FIRST);
    let mut moved = false;
    let outcome = play(&mut fronts, closed(MIXED), |fronts, now| {
        if now.completed > 500 && !moved {
            moved = true;
            fronts.are(THIRDS);
            fronts.tell(THIRDS);
        }
        now.completed > 5_000
    });
    nothing_failed(&outcome);
    // 500 keys lie in as many slots at most; requests that were out meanwhile may add to that.
    let moved = outcome.generator.moved;
    assert!(moved > 0 && moved < 1_000, "{moved}");
}

#[test]
fn what_is_sent_on_for_ever_fails() {
    let mut fronts = Fronts::start(2, FIRST);
    // Each says that it is the other: neither is home.
    fronts.are(|_| 2);
    let mut told = 0;
    let stop = AtomicBool::new(false);
    let endless = plan(&fronts, vec![closed(MIXED)], Duration::from_secs(60));
    let outcome = drive::run(endless, &stop, &mut |progress| {
        told = progress.failed;
        if told > 20 {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let outcome = outcome.expect("run");
    let total = outcome.tenants[0].total();
    assert_eq!(
        (total.completed, outcome.tenants[0].errors[MOVED].count),
        (0, total.failed)
    );
    assert_eq!(outcome.generator.moved, 16 * total.failed);
    fronts.are(FIRST);
    nothing_failed(&play(&mut fronts, closed(MIXED), |_, now| {
        now.completed > 100
    }));
}

/// The clients of a period that is over follow what they still wait for.
#[test]
fn who_leaves_follows_too() {
    let fronts = Fronts::start(2, FIRST);
    fronts.are(|_| 1);
    fronts.hold(true);
    let mut stream = closed(MIXED);
    stream.periods.push(Period {
        from_ns: 50_000_000,
        ..Period::still()
    });
    let stop = AtomicBool::new(false);
    let leaves = plan(&fronts, vec![stream], Duration::from_secs(60));
    let outcome = drive::run(leaves, &stop, &mut |progress| {
        if !progress.news.is_empty() {
            fronts.hold(false);
        }
        if progress.completed > 0 && progress.outstanding == 0 {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let outcome = outcome.expect("run");
    nothing_failed(&outcome);
    assert_eq!(
        (outcome.tenants[0].total().offered, fronts.served()[1]),
        (12, 12)
    );
}

/// Only what was out there, or was due there, fails.
fn failed_there(outcome: &Outcome) {
    let errors = &outcome.tenants[0].errors;
    let known = |kind: &String| [LOST, UNSENT].contains(&kind.as_str());
    assert!(errors.keys().all(known), "{errors:?}");
    let total = outcome.tenants[0].total();
    assert_eq!(total.completed + total.failed, total.offered);
}

/// Where the others take over what it had, and where it comes back.
#[test]
fn a_front_that_goes_away_is_got_over() {
    for stream in [closed(MIXED), open(3_000.0)] {
        let mut fronts = Fronts::start(3, THIRDS);
        let (mut step, mut since) = (0, 0);
        let outcome = play(&mut fronts, stream, |fronts, now| {
            if now.completed < since + 500 {
                return false;
            }
            match step {
                0 => {
                    fronts.end(2);
                    fronts.are(HALVES);
                    fronts.tell(HALVES);
                }
                1 => {
                    fronts.again(2);
                    fronts.are(THIRDS);
                    fronts.tell(THIRDS);
                }
                _ => return true,
            }
            (step, since) = (step + 1, now.completed);
            false
        });
        failed_there(&outcome);
        let served = fronts.served()[2];
        assert!(served > 200, "{served}");
    }
}

/// Connections that were given up are tried again as long as the map names their front.
#[test]
fn a_front_that_comes_back_late_is_found() {
    let mut fronts = Fronts::start(3, THIRDS);
    let (mut ended_s, mut back) = (None, None);
    let outcome = play(&mut fronts, closed(MIXED), |fronts, now| {
        match (ended_s, back) {
            (None, _) if now.completed > 500 => {
                fronts.end(2);
                ended_s = Some(now.at_s);
            }
            // A connection is given up after 2.5 s.
            (Some(ended_s), None) if now.at_s > ended_s + 3.5 => {
                fronts.again(2);
                back = Some(now.completed);
            }
            (_, Some(before)) => return now.completed > before + 500,
            _ => {}
        }
        false
    });
    failed_there(&outcome);
}

#[test]
fn a_cluster_that_goes_away_is_reported() {
    let mut fronts = Fronts::start(2, HALVES);
    let lost = plan(&fronts, vec![closed(MIXED)], Duration::from_secs(60));
    let mut ended = false;
    let error = drive::run(lost, &RUNNING, &mut |progress| {
        if progress.completed > 100 && !ended {
            ended = true;
            (0..2).for_each(|front| fronts.end(front));
        }
    });
    let error = error.expect_err("nobody is there");
    assert!(matches!(error, WorkloadError::ServerGone { .. }), "{error}");
}

#[test]
fn keys_are_stored_at_home() {
    let fronts = Fronts::start(3, THIRDS);
    let text = KeyText::new(7, 24);
    for told in [THIRDS, FIRST] {
        fronts.tell(told);
        let keys = Keyspace::of(&web(), text, &mixture(MIXED));
        let stored =
            preload::run(&Goal::Cluster(fronts.address(1)), vec![keys], &RUNNING).expect("stored");
        assert_eq!(stored.0, 500);
        let keys = fronts.keys();
        assert!(keys.iter().all(|keys| *keys > 100), "{keys:?}");
        assert_eq!(keys.iter().sum::<usize>(), 500);
    }
}

#[test]
fn what_has_no_home_is_refused_before_it_starts() {
    let fronts = Fronts::start(1, FIRST);
    let refused = |stream: Stream| {
        let plan = plan(
            &fronts,
            vec![closed(MIXED), stream],
            Duration::from_secs(60),
        );
        let error = drive::run(plan, &RUNNING, &mut |_| {}).expect_err("refused");
        error.to_string()
    };
    for class in Class::ALL.into_iter().filter(|class| !class.has_home()) {
        let share = |of| f64::from(u8::from(of == class));
        let error = refused(closed(Shares {
            multiget: share(Class::Multiget),
            range: share(Class::Range),
            ping: share(Class::Ping),
            invalid: share(Class::Invalid),
            ..Shares::GETS
        }));
        let line = format!("\n  web load shop: `{}` asks for ", class.name());
        assert!(
            error.contains(&line) && error.contains("without --cluster"),
            "{error}"
        );
    }
    let mut rude = closed(MIXED);
    rude.periods[0].manners = Manners {
        handshake: Handshake::Partial,
        ..Manners::default()
    };
    assert!(refused(rude).contains("its connections misbehave"));
    assert_eq!(fronts.served(), [0]);
}

#[test]
fn a_front_that_is_away_at_the_beginning_is_named() {
    let mut fronts = Fronts::start(2, THIRDS);
    fronts.tell(HALVES);
    fronts.end(1);
    let plan = plan(&fronts, vec![closed(MIXED)], Duration::from_secs(60));
    let error = drive::run(plan, &RUNNING, &mut |_| {})
        .expect_err("one is away")
        .to_string();
    assert!(
        error.contains(&format!("cannot reach {}", fronts.address(1))),
        "{error}"
    );
}
