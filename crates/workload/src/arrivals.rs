//! When requests are due: at random or evenly spaced, at a rate that changes with time.

use std::ops::Range;

use crate::rng::Rng;

/// A rate that changes in steps, repeated without end.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Requests per second in each step, at least one step.
    pub rates_per_s: Vec<f64>,
    /// Length of a step, seconds, above zero; infinite for one rate for ever.
    pub step_s: f64,
}

impl Curve {
    /// One rate for ever.
    pub fn flat(rate_per_s: f64) -> Self {
        Self {
            rates_per_s: vec![rate_per_s],
            step_s: f64::INFINITY,
        }
    }

    fn step(&self, at_s: f64) -> u64 {
        (at_s / self.step_s) as u64
    }

    fn place(&self, at_s: f64) -> usize {
        (self.step(at_s) % self.rates_per_s.len() as u64) as usize
    }
}

/// A crowd that multiplies the rate for a while.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// When it begins, seconds.
    pub at_s: f64,
    /// How long it lasts, seconds.
    pub length_s: f64,
    /// By what it multiplies the rate.
    pub times: f64,
    /// When it comes again, seconds from beginning to beginning; infinite: never.
    pub every_s: f64,
}

impl Crowd {
    /// What it multiplies the rate by at `at_s`, and when that changes next.
    fn at(&self, at_s: f64) -> (f64, f64) {
        if at_s < self.at_s {
            return (1.0, self.at_s);
        }
        let round = ((at_s - self.at_s) / self.every_s).floor();
        let begun_s = if round > 0.0 {
            self.at_s + round * self.every_s
        } else {
            self.at_s
        };
        if at_s < begun_s + self.length_s {
            (self.times, begun_s + self.length_s)
        } else {
            (1.0, begun_s + self.every_s)
        }
    }
}

/// A rate at every time of a run. Time 0 is the end of the warm-up; before it the rate is that of
/// time 0.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The rate without crowds.
    pub curve: Curve,
    /// Where in the curve time 0 is, seconds.
    pub offset_s: f64,
    /// On top of it.
    pub crowd: Option<Crowd>,
}

impl Profile {
    /// A curve from its beginning.
    pub fn new(curve: Curve) -> Self {
        Self {
            curve,
            offset_s: 0.0,
            crowd: None,
        }
    }

    /// Requests per second at `at_s`, and until when.
    fn at(&self, at_s: f64) -> (f64, f64) {
        let from_s = at_s.max(0.0);
        let along_s = from_s + self.offset_s;
        let rate = self.curve.rates_per_s[self.curve.place(along_s)];
        let mut end_s = (self.curve.step(along_s) + 1) as f64 * self.curve.step_s - self.offset_s;
        let mut times = 1.0;
        if let Some(crowd) = &self.crowd {
            let (factor, change_s) = crowd.at(from_s);
            times = factor;
            end_s = end_s.min(change_s);
        }
        if at_s < 0.0 {
            end_s = 0.0;
        }
        (rate * times, end_s)
    }

    /// The step of the curve that holds at `at_s`.
    pub fn step(&self, at_s: f64) -> usize {
        self.curve.place(at_s.max(0.0) + self.offset_s)
    }
}

/// Times at which requests are due.
///
/// The next one is where the integral of the rate has grown by an exponential variate with mean 1
/// (random) or by 1 (evenly spaced), which is exact for a rate that changes in steps.
#[derive(Clone, Debug)]
pub struct Arrivals {
    profile: Profile,
    /// `None`: evenly spaced.
    random: Option<Rng>,
    at_s: f64,
    /// Nothing is due after this; without an end a rate of zero would be searched for ever.
    end_s: f64,
}

/// The least way forward, seconds: rounding must not find the same step again.
const TICK_S: f64 = 1e-9;

impl Arrivals {
    /// In `span_s`, which is negative in the warm-up. `random`: a Poisson process; `None`: evenly
    /// spaced.
    pub fn new(profile: Profile, random: Option<Rng>, span_s: Range<f64>) -> Self {
        Self {
            profile,
            random,
            at_s: span_s.start,
            end_s: span_s.end,
        }
    }

