//! A dispatch with permits and observations.

use crate::permit::{Claim, Returns, Wake};
use crate::Permit;
use policy::dispatch::{
    Allocation, Consumed, Discipline, Dispatch, DispatchOptions, Grant, LaneAllocation, LaneId,
    LaneObservation, Observation, Others, Terms, Verdict,
};
use policy::lend::Need;
use policy::{Cost, Nanos, PrincipalId};
use std::sync::Arc;

/// An item that may go now.
#[derive(Debug)]
pub struct Admitted<T, const R: usize> {
    /// Whose it is.
    pub principal: PrincipalId,
    /// Its class.
    pub class: u8,
    /// The item.
    pub item: T,
    /// How long it was queued.
    pub waited_ns: Nanos,
    /// How much of each resource the turn may use; work that needs more is admitted again.
    pub budget: Cost<R>,
    /// Serve or refuse.
    pub verdict: Verdict,
    /// See [`policy::dispatch::Grant::in_credit`].
    pub in_credit: bool,
    /// To be settled when the turn is over.
    pub permit: Permit,
}

/// The answer to "who is next?".
#[derive(Debug)]
pub enum Next<T, const R: usize> {
    /// This one.
    Admitted(Admitted<T, R>),
    /// Nobody before this time, unless something is admitted, settled or configured.
    At(Nanos),
    /// Nobody until something is admitted, settled or configured.
    Idle,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    class: u8,
}

/// The stage before one resource, on one thread. `T` is what waits, `R` the number of resources in
/// a cost.
#[derive(Debug)]
pub struct Stage<T, const R: usize> {
    dispatch: Dispatch<Waiting<T>, R>,
    home: Arc<Returns>,
    /// References to `home` for the next permits, so that a turn that ends well counts no
    /// references.
    homes: Vec<Arc<Returns>>,
    /// Room for permits that were dropped.
    dropped: Vec<Claim>,
}

