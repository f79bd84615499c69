//! How far the walks of active expiry have come ([`crate::expiry`]).

use crate::meter::HANDLER_STEPS;
use crate::record::{self, RawKey};

/// The second walk follows the first after this time: longer than a write waits for its commit,
/// even beside a slow disk.
pub(crate) const BEHIND_MS: u64 = 60_000;
/// It goes so far at a time: through at most as many tombstones as keys expire in this time.
pub(crate) const STRETCH_MS: u64 = 1_000;

/// How far the walks are. They begin anew when the log has failed, and deletions with it, and when
/// the clock is set back.
#[derive(Default)]
pub(crate) struct Walks {
    epoch: u64,
    /// What time it is for them.
    pub now_ms: u64,
    /// Everything before these was looked at.
    pub first: RawKey,
    pub second: RawKey,
    /// But for these.
    pub left: Vec<Due>,
    /// What deleting took in this go.
    pub steps: u64,
}

/// An entry of the index.
pub(crate) type Due = (u64, Vec<u8>);

impl Walks {
    /// Begins anew, if what was looked at does not count any more.
    pub fn start(&mut self, now_ms: u64, epoch: u64) {
        if self.first.is_empty() || self.epoch != epoch || now_ms < self.now_ms {
            self.left.clear();
            self.epoch = epoch;
            self.first = record::expiry_key(0, b"");
            // What is long before now, the first has not passed yet.
            self.second = record::expiry_key(now_ms.saturating_sub(BEHIND_MS), b"");
        }
        self.now_ms = now_ms;
        self.steps = 0;
    }

    /// Whether this go has had a handler for as long as a command may.
    pub fn is_long(&self) -> bool {
        self.steps > HANDLER_STEPS
    }

    /// When the second walk has something to do: until it has come as far as the first.
    pub fn look_back_at(&self) -> Option<u64> {
        let second_ms = at(&self.second);
        (second_ms <= at(&self.first)).then_some(second_ms + BEHIND_MS + STRETCH_MS)
    }
}

/// The time that a key of the index begins with.
pub(crate) fn at(raw: &[u8]) -> u64 {
    record::parse_expiry_key(raw).map_or(0, |(at_ms, _)| at_ms)
}
