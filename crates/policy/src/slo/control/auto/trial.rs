//! Trials: whether others gain by another gear. What a gear is worth to them is not known before.

use super::super::gear::Gear;
use super::super::rates::Rates;
use super::super::Seen;
use super::Auto;
use crate::cost::Nanos;

/// Intervals without pressure before something is tried, and the most that this grows to when that
/// turned out to be wrong.
pub(super) const PATIENCE: u32 = 5;
pub(super) const PATIENCE_MAX: u32 = 320;
/// Intervals after which others must not have lost. That they lost is believed beyond this part of
/// what they had, and beyond two standard errors. What is clear ends a trial at once.
const TRIAL: u32 = 12;
const LOSS_MAX: f64 = 0.01;
const CLEAR: f64 = 0.1;
const ERRORS: f64 = 2.0;
/// Others are allowed more only if requests then still need less than this of their promise.
pub(in super::super) const NEEDS_MAX: f64 = 0.75;
/// The same where requests go among others: all that they take is measured there.
const AMONG_MAX: f64 = 0.85;
/// Others wait for the device all the time, or nearly.
const WAITS: f64 = 0.5;

/// Another gear, to see whether others gain by it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    before: Gear,
    rates: Rates,
    left: u32,
}

impl Trial {
    /// Whether requests go among others where they went apart, or the other way round. Others must
    /// gain by that; else it is enough that they do not lose.
    pub(super) fn turned(&self, gear: &Gear) -> bool {
        self.before.is_among() != gear.is_among()
    }

    /// Requests were late, so others have less. A turn is held against what was before anew, if it
    /// was not turned back.
    pub(super) fn anew(self, lower: &Gear) -> Option<Self> {
        let anew = Trial {
            left: TRIAL,
            ..self
        };
        self.turned(lower).then_some(anew)
    }

    /// Whether it is over, if others have these rates `now` in this gear.
    fn over(&self, gear: &Gear, now: &Rates) -> bool {
        let clear = |one: &Rates, other: &Rates| one.lost(other, CLEAR, ERRORS);
        let gained = self.turned(gear) && clear(&self.rates, now);
        self.left == 0 || clear(now, &self.rates) || gained
    }

    fn failed(&self, gear: &Gear, now: &Rates) -> bool {
        match self.turned(gear) {
            true => !self.rates.lost(now, LOSS_MAX, ERRORS),
            false => now.lost(&self.rates, LOSS_MAX, ERRORS),
        }
    }
}

impl Auto {
    /// Nobody was late: goes on with what is tried, or tries what others may gain by. There is
    /// nothing to be tried unless promises are `kept`.
    pub(super) fn see_for_others(&mut self, kept: bool, seen: &Seen) {
        if let Some(trial) = &mut self.trial {
            trial.left = trial.left.saturating_sub(1);
            if trial.over(&self.gear, &self.rates) {
                let trial = *trial;
                self.end(&trial);
            }
            return;
        }
        if !kept || self.calm < PATIENCE {
            return;
        }
        // One kind of gear is held against the other at its best.
        let best = match self.calm >= self.patience && self.others_wait(seen, self.gear.is_among())
        {
            true => !self.more(seen),
            false => self.patience == PATIENCE_MAX,
        };
        if best && self.turns_in == 0 {
            self.turn(seen);
        }
    }

    /// Whether others wait for the device: at each drive, or at `any`. Where each reads one piece
    /// after the other, all of them come to wait at the drive that is slowest.
    fn others_wait(&self, seen: &Seen, any: bool) -> bool {
        let drives = if any { self.options.drives } else { 1 };
        seen.others_occupied * f64::from(drives) > WAITS
    }

    /// Tries whether others have more if requests go among them, or no longer do.
    fn turn(&mut self, seen: &Seen) {
        let (Some(tightest_ns), Some(piece)) = (self.tightest_ns(), seen.others_piece) else {
            return;
        };
        let other = match self.gear.is_among() {
            true => Some(self.apart),
            false => self.gear.among(&self.options, tightest_ns, piece),
        };
        let may = self.others_wait(seen, true) && self.rates.tell();
        if let Some(other) = other.filter(|_| may) {
            self.turns_in = PATIENCE_MAX;
            if other.is_among() {
                self.apart = self.gear;
            }
            self.try_in(other);
            self.why
                .push(format!("Others may gain by it: they have {other}."));
        }
    }

    fn try_in(&mut self, gear: Gear) {
        self.trial = Some(Trial {
            before: self.gear,
            rates: self.rates,
            left: TRIAL,
        });
        self.calm = 0;
        self.shift(gear);
    }

    fn end(&mut self, trial: &Trial) {
        (self.trial, self.calm) = (None, 0);
        if !trial.failed(&self.gear, &self.rates) {
            return;
        }
        let what = match trial.turned(&self.gear) {
            true => "did not gain",
            false => {
                self.patience = PATIENCE_MAX;
                "lost"
            }
        };
        self.shift(trial.before);
        self.why
            .push(format!("Others {what} by it: {} again.", self.gear));
    }

    /// Tries the next gear, if there is one and requests have time for it. Tells if it does.
    fn more(&mut self, seen: &Seen) -> bool {
        self.calm = 0;
        let Some(higher) = self.gear.higher(&self.options) else {
            return false;
        };
        let longer_ns = match higher.is_among() {
            true => 0.0,
            false => self.longer_ns(&higher, seen),
        };
        let slower = self.gear.slower_in(&higher);
        let fits = self.learnt.iter().all(|learnt| {
            if higher.is_among() {
                return learnt
                    .takes()
                    .is_none_or(|takes| takes * slower <= AMONG_MAX);
            }
            let needs = learnt.needs(&self.options.margins).unwrap_or(0.0);
            let at_most_ns = learnt.at_most_ns().map_or(f64::INFINITY, |ns| ns as f64);
            needs + longer_ns / at_most_ns <= NEEDS_MAX
        });
        if !fits {
            return false;
        }
        self.try_in(higher);
        self.raised = true;
        for learnt in &mut self.learnt {
            learnt.allow(longer_ns, &self.options.margins);
        }
        self.why
            .push(format!("All is in time: others have {higher}."));
        true
    }

    /// By how much longer requests may wait there for what others have out.
    fn longer_ns(&self, higher: &Gear, seen: &Seen) -> f64 {
        let alone_ns = self.gear.bytes_out() / self.options.stream_bytes_per_s * 1e9;
        let piece_ns = seen
            .others_piece
            .map_or(alone_ns as Nanos, |piece| piece.ns);
        self.gear.longer_ns(higher, piece_ns)
    }
}
