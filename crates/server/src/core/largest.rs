//! The largest turns of a core: no request of any tenant may make others wait for more.

use std::sync::atomic::{AtomicU64, Ordering};

use policy::Nanos;

use super::Used;

/// The largest that was seen of each, since the start.
#[derive(Debug, Default)]
pub struct LargestTurn {
    words: AtomicU64,
    bytes: AtomicU64,
    steps: AtomicU64,
    cpu_ns: AtomicU64,
}

impl LargestTurn {
    /// A turn has used so much, and so much of the processor. One core calls this.
    #[inline]
    pub(super) fn note(&self, used: &Used, cpu_ns: Nanos) {
        let bytes = used.bytes_in.max(used.bytes_out);
        for (largest, seen) in [
            (&self.words, used.words),
            (&self.bytes, bytes),
            (&self.steps, used.steps),
            (&self.cpu_ns, cpu_ns),
        ] {
            if seen > largest.load(Ordering::Relaxed) {
                largest.store(seen, Ordering::Relaxed);
            }
        }
    }

    /// Words of requests looked at, bytes read or written (whichever were more), steps ([`engine::TURN_STEPS`]),
    /// processor time in ns.
    pub fn figures(&self) -> [u64; 4] {
        [&self.words, &self.bytes, &self.steps, &self.cpu_ns]
            .map(|largest| largest.load(Ordering::Relaxed))
    }
}
