//! When a controller that failed is followed by another.

use crate::cost::Nanos;

/// The first pause: about an interval.
const PAUSE_MIN_NS: Nanos = 1_000_000_000;
/// The longest: a controller that fails whenever it decides then does so twice a minute.
const PAUSE_MAX_NS: Nanos = 30_000_000_000;
/// One that has worked for so long and fails has failed for another reason.
const CALM_NS: Nanos = 60_000_000_000;

/// A pause after each failure, which doubles while the next controller fails, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restart {
    pause_ns: Nanos,
    begins_at: Nanos,
}

impl Restart {
    /// The controller failed at `now`. Returned is whether that is the first time in a while, which
    /// is worth telling; when the next one begins is [`Restart::begins_at`].
    pub fn failed(&mut self, now: Nanos) -> bool {
        let first = self.pause_ns == 0 || now.saturating_sub(self.begins_at) >= CALM_NS;
        self.pause_ns = match first {
            true => PAUSE_MIN_NS,
            false => (2 * self.pause_ns).min(PAUSE_MAX_NS),
        };
        self.begins_at = now.saturating_add(self.pause_ns);
        first
    }

    /// When a controller may decide (again).
    #[must_use]
    pub fn begins_at(&self) -> Nanos {
        self.begins_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    #[test]
    fn pauses_double_to_a_bound_and_a_calm_minute_ends_that() {
        let mut restart = Restart::default();
        assert_eq!(restart.begins_at(), 0, "nothing failed yet");
        let (mut now, mut pauses) = (5 * S, Vec::new());
        for _ in 0..7 {
            let first = restart.failed(now);
            assert_eq!(first, pauses.is_empty());
            pauses.push((restart.begins_at() - now) / S);
            now = restart.begins_at() + S;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert!(restart.failed(restart.begins_at() + CALM_NS));
    }
}
