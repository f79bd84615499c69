//! The lanes of one principal: a tenant's workloads that have a promise of their own.
//!
//! Between tenants nothing changes: shares, debts and rates are the tenant's. Whose turn it is
//! *inside* the tenant is decided here, by the same start-time fair queueing over lane weights, so
//! a tenant's batch connections are not one queue with its interactive ones. Most tenants have no
//! lanes, and then none of this costs anything.

use super::lane::{Lane, LaneAllocation, LaneId, LaneObservation, Pick, Terms, Timed};
use super::slot::Queued;
use super::{Discipline, Ticket};
use crate::cost::{Charge, Nanos};
use crate::fairness::sfq::{Account, DebtBounds, Rounds, Weight};
use crate::multiget::LevelTurn;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// An item that was taken, and what goes with it.
#[derive(Debug)]
pub(super) struct Taken<T> {
    pub(super) queued: Queued<T>,
    pub(super) lane: LaneId,
    /// It has a due time, in contract.
    pub(super) timed: bool,
    pub(super) stream: u32,
    /// Its level's turn, if it was taken by levels.
    pub(super) turn: Option<LevelTurn>,
}

impl<T> Taken<T> {
    /// Of a principal without lanes.
    #[inline]
    pub(super) fn plain(queued: Queued<T>) -> Self {
        Taken {
            queued,
            lane: LaneId::REST,
            timed: false,
            stream: 0,
            turn: None,
        }
    }
}

/// The queues of a principal.
#[derive(Clone, Debug)]
pub(super) struct Lanes<T> {
    lanes: Vec<Lane<T>>,
    rounds: Rounds,
    queued: usize,
    estimate_max: Charge,
    /// When an item was taken last whose due time was kept to.
    timed_at: Nanos,
}

/// An item without a due time waits no longer for a turn behind what its principal has that is due.
/// That is charged to the principal, and may be more than its share for as long as it is promised.
const PASSED_OVER_NS: Nanos = 100_000_000;

impl<T> Lanes<T> {
    /// Lane 0 alone, with what was queued before there were lanes.
    pub(super) fn new(
        round_ns: Nanos,
        estimate_max: Charge,
        queued: VecDeque<Queued<T>>,
        now: Nanos,
    ) -> Self {
        let mut lanes = Lanes {
            lanes: Vec::new(),
            rounds: Rounds::new(round_ns),
            queued: queued.len(),
            estimate_max,
            timed_at: 0,
        };
        lanes.configure(now, LaneId::REST, &LaneAllocation::default());
        for queued in queued {
            lanes.lanes[0].queue(Terms::default(), queued);
        }
        lanes.lanes[0].occupied_since = now;
        lanes
    }

    pub(super) fn configure(&mut self, now: Nanos, id: LaneId, allocation: &LaneAllocation) {
        let index = usize::from(id.0);
        while self.lanes.len() <= index {
            self.lanes.push(Lane::vacant(&self.rounds));
        }
        let lane = &mut self.lanes[index];
        let weight = Weight::new(allocation.weight);
        if lane.open {
            lane.account.reweigh(weight, &self.rounds);
        } else {
            let number = u32::from(id.0);
            lane.account = Account::new(number, weight, self.estimate_max, &self.rounds);
            lane.open = true;
        }
        lane.contract.set(now, allocation.contract_per_s);
    }

    /// Forgets a lane; what it has queued is the rest's. The rest itself stays.
    pub(super) fn remove(&mut self, id: LaneId) {
        let index = usize::from(id.0);
        if index == 0 || index >= self.lanes.len() {
            return;
        }
        let mut gone = std::mem::replace(&mut self.lanes[index], Lane::vacant(&self.rounds));
        let rest = &mut self.lanes[0];
        rest.timed.append(&mut gone.timed);
        let mut others: Vec<_> = rest.others.drain().chain(gone.others.drain()).collect();
        others.sort_by_key(|piece| piece.queued.arrival);
        for piece in others {
            rest.others.push(piece.level, piece);
        }
    }

