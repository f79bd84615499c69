//! What flushes or compactions cost for each KiB that is written: it comes later than the writes,
//! in runs.

/// A run that lasts longer is taken in pieces, as long as the tenant goes on writing: one that
/// writes without pause is compacted without pause, and is not to wait for the end of that.
const RUN_MAX: u32 = 3;
/// What an operation's price remembers: so many intervals of writing at the tenant's pace. Older
/// bytes and their cost fade as *further bytes are written*, not as time passes.
///
/// It is what a price can be off by: where writes stop while the engine is `late` intervals behind,
/// what is done late is divided by no less than this many, so the price is at most `1 + late /
/// KEPT` times what it was. Engines hold writers back long before they are 20 s behind.
///
/// And it is what is missed where costs change: while a price rises from `p` to `q`, what is
/// charged falls short of what is done by `KEPT pace (q - p)`, and half a piece. Compactions of
/// data that is written over cost five times as much for each KiB as those of an empty database
/// that is filled with it. Of all VOPs in the first minute after that 20 intervals miss 1.5 %, 12
/// miss .7 %, and 8 miss .3 %, and the price varies by 6, 8 and 10 %. A price that is carried on
/// along its trend would miss nothing of steady growth, but costs step; after a step it overshoots.
const KEPT: f64 = 12.0;
/// What part of a lower rate of writing a tenant's pace takes over in an interval: nine tenths in
/// ten.
const PACE_FOLLOWS: f64 = 0.2;
/// Who writes less than this part of its pace has stopped, and something trickles in.
const TRICKLE: f64 = 0.125;
/// What is left of a tenant's pace after an interval in which it hardly wrote: half after 44.
const PACE_LEFT: f64 = 1.0 - 1.0 / 64.0;

/// Cost, and the KiB that caused it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Caused {
    cost: f64,
    written: f64,
}

impl Caused {
    fn add(&mut self, cost: f64, written: f64) {
        self.cost += cost;
        self.written += written;
    }

    /// With what came after it; `memory`: KiB after which half of it has faded.
    fn followed_by(&self, next: &Caused, memory: f64) -> Caused {
        let keep = if next.written > 0.0 {
            memory / (memory + next.written)
        } else {
            1.0
        };
        Caused {
            cost: self.cost * keep + next.cost,
            written: self.written * keep + next.written,
        }
    }

    /// For each KiB; 0 before anything was written.
    fn price(&self) -> f64 {
        if self.written > 0.0 {
            self.cost / self.written
        } else {
            0.0
        }
    }
}

/// What an internal operation costs for each KiB written.
///
/// Thesis 6.3.1: the cost is divided by all "executed since the last trigger", and "partial
/// resource consumption for ongoing operations" counts. So the KiB since the last run ended stand
/// under the cost of the whole run, however long it outlives the writes; while it lasts the
/// estimate is made anew from all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Operation {
    /// Up to the end of the last run, or of the last piece of this one.
    finished: Caused,
    /// Since then.
    since: Caused,
    /// KiB of `since` that were written while the run was under way.
    beside: f64,
    /// Intervals of the run under way, or of its last piece.
    run: u32,
    /// KiB written in an interval in which much is.
    pace: f64,
}

impl Operation {
    /// An interval has ended in which the operation cost this much, and the tenant wrote so many
    /// KiB.
    pub(super) fn step(&mut self, cost: f64, written: f64) {
        self.follow(written);
        self.since.add(cost, written);
        if cost > 0.0 {
            self.run += 1;
            self.beside += written;
        }
        let ended = self.run > 0 && cost == 0.0;
        // A piece ends only beside writes of about the usual pace: what is worked off after a burst
        // belongs to the burst.
        let piece = self.run >= RUN_MAX && self.beside >= self.pace * f64::from(RUN_MAX) / 2.0;
        if ended || piece {
            *self = Operation {
                finished: self.so_far(),
                pace: self.pace,
                ..Operation::default()
            };
        }
    }

    fn follow(&mut self, written: f64) {
        self.pace = if written >= self.pace {
            written
        } else if written >= self.pace * TRICKLE {
            self.pace + PACE_FOLLOWS * (written - self.pace)
        } else {
            self.pace * PACE_LEFT
        };
    }

    fn so_far(&self) -> Caused {
        self.finished.followed_by(&self.since, KEPT * self.pace)
    }

    /// For each KiB, in VOP. A run under way counts with what it has used so far, where that is
    /// more. One that has only begun does not, unless it is the first: most end in the interval in
    /// which they begin, and what is written in the rest of it is theirs too.
    pub(super) fn price(&self) -> f64 {
        let begun = u32::from(self.finished.written > 0.0);
        let finished = self.finished.price();
        if self.run > begun {
            self.so_far().price().max(finished)
        } else {
            finished
        }
    }
}
