//! Setting up a principal's lanes, and queueing into them.

use super::lanes::Lanes;
use super::slot::Queued;
use super::{Dispatch, LaneAllocation, LaneId, LaneObservation, Terms};
use crate::cost::{Nanos, PrincipalId};

impl<T, const R: usize> Dispatch<T, R> {
    /// Sets what a lane of a principal is entitled to, and makes it if it is not there. What is
    /// queued and used up is kept. An unknown principal has no lanes.
    ///
    /// # Panics
    /// If `lane` is not below [`LaneId::END`].
    pub fn configure_lane(
        &mut self,
        now: Nanos,
        principal: PrincipalId,
        lane: LaneId,
        allocation: &LaneAllocation,
    ) {
        assert!(lane.0 < LaneId::END, "lanes are numbered densely");
        if self.is_configured(principal) {
            let index = principal.index();
            self.open_lanes(now, index);
            if let Some(lanes) = &mut self.slots[index].lanes {
                lanes.configure(now, lane, allocation);
            }
            self.place(now, index);
        }
    }

    /// Forgets a lane. What it has queued goes on in [`LaneId::REST`], which always stays.
    pub fn remove_lane(&mut self, now: Nanos, principal: PrincipalId, lane: LaneId) {
        let slot = self.slots.get_mut(principal.index());
        if let Some(lanes) = slot.and_then(|slot| slot.lanes.as_mut()) {
            lanes.remove(lane);
            self.place(now, principal.index());
        }
    }

    /// The totals of a lane at `now`; `None` if the principal has no such lane.
    #[must_use]
    pub fn observe_lane(
        &self,
        now: Nanos,
        principal: PrincipalId,
        lane: LaneId,
    ) -> Option<LaneObservation> {
        let slot = self.slots.get(principal.index())?;
        slot.lanes.as_ref()?.observe(now, lane)
    }

    /// Makes lanes of a principal's one queue, if it has none yet.
    fn open_lanes(&mut self, now: Nanos, index: usize) {
        let slot = &mut self.slots[index];
        if slot.lanes.is_some() {
            return;
        }
        let (round_ns, estimate_max) = (self.options.round_ns, self.bounds.estimate_max);
        let queue = std::mem::take(&mut slot.queue);
        slot.lanes = Some(Box::new(Lanes::new(round_ns, estimate_max, queue, now)));
        slot.classify();
        // The set of those with work may hold it without (`Ready::remove_plain`).
        self.ready.remove(index);
        self.place(now, index);
    }

    #[inline(never)]
    pub(super) fn enqueue_in_lane(
        &mut self,
        now: Nanos,
        index: usize,
        terms: Terms,
        item: T,
    ) -> Result<(), T> {
        let idle = self.queued == 0 && self.permits.in_flight() == 0;
        self.open_lanes(now, index);
        let slot = &mut self.slots[index];
        let room = slot.lanes.as_mut().filter(|lanes| {
            let queue_max = self.options.queue_max;
            !lanes.full(terms.lane, queue_max)
        });
        let Some(lanes) = room else {
            slot.tally.rejected += 1;
            return Err(item);
        };
        let arrival = self.arrivals.arrive();
        let queued = Queued {
            item,
            since: now,
            arrival,
        };
        lanes.push(terms, queued);
        slot.queued += 1;
        self.queued += 1;
        if slot.queued == 1 {
            self.rejoin(now, index, idle);
        }
        self.place(now, index);
        Ok(())
    }
}
