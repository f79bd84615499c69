//! How much a core has to do, as the others see it.

use std::sync::atomic::{AtomicU64, Ordering};

use policy::Nanos;

/// What a core shows the others of its load; it alone writes. On a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
pub struct Load {
    /// Time awake since the start, ns.
    awake_ns: AtomicU64,
    /// What its queue will take, ns, when it last went to its poll.
    backlog_ns: AtomicU64,
}

impl Load {
    /// The core was awake for this much longer, and its queue will take this long.
    pub fn show(&self, awake_ns: Nanos, backlog_ns: Nanos) {
        let awake_ns = self.awake_ns.load(Ordering::Relaxed) + awake_ns;
        self.awake_ns.store(awake_ns, Ordering::Relaxed);
        self.backlog_ns.store(backlog_ns, Ordering::Relaxed);
    }

    /// For how long the core was awake since the start.
    pub fn awake_ns(&self) -> Nanos {
        self.awake_ns.load(Ordering::Relaxed)
    }

    /// For how long its queue will keep it busy, as it was last shown.
    pub fn backlog_ns(&self) -> Nanos {
        self.backlog_ns.load(Ordering::Relaxed)
    }
}
