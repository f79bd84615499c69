//! What tenants and their lanes are entitled to at the device, put to the queue of each drive.

use policy::provision::VopRate;
use policy::slo::control::reserved_at;
use stage::{Allocation, Clock, LaneAllocation, LaneId, Limit, Nanos, PrincipalId};
use std::sync::atomic::Ordering;

use super::DeviceScheduler;
use crate::slo::lanes_beyond;

/// The least part of its tenant's weight for background work (thesis 6.4: 10 %).
const BACKGROUND: f64 = 0.1;
/// Where their rate is bounded, compactions save up so much while there are none, ns: a piece or
/// two.
const COMPACTION_BURST_NS: Nanos = 10_000_000;
/// A piece of one that has waited so long goes on, whatever the rate, ns.
const COMPACTION_WAIT_MAX_NS: Nanos = 10_000_000_000;

/// A tenant's place at the device: both parts of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Place {
    weight: f64,
    /// Permits kept free for it, of all drives together.
    permits: u32,
    /// The part of the device's time that is its before anybody's share, 0 to 1.
    part: f64,
    pub reserved: VopRate,
    /// What part of what it causes is done later.
    pub later_part: Option<f64>,
}

pub(super) fn foreground(tenant: u32) -> PrincipalId {
    PrincipalId(2 * tenant)
}

pub(super) fn background(tenant: u32) -> PrincipalId {
    PrincipalId(2 * tenant + 1)
}

impl<C: Clock + Clone + Send + Sync + 'static> DeviceScheduler<C> {
    /// A tenant's share, at any time. Tenants are numbered densely from 0, as [`Disk::number`]
    /// does.
    pub fn configure(&self, tenant: u32, weight: f64) {
        self.ledger.open(tenant);
        let mut places = self.places.lock();
        let place = places.entry(tenant).or_default();
        place.weight = weight;
        self.place(tenant, *place);
    }

    /// Permits kept free for a tenant's requests, and the part of the device's time that is theirs
    /// before anybody's share, 0 to 1.
    pub fn keep_free(&self, tenant: u32, permits: u32, part: f64) {
        let mut places = self.places.lock();
        let place = places.entry(tenant).or_default();
        if (place.permits, place.part) != (permits, part) {
            (place.permits, place.part) = (permits, part);
            self.place(tenant, *place);
        }
    }

    /// The lanes of a tenant's requests, from the first; none: it has no workloads.
    pub fn set_lanes(&self, tenant: u32, lanes: &[LaneAllocation]) {
        for drive in &self.drives {
            for (number, lane) in (0..).zip(lanes) {
                let id = LaneId(number);
                drive.queue.configure_lane(foreground(tenant), id, lane);
            }
            for id in lanes_beyond(lanes.len()) {
                drive.queue.remove_lane(foreground(tenant), id);
            }
        }
    }

    /// Tells the queue. Called with the places locked, so that the last word is the last.
    pub(super) fn place(&self, tenant: u32, place: Place) {
        // Prices and rates are in millionths of a VOP. Files are spread evenly over the drives.
        let drives = self.drives.len() as f64;
        let rate = |per_s: f64| Some(per_s * 1e6 / drives).filter(|per_s| *per_s > 0.0);
        let weight = place.weight * (1.0 + BACKGROUND);
        let least = BACKGROUND / (1.0 + BACKGROUND);
        // The rest is for requests: who only writes must not have nothing left for a read.
        let later_part = place.later_part.unwrap_or(least).clamp(least, 1.0 - least);
        let held_per_s = match place.part > 0.0 {
            true => place.part * self.state().capacity_per_s,
            false => 0.0,
        };
        let requests = Allocation {
            reservation_per_s: rate(place.reserved.foreground.max(held_per_s)),
            ..Allocation::share(weight * (1.0 - later_part))
        };
        let most = self.compaction_per_s.load(Ordering::Relaxed);
        let most = (most < u64::MAX).then_some(most as f64 / 1e6);
        let limit = Limit {
            requests_per_s: most.and_then(|most| rate(most.max(place.reserved.background))),
            burst_ns: COMPACTION_BURST_NS,
            max_wait_ns: COMPACTION_WAIT_MAX_NS,
            ..Limit::default()
        };
        let later = Allocation {
            reservation_per_s: rate(place.reserved.background),
            limit,
            ..Allocation::share(weight * later_part)
        };
        let drives = self.drives.len() as u32;
        for (number, drive) in (0..).zip(&self.drives) {
            let requests = Allocation {
                reserved_permits: reserved_at(number, drives, place.permits, tenant),
                ..requests
            };
            drive.queue.configure(foreground(tenant), &requests);
            drive.queue.configure(background(tenant), &later);
        }
    }

    /// Forgets a tenant. I/Os of its that wait go on unscheduled.
    pub fn remove(&self, tenant: u32) {
        for drive in &self.drives {
            drive.queue.remove(foreground(tenant));
            drive.queue.remove(background(tenant));
        }
        self.ledger.close(tenant);
        self.places.lock().remove(&tenant);
        self.promises.lock().remove(tenant);
    }
}
