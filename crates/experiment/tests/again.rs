//! Runs that are made again, because they were disturbed, and those that are not, because they were
//! made before.

mod made;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use experiment::done::Done;
use experiment::kept::{Again, Kept};
use experiment::machine::Ticks;
use experiment::runner::Setup;
use experiment::verdict::{Judged, Judgement};
use experiment::ExperimentError;

use made::{experiment, run, script, setup, Made, NEVER};

#[test]
fn a_disturbed_run_is_made_again_and_the_last_one_counts() {
    let (player, binary) = (Made::default(), script("serves"));
    // Asked before and after each run: much is withheld of the first, nothing of the second; and of
    // the third always more.
    let (ticks, asked) = (RefCell::new(0), RefCell::new(0));
    let meter = |_: &[usize]| {
        *asked.borrow_mut() += 1;
        if *asked.borrow() == 2 || *asked.borrow() > 6 {
            *ticks.borrow_mut() += 1_000_000;
        }
        taken(*ticks.borrow())
    };
    let setup = Setup {
        meter: &meter,
        repeats: Some(1),
        ..setup(&binary, &player, &NEVER)
    };
    let (told, done) = run(&experiment(""), &setup).expect("it runs");
    assert_eq!(told.len(), 4);
    assert_eq!(player.played.borrow().len(), 2 + 1 + 3 + 3);
    let all = || done.runs.all().map(|(_, _, _, observed)| observed);
    // By variant and point; the runs took turns.
    assert_eq!(all().map(|one| one.tried).collect::<Vec<_>>(), [1, 3, 2, 3]);
    let calm: Vec<bool> = all().map(|one| one.withheld == 0.0).collect();
    assert_eq!(calm, [true, false, true, false]);
    let notes = done.notes.join("\n");
    assert!(notes.contains("5 were made again"), "{notes}");
    assert!(notes.contains("2 that count are so still"), "{notes}");
}

/// What a host took in all.
fn taken(withheld: u64) -> Ticks {
    Ticks {
        withheld,
        ..Ticks::default()
    }
}

#[test]
fn what_other_processes_do_disturbs_a_run_too() {
    let (player, binary) = (Made::default(), script("serves"));
    let used = RefCell::new(0);
    let meter = |_: &[usize]| {
        *used.borrow_mut() += 1_000_000;
        Ticks {
            processes: BTreeMap::from([(7, *used.borrow())]),
            ..Ticks::default()
        }
    };
    let setup = Setup {
        meter: &meter,
        ..setup(&binary, &player, &NEVER)
    };
    let (_, done) = run(&experiment(""), &setup).expect("it runs");
    assert!(done.runs.all().all(|(.., observed)| observed.tried == 3));
    let word = |one: &Judged| matches!(one.judgement, Judgement::Disturbed(_));
    assert!(done.judged.iter().all(word) && !done.passed());
}

#[test]
fn a_yardstick_that_was_disturbed_disturbs_what_it_is_told_to() {
    let (player, binary) = (Made::default(), script("serves"));
    // The first three runs are the yardstick's.
    let (asked, ticks) = (RefCell::new(0), RefCell::new(0));
    let meter = |_: &[usize]| {
        *asked.borrow_mut() += 1;
        if *asked.borrow() <= 6 {
            *ticks.borrow_mut() += 1_000_000;
        }
        taken(*ticks.borrow())
    };
    let setup = Setup {
        meter: &meter,
        ..setup(&binary, &player, &NEVER)
    };
    let rest = "[[yardstick]]\nsets = \"server.scheduler.requests\"\nvariant = \"fifo\"\npoint = \"alone\"\nunit = \"/s\"\n";
    let (_, done) = run(&experiment(rest), &setup).expect("it runs");
    assert_eq!(player.played.borrow().len(), 3 + 8);
    assert!(done.runs.all().all(|(.., observed)| observed.disturbed()));
}

#[test]
fn what_was_made_before_is_not_made_again_and_time_may_be_up() {
    let binary = script("serves");
    let folder = tempfile::tempdir().expect("folder");
    let kept = |again| Some(Kept::new(folder.path().into(), "a build", again));
    // Two of eight runs; each is to take eleven seconds.
    let first = Made {
        interrupts: Some((&STOP, 3)),
        ..Made::default()
    };
    static STOP: AtomicBool = AtomicBool::new(false);
    let experiment = experiment("");
    let with = |player, kept, until| Setup {
        kept,
        until,
        ..setup(&binary, player, &NEVER)
    };
    let stopped = Setup {
        stop: &STOP,
        ..with(&first, kept(Again::None), None)
    };
    let (told, _) = run(&experiment, &stopped).expect("kept");
    assert_eq!(told.len(), 2);
    // There is no time for any other.
    let soon = Some(Instant::now() + Duration::from_secs(10));
    let second = Made::default();
    let (told, done) = run(&experiment, &with(&second, kept(Again::None), soon)).expect("partly");
    assert!(matches!(done.cut, Some(ExperimentError::TimeIsUp)));
    assert_eq!((told.len(), second.played.borrow().len()), (2, 0));
    let (told, done) = run(&experiment, &with(&second, kept(Again::None), None)).expect("whole");
    assert_eq!((told.len(), second.played.borrow().len()), (8, 6));
    assert!(done.cut.is_none());
    let fresh = done.runs.all().filter(|(.., observed)| !observed.kept);
    assert_eq!(fresh.count(), 6);
    let third = Made::default();
    let (_, again) = run(&experiment, &with(&third, kept(Again::None), soon)).expect("whole");
    assert!(third.played.borrow().is_empty() && again.cut.is_none());
    let values = |done: &Done| done.judged[0].measured.clone().expect("measured");
    assert_eq!(values(&again), values(&done));
    run(&experiment, &with(&third, kept(Again::All), None)).expect("anew");
    assert_eq!(third.played.borrow().len(), 8);
}

#[test]
fn an_interrupt_while_a_disturbed_run_is_made_again_keeps_the_disturbed_one() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let (binary, ticks) = (script("serves"), RefCell::new(0));
    let player = Made {
        interrupts: Some((&STOP, 2)),
        ..Made::default()
    };
    let meter = |_: &[usize]| {
        *ticks.borrow_mut() += 1_000_000;
        taken(*ticks.borrow())
    };
    let setup = Setup {
        meter: &meter,
        ..setup(&binary, &player, &STOP)
    };
    let (told, done) = run(&experiment(""), &setup).expect("kept");
    assert_eq!((told.len(), player.played.borrow().len()), (1, 2));
    assert!(matches!(done.cut, Some(ExperimentError::Interrupted)));
}
