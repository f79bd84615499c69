//! Lines of the log about what can happen with every request: they are written once in a while.

use std::sync::atomic::{AtomicU64, Ordering};

/// Between two entries, ms.
const PAUSE_MS: u64 = 1_000;

/// When it was last said.
#[derive(Default)]
pub struct Seldom {
    again_at_ms: AtomicU64,
}

impl Seldom {
    /// True if it is to be said now, by one of those who ask at once.
    pub fn now(&self, now_ms: u64) -> bool {
        let at = self.again_at_ms.load(Ordering::Relaxed);
        let next = now_ms + PAUSE_MS;
        let order = Ordering::Relaxed;
        now_ms >= at
            && self
                .again_at_ms
                .compare_exchange(at, next, order, order)
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_in_a_second() {
        let seldom = Seldom::default();
        let said = [0, 1, 999, 1_000, 1_500, 9_000].map(|now_ms| seldom.now(now_ms));
        assert_eq!(said, [true, false, false, true, false, true]);
    }
}
