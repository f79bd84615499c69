//! Start-time fair queueing (Pisces 2.2.2) with the rounds of deficit weighted round robin (Pisces
//! 4.3.4, algorithm 4).
//!
//! A round gives each principal `weight * length` of its dominant resource. Instead of walking a
//! ring and topping up counters, every principal carries `service`: all it was charged so far,
//! divided by its weight. Round `g` is the stretch `[start, start + length)` of that axis, so the
//! deficit counter of the paper is `(start + length - service) * weight`, and its states are
//! positions on the axis:
//!
//! * inactive: nothing queued, nothing in flight;
//! * active: `service` lies before the end of the round (it has quanta left);
//! * exhausted: `service` lies beyond it (it waits for the next round).
//!
//! The least service goes first. So nobody is served 100 times in a row because its weight is 100,
//! the round ends exactly when everybody queued is exhausted, and when that needs many rounds they
//! pass in one step. The lag bounds and the comparison with a ring are in
//! docs/mechanisms/fair-queue.md.

mod axis;
#[cfg(test)]
mod tests;

use crate::cost::Charge;
use axis::Virtual;
pub(crate) use axis::{Rounds, Weight};

/// Where a principal stands in a round (Pisces algorithm 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing queued and nothing in flight.
    Inactive,
    /// Work and quanta left in this round.
    Active,
    /// Work, but this round's quanta are used up.
    Exhausted,
}

/// One principal's standing: the service it had, and what a turn of it usually costs.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    service: Virtual,
    weight: Weight,
    /// What a turn usually costs, and how far that moves the account.
    estimate: Charge,
    ahead: Virtual,
    /// Whether the estimate comes from a turn.
    learned: bool,
    /// Added to `service` for ordering once a principal has been served in this busy period.
    stagger: Virtual,
    /// Fraction of its spacing by which this principal is staggered, 0..2^16.
    phase: u16,
}

impl Account {
    /// An account without history. `number` makes the phases of principals differ; `estimate` is
    /// what a turn is taken to cost until one was settled.
    pub(crate) fn new(number: u32, weight: Weight, estimate: Charge, rounds: &Rounds) -> Self {
        Account {
            service: rounds.now,
            weight,
            estimate,
            ahead: weight.scale(estimate),
            learned: false,
            stagger: 0,
            // Multiples of the golden ratio lie evenly in the unit interval however many there are.
            phase: (number.wrapping_mul(0x9E37_79B9) >> 16) as u16,
        }
    }

    pub(crate) fn weight(&self) -> Weight {
        self.weight
    }

    /// From now on this weight; a debt or credit keeps its size in terms of the resource.
    pub(crate) fn reweigh(&mut self, weight: Weight, rounds: &Rounds) {
        let rescale = |distance| weight.rescale(distance, self.weight);
        self.service = if self.service >= rounds.now {
            rounds.now + rescale(self.service - rounds.now)
        } else {
            rounds
                .now
                .saturating_sub(rescale(rounds.now - self.service).min(rounds.length))
        };
        self.stagger = rescale(self.stagger);
        self.weight = weight;
        self.ahead = weight.scale(self.estimate);
    }

    /// Follows a move of the axis.
    pub(crate) fn rebase(&mut self, distance: Virtual) {
        self.service = self.service.saturating_sub(distance);
    }

    /// Ordering key, smallest first.
    ///
    /// Start-time order alone lets a hundred principals of weight 1, all at the same virtual time,
    /// go before one of weight 100 moves on. So from the second turn of a busy period on, each is
    /// put later by its own constant fraction of the distance between two of its turns, which
    /// spreads them over the round. A constant offset cannot change a share, and is less than one
    /// turn, so the lag bound stands; the first turn of a busy period goes without, so that light
    /// principals are served at once.
    #[inline]
    pub(crate) fn key(&self) -> Virtual {
        self.service + self.stagger
    }

    /// The principal has work again after having none. Credit older than a round is lost
    /// (algorithm 4: "clears unused quanta"); debt stays.
    #[inline]
    pub(crate) fn rejoin(&mut self, rounds: &Rounds) {
        self.service = self.service.max(rounds.now.saturating_sub(rounds.length));
        self.stagger = 0;
    }

    /// The principal goes on under other rounds; its debt or credit goes with it.
    pub(crate) fn transfer(&mut self, from: &Rounds, to: &Rounds) {
        self.service = if self.service >= from.now {
            to.now + (self.service - from.now)
        } else {
            to.now.saturating_sub(from.now - self.service)
        };
    }

    /// History forgotten: neither debt nor credit.
    pub(crate) fn forget(&mut self, rounds: &Rounds) {
        self.service = rounds.now;
    }

    /// What it was deprived of by turns out of order, more than it could owe, it does not get back.
    pub(crate) fn limit_credit(&mut self, rounds: &Rounds) {
        let most = rounds.length.saturating_mul(DEBT_ROUNDS);
        self.service = self.service.max(rounds.now.saturating_sub(most));
    }

