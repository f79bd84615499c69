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
//! A slice says what the device did to within some percent where it sees hundreds of I/Os, and to
//! within a third where it sees a few large ones. So what slices of one depth differ by is
//! measured, too, and a step up needs an `e` that is clear of it by [`ERRORS`] standard errors. It
//! is no larger than a step down: otherwise chance alone would lead to ever deeper queues.
//!
//! Trying costs latency. Each trial that changes nothing doubles the rest until the next one, and
//! what trials saw is kept meanwhile, so that chance has less and less of a say. A load that is
//! another one ends that at once: the device does more or less at the same depth, or somebody waits
//! again after a while in which nobody did.
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
/// Slices of a trial: low, high, high, low, twice.
const TRIAL: u32 = 8;
/// Slices without a trial after the first one that changed nothing, and the most that this grows
/// to: the higher depth then has .4 % of the time. A change that nothing tells of is found in a
/// hundred seconds.
const REST: u32 = 32;
const REST_MAX: u32 = 1 << 10;
/// The elasticity of chance alone is beyond so many standard errors in one trial of fifty.
pub const ERRORS: f64 = 2.0;
/// What counts of earlier trials at the same depths when the next one is over.
const MEMORY: f64 = 0.75;
/// A load is another one if the device does more or less at the same depth by more than this part
/// of it, and by more than so many standard errors.
const CHANGE: f64 = 0.25;
const CHANGE_ERRORS: f64 = 4.0;
/// Or if nobody waited for so many slices.
const QUIET: u32 = 50;
/// No device takes more at a time through one queue (NVMe: 1023 commands).
const DEPTH_MAX: u32 = 1023;

/// What a device did in one slice of time.
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
        self.done.get() * 1e9 / self.ns.max(1) as f64
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
    /// Elasticity of throughput between them: the least and the most that it may be.
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
    /// At the lower and the higher depth, of all trials since the last change.
    seen: [Rates; 2],
    /// In the trial so far.
    now: [Rates; 2],
    slices: u32,
    /// Slices until the next trial, and after it if that changes nothing.
    rest: u32,
    next_rest: u32,
    /// VOPs a second of late, at the lower depth.
    late_per_s: Option<f64>,
    /// Slices in which nobody waited, in a row.
    quiet: u32,
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
            now: Default::default(),
            slices: 0,
            rest: 0,
            next_rest: REST,
            late_per_s: None,
            quiet: 0,
        }
    }

    fn high(&self) -> u32 {
        let wide = self.depth * APART.0 / APART.1;
        wide.max(self.depth + APART_MIN).min(DEPTH_MAX)
    }

    /// Whether the slice with this number is one at the higher depth.
    fn is_high(slice: u32) -> bool {
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
        let trial = match slice.limited {
            true => self.see(slice.per_s()),
            false => {
                self.pause();
                None
            }
        };
        Step {
            permits: self.permits(),
            trial,
        }
    }

    /// Nobody waited: nothing was learnt, and a trial would no longer have seen the same. Where the
    /// load does not fill the higher depth, that brings nothing at present.
    fn pause(&mut self) {
        self.quiet = self.quiet.saturating_add(1);
        if self.rest > 0 {
            self.rest -= 1;
        } else if self.slices > 0 {
            self.rest = self.next_rest;
        }
        self.restart();
    }

    fn see(&mut self, per_s: f64) -> Option<Trial> {
        let quiet = std::mem::take(&mut self.quiet) >= QUIET;
        let high = self.rest == 0 && Depth::is_high(self.slices);
        if quiet || (!high && self.is_another(per_s)) {
            self.forget();
        }
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        self.now[usize::from(Depth::is_high(self.slices))].see(per_s);
        self.slices += 1;
        if self.slices < TRIAL {
            return None;
        }
        let trial = self.decide();
        self.restart();
        Some(trial)
    }

    /// Whether the load is another one, by what the device does at the depth that it has.
    fn is_another(&mut self, per_s: f64) -> bool {
        let late = self.late_per_s.unwrap_or(per_s);
        let late = late + (per_s - late) / FOLLOW;
        self.late_per_s = Some(late);
        let before = &self.seen[0];
        let mean = before.mean();
        // Of a mean that forgets like this one: the part of a slice's variance that it has.
        let of_late = 1.0 / (2.0 * FOLLOW - 1.0);
        let error = mean * (before.variance() * (of_late + 1.0 / before.count)).sqrt();
        before.count > 0.0 && (late - mean).abs() > (CHANGE * mean).max(CHANGE_ERRORS * error)
    }

    /// What was seen was of another load, or at another depth.
    fn forget(&mut self) {
        self.seen = Default::default();
        self.late_per_s = None;
        (self.rest, self.next_rest) = (0, REST);
        self.restart();
    }

    fn restart(&mut self) {
        self.now = Default::default();
        self.slices = 0;
    }

    fn decide(&mut self) -> Trial {
        for (all, now) in self.seen.iter_mut().zip(&self.now) {
            all.add(now);
        }
        let (low, high) = (self.depth, self.high());
        let per_s = self.seen.each_ref().map(Rates::mean);
        let (mean, error) = self.elasticity(low, high);
        let elasticity = [-ERRORS, ERRORS].map(|errors| mean + errors * error);
        let [least, _] = elasticity;
        let step = self.depth.div_ceil(STEP);
        let back = self.depth - step;
        if least > WORTH {
            self.too_small = self.depth;
            self.depth = if least > FAR {
                high
            } else {
                (self.depth + step).min(high)
            };
            self.forget();
        } else if mean < WORTHLESS && back >= self.least && back > self.too_small {
            self.depth = back;
            self.forget();
        } else {
            // What was too small may not be for ever.
            self.too_small = 0;
            self.rest = self.next_rest;
            self.next_rest = (2 * self.next_rest).min(REST_MAX);
        }
        Trial {
            low,
            high,
            per_s,
            elasticity,
            depth: self.depth,
        }
    }

    /// Of throughput between two depths, and its standard error.
    fn elasticity(&self, low: u32, high: u32) -> (f64, f64) {
        let apart = (f64::from(high) / f64::from(low)).ln();
        let [at_low, at_high] = self.seen.each_ref().map(Rates::mean);
        // Nothing done at either depth says nothing.
        if at_low <= 0.0 || at_high <= 0.0 || apart <= 0.0 {
            return (WORTHLESS, 0.0);
        }
        let each = self.seen.each_ref();
        let variance: f64 = each.map(|seen| seen.variance() / seen.count).iter().sum();
        ((at_high / at_low).ln() / apart, variance.sqrt() / apart)
    }
}

/// VOPs a second in slices: their number, sum and sum of squares; older ones fade.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Rates {
    fn see(&mut self, per_s: f64) {
        self.count += 1.0;
        self.sum += per_s;
        self.squares += per_s * per_s;
    }

    /// Takes in those of the next trial.
    fn add(&mut self, next: &Rates) {
        self.count = MEMORY * self.count + next.count;
        self.sum = MEMORY * self.sum + next.sum;
        self.squares = MEMORY * self.squares + next.squares;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }

    /// Of one slice, as a part of the square of the mean.
    fn variance(&self) -> f64 {
        let mean = self.mean();
        if self.count <= 1.0 || mean <= 0.0 {
            return 0.0;
        }
        let all = (self.squares / self.count / (mean * mean) - 1.0).max(0.0);
        all * self.count / (self.count - 1.0)
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
