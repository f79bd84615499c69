//! A lane's contract: the rate up to which its due times are kept.

use crate::cost::Nanos;
use crate::rate::Tag;

/// How much of a contract can be saved up: an arrival process that keeps the rate on average still
/// comes in bunches.
pub(super) const BURST_NS: Nanos = 100_000_000;

/// The rate, and how far it is used up.
#[derive(Clone, Debug, Default)]
pub(super) struct Contract {
    tag: Option<Tag>,
    /// A contract of nothing.
    never: bool,
    /// Requests since the last exchange whose due times were kept to.
    moved: u64,
}

impl Contract {
    /// Another rate from now on; what is used up stays used up.
    pub(super) fn set(&mut self, now: Nanos, per_s: Option<f64>) {
        self.never = per_s.is_some_and(|per_s| per_s <= 0.0);
        self.tag = per_s.filter(|per_s| *per_s > 0.0).map(|per_s| {
            let mut tag = self.tag.unwrap_or_else(|| Tag::new(now, per_s, BURST_NS));
            tag.change(now, per_s, BURST_NS);
            tag
        });
    }

    /// Whether due times are kept at `now`.
    pub(super) fn holds(&self, now: Nanos) -> bool {
        !self.never && self.tag.is_none_or(|tag| !tag.ahead(now))
    }

    /// When they are kept again: `None` if they are, [`Nanos::MAX`] for never.
    pub(super) fn holds_at(&self, now: Nanos) -> Option<Nanos> {
        if self.never {
            return Some(Nanos::MAX);
        }
        let tag = self.tag.filter(|tag| tag.ahead(now))?;
        Some(tag.reached_at())
    }

    /// A turn is over for which one request was taken; it was so many.
    pub(super) fn settle(&mut self, now: Nanos, requests: u64) {
        self.moved = self.moved.saturating_add(requests);
        if let Some(tag) = &mut self.tag {
            match requests {
                0 => tag.give_back(1),
                _ => tag.take(now, requests - 1),
            }
        }
    }

    /// So many requests begin here, or were served at another core.
    pub(super) fn take(&mut self, now: Nanos, requests: u64) {
        if let Some(tag) = &mut self.tag {
            tag.take(now, requests);
        }
    }

    /// Requests since the last call.
    pub(super) fn take_moved(&mut self) -> u64 {
        std::mem::take(&mut self.moved)
    }
}
