//! The largest turns of a core, in what can be counted: no request of any tenant may make others wait for more.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Used;

/// The largest that was seen of each, since the start.
#[derive(Debug, Default)]
pub struct LargestTurn {
    words: AtomicU64,
    bytes: AtomicU64,
    steps: AtomicU64,
}

impl LargestTurn {
    /// A turn has used so much. One core calls this.
    #[inline]
    pub(super) fn note(&self, used: &Used) {
        let bytes = used.bytes_in.max(used.bytes_out);
        for (largest, seen) in [
            (&self.words, used.words),
            (&self.bytes, bytes),
            (&self.steps, used.steps),
        ] {
            if seen > largest.load(Ordering::Relaxed) {
                largest.store(seen, Ordering::Relaxed);
            }
        }
    }

    /// Words of requests looked at, bytes read or written (whichever were more), steps
    /// ([`engine::TURN_STEPS`]).
    pub fn words_bytes_steps(&self) -> [u64; 3] {
        [&self.words, &self.bytes, &self.steps].map(|largest| largest.load(Ordering::Relaxed))
    }
}
