//! One queue of a principal: a workload of a tenant.

use super::contract::Contract;
use super::slot::Queued;
use super::Discipline;
use crate::cost::{Charge, Nanos};
use crate::fairness::sfq::{Account, Rounds, Weight};
use crate::multiget::{LevelTurn, Leveled};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which of its tenant's workloads a piece of work belongs to, 0..[`LaneId::END`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u8);

impl LaneId {
    /// What belongs to no workload that has a promise of its own.
    pub const REST: LaneId = LaneId(0);
    /// One past the largest number: a decision inside a tenant looks at all of its lanes.
    pub const END: u8 = 64;
}

/// On what terms an item is queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Its lane; one that is not configured counts as [`LaneId::REST`].
    pub lane: LaneId,
    /// When it must have begun here, if it was promised to be done by some time: from then on it
    /// goes before shares.
    pub due_at: Option<Nanos>,
    /// Items of one stream are pieces of one large piece of work, best done one after the other;
    /// 0: it is none. Of an item with a due time it means nothing.
    pub stream: u32,
    /// Its level by its size ([`crate::multiget::level_of`]): small items of a lane pass its large
    /// ones. Of an item with a due time it means nothing, either.
    pub level: u8,
}

/// What a lane is entitled to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneAllocation {
    /// Part of what its tenant gets, relative to the tenant's other lanes, 0.001 to 1000.
    pub weight: f64,
    /// Requests a second up to which due times are kept; beyond, an item is served as if it had
    /// none. `None`: all are kept. Requests are what the [`super::Meter`] calls so: set it where
    /// requests come in, and give no due time to their work further down if they are beyond it.
    pub contract_per_s: Option<f64>,
}

impl Default for LaneAllocation {
    fn default() -> Self {
        LaneAllocation {
            weight: 1.0,
            contract_per_s: None,
        }
    }
}

/// The totals of one lane at one dispatch. They only grow until the lane is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneObservation {
    /// Items in its queue.
    pub queued: usize,
    /// Grants not yet settled.
    pub in_flight: u32,
    /// Grants.
    pub granted: u64,
    /// Grants of items whose due time was kept to: in contract.
    pub timed: u64,
    /// Those of them that were granted after their due time.
    pub late: u64,
    /// Time that granted items had waited, summed.
    pub waited_ns: u64,
    /// Time during which an item was queued: divided by an interval, its occupancy.
    pub occupied_ns: u64,
    /// What it was charged, in nanoseconds of its tenant's dominant resource.
    pub charged_ns: Nanos,
}

/// Why an item is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// It is due, or the first to be.
    Timed,
    /// It is its principal's turn; `yields`: what is not due yet waits.
    Share {
        /// See [`super::Others::first`].
        yields: bool,
    },
    /// It is the next piece of a stream.
    Stream(LaneId, u32),
    /// Work with due times of the same principal went before it for long enough.
    PassedOver,
}

/// An item with a due time.
#[derive(Clone, Debug)]
pub(super) struct Timed<T> {
    pub(super) due_at: Nanos,
    pub(super) queued: Queued<T>,
}

impl<T> Timed<T> {
    fn key(&self) -> (Nanos, u64) {
        (self.due_at, self.queued.arrival)
    }
}

impl<T> PartialEq for Timed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Timed<T> {}

impl<T> PartialOrd for Timed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Timed<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// An item that was taken.
#[derive(Debug)]
pub(super) struct Got<T> {
    pub(super) queued: Queued<T>,
    /// When it was due, if that is kept to.
    pub(super) due_at: Option<Nanos>,
    pub(super) stream: u32,
    /// Its level's turn, if it was taken by levels.
    pub(super) turn: Option<LevelTurn>,
}

/// An item without a due time, with its stream and its level.
#[derive(Clone, Debug)]
pub(super) struct Piece<T> {
    pub(super) stream: u32,
    pub(super) level: u8,
    pub(super) queued: Queued<T>,
}

/// One queue of a principal.
#[derive(Clone, Debug)]
pub(super) struct Lane<T> {
    /// Whether the lane exists; a number may be free between others.
    pub(super) open: bool,
    pub(super) account: Account,
    pub(super) contract: Contract,
    /// Items with a due time, earliest first, and the others, by their levels.
    pub(super) timed: BinaryHeap<Reverse<Timed<T>>>,
    pub(super) others: Leveled<Piece<T>>,
    /// Items of the group that is going, and since when it was due. What is due drags along all
    /// that waits behind it: a disk serves a group in less time than its parts one by one.
    pub(super) group: usize,
    pub(super) group_due_at: Nanos,
    /// What of its charges the other cores have been told.
    pub(super) reported: Charge,
    pub(super) occupied_since: Nanos,
    /// When an item without a due time was taken last.
    turned_at: Nanos,
    pub(super) seen: LaneObservation,
    pub(super) charged: Charge,
}

impl<T> Lane<T> {
    pub(super) fn vacant(rounds: &Rounds) -> Self {
        Lane {
            open: false,
            account: Account::new(0, Weight::new(1.0), Charge::ZERO, rounds),
            contract: Contract::default(),
            timed: BinaryHeap::new(),
            others: Leveled::new(),
            group: 0,
            group_due_at: 0,
            reported: Charge::ZERO,
            occupied_since: 0,
            turned_at: 0,
            seen: LaneObservation::default(),
            charged: Charge::ZERO,
        }
    }

