//! What a controller sees of the device, and what it may turn.

use std::sync::atomic::{AtomicU64, Ordering};

use policy::dispatch::Others;
use stage::{Clock, LaneId, Nanos};

use super::drive::Drive;
use super::places::foreground;
use super::DeviceScheduler;

/// What work without due times did; totals.
#[derive(Debug, Default)]
pub(super) struct OfOthers {
    pub bytes: AtomicU64,
    pub waited_ns: AtomicU64,
}

impl<C: Clock + Clone + Send + Sync + 'static> DeviceScheduler<C> {
    /// How many drives it has.
    #[must_use]
    pub fn drives(&self) -> usize {
        self.drives.len()
    }

    /// What a controller gives until the next: permits of all drives together, how work without due
    /// times is treated before each, and into what pieces large I/Os are cut; `None`: as the device
    /// has it.
    pub fn steer(&self, permits: Option<u32>, others: Others, chunk_bytes: Option<u64>) {
        let chunk_bytes = chunk_bytes.unwrap_or(self.options.chunk_bytes);
        self.chunk_bytes.store(chunk_bytes, Ordering::Relaxed);
        let drives = self.drives.len() as u32;
        for drive in &self.drives {
            drive.hold(permits.map(|permits| permits.div_ceil(drives)));
            if drive.queue.others() != others {
                drive.queue.set_others(others);
            }
        }
    }

    /// Of work without due times: bytes that it moved, and time that it waited, summed, in ns.
    /// Totals.
    #[must_use]
    pub fn of_others(&self) -> (u64, u64) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (of(&self.others.bytes), of(&self.others.waited_ns))
    }

    /// What the requests of a tenant's lane were charged, in ns of a drive's time; a total.
    #[must_use]
    pub fn charged_ns(&self, tenant: u32, lane: LaneId) -> Nanos {
        let of = |drive: &Drive<C>| {
            let whom = foreground(tenant);
            let lane = drive.queue.observe_lane(whom, lane);
            lane.map(|lane| lane.charged_ns)
                .or_else(|| Some(drive.queue.observe(whom)?.charged_ns))
        };
        self.drives.iter().filter_map(of).sum()
    }
}
