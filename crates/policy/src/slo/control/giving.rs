//! What promises give up when not all can be kept: one number for all of them.

use super::learnt::Learnt;
use super::Seen;
use crate::cost::Nanos;

/// Intervals after a rise before less is given up again, and the most that this grows to while that
/// turns out to be wrong.
const PATIENCE: u32 = 5;
const PATIENCE_MAX: u32 = 10;
/// It rises by this part of the way to what latencies that were measured ask for: of few requests
/// chance is a part, and what was given up in a moment comes back slowly.
const RISE: f64 = 0.5;
/// Intervals in a row in which nobody was late before margins may fall, too: where they fall sooner
/// a burst finds them too small, and all are late.
const SETTLED: u32 = 3;
/// The part by which it falls, at first: little, since what unimportant promises get back by it
/// important ones lose.
const FALL: f64 = 0.01;
/// The more it fell already without anybody late, the more it falls: half as much again, and no
/// more than half of what is left.
const FALL_MORE: f64 = 0.5;
const FALL_MAX: f64 = 0.5;
/// Intervals after a fall until it shows whether requests are late by it.
const SHOWN: u32 = 2;
/// It falls at once where what was measured is better than this part of it.
const BETTER: f64 = 0.5;
/// Of the way to the badness of a missed rate, an interval: the rate follows its part of the device
/// only later.
const RATE_STEP: f64 = 0.3;
/// Less than this is nothing.
const LEAST: f64 = 0.01;
/// A promise of which less than this can be kept is given up, and is tried again later.
const PART_MIN: f64 = 0.1;
/// Halvings of an interval of badness, of 100 at most.
const HALVINGS: u32 = 20;

/// What all promises give up, weighted by importance.
#[derive(Clone, Debug)]
pub(super) struct Giving {
    badness: f64,
    /// Intervals in which nobody was late by what is aimed at, since the last rise.
    calm: u32,
    patience: u32,
    /// What it rose to.
    top: f64,
    /// It rose in the last interval: what was late in this one was under way before.
    rose: bool,
}

impl Default for Giving {
    fn default() -> Self {
        Giving {
            badness: 0.0,
            calm: 0,
            patience: PATIENCE,
            top: 0.0,
            rose: false,
        }
    }
}

impl Giving {
    /// The badness of all promises.
    pub(super) fn badness(&self) -> f64 {
        self.badness
    }

    /// Whether promises give way, and nobody was late by what is aimed at for a while.
    pub(super) fn settled(&self) -> bool {
        self.badness > 0.0 && self.calm >= SETTLED
    }

    /// What is aimed at of a promise.
    pub(super) fn part_of(&self, importance: u32) -> f64 {
        let part = 1.0 - self.badness / f64::from(importance.max(1));
        if part < PART_MIN {
            0.0
        } else {
            part
        }
    }

    /// An interval in which this was seen; `late`: requests were late by what is aimed at, with
    /// nothing left to take from others. Tells whether it rose.
    pub(super) fn step(&mut self, late: bool, all: &[Learnt], seen: &Seen) -> bool {
        let short = all.iter().zip(&seen.promises);
        let short = short.filter(|(learnt, _)| learnt.short());
        let short = short.filter_map(|(learnt, one)| learnt.lacks_rate(one, seen.elapsed_ns));
        let short = short.reduce(f64::max);
        let rose = std::mem::take(&mut self.rose);
        if !late && short.is_none() {
            self.fall(measured(all, seen));
            return false;
        }
        self.calm = 0;
        let by_rate = short.map_or(0.0, |worst| RATE_STEP * (worst - self.badness));
        let by_latency = match late && !rose {
            true => RISE * (level(all) - self.badness),
            false => 0.0,
        };
        let more = by_rate.max(by_latency);
        if more <= 0.0 {
            return false;
        }
        if self.badness < self.top {
            // It fell since the last rise, in vain.
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
        }
        self.badness += more;
        (self.top, self.rose) = (self.badness, true);
        true
    }

    /// Nobody was late by what is aimed at. That may be because less is aimed at than could be
    /// kept: what yields is served as late as it may be while others want the rest. So it falls a
    /// little now and then, and at once where what was measured is better by far.
    fn fall(&mut self, measured: Option<f64>) {
        self.calm += 1;
        let before = self.badness;
        if let Some(measured) = measured.filter(|is| *is < BETTER * before) {
            self.badness = measured.max(FALL_MAX * before);
        } else if self.calm >= self.patience {
            let fell = FALL_MORE * (1.0 - before / self.top);
            self.badness *= 1.0 - fell.clamp(FALL, FALL_MAX);
            self.calm = self.patience.saturating_sub(SHOWN);
        }
        if self.badness < LEAST {
            *self = Giving::default();
        }
    }
}

/// The badness at which promises of latency together may take as long as they took. The order in
/// which requests go shifts time from one to another and leaves its sum over all requests as it is
/// (Kleinrock's conservation law), so those that are late at present are not late then.
fn level(all: &[Learnt]) -> f64 {
    let took = all.iter().filter_map(Learnt::took);
    let took: Vec<_> = took.collect();
    let may_take = |badness: f64| {
        let each = took.iter().map(|took| {
            let part = 1.0 - badness / took.importance;
            took.requests * (took.promised_ns as f64 / part.max(PART_MIN) - took.ns as f64)
        });
        each.sum::<f64>() >= 0.0
    };
    let most = took.iter().map(|took| took.importance).fold(0.0, f64::max);
    let (mut low, mut high) = (0.0, (1.0 - PART_MIN) * most);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        match may_take(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

/// The worst badness that was measured, if that of all that were asked can be told.
fn measured(all: &[Learnt], seen: &Seen) -> Option<f64> {
    let mut worst: f64 = 0.0;
    for (learnt, one) in all.iter().zip(&seen.promises) {
        let lacks_rate = learnt.lacks_rate(one, seen.elapsed_ns);
        worst = worst.max(lacks_rate.unwrap_or(0.0));
        if learnt.held.objective.latency.is_some() && one.counts.requests > 0 {
            worst = worst.max(learnt.lacks_latency(one)?);
        }
    }
    Some(worst)
}

/// How long requests of a promise took since badness changed last.
pub(super) struct Took {
    pub(super) importance: f64,
    pub(super) requests: f64,
    /// What was promised.
    pub(super) promised_ns: Nanos,
    /// The promised percentile.
    pub(super) ns: Nanos,
}
