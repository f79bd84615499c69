//! Our controller as a pure step: what it learns, and what follows.

mod common;

use common::promised::{held, latency, seen};
use common::{MS, S};
use policy::dispatch::Others;
use policy::slo::control::{
    Auto, AutoOptions, Controller, Given, Held, Piece, PromiseSeen, DEVICE, HANDLERS,
};
use policy::slo::Tail;

/// What the step says, with requests that need so long after they are due.
fn auto_step(auto: &mut Controller, all: &[Held], requests: (u64, u64), ms: u64) -> Given {
    auto_beside(auto, all, requests, ms, 1e8)
}

/// The same beside others that get so many bytes a second.
fn auto_beside(
    auto: &mut Controller,
    all: &[Held],
    (requests, late): (u64, u64),
    ms: u64,
    others_per_s: f64,
) -> Given {
    let mut promise = latency(requests, late, ms);
    let mut tail = Tail::default();
    (0..requests).for_each(|_| tail.record(ms * MS));
    promise.after = [tail.clone(), tail];
    let mut seen = seen(S, vec![promise; all.len()]);
    (seen.others_occupied, seen.others_bytes_per_s) = (1.0, others_per_s);
    // Scans that are read in a row.
    seen.others_piece = Some(Piece {
        bytes: 4 << 20,
        ns: 40 * MS,
    });
    auto.step(all, &seen)
}

fn auto() -> Controller {
    Controller::Auto(Box::new(Auto::new(AutoOptions::default())))
}

fn flash() -> Controller {
    Controller::Auto(Box::new(Auto::new(AutoOptions {
        seeks: false,
        ..AutoOptions::default()
    })))
}

#[test]
fn auto_has_a_margin_before_anything_is_learnt_and_then_what_it_measured() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let margin = |given: &Given| given.promises[0].margin_ns.expect("due times")[DEVICE];
    let first = auto.step(&all, &seen(0, vec![PromiseSeen::default()]));
    assert_eq!(margin(&first), 100 * MS);
    let Others {
        permits,
        beside,
        first: yields,
        ..
    } = first.others[DEVICE];
    assert_eq!((permits, beside, yields), (1, 0, true));
    // Up at once, to what is seen, an eighth too much at most.
    let up = margin(&auto_step(&mut auto, &all, (200, 0), 120));
    assert!((120 * MS..135 * MS).contains(&up), "{up}");
    // Down when that is forgotten and something was learnt of it, slowly.
    let mut settled = up;
    for _ in 0..300 {
        let next = margin(&auto_step(&mut auto, &all, (200, 0), 20));
        assert!(next > settled * 8 / 10, "{next} {settled}");
        settled = next;
    }
    assert!((20 * MS..26 * MS).contains(&settled), "{settled}");
    // And never so much that what is promised goes before others from the start.
    let capped = margin(&auto_step(&mut auto, &all, (200, 0), 190));
    assert_eq!(capped, 170 * MS);
}

/// Requests that need 20 ms, and one of 600 that needs 90. Where there are thousands in a window of
/// 10 s, so few may be late. Where there are 200 of them, one window of twenty would have more than
/// it may have, so the margin is made for all; for as long as it is remembered that there was one.
#[test]
fn auto_has_a_margin_for_all_where_a_window_has_few_requests() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let mut margin = |requests: u64, slow: u64| {
        let mut promise = latency(requests, 0, 20);
        let mut tail = Tail::default();
        tail.record_many(20 * MS, requests - slow);
        tail.record_many(90 * MS, slow);
        promise.after = [tail.clone(), tail];
        let mut seen = seen(S, vec![promise]);
        seen.others_occupied = 1.0;
        let given = auto.step(&all, &seen);
        given.promises[0].margin_ns.expect("due times")[DEVICE]
    };
    let many = (0..60).map(|_| margin(600, 1)).last().expect("some");
    assert!(many < 60 * MS, "{many}");
    let few = margin(20, 0);
    assert!(few > 90 * MS, "{few}");
    let forgotten = (0..90).map(|_| margin(20, 0)).last().expect("some");
    assert!(forgotten < 60 * MS, "{forgotten}");
}

