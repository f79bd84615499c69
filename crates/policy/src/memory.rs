//! Who has how much of a memory that tenants share: the object cache, the block cache, the write
//! buffers.
//!
//! Each tenant has an **allotment**, what it is entitled to ([`Allotments`]). What it is
//! **granted** may be less, while it needs less, or more, while others leave some. Once in a while
//! [`lend`] is told what each needs and says what each is granted from then on: everybody what it
//! needs up to its allotment, and what is left by weight to those who need more (weighted max-min).
//! So one step after a tenant needs it, the tenant is back at its allotment, whatever was borrowed
//! meanwhile. A step takes as long as the interval between two.
//!
//! Memory only moves when somebody needs more than it was granted. A tenant that needs little keeps
//! its headroom until then, and what lies in a cache is not thrown away for nobody.
//!
//! A tenant keeps what it holds within its allotment for as long as it has a database open, asked
//! for or not: what one tenant reads can never empty another's cache. Delta Fair Sharing bounds the
//! time to regain a share; here the share of whoever is present is not lent at all, so only the
//! fill of what was given up takes time.

/// A need without end.
pub const ALL_IT_GETS: u64 = u64::MAX;

/// Headroom of a cache that is not full: an eighth of what it holds, at least this many bytes.
const HEADROOM_BYTES: u64 = 1 << 20;
const HEADROOM_PART: u64 = 8;
/// A cache is full with less than this part free. A block that does not fit evicts another long
/// before the last byte.
const FULL_PART: u64 = 16;

/// How a memory is allotted: fixed amounts first, and by weight what these leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allotments {
    left: u64,
    weights: f64,
}

impl Allotments {
    /// Of `budget` bytes to tenants with a fixed amount of bytes or none, and a weight > 0.
    #[must_use]
    pub fn new(budget: u64, tenants: impl IntoIterator<Item = (Option<u64>, f64)>) -> Allotments {
        let none = Allotments {
            left: budget,
            weights: 0.0,
        };
        tenants
            .into_iter()
            .fold(none, |rest, (fixed, weight)| match fixed {
                Some(bytes) => Allotments {
                    left: rest.left.saturating_sub(bytes),
                    ..rest
                },
                None => Allotments {
                    weights: rest.weights + weight,
                    ..rest
                },
            })
    }

    /// One tenant's, in bytes.
    #[must_use]
    pub fn of(&self, fixed: Option<u64>, weight: f64) -> u64 {
        match fixed {
            Some(bytes) => bytes,
            None if self.weights > 0.0 => (self.left as f64 * weight / self.weights) as u64,
            None => 0,
        }
    }
}

/// What a cache saw since the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Bytes in it.
    pub used: u64,
    /// Lookups that it answered.
    pub hits: u64,
    /// Lookups that it did not.
    pub misses: u64,
    /// What it threw away, or did not take, for want of room, where that is known.
    pub lost: u64,
}

impl CacheUse {
    /// The bytes that the cache needs. All it gets, if it is full or lost something, and was not
    /// enough; else what it holds and some headroom, but nothing beyond its allotment if nobody
    /// asked: what nobody asks for is not worth borrowed memory. (Without headroom those parts of a
    /// cache that hold more than others would have to throw blocks away.)
    #[must_use]
    pub fn need(&self, allotment: u64, granted: u64) -> u64 {
        let full = self.lost > 0 || self.used.saturating_add(granted / FULL_PART) >= granted;
        let held = self.used + (self.used / HEADROOM_PART).max(HEADROOM_BYTES);
        match (self.hits, self.misses) {
            (0, 0) => held.min(allotment),
            (_, 1..) if full => ALL_IT_GETS,
            _ => held,
        }
    }
}

/// The bytes that write buffers need: `enough` if the tenant wrote since the last step, as they
/// fill up whatever their size, and more than `enough` serves nothing; else what is in them until
/// it is flushed.
#[must_use]
pub fn buffers_need(used: u64, wrote: bool, enough: u64) -> u64 {
    if wrote {
        enough.max(used)
    } else {
        used
    }
}

/// One tenant's claim to a memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// What it is entitled to, bytes.
    pub allotment: u64,
    /// Its part of what others leave, > 0.
    pub weight: f64,
    /// What it was granted at last, bytes.
    pub granted: u64,
    /// What it needs, bytes; [`ALL_IT_GETS`] for as much as there is.
    pub need: u64,
}

/// Why the grants are as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nobody needs more than it was granted.
    Enough,
    /// Somebody does, or the budget is smaller than what was granted.
    Moved {
        /// Granted beyond allotments, bytes, of all tenants.
        lent: u64,
    },
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lent {
    /// What each is granted from now on, in the order of the claims, bytes. They never come to more
    /// than the budget.
    pub grants: Vec<u64>,
    /// Why.
    pub reason: Reason,
}

/// Divides `budget` bytes. Allotments that come to more than the budget are scaled down alike.
#[must_use]
pub fn lend(budget: u64, claims: &[Claim]) -> Lent {
    let total = |of: &dyn Fn(&Claim) -> u64| -> u128 {
        claims.iter().map(|claim| u128::from(of(claim))).sum()
    };
    let granted = total(&|claim| claim.granted);
    if granted <= u128::from(budget) && claims.iter().all(|claim| claim.need <= claim.granted) {
        return Lent {
            grants: claims.iter().map(|claim| claim.granted).collect(),
            reason: Reason::Enough,
        };
    }
    let allotted = total(&|claim| claim.allotment).max(u128::from(budget));
    let own = |claim: &Claim| {
        let scaled = u128::from(claim.allotment) * u128::from(budget) / allotted.max(1);
        // What allotments leave of the budget is nobody's own: it goes by weight like what is lent.
        let own = if allotted == u128::from(budget) {
            claim.allotment
        } else {
            scaled as u64
        };
        own.min(claim.need)
    };
    let mut grants: Vec<u64> = claims.iter().map(own).collect();
    let left = budget - grants.iter().sum::<u64>();
    fill(left, claims, &mut grants);
    let over = claims
        .iter()
        .zip(&grants)
        .map(|(claim, grant)| grant.saturating_sub(claim.allotment));
    let lent = over.sum();
    Lent {
        grants,
        reason: Reason::Moved { lent },
    }
}

/// Weighted max-min of `left` bytes among those who need more than they have: whoever needs least
/// for its weight is served first, and what it leaves of its part the others have more.
fn fill(mut left: u64, claims: &[Claim], grants: &mut [u64]) {
    let mut wanting: Vec<(f64, usize)> = claims
        .iter()
        .enumerate()
        .filter(|(at, claim)| claim.need > grants[*at])
        .map(|(at, claim)| ((claim.need - grants[at]) as f64 / claim.weight, at))
        .collect();
    wanting.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut weights: f64 = wanting.iter().map(|(_, at)| claims[*at].weight).sum();
    for (_, at) in wanting {
        let claim = &claims[at];
        let part = (left as f64 * (claim.weight / weights).min(1.0)) as u64;
        let given = part.min(left).min(claim.need - grants[at]);
        grants[at] += given;
        left -= given;
        weights -= claim.weight;
    }
}
