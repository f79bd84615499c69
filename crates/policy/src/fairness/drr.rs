//! Deficit weighted round robin, kept in virtual time (Pisces 4.3.4, algorithm 4).
//!
//! A round gives each principal `weight * length` of its dominant resource. Instead of walking a ring
//! and topping up counters, every principal carries `service`: all it was charged so far, divided by its
//! weight. Round `g` is the stretch `[start, start + length)` of that axis, so the deficit counter of the
//! paper is `(start + length - service) * weight`, and its states are positions on the axis:
//!
//! * inactive: nothing queued, nothing in flight;
//! * active: `service` lies before the end of the round (it has quanta left);
//! * exhausted: `service` lies beyond it (it waits for the next round).
//!
//! The least service goes first. So nobody is served 100 times in a row because its weight is 100, the
//! round ends exactly when everybody queued is exhausted, and when that needs many rounds they pass in
//! one step. The lag bounds and the comparison with a ring are in docs/mechanisms/fair-queue.md.

use crate::cost::{Charge, Nanos};

/// Fraction bits of [`Weight::inverse`]. With 40, the largest weight keeps an inverse of 30 bits, so a
/// share is off by less than one part in 10^9, always by the same factor, whatever the cost of a turn.
const INVERSE_FRACTION: u32 = 40;
/// Virtual time is counted from a base that moves before the numbers run out (see [`Rounds::rebase`]): at
/// weight 1 that is after 9 hours of service, at weight 0.001 alone on the resource after 35 s.
const REBASE_AT: Virtual = 1 << 61;
/// No single step is longer, so that sums of a few never overflow. It is 4.9 h at weight 1, and at weight
/// 0.001 still 17 s of service, far above the largest debt.
const STEP_MAX: Virtual = 1 << 60;
/// The smallest and largest weight, in millionths (Pisces 4.3.4: lag is bounded for weights < 1000).
const MICRO_MIN: u64 = 1_000;
const MICRO_MAX: u64 = 1_000_000_000;

/// Virtual time: nanoseconds of a dominant resource per unit of weight, times 2^16. Charges are rounded to
/// the nearest unit, which for a turn of 1 µs at weight 1000 is one part in 10^5, and as often up as down.
pub(crate) type Virtual = u64;

/// A principal's part relative to the others, to a millionth, 0.001 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    micro: u32,
    inverse: u64,
}

impl Weight {
    /// The weight nearest to `weight`; out of range is clamped, not a number counts as 1.
    pub(crate) fn new(weight: f64) -> Self {
        let micro = if weight.is_nan() {
            1_000_000
        } else {
            ((weight * 1e6).round() as u64).clamp(MICRO_MIN, MICRO_MAX)
        };
        let inverse = (1_000_000u128 << INVERSE_FRACTION) / u128::from(micro);
        Weight {
            micro: micro as u32,
            inverse: inverse as u64,
        }
    }

    /// In millionths.
    pub(crate) fn micro(self) -> u32 {
        self.micro
    }

    /// `charge / weight` on the virtual axis.
    #[inline]
    fn scale(self, charge: Charge) -> Virtual {
        const HALF: u128 = 1 << (INVERSE_FRACTION - 1);
        let wide = u128::from(charge.0) * u128::from(self.inverse) + HALF;
        let scaled = wide >> INVERSE_FRACTION;
        scaled.min(u128::from(STEP_MAX)) as Virtual
    }

    /// The charge that moves a principal of this weight by `distance`; the inverse of `scale`.
    fn unscale(self, distance: Virtual) -> Charge {
        let charge = u128::from(distance) * u128::from(self.micro) / 1_000_000;
        Charge(u64::try_from(charge).unwrap_or(u64::MAX))
    }

    /// The distance that is as much to a principal of weight `self` as `distance` was at `old`.
    fn rescale(self, distance: Virtual, old: Weight) -> Virtual {
        let wide = u128::from(distance) * u128::from(old.micro) / u128::from(self.micro);
        wide.min(u128::from(STEP_MAX)) as Virtual
    }
}

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

/// The round in progress, and virtual time within it.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    now: Virtual,
    start: Virtual,
    length: Virtual,
    per_idle_ns: Virtual,
    number: u64,
}

impl Rounds {
    pub(crate) fn new(round_ns: Nanos) -> Self {
        let mut rounds = Rounds {
            now: 0,
            start: 0,
            length: 1,
            per_idle_ns: 1,
            number: 0,
        };
        rounds.resize(round_ns, 1_000_000);
        rounds
    }

    /// Sets the length so that a round in which every active principal uses up its quanta takes
    /// `round_ns` of the bottleneck: `demand_micro` is the largest entry of `sum_t w^t u_i^t`
    /// (Pisces eq. 4.17: r_DRF is its inverse), in millionths. Principals need no entry of their own
    /// for r_i^t: the same r_DRF multiplies every share, so it sets the length of a round and nothing else.
    pub(crate) fn resize(&mut self, round_ns: Nanos, demand_micro: u128) {
        let one = 1_000_000u128 << Charge::FRACTION;
        let in_range = |v: u128| v.clamp(1, u128::from(STEP_MAX)) as Virtual;
        self.per_idle_ns = in_range(one / demand_micro.max(1));
        self.length = in_range(one * u128::from(round_ns) / demand_micro.max(1));
    }

    /// Virtual time moves to that of the principal just chosen; it never goes back. Rounds that have
    /// become empty (everybody queued is exhausted) pass in one step.
    #[inline]
    pub(crate) fn advance(&mut self, chosen: Virtual) {
        self.now = self.now.max(chosen);
        if self.now - self.start >= self.length {
            self.turn_over();
        }
    }

