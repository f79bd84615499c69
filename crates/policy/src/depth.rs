//! How many I/Os to keep outstanding at a device, and how much it is worth at present.
//!
//! **Depth.** Too few outstanding and dies or arms idle; too many and they wait in the device,
//! where no policy reaches them. Cake (4.1) moves its bound up by one and down by half between two
//! latencies set by hand. Here no latency is set. By Little's law a device with `n` outstanding
//! that does `x` a second takes `n / x`, so what a deeper queue does is one number, the elasticity
//! of throughput
//!
//! ```text
//! e = d ln x / d ln n,      and that of latency is 1 - e.
//! ```
//!
//! At e = 1 more depth costs no latency, at e = 0 it brings nothing else. [`Depth`] compares two
//! depths in turns (low, high, high, low, so that drift cancels) while somebody waits, goes up
//! while `e` is above [`WORTH`], and down by a part when it is below [`WORTHLESS`].
//!
//! A slice says what the device did to within some percent, as I/Os differ, and a trial of few
//! slices to within 0.2 of elasticity. So a step up is no larger than a step down, and both halves
//! of the trial must be for it: were steps up larger, chance alone would lead to ever deeper
//! queues.
//!
//! **Capacity.** [`Capacity`] follows the VOPs a second that the device does while somebody waits
//! (iocost's vrate and Gimbal do so by latency; here the depth keeps latency where it should be).
//! The calibrated floor is the start.

use crate::cost::device::Vop;
use crate::cost::Nanos;

/// A deeper queue is worth its latency above this elasticity: twice the depth, 11 % more
/// throughput.
pub const WORTH: f64 = 0.15;
/// And worthless below this one: twice the depth, 3.5 %.
pub const WORTHLESS: f64 = 0.05;
/// The two depths that are compared: noise of 5 % in each slice is then 0.12 in the elasticity of
/// half a trial.
const APART: (u32, u32) = (3, 2);
/// But at least this many more: an arm with one I/O to choose from chooses no better than without.
const APART_MIN: u32 = 3;
/// What a depth loses or gains at a time, 1 / this.
const STEP: u32 = 8;
/// Above this elasticity it goes all the way to the higher depth: there is far to go, as after a
/// load of another kind.
const FAR: f64 = 2.0 * WORTH;
/// Slices of half a trial: low, high, high, low.
const HALF: usize = 4;
/// Slices of a trial.
const TRIAL: usize = 2 * HALF;
/// Slices without a trial after one that changed nothing: trying costs a little.
const REST: u32 = 32;
/// No device takes more at a time through one queue (NVMe: 1023 commands).
const DEPTH_MAX: u32 = 1023;

/// What a device did in one slice of time. A slice should see some hundred I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Work done.
    pub done: Vop,
    /// In this time, nanoseconds.
    pub ns: Nanos,
    /// Whether I/Os waited for a permit all the time: otherwise the device did what it was asked,
    /// not what it can.
    pub limited: bool,
}

impl Slice {
    fn per_s(&self) -> f64 {
        let Slice { done, ns, .. } = *self;
        Sum { done, ns }.per_s()
    }
}

/// Why the depth is what it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The smaller depth tried.
    pub low: u32,
    /// The larger depth tried.
    pub high: u32,
    /// VOPs a second at each.
    pub per_s: [f64; 2],
    /// Elasticity of throughput between them, as each half of the trial has it.
    pub elasticity: [f64; 2],
    /// The depth from now on.
    pub depth: u32,
}

/// The answer to a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Permits in the next slice.
    pub permits: u32,
    /// The trial that ended with this slice.
    pub trial: Option<Trial>,
}

/// Finds the depth of one device.
#[derive(Clone, Debug)]
pub struct Depth {
    depth: u32,
    /// Never less than this.
    least: u32,
    /// A depth that was seen to be too small.
    too_small: u32,
    /// Work and time at the lower and the higher depth, in each half of the trial so far.
    seen: [[Sum; 2]; 2],
    slices: usize,
    rest: u32,
}

impl Depth {
    /// Starts at a depth, and never goes below `least`, both 1 to 1023: the depth at which prices
    /// and floor were calibrated. With fewer outstanding a device does less of some kinds of I/O
    /// than they are priced by, though twice the depth brings little.
    #[must_use]
    pub fn new(start: u32, least: u32) -> Depth {
        let least = least.clamp(1, DEPTH_MAX);
        Depth {
            depth: start.clamp(least, DEPTH_MAX),
            least,
            too_small: 0,
            seen: Default::default(),
            slices: 0,
            rest: 0,
        }
    }

    fn high(&self) -> u32 {
        let wide = self.depth * APART.0 / APART.1;
        wide.max(self.depth + APART_MIN).min(DEPTH_MAX)
    }

    /// Whether the slice with this number is one at the higher depth.
    fn is_high(slice: usize) -> bool {
        matches!(slice % 4, 1 | 2)
    }

    /// Permits in the slice that comes.
    #[must_use]
    pub fn permits(&self) -> u32 {
        if self.rest == 0 && Depth::is_high(self.slices) {
            self.high()
        } else {
            self.depth
        }
    }

