//! Reads that may be stale: how far behind a replica is known to be, and which of those that are
//! near enough is asked.
//!
//! A master says now and then how far it has written, as an offset in its history. A replica that
//! has come so far has every write that was answered before the master was *asked*: it is as of
//! that moment. There is one clock, that of whoever asks, and nothing is guessed: of a replica that
//! says nothing the moment grows old.

use std::collections::VecDeque;

use crate::cost::Nanos;

/// Answers of a master that are kept: at five a second those of the longest bound on the lag, and
/// some more.
const KEPT: usize = 512;

/// A master that has not said anything for so long may be giving keys away, and its replicas with
/// it. Whoever moves keys waits for as long before the first.
pub const LOOKED_NS_MAX: Nanos = 900_000_000;

/// What a master has said of how far it has written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The name of its history: offsets of another are about other writes.
    history: String,
    /// When it was asked, and what it said; both grow.
    said: VecDeque<(Nanos, u64)>,
    /// Since when that counts.
    since: Nanos,
}

impl Written {
    /// It was asked at `asked_at`, and said that it is at `offset` of this history.
    pub fn said(&mut self, asked_at: Nanos, history: &str, offset: u64) {
        let last = self.said.back().map_or(0, |(_, last)| *last);
        if self.history != history || offset < last {
            self.forget();
            history.clone_into(&mut self.history);
        }
        if self.said.is_empty() {
            self.since = asked_at;
        }
        match self.said.back_mut() {
            // Nothing was written since.
            Some((at, last)) if *last == offset => *at = asked_at,
            _ => self.said.push_back((asked_at, offset)),
        }
        if self.said.len() > KEPT {
            self.said.pop_front();
        }
    }

    /// What it said counts no more: keys came or went by another way than writes.
    pub fn forget(&mut self) {
        self.said.clear();
    }

    /// Since when it counts what it says; none: nothing counts.
    #[must_use]
    pub fn since(&self) -> Option<Nanos> {
        (!self.said.is_empty()).then_some(self.since)
    }

    /// As of when a replica is that is at `offset` of this history; none: it is not known.
    #[must_use]
    pub fn as_of(&self, history: &str, offset: u64) -> Option<Nanos> {
        let mut reached = self.said.iter().rev().filter(|(_, at)| *at <= offset);
        let (asked_at, _) = reached.next().filter(|_| self.history == history)?;
        Some(*asked_at)
    }
}

/// What is known of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// It has every write that was answered before then; 0: nothing is known.
    pub as_of: Nanos,
    /// When its master was last asked, and answered.
    pub looked_at: Nanos,
}

impl Standing {
    /// How far behind it is at most; none: it is not known.
    #[must_use]
    pub fn lag_ns(&self, now: Nanos) -> Option<Nanos> {
        (self.as_of > 0).then(|| now.saturating_sub(self.as_of))
    }

    /// Whether it may be read by somebody who takes this lag, and must see what was written until
    /// `since`.
    #[must_use]
    pub fn may_be_read(&self, now: Nanos, lag_ns_max: Nanos, since: Nanos) -> bool {
        let near = self.lag_ns(now).is_some_and(|lag| lag <= lag_ns_max);
        near && self.as_of > since && now.saturating_sub(self.looked_at) <= LOOKED_NS_MAX
    }
}

/// How much a node has to do for one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Requests out there, or waiting to be.
    pub requests: u64,
    /// How many may be out.
    pub permits: u64,
}

impl Load {
    fn has_room(&self) -> bool {
        self.requests < self.permits
    }

    fn fill(&self) -> f64 {
        self.requests as f64 / self.permits.max(1) as f64
    }
}

/// The place among `replicas` of the one to ask; none: the master. `turn` says where to begin among
/// those that are alike.
///
/// A replica does nothing but copy, and the master serves all writes and whoever takes no stale
/// reads. So replicas are asked as long as one has room, the one with the least to do; then the
/// master, if it has; and where all are full, the one that is least so.
#[must_use]
pub fn reader(master: Load, replicas: &[Load], turn: usize) -> Option<usize> {
    let count = replicas.len();
    let places = || (0..count).map(|step| (turn + step) % count);
    let open = places().filter(|place| replicas[*place].has_room());
    let open = open.min_by_key(|place| replicas[*place].requests);
    if open.is_some() || master.has_room() {
        return open;
    }
    let fill = |place: &usize| replicas[*place].fill();
    let least = places().min_by(|one, other| fill(one).total_cmp(&fill(other)));
    least.filter(|place| fill(place) <= master.fill())
}