    /// Everything that is queued, oldest first.
    pub(super) fn drain(&mut self) -> Vec<Queued<T>> {
        let mut all: Vec<Queued<T>> = Vec::with_capacity(self.queued);
        for lane in &mut self.lanes {
            all.extend(lane.timed.drain().map(|Reverse(timed)| timed.queued));
            all.extend(lane.others.drain().map(|piece| piece.queued));
            lane.group = 0;
        }
        self.queued = 0;
        all.sort_by_key(|queued| queued.arrival);
        all
    }

    fn index(&self, id: LaneId) -> usize {
        let index = usize::from(id.0);
        let open = self.lanes.get(index).is_some_and(|lane| lane.open);
        if open {
            index
        } else {
            0
        }
    }

    /// Whether a lane has as many items as it may.
    pub(super) fn full(&self, id: LaneId, queue_max: usize) -> bool {
        self.lanes[self.index(id)].len() >= queue_max
    }

    pub(super) fn push(&mut self, terms: Terms, queued: Queued<T>) {
        let index = self.index(terms.lane);
        let lane = &mut self.lanes[index];
        if lane.len() == 0 {
            lane.account.rejoin(&self.rounds);
            lane.occupied_since = queued.since;
        }
        match terms.due_at {
            Some(due_at) => lane.timed.push(Reverse(Timed { due_at, queued })),
            None => lane.queue(terms, queued),
        }
        self.queued += 1;
    }

    /// When the first item is due, of those whose due times are kept to.
    pub(super) fn due_at(&self, now: Nanos) -> Option<Nanos> {
        let lanes = self.lanes.iter();
        lanes.filter_map(|lane| lane.due_at(now)).min()
    }

    /// When a lane that has items with due times is in contract again.
    pub(super) fn in_contract_at(&self, now: Nanos) -> Option<Nanos> {
        let waiting = self.lanes.iter().filter(|lane| !lane.timed.is_empty());
        let at = waiting.filter_map(|lane| lane.contract.holds_at(now));
        at.filter(|at| *at < Nanos::MAX).min()
    }

    /// Whether there is work that may go by shares.
    pub(super) fn may_share(&self, now: Nanos, yields: bool) -> bool {
        self.queued > 0 && (!yields || self.lanes.iter().any(|lane| lane.untimed(now)))
    }

    /// Since when its longest waiting item has waited, nearly.
    pub(super) fn since(&self) -> Option<Nanos> {
        self.lanes.iter().filter_map(Lane::since).min()
    }

    /// The number of the oldest arrival that may go by shares.
    pub(super) fn arrival(&self) -> Option<u64> {
        let oldest = self.lanes.iter().filter_map(|lane| lane.oldest(0, false));
        oldest.map(|(arrival, _)| arrival).min()
    }

    /// Whether a piece of a stream is queued.
    pub(super) fn has_stream(&self, id: LaneId, stream: u32) -> bool {
        self.lanes[self.index(id)].has_stream(stream)
    }

    /// When an item without a due time must have a turn, for what is due went before it.
    pub(super) fn passed_over_at(&self) -> Option<Nanos> {
        let since = self
            .lanes
            .iter()
            .filter_map(Lane::others_wait_since)
            .min()?;
        (since < self.timed_at).then(|| since.saturating_add(PASSED_OVER_NS))
    }

    fn choose(&self, now: Nanos, pick: Pick, discipline: Discipline) -> Option<usize> {
        let lanes = self.lanes.iter().enumerate();
        let chosen = match pick {
            Pick::Timed => lanes
                .filter_map(|(index, lane)| Some((lane.due_at(now)?, index)))
                .min(),
            Pick::Stream(id, _) => return Some(self.index(id)),
            Pick::PassedOver => lanes
                .filter_map(|(index, lane)| Some((lane.others_wait_since()?, index)))
                .min(),
            Pick::Share { yields } => lanes
                .filter_map(|(index, lane)| {
                    let (arrival, _) = lane.oldest(now, yields)?;
                    let by_arrival = discipline == Discipline::Fifo;
                    Some((
                        if by_arrival {
                            arrival
                        } else {
                            lane.account.key()
                        },
                        index,
                    ))
                })
                .min(),
        };
        chosen.map(|(_, index)| index)
    }

