//! Reproducible randomness: the seed comes from the caller.

/// A generator of 64-bit numbers that is small, fast and the same everywhere: SplitMix64
/// (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014, fig. 17).
#[derive(Clone, Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Generator(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end` (not zero). Biased by at most `end / 2^64`: below 10^-4 for the largest sum of
    /// tickets there can be.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}