#[test]
fn auto_lets_more_out_while_requests_are_in_time_and_less_as_soon_as_they_are_late() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let first = auto_step(&mut auto, &all, (200, 0), 20);
    assert_eq!(
        (first.others[DEVICE].permits, first.chunk_bytes),
        (1, Some(2 << 20))
    );
    let mut most = first;
    for _ in 0..100 {
        most = auto_step(&mut auto, &all, (200, 0), 20);
    }
    assert_eq!(
        (most.others[DEVICE].permits, most.chunk_bytes),
        (3, Some(4 << 20))
    );
    let permits = |given: &Given| given.others[DEVICE].permits;
    let mut late = || auto_step(&mut auto, &all, (200, 50), 20);
    assert_eq!(permits(&late()), 2, "at once");
    assert_eq!(
        permits(&late()),
        2,
        "what was late before the change says nothing of it"
    );
    assert_eq!(permits(&late()), 1);
    let chunks: Vec<_> = (0..8).map(|_| late().chunk_bytes).collect();
    assert!(chunks.last() < chunks.first(), "{chunks:?}");
}

#[test]
fn auto_does_not_leave_what_held_for_a_minute_for_a_few_late_requests() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let mut permits = |late| {
        let given = auto_step(&mut auto, &all, (200, late), 20);
        given.others[DEVICE].permits
    };
    let most = (0..200).map(|_| permits(0)).max();
    assert_eq!(most, Some(3));
    // Twenty of ten seconds' may be late.
    assert_eq!([permits(12), permits(0), permits(0)], [3; 3]);
    assert_eq!(permits(12), 2, "twice in a minute");
    let mut permits = (0..200).map(|_| permits(0)).collect::<Vec<_>>();
    assert_eq!(permits.pop(), Some(3));
    let many = auto_step(&mut auto, &all, (200, 40), 20);
    assert_eq!(many.others[DEVICE].permits, 2, "more than may be");
}

#[test]
fn auto_tries_ever_more_seldom_what_does_not_last_a_minute() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let (mut lasts, mut rises, mut before) = (0, Vec::new(), 1);
    for second in 0..600 {
        // The third permit is well for longer than a trial, and then many are late.
        let late = if lasts == 20 { 40 } else { 0 };
        let permits = auto_step(&mut auto, &all, (200, late), 20).others[DEVICE].permits;
        lasts = if permits == 3 { lasts + 1 } else { 0 };
        if permits == 3 && before < 3 {
            rises.push(second);
        }
        before = permits;
    }
    let waits: Vec<i32> = rises.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((4..8).contains(&rises.len()), "{rises:?}");
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0]), "{waits:?}");
}

#[test]
fn auto_takes_one_step_for_a_moment_in_which_requests_were_late_and_none_if_no_stage_did_it() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    assert_eq!(chunk(auto_step(&mut auto, &all, (100, 0), 20)), 2 << 20);
    let opening = PromiseSeen {
        held: 20,
        ..latency(100, 20, 20)
    };
    let opened = auto.step(&all, &seen(S, vec![opening]));
    assert_eq!(chunk(opened), 2 << 20, "no stage's doing");
    let mut step = |late| chunk(auto_step(&mut auto, &all, (100, late), 20));
    let chunks: Vec<_> = [20].into_iter().chain([0; 30]).map(&mut step).collect();
    assert_eq!(chunks.iter().min(), Some(&(1 << 20)), "{chunks:?}");
    assert!(chunks.last() >= Some(&(2 << 20)), "forgotten: {chunks:?}");
}

#[test]
fn auto_keeps_handlers_free_when_others_hold_them_all() {
    let all = [held(0, Some(5), None, 80)];
    let mut auto = flash();
    let mut step = |late, unhandled| {
        let promise = PromiseSeen {
            unhandled,
            ..latency(1_000, late, 1)
        };
        let mut seen = seen(S, vec![promise]);
        // A quarter of a handler is at work for them.
        (seen.handled, seen.handled_ns) = (1_000, 250 * MS);
        let given = auto.step(&all, &seen);
        let [handlers, device] = [HANDLERS, DEVICE].map(|stage| given.others[stage]);
        (handlers.kept, device.permits, given.why)
    };
    let (first, out, _) = step(0, 0);
    // One, one to begin with, and a quarter and three times its root.
    assert_eq!(first, 4);
    let (more, same, why) = step(200, 200);
    assert_eq!(
        (more, same),
        (5, out),
        "slower scans would hold them longer"
    );
    assert!(
        why.iter().any(|why| why.contains("5 are kept free")),
        "{why:?}"
    );
    // What else is late asks for less at the device, and no more than half of all are kept.
    let (_, less, _) = (0..4).map(|_| step(200, 0)).last().expect("steps");
    assert!(less < out, "{less} {out}");
    let (most, ..) = (0..40).map(|_| step(200, 200)).last().expect("steps");
    assert_eq!(most, 8);
}

