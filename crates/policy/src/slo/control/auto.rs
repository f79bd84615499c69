//! Ours: due times keep promises; what is learnt is how early "due" is, how much other work may be
//! out, and who gives way.
//!
//! The levers, from the cheapest (docs/theory/latency.md, 5 to 7):
//!
//! 1. a margin for each promise and stage, the measured quantile of what comes after "due": up at
//!    once, down slowly, never the whole promise;
//! 2. how much other work may be out, and the size of its pieces: less as soon as more requests
//!    are late than should be, more again when others gain by it; where an arm seeks, also whether
//!    requests go apart from it or among it;
//! 3. where no arm seeks, how much of the device compactions may have;
//! 4. how many handlers other work leaves free;
//! 5. one number for all promises, `badness`: each gives up `badness / importance` of itself.

mod trial;

pub(super) use trial::NEEDS_MAX;

use super::compaction::Compaction;
use super::free::Free;
use super::gear::{Gear, Order};
use super::giving::Giving;
use super::learnt::{Learnt, MarginOptions};
use super::rates::Rates;
use super::{are_those_of, Given, Held, PromiseGiven, Seen, DEVICE, HANDLERS, STAGES};
use crate::cost::Nanos;
use crate::dispatch::Others;
use trial::{Trial, PATIENCE, PATIENCE_MAX};

/// What is known of the device, and what is never learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoOptions {
    /// Whether it has an arm that seeks: requests are then served in groups with nothing else out
    /// beside them, unless it seeks for each piece of other work anyway.
    pub seeks: bool,
    /// Its drives, each with a queue of its own.
    pub drives: u32,
    /// I/Os that a drive may have outstanding.
    pub depth: u32,
    /// Bytes a second that it streams, for the largest piece.
    pub stream_bytes_per_s: f64,
    /// No I/O of a scan has more bytes: larger pieces are the same to it.
    pub piece_bytes_max: u64,
    /// Handlers that there are.
    pub handlers: u32,
    /// Part of the time for work without due times, when promises would use all of it.
    pub floor: f64,
    /// How long an arm waits for the next piece of a scan, in ns: longer than a handler takes to
    /// ask for it, shorter than a seek.
    pub linger_ns: Nanos,
    /// How margins are learnt.
    pub margins: MarginOptions,
}

impl Default for AutoOptions {
    /// A hard disk with one arm.
    fn default() -> Self {
        AutoOptions {
            seeks: true,
            drives: 1,
            depth: 32,
            stream_bytes_per_s: 100e6,
            piece_bytes_max: 4 << 20,
            handlers: 16,
            floor: 0.05,
            linger_ns: 2_000_000,
            margins: MarginOptions::default(),
        }
    }
}

/// A piece of other work is at least so large.
pub(super) const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// At the start a piece of other work takes this part of the tightest promise.
pub(super) const PIECE_PART: f64 = 0.125;
/// A scan goes on for this long before shares decide again, in ns: a few of the longest seeks are
/// nothing beside it.
const RUN_NS: Nanos = 400_000_000;
/// A gear that kept all promises for so many intervals is not left for the first ones that are late
/// again, if they are no more than may be: margins answer them.
const PROVEN: u32 = 60;
/// Intervals under pressure before promises give way.
const PRESSED_MAX: u32 = 3;

