//! What others had a second, interval by interval: whether one stretch of time was worse than
//! another, or chance made it look so.

/// What counts of an older interval when the next one is over.
const MEMORY: f64 = 0.9;

/// After something has changed, so many intervals show more of the change than of what is after it.
const SETTLING: u32 = 4;

/// So many intervals are compared with others.
const TELL: f64 = 4.0;

/// Rates of some intervals: their number, sum and sum of squares; older ones fade.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    /// Intervals since something changed.
    passed: u32,
    count: f64,
    sum: f64,
    squares: f64,
}

impl Rates {
    /// Takes in an interval.
    pub(super) fn see(&mut self, per_s: f64) {
        self.passed = self.passed.saturating_add(1);
        if self.passed <= SETTLING {
            return;
        }
        self.count = self.count * MEMORY + 1.0;
        self.sum = self.sum * MEMORY + per_s;
        self.squares = self.squares * MEMORY + per_s * per_s;
    }

    /// Whether there are enough of them to compare others with.
    pub(super) fn tell(&self) -> bool {
        self.count >= TELL
    }

    /// The mean, and how far chance may have moved it: the square of its standard error.
    fn mean(&self) -> Option<(f64, f64)> {
        let count = Some(self.count).filter(|count| *count > 1.5)?;
        let mean = self.sum / count;
        let variance = (self.squares / count - mean * mean).max(0.0);
        Some((mean, variance / (count - 1.0)))
    }

    /// Whether these are less than those of `before` by more than a part `least` of them, and by
    /// more than so many standard errors.
    pub(super) fn lost(&self, before: &Rates, least: f64, errors: f64) -> bool {
        let Some((now, before)) = self.mean().zip(before.mean()) else {
            return false;
        };
        let error = (now.1 + before.1).sqrt();
        before.0 - now.0 > (errors * error).max(least * before.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(all: impl IntoIterator<Item = f64>) -> Rates {
        let mut rates = Rates::default();
        (0..SETTLING).for_each(|_| rates.see(0.0));
        all.into_iter().for_each(|per_s| rates.see(per_s));
        rates
    }

    /// As many below a mean as above it, by a tenth of it.
    fn around(mean: f64) -> Rates {
        let swings = [0.9, 1.1].into_iter().cycle().take(20);
        rates(swings.map(|part| part * mean))
    }

    #[test]
    fn a_loss_is_told_from_chance() {
        let lost = |now: Rates, before: Rates| now.lost(&before, 0.01, 2.0);
        assert!(lost(around(80.0), around(100.0)));
        assert!(!lost(around(97.0), around(100.0)), "it may be chance");
        assert!(!lost(around(105.0), around(100.0)), "a gain");
        let steady = |mean: f64| rates([mean; 10]);
        assert!(lost(steady(98.0), steady(100.0)));
        assert!(!lost(steady(99.5), steady(100.0)), "too little to matter");
        assert!(!lost(rates([1.0]), steady(100.0)), "one says nothing");
    }
}
