//! Ours: due times keep promises; what is learnt is how early "due" is, how much other work may be
//! out, and who gives way.
//!
//! The levers, from the cheapest (docs/theory/latency.md, 5 to 7):
//!
//! 1. a margin for each promise and stage, the measured quantile of what comes after "due": up at
//!    once, down slowly, at most half of the promise;
//! 2. how much other work may be out, and the size of its pieces: less as soon as more requests
//!    are late than should be, more again when others gain by it;
//! 3. one number for all promises, `badness`: each gives up `badness / importance` of itself.

use super::learnt::{Learnt, MarginOptions};
use super::{Given, Held, PromiseGiven, Seen, DEVICE, HANDLERS, STAGES};
use crate::cost::Nanos;
use crate::dispatch::Others;

/// What is known of the device, and what is never learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoOptions {
    /// Whether it has an arm that seeks: requests are then served in groups, and nothing else is
    /// out beside them.
    pub seeks: bool,
    /// I/Os that it may have outstanding.
    pub depth: u32,
    /// Bytes a second that it streams, for the largest piece.
    pub stream_bytes_per_s: f64,
    /// Part of the time for work without due times, when promises would use all of it.
    pub floor: f64,
    /// How margins are learnt.
    pub margins: MarginOptions,
}

impl Default for AutoOptions {
    /// A hard disk with one arm.
    fn default() -> Self {
        AutoOptions {
            seeks: true,
            depth: 32,
            stream_bytes_per_s: 100e6,
            floor: 0.05,
            margins: MarginOptions::default(),
        }
    }
}

/// More other work out than this gains an arm nothing: the drive has then two to choose from while
/// one is moved.
const ARM_OUT_MAX: u32 = 3;
const CHUNK_BYTES: [u64; 2] = [64 << 10, 4 << 20];
/// A piece of other work takes at most this part of the tightest promise.
const PIECE_PART: f64 = 0.25;
/// Intervals without pressure before others are allowed more, and the most that this grows to when
/// that turned out to be wrong.
const PATIENCE: u32 = 5;
const PATIENCE_MAX: u32 = 80;
/// What others must gain by being allowed more, or it is taken back.
const GAIN_MIN: f64 = 0.02;
/// Intervals under pressure before promises give way.
const PRESSED_MAX: u32 = 3;
/// A promise of which less than this can be kept is given up, and is tried again later.
const PART_MIN: f64 = 0.1;

/// More was allowed, to see whether others gain by it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    before_per_s: f64,
    left: u32,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Auto {
    options: AutoOptions,
    learnt: Vec<Learnt>,
    /// Permits of other work.
    out: u32,
    chunk_bytes: u64,
    pressed: u32,
    calm: u32,
    patience: u32,
    trial: Option<Trial>,
    others_per_s: Option<f64>,
    badness: f64,
    why: Vec<String>,
}

impl Auto {
    /// Nothing is learnt yet: one piece of other work at a time, where an arm seeks.
    #[must_use]
    pub fn new(options: AutoOptions) -> Self {
        Auto {
            out: if options.seeks {
                1
            } else {
                (options.depth * 3 / 4).max(1)
            },
            chunk_bytes: CHUNK_BYTES[1],
            learnt: Vec::new(),
            pressed: 0,
            calm: 0,
            patience: PATIENCE,
            trial: None,
            others_per_s: None,
            badness: 0.0,
            why: Vec::new(),
            options,
        }
    }

    pub(super) fn step(&mut self, held: &[Held], seen: &Seen) -> Given {
        self.why.clear();
        self.meet(held);
        let elapsed_s = seen.elapsed_ns as f64 / 1e9;
        let mut pressed = false;
        for (learnt, promise) in self.learnt.iter_mut().zip(&seen.promises) {
            learnt.see(promise, elapsed_s);
            pressed |= learnt.pressed();
        }
        if elapsed_s > 0.0 {
            self.adjust(pressed, seen);
            self.give_way(seen);
        }
        let badness = self.badness;
        for learnt in &mut self.learnt {
            learnt.part = part_of(badness, learnt.held.objective.importance);
            let margins = self.options.margins;
            self.why.extend(learnt.set_margins(&margins, elapsed_s));
        }
        self.given()
    }

    /// What was learnt stays with the promise that it was learnt of.
    fn meet(&mut self, held: &[Held]) {
        if held
            .iter()
            .eq(self.learnt.iter().map(|learnt| &learnt.held))
        {
            return;
        }
        let mut old = std::mem::take(&mut self.learnt);
        for held in held {
            let known = old.iter().position(|learnt| learnt.held == *held);
            self.learnt.push(match known {
                Some(known) => old.swap_remove(known),
                None => Learnt::new(*held, &self.options.margins),
            });
        }
        self.chunk_bytes = self.chunk_bytes.min(self.chunk_max());
    }

