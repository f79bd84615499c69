//! The slowest requests of a tenant, with where their time went.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use policy::Nanos;
use telemetry::{Class, TimeParts};

use super::late::Delays;

/// So many are kept.
const KEPT: usize = 32;
/// For this long, at most.
const KEPT_NS: Nanos = 3_600_000_000_000;

/// One request, or several that were answered together.
#[derive(Clone, Debug)]
pub struct Slow {
    /// When it was answered, ns of the server's clock.
    pub at: Nanos,
    /// The same, s since the Unix epoch.
    pub unix_s: u64,
    /// From its arrival to its reply's last byte, ns.
    pub latency_ns: Nanos,
    /// Its class.
    pub class: Class,
    /// The workload of its connection; none: of none.
    pub workload: Option<String>,
    /// The last command of its connection.
    pub command: &'static str,
    /// What its client calls itself, or its address.
    pub client: String,
    /// How many were answered together.
    pub requests: u32,
    /// The parts of its time.
    pub parts: TimeParts,
    /// Behind whom it waited.
    pub behind: Delays,
}

/// The list.
#[derive(Default)]
pub struct Slowest {
    /// A request that took less is not among them.
    over_ns: AtomicU64,
    kept: Mutex<Vec<Slow>>,
}

impl Slowest {
    /// Whether a request that took so long is among them. Cores ask this of each turn.
    #[inline]
    pub fn wants(&self, latency_ns: Nanos) -> bool {
        latency_ns > self.over_ns.load(Ordering::Relaxed)
    }

    /// Takes one in, and forgets what is older than an hour, or the fastest.
    pub fn take(&self, slow: Slow) {
        let mut kept = self.kept.lock();
        let since = slow.at.saturating_sub(KEPT_NS);
        kept.retain(|one| one.at >= since);
        let at = kept.partition_point(|one| one.latency_ns >= slow.latency_ns);
        kept.insert(at, slow);
        kept.truncate(KEPT);
        let full = kept.len() == KEPT;
        let over_ns = kept
            .last()
            .filter(|_| full)
            .map_or(0, |last| last.latency_ns);
        self.over_ns.store(over_ns, Ordering::Relaxed);
    }

    /// Forgets what is older than an hour; called now and then, so that what is slow today is not
    /// held against what was slow yesterday.
    pub fn forget_old(&self, now: Nanos) {
        let since = now.saturating_sub(KEPT_NS);
        let mut kept = self.kept.lock();
        if kept.iter().any(|one| one.at < since) {
            kept.retain(|one| one.at >= since);
            self.over_ns.store(0, Ordering::Relaxed);
        }
    }

    /// All of them, the slowest first.
    pub fn list(&self) -> Vec<Slow> {
        self.kept.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(at: Nanos, latency_ns: Nanos) -> Slow {
        Slow {
            at,
            unix_s: 0,
            latency_ns,
            class: Class::Get,
            workload: None,
            command: "get",
            client: String::new(),
            requests: 1,
            parts: TimeParts::default(),
            behind: Delays::new(),
        }
    }

    #[test]
    fn the_slowest_of_the_last_hour_are_kept() {
        let slowest = Slowest::default();
        (1..=100).for_each(|ns| slowest.take(slow(1, ns)));
        let kept: Vec<Nanos> = slowest.list().iter().map(|one| one.latency_ns).collect();
        assert_eq!(kept, (69..=100).rev().collect::<Vec<_>>());
        assert!(slowest.wants(70) && !slowest.wants(69));
        slowest.take(slow(2 + KEPT_NS, 1));
        assert_eq!(slowest.list().len(), 1);
        assert!(slowest.wants(1), "there is room again");
        slowest.forget_old(3 + 2 * KEPT_NS);
        assert!(slowest.list().is_empty());
    }
}
