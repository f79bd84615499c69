//! The depth that is found on emulated devices, and what capacity follows.

#[path = "common/closed.rs"]
mod closed;

use closed::Dice;
use policy::cost::device::{Op, Vop};
use policy::depth::{Capacity, Depth, Slice, Step, WORTH};
use policy::device::{Device, Event, HddParameters, Io, Model, SsdParameters};
use policy::Nanos;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A device that always has I/Os waiting for a permit.
struct Backlogged<'a> {
    device: Device,
    permits: u32,
    outstanding: u32,
    now: Nanos,
    tag: u64,
    since: VecDeque<(u64, Nanos)>,
    ask: Box<dyn FnMut() -> Io + 'a>,
}

/// Of one slice.
struct Seen {
    done: u64,
    latency_ns: f64,
}

impl<'a> Backlogged<'a> {
    fn new(model: &Model, permits: u32, ask: impl FnMut() -> Io + 'a) -> Self {
        Backlogged {
            device: Device::new(model, 3),
            permits,
            outstanding: 0,
            now: 0,
            tag: 0,
            since: VecDeque::new(),
            ask: Box::new(ask),
        }
    }

    fn run(&mut self, ns: Nanos) -> Seen {
        let (until, mut done, mut latency) = (self.now + ns, 0u64, 0u64);
        loop {
            while self.outstanding < self.permits {
                self.outstanding += 1;
                self.tag += 1;
                self.device.submit(self.now, self.tag, (self.ask)());
                self.since.push_back((self.tag, self.now));
            }
            match self.device.next(self.now) {
                Event::Idle => panic!("something is outstanding"),
                Event::At(at) if at > until => {
                    self.now = until;
                    let latency_ns = latency as f64 / done.max(1) as f64;
                    return Seen { done, latency_ns };
                }
                Event::At(at) => self.now = at,
                Event::Done { tag, at } => {
                    self.outstanding -= 1;
                    done += 1;
                    let place = self
                        .since
                        .iter()
                        .position(|(other, _)| *other == tag)
                        .expect("submitted");
                    let (_, since) = self.since.remove(place).expect("there");
                    latency += at - since;
                }
            }
        }
    }
}

/// Lets the controller work for `slices`; returns the depth and (rate, latency) there and with 256
/// outstanding.
fn found(model: &Model, start: u32, slice: Nanos, slices: u32) -> (u32, [f64; 2], [f64; 2]) {
    let io = |dice: &mut Dice| dice.io(Op::Read, 4 << 10, 64 << 30);
    let mut dice = Dice::new(5);
    let mut world = Backlogged::new(model, start, || io(&mut dice));
    let mut depth = Depth::new(start, 1);
    for _ in 0..slices {
        world.permits = depth.permits();
        let seen = world.run(slice);
        let done = Vop(seen.done * Vop::ONE.0);
        let Step { permits, .. } = depth.step(&Slice {
            done,
            ns: slice,
            limited: true,
        });
        assert!(permits >= 1);
    }
    let steady = |permits| {
        let mut dice = Dice::new(6);
        let mut world = Backlogged::new(model, permits, || io(&mut dice));
        world.run(slice);
        let seen = world.run(20 * slice);
        [
            seen.done as f64 * 1e9 / (20 * slice) as f64,
            seen.latency_ns,
        ]
    };
    // A trial may be running: what it holds on to is the lower of the two.
    let mut held = depth.clone();
    let least = (0..40)
        .map(|_| {
            held.step(&Slice {
                done: Vop::ONE,
                ns: slice,
                limited: false,
            })
            .permits
        })
        .min();
    let least = least.expect("some");
    (least, steady(least), steady(256))
}

const MS: Nanos = 1_000_000;

