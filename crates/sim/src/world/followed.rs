//! What follows a disk, as a server follows its device.

use super::disk::Disk;
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

    /// The permits at present.
    pub(super) fn permits(&self) -> u32 {
        self.follower.permits()
    }

    /// VOPs a second that the disks do.
    pub(super) fn capacity_per_s(&self) -> f64 {
        self.follower.capacity().per_s()
    }
}

impl Disk {
    /// So many permits each disk has from now on; `None`: as many as are usual.
    pub(super) fn hold(&mut self, permits: Option<u32>) {
        if std::mem::replace(&mut self.held, permits) == permits {
            return;
        }
        for (at, stage) in self.stages.iter_mut().enumerate() {
            let usual = self.followed.get(at).map_or(self.depth, Followed::permits);
            stage.set_permits(permits.unwrap_or(usual));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Plan;
    use crate::World;

    #[test]
    fn permits_that_a_controller_sets_no_longer_are_as_they_were() {
        let text = "
duration = \"1s\"
[cluster]
device = \"hdd\"
disks = 4
depth = 5
[[tenant]]
name = \"any\"
[[tenant.load]]
loop = \"closed\"
connections = 1
mix = { get = 1 }
";
        let plan = Plan::from_text(text, "held").expect("good");
        let mut world = World::new(&plan.spec);
        let disk = world.nodes[0].disk.as_mut().expect("disks");
        let mut hold = |permits| {
            disk.hold(permits);
            let each = disk.stages.iter().map(|stage| stage.permits());
            each.collect::<Vec<u32>>()
        };
        assert_eq!(hold(Some(2)), [2; 4]);
        assert_eq!(hold(None), [5; 4]);
    }
}
