//! What work costs: a vector with one entry per resource of a stage, and the scalar it is charged
//! as.

pub mod device;
pub mod spans;

/// A point in time or a span, in nanoseconds since an epoch the caller chooses (never goes back).
pub type Nanos = u64;

/// Who is charged: a tenant, or a background task, which is a principal like any other.
///
/// The number indexes tables, so callers hand numbers out densely from 0 and reuse those of
/// removed principals. Range: 0..[`PrincipalId::END`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalId(pub u32);

impl PrincipalId {
    /// One past the largest number: bounds the tables (about 400 bytes a principal and core).
    pub const END: u32 = 1 << 20;

    /// Its place in a table of principals.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Consumption of each of a stage's `R` resources, in that resource's own unit (requests, bytes,
/// nanoseconds of CPU, VOP …). The stage's owner decides what entry means what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost<const R: usize>(pub [u64; R]);

impl<const R: usize> Cost<R> {
    /// Nothing at all.
    pub const ZERO: Self = Cost([0; R]);

    /// The sum, entry by entry, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let mut sum = self;
        for (a, b) in sum.0.iter_mut().zip(other.0) {
            *a = a.saturating_add(b);
        }
        sum
    }

    /// What is left after taking `other` away, entry by entry, never below zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        let mut rest = self;
        for (a, b) in rest.0.iter_mut().zip(other.0) {
            *a = a.saturating_sub(b);
        }
        rest
    }
}

impl<const R: usize> Default for Cost<R> {
    fn default() -> Self {
        Self::ZERO
    }
}

/// A scalar charge: time of a principal's dominant resource, in units of 2^-16 ns.
///
/// The fraction is there because a 10-byte reply at 5 GB/s takes 2 ns: whole nanoseconds would lose
/// a good part of such charges. Range: up to 2^48 ns (78 h) for one charge; sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Charge(pub u64);

impl Charge {
    /// Bits behind the point.
    pub(crate) const FRACTION: u32 = 16;
    /// No charge.
    pub const ZERO: Self = Charge(0);

    /// A charge of whole nanoseconds (saturating at 2^48).
    #[must_use]
    pub const fn from_ns(ns: Nanos) -> Self {
        Charge(ns.saturating_mul(1 << Self::FRACTION))
    }

    /// The charge in whole nanoseconds, rounded down.
    #[must_use]
    pub const fn ns(self) -> Nanos {
        self.0 >> Self::FRACTION
    }

    /// The sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Charge(self.0.saturating_add(other.0))
    }

    /// What is left after taking `other` away, never below zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Charge(self.0.saturating_sub(other.0))
    }
}