    /// Takes the next item. Its turn is expected to be charged `expected`.
    pub(super) fn take(
        &mut self,
        now: Nanos,
        pick: Pick,
        discipline: Discipline,
        expected: Charge,
    ) -> Option<Taken<T>> {
        // A lane may be in contract again since its principal was placed, and then nothing of it
        // may go by shares: something must, for the principal was chosen.
        let any = Pick::Share { yields: false };
        let chosen = self.choose(now, pick, discipline);
        let (index, pick) = match chosen {
            Some(index) => (index, pick),
            None => (self.choose(now, any, discipline)?, any),
        };
        let lane = &mut self.lanes[index];
        let got = lane.take(now, pick, discipline)?;
        let (queued, due_at) = (got.queued, got.due_at);
        lane.note(now, queued.since, due_at);
        self.queued -= 1;
        if due_at.is_some() {
            lane.contract.take(now, 1);
            self.timed_at = now;
        }
        let start = lane.account.set_aside_for(expected);
        self.rounds.advance(start);
        if let Some(distance) = self.rounds.rebase() {
            for lane in &mut self.lanes {
                lane.account.rebase(distance);
            }
        }
        Some(Taken {
            queued,
            lane: LaneId(index as u8),
            timed: due_at.is_some(),
            stream: got.stream,
            turn: got.turn,
        })
    }

    /// A turn is over. `used`: what it was charged and how many requests it was; unknown, what was
    /// set aside stays.
    pub(super) fn settle(
        &mut self,
        now: Nanos,
        ticket: &Ticket,
        used: Option<(Charge, u64)>,
        bounds: &DebtBounds,
    ) {
        let index = self.index(ticket.lane);
        let lane = &mut self.lanes[index];
        lane.seen.in_flight = lane.seen.in_flight.saturating_sub(1);
        let (charge, requests) = used.unwrap_or((ticket.aside, 1));
        if used.is_some() {
            let account = &mut lane.account;
            account.settle(ticket.aside, charge, &self.rounds, bounds);
        }
        if let Some(turn) = ticket.turn {
            lane.others.settle(turn, charge.ns());
        }
        if ticket.timed {
            lane.contract.settle(now, requests);
        }
        lane.charged = lane.charged.plus(charge);
    }

    /// Consumption of a lane at another core: what it was charged there, and how many requests of
    /// it had due times that were kept to.
    pub(super) fn absorb(
        &mut self,
        now: Nanos,
        id: LaneId,
        (charge, timed): (Charge, u64),
        bounds: &DebtBounds,
    ) {
        let index = self.index(id);
        let lane = &mut self.lanes[index];
        lane.account.debit(charge, &self.rounds, bounds);
        lane.contract.take(now, timed);
    }

    /// What each lane consumed since the last call.
    pub(super) fn take_moved(&mut self) -> impl Iterator<Item = (LaneId, Charge, u64)> + '_ {
        let lanes = self.lanes.iter_mut().enumerate();
        lanes.filter_map(|(index, lane)| {
            let charge = lane.charged.minus(lane.reported);
            lane.reported = lane.charged;
            let timed = lane.contract.take_moved();
            let any = charge > Charge::ZERO || timed > 0;
            any.then_some((LaneId(index as u8), charge, timed))
        })
    }

    pub(super) fn observe(&self, now: Nanos, id: LaneId) -> Option<LaneObservation> {
        let lane = self.lanes.get(usize::from(id.0)).filter(|lane| lane.open)?;
        let mut seen = lane.seen;
        seen.queued = lane.len();
        if seen.queued > 0 {
            let occupying = now.saturating_sub(lane.occupied_since);
            seen.occupied_ns = seen.occupied_ns.saturating_add(occupying);
        }
        seen.charged_ns = lane.charged.ns();
        Some(seen)
    }
}
