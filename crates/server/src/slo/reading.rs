//! What a meter has counted, of which several can be added up.

use policy::slo::{Counts, Served};
use telemetry::HistogramSnapshot;

use super::unanswered::Unanswered;

/// What a meter has counted since its start.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// How many, and how many late.
    pub counts: Counts,
    /// Latencies of those within the contract.
    pub within: HistogramSnapshot,
    /// And of those beyond it.
    pub beyond: HistogramSnapshot,
    /// Those that wait.
    pub unanswered: Unanswered,
    /// What was served: as `counts` have it, but of other servers by what they serve a second.
    pub served: Served,
}

impl Reading {
    /// What was counted since `earlier`, a reading of the same meter, and what waits now. If the
    /// counts are less than they were, it is another meter, which began with nothing.
    pub fn since(&self, earlier: &Self) -> Self {
        let [now, before] = [self, earlier].map(|reading| &reading.counts);
        if now.requests < before.requests || now.beyond < before.beyond {
            return self.clone();
        }
        Self {
            counts: now.since(before),
            within: self.within.since(&earlier.within),
            beyond: self.beyond.since(&earlier.beyond),
            unanswered: self.unanswered,
            served: self.served.since(&earlier.served),
        }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        let counted = self.counts.requests + self.counts.beyond;
        counted == 0 && self.unanswered == Unanswered::default()
    }

    /// Both together.
    pub fn and(mut self, other: &Self) -> Self {
        self.counts.add(&other.counts);
        self.within.merge(&other.within);
        self.beyond.merge(&other.beyond);
        self.unanswered.add(&other.unanswered);
        self.served.add(&other.served);
        self.counts.overdue = self.unanswered.overdue;
        self
    }

    /// So much more was counted, and that is what waits now.
    pub fn grow(&mut self, more: &Self) {
        self.unanswered = Unanswered::default();
        *self = std::mem::take(self).and(more);
    }
}