impl<T, const R: usize> Stage<T, R> {
    /// A stage in which nobody waits.
    ///
    /// # Panics
    /// If `options` are as [`Dispatch::new`] says.
    #[must_use]
    pub fn new(options: DispatchOptions<R>) -> Self {
        Stage {
            dispatch: Dispatch::new(options),
            home: Arc::new(Returns::new(None)),
            homes: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// The same, calling `wake` whenever a permit was dropped, on the thread that dropped it, so
    /// that the stage's thread can be told to ask again. Call it before anything is admitted.
    #[must_use]
    pub fn with_wake(mut self, wake: Wake) -> Self {
        self.home = Arc::new(Returns::new(Some(wake)));
        self
    }

    /// See [`Dispatch::configure`].
    pub fn configure(&mut self, now: Nanos, principal: PrincipalId, allocation: &Allocation) {
        self.dispatch.configure(now, principal, allocation);
    }

    /// Forgets a principal and returns its queued items, oldest first.
    pub fn remove(&mut self, now: Nanos, principal: PrincipalId) -> Vec<T> {
        let waiting = self.dispatch.remove(now, principal);
        waiting.into_iter().map(|waiting| waiting.item).collect()
    }

    /// See [`Dispatch::configure_lane`].
    pub fn configure_lane(
        &mut self,
        now: Nanos,
        principal: PrincipalId,
        lane: LaneId,
        allocation: &LaneAllocation,
    ) {
        self.dispatch
            .configure_lane(now, principal, lane, allocation);
    }

    /// See [`Dispatch::remove_lane`].
    pub fn remove_lane(&mut self, now: Nanos, principal: PrincipalId, lane: LaneId) {
        self.dispatch.remove_lane(now, principal, lane);
    }

    /// See [`Dispatch::set_others`].
    pub fn set_others(&mut self, now: Nanos, others: Others) {
        self.dispatch.set_others(now, others);
    }

    /// See [`Dispatch::end_stream`].
    pub fn end_stream(&mut self, principal: PrincipalId, stream: u32) {
        self.dispatch.end_stream(principal, stream);
    }

    /// See [`Dispatch::others`].
    #[must_use]
    pub fn others(&self) -> Others {
        self.dispatch.others()
    }

    /// Queues an item; its class goes with its permit.
    ///
    /// # Errors
    /// Gives the item back if the principal's queue is full or the principal unknown.
    pub fn enqueue(
        &mut self,
        now: Nanos,
        principal: PrincipalId,
        class: u8,
        item: T,
    ) -> Result<(), T> {
        self.enqueue_on(now, principal, class, Terms::default(), item)
    }

    /// The same in a lane, or with a due time.
    ///
    /// # Errors
    /// Gives the item back if the lane is full or the principal unknown.
    pub fn enqueue_on(
        &mut self,
        now: Nanos,
        principal: PrincipalId,
        class: u8,
        terms: Terms,
        item: T,
    ) -> Result<(), T> {
        let waiting = Waiting { item, class };
        self.dispatch
            .enqueue_on(now, principal, terms, waiting)
            .map_err(|waiting| waiting.item)
    }

    /// Who is next. Permits that were dropped since the last call are taken back first.
    pub fn next(&mut self, now: Nanos) -> Next<T, R> {
        self.reclaim(now);
        match self.dispatch.next(now) {
            policy::dispatch::Next::Grant(grant) => Next::Admitted(self.admitted(grant)),
            policy::dispatch::Next::At(at) => Next::At(at),
            policy::dispatch::Next::Idle => Next::Idle,
        }
    }

    fn admitted(&mut self, grant: Grant<Waiting<T>, R>) -> Admitted<T, R> {
        let Grant {
            principal,
            item: Waiting { item, class },
            ..
        } = grant;
        let claim = Claim {
            ticket: grant.ticket,
            class,
        };
        let home = self.homes.pop().unwrap_or_else(|| Arc::clone(&self.home));
        Admitted {
            principal,
            class,
            item,
            waited_ns: grant.waited_ns,
            budget: grant.budget,
            verdict: grant.verdict,
            in_credit: grant.in_credit,
            permit: Permit::new(claim, home),
        }
    }

    /// Ends a turn: the permit is free again, and what was set aside becomes what was used. A
    /// permit of another stage is returned to that one, at its estimate.
    pub fn settle(&mut self, now: Nanos, permit: Permit, actual: Cost<R>) {
        let Some((claim, home)) = permit.claim(&self.home) else {
            return;
        };
        self.homes.push(home);
        self.dispatch.settle(now, claim.ticket, actual);
    }

    /// Takes back permits that were dropped.
    fn reclaim(&mut self, now: Nanos) {
        let mut dropped = std::mem::take(&mut self.dropped);
        self.home.take(&mut dropped);
        for claim in dropped.drain(..) {
            self.dispatch.abandon(now, claim.ticket);
        }
        self.dropped = dropped;
    }

    /// See [`Dispatch::permits_missing`].
    #[must_use]
    pub fn permits_missing(&self) -> u64 {
        self.dispatch.permits_missing()
    }

    /// See [`Dispatch::charge`].
    pub fn charge(&mut self, now: Nanos, principal: PrincipalId, cost: Cost<R>) {
        self.dispatch.charge(now, principal, cost);
    }

    /// See [`Dispatch::report`].
    pub fn report(&mut self, report: &mut Vec<Consumed>) {
        self.dispatch.report(report);
    }

    /// See [`Dispatch::absorb`].
    pub fn absorb(&mut self, now: Nanos, remote: &[Consumed]) {
        self.dispatch.absorb(now, remote);
    }

    /// See [`Dispatch::set_discipline`].
    pub fn set_discipline(&mut self, now: Nanos, discipline: Discipline) {
        self.dispatch.set_discipline(now, discipline);
    }

    /// The rule in force.
    #[must_use]
    pub fn discipline(&self) -> Discipline {
        self.dispatch.discipline()
    }

    /// See [`Dispatch::need`].
    #[must_use]
    pub fn need(&self) -> Need {
        self.dispatch.need()
    }

    /// See [`Dispatch::hold`].
    pub fn hold(&mut self, permits: u32) {
        self.dispatch.hold(permits);
    }

    /// See [`Dispatch::overdrawn`].
    #[must_use]
    pub fn overdrawn(&self) -> bool {
        self.dispatch.overdrawn()
    }

    /// Units of work that may be outstanding, beside those of principals in credit, where none are
    /// lent.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.dispatch.permits()
    }

    /// See [`Dispatch::set_permits`].
    pub fn set_permits(&mut self, permits: u32) {
        self.dispatch.set_permits(permits);
    }

    /// See [`Dispatch::set_permits_and_extra`].
    pub fn set_permits_and_extra(&mut self, permits: u32) {
        self.dispatch.set_permits_and_extra(permits);
    }

    /// Items queued, of all principals.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.dispatch.queued()
    }

    /// Items of one principal that are queued.
    #[must_use]
    pub fn queued_of(&self, principal: PrincipalId) -> u64 {
        self.dispatch.queued_of(principal)
    }

    /// Permits out, of all principals; dropped ones count until the next decision.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.dispatch.in_flight()
    }

    /// See [`Dispatch::observe`].
    #[must_use]
    pub fn observe(&self, now: Nanos, principal: PrincipalId) -> Option<Observation<R>> {
        self.dispatch.observe(now, principal)
    }

    /// See [`Dispatch::observe_lane`].
    #[must_use]
    pub fn observe_lane(
        &self,
        now: Nanos,
        principal: PrincipalId,
        lane: LaneId,
    ) -> Option<LaneObservation> {
        self.dispatch.observe_lane(now, principal, lane)
    }
}