#[test]
fn an_ssd_is_kept_busy_without_a_queue_in_it() {
    let model = Model::Ssd(SsdParameters::default());
    for start in [1, 32, 500] {
        let (depth, here, deep) = found(&model, start, 20 * MS, 600);
        assert!((2..=12).contains(&depth), "from {start} to {depth}");
        assert!(here[0] > 0.85 * deep[0], "{depth}: {here:?} {deep:?}");
        assert!(here[1] < deep[1] / 10.0, "{depth}: {here:?} {deep:?}");
    }
}

#[test]
fn an_arm_is_given_a_choice() {
    let model = Model::Hdd(HddParameters::default());
    for start in [1, 200] {
        let (depth, here, deep) = found(&model, start, 10_000 * MS, 400);
        // Its own queue has 32: deeper ones wait before it.
        assert!((8..=48).contains(&depth), "from {start} to {depth}");
        assert!(here[0] > 0.75 * deep[0], "{depth}: {here:?} {deep:?}");
    }
}

fn slice(per_s: f64, limited: bool) -> Slice {
    Slice {
        done: Vop::new(per_s / 10.0),
        ns: 100 * MS,
        limited,
    }
}

#[test]
fn a_trial_says_why() {
    let mut depth = Depth::new(8, 1);
    let mut trials = Vec::new();
    for _ in 0..8 {
        // Twice the depth, 41 % more.
        let per_s = 1000.0 * f64::from(depth.permits()).sqrt();
        trials.extend(depth.step(&slice(per_s, true)).trial);
    }
    let [trial] = trials[..] else {
        panic!("{trials:?}")
    };
    assert_eq!((trial.low, trial.high, trial.depth), (8, 12, 12));
    for half in trial.elasticity {
        assert!((half - 0.5).abs() < 1e-3 && half > WORTH);
    }
}

/// The permits over time on a device that does as much at any depth of `enough` and more, and in
/// each slice up to a fifth more or less than that by chance.
fn in_noise(start: u32, enough: f64, slices: usize) -> Vec<u32> {
    let (mut depth, mut dice) = (Depth::new(start, 1), Dice::new(7));
    let one = |_| {
        let noise = 0.8 + 0.4 * dice.below(1 << 20) as f64 / (1 << 20) as f64;
        let per_s = 20e3 * noise * (f64::from(depth.permits()) / enough).min(1.0);
        depth.step(&slice(per_s, true)).permits
    };
    (0..slices).map(one).collect()
}

#[test]
fn chance_does_not_lead_to_deep_queues() {
    let permits = in_noise(32, 8.0, 20_000);
    let settled = &permits[1_000..];
    let mean = settled.iter().sum::<u32>() as f64 / settled.len() as f64;
    assert!((6.0..14.0).contains(&mean), "{mean}");
    let deep = settled.iter().filter(|permits| **permits > 24).count();
    assert!(deep < settled.len() / 20, "{deep} of {}", settled.len());
}

#[test]
fn what_is_far_too_small_is_left_in_seconds() {
    let permits = in_noise(1, 24.0, 100);
    assert!(permits[99] >= 12, "{permits:?}");
}

/// Permits over time of an arm that ends one to four large I/Os a slice, as many at any depth.
fn of_a_few_large(slices: usize) -> Vec<u32> {
    let (mut depth, mut dice) = (Depth::new(1, 1), Dice::new(7));
    let one = |_| {
        let ios = 1 + dice.below(4);
        depth.step(&slice(10.0 * ios as f64, true)).permits
    };
    (0..slices).map(one).collect()
}

#[test]
fn a_few_large_ios_do_not_deepen_it() {
    let permits = of_a_few_large(20_000);
    // Four is the higher depth of a trial at one.
    assert!(permits.iter().all(|permits| *permits <= 5), "{permits:?}");
    let deep = permits.iter().filter(|permits| **permits > 1).count();
    assert!(deep < permits.len() / 50, "{deep}");
}

#[test]
fn while_nothing_changes_it_tries_less_and_less() {
    let mut depth = Depth::new(4, 4);
    let permits: Vec<u32> = (0..9_000)
        .map(|_| depth.step(&slice(1000.0, true)).permits)
        .collect();
    let tried = |from: usize| permits[from..].iter().filter(|all| **all > 4).count();
    assert!(tried(0) < 60, "{}", tried(0));
    // Four slices in a thousand.
    assert!((16..=40).contains(&tried(3_000)), "{}", tried(3_000));
}