    /// A slice has ended.
    pub fn step(&mut self, slice: &Slice) -> Step {
        let mut trial = None;
        if self.rest > 0 {
            self.rest -= 1;
        } else if !slice.limited {
            // Nothing was learnt, and the halves would no longer have seen the same.
            self.restart();
        } else {
            let half = &mut self.seen[self.slices / HALF];
            let sum = &mut half[usize::from(Depth::is_high(self.slices))];
            *sum = sum.plus(Sum {
                done: slice.done,
                ns: slice.ns,
            });
            self.slices += 1;
            if self.slices == TRIAL {
                trial = Some(self.decide());
                self.restart();
            }
        }
        Step {
            permits: self.permits(),
            trial,
        }
    }

    fn restart(&mut self) {
        self.seen = Default::default();
        self.slices = 0;
    }

    fn decide(&mut self) -> Trial {
        let (low, high) = (self.depth, self.high());
        let apart = (f64::from(high) / f64::from(low)).ln();
        let elasticity = self.seen.map(|half| {
            let [low, high] = half.map(Sum::per_s);
            // Nothing done at either depth says nothing.
            if low > 0.0 && high > 0.0 && apart > 0.0 {
                (high / low).ln() / apart
            } else {
                WORTHLESS
            }
        });
        let [one, other] = elasticity;
        let (least, mean) = (one.min(other), (one + other) / 2.0);
        let step = self.depth.div_ceil(STEP);
        let back = self.depth - step;
        if least > WORTH {
            self.too_small = self.depth;
            self.depth = if least > FAR {
                high
            } else {
                (self.depth + step).min(high)
            };
        } else if mean < WORTHLESS && back >= self.least && back > self.too_small {
            self.depth = back;
        } else {
            // What was too small may not be for ever.
            self.too_small = 0;
            self.rest = REST;
        }
        let [first, second] = self.seen;
        let at = |index: usize| first[index].plus(second[index]).per_s();
        Trial {
            low,
            high,
            per_s: [at(0), at(1)],
            elasticity,
            depth: self.depth,
        }
    }
}

/// What was done in slices, and how long they were.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    done: Vop,
    ns: Nanos,
}

impl Sum {
    fn plus(self, other: Sum) -> Sum {
        Sum {
            done: self.done.plus(other.done),
            ns: self.ns.saturating_add(other.ns),
        }
    }

    fn per_s(self) -> f64 {
        self.done.get() * 1e9 / self.ns.max(1) as f64
    }
}

/// How much of a new slice the estimate takes: 1 / this.
const FOLLOW: f64 = 8.0;

/// What a device is worth at present.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    floor_per_s: f64,
    per_s: f64,
}

impl Capacity {
    /// Starts at the calibrated floor, VOPs a second.
    #[must_use]
    pub fn new(floor_per_s: f64) -> Capacity {
        Capacity {
            floor_per_s,
            per_s: floor_per_s,
        }
    }

    /// A slice has ended. One in which the device was not busy can show that it does more, never
    /// that it does less.
    pub fn step(&mut self, slice: &Slice) {
        let seen = slice.per_s();
        if slice.limited || seen > self.per_s {
            self.per_s += (seen - self.per_s) / FOLLOW;
        }
    }

    /// VOPs a second that it does under the present mix.
    #[must_use]
    pub fn per_s(&self) -> f64 {
        self.per_s
    }

    /// By how much it does less than the floor, VOPs a second: what was promised on the floor
    /// cannot all be kept, which must be reported.
    #[must_use]
    pub fn missing_per_s(&self) -> Option<f64> {
        Some(self.floor_per_s - self.per_s).filter(|missing| *missing > 0.0)
    }
}

/// How often a device is looked at: some hundred I/Os of an SSD, a few of a hard disk.
pub const SLICE_NS: Nanos = 100_000_000;

/// Follows one device while it runs, slice by slice.
#[derive(Clone, Debug)]
pub struct Follower {
    depth: Depth,
    capacity: Capacity,
    since: Nanos,
    done: Vop,
}

impl Follower {
    /// Starts at the depth and the floor that were calibrated.
    #[must_use]
    pub fn new(now: Nanos, depth: u32, floor_per_s: f64) -> Follower {
        Follower {
            depth: Depth::new(depth, depth),
            capacity: Capacity::new(floor_per_s),
            since: now,
            done: Vop::ZERO,
        }
    }

    /// A slice ends. `done` is all that the device has done since the start; `limited` as in
    /// [`Slice`]. `None`: the slice was long because of a pause, and says nothing.
    pub fn step(&mut self, now: Nanos, done: Vop, limited: bool) -> Option<Step> {
        let slice = Slice {
            done: Vop(done.0.saturating_sub(self.done.0)),
            ns: now.saturating_sub(self.since),
            limited,
        };
        (self.since, self.done) = (now, done);
        if slice.ns == 0 || slice.ns > 2 * SLICE_NS {
            return None;
        }
        self.capacity.step(&slice);
        Some(self.depth.step(&slice))
    }

    /// Permits at present.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.depth.permits()
    }

    /// What the device is worth at present.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }
}
