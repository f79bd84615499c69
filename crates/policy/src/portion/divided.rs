//! What is divided, and what of it a front is due.

use super::{Told, NOTHING};
use crate::placement::{fair_shares, Claim};

/// Of a rate, who is not held back may have this much more than he used, as a part of it.
const GROWTH: f64 = 0.03;
/// A weight goes this part of the way to what is due, in a round.
const STEP: f64 = 0.5;
/// It stays where that is no further than this part of it: a weight that changes a little all the
/// time would keep cores at work.
const NEAR: f64 = 0.01;

/// Where a tenant waits it counts as served so many requests at least: the first ones that it sent
/// may all still wait there. Added to what was served they would favour whoever is served little:
/// who waits at one of four fronts, of 200 requests remembered, would have 6 % more there.
const DOUBT: f64 = 4.0;

/// What fronts divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divided {
    /// A rate. Max-min fair over what all used ([`fair_shares`]): who was held back wants all that
    /// he can get; the others what they used, and a little to grow. What nobody wants is divided
    /// evenly.
    Rate,
    /// A throughput that is promised. It is due where it is served, max-min fair; what of it nobody
    /// serves goes, in even parts, to those who want more.
    ///
    /// Not all of it goes to who wants more, as of a rate: what a front can serve of it is the
    /// engine's to say, and not the part that the front has. One that cannot serve more must not
    /// take from one that can.
    Throughput,
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
            Divided::Throughput => due_of_throughput(first, others),
            Divided::Weight => due_of_weight(first, others, fronts),
        }
    }
}

/// The next step of a weight that is kept, on the way to what is due.
pub(super) fn towards(kept: f64, due: f64, fronts: usize) -> f64 {
    let (gap, even) = (due - kept, 1.0 / fronts as f64);
    match gap.abs() <= kept * NEAR {
        // Where nothing is served, nothing varies.
        true if (due - even).abs() < f64::EPSILON => even,
        true => kept,
        // It would stop short, and always on the side from which it came.
        false if gap.abs() * (1.0 - STEP) <= due * NEAR => due,
        false => kept + gap * STEP,
    }
}

fn due_of_rate(first: &Told, others: &[Told]) -> f64 {
    let all = [first].into_iter().chain(others);
    let asks = all.map(|told| (!told.more).then_some(told.used * (1.0 + GROWTH)));
    let (share, unasked) = fair(asks);
    share + unasked / (1 + others.len()) as f64
}

fn due_of_throughput(first: &Told, others: &[Told]) -> f64 {
    let all = || [first].into_iter().chain(others);
    let (share, unserved) = fair(all().map(|told| Some(told.used)));
    let wanting = all().filter(|told| told.more).count();
    share
        + match (wanting, first.more) {
            (0, _) => unserved / (1 + others.len()) as f64,
            (_, true) => unserved / wanting as f64,
            (_, false) => 0.0,
        }
}

/// What the first of those has who ask for so much, max-min fair, and what nobody asks for.
fn fair(asks: impl Iterator<Item = Option<f64>>) -> (f64, f64) {
    let claims = asks.map(|asks| Claim {
        weight: 1.0,
        reserved: 0.0,
        asks,
    });
    let (_, shares) = fair_shares(1.0, &claims.collect::<Vec<_>>());
    (shares[0], (1.0 - shares.iter().sum::<f64>()).max(0.0))
}

/// Fronts that tell nothing of a tenant count as ones that have its weight, which is an even part.
/// One that serves nothing of it has as much, beside what the others have: nobody is the worse for
/// it, and where a tenant comes that was elsewhere, what it asks first need not wait until it is
/// seen. With next to nothing there, all requests of a client would wait for those few.
fn due_of_weight(first: &Told, others: &[Told], fronts: usize) -> f64 {
    let all = || [first].into_iter().chain(others);
    let (served, remembered) = all().fold((0.0, 0.0), |(served, remembered), told| {
        (served + told.used, remembered + told.remembered)
    });
    let doubt = match remembered > 0.0 {
        true => DOUBT * served / remembered,
        false => 0.0,
    };
    let used_at = |told: &Told| told.used.max(if told.more { doubt } else { 0.0 });
    let (used, even) = (all().map(used_at).sum::<f64>(), 1.0 / fronts as f64);
    // Who waits here and is served next to nothing is due no more, if he is served anywhere.
    if used == 0.0 || (first.used <= used * NOTHING && !first.more) {
        return even;
    }
    let part = used_at(first) / used * (1 + others.len()) as f64 * even;
    match all().any(|told| told.more) {
        true => part,
        // Until it wants more, where it was served says little of where it will be.
        false => f64::midpoint(part, even),
    }
}
