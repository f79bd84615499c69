//! Who has moved something large of late, and so goes by links of its own.

use std::collections::BTreeMap;

use policy::{Nanos, PrincipalId};

/// A tenant, and which of its workloads.
pub(super) type Whose = (PrincipalId, usize);

/// A request or reply of so many bytes is large: what a turn moves. On a link it is worth some
/// twenty requests.
pub(super) const LARGE_BYTES: usize = 64 << 10;

/// Who has moved nothing large for so long is forgotten.
const FORGOTTEN_NS: Nanos = 60_000_000_000;

/// What the replies of requests that are out together may be expected to come to.
const TOGETHER_BYTES: u64 = 1 << 20;

/// One reply is so much of the mean.
const PART: u64 = 8;

/// What is known of one.
struct Lately {
    until: Nanos,
    /// Of the sizes of its replies.
    mean: u64,
}

/// What is known of all on one core.
#[derive(Default)]
pub(super) struct Sizes {
    lately: BTreeMap<Whose, Lately>,
}

impl Sizes {
    /// Something of so many bytes is on its way. True: it is large.
    pub(super) fn note(&mut self, whose: Whose, bytes: usize, now: Nanos) -> bool {
        let large = bytes >= LARGE_BYTES;
        if large {
            let lately = Lately { until: 0, mean: 0 };
            self.lately.entry(whose).or_insert(lately).until = now + FORGOTTEN_NS;
        }
        large
    }

    /// A reply of so many bytes has come.
    pub(super) fn replied(&mut self, whose: Whose, bytes: usize) {
        if self.lately.is_empty() {
            return;
        }
        if let Some(lately) = self.lately.get_mut(&whose) {
            lately.mean = lately.mean - lately.mean / PART + bytes as u64 / PART;
        }
    }

    /// Whether it has moved something large of late.
    pub(super) fn knows(&self, whose: Whose) -> bool {
        !self.lately.is_empty() && self.lately.contains_key(&whose)
    }

    /// Requests of one connection that may be out together: few, where replies are large, because
    /// they are held until the last has come.
    pub(super) fn together(&self, whose: Whose, most: u32) -> u32 {
        match self.lately.get(&whose) {
            Some(lately) if lately.mean > 0 => {
                let few = TOGETHER_BYTES / lately.mean;
                few.clamp(1, most.into()) as u32
            }
            _ => most,
        }
    }

    /// Forgets whoever has moved nothing large for long.
    pub(super) fn forget(&mut self, now: Nanos) {
        self.lately.retain(|_, lately| lately.until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Whose = (PrincipalId(1), 0);

    #[test]
    fn who_moves_something_large_is_known_for_a_while() {
        let mut sizes = Sizes::default();
        assert!(!sizes.note(ONE, LARGE_BYTES - 1, 0) && !sizes.knows(ONE));
        assert!(sizes.note(ONE, LARGE_BYTES, 0) && sizes.knows(ONE));
        assert!(!sizes.knows((PrincipalId(1), 1)), "another workload");
        sizes.note(ONE, LARGE_BYTES, 10);
        sizes.forget(FORGOTTEN_NS);
        assert!(sizes.knows(ONE));
        sizes.forget(FORGOTTEN_NS + 10);
        assert!(!sizes.knows(ONE));
    }

    #[test]
    fn few_requests_are_out_together_where_replies_are_large() {
        let mut sizes = Sizes::default();
        sizes.note(ONE, LARGE_BYTES, 0);
        assert_eq!(sizes.together(ONE, 128), 128);
        for _ in 0..100 {
            sizes.replied(ONE, 128 << 20);
        }
        assert_eq!(sizes.together(ONE, 128), 1);
        for _ in 0..200 {
            sizes.replied(ONE, 100);
        }
        assert_eq!(sizes.together(ONE, 128), 128);
    }
}
