//! Overload in a closed loop: a resource that has more to do than the promises allow for, and the
//! controller that decides who waits.

mod common;

use common::promised::{held, latency, seen};
use common::{MS, S};
use policy::slo::control::{
    Auto, AutoOptions, Controller, Given, Held, Policy, PromiseSeen, DEVICE,
};
use policy::slo::{Counts, Tail};

/// Requests a second of each promise.
const PER_S: u64 = 400;

/// A resource that serves what is due first, the earliest first. All requests together are under
/// way for `crowd` times what was promised to them, whoever goes first; where that is less than is
/// aimed at, others take what is left, and what may wait waits.
struct Crowded {
    all: Vec<Held>,
    controller: Controller,
    given: Given,
}

impl Crowded {
    fn new(promises: &[(u64, u32)]) -> Self {
        let numbered = (0..).zip(promises);
        let one = |(tenant, (ms, importance)): (u32, &(u64, u32))| {
            held(tenant, Some(*ms), None, *importance)
        };
        let all: Vec<Held> = numbered.map(one).collect();
        let mut controller = Controller::new(Policy::Auto);
        let given = controller.step(&all, &seen(0, vec![PromiseSeen::default(); all.len()]));
        Crowded {
            all,
            controller,
            given,
        }
    }

    fn promised_ms(&self, at: usize) -> f64 {
        let latency = self.all[at].objective.latency.expect("latencies");
        latency.at_most_ns as f64 / MS as f64
    }

    /// By promise, its 99th percentile, ms.
    fn took_ms(&self, crowd: f64) -> Vec<f64> {
        let parts = self.given.promises.iter().map(|given| given.part);
        let aimed: Vec<f64> = parts
            .enumerate()
            .map(|(at, part)| self.promised_ms(at) / part.max(0.05))
            .collect();
        let promised = (0..self.all.len()).map(|at| self.promised_ms(at));
        let under_way: f64 = crowd * promised.sum::<f64>();
        let late = (under_way - aimed.iter().sum::<f64>()) / aimed.len() as f64;
        let took = aimed.iter().zip(&self.given.promises);
        // What has no due time has what is left.
        took.map(|(ms, given)| match given.part > 0.0 {
            true => (ms + late.max(0.0)).max(1.0) * 0.99,
            false => ms + late.max(0.0) * aimed.len() as f64,
        })
        .collect()
    }

    /// An interval; says the badness of each promise in it, by what was measured.
    fn step(&mut self, crowd: f64) -> Vec<f64> {
        let took = self.took_ms(crowd);
        let one = |at: usize| {
            let (few, ms) = (PER_S / 20, took[at]);
            let mut latencies = Tail::default();
            latencies.record_many((0.9 * ms * MS as f64) as u64, PER_S - few);
            latencies.record_many((ms * MS as f64) as u64, few);
            let late = match (ms > self.promised_ms(at), 0.9 * ms > self.promised_ms(at)) {
                (_, true) => PER_S,
                (true, false) => few,
                (false, false) => 0,
            };
            PromiseSeen {
                counts: Counts {
                    requests: PER_S,
                    late,
                    ..Counts::default()
                },
                latencies,
                ..PromiseSeen::default()
            }
        };
        let mut seen = seen(S, (0..self.all.len()).map(one).collect());
        (seen.others_occupied, seen.others_bytes_per_s) = (1.0, 1e7);
        self.given = self.controller.step(&self.all, &seen);
        let badness = |at: usize| {
            let importance = f64::from(self.all[at].objective.importance);
            importance * (1.0 - self.promised_ms(at) / took[at]).max(0.0)
        };
        (0..self.all.len()).map(badness).collect()
    }
}

fn range(all: impl IntoIterator<Item = f64>) -> (f64, f64) {
    all.into_iter().fold((f64::MAX, 0.0), |(least, most), one| {
        (f64::min(least, one), f64::max(most, one))
    })
}

/// Of every promise, badness as measured is within a tenth of that of the others, in every window
/// of ten intervals for as long as the overload lasts; and the promises are soon back after it.
fn settles(promises: &[(u64, u32)], crowd: f64) {
    let mut crowded = Crowded::new(promises);
    let mut window = || -> Vec<f64> {
        let steps: Vec<_> = (0..10).map(|_| crowded.step(crowd)).collect();
        let mean = |at: usize| steps.iter().map(|step| step[at]).sum::<f64>() / 10.0;
        (0..promises.len()).map(mean).collect()
    };
    let all: Vec<_> = (0..60).map(|_| window()).collect();
    for (at, badness) in all.iter().enumerate().skip(6) {
        let (least, most) = range(badness.iter().copied());
        assert!(least > 0.0 && most <= 1.1 * least, "{at}: {badness:?}");
    }
    let of_first = all[6..].iter().map(|badness| badness[0]);
    let (least, most) = range(of_first);
    assert!(most <= 1.15 * least, "it swings from {least} to {most}");
    let back = (0..90).position(|_| {
        crowded.step(0.5);
        crowded.given.promises.iter().all(|given| given.part == 1.0)
    });
    assert!(back.is_some(), "{:?}", crowded.given.promises);
}

#[test]
fn two_promises_that_take_twice_as_long_settle_at_the_same_badness() {
    settles(&[(100, 80), (100, 20)], 2.0);
}

#[test]
fn six_promises_settle_at_the_same_badness() {
    let six = [
        (150, 90),
        (150, 80),
        (200, 70),
        (300, 60),
        (400, 50),
        (600, 40),
    ];
    settles(&six, 1.8);
}

/// Scans have three quarters of the rate that was promised to them, and gets a fifth of their time
/// each: that all promises then aim at less does not mean that gets are late.
#[test]
fn auto_lets_more_out_while_a_promised_rate_is_missed_and_requests_are_in_time() {
    let all = [held(0, Some(100), None, 80), held(1, None, Some(20.0), 1)];
    let mut auto = Controller::Auto(Box::new(Auto::new(AutoOptions {
        piece_bytes_max: 256 << 10,
        ..AutoOptions::default()
    })));
    let mut step = |gets_ms: u64| {
        let mut gets = latency(100, 0, gets_ms);
        let mut tail = Tail::default();
        tail.record_many(20 * MS, 100);
        gets.after = [tail.clone(), tail];
        let mut scans = latency(15, 0, 2_000);
        (scans.occupied, scans.device) = ([0.0, 1.0], 0.5);
        let mut seen = seen(S, vec![gets, scans]);
        (seen.others_occupied, seen.others_bytes_per_s) = (1.0, 3e7);
        auto.step(&all, &seen)
    };
    let first = step(20);
    assert!(first.others[DEVICE].between);
    let later = (0..30).map(|_| step(20)).last().expect("some");
    assert!(later.promises[0].part < 1.0 && later.promises[1].part < 0.9);
    assert!(!later.others[DEVICE].between, "{later:?}");
}