/// Slices until the next trial at the higher depth, after a long time without a change and then
/// this load.
fn tries_after(load: impl Fn(usize) -> Slice) -> Option<usize> {
    let mut depth = Depth::new(4, 4);
    while depth.step(&slice(1000.0, true)).trial.is_none() {}
    for _ in 0..2_200 {
        let _ = depth.step(&slice(1000.0, true));
    }
    assert_eq!(depth.permits(), 4);
    (0..400).find(|turn| depth.step(&load(*turn)).permits > 4)
}

#[test]
fn another_load_is_noticed_at_once() {
    let same = |_| slice(1000.0, true);
    assert_eq!(tries_after(same), None, "the rest is long by now");
    let noticed = |load: fn(usize) -> Slice| tries_after(load).is_some_and(|after| after < 10);
    assert!(noticed(|_| slice(1500.0, true)), "it does more");
    assert!(noticed(|_| slice(500.0, true)), "it does less");
    let back = tries_after(|turn| slice(1000.0, turn >= 60));
    assert!(
        back.is_some_and(|after| (60..64).contains(&after)),
        "{back:?}"
    );
}

#[test]
fn what_a_load_needed_goes_with_it() {
    let mut depth = Depth::new(1, 1);
    let mut permits = |enough: f64, most: f64, slices: usize| {
        let per_s = |depth: u32| most * (f64::from(depth) / enough).min(1.0);
        (0..slices)
            .map(|_| depth.step(&slice(per_s(depth.permits()), true)).permits)
            .last()
    };
    assert!(permits(24.0, 20e3, 4_000) >= Some(18));
    assert!(permits(2.0, 10e3, 300) <= Some(6));
}

#[test]
fn it_stays_where_prices_hold() {
    let mut depth = Depth::new(4, 4);
    let permits = (0..400).map(|_| depth.step(&slice(1000.0, true)).permits);
    assert_eq!(permits.min(), Some(4));
    assert_eq!(Depth::new(2, 4).permits(), 4);
}

#[test]
fn an_idle_device_teaches_nothing() {
    let mut depth = Depth::new(8, 1);
    for turn in 0..1000 {
        // Somebody waits now and then only.
        let step = depth.step(&slice(f64::from(turn % 7) * 1000.0, turn % 5 != 0));
        assert!(step.trial.is_none());
    }
    assert_eq!(depth.permits(), 8);
}

#[test]
fn capacity_follows_a_busy_device_and_reports_what_is_missing() {
    let mut capacity = Capacity::new(20_000.0);
    for _ in 0..100 {
        capacity.step(&slice(35_000.0, true));
    }
    assert!((capacity.per_s() - 35_000.0).abs() < 10.0 && capacity.missing_per_s().is_none());
    for _ in 0..100 {
        capacity.step(&slice(10.0, false));
    }
    assert!(
        (capacity.per_s() - 35_000.0).abs() < 10.0,
        "idle is not slow"
    );
    for _ in 0..100 {
        capacity.step(&slice(15_000.0, true));
    }
    let missing = capacity.missing_per_s().expect("below the floor");
    assert!((missing - 5_000.0).abs() < 10.0, "{missing}");
}

proptest! {
    /// Whatever it is told, the depth stays in its bounds.
    #[test]
    fn depth_stays_in_bounds(start: u32, slices in prop::collection::vec((0u64..1 << 50, 0u64..1 << 40, any::<bool>()), 0..400)) {
        let mut depth = Depth::new(start, 1);
        for (done, ns, limited) in slices {
            let step = depth.step(&Slice { done: Vop(done), ns, limited });
            prop_assert!((1..=1023).contains(&step.permits));
            prop_assert_eq!(step.permits, depth.permits());
        }
    }
}