    /// Whether it will not be ahead of virtual time when it has had one more turn. A principal that
    /// always has work is as far as virtual time when its turn comes; one that asks for less than
    /// its share is behind.
    #[inline]
    pub(crate) fn in_credit(&self, rounds: &Rounds) -> bool {
        self.service.saturating_add(self.ahead) <= rounds.now
    }

    /// A turn begins: sets its estimated charge aside, and says how much that was and where on the
    /// axis the turn started.
    #[inline]
    pub(crate) fn set_aside(&mut self) -> (Charge, Virtual) {
        let start = self.service;
        self.service = self.service.saturating_add(self.ahead);
        self.stagger = self.phased();
        (self.estimate, start)
    }

    /// The same with an estimate of the caller's; says where on the axis the turn started.
    pub(crate) fn set_aside_for(&mut self, expected: Charge) -> Virtual {
        let start = self.service;
        self.service = self.service.saturating_add(self.weight.scale(expected));
        self.stagger = self.phased();
        start
    }

    /// The turn's real charge is known: refunds or charges the difference to what was set aside,
    /// and learns from it (an average over about 8 turns, never above `estimate_max`). Returns what
    /// was forgiven because the debt would have passed `debt_max`.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        aside: Charge,
        actual: Charge,
        rounds: &Rounds,
        bounds: &DebtBounds,
    ) -> Charge {
        self.learn(actual.min(bounds.estimate_max));
        let (was, is) = (self.weight.scale(aside), self.weight.scale(actual));
        if is <= was {
            self.service = self.service.saturating_sub(was - is);
            return Charge::ZERO;
        }
        self.owe(is - was, rounds, bounds)
    }

    #[inline]
    fn learn(&mut self, seen: Charge) {
        let old = self.estimate.0;
        let step = old.abs_diff(seen.0).div_ceil(8);
        self.estimate = match seen.0 >= old {
            _ if !self.learned => seen,
            true => Charge(old + step),
            false => Charge(old - step),
        };
        self.learned = true;
        self.ahead = self.weight.scale(self.estimate);
        if self.stagger > 0 {
            self.stagger = self.phased();
        }
    }

    #[inline]
    fn phased(&self) -> Virtual {
        ((u128::from(self.ahead) * u128::from(self.phase)) >> 16) as Virtual
    }

    /// Consumption that was not granted here: a debt at once.
    pub(crate) fn debit(&mut self, charge: Charge, rounds: &Rounds, bounds: &DebtBounds) -> Charge {
        self.service = self.service.max(rounds.now.saturating_sub(rounds.length));
        self.owe(self.weight.scale(charge), rounds, bounds)
    }

    fn owe(&mut self, more: Virtual, rounds: &Rounds, bounds: &DebtBounds) -> Charge {
        let wanted = self.service.saturating_add(more);
        // The common case first: a debt within the last round is within any bound.
        if wanted <= rounds.now + rounds.length {
            self.service = wanted;
            return Charge::ZERO;
        }
        // Two bounds, the smaller counts: one on what the others were deprived of, one on how long
        // the principal can be made to wait. What it owes for turns granted here is never cut by
        // the second: a principal of weight 0.001 beside one of 1000 owes thousands of rounds for
        // one turn.
        let rounds_max = rounds
            .length
            .saturating_mul(DEBT_ROUNDS)
            .max(self.weight.scale(bounds.turns_max));
        let debt_max = self.weight.scale(bounds.debt_max).min(rounds_max);
        let limit = rounds.now.saturating_add(debt_max).max(self.service);
        self.service = wanted.min(limit);
        if wanted <= limit {
            return Charge::ZERO;
        }
        self.weight.unscale(wanted - limit)
    }

    /// How far service is beyond virtual time, as a charge; zero for a principal in credit.
    pub(crate) fn debt(&self, rounds: &Rounds) -> Charge {
        self.weight.unscale(self.service.saturating_sub(rounds.now))
    }

    /// What is left of this round's quanta; zero for an exhausted principal. At most one round's.
    pub(crate) fn quanta_left(&self, rounds: &Rounds) -> Charge {
        let end = rounds.start + rounds.length;
        self.weight
            .unscale(end.saturating_sub(self.service).min(rounds.length))
    }

    /// Where the principal stands in the round; `busy`: it has something queued or in flight.
    pub(crate) fn state(&self, busy: bool, rounds: &Rounds) -> State {
        if !busy {
            State::Inactive
        } else if self.service < rounds.start + rounds.length {
            State::Active
        } else {
            State::Exhausted
        }
    }

    pub(crate) fn estimate(&self) -> Charge {
        self.estimate
    }
}

/// A debt is paid off within this many rounds (about 10 s of busy time at a round of 1 ms), unless
/// it comes from turns granted here: long enough that no ordinary imbalance between cores is
/// forgotten, short enough that a background job of last hour is.
const DEBT_ROUNDS: Virtual = 10_000;

/// How much a principal can owe, and what an estimate can grow to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DebtBounds {
    /// Largest debt in terms of the resource.
    pub(crate) debt_max: Charge,
    /// What all permits together can run up in ordinary turns: never forgiven.
    pub(crate) turns_max: Charge,
    /// Largest set-aside of a turn.
    pub(crate) estimate_max: Charge,
}
