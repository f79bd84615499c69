//! The queues of one core: who goes next, on which permit, charged what.
//!
//! A [`Dispatch`] composes the parts that know nothing of each other (fair rounds,
//! dominant-resource charges, rates, permits) into one decision. A decision takes, in this order:
//!
//! 1. a permit: a shared one, or one reserved for the principal (Cake 4.1);
//! 2. what must begin now to keep a promise (`timed`), the earliest first;
//! 3. whose reservation is due (mClock), earliest tag first;
//! 4. principals within their contracts, by the discipline;
//! 5. those beyond their contracts, by the discipline.
//!
//! A tenant's turn is then divided among its lanes (`lanes`), and in a lane small work without a
//! due time passes large work ([`crate::multiget::level_of`]).
//!
//! A principal above its limit is in none of these until its tag is reached or its item has waited
//! too long.
//!
//! Cost: O(log n) in the number n of principals *with work*; principals without any are not looked
//! at. Nothing is allocated once queues have reached their usual length.

mod contract;
mod discipline;
mod exchange;
mod grant;
mod lane;
mod lanes;
mod observation;
mod options;
mod ordered;
mod permits;
mod rates;
mod ready;
mod runs;
mod settle;
mod slot;
#[cfg(test)]
mod tests;
mod timed;
mod workload;

pub use crate::fairness::sfq::State;
pub use discipline::Discipline;
pub use exchange::Consumed;
pub use grant::{Grant, Next, Ticket, Verdict};
pub use lane::{LaneAllocation, LaneId, LaneObservation, Terms};
pub use observation::Observation;
pub use options::{Allocation, DispatchOptions, Limit, Meter};
pub use ordered::Ordered;
pub use rates::Limited;
pub use timed::Others;

use std::array::from_fn;

use crate::cost::{Cost, Nanos, PrincipalId};
use crate::fairness::drf::{Capacity, Demand};
use crate::fairness::fifo::Arrivals;
use crate::fairness::sfq::{Account, DebtBounds, Rounds, Weight};
use crate::permits::Permits;
use rates::Rates;
use ready::{Ready, Standing};
use slot::{Queued, Slot, Tier};
use timed::Timed;

/// All queues of one core before one resource (or one vector of `R` resources).
///
/// `T` is whatever waits: a connection, a request, a chunk. Time (`now`) must not go back from call
/// to call.
#[derive(Debug)]
pub struct Dispatch<T, const R: usize> {
    options: DispatchOptions<R>,
    capacity: Capacity<R>,
    /// What a turn may take: a quantum of each resource, or more by the options.
    budget: Cost<R>,
    bounds: DebtBounds,
    slots: Vec<Slot<T, R>>,
    ready: Ready,
    /// Rounds by tier.
    rounds: [Rounds; 2],
    permits: Permits,
    demand: Demand<R>,
    arrivals: Arrivals,
    queued: u64,
    idle_since: Nanos,
    /// Whose consumption has not been reported.
    unreported: Vec<u32>,
    timed: Timed,
}

impl<T, const R: usize> Dispatch<T, R> {
    /// An empty dispatch. `R` must be 1 to 255, and `options.meter.requests` below `R`.
    ///
    /// # Panics
    /// If they are not.
    #[must_use]
    pub fn new(options: DispatchOptions<R>) -> Self {
        assert!((1..256).contains(&R), "1 to 255 resources");
        assert!(
            options.meter.requests < R,
            "requests must be one of the resources"
        );
        let capacity = Capacity::new(options.capacity_per_s);
        let Cost(quantum) = capacity.within(options.quantum_ns);
        Dispatch {
            budget: Cost(from_fn(|r| quantum[r].max(options.turn_least.0[r]))),
            capacity,
            bounds: options.debt_bounds(),
            slots: Vec::new(),
            ready: Ready::new(options.discipline, options.seed),
            rounds: [Rounds::new(options.round_ns), Rounds::new(options.round_ns)],
            permits: Permits::new(
                options.permits,
                options.extra_permits,
                options.reserved_beside,
            ),
            demand: Demand::new(),
            arrivals: Arrivals::default(),
            queued: 0,
            idle_since: 0,
            unreported: Vec::new(),
            timed: Timed::default(),
            options,
        }
    }

