//! The largest turns of a core: no request of any tenant may make others wait for more.

use std::sync::atomic::{AtomicU64, Ordering};

/// The largest that was seen of each, since the start.
#[derive(Debug, Default)]
pub struct LargestTurn {
    words: AtomicU64,
    bytes: AtomicU64,
    steps: AtomicU64,
    cpu_ns: AtomicU64,
}

impl LargestTurn {
    /// A turn has used so much: as [`LargestTurn::figures`]. One core calls this.
    #[inline]
    pub fn note(&self, turn: [u64; 4]) {
        let largest = [&self.words, &self.bytes, &self.steps, &self.cpu_ns];
        for (largest, seen) in largest.into_iter().zip(turn) {
            if seen > largest.load(Ordering::Relaxed) {
                largest.store(seen, Ordering::Relaxed);
            }
        }
    }

    /// Words of requests looked at, bytes read or written (whichever were more), steps
    /// ([`engine::TURN_STEPS`]), processor time in ns.
    pub fn figures(&self) -> [u64; 4] {
        [&self.words, &self.bytes, &self.steps, &self.cpu_ns]
            .map(|largest| largest.load(Ordering::Relaxed))
    }
}
