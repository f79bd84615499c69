//! What is divided, and what of it a front is due.

use super::Told;
use crate::placement::{fair_shares, Claim};

/// Of a rate, who is not held back may have this much more than he used, as a part of it.
const GROWTH: f64 = 0.03;
/// A claim of a weight goes this part of the way to what is due, in a round.
const STEP: f64 = 0.5;
/// A smaller step goes all of the way.
const STEP_MIN: f64 = 0.001;
/// A weight that would rise by less than this, as a part of it, stays.
const NEAR: f64 = 0.05;

/// What fronts divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divided {
    /// A rate. Max-min fair over what all used ([`fair_shares`]): who was held back wants all that
    /// he can get; the others what they used, and a little to grow. What nobody wants is divided
    /// evenly.
    Rate,
    /// A weight. A front is due that part of it which it served of all that the tenant was served.
    ///
    /// So a tenant pays with its weight for what it is served, wherever that is, and where two
    /// tenants compete, the one with less in all for its weight has more to offer. This is the
    /// proportional response of a market in which each buys service with its weight (Wu and Zhang,
    /// STOC 2007). It comes to rest where all who compete at a front have been served alike for
    /// their weights at all fronts together, or have as much as they can use: weighted max-min. The
    /// mathematics is in docs/theory/placement.md.
    Weight,
}

impl Divided {
    /// What the first of `fronts` is due of what is divided.
    pub(super) fn due(self, first: &Told, others: &[Told], fronts: usize) -> f64 {
        match self {
            Divided::Rate => due_of_rate(first, others),
            Divided::Weight => {
                let due = due_of_weight(first, others, fronts);
                let step = (due - first.claim) * STEP;
                if step.abs() < STEP_MIN {
                    due
                } else {
                    first.claim + step
                }
            }
        }
    }

    /// What is claimed by fronts that have told nothing, `silent` of so many. Where nothing is told
    /// of a tenant it has its weight, which is an even part; of a rate it may not have any there.
    pub(super) fn claimed(self, silent: usize, fronts: usize) -> f64 {
        match self {
            Divided::Rate => 0.0,
            Divided::Weight => silent as f64 / fronts as f64,
        }
    }

    /// Whether what is kept may stay for what might be kept: a weight that changes a little all the
    /// time would keep cores at work. The whole is kept where it can be.
    pub(super) fn is_near(self, kept: f64, may: f64) -> bool {
        let near = kept <= may && may < kept * (1.0 + NEAR);
        self == Divided::Weight && near && may < 1.0 - STEP_MIN
    }
}

fn due_of_rate(first: &Told, others: &[Told]) -> f64 {
    let claims = [first].into_iter().chain(others).map(|told| Claim {
        weight: 1.0,
        reserved: 0.0,
        asks: (!told.more).then_some(told.used * (1.0 + GROWTH)),
    });
    let (_, shares) = fair_shares(1.0, &claims.collect::<Vec<_>>());
    let unasked = (1.0 - shares.iter().sum::<f64>()).max(0.0);
    shares[0] + unasked / shares.len() as f64
}

fn due_of_weight(first: &Told, others: &[Told], fronts: usize) -> f64 {
    let all = || [first].into_iter().chain(others);
    let (used, even) = (
        all().map(|told| told.used).sum::<f64>(),
        1.0 / fronts as f64,
    );
    if used <= 0.0 {
        return even;
    }
    let part = first.used / used;
    match all().any(|told| told.more) {
        true => part,
        // Until it wants more, where it was served says little of where it will be.
        false => f64::midpoint(part, even),
    }
}