    /// Sets what a principal is entitled to, at any time; queued work, debts and used-up rates are
    /// kept, and the next decision follows the new values.
    ///
    /// # Panics
    /// If `principal` is not below [`PrincipalId::END`].
    pub fn configure(&mut self, now: Nanos, principal: PrincipalId, allocation: &Allocation) {
        assert!(
            principal.0 < PrincipalId::END,
            "principals are numbered densely"
        );
        let index = principal.index();
        while self.slots.len() <= index {
            let number = self.slots.len() as u32;
            self.slots.push(Slot::vacant(number, &self.rounds[0]));
        }
        let slot = &mut self.slots[index];
        let weight = Weight::new(allocation.weight);
        if slot.configured {
            slot.account
                .reweigh(weight, &self.rounds[slot.tier as usize]);
        } else {
            slot.configured = true;
            slot.tier = Tier::InContract;
            let rounds = &self.rounds[0];
            slot.account = Account::new(principal.0, weight, self.bounds.estimate_max, rounds);
        }
        let reserved = allocation.reserved_permits;
        self.permits
            .reserve(slot.in_flight, slot.reserved, reserved);
        slot.reserved = reserved;
        let rates = Rates::new(slot.rates.as_deref(), now, allocation);
        slot.rates = rates.map(Box::new);
        slot.classify();
        // Under its new rates it may be in contract; if not, placing it says so again.
        if slot.tier == Tier::BestEffort {
            let [in_contract, best_effort] = &self.rounds;
            slot.account.transfer(best_effort, in_contract);
            slot.tier = Tier::InContract;
        }
        self.withdraw(index);
        self.place(now, index);
    }

    /// Forgets a principal and returns its queued items, oldest first. Its unsettled grants keep
    /// their permits until they are settled. Unknown principals have no items.
    pub fn remove(&mut self, now: Nanos, principal: PrincipalId) -> Vec<T> {
        let index = principal.index();
        if !self.is_configured(principal) {
            return Vec::new();
        }
        self.withdraw(index);
        let slot = &mut self.slots[index];
        self.permits.reserve(slot.in_flight, slot.reserved, 0);
        let queued: Vec<Queued<T>> = match &mut slot.lanes {
            None => slot.queue.drain(..).collect(),
            Some(lanes) => lanes.drain(),
        };
        let items: Vec<T> = queued.into_iter().map(|queued| queued.item).collect();
        let (in_flight, generation) = (slot.in_flight, slot.generation.wrapping_add(1));
        let extra_in_flight = slot.extra_in_flight;
        // Its place in the list of unreported principals stays taken; it then reports nothing.
        let unreported = slot.unreported;
        *slot = Slot {
            in_flight,
            extra_in_flight,
            generation,
            unreported,
            ..Slot::vacant(principal.0, &self.rounds[0])
        };
        slot.tally.busy_since = now;
        self.queued -= items.len() as u64;
        self.note_idle(now);
        items
    }

    /// Whether the principal is known.
    #[must_use]
    pub fn is_configured(&self, principal: PrincipalId) -> bool {
        self.slots
            .get(principal.index())
            .is_some_and(|s| s.configured)
    }

    /// Queues an item behind the principal's others.
    ///
    /// # Errors
    /// Gives the item back if the queue is full or the principal unknown.
    #[inline]
    pub fn enqueue(&mut self, now: Nanos, principal: PrincipalId, item: T) -> Result<(), T> {
        self.enqueue_on(now, principal, Terms::default(), item)
    }

    /// The same in a lane, or with a due time.
    ///
    /// # Errors
    /// Gives the item back if the lane is full or the principal unknown.
    #[inline]
    pub fn enqueue_on(
        &mut self,
        now: Nanos,
        principal: PrincipalId,
        terms: Terms,
        item: T,
    ) -> Result<(), T> {
        let index = principal.index();
        let idle = self.queued == 0 && self.permits.in_flight() == 0;
        let Some(slot) = self.slots.get_mut(index).filter(|s| s.configured) else {
            return Err(item);
        };
        if terms != Terms::default() || (!slot.plain() && slot.lanes.is_some()) {
            return self.enqueue_in_lane(now, index, terms, item);
        }
        if slot.queued >= self.options.queue_max {
            slot.tally.rejected += 1;
            return Err(item);
        }
        let arrival = self.arrivals.arrive();
        slot.queue.push_back(Queued {
            item,
            since: now,
            arrival,
        });
        slot.queued += 1;
        self.queued += 1;
        if slot.queued == 1 {
            self.rejoin(now, index, idle);
            self.place(now, index);
        }
        Ok(())
    }

    /// A principal has work again after having none. `idle`: nobody had.
    #[inline]
    fn rejoin(&mut self, now: Nanos, index: usize, idle: bool) {
        let slot = &mut self.slots[index];
        if idle {
            let passed = now.saturating_sub(self.idle_since);
            self.rounds.iter_mut().for_each(|r| r.pass_idle(passed));
        }
        slot.tally.occupied_since = now;
        slot.account.rejoin(&self.rounds[slot.tier as usize]);
        if let Some(rates) = &mut slot.rates {
            rates.rejoin(now);
        }
    }

