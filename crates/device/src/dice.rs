//! Numbers that look random, the same in every run.

use policy::cost::device::Op;
use policy::device::Io;

/// The part of the device that is used: far beyond any cache, within any disk.
const SPAN_BYTES: u64 = 64 << 30;
const PAGE_BYTES: u64 = 4 << 10;

/// A seed, and the state after it. Published figures of disks rest on these sequences; whatever
/// else draws numbers uses [`policy::generator`].
#[derive(Clone, Copy, Debug)]
pub struct Dice(u64);

impl Dice {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Eight bytes, of which the last are poor.
    pub(crate) fn word(&mut self) -> u64 {
        // Knuth's MMIX generator.
        self.0 = self
            .0
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        self.0
    }

    fn bits(&mut self) -> u64 {
        self.word() >> 11
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 53) as u64
    }

    /// An I/O somewhere, aligned to a page.
    pub(crate) fn io(&mut self, op: Op, bytes: u64) -> Io {
        let offset = self.below(SPAN_BYTES / PAGE_BYTES) * PAGE_BYTES;
        Io { op, offset, bytes }
    }

    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        (self.bits() + 1) as f64 / (1u64 << 53) as f64
    }

    /// Mean 0, variance 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_one_that_published_figures_rest_on() {
        let mut dice = Dice::new(1);
        let words = [dice.word(), dice.word(), dice.word()];
        assert_eq!(
            words,
            [
                7_806_831_264_735_756_412,
                9_396_908_728_118_811_419,
                11_960_119_808_228_829_710,
            ]
        );
        let below: Vec<u64> = (0..4).map(|_| dice.below(1_000)).collect();
        assert_eq!(below, [382, 795, 500, 553]);
    }
}
