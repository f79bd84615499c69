//! When a database that does not open is tried again: each try reads its manifest and its log, and
//! whoever has a tenant that asks without pause would have them read without pause.

use std::time::{Duration, Instant};

/// The pause after the first failure; it doubles with each one.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Failures in a row, and until when nobody tries.
#[derive(Debug, Default)]
pub(crate) struct Tries(Option<(Duration, Instant)>);

impl Tries {
    /// Whether it may be tried.
    pub(crate) fn due(&self, now: Instant) -> bool {
        self.0.is_none_or(|(_, until)| now >= until)
    }

    /// It was tried in vain; returns the pause.
    pub(crate) fn failed(&mut self, now: Instant) -> Duration {
        let longer = |(pause, _): (Duration, Instant)| (2 * pause).min(PAUSE_MAX);
        let pause = self.0.map_or(PAUSE_MIN, longer);
        self.0 = Some((pause, now + pause));
        pause
    }

    pub(crate) fn succeeded(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute_and_begin_anew_after_a_success() {
        let mut now = Instant::now();
        let mut tries = Tries::default();
        assert!(tries.due(now));
        for pause_s in [1, 2, 4, 8, 16, 30, 30] {
            let pause = Duration::from_secs(pause_s);
            assert_eq!(tries.failed(now), pause);
            assert!(!tries.due(now + pause - Duration::from_millis(1)));
            now += pause;
            assert!(tries.due(now));
        }
        tries.succeeded();
        assert_eq!(tries.failed(now), PAUSE_MIN);
    }
}
