//! The axis of virtual time: how a charge becomes a distance on it, and the rounds that divide it.

use crate::cost::{Charge, Nanos};

/// Fraction bits of [`Weight::inverse`]. With 40, the largest weight keeps an inverse of 30 bits,
/// so a share is off by less than one part in 10^9, always by the same factor, whatever the cost of
/// a turn.
const INVERSE_FRACTION: u32 = 40;
/// Virtual time is counted from a base that moves before the numbers run out (see
/// [`Rounds::rebase`]): at weight 1 that is after 9 hours of service, at weight 0.001 alone on the
/// resource after 35 s.
pub(super) const REBASE_AT: Virtual = 1 << 61;
/// No single step is longer, so that sums of a few never overflow. It is 4.9 h at weight 1, and at
/// weight 0.001 still 17 s of service, far above the largest debt.
const STEP_MAX: Virtual = 1 << 60;
/// The smallest and largest weight, in millionths (Pisces 4.3.4: lag is bounded for weights <
/// 1000).
const MICRO_MIN: u64 = 1_000;
const MICRO_MAX: u64 = 1_000_000_000;

/// Virtual time: nanoseconds of a dominant resource per unit of weight, times 2^16. Charges are
/// rounded to the nearest unit, which for a turn of 1 µs at weight 1000 is one part in 10^5, and as
/// often up as down.
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
    pub(super) fn scale(self, charge: Charge) -> Virtual {
        const HALF: u128 = 1 << (INVERSE_FRACTION - 1);
        let wide = u128::from(charge.0) * u128::from(self.inverse) + HALF;
        let scaled = wide >> INVERSE_FRACTION;
        scaled.min(u128::from(STEP_MAX)) as Virtual
    }

    /// The charge that moves a principal of this weight by `distance`; the inverse of `scale`.
    pub(super) fn unscale(self, distance: Virtual) -> Charge {
        let charge = (u128::from(distance) * u128::from(self.micro) + 500_000) / 1_000_000;
        Charge(u64::try_from(charge).unwrap_or(u64::MAX))
    }

    /// The distance that is as much to a principal of weight `self` as `distance` was at `old`.
    pub(super) fn rescale(self, distance: Virtual, old: Weight) -> Virtual {
        let wide = u128::from(distance) * u128::from(old.micro) / u128::from(self.micro);
        wide.min(u128::from(STEP_MAX)) as Virtual
    }
}

/// The round in progress, and virtual time within it.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    pub(super) now: Virtual,
    pub(super) start: Virtual,
    pub(super) length: Virtual,
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
    /// (Pisces eq. 4.17: r_DRF is its inverse), in millionths. Principals need no entry of their
    /// own for r_i^t: the same r_DRF multiplies every share, so it sets the length of a round and
    /// nothing else.
    pub(crate) fn resize(&mut self, round_ns: Nanos, demand_micro: u128) {
        let one = 1_000_000u128 << Charge::FRACTION;
        let in_range = |v: u128| v.clamp(1, u128::from(STEP_MAX)) as Virtual;
        self.per_idle_ns = in_range(one / demand_micro.max(1));
        self.length = in_range(one * u128::from(round_ns) / demand_micro.max(1));
    }

    /// Virtual time moves to that of the principal just chosen; it never goes back. Rounds that
    /// have become empty (everybody queued is exhausted) pass in one step.
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