    /// When the next one is due, seconds; `None`: none any more.
    pub fn next_s(&mut self) -> Option<f64> {
        let mut left = match &mut self.random {
            Some(rng) => rng.exponential(),
            None => 1.0,
        };
        while self.at_s < self.end_s {
            let (rate, change_s) = self.profile.at(self.at_s);
            let grows = if rate > 0.0 {
                rate * (change_s - self.at_s)
            } else {
                0.0
            };
            if left < grows {
                self.at_s += left / rate;
                return (self.at_s < self.end_s).then_some(self.at_s);
            }
            left -= grows.max(0.0);
            self.at_s = change_s.max(self.at_s + TICK_S);
        }
        None
    }

    /// The step of the curve that holds now.
    pub fn step(&self) -> usize {
        self.profile.step(self.at_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(profile: Profile, random: bool, span: Range<f64>) -> Vec<f64> {
        let mut arrivals = Arrivals::new(profile, random.then(|| Rng::new(1, 2)), span);
        std::iter::from_fn(|| arrivals.next_s()).collect()
    }

    #[test]
    fn even_arrivals_are_even_and_follow_steps() {
        let times = count(Profile::new(Curve::flat(4.0)), false, 0.0..1.1);
        assert_eq!(times, [0.25, 0.5, 0.75, 1.0]);
        let curve = Curve {
            rates_per_s: vec![2.0, 0.0, 4.0],
            step_s: 1.0,
        };
        let times = count(Profile::new(curve), false, 0.0..4.0);
        let within = |from: f64, to: f64| times.iter().filter(|t| (from..to).contains(*t)).count();
        assert_eq!((within(0.0, 1.0), within(1.0, 2.0)), (1, 0));
        assert!(within(2.0, 3.0) >= 4 && within(3.0, 4.0) >= 1, "{times:?}");
    }

    #[test]
    fn random_arrivals_keep_the_rate() {
        let times = count(Profile::new(Curve::flat(1_000.0)), true, -5.0..95.0);
        assert!((times.len() as f64 / 100_000.0 - 1.0).abs() < 0.02);
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(times[0] < 0.0);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let squares = gaps.iter().map(|gap| gap * gap).sum::<f64>() / n;
        let cv = (squares - mean * mean).sqrt() / mean;
        assert!((cv - 1.0).abs() < 0.02, "{cv}");
    }

    #[test]
    fn the_warm_up_has_the_rate_of_time_zero() {
        let curve = Curve {
            rates_per_s: vec![1.0, 100.0],
            step_s: 10.0,
        };
        let profile = Profile {
            offset_s: 10.0,
            ..Profile::new(curve)
        };
        let times = count(profile, false, -1.0..20.0);
        let before = times.iter().filter(|t| **t < 0.0).count();
        assert!((98..=101).contains(&before), "{before}");
        assert!(times.iter().filter(|t| **t >= 10.0).count() <= 11);
    }

    #[test]
    fn crowds_come_and_come_again() {
        let crowd = Crowd {
            at_s: 2.0,
            length_s: 1.0,
            times: 10.0,
            every_s: 4.0,
        };
        let profile = Profile {
            crowd: Some(crowd),
            ..Profile::new(Curve::flat(100.0))
        };
        let times = count(profile, false, 0.0..8.0);
        let within = |from: f64, to: f64| times.iter().filter(|t| (from..to).contains(*t)).count();
        assert!((198..=202).contains(&within(0.0, 2.0)));
        assert!((998..=1_002).contains(&within(2.0, 3.0)));
        assert!((298..=302).contains(&within(3.0, 6.0)));
        assert!((998..=1_002).contains(&within(6.0, 7.0)));
        let once = Crowd {
            every_s: f64::INFINITY,
            ..crowd
        };
        assert_eq!(once.at(1e6), (1.0, f64::INFINITY));
    }

    #[test]
    fn a_rate_of_nothing_ends() {
        let curve = Curve {
            rates_per_s: vec![0.0],
            step_s: 1.0,
        };
        assert!(count(Profile::new(curve), true, 0.0..1_000.0).is_empty());
        assert!(count(Profile::new(Curve::flat(0.0)), true, -1.0..1e6).is_empty());
    }
}
