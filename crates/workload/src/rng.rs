//! The one random generator of a load: seeded, fast, and with the few shapes that loads need.

use policy::generator::mix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded generator. Equal seeds give equal sequences on every machine.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// A generator for `stream` of a run with `seed`: streams of one seed are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(mix64(
            seed ^ mix64(stream),
        )))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [0, `n`); 0 for `n` = 0. Lemire's multiplication without the rejection step: the
    /// bias is below n / 2^64, far under anything a load can show.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Normal with mean 0 and variance 1 (Box-Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_agree_and_streams_differ() {
        let draw = |seed, stream| {
            let mut rng = Rng::new(seed, stream);
            (rng.bits(), rng.bits())
        };
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_ne!(draw(7, 1), draw(8, 1));
    }

    #[test]
    fn shapes_have_their_moments() {
        let mut rng = Rng::new(1, 0);
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || rng.unit()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || rng.exponential()) - 1.0).abs() < 0.02);
        assert!(mean(&mut || rng.normal()).abs() < 0.02);
        assert!((mean(&mut || rng.normal().powi(2)) - 1.0).abs() < 0.02);
        assert!((mean(&mut || rng.below(10) as f64) - 4.5).abs() < 0.05);
    }
}
