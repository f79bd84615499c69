//! A rate that several threads keep together.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Holds whoever reads back, so that all of them read no more than a rate on average.
pub struct Pace {
    per_s: Option<f64>,
    /// What was read so far is paid for by then.
    paid: Mutex<Instant>,
}

impl Pace {
    /// So many bytes a second; `None`: any number.
    pub fn new(per_s: Option<f64>) -> Self {
        Self {
            per_s,
            paid: Mutex::new(Instant::now()),
        }
    }

    /// So many bytes were read: waits until more may be.
    pub fn spend(&self, bytes: u64) {
        let now = Instant::now();
        if let Some(until) = self.paid_by(now, bytes) {
            thread::sleep(until.saturating_duration_since(now));
        }
    }

    /// When what was read at `now` is paid for, after all that was read before. Time in which
    /// nothing was read is not saved up.
    fn paid_by(&self, now: Instant, bytes: u64) -> Option<Instant> {
        let took = Duration::from_secs_f64(bytes as f64 / self.per_s?);
        let mut paid = self.paid.lock().expect("nobody panics with it");
        *paid = (*paid).max(now) + took;
        Some(*paid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_read_is_paid_for_and_nothing_is_saved_up() {
        let pace = Pace::new(Some(1_000.0));
        let now = Instant::now() + Duration::from_secs(10);
        let after = |bytes, later_ms| {
            let at = now + Duration::from_millis(later_ms);
            let until = pace.paid_by(at, bytes).expect("a rate");
            until.duration_since(now).as_millis()
        };
        assert_eq!([after(500, 0), after(500, 0)], [500, 1_000], "two threads");
        assert_eq!([after(100, 900), after(100, 5_000)], [1_100, 5_100]);
        assert_eq!(Pace::new(None).paid_by(now, 1), None);
    }
}