    /// The largest piece of other work beside the tightest promise.
    fn chunk_max(&self) -> u64 {
        let all = self.learnt.iter().filter_map(Learnt::at_most_ns);
        let Some(tightest_ns) = all.min() else {
            return CHUNK_BYTES[1];
        };
        let bytes = self.options.stream_bytes_per_s * tightest_ns as f64 / 1e9 * PIECE_PART;
        let bytes = (bytes as u64).clamp(CHUNK_BYTES[0], CHUNK_BYTES[1]);
        1 << bytes.ilog2()
    }

    /// Less other work out at once when requests are late; more, step by step, while others gain.
    fn adjust(&mut self, pressed: bool, seen: &Seen) {
        let now_per_s = seen.others_bytes_per_s;
        let before_per_s = self.others_per_s.unwrap_or(now_per_s);
        let others_per_s = before_per_s + 0.5 * (now_per_s - before_per_s);
        self.others_per_s = Some(others_per_s);
        if pressed {
            self.calm = 0;
            self.pressed += 1;
            self.trial = None;
            self.less();
            return;
        }
        self.pressed = 0;
        self.calm += 1;
        if let Some(trial) = &mut self.trial {
            trial.left -= 1;
            if trial.left > 0 {
                return;
            }
            let gained = others_per_s >= trial.before_per_s * (1.0 + GAIN_MIN);
            self.trial = None;
            self.calm = 0;
            if !gained && self.out > 1 {
                self.out -= 1;
                self.patience = PATIENCE_MAX;
                self.why.push(format!(
                    "Others gained nothing by more permits: {} again.",
                    self.out
                ));
            }
        } else if self.calm >= self.patience && seen.others_occupied > 0.5 {
            self.more();
        }
    }

    fn less(&mut self) {
        let before = (self.out, self.chunk_bytes);
        if self.out > 1 {
            self.out = if self.options.seeks {
                1
            } else {
                (self.out * 3 / 4).max(1)
            };
        } else if self.pressed > 1 && self.chunk_bytes > CHUNK_BYTES[0] {
            self.chunk_bytes /= 2;
        }
        if before != (self.out, self.chunk_bytes) {
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
            self.why.push(format!(
                "More requests are late than should be: others have {} permits and pieces of {} KiB.",
                self.out,
                self.chunk_bytes >> 10,
            ));
        }
    }

    fn more(&mut self) {
        self.calm = 0;
        let out_max = if self.options.seeks {
            ARM_OUT_MAX
        } else {
            self.options.depth
        };
        if self.chunk_bytes < self.chunk_max() {
            self.chunk_bytes *= 2;
        } else if self.out < out_max {
            self.out += 1;
            self.trial = Some(Trial {
                before_per_s: self.others_per_s.unwrap_or(0.0),
                left: PATIENCE,
            });
        } else {
            return;
        }
        self.why.push(format!(
            "All is in time: others have {} permits and pieces of {} KiB.",
            self.out,
            self.chunk_bytes >> 10,
        ));
    }

    /// One number for all promises, so that what they lack, weighted by importance, is alike.
    fn give_way(&mut self, seen: &Seen) {
        let lacks = self
            .learnt
            .iter()
            .zip(&seen.promises)
            .map(|(learnt, promise)| {
                let importance = f64::from(learnt.held.objective.importance);
                importance * (1.0 - learnt.performance(promise, seen.elapsed_ns))
            });
        let worst = lacks.fold(0.0, f64::max);
        let spent = self.out == 1 || !self.options.seeks;
        let short = self.learnt.iter().any(Learnt::short);
        let stuck = (self.pressed >= PRESSED_MAX && spent) || short;
        let before = self.badness;
        if stuck && worst > self.badness {
            self.badness += 0.3 * (worst - self.badness);
        } else if !stuck {
            self.badness *= 0.95;
            if self.badness < 0.01 {
                self.badness = 0.0;
            }
        }
        if self.badness > before {
            self.why.push(format!(
                "Not all promises can be kept: each gives up {:.2} divided by its importance.",
                self.badness,
            ));
        }
    }

    fn given(&self) -> Given {
        let any = self
            .learnt
            .iter()
            .any(|learnt| learnt.at_most_ns().is_some());
        let device = match (any, self.options.seeks) {
            (false, _) => Others::default(),
            (true, seeks) => Others {
                permits: self.out,
                beside: if seeks { 0 } else { self.out },
                floor: self.options.floor,
                first: seeks,
            },
        };
        let mut others = [Others::default(); STAGES];
        others[DEVICE] = device;
        others[HANDLERS].floor = self.options.floor;
        Given {
            promises: self.learnt.iter().map(Learnt::given).collect(),
            others,
            chunk_bytes: any.then_some(self.chunk_bytes),
            why: self.why.clone(),
            ..Given::default()
        }
    }
}

/// What is aimed at of a promise.
fn part_of(badness: f64, importance: u32) -> f64 {
    let part = 1.0 - badness / f64::from(importance.max(1));
    if part < PART_MIN {
        0.0
    } else {
        part
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
