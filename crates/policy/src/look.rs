//! Whether to look for a thing in memory before it is read from the disk.
//!
//! A look in vain costs a core some microseconds, and the handler that reads looks there again. It
//! is not worth that in a database whose reads nearly all need the disk; but that may change at any
//! time. So after [`VAIN`] looks in vain, one after the other, only each [`AGAIN`]th read looks,
//! until one finds something.
//!
//! Where a part *p* of the reads would be found, that many looks in vain come in a row with (1 -
//! p)^64: for a tenth once in a thousand, for a hundredth half of the time. Who is not looked for
//! goes the way of all the others.

/// So many looks in vain, one after the other, and most reads do not look any more.
pub const VAIN: u32 = 64;
/// Of those, one of so many does.
pub const AGAIN: u32 = 16;

/// Whether the next read looks, after so many, one after the other, of which none found anything.
#[must_use]
pub fn worthwhile(in_vain: u32) -> bool {
    in_vain < VAIN || in_vain % AGAIN == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Which reads look, of which so many would find something.
    fn looks(found: impl Iterator<Item = bool>) -> Vec<bool> {
        let mut in_vain = 0;
        let look = |found: bool| {
            let looks = worthwhile(in_vain);
            in_vain = if looks && found { 0 } else { in_vain + 1 };
            looks
        };
        found.map(look).collect()
    }

    proptest! {
        #[test]
        fn few_look_in_vain_and_all_look_soon_after_something_is_there(
            before in prop::collection::vec(any::<bool>(), 0..300),
            cold in VAIN as usize..2_000,
        ) {
            let nothing = before.len() + cold;
            let all = before.iter().copied().chain(std::iter::repeat_n(false, cold));
            let looked = looks(all.chain(std::iter::repeat_n(true, 100)));
            let vain = looked[before.len()..nothing].iter().filter(|looks| **looks).count();
            prop_assert!(vain <= VAIN as usize + cold / AGAIN as usize + 1, "{vain} of {cold}");
            let first = looked[nothing..].iter().position(|looks| *looks);
            prop_assert!(first.is_some_and(|first| first < AGAIN as usize), "{first:?}");
            let first = nothing + first.unwrap_or(0);
            prop_assert!(looked[first..].iter().all(|looks| *looks));
        }
    }
}
