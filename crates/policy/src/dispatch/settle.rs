//! What a turn really cost.

use super::options::Units;
use super::runs::NO_RUN;
use super::{Dispatch, Ticket};
use crate::cost::{Charge, Cost, Nanos, PrincipalId};
use crate::fairness::sfq::DebtBounds;

impl<T, const R: usize> Dispatch<T, R> {
    /// Ends a turn: gives its permit back, and refunds or charges the difference between `actual`
    /// and what was set aside. `actual` may exceed the budget; it is charged all the same.
    pub fn settle(&mut self, now: Nanos, ticket: Ticket, actual: Cost<R>) {
        self.end(now, ticket, Some(&actual));
    }

    /// Ends a turn whose cost nobody knows (its task panicked or was cancelled): what was set
    /// aside is charged, and nothing is learned from it.
    pub fn abandon(&mut self, now: Nanos, ticket: Ticket) {
        self.end(now, ticket, None);
    }

    #[inline]
    fn end(&mut self, now: Nanos, ticket: Ticket, actual: Option<&Cost<R>>) {
        let index = ticket.index as usize;
        let slot = &mut self.slots[index];
        slot.tally.held(now, slot.permits());
        if ticket.extra {
            self.permits.give_back_extra();
            slot.extra_in_flight -= 1;
        } else {
            self.permits.give_back(slot.in_flight, slot.reserved);
            slot.in_flight -= 1;
        }
        if ticket.run != NO_RUN {
            self.timed.runs.end(now, ticket.run);
        }
        if ticket.timed && !ticket.extra {
            self.timed.end();
        }
        if slot.generation == ticket.generation {
            match actual {
                Some(actual) => self.book(now, &ticket, actual),
                None => {
                    if let Some(lanes) = &mut slot.lanes {
                        lanes.settle(now, &ticket, None, &self.bounds);
                    }
                    if let Some(rates) = slot.rates.as_mut().filter(|_| !ticket.refused) {
                        rates.abandon(ticket.rates);
                    }
                    self.note_charge(index, ticket.aside);
                }
            }
        }
        let slot = &self.slots[index];
        if !slot.is_empty() && (self.orders_by_charge() || !slot.plain()) {
            self.place(now, index);
        }
        self.note_idle(now);
    }

    #[inline]
    fn book(&mut self, now: Nanos, ticket: &Ticket, actual: &Cost<R>) {
        let index = ticket.index as usize;
        let charge = self.charge_of(index, actual);
        let slot = &mut self.slots[index];
        let rounds = &self.rounds[slot.tier as usize];
        let forgiven = slot
            .account
            .settle(ticket.aside, charge, rounds, &self.bounds);
        slot.tally.forgiven = slot.tally.forgiven.plus(forgiven);
        if let Some(rates) = slot.rates.as_mut().filter(|_| !ticket.refused) {
            rates.settle(now, ticket.rates, Units::of(actual, &self.options.meter));
        }
        if let Some(lanes) = slot.lanes.as_mut().filter(|_| !slot.plain) {
            let requests = Units::of(actual, &self.options.meter).requests;
            let used = Some((charge, requests));
            lanes.settle(now, ticket, used, &self.bounds);
        }
        self.note_charge(index, charge);
    }

    /// Charges a principal for consumption that no grant of this dispatch covers: a commit thread,
    /// a background task. Unknown principals are not charged.
    pub fn charge(&mut self, now: Nanos, principal: PrincipalId, cost: Cost<R>) {
        if !self.is_configured(principal) {
            return;
        }
        let index = principal.index();
        let charge = self.charge_of(index, &cost);
        let slot = &mut self.slots[index];
        if let Some(rates) = &mut slot.rates {
            let units = Units::of(&cost, &self.options.meter);
            rates.charge(now, units);
        }
        self.note_charge(index, charge);
        let bounds = self.bounds;
        self.debit(now, index, charge, &bounds);
    }

    /// Adds to a principal's debt and puts it where it then belongs.
    pub(super) fn debit(&mut self, now: Nanos, index: usize, charge: Charge, bounds: &DebtBounds) {
        let slot = &mut self.slots[index];
        let rounds = &self.rounds[slot.tier as usize];
        let forgiven = slot.account.debit(charge, rounds, bounds);
        slot.tally.forgiven = slot.tally.forgiven.plus(forgiven);
        if !slot.is_empty() {
            self.place(now, index);
        }
    }

    #[inline]
    fn charge_of(&mut self, index: usize, cost: &Cost<R>) -> Charge {
        let slot = &mut self.slots[index];
        slot.tally.consumed = slot.tally.consumed.plus(*cost);
        let weight_micro = slot.account.weight().micro();
        // Two quanta of slack: one turn in each direction of a tenant that alternates.
        let slack = Charge(self.bounds.estimate_max.0.saturating_mul(2));
        slot.profile
            .charge(cost, &self.capacity, &mut self.demand, weight_micro, slack)
    }

    #[inline]
    fn note_charge(&mut self, index: usize, charge: Charge) {
        let slot = &mut self.slots[index];
        slot.tally.charged = slot.tally.charged.plus(charge);
        if !slot.unreported {
            slot.unreported = true;
            self.unreported.push(index as u32);
        }
    }

    fn orders_by_charge(&self) -> bool {
        self.ready.discipline().keeps_shares()
    }
}
