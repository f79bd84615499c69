//! How long requests wait for those that go before them.

/// A queue before a drive.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The part of requests that find something before them.
    load: f64,
    /// Of these, a part `e^(-decay x)` has more than x ns before it.
    decay: f64,
    /// What one takes on average, ns, and 1 / (its squared coefficient of variation).
    mean_ns: f64,
    shape: f64,
}

/// Steps in which a wait is looked at.
const STEPS: u32 = 64;

impl Wait {
    /// Of Poisson arrivals that bring `mean_ns` of work on average, `load` (below 1) of a single
    /// server's time.
    ///
    /// The tail falls exponentially, `P(W > x) ~ load e^(-t x)` with `t` from
    /// `lambda (E e^(t S) - 1) = t` (Cramer and Lundberg). Work is taken to be gamma distributed
    /// with `shape` = 1 / (its squared coefficient of variation).
    #[must_use]
    pub fn of(load: f64, mean_ns: f64, shape: f64) -> Self {
        let mean_ns = mean_ns.max(1.0);
        let none = Wait {
            load,
            decay: 0.0,
            mean_ns,
            shape,
        };
        let (mut low, mut high) = (0.0, shape / mean_ns);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            match none.brings(middle) < middle {
                true => low = middle,
                false => high = middle,
            }
        }
        Wait { decay: low, ..none }
    }

    /// `lambda (E e^(t S) - 1)`: what comes in a time x brings A with `E e^(t A)` = e^(x of that).
    fn brings(&self, t: f64) -> f64 {
        if self.load <= 0.0 {
            return 0.0;
        }
        // E e^(tS) = (1 - t mean / shape)^-shape is finite below shape / mean.
        let growth = (1.0 - t * self.mean_ns / self.shape).powf(-self.shape) - 1.0;
        self.load / self.mean_ns * growth
    }

    /// The same of requests that let others pass: they wait for what they find before them, and for
    /// what comes of `first` until it is their turn.
    ///
    /// They wait longer than x if W and what comes in x take longer than x to serve, so by Chernoff
    /// the tail falls by `max over t of t - lambda_first (E e^(t S) - 1)`, t up to that of W.
    #[must_use]
    pub fn behind(&self, first: &Wait) -> Self {
        let most = self.decay.min(first.shape / first.mean_ns);
        let falls = |t: f64| t - first.brings(t);
        // It is concave in t.
        let (mut low, mut high) = (0.0, most);
        for _ in 0..60 {
            let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            match falls(left) < falls(right) {
                true => low = left,
                false => high = right,
            }
        }
        Wait {
            decay: falls(low).max(0.0),
            ..*self
        }
    }

    /// The part of requests that wait longer.
    #[must_use]
    pub fn longer(&self, ns: f64) -> f64 {
        self.load * (-self.decay * ns.max(0.0)).exp()
    }

    /// The part of requests that are late if a part `late(x)` of those that have x ns left after
    /// their wait are, and they have `bound_ns` before it.
    #[must_use]
    pub fn late(&self, bound_ns: f64, late: impl Fn(f64) -> f64) -> f64 {
        if bound_ns <= 0.0 {
            return self.load;
        }
        let end = |step: u32| bound_ns * f64::from(step) / f64::from(STEPS);
        let part = |step: u32| {
            let waits = self.longer(end(step)) - self.longer(end(step + 1));
            waits * late(bound_ns - 0.5 * (end(step) + end(step + 1)))
        };
        (0..STEPS).map(part).sum::<f64>() + self.longer(bound_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exponential_work_is_known_exactly() {
        // M/M/1: P(W > x) = load e^(-(1 - load) x / mean).
        for load in [0.2, 0.5, 0.9] {
            let exact = load * (-(1.0 - load) * 4.0_f64).exp();
            let wait = Wait::of(load, 1_000.0, 1.0);
            assert!(
                (wait.longer(4_000.0) / exact - 1.0).abs() < 1e-6,
                "{load}: {wait:?}"
            );
            // Who is late only by waiting too long.
            let late = wait.late(4_000.0, |left| f64::from(u8::from(left < 0.0)));
            assert!((late / exact - 1.0).abs() < 1e-6, "{load}: {late}");
        }
    }

    #[test]
    fn who_lets_all_others_pass_waits_as_long_as_they_keep_it_busy() {
        // M/M/1: busy periods last longer than x with e^(-(1 - sqrt(load))^2 x / mean).
        for load in [0.2_f64, 0.5, 0.9] {
            let all = Wait::of(load, 1_000.0, 1.0);
            let exact = load * (-(1.0 - load.sqrt()).powi(2) * 4.0).exp();
            let behind = all.behind(&all).longer(4_000.0);
            assert!((behind / exact - 1.0).abs() < 1e-6, "{load}: {behind}");
            let nobody = Wait::of(0.0, 1_000.0, 1.0);
            let same = all.behind(&nobody).longer(4_000.0);
            assert!((same / all.longer(4_000.0) - 1.0).abs() < 1e-6, "{load}");
        }
    }

    proptest! {
        /// Nobody waits less for letting others pass, and longer for more of them.
        #[test]
        fn it_grows_with_what_passes(
            load in 0.01..0.98f64, parts in (0.0..1.0f64, 0.0..1.0f64), shape in 0.5..50.0f64,
        ) {
            let all = Wait::of(load, 1.0, shape);
            let behind = |part: f64| all.behind(&Wait::of(load * part, 1.0, shape)).longer(5.0);
            let (less, more) = (parts.0.min(parts.1), parts.0.max(parts.1));
            prop_assert!(all.longer(5.0) <= behind(less) + 1e-9);
            prop_assert!(behind(less) <= behind(more) + 1e-9);
        }

        /// More load and less time never help.
        #[test]
        fn it_grows_with_load_and_falls_with_time(
            load in 0.01..0.98f64, shape in 0.5..50.0f64, bound in 0.0..100.0f64,
        ) {
            let late = |load: f64, bound: f64| {
                Wait::of(load, 1.0, shape).late(bound, |left| (-left).exp().min(1.0))
            };
            let part = late(load, bound);
            prop_assert!((0.0..=1.0).contains(&part), "{part}");
            prop_assert!(late(load + 0.01, bound) >= part - 1e-9);
            prop_assert!(late(load, bound + 1.0) <= part + 1e-9);
        }
    }
}
