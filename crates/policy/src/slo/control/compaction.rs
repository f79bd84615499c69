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
/// How much more it has after an interval in which hardly any request was late, and how much less
/// when too many were: nobody waits for it, so it can be had at once.
const MORE: f64 = 1.2;
const LESS: f64 = 0.25;

/// The part that compactions of each tenant may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compaction {
    /// `None`: it is not bounded, as an arm has other troubles.
    part: Option<f64>,
}

impl Compaction {
    pub(super) fn first(options: &AutoOptions) -> Self {
        Compaction {
            part: (!options.seeks).then_some(FIRST),
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
        let Some(part) = self.part.filter(|_| self.may_fall(seen)) else {
            return false;
        };
        self.part = Some((LESS * part.min(seen.compaction)).max(LEAST));
        true
    }

    /// Next to no request was late: it has more, if it used what it had.
    pub(super) fn more(&mut self, seen: &Seen) {
        let used = |part: &f64| seen.compaction > USED * part;
        self.part = self.part.map(|part| match used(&part) {
            true => (part * MORE).min(1.0),
            false => part,
        });
    }
}
