//! The depth that is found for handlers, where processors are short and where the disk is.

#[path = "common/closed.rs"]
mod closed;

use closed::Dice;
use policy::depth::{Depth, Slice};
use policy::Nanos;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What a piece of work takes, in the mean: of a processor, half of it before the disk and half after, and of the disk.
#[derive(Clone, Copy, Debug)]
struct Work {
    processor_ns: Nanos,
    disk_ns: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Before,
    Reading,
    After,
}

/// Handlers that always find work queued, before some processors that serve first come first served and a disk that has
/// room for all.
struct Machine {
    processors: usize,
    busy: usize,
    ready: VecDeque<usize>,
    events: BinaryHeap<Reverse<(Nanos, usize, Phase)>>,
    pieces: Vec<Phase>,
    free: Vec<usize>,
    now: Nanos,
    dice: Dice,
}

impl Machine {
    fn new(processors: usize) -> Machine {
        Machine {
            processors,
            busy: 0,
            ready: VecDeque::new(),
            events: BinaryHeap::new(),
            pieces: Vec::new(),
            free: Vec::new(),
            now: 0,
            dice: Dice(11),
        }
    }

    /// Exponential, as far as a table of a thousand steps goes.
    fn about(&mut self, mean: Nanos) -> Nanos {
        let uniform = (self.dice.below(1_000) as f64 + 0.5) / 1_000.0;
        (mean as f64 * -uniform.ln()) as Nanos + 1
    }

    fn outstanding(&self) -> usize {
        self.pieces.len() - self.free.len()
    }

    fn begin(&mut self) {
        let piece = self.free.pop().unwrap_or_else(|| {
            self.pieces.push(Phase::Before);
            self.pieces.len() - 1
        });
        self.pieces[piece] = Phase::Before;
        self.ready.push_back(piece);
    }

    /// Serves for `ns` with so many permits.
    fn run(&mut self, ns: Nanos, permits: usize, work: Work) -> Slice {
        let until = self.now + ns;
        let mut slice = Slice {
            done: 0.0,
            ns,
            limited: true,
        };
        loop {
            while self.outstanding() < permits {
                self.begin();
            }
            while self.busy < self.processors {
                let Some(piece) = self.ready.pop_front() else {
                    break;
                };
                self.busy += 1;
                let end = self.now + self.about(work.processor_ns / 2);
                self.events.push(Reverse((end, piece, self.pieces[piece])));
            }
            let Some(Reverse((at, piece, phase))) = self.events.pop() else {
                panic!("somebody works");
            };
            if at > until {
                self.events.push(Reverse((at, piece, phase)));
                self.now = until;
                return slice;
            }
            self.now = at;
            match phase {
                Phase::Before => {
                    self.busy -= 1;
                    let end = self.now + self.about(work.disk_ns);
                    self.events.push(Reverse((end, piece, Phase::Reading)));
                }
                Phase::Reading => {
                    self.pieces[piece] = Phase::After;
                    self.ready.push_back(piece);
                }
                Phase::After => {
                    self.busy -= 1;
                    slice.done += 1.0;
                    self.free.push(piece);
                }
            }
        }
    }
}

const SLICE_NS: Nanos = 20_000_000;
const MOST: u32 = 64;

/// What is done in a second with a fixed number.
fn rate(processors: usize, permits: u32, work: Work) -> f64 {
    let mut machine = Machine::new(processors);
    machine.run(SLICE_NS, permits as usize, work);
    machine.run(1_000_000_000, permits as usize, work).done
}

/// So many slices with the depth that is found; what was done in them, and the mean of the permits.
fn follow(machine: &mut Machine, depth: &mut Depth, slices: u32, work: Work) -> (f64, f64) {
    let (mut done, mut permits) = (0.0, 0);
    for _ in 0..slices {
        permits += depth.permits();
        let slice = machine.run(SLICE_NS, depth.permits() as usize, work);
        done += slice.done;
        depth.step(&slice);
    }
    (done, f64::from(permits) / f64::from(slices))
}

const COLD_GET: Work = Work {
    processor_ns: 75_000,
    disk_ns: 110_000,
};
const SLOW_DISK: Work = Work {
    processor_ns: 75_000,
    disk_ns: 8_000_000,
};

#[test]
fn few_are_outstanding_where_processors_are_short_and_many_where_the_disk_is_slow() {
    let (mut machine, mut depth) = (Machine::new(2), Depth::new(MOST / 2, 2..=MOST));
    // Within five seconds of each change.
    for _ in 0..3 {
        follow(&mut machine, &mut depth, 250, COLD_GET);
        let (_, few) = follow(&mut machine, &mut depth, 250, COLD_GET);
        assert!((4.0..16.0).contains(&few), "{few}");
        follow(&mut machine, &mut depth, 250, SLOW_DISK);
        let (_, many) = follow(&mut machine, &mut depth, 250, SLOW_DISK);
        assert!(many > 40.0, "{many}");
    }
}

#[test]
fn all_permits_are_left_again() {
    let (mut machine, mut depth) = (Machine::new(2), Depth::new(MOST, 2..=MOST));
    follow(&mut machine, &mut depth, 500, COLD_GET);
    let (_, few) = follow(&mut machine, &mut depth, 250, COLD_GET);
    assert!(few < 16.0, "{few}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Little is lost by it: at least .9 of what any fixed number does.
    #[test]
    fn processors_stay_busy(
        processors in 1..5usize,
        processor_us in 10..200u64,
        disk_us in 20..2_000u64,
    ) {
        let work = Work { processor_ns: processor_us * 1_000, disk_ns: disk_us * 1_000 };
        let best = [1, 2, 4, 8, 16, 32, MOST].map(|permits| rate(processors, permits, work));
        let best = best.into_iter().fold(0.0, f64::max);
        let (mut machine, mut depth) = (Machine::new(processors), Depth::new(MOST / 2, 2..=MOST));
        follow(&mut machine, &mut depth, 250, work);
        let (done, permits) = follow(&mut machine, &mut depth, 100, work);
        let per_s = done / 2.0;
        prop_assert!(per_s >= 0.9 * best, "{per_s} of {best} with {permits}");
    }
}