impl AutoOptions {
    /// A piece of other work is at most so large.
    pub(super) fn most_bytes(&self) -> u64 {
        self.piece_bytes_max.max(CHUNK_BYTES_MIN)
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Auto {
    options: AutoOptions,
    learnt: Vec<Learnt>,
    gear: Gear,
    /// The last one in which requests went apart.
    apart: Gear,
    free: Free,
    compaction: Compaction,
    /// Whether promised requests came in the last interval.
    asked: bool,
    pressed: u32,
    calm: u32,
    /// Intervals without pressure in this gear.
    lasted: u32,
    patience: u32,
    /// Others were allowed more since requests were late last.
    raised: bool,
    trial: Option<Trial>,
    /// Intervals until it is tried again whether others have more if requests go among them, or do
    /// no longer.
    turns_in: u32,
    /// Of others in this gear.
    rates: Rates,
    giving: Giving,
    why: Vec<String>,
}

impl Auto {
    /// Nothing is learnt yet: one small piece of other work at a time, where an arm seeks.
    #[must_use]
    pub fn new(options: AutoOptions) -> Self {
        Auto {
            gear: Gear::first(&options, None),
            apart: Gear::first(&options, None),
            free: Free::first(&options),
            compaction: Compaction::first(&options),
            asked: false,
            learnt: Vec::new(),
            pressed: 0,
            calm: 0,
            lasted: 0,
            patience: PATIENCE,
            raised: false,
            trial: None,
            turns_in: 0,
            rates: Rates::default(),
            giving: Giving::default(),
            why: Vec::new(),
            options,
        }
    }

    pub(super) fn step(&mut self, held: &[Held], seen: &Seen) -> Given {
        self.why.clear();
        self.meet(held);
        let elapsed_s = seen.elapsed_ns as f64 / 1e9;
        let mut pressed = [false; STAGES];
        for (learnt, promise) in self.learnt.iter_mut().zip(&seen.promises) {
            learnt.see(promise, elapsed_s);
            for (any, this) in pressed.iter_mut().zip(learnt.pressed()) {
                *any |= this;
            }
        }
        if elapsed_s > 0.0 {
            self.free.see(seen);
            self.adjust(pressed, seen);
            self.give_way(pressed, seen);
        }
        let contended = seen.others_occupied > 0.5;
        // What goes between scans is not due yet, which says nothing of what is. There are hardly
        // any to go between while promises give way and requests are in time by that.
        let between = self.gear.order == Order::Between && !self.giving.settled();
        let falls = [contended, contended && !between];
        for learnt in &mut self.learnt {
            learnt.aim_at(self.giving.part_of(learnt.held.objective.importance));
            let margins = self.options.margins;
            self.why
                .extend(learnt.set_margins(&margins, elapsed_s, falls));
        }
        self.given()
    }

    /// What was learnt stays with the promise that it was learnt of.
    fn meet(&mut self, held: &[Held]) {
        if are_those_of(held, self.learnt.iter().map(|learnt| &learnt.held)) {
            for (learnt, held) in self.learnt.iter_mut().zip(held) {
                learnt.held = *held;
            }
            return;
        }
        let mut old = std::mem::take(&mut self.learnt);
        for held in held {
            let mut known = old.iter();
            let known = known.position(|learnt| learnt.held.is_that_of(held));
            let mut learnt = match known {
                Some(known) => old.swap_remove(known),
                None => Learnt::new(*held, &self.options.margins),
            };
            learnt.held = *held;
            self.learnt.push(learnt);
        }
        self.apart = Gear::first(&self.options, self.tightest_ns());
        self.shift(self.apart);
        self.free = Free::first(&self.options);
        self.compaction = Compaction::first(&self.options);
        (self.trial, self.turns_in, self.calm, self.pressed) = (None, 0, 0, 0);
    }

    fn tightest_ns(&self) -> Option<Nanos> {
        self.learnt.iter().filter_map(Learnt::at_most_ns).min()
    }

    /// Less for other work at once when requests are late; more, step by step, while it gains.
    fn adjust(&mut self, pressed: [bool; STAGES], seen: &Seen) {
        self.rates.see(seen.others_bytes_per_s);
        let asked = seen.promises.iter().any(|seen| seen.counts.requests > 0);
        let bounded = std::mem::replace(&mut self.asked, asked);
        if pressed.contains(&true) {
            self.calm = 0;
            let proven = std::mem::take(&mut self.lasted) >= PROVEN && self.options.seeks;
            if proven && !self.learnt.iter().any(Learnt::exceeded) {
                (0..STAGES).for_each(|stage| self.answered_for(stage));
                return;
            }
            self.pressed += 1;
            self.trial = self.trial.filter(|trial| trial.turned(&self.gear));
            // What was late just after the last change was under way before it.
            if self.pressed % 2 == 1 {
                self.relieve(pressed, seen);
            }
            return;
        }
        self.pressed = 0;
        if !self.asked {
            return; // Nobody asked, so nobody was late: that says nothing for more.
        }
        // There is no more while requests take longer than was promised, late or not.
        let kept = !self.learnt.iter().any(Learnt::gives_way);
        self.lasted = self.lasted.saturating_add(1);
        if self.raised && self.lasted >= PROVEN {
            (self.raised, self.patience) = (false, PATIENCE);
        }
        if kept && bounded && self.learnt.iter().all(Learnt::relaxed) {
            self.compaction.more(seen);
        }
        self.calm += 1;
        self.turns_in = self.turns_in.saturating_sub(1);
        self.see_for_others(kept, seen);
    }

    fn shift(&mut self, gear: Gear) {
        self.gear = gear;
        self.lasted = 0;
        self.rates = Rates::default();
    }

    /// Where others hold all handlers, it is no use to make them slower at the device: they would
    /// hold them longer.
    fn relieve(&mut self, pressed: [bool; STAGES], seen: &Seen) {
        if pressed[HANDLERS] && self.free.more() {
            self.answered_for(HANDLERS);
            let what = format!(
                "Requests are late because others have all handlers: {} are kept free.",
                self.free.kept()
            );
            self.why.push(what);
        }
        if pressed[DEVICE] {
            if self.compaction.less(seen) {
                self.answered_for(DEVICE);
                let percent = 100.0 * self.compaction.part().unwrap_or(1.0);
                self.why.push(format!(
                    "More requests are late than should be: compactions have {percent:.1} % of the device for each tenant."
                ));
            } else {
                self.less();
            }
        }
    }

    fn answered_for(&mut self, stage: usize) {
        let all = self.learnt.iter_mut();
        all.for_each(|learnt| learnt.answered_for(stage));
    }

    fn less(&mut self) {
        let Some(lower) = self.gear.lower(&self.options) else {
            return;
        };
        if self.gear.is_among() {
            // With fewer it may be no gain any more.
            self.turns_in = self.turns_in.min(PROVEN);
        }
        self.shift(lower);
        self.answered_for(DEVICE);
        self.trial = self.trial.and_then(|trial| trial.anew(&lower));
        // Several steps down in a row say no more against the last one up than one does.
        if std::mem::take(&mut self.raised) {
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
        }
        let what = format!("More requests are late than should be: others have {lower}.");
        self.why.push(what);
    }

    /// One number for all promises, so that what they lack, weighted by importance, is alike.
    fn give_way(&mut self, pressed: [bool; STAGES], seen: &Seen) {
        let spent = (pressed[HANDLERS] && !self.free.may_grow())
            || (pressed[DEVICE]
                && self.gear.lower(&self.options).is_none()
                && !self.compaction.may_fall(seen));
        let late = spent && (self.pressed >= PRESSED_MAX || self.giving.badness() > 0.0);
        if !self.giving.step(late, &self.learnt, seen) {
            return;
        }
        (0..STAGES).for_each(|stage| self.answered_for(stage));
        self.why.push(format!(
            "Not all promises can be kept: each gives up {:.2} divided by its importance.",
            self.giving.badness(),
        ));
    }

    fn given(&self) -> Given {
        let any = self
            .learnt
            .iter()
            .any(|learnt| learnt.at_most_ns().is_some());
        let order = any.then_some(self.gear.order);
        let device = match (order, self.options.seeks) {
            (None, _) => Others::default(),
            (Some(Order::Among), _) => Others {
                floor: self.options.floor,
                ..Others::default()
            },
            (Some(_), false) => Others {
                permits: self.gear.out,
                beside: self.gear.out,
                floor: self.options.floor,
                ..Others::default()
            },
            (Some(order), true) => Others {
                permits: self.gear.out,
                beside: 0,
                floor: self.options.floor,
                first: true,
                between: order == Order::Between,
                linger_ns: self.options.linger_ns,
                run_ns: RUN_NS,
                ..Others::default()
            },
        };
        let mut others = [Others::default(); STAGES];
        others[DEVICE] = device;
        others[HANDLERS].floor = self.options.floor;
        others[HANDLERS].kept = if any { self.free.kept() } else { 0 };
        Given {
            promises: self.learnt.iter().map(Learnt::given).collect(),
            others,
            permits: [
                None,
                (order == Some(Order::Among))
                    .then(|| self.gear.out.saturating_mul(self.options.drives)),
            ],
            chunk_bytes: any.then_some(self.gear.chunk_bytes),
            compaction: self.compaction.part().filter(|_| any && self.asked),
            why: self.why.clone(),
            ..Given::default()
        }
    }
}

impl Learnt {
    fn given(&self) -> PromiseGiven {
        PromiseGiven {
            margin_ns: self.margin_ns.filter(|_| self.part > 0.0),
            part: self.part,
            device: self.device(),
        }
    }

    fn at_most_ns(&self) -> Option<Nanos> {
        self.held
            .objective
            .latency
            .map(|latency| latency.at_most_ns)
    }
}
