//! Requests that wait at the engine until something is there for them (`BLPOP`, `XREAD … BLOCK`):
//! each has a connection of its own to it, so there may be so many and no more.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use policy::PrincipalId;

/// Patterns of channels that there may be: the engine compares each with whatever is published, by
/// whomever.
pub(super) const PATTERNS_MAX: u32 = 4_096;

/// Channels of shards that there may be, of which one tenant has half at most: when a slot moves
/// away the engine ends all subscriptions to those of it in one go, and serves nobody meanwhile.
pub(super) const SHARD_CHANNELS_MAX: u32 = 64 << 10;

/// Room for them, of all cores.
pub struct Waits {
    most: u32,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    all: u32,
    by: BTreeMap<PrincipalId, u32>,
}

/// The place of one; dropped, it is free again.
pub struct WaitingPlace {
    waits: Arc<Waits>,
    whose: PrincipalId,
}

impl Waits {
    /// Room for so many.
    pub fn new(most: u32) -> Arc<Self> {
        let waiting = Mutex::default();
        Arc::new(Self { most, waiting })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.waiting.lock().all.into()
    }

    /// A place for a request of `whose`; none: it has as many as are left, or more. So one tenant
    /// has half of all at most, and who comes after it finds some (the dynamic thresholds of
    /// Choudhury and Hahne, with a factor of one).
    pub fn enter(self: &Arc<Self>, whose: PrincipalId) -> Option<WaitingPlace> {
        let mut waiting = self.waiting.lock();
        let left = self.most.saturating_sub(waiting.all);
        let own = waiting.by.entry(whose).or_default();
        if *own >= left {
            return None;
        }
        *own += 1;
        waiting.all += 1;
        let waits = Arc::clone(self);
        Some(WaitingPlace { waits, whose })
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut waiting = self.waits.waiting.lock();
        waiting.all -= 1;
        if let Some(own) = waiting.by.get_mut(&self.whose) {
            *own -= 1;
            if *own == 0 {
                waiting.by.remove(&self.whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(waits: &Arc<Waits>, whose: u32) -> Vec<WaitingPlace> {
        std::iter::from_fn(|| waits.enter(PrincipalId(whose))).collect()
    }

    #[test]
    fn whoever_comes_next_finds_some_places() {
        let waits = Waits::new(1_000);
        let first = fill(&waits, 1);
        assert_eq!(first.len(), 500);
        let second = fill(&waits, 2);
        assert_eq!(second.len(), 250);
        assert!(fill(&waits, 1).is_empty());
        assert_eq!(waits.count(), 750);
        drop(first);
        assert_eq!(fill(&waits, 3).len(), 375);
        drop(second);
        assert_eq!(waits.count(), 0);
        assert!(waits.waiting.lock().by.is_empty());
        assert!(fill(&Waits::new(0), 1).is_empty());
    }
}
