//! Where an arm seeks for each piece of other work: when requests go among it, and when apart.

mod common;

use common::promised::{held, latency, seen};
use common::{MS, S};
use policy::slo::control::{Auto, AutoOptions, Controller, Given, Held, Piece, DEVICE};
use policy::slo::Tail;

const DRIVES: u32 = 4;

/// What others read, and how their pieces lie.
#[derive(Clone, Copy)]
enum Scans {
    /// A way of the arm apart: the more are out, the shorter the ways.
    Scattered,
    /// The same, but there is a gain only with many.
    Far,
    /// In a row: a seek among them is what costs.
    InARow,
}

/// Four drives with a promise of so many ms, and others that always read.
struct World {
    auto: Controller,
    all: [Held; 1],
    scans: Scans,
    /// Each piece takes so many times as long as usual.
    slow: u64,
    given: Given,
}

impl World {
    fn new(at_most_ms: u64, scans: Scans) -> Self {
        let mut auto = Controller::Auto(Box::new(Auto::new(AutoOptions {
            drives: DRIVES,
            piece_bytes_max: 256 << 10,
            ..AutoOptions::default()
        })));
        let all = [held(0, Some(at_most_ms), None, 80)];
        let given = auto.step(&all, &seen(0, vec![Default::default()]));
        World {
            auto,
            all,
            scans,
            slow: 1,
            given,
        }
    }

    /// I/Os that each drive may have, where requests go among others.
    fn among(&self) -> Option<u32> {
        let permits = self.given.permits[DEVICE]?;
        assert!(!self.given.others[DEVICE].first, "nobody yields");
        assert_eq!(permits % DRIVES, 0);
        Some(permits / DRIVES)
    }

    /// A second goes by. Returns the time that requests took, ms.
    fn second(&mut self) -> u64 {
        let out = self.among();
        let apart = u64::from(self.given.others[DEVICE].permits);
        let n = out.map_or(apart, u64::from);
        let (rate, piece_ms, took_ms) = match (out, self.scans) {
            (Some(_), Scans::Scattered) => (3e7 + 3e6 * n as f64, 4 * n, 15 * n),
            (Some(_), Scans::Far) => (1e7 + 2e6 * n as f64, 4 * n, 15 * n),
            (Some(_), Scans::InARow) => (5e7, 5 * n, 20 * n),
            (None, Scans::Scattered | Scans::Far) => (3e7, 5 * n, 40),
            (None, Scans::InARow) => (2e8, 3 * n, 40),
        };
        let took_ms = took_ms * self.slow;
        let at_most_ns = self.all[0].objective.latency.expect("one").at_most_ns;
        let late = if took_ms * MS > at_most_ns { 20 } else { 0 };
        let mut promise = latency(200, late, took_ms);
        let mut tail = Tail::default();
        tail.record_many(20 * MS, 200);
        promise.after = [tail.clone(), tail];
        let mut seen = seen(S, vec![promise]);
        (seen.others_occupied, seen.others_bytes_per_s) = (1.0, rate);
        let bytes = match self.scans {
            Scans::Scattered | Scans::Far => 100 << 10,
            Scans::InARow => 256 << 10,
        };
        seen.others_piece = Piece::mean(1, bytes, piece_ms * MS * self.slow);
        self.given = self.auto.step(&self.all, &seen);
        took_ms
    }

    fn seconds(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.second();
        }
    }
}

#[test]
fn requests_go_among_what_an_arm_seeks_for_and_as_much_is_out_as_they_have_time_for() {
    for (at_most_ms, least, most) in [(100, 4, 6), (150, 7, 10), (300, 12, 20)] {
        let mut world = World::new(at_most_ms, Scans::Scattered);
        world.seconds(90);
        let soon = world.among().expect("once more apart gains nothing");
        world.seconds(200);
        let out = world.among().expect("they gain by it");
        assert!(
            soon >= least && (least..=most).contains(&out),
            "{at_most_ms}: {soon}, {out}"
        );
        assert!(world.second() <= at_most_ms);
    }
}

#[test]
fn requests_go_apart_from_what_is_read_in_a_row() {
    let mut world = World::new(300, Scans::InARow);
    for second in 0..400 {
        world.second();
        assert_eq!(world.among(), None, "{second}");
    }
    assert!(world.given.others[DEVICE].first);
}

#[test]
fn what_is_late_among_others_has_fewer_beside_it_and_goes_apart_in_the_end() {
    let mut world = World::new(300, Scans::Scattered);
    world.seconds(120);
    let before = world.among().expect("among them");
    world.slow = 2;
    world.seconds(4);
    let less = world.among().expect("still");
    assert!(less < before, "{less} {before}");
    world.slow = 10;
    world.seconds(20);
    assert_eq!(world.among(), None);
}

#[test]
fn requests_go_apart_again_where_others_gain_nothing_with_as_few_as_are_in_time() {
    let mut world = World::new(300, Scans::Far);
    world.seconds(120);
    assert!(world.among().is_some_and(|out| out > 10));
    world.slow = 4;
    let few = (0..30).find_map(|_| {
        world.second();
        world.among().filter(|out| *out < 6)
    });
    assert!(few.is_some());
    world.seconds(90);
    assert_eq!(world.among(), None);
}

#[test]
fn what_others_do_not_gain_by_ends_soon_and_is_tried_again_minutes_later() {
    let mut world = World::new(300, Scans::Scattered);
    world.seconds(120);
    assert!(world.among().is_some());
    // Others read in a row now: that is seen where requests go apart, which is tried.
    world.scans = Scans::InARow;
    let apart = (0..400).position(|_| {
        world.second();
        world.among().is_none()
    });
    assert!(apart.is_some(), "within minutes");
    world.seconds(30);
    assert_eq!(world.among(), None, "they have four times as much");
    // And where they seek again, it is tried to go among them, but not at once.
    world.scans = Scans::Scattered;
    world.seconds(60);
    assert_eq!(world.among(), None);
    world.seconds(340);
    assert!(world.among().is_some());
}

#[test]
fn what_is_tried_ends_within_seconds_where_others_lose_by_it() {
    let mut world = World::new(300, Scans::Scattered);
    world.seconds(120);
    let mut apart = 0;
    for _ in 0..1_000 {
        world.second();
        apart += u32::from(world.among().is_none());
    }
    assert!(
        (1..=40).contains(&apart),
        "a few seconds in five minutes: {apart}"
    );
}