#[test]
fn compactions_give_way_before_the_reads_of_others_where_nothing_seeks() {
    let all = [held(0, Some(500), None, 80)];
    let mut auto = flash();
    // They take all that they may have.
    let mut part = None;
    let mut step = |asked, late| {
        let mut promise = latency(asked, late, 1);
        promise.after = std::array::from_fn(|_| promise.latencies.clone());
        let mut seen = seen(S, vec![promise]);
        (seen.others_occupied, seen.others_bytes_per_s) = (1.0, 1e8);
        seen.compaction = part.unwrap_or(1.0);
        let given = auto.step(&all, &seen);
        part = given.compaction;
        (part, given.others[DEVICE].permits)
    };
    assert_eq!(step(0, 0).0, None, "nobody is harmed");
    let (first, out) = step(1_000, 0);
    assert_eq!(first, Some(0.05));
    assert_eq!(step(1_000, 0).0, Some(0.06), "no harm so far");
    assert_eq!(step(1_000, 8).0, Some(0.06), "two fifths of what may be");
    assert_eq!(step(1_000, 500), (Some(0.015), out));
    // A little is always left to them; then others read less.
    let (least, fewer) = (0..20).map(|_| step(1_000, 500)).last().expect("steps");
    assert_eq!(least, Some(0.005));
    assert!(fewer < out, "{fewer} {out}");
    let free = (0..2_000).position(|_| step(1_000, 0).0.is_none());
    assert!(
        free.is_some_and(|after| (20..100).contains(&after)),
        "{free:?}"
    );
}

#[test]
fn compactions_go_as_ever_where_an_arm_seeks() {
    let (mut auto, all) = (auto(), [held(0, Some(500), None, 80)]);
    let mut seen = seen(S, vec![latency(1_000, 500, 1)]);
    seen.compaction = 0.5;
    assert_eq!(auto.step(&all, &seen).compaction, None);
}

#[test]
fn auto_moves_what_is_out_by_parts_of_it_where_nothing_seeks() {
    let all = [held(0, Some(500), None, 80)];
    let mut auto = flash();
    let mut out = |late| {
        let given = auto_step(&mut auto, &all, (1_000, late), 1);
        given.others[DEVICE].permits
    };
    let fewest = (0..12).map(|_| out(500)).last().expect("steps");
    assert!(fewest < 8, "{fewest}");
    let intervals = (0..2_000).position(|_| out(0) == 32);
    // One by one it would take a step of 17 intervals for each permit.
    assert!(intervals.is_some_and(|after| after < 200), "{intervals:?}");
}

fn chunk(given: Given) -> u64 {
    given.chunk_bytes.expect("pieces")
}

#[test]
fn auto_lets_no_more_out_while_nobody_asks() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let first = chunk(auto_step(&mut auto, &all, (200, 0), 20));
    let idle = (0..100).map(|_| chunk(auto_step(&mut auto, &all, (0, 0), 20)));
    assert_eq!(idle.max(), Some(first));
    let asked = (0..20).map(|_| chunk(auto_step(&mut auto, &all, (200, 0), 20)));
    assert!(asked.max() > Some(first));
}

#[test]
fn auto_takes_back_what_others_lost_by() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let mut out = Vec::new();
    let mut permits = 1;
    for _ in 0..100 {
        // Two pieces at a time are a seek for each.
        let per_s = if permits > 1 { 5e7 } else { 1e8 };
        permits = auto_beside(&mut auto, &all, (200, 0), 20, per_s).others[DEVICE].permits;
        out.push(permits);
    }
    assert_eq!(out.iter().max(), Some(&2), "tried: {out:?}");
    assert_eq!(out.last(), Some(&1), "taken back: {out:?}");
    assert!(
        out.iter().filter(|out| **out == 2).count() <= 12,
        "and not tried again: {out:?}"
    );
}

#[test]
fn auto_never_lets_so_much_out_that_a_request_may_wait_for_it_too_long() {
    let (mut auto, all) = (auto(), [held(0, Some(50), None, 80)]);
    let mut given = Given::default();
    for _ in 0..200 {
        given = auto_step(&mut auto, &all, (200, 0), 20);
    }
    // A piece twice as large would take 40 ms more.
    assert_eq!(
        (given.others[DEVICE].permits, given.chunk_bytes),
        (1, Some(512 << 10))
    );
}

