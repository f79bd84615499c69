//! How much of a device without an arm compactions may have beside promised requests.
//!
//! Flash reads late while it is written to: a die that programs a page or erases a block lets
//! nobody read, for up to tens of ms, and how often that happens goes by the bytes written. So what
//! harms there is a rate, and neither fewer permits nor smaller pieces lower it by much. No request
//! waits for a compaction, so it gives way before the reads of others do.

use super::auto::AutoOptions;
use super::Seen;

/// The part of the device's time that it may have at first, half of what thesis 6.4 allows it, and
/// the least: debts drain, however slowly.
const FIRST: f64 = 0.05;
const LEAST: f64 = 0.005;
/// It used its part if it had more than this of it.
const USED: f64 = 0.8;
/// Intervals in time, and using its part, before it has more: one until requests were late by it,
/// then so many, and twice as many each time, up to a bound.
const PATIENCE: u32 = 20;
const PATIENCE_MAX: u32 = 320;
/// How much more, and how much less when requests are late: nobody waits for it, so it can be had
/// at once.
const MORE: f64 = 2.0;
const LESS: f64 = 0.25;

/// The part that compactions of each tenant may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compaction {
    /// `None`: it is not bounded, as an arm has other troubles.
    part: Option<f64>,
    /// It had more since requests were late last.
    raised: bool,
    calm: u32,
    patience: u32,
}

impl Compaction {
    pub(super) fn first(options: &AutoOptions) -> Self {
        Compaction {
            part: (!options.seeks).then_some(FIRST),
            raised: false,
            calm: 0,
            patience: 1,
        }
    }

    /// The part of the device's time that it may have; `None`: any.
    pub(super) fn part(&self) -> Option<f64> {
        self.part.filter(|part| *part < 1.0)
    }

    /// Whether it could have less, and did enough for that to matter.
    pub(super) fn may_fall(&self, seen: &Seen) -> bool {
        self.part.is_some_and(|part| part > LEAST) && seen.compaction > LEAST
    }

    /// Requests are late at the device: tells whether it has less now.
    pub(super) fn less(&mut self, seen: &Seen) -> bool {
        self.calm = 0;
        let Some(part) = self.part.filter(|_| self.may_fall(seen)) else {
            return false;
        };
        if std::mem::take(&mut self.raised) {
            self.patience = (self.patience * 2).clamp(PATIENCE, PATIENCE_MAX);
        }
        self.part = Some((LESS * part.min(seen.compaction)).max(LEAST));
        true
    }

    /// All requests were in time: tells whether it has more now.
    pub(super) fn more(&mut self, seen: &Seen) -> bool {
        let used = |part: &f64| *part < 1.0 && seen.compaction > USED * part;
        let Some(part) = self.part.filter(used) else {
            return false;
        };
        self.calm += 1;
        if self.calm < self.patience {
            return false;
        }
        (self.calm, self.raised) = (0, true);
        self.part = Some((part * MORE).min(1.0));
        true
    }
}
