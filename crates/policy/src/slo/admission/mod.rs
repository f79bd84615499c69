//! Can this be promised? Whether promises fit together, before they are made.
//!
//! The answer is made of what is known beforehand: what requests take at a drive ([`Drives`]), how
//! many of them come, and what was promised. It is a model of [`super::control::Auto`] at work, not
//! a run of it; the maths is in docs/theory/latency.md, 8. A promise of latency fits if
//!
//! 1. a request alone is fast enough, at the promised percentile,
//! 2. also behind the smallest piece of other work,
//! 3. and the queue of what is due before it is seldom longer than the time that is left.
//!
//! A promised rate fits if the device has time for it beside all that. What does not fit can be
//! promised all the same: then all promises give way ([`super::control`]), and [`Standing::kept`]
//! says by how much.

mod drive;
mod due;
mod takes;
mod together;
mod wait;

pub use drive::{Drives, Work};
pub use takes::{takes, Remedy};

use super::Objective;
use crate::cost::Nanos;
use crate::words::{Choice, Words};
use due::{due_in_time, due_within};

/// What becomes of a promise that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// It is not made.
    Refuse,
    /// It is made, and whoever makes it is told.
    #[default]
    Warn,
    /// It is made.
    Off,
}

impl Words for Admission {
    #[rustfmt::skip]
    const ALL: &'static [(Self, Choice)] = &[
        (Self::Refuse, ("refuse", "It is refused.")),
        (Self::Warn, ("warn", "It is taken, and the reply and the log say why it does not fit.")),
        (Self::Off, ("off", "It is taken, and nobody reckons.")),
    ];
}

/// What there is to be promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// The device.
    pub drives: Drives,
    /// Requests that may be at the device at a time, all drives together.
    pub handlers: u32,
    /// Requests that all cores answer, a second.
    pub requests_per_s: f64,
    /// Part of the device's time for work without due times.
    pub floor: f64,
}

/// What requests of a promise ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// How many, a second: those that the promise holds for.
    pub per_s: f64,
    /// The part of them that goes to the device, 0 to 1.
    pub missing: f64,
    /// What one of these does there.
    pub work: Work,
}

/// A promise, and what is asked of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// What was promised.
    pub objective: Objective,
    /// For what requests.
    pub demand: Demand,
}

/// Why a promise does not fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lack {
    /// A request takes longer with nothing beside it: ns, at the promised percentile.
    Alone(Nanos),
    /// It takes longer behind one piece of other work.
    Behind,
    /// The queue before the device is too long for more requests than may be late: the part of
    /// them, 0 to 1.
    Late(f64),
    /// Requests of others that may wait would hold so many handlers, and those of a promised rate
    /// found none.
    Handlers(f64),
    /// The device would be needed for more of the time than can be promised.
    Device {
        /// The part of the time, 0 and more.
        needed: f64,
        /// The most, 0 to 1.
        most: f64,
    },
    /// The cores would be needed for more than all of the time: so many times.
    Cores(f64),
}

impl Lack {
    fn device(needed: f64, most: f64) -> Option<Self> {
        (needed > most).then_some(Lack::Device { needed, most })
    }
}

/// What promises come to together.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Like the promises: why each does not fit, if it does not.
    pub lacks: Vec<Option<Lack>>,
    /// The part of the device's time that all of them take, 0 and more.
    pub used: f64,
    /// Like the promises: the part of each that can be kept if all are made, 0 to 1. Latency is
    /// then `at_most / part`; what would be under a tenth is given up, and is 0.
    pub kept: Vec<f64>,
}

/// What comes of one more promise, or of a change of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Why it does not fit, if it does not.
    pub lack: Option<Lack>,
    /// The same if there were no other promises: what no other promise is to blame for.
    pub lack_alone: Option<Lack>,
    /// Those of the others that fit now, and would not with it.
    pub harmed: Vec<usize>,
    /// The least latency that could be promised in its place; `None`: none, or it promises none.
    pub least_ns: Option<Nanos>,
    /// With what it would fit and break no promise, if it does not.
    pub takes: Vec<Remedy>,
    /// The others as they are.
    pub before: Standing,
    /// The others and, last, the new one.
    pub after: Standing,
}

