//! Requests of a promise that are not answered yet.

use policy::slo::Objective;
use policy::Nanos;

/// Those within the contract that wait, as they were when a core looked last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// Of them, those that have waited for longer than promised.
    pub overdue: u64,
    /// How long the one has waited that waits longest, ns; 0: none does.
    pub longest_ns: Nanos,
    /// How long each has waited, but no longer than a window, summed, ns.
    pub in_window_ns: u64,
}

impl Unanswered {
    /// One that has waited for so long.
    pub fn count(&mut self, objective: &Objective, waited_ns: Nanos) {
        let latency = objective.latency;
        let overdue = latency.is_some_and(|latency| waited_ns > latency.at_most_ns);
        self.overdue += u64::from(overdue);
        self.longest_ns = self.longest_ns.max(waited_ns);
        self.in_window_ns += waited_ns.min(objective.window_ns);
    }

    /// Adds another core's.
    pub fn add(&mut self, other: &Self) {
        self.overdue += other.overdue;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.in_window_ns += other.in_window_ns;
    }
}
