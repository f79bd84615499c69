//! Reproducible randomness: the seed comes from the caller.
//!
//! SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014,
//! fig. 17): small, fast and the same everywhere. Everything that draws numbers uses it, but for
//! two: what measures disks has a generator that its published figures rest on (`device::Dice`),
//! and what makes loads has one with independent streams (`workload::rng`).

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A bijection of 64-bit words that scatters neighbours: what SplitMix64 makes of its state.
#[must_use]
pub fn mix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A generator of 64-bit numbers. Equal seeds give equal sequences on every machine.
#[derive(Clone, Debug)]
pub struct Generator(u64);

impl Generator {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Generator(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let drawn = mix64(self.0);
        self.0 = self.0.wrapping_add(GAMMA);
        drawn
    }

    /// A number below `end` (not zero), biased by at most `end / 2^64`: by less than 10^-4 for the
    /// largest sum of tickets there can be.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the authors' `splitmix64.c` gives: published simulations rest on it.
    #[test]
    fn the_sequence_is_the_published_one() {
        let mut generator = Generator::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| generator.bits()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(drawn, published);
    }
}
