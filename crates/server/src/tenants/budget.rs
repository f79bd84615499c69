//! Memory that requests hold: what has arrived of them, what they gather and write, and replies
//! that their clients have not taken.
//!
//! Half of what there is for all tenants is theirs by weight, and the other half is lent to whoever
//! asks first, at most half of it to one tenant. So what all hold together never exceeds what there
//! is, and a tenant that holds much keeps no other from its own part.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use engine::{Allowance, Waiter};
use parking_lot::Mutex;

/// What all tenants have together.
pub struct Pool {
    /// Theirs by weight, bytes.
    owned_max: u64,
    /// To be lent, bytes.
    lent_max: u64,
    lent: AtomicU64,
}

impl Pool {
    /// So many bytes, half of them to be lent.
    pub fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            owned_max: bytes / 2,
            lent_max: bytes - bytes / 2,
            lent: AtomicU64::new(0),
        })
    }

    /// Bytes that one tenant can be lent.
    fn lent_to_one_max(&self) -> u64 {
        self.lent_max / 2
    }

    /// What a tenant with this part of all weights can hold at most, bytes.
    pub fn bytes_max(&self, part_of_weights: f64) -> u64 {
        self.owned(part_of_weights) + self.lent_to_one_max()
    }

    /// What is its own of that.
    fn owned(&self, part_of_weights: f64) -> u64 {
        (self.owned_max as f64 * part_of_weights.clamp(0.0, 1.0)) as u64
    }

    fn lend(&self, bytes: u64) -> bool {
        let more = |lent: u64| {
            lent.checked_add(bytes)
                .filter(|lent| *lent <= self.lent_max)
        };
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.lent.fetch_update(set, fetch, more).is_ok()
    }

    fn take_back(&self, bytes: u64) {
        self.lent.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct State {
    /// Of its own part, bytes.
    owned: u64,
    /// Lent to it, bytes.
    lent: u64,
    waiting: Vec<Waiter>,
}

/// One tenant's part.
pub struct Budget {
    pool: Arc<Pool>,
    state: Mutex<State>,
    /// Its own part, bytes.
    owned_max: AtomicU64,
    /// What it may hold at most, whatever is left.
    limit: AtomicU64,
    /// Somebody got none since the last time that some was given back.
    short: AtomicBool,
    /// How often somebody got none that could have been given, had others held less.
    refusals: AtomicU64,
}

impl Budget {
    /// Nothing is held.
    pub fn new(pool: &Arc<Pool>) -> Self {
        Self {
            pool: Arc::clone(pool),
            state: Mutex::default(),
            owned_max: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            short: AtomicBool::new(false),
            refusals: AtomicU64::new(0),
        }
    }

    /// Sets its own part by its weight among all, and what it may hold at most, if that was said.
    pub fn allot(&self, part_of_weights: f64, limit: Option<u64>) {
        let owned = self.pool.owned(part_of_weights);
        self.owned_max.store(owned, Ordering::Relaxed);
        self.limit
            .store(limit.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// What it can hold at most, bytes.
    pub fn bytes_max(&self) -> u64 {
        let owned = self.owned_max.load(Ordering::Relaxed);
        let limit = self.limit.load(Ordering::Relaxed);
        (owned + self.pool.lent_to_one_max()).min(limit)
    }

    /// What it holds, bytes.
    pub fn held(&self) -> u64 {
        let state = self.state.lock();
        state.owned + state.lent
    }

    /// Whether there was too little lately.
    pub fn short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// How often somebody got none that could have been given, had others held less. It tells of
    /// those that do not wait: what they give back of other memory ends [`Budget::short`] at once.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Has `waiter` told when something was given back. `false`: so much is left, and it was
    /// dropped.
    pub fn wait(&self, bytes: u64, waiter: Waiter) -> bool {
        let mut state = self.state.lock();
        if self.try_take(&mut state, bytes) {
            self.put_back(&mut state, bytes);
            return false;
        }
        state.waiting.push(waiter);
        true
    }

    fn try_take(&self, state: &mut State, bytes: u64) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let fits = (state.owned + state.lent).saturating_add(bytes) <= limit;
        let owned_max = self.owned_max.load(Ordering::Relaxed);
        let owned = owned_max.saturating_sub(state.owned).min(bytes);
        let lent = bytes - owned;
        let lendable = state.lent + lent <= self.pool.lent_to_one_max();
        if !fits || lent > 0 && !(lendable && self.pool.lend(lent)) {
            self.short.store(true, Ordering::Relaxed);
            if bytes <= self.bytes_max() {
                self.refusals.fetch_add(1, Ordering::Relaxed);
            }
            return false;
        }
        state.owned += owned;
        state.lent += lent;
        true
    }

    fn put_back(&self, state: &mut State, bytes: u64) {
        let lent = state.lent.min(bytes);
        state.lent -= lent;
        self.pool.take_back(lent);
        state.owned -= bytes - lent;
    }
}

impl Allowance for Budget {
    fn take(&self, bytes: u64) -> bool {
        self.try_take(&mut self.state.lock(), bytes)
    }

    fn give(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let told = {
            let mut state = self.state.lock();
            self.put_back(&mut state, bytes);
            self.short.store(false, Ordering::Relaxed);
            std::mem::take(&mut state.waiting)
        };
        told.into_iter().for_each(|waiter| waiter());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn budgets(bytes: u64, parts: &[f64]) -> Vec<Budget> {
        let pool = Pool::new(bytes);
        let budget = |part: &f64| {
            let budget = Budget::new(&pool);
            budget.allot(*part, None);
            budget
        };
        parts.iter().map(budget).collect()
    }

    #[test]
    fn who_holds_all_that_can_be_lent_keeps_nobody_from_his_own() {
        let tenants = budgets(1_000, &[0.5, 0.3, 0.2]);
        assert!(tenants[0].take(500) && !tenants[0].take(1), "250 and 250");
        assert!(tenants[1].take(400) && !tenants[1].take(1), "150 and 250");
        assert!(tenants[2].take(100) && !tenants[2].take(1), "its own");
        let told = Arc::new(AtomicU64::new(0));
        let waiter = || -> Waiter {
            let told = Arc::clone(&told);
            Box::new(move || {
                told.fetch_add(1, Ordering::Relaxed);
            })
        };
        assert!(tenants[0].wait(10, waiter()) && tenants[0].short());
        tenants[0].give(20);
        assert_eq!(told.load(Ordering::Relaxed), 1);
        assert!(!tenants[0].wait(10, waiter()) && !tenants[0].short());
        assert!(
            tenants[2].take(20),
            "what was lent to another can be lent to it"
        );
    }

    #[test]
    fn a_refusal_is_told_of_after_memory_was_given_back_unless_it_could_never_be_given() {
        let tenants = budgets(1_000, &[1.0]);
        assert!(tenants[0].take(700) && !tenants[0].take(100));
        tenants[0].give(60);
        assert!(!tenants[0].short());
        assert_eq!(tenants[0].refusals(), 1);
        assert!(!tenants[0].take(751));
        assert_eq!(tenants[0].refusals(), 1, "whatever others give back");
    }

    #[test]
    fn a_limit_holds_whatever_is_left() {
        let tenants = budgets(1_000, &[1.0]);
        tenants[0].allot(1.0, Some(30));
        assert_eq!(tenants[0].bytes_max(), 30);
        assert!(tenants[0].take(30) && !tenants[0].take(1));
        tenants[0].allot(0.0, None);
        assert_eq!(tenants[0].bytes_max(), 250);
        assert!(
            tenants[0].take(250) && !tenants[0].take(1),
            "what it owned before counts as owned"
        );
        tenants[0].give(280);
        assert_eq!(tenants[0].held(), 0);
    }

    proptest! {
        /// Whatever they take, give and are allotted, all together hold no more than there is as
        /// long as their parts come to one, and what is given back can be taken again.
        #[test]
        fn all_together_never_hold_more_than_there_is(
            steps in prop::collection::vec((0usize..4, 1u64..400, any::<bool>()), 1..200),
        ) {
            let tenants = budgets(1_000, &[0.1, 0.2, 0.3, 0.4]);
            let mut held = [0u64; 4];
            for (who, bytes, takes) in steps {
                if takes && tenants[who].take(bytes) {
                    held[who] += bytes;
                } else if !takes {
                    let bytes = bytes.min(held[who]);
                    tenants[who].give(bytes);
                    held[who] -= bytes;
                }
                prop_assert_eq!(held[who], tenants[who].held());
                prop_assert!(held.iter().sum::<u64>() <= 1_000);
            }
            for (tenant, held) in tenants.iter().zip(held) {
                tenant.give(held);
            }
            prop_assert_eq!(tenants[0].pool.lent.load(Ordering::Relaxed), 0);
            prop_assert!(tenants[3].take(450));
        }
    }
}
