//! What follows a disk, as a server follows its device.

use policy::cost::device::Vop;
use policy::depth::{Follower, SLICE_NS};
use policy::Nanos;

/// How many I/Os the disks should have, and what they are worth, from what they do.
#[derive(Debug)]
pub(super) struct Followed {
    follower: Follower,
    slice_ends: Nanos,
    /// What the disks have done.
    done: Vop,
    /// Pieces have waited in all of this slice.
    pub(super) limited: bool,
}

impl Followed {
    pub(super) fn new(depth: u32, floor_per_s: f64) -> Self {
        Self {
            follower: Follower::new(0, depth, floor_per_s),
            slice_ends: SLICE_NS,
            done: Vop::ZERO,
            limited: true,
        }
    }

    /// The permits from now on, if a slice ends here.
    pub(super) fn done(&mut self, now: Nanos, price: Vop) -> Option<u32> {
        self.done = self.done.plus(price);
        if now < self.slice_ends {
            return None;
        }
        self.slice_ends = now + SLICE_NS;
        let limited = std::mem::replace(&mut self.limited, true);
        let step = self.follower.step(now, self.done, limited);
        step.map(|step| step.permits)
    }

    /// VOPs a second that the disks do.
    pub(super) fn capacity_per_s(&self) -> f64 {
        self.follower.capacity().per_s()
    }
}