    /// Changes the discipline. Whoever has work keeps its queue; debts and credits start anew,
    /// because nobody was held to a share under the old discipline.
    pub fn set_discipline(&mut self, now: Nanos, discipline: Discipline) {
        if discipline == self.ready.discipline() {
            return;
        }
        for slot in &mut self.slots {
            slot.account.forget(&self.rounds[slot.tier as usize]);
        }
        for index in self.ready.change(discipline) {
            self.place(now, index);
        }
    }

    /// The rule in force.
    #[must_use]
    pub fn discipline(&self) -> Discipline {
        self.ready.discipline()
    }

    /// Grants not yet settled, of all principals.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.permits.in_flight()
    }

    /// Items queued, of all principals.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Items of one principal that are queued.
    #[must_use]
    pub fn queued_of(&self, principal: PrincipalId) -> u64 {
        let slot = self.slots.get(principal.index());
        slot.map_or(0, |slot| slot.queued as u64)
    }

    /// Rounds that have passed among principals in contract.
    #[must_use]
    pub fn round(&self) -> u64 {
        self.rounds[0].number()
    }

    #[inline]
    fn key(&self, index: usize) -> u64 {
        let slot = &self.slots[index];
        match self.ready.discipline() {
            Discipline::Fair => slot.account.key(),
            Discipline::Fifo => slot.arrival(),
            Discipline::Lottery => 0,
        }
    }

    /// Puts a principal where it belongs after anything about it has changed.
    #[inline]
    fn place(&mut self, now: Nanos, index: usize) {
        let slot = &self.slots[index];
        if !slot.plain() {
            self.place_ruled(now, index);
        } else if slot.is_empty() {
            self.ready.remove_plain(index);
        } else {
            let (key, tickets) = (self.key(index), slot.account.weight().micro());
            self.ready.put_plain(index, key, tickets);
        }
    }

    /// The same for one with rates, reserved permits or lanes.
    #[inline(never)]
    fn place_ruled(&mut self, now: Nanos, index: usize) {
        if self.slots[index].is_empty() {
            self.withdraw(index);
            return;
        }
        let slot = &mut self.slots[index];
        let (mut wake_at, mut tier, mut reservation_at) = (None, Tier::InContract, None);
        if let Some(rates) = &slot.rates {
            let waited = slot.waited(now);
            if let Some((_, at)) = rates.limited(now).filter(|_| waited < rates.max_wait_ns) {
                let overdue = now + (rates.max_wait_ns - waited);
                self.withdraw(index);
                self.ready.wake_at(index, Some(at.min(overdue)));
                return;
            }
            if let Some(at) = rates.in_contract_at(now) {
                tier = Tier::BestEffort;
                wake_at = Some(at).filter(|at| *at < Nanos::MAX);
            }
            reservation_at = rates.reservation_at();
        }
        if tier != slot.tier {
            let (from, to) = (
                &self.rounds[slot.tier as usize],
                &self.rounds[tier as usize],
            );
            slot.account.transfer(from, to);
            slot.account.rejoin(to);
            slot.tier = tier;
            self.ready.remove(index);
        }
        let slot = &self.slots[index];
        let standing = Standing {
            key: self.key(index),
            tickets: slot.account.weight().micro(),
            tier,
            own_permit: slot.in_flight < slot.reserved,
            reservation_at,
        };
        let lanes = slot.lanes.as_deref();
        let yields = self.timed.others.first;
        match lanes.is_none_or(|lanes| lanes.may_share(now, yields)) {
            true => self.ready.put(index, &standing),
            false => self.ready.remove(index),
        }
        let due_at = lanes.and_then(|lanes| lanes.due_at(now));
        let passed_over_at = lanes.and_then(|lanes| lanes.passed_over_at());
        self.timed.place(index, due_at, passed_over_at);
        let in_contract_at = lanes.and_then(|lanes| lanes.in_contract_at(now));
        let wake_at = wake_at.into_iter().chain(in_contract_at).min();
        self.ready.wake_at(index, wake_at);
    }

    /// Takes a principal out of everything it may be in.
    fn withdraw(&mut self, index: usize) {
        self.ready.remove(index);
        self.timed.place(index, None, None);
        self.ready.wake_at(index, None);
    }

    fn note_idle(&mut self, now: Nanos) {
        if self.queued == 0 && self.permits.in_flight() == 0 {
            self.idle_since = now;
        }
    }
}
