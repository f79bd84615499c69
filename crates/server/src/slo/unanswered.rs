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
    /// Both without those whose database is being opened: nothing that stages are told makes that
    /// shorter. Not known of other fronts.
    pub at_stages: Waiting,
}

/// What waits where a controller can do something about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// As [`Unanswered::overdue`].
    pub overdue: u64,
    /// As [`Unanswered::longest_ns`].
    pub longest_ns: Nanos,
}

impl Unanswered {
    /// One that has waited for so long; `opening`: its database is being opened.
    pub fn count(&mut self, objective: &Objective, waited_ns: Nanos, opening: bool) {
        let latency = objective.latency;
        let overdue = latency.is_some_and(|latency| waited_ns > latency.at_most_ns);
        self.overdue += u64::from(overdue);
        self.longest_ns = self.longest_ns.max(waited_ns);
        self.in_window_ns += waited_ns.min(objective.window_ns);
        if !opening {
            self.at_stages.add(&Waiting {
                overdue: u64::from(overdue),
                longest_ns: waited_ns,
            });
        }
    }

    /// Adds another core's.
    pub fn add(&mut self, other: &Self) {
        self.overdue += other.overdue;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.in_window_ns += other.in_window_ns;
        self.at_stages.add(&other.at_stages);
    }
}

impl Waiting {
    fn add(&mut self, other: &Self) {
        self.overdue += other.overdue;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}
