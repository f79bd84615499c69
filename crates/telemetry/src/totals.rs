//! What was counted since the start: plain numbers, merged over cores.

use serde::{Deserialize, Serialize};

use crate::class::{Class, CLASSES};
use crate::parts::TimeParts;
use crate::snapshot::HistogramSnapshot;

/// One tenant's requests of one class since the start, over all cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassTotals {
    /// Requests answered, errors included, throttled ones not.
    pub requests: u64,
    /// Of those, answered with an error.
    pub errors: u64,
    /// Requests turned away, by limit in the order of [`crate::Limit::ALL`].
    pub throttled: [u64; 2],
    /// Bytes of requests.
    pub bytes_in: u64,
    /// Bytes of replies.
    pub bytes_out: u64,
    /// CPU time charged, ns.
    pub cpu_ns: u64,
    /// Readable to answered.
    pub latency: HistogramSnapshot,
    /// Waiting at the request stage.
    pub queue: HistogramSnapshot,
    /// On a handler; counts only requests that needed one.
    pub disk: HistogramSnapshot,
    /// The parts of all latencies, summed.
    pub parts: TimeParts,
}

impl ClassTotals {
    /// True when nothing at all was counted.
    pub fn is_empty(&self) -> bool {
        self.requests == 0 && self.throttled == [0, 0]
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let less = u64::saturating_sub;
        Self {
            requests: less(self.requests, earlier.requests),
            errors: less(self.errors, earlier.errors),
            throttled: [0, 1].map(|limit| less(self.throttled[limit], earlier.throttled[limit])),
            bytes_in: less(self.bytes_in, earlier.bytes_in),
            bytes_out: less(self.bytes_out, earlier.bytes_out),
            cpu_ns: less(self.cpu_ns, earlier.cpu_ns),
            latency: self.latency.since(&earlier.latency),
            queue: self.queue.since(&earlier.queue),
            disk: self.disk.since(&earlier.disk),
            parts: self.parts.since(&earlier.parts),
        }
    }
}

/// How much of one class was answered since the start, over all cores, and what that took:
/// [`ClassTotals`] without its histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Requests answered, errors included, throttled ones not.
    pub requests: u64,
    /// Bytes of requests.
    pub bytes_in: u64,
    /// Bytes of replies.
    pub bytes_out: u64,
    /// CPU time charged, ns.
    pub cpu_ns: u64,
}

/// One tenant's counters since the start, over all cores.
#[derive(Clone, Debug, Default)]
pub struct TenantTotals {
    /// In the order of [`Class::ALL`].
    pub classes: [ClassTotals; CLASSES],
    /// All classes together.
    pub usage: Usage,
}

impl TenantTotals {
    /// Requests that a handler had to go to the disk for.
    pub fn disk_requests(&self) -> u64 {
        self.classes.iter().map(|class| class.disk.count()).sum()
    }

    /// The classes that counted anything.
    pub fn active(&self) -> impl Iterator<Item = (Class, &ClassTotals)> {
        Class::ALL
            .into_iter()
            .zip(&self.classes)
            .filter(|(_, totals)| !totals.is_empty())
    }
}

/// What was spent on a tenant: the cost vector of the request stage, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Requests answered.
    pub requests: u64,
    /// Bytes of requests.
    pub bytes_in: u64,
    /// Bytes of replies.
    pub bytes_out: u64,
    /// CPU time charged, ns.
    pub cpu_ns: u64,
    /// Time with a request waiting at the request stage, ns, summed over cores.
    pub occupied_ns: u64,
    /// Reads that found their key.
    pub found: u64,
    /// Reads that found no key.
    pub missed: u64,
    /// Requests turned away because of a limit; in none of the numbers above.
    pub throttled: u64,
}

impl Usage {
    /// What was spent since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            bytes_in: self.bytes_in.saturating_sub(earlier.bytes_in),
            bytes_out: self.bytes_out.saturating_sub(earlier.bytes_out),
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            occupied_ns: self.occupied_ns.saturating_sub(earlier.occupied_ns),
            found: self.found.saturating_sub(earlier.found),
            missed: self.missed.saturating_sub(earlier.missed),
            throttled: self.throttled.saturating_sub(earlier.throttled),
        }
    }

    /// Adds another's spending to this.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.cpu_ns += other.cpu_ns;
        self.occupied_ns += other.occupied_ns;
        self.found += other.found;
        self.missed += other.missed;
        self.throttled += other.throttled;
    }
}