    /// Queues an item without a due time.
    pub(super) fn queue(&mut self, terms: Terms, queued: Queued<T>) {
        let Terms { stream, level, .. } = terms;
        let piece = Piece {
            stream,
            level,
            queued,
        };
        self.others.push(level, piece);
    }

    pub(super) fn len(&self) -> usize {
        self.timed.len() + self.others.len()
    }

    /// When it must be served next, if it has items with due times and is in contract: soon enough
    /// that all that wait here with the first can be begun by its due time. So what a margin must
    /// allow for does not grow with the load.
    pub(super) fn due_at(&self, now: Nanos) -> Option<Nanos> {
        let Reverse(first) = self.timed.peek()?;
        if !self.contract.holds(now) {
            return None;
        }
        if self.group > 0 {
            return Some(self.group_due_at.min(first.due_at));
        }
        let behind = self.timed.len() as u64 - 1;
        let needs_ns = behind.saturating_mul(self.account.estimate().ns());
        Some(first.due_at.saturating_sub(needs_ns))
    }

    /// Whether it has work that counts as work without a due time.
    pub(super) fn untimed(&self, now: Nanos) -> bool {
        !self.others.is_empty() || (!self.timed.is_empty() && !self.contract.holds(now))
    }

    /// The oldest item that may go by shares, and whether it has a due time (`yields`: what has one
    /// that is kept to waits). It says which of these sorts goes next.
    pub(super) fn oldest(&self, now: Nanos, yields: bool) -> Option<(u64, bool)> {
        let timed = self.timed.peek().map(|Reverse(first)| first.queued.arrival);
        let timed = timed.filter(|_| !yields || !self.contract.holds(now));
        let others = self.others.heads().map(|piece| piece.queued.arrival);
        let other = others.min();
        match (timed, other) {
            (Some(timed), Some(other)) if other < timed => Some((other, false)),
            (Some(timed), _) => Some((timed, true)),
            (None, other) => other.map(|other| (other, false)),
        }
    }

    pub(super) fn since(&self) -> Option<Nanos> {
        // Not the oldest of all with a due time, but the most urgent: near enough for a wait.
        let timed = self.timed.peek().map(|Reverse(first)| first.queued.since);
        let others = self.others.heads().map(|piece| piece.queued.since);
        timed.into_iter().chain(others).min()
    }

    /// Since when items without a due time have waited for a turn, if there are any.
    pub(super) fn others_wait_since(&self) -> Option<Nanos> {
        if self.others.is_empty() {
            return None;
        }
        let oldest = self.others.heads().map(|piece| piece.queued.since).min()?;
        Some(oldest.max(self.turned_at))
    }

    /// Whether a piece of a stream is queued.
    pub(super) fn has_stream(&self, stream: u32) -> bool {
        self.others.entries().any(|piece| piece.stream == stream)
    }

    /// Takes an item. Those without a due time go by their levels, except in order of arrival where
    /// that is the rule.
    pub(super) fn take(
        &mut self,
        now: Nanos,
        pick: Pick,
        discipline: Discipline,
    ) -> Option<Got<T>> {
        let piece = match pick {
            Pick::Timed => None,
            Pick::Share { yields } if self.oldest(now, yields)?.1 => None,
            Pick::Share { .. } | Pick::PassedOver if discipline == Discipline::Fifo => {
                let oldest = self.others.pop_least(|piece| piece.queued.arrival)?;
                Some((oldest, None))
            }
            Pick::Share { .. } | Pick::PassedOver => {
                let (piece, turn) = self.others.pop()?;
                Some((piece, Some(turn)))
            }
            Pick::Stream(_, stream) => {
                let (piece, turn) = self.others.pop_where(|piece| piece.stream == stream)?;
                Some((piece, Some(turn)))
            }
        };
        if let Some((Piece { stream, queued, .. }, turn)) = piece {
            self.turned_at = now;
            // A piece of a stream is one turn here: those that follow it would be many.
            let stream = if pick == Pick::PassedOver { 0 } else { stream };
            return Some(Got {
                queued,
                due_at: None,
                stream,
                turn,
            });
        }
        if pick == Pick::Timed && self.group == 0 {
            if let Some(due_at) = self.due_at(now).filter(|due_at| *due_at <= now) {
                (self.group, self.group_due_at) = (self.timed.len(), due_at);
            }
        }
        let Reverse(first) = self.timed.pop()?;
        self.group = self.group.saturating_sub(1);
        let kept = self.contract.holds(now);
        Some(Got {
            queued: first.queued,
            due_at: Some(first.due_at).filter(|_| kept),
            stream: 0,
            turn: None,
        })
    }

    /// An item that came at `since` was taken.
    pub(super) fn note(&mut self, now: Nanos, since: Nanos, due_at: Option<Nanos>) {
        let empty = self.len() == 0;
        let seen = &mut self.seen;
        seen.granted += 1;
        seen.in_flight += 1;
        seen.timed += u64::from(due_at.is_some());
        seen.late += u64::from(due_at.is_some_and(|due_at| due_at < now));
        seen.waited_ns = seen.waited_ns.saturating_add(now.saturating_sub(since));
        if empty {
            let occupied_ns = now.saturating_sub(self.occupied_since);
            seen.occupied_ns = seen.occupied_ns.saturating_add(occupied_ns);
        }
    }
}