    #[cold]
    fn turn_over(&mut self) {
        let passed = (self.now - self.start) / self.length;
        self.start += passed * self.length;
        self.number = self.number.saturating_add(passed);
    }

    /// While nothing was queued for `idle_ns`, rounds would have passed at the pace of a busy
    /// resource; they do, so that debts decay in idle time too.
    #[inline]
    pub(crate) fn pass_idle(&mut self, idle_ns: Nanos) {
        let distance = self.per_idle_ns.saturating_mul(idle_ns).min(STEP_MAX);
        self.advance(self.now + distance);
    }

    /// If numbers have become large, moves the base of the axis up to the last round; returns by
    /// how much, to be applied to every account with [`Account::rebase`].
    pub(crate) fn rebase(&mut self) -> Option<Virtual> {
        if self.now < REBASE_AT {
            return None;
        }
        let distance = self.start.saturating_sub(self.length);
        self.now -= distance;
        self.start -= distance;
        Some(distance)
    }

    /// Rounds that have passed.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
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
    /// An account without history. `number` makes the phases of principals differ; `estimate` is what
    /// a turn is taken to cost until one was settled.
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
    /// Start-time order alone lets a hundred principals of weight 1, all at the same virtual time, go
    /// before one of weight 100 moves on. So from the second turn of a busy period on, each is put
    /// later by its own constant fraction of the distance between two of its turns, which spreads them
    /// over the round. A constant offset cannot change a share, and is less than one turn, so the lag bound
    /// stands; the first turn of a busy period goes without, so that light principals are served at once.
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

    /// A turn begins: sets its estimated charge aside, and says how much that was and where on the
    /// axis the turn started.
    #[inline]
    pub(crate) fn set_aside(&mut self) -> (Charge, Virtual) {
        let start = self.service;
        self.service = self.service.saturating_add(self.ahead);
        self.stagger = self.phased();
        (self.estimate, start)
    }

    /// The turn's real charge is known: refunds or charges the difference to what was set aside, and
    /// learns from it (an average over about 8 turns, never above `estimate_max`).
    /// Returns what was forgiven because the debt would have passed `debt_max`.
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
        // the second: a principal of weight 0.001 beside one of 1000 owes thousands of rounds for one turn.
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

/// A debt is paid off within this many rounds (about 10 s of busy time at a round of 1 ms), unless it
/// comes from turns granted here: long enough that no ordinary imbalance between cores is forgotten,
/// short enough that a background job of last hour is.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bounds() -> DebtBounds {
        DebtBounds {
            debt_max: Charge::from_ns(1_000_000_000),
            turns_max: Charge::from_ns(1_000_000_000),
            estimate_max: Charge::from_ns(100_000),
        }
    }

    proptest! {
        /// Refund conservation: whatever was estimated and in whatever order turns end, what remains on
        /// the account is what was used.
        #[test]
        fn set_aside_and_refund_make_what_was_used(
            weight in 0.001f64..1000.0,
            turns in prop::collection::vec((0u64..200_000, 0usize..5), 1..200),
        ) {
            let rounds = Rounds::new(1_000_000);
            let estimate = Charge::from_ns(100_000);
            let mut account = Account::new(0, Weight::new(weight), estimate, &rounds);
            let (mut open, mut used) = (Vec::new(), 0);
            for (cost, pick) in turns {
                open.push(account.set_aside().0);
                if open.len() > pick {
                    let aside = open.swap_remove(pick % open.len());
                    let forgiven = account.settle(aside, Charge::from_ns(cost), &rounds, &bounds());
                    prop_assert_eq!(forgiven, Charge::ZERO);
                    used += account.weight.scale(Charge::from_ns(cost));
                }
            }
            for aside in open {
                account.settle(aside, Charge::ZERO, &rounds, &bounds());
            }
            prop_assert_eq!(account.service, used);
        }

        /// A weight is kept to a millionth and its inverse loses nothing of that.
        #[test]
        fn scaling_is_exact_enough(weight in 0.001f64..1000.0, ns in 1_000u64..1_000_000) {
            let weight = Weight::new(weight);
            let scaled = weight.scale(Charge::from_ns(ns)) as f64;
            let exact = ns as f64 * 65_536.0 * 1e6 / f64::from(weight.micro);
            prop_assert!((scaled - exact).abs() <= exact * 2e-9 + 0.5, "{scaled} {exact}");
        }
    }

    #[test]
    fn weights_out_of_range_are_clamped() {
        assert_eq!(Weight::new(0.0).micro(), 1_000);
        assert_eq!(Weight::new(1e9).micro(), 1_000_000_000);
        assert_eq!(Weight::new(f64::NAN).micro(), 1_000_000);
        assert_eq!(Weight::new(0.333).micro(), 333_000);
    }

    #[test]
    fn a_debt_keeps_its_size_when_the_weight_changes() {
        let rounds = Rounds::new(1_000_000);
        let mut account = Account::new(0, Weight::new(1.0), Charge::ZERO, &rounds);
        account.debit(Charge::from_ns(5_000_000), &rounds, &bounds());
        account.reweigh(Weight::new(10.0), &rounds);
        assert_eq!(account.debt(&rounds).ns(), 5_000_000);
    }

    #[test]
    fn moving_the_base_changes_no_distance() {
        let mut rounds = Rounds::new(1_000_000);
        let mut account = Account::new(0, Weight::new(1.0), Charge::ZERO, &rounds);
        assert_eq!(rounds.rebase(), None);
        account.service = REBASE_AT + 77;
        rounds.advance(REBASE_AT);
        let number = rounds.number();
        let distance = rounds.rebase().expect("beyond the threshold");
        account.rebase(distance);
        assert_eq!(
            (account.service - rounds.now, rounds.number()),
            (77, number)
        );
        assert!(rounds.now <= 2 * rounds.length);
    }
}
