//! How a run is going, over all of its threads.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Drive;

/// How a run is going.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Seconds since measuring began; negative in the warm-up.
    pub at_s: f64,
    /// Requests sent so far.
    pub offered: u64,
    /// Requests answered so far.
    pub completed: u64,
    /// Requests failed so far.
    pub failed: u64,
    /// Requests sent and not answered.
    pub outstanding: u64,
    /// What changed since it was last told: who joined, left, or behaves otherwise.
    pub news: Vec<String>,
    /// Only the last replies are still waited for.
    pub ending: bool,
}

/// What all threads count together.
#[derive(Default)]
pub(super) struct Gauges {
    offered: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    outstanding: AtomicU64,
}

impl Drive {
    /// Tells how it is going, together with the other threads.
    pub(super) fn tell(
        &mut self,
        now_ns: u64,
        ending: bool,
        gauges: &Gauges,
        progress: &mut dyn FnMut(&Progress),
    ) {
        let outstanding = self.fleet.outstanding() as u64;
        let now = (
            self.recorder.sent,
            self.fleet.completed,
            self.recorder.lost,
            outstanding,
        );
        let add = |gauge: &AtomicU64, now: u64, before: u64| {
            gauge.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
            gauge.load(Ordering::Relaxed)
        };
        let at_s = (now_ns as f64 - self.times.from_ns as f64) / 1e9;
        let told = Progress {
            at_s,
            offered: add(&gauges.offered, now.0, self.told.0),
            completed: add(&gauges.completed, now.1, self.told.1),
            failed: add(&gauges.failed, now.2, self.told.2),
            outstanding: add(&gauges.outstanding, now.3, self.told.3),
            news: std::mem::take(&mut self.news),
            ending,
        };
        self.told = now;
        progress(&told);
    }
}