#[test]
fn promises_give_way_by_importance_when_not_all_can_be_kept() {
    let all = [held(0, Some(100), None, 80), held(1, Some(100), None, 20)];
    let mut auto = auto();
    let mut given = Given::default();
    for _ in 0..60 {
        given = auto_step(&mut auto, &all, (200, 100), 200);
    }
    let parts: Vec<f64> = given.promises.iter().map(|given| given.part).collect();
    let badness = |at: usize, importance: f64| importance * (1.0 - parts[at]);
    assert!(parts[0] > parts[1], "{parts:?}");
    assert!(
        parts[1] == 0.0 || (badness(0, 80.0) - badness(1, 20.0)).abs() < 1e-6,
        "{parts:?}"
    );
    for _ in 0..200 {
        given = auto_step(&mut auto, &all, (200, 0), 20);
    }
    assert!(
        given.promises.iter().all(|given| given.part == 1.0),
        "{given:?}"
    );
}

#[test]
fn others_have_no_more_while_promises_give_way_and_these_are_soon_back() {
    let (mut auto, all) = (auto(), [held(0, Some(100), None, 80)]);
    let mut step = |late, ms| {
        let given = auto_step(&mut auto, &all, (200, late), ms);
        let out = (given.chunk_bytes, given.others[DEVICE].permits);
        (given.promises[0].part, out)
    };
    // Four times as slow as promised, whatever others have.
    let slow = (0..40).map(|_| step(100, 400));
    let (part, least) = slow
        .skip(10)
        .find(|(part, _)| *part < 0.9)
        .expect("it gives way");
    let (half, same) = step(0, 20);
    assert!(
        1.0 - half < 0.6 * (1.0 - part) && same == least,
        "{part} {half}"
    );
    let back = (0..20)
        .map(|_| step(0, 20))
        .position(|(part, _)| part == 1.0);
    assert!(back.is_some(), "it is back");
    let more = (0..300).map(|_| step(0, 20).1).max();
    assert!(more > Some(least), "{more:?} {least:?}");
}

/// Of a promised rate of large scans none is answered for long. What waits asks for it all the
/// same.
#[test]
fn a_promised_rate_of_which_nothing_is_answered_is_short() {
    let all = [held(0, Some(100), None, 80), held(1, None, Some(1.0), 50)];
    let mut auto = auto();
    let mut parts = |waiting_ns| {
        let starved = PromiseSeen {
            waiting_ns,
            ..PromiseSeen::default()
        };
        let given = auto.step(&all, &seen(S, vec![latency(200, 0, 20), starved]));
        given.promises.iter().all(|given| given.part == 1.0)
    };
    assert!((0..10).all(|_| parts(0)), "it asks for nothing");
    assert!(!(1..10).all(|second| parts(second * S)), "it waits");
}

/// Several servers keep a rate together: a part of it that changes is the same promise.
#[test]
fn another_part_of_a_promised_rate_is_aimed_at_with_what_was_learnt() {
    let mut auto = auto();
    let mut step = |per_s, device| {
        let mut reads = latency(40, 0, 20);
        reads.device = device;
        let all = [held(0, Some(100), None, 80), held(1, None, Some(per_s), 50)];
        let given = auto.step(&all, &seen(S, vec![latency(200, 0, 20), reads]));
        (given.promises[0].margin_ns, given.promises[1].device)
    };
    let mut last = Default::default();
    for _ in 0..20 {
        last = step(40.0, 0.4);
    }
    let (margins, device) = last;
    let (kept, half) = step(20.0, 0.4);
    assert_eq!(kept, margins);
    assert!(
        (half - device / 2.0).abs() < 0.01 && device > 0.4,
        "{half} of {device}"
    );
}

/// A stall in which nothing is answered is seen while it lasts.
#[test]
fn requests_that_wait_for_longer_than_promised_ask_for_more_before_they_are_answered() {
    let (mut auto, all) = (auto(), [held(0, Some(200), None, 80)]);
    let before = chunk(auto_step(&mut auto, &all, (200, 0), 20));
    let mut stalled = PromiseSeen {
        waiting_ns: S,
        ..PromiseSeen::default()
    };
    stalled.counts.overdue = 5;
    let given = auto.step(&all, &seen(S, vec![stalled]));
    assert!(chunk(given) < before);
}
