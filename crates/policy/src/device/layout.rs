//! Where files lie on emulated disks.
//!
//! What a seek costs depends on how far data lies apart, so a result depends on how much of a disk
//! its data takes. Each file is whole on one disk, somewhere within the span; a few files may lie
//! over each other, which an arm does not mind. An owner's files go to the disks in turn, so that
//! a few of them load all disks alike.

use crate::generator::{mix64, Generator};

/// Files begin at a multiple of this: a file that is read from its start begins no seek in the
/// middle of a track's worth.
const ALIGN_BYTES: u64 = 1 << 20;

/// Several disks, and how much of each holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Disks, at least 1.
    pub disks: u32,
    /// Data lies within this many bytes of each, from its outer edge on.
    pub span_bytes: u64,
    /// Another seed, other places.
    pub seed: u64,
}

/// Where a file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The disk, from 0.
    pub disk: usize,
    /// The byte of it.
    pub offset: u64,
}

impl Layout {
    /// Where a file lies; the same file always at the same place. Files are told apart by their
    /// owner and a number of the owner's choice.
    #[must_use]
    pub fn spot(&self, owner: u64, number: u64) -> Spot {
        let file = [owner, number].into_iter();
        let mut draws = Generator::new(file.fold(self.seed, |all, part| mix64(all) ^ part));
        let places = (self.span_bytes / ALIGN_BYTES).max(1);
        let first = mix64(mix64(self.seed) ^ owner);
        Spot {
            disk: (first.wrapping_add(number) % u64::from(self.disks.max(1))) as usize,
            offset: draws.below(places) * ALIGN_BYTES,
        }
    }

    /// Where a byte of a file lies that begins at `spot`: a file that reaches the end of the span
    /// goes on at its start.
    #[must_use]
    pub fn byte(&self, spot: Spot, offset: u64) -> u64 {
        let whole = (self.span_bytes / ALIGN_BYTES).max(1) * ALIGN_BYTES;
        (spot.offset + offset) % whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_spread_over_all_disks_and_the_whole_span() {
        let layout = Layout {
            disks: 4,
            span_bytes: 5_000_000_000,
            seed: 7,
        };
        let (mut on, mut quarters) = ([0; 4], [0; 4]);
        for number in 0..4_000 {
            let spot = layout.spot(1, number);
            assert_eq!(spot, layout.spot(1, number));
            assert!(layout.byte(spot, 64 << 20) < layout.span_bytes);
            on[spot.disk] += 1;
            quarters[(spot.offset / 1_250_000_000) as usize] += 1;
        }
        let even = |counts: [u32; 4]| counts.iter().all(|count| count.abs_diff(1_000) < 120);
        assert!(even(on) && even(quarters), "{on:?} {quarters:?}");
        assert_ne!(layout.spot(1, 5), layout.spot(2, 5), "another owner's");
    }
}