impl Answer {
    /// Whether it can be promised with nobody's promise broken.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.lack.is_none() && self.harmed.is_empty()
    }
}

/// The part of the cores' time that can be promised. Beyond, turns wait for each other.
const CORES_MAX: f64 = 0.85;
/// The part of the device's time that promises may take, all together, for one of latency to be
/// kept, and for one of a rate. What goes before shares does not stop what has begun: rates were
/// kept in all of 249 mixes up to .58, in 14 of 16 up to .66 and in 9 of 18 up to .8 (experiment
/// `admission`, seeds 1 and 3 to 8).
const LATENCY_MAX: f64 = 0.88;
const RATE_MAX: f64 = 0.66;
/// The same where requests that wait until they are due may hold all handlers: those of a promised
/// rate then wait for one.
const RATE_MAX_HELD: f64 = 0.58;
/// Promises that can be kept to less than this part are given up, as [`super::control::Auto`] does.
const PART_MIN: f64 = 0.1;
/// The shortest latency that anybody is offered, and the longest that can be promised, ns.
const SHORTEST_NS: f64 = 10_000.0;
const LONGEST_NS: f64 = 3.6e12;

/// One promise of latency at a drive.
#[derive(Clone, Copy, Debug)]
struct Timed {
    place: usize,
    /// Requests that come to one drive, a second.
    per_s: f64,
    work: Work,
    /// What is aimed at, ns.
    at_most_ns: f64,
    /// Handlers that they hold if they wait for as long as was promised.
    holds: f64,
    /// The part of those at the drive that may be late.
    late: f64,
}

/// Whether these promises fit together.
#[must_use]
pub fn stand(capacity: &Capacity, asked: &[Asked]) -> Standing {
    let (lacks, used) = fit(capacity, asked, |_| 1.0);
    let kept = match lacks.iter().any(Option::is_some) {
        false => vec![1.0; asked.len()],
        true => give_way(capacity, asked),
    };
    Standing { lacks, used, kept }
}

/// What comes of `new` beside promises that are there.
#[must_use]
pub fn admit(capacity: &Capacity, present: &[Asked], new: &Asked) -> Answer {
    let mut all = present.to_vec();
    all.push(*new);
    let (before, after) = (stand(capacity, present), stand(capacity, &all));
    let lost = |place: &usize| before.lacks[*place].is_none() && after.lacks[*place].is_some();
    let (lack, harmed) = (after.lacks[present.len()], (0..present.len()).filter(lost));
    let harmed: Vec<usize> = harmed.collect();
    let takes = match lack.is_none() && harmed.is_empty() {
        true => Vec::new(),
        false => takes(capacity, &all, present.len(), &harmed),
    };
    Answer {
        lack,
        lack_alone: fit(capacity, &[*new], |_| 1.0).0[0],
        harmed,
        takes,
        least_ns: least_ns(&all, present.len(), |all| {
            fit(capacity, all, |_| 1.0).0[present.len()].is_none()
        }),
        before,
        after,
    }
}

/// Why each promise does not fit, and the part of the device that all of them take, if `part` says
/// what of each is aimed at (0: nothing).
fn fit(
    capacity: &Capacity,
    asked: &[Asked],
    part: impl Fn(&Asked) -> f64,
) -> (Vec<Option<Lack>>, f64) {
    let mut lacks = vec![None; asked.len()];
    let (mut timed, mut rates, mut requests_per_s) = (Vec::new(), 0.0, 0.0);
    for (place, one) in asked.iter().enumerate() {
        let part = part(one);
        if part <= 0.0 {
            continue;
        }
        requests_per_s += one.demand.per_s;
        match one.timed(capacity, place, part) {
            Some(Ok(one)) => timed.push(one),
            Some(Err(lack)) => lacks[place] = Some(lack),
            None => {}
        }
        if one.objective.latency.is_none() {
            rates += one.rate_takes(capacity) * part;
        }
    }
    let cores = requests_per_s / capacity.requests_per_s.max(1.0);
    let used = due_in_time(capacity, &mut timed, rates, &mut lacks);
    let held: f64 = timed.iter().map(|one| one.holds).sum();
    let no_handler = held > f64::from(capacity.handlers) && used > RATE_MAX_HELD;
    for (place, one) in asked.iter().enumerate() {
        let wants = part(one) > 0.0;
        let rate = one.objective.throughput_per_s.is_some();
        let lack = if cores > CORES_MAX {
            Some(Lack::Cores(cores))
        } else if rate {
            Lack::device(used, RATE_MAX).or(no_handler.then_some(Lack::Handlers(held)))
        } else {
            None
        };
        lacks[place] = lacks[place].or(lack.filter(|_| wants));
    }
    (lacks, used)
}

