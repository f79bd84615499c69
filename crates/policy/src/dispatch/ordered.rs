//! A dispatch whose principals order their own work.
//!
//! Fairness first, then order inside the tenant (DESIGN §1): the dispatch decides whose turn it is
//! and what that is charged, and knows only *that* a principal has work; which piece of it goes is
//! decided by the principal's own [`Queue`]. So a tenant may speed up its small multigets, and can
//! take nothing of another's share by it: the charge of a turn is what it really used, whatever its
//! tag said.

use super::{Allocation, Dispatch, DispatchOptions, Grant, Next, Ticket};
use crate::cost::{Cost, Nanos, PrincipalId};
use crate::multiget::{Levels, Options, Queue, Tag};

/// [`Dispatch`] and, in place of each principal's queue, a [`Queue`].
///
/// A limit that refuses ([`super::Verdict::Refuse`]) does so when *somebody's* wait is over; the
/// item refused is the one whose turn it is.
#[derive(Debug)]
pub struct Ordered<T, const R: usize> {
    dispatch: Dispatch<(), R>,
    /// By principal.
    queues: Vec<Option<Queue<T>>>,
    order: Options,
}

impl<T, const R: usize> Ordered<T, R> {
    /// An empty dispatch whose principals order their work by `order`.
    ///
    /// # Panics
    /// As [`Dispatch::new`].
    #[must_use]
    pub fn new(options: DispatchOptions<R>, order: Options) -> Self {
        Ordered {
            dispatch: Dispatch::new(options),
            queues: Vec::new(),
            order,
        }
    }

    /// Sets what a principal is entitled to; see [`Dispatch::configure`].
    ///
    /// # Panics
    /// If `principal` is not below [`PrincipalId::END`].
    pub fn configure(&mut self, now: Nanos, principal: PrincipalId, allocation: &Allocation) {
        self.dispatch.configure(now, principal, allocation);
        let index = principal.index();
        if self.queues.len() <= index {
            self.queues.resize_with(index + 1, || None);
        }
        self.queues[index].get_or_insert_with(|| Queue::new(self.order.clone()));
    }

    /// Forgets a principal and returns its queued items in the order in which they would have gone.
    pub fn remove(&mut self, now: Nanos, principal: PrincipalId) -> Vec<T> {
        self.dispatch.remove(now, principal);
        let queue = self
            .queues
            .get_mut(principal.index())
            .and_then(Option::take);
        let mut queue = queue.into_iter().collect::<Vec<_>>();
        let items = queue
            .iter_mut()
            .flat_map(|queue| std::iter::from_fn(|| queue.pop(now)));
        items.map(|taken| taken.item).collect()
    }

    /// Queues an item that is expected to cost `cost`, in the unit of its tag.
    ///
    /// # Errors
    /// Gives the item back if the queue is full or the principal unknown.
    pub fn enqueue(
        &mut self,
        now: Nanos,
        principal: PrincipalId,
        tag: Tag,
        cost: u64,
        item: T,
    ) -> Result<(), T> {
        match self.queues.get_mut(principal.index()) {
            Some(Some(queue)) if self.dispatch.enqueue(now, principal, ()).is_ok() => {
                queue.push(now, tag, cost, item);
                Ok(())
            }
            _ => Err(item),
        }
    }

    /// Chooses the principal, then its item; see [`Dispatch::next`].
    pub fn next(&mut self, now: Nanos) -> Next<T, R> {
        loop {
            let grant = match self.dispatch.next(now) {
                Next::Grant(grant) => grant,
                Next::At(at) => return Next::At(at),
                Next::Idle => return Next::Idle,
            };
            let queue = self.queues.get_mut(grant.principal.index());
            match queue.and_then(|queue| queue.as_mut()?.pop(now)) {
                Some(taken) => {
                    return Next::Grant(Grant {
                        principal: grant.principal,
                        item: taken.item,
                        waited_ns: taken.waited_ns,
                        budget: grant.budget,
                        verdict: grant.verdict,
                        in_credit: grant.in_credit,
                        ticket: grant.ticket,
                    })
                }
                // Both hold as many; were it otherwise, the turn would not count.
                None => self.dispatch.settle(now, grant.ticket, Cost::ZERO),
            }
        }
    }

    /// Ends a turn; see [`Dispatch::settle`].
    pub fn settle(&mut self, now: Nanos, ticket: Ticket, actual: Cost<R>) {
        self.dispatch.settle(now, ticket, actual);
    }

    /// Other levels for one principal's queue; queued items keep theirs.
    pub fn set_levels(&mut self, principal: PrincipalId, levels: &Levels) {
        if let Some(Some(queue)) = self.queues.get_mut(principal.index()) {
            queue.set_levels(levels.clone());
        }
    }

    /// Cost of what a principal has queued in `level` and in faster ones.
    #[must_use]
    pub fn backlog_up_to(&self, principal: PrincipalId, level: usize) -> u64 {
        let queue = self.queues.get(principal.index()).and_then(Option::as_ref);
        queue.map_or(0, |queue| queue.backlog_up_to(level))
    }

    /// The shares, rates and permits beneath: to observe.
    #[must_use]
    pub fn dispatch(&self) -> &Dispatch<(), R> {
        &self.dispatch
    }
}