impl Capacity {
    /// Requests that a drive can choose from.
    fn group_max(&self) -> f64 {
        let handlers = f64::from(self.handlers) / f64::from(self.drives.count.max(1));
        handlers.min(f64::from(self.drives.depth)).max(1.0)
    }
}

impl Asked {
    /// The same at a drive, with `part` of the promise aimed at. `None`: no latency is promised, or
    /// what goes to the device may be late.
    fn timed(&self, capacity: &Capacity, place: usize, part: f64) -> Option<Result<Timed, Lack>> {
        let (latency, demand) = (self.objective.latency?, &self.demand);
        let late = latency.late_part() / demand.missing;
        // Not a number where nothing goes there.
        if demand.missing <= 0.0 || late >= 1.0 {
            return None;
        }
        let (drives, at_most_ns) = (&capacity.drives, latency.at_most_ns as f64 / part);
        if drives.late_alone(&demand.work, at_most_ns) > late {
            let ns = drives.alone_ns(&demand.work, late);
            return Some(Err(Lack::Alone(ns as Nanos)));
        }
        if drives.late_beside(&demand.work, due_within() * at_most_ns) > late {
            return Some(Err(Lack::Behind));
        }
        let per_s = demand.per_s * demand.missing;
        Some(Ok(Timed {
            holds: per_s * latency.at_most_ns as f64 / 1e9,
            place,
            per_s: per_s / f64::from(capacity.drives.count.max(1)),
            work: demand.work,
            at_most_ns,
            late,
        }))
    }

    /// The part of a drive's time that a promised rate takes.
    fn rate_takes(&self, capacity: &Capacity) -> f64 {
        let per_s = self.objective.throughput_per_s.unwrap_or(0.0) * self.demand.missing;
        let drives = f64::from(capacity.drives.count.max(1));
        per_s * capacity.drives.takes_ns(&self.demand.work, 1.0) / 1e9 / drives
    }
}

/// What is left of each promise if all give up the same badness (docs/theory/latency.md, 7): the
/// least with which what is left fits.
fn give_way(capacity: &Capacity, asked: &[Asked]) -> Vec<f64> {
    let part = |badness: f64, one: &Asked| {
        let part = 1.0 - badness / f64::from(one.objective.importance.max(1));
        if part < PART_MIN {
            0.0
        } else {
            part
        }
    };
    let fits = |badness: f64| {
        let (lacks, _) = fit(capacity, asked, |one| part(badness, one));
        lacks.iter().all(Option::is_none)
    };
    let most = asked.iter().map(|one| one.objective.importance).max();
    let (mut low, mut high) = (0.0, f64::from(most.unwrap_or(1)));
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        match fits(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    asked.iter().map(|one| part(high, one)).collect()
}

/// The least latency that can be promised in place `own` with which all is as `fits` wants it, to a
/// hundredth.
fn least_ns(asked: &[Asked], own: usize, fits: impl Fn(&[Asked]) -> bool) -> Option<Nanos> {
    let mut all = asked.to_vec();
    let latency = all[own].objective.latency?;
    let mut fits = |at_most_ns: f64| {
        all[own].objective.latency = Some(super::Latency {
            at_most_ns: at_most_ns as Nanos,
            ..latency
        });
        fits(&all)
    };
    let (mut low, mut high) = (SHORTEST_NS, LONGEST_NS);
    if fits(low) {
        return Some(low as Nanos);
    }
    if !fits(high) {
        return None;
    }
    while high / low > 1.01 {
        let middle = (low * high).sqrt();
        match fits(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    Some(high as Nanos)
}
