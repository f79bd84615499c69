//! What a controller sees of the device, and what it may turn.

use std::sync::atomic::{AtomicU64, Ordering};

use policy::cost::device::Vop;
use policy::dispatch::Others;
use policy::slo::control::permits_each;
use stage::{Clock, LaneId, Nanos};

use super::drive::Drive;
use super::places::foreground;
use super::DeviceScheduler;

/// What work without due times did; totals.
#[derive(Debug, Default)]
pub(super) struct OfOthers {
    pub bytes: AtomicU64,
    pub waited_ns: AtomicU64,
    pub pieces: AtomicU64,
    pub out_ns: AtomicU64,
    pub compaction: AtomicU64,
}

/// The same as it is at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OthersDid {
    /// Bytes that it moved.
    pub bytes: u64,
    /// Time that it waited, summed, ns.
    pub waited_ns: u64,
    /// Pieces of it.
    pub pieces: u64,
    /// Time that they were out at the device, summed, ns.
    pub out_ns: u64,
    /// What compactions cost, in millionths of a VOP, without those that writers wait for.
    pub compaction: u64,
}

impl OfOthers {
    /// A piece has ended that was out for so long.
    pub(super) fn ended(&self, bytes: u64, out_ns: Nanos) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.pieces.fetch_add(1, Ordering::Relaxed);
        self.out_ns.fetch_add(out_ns, Ordering::Relaxed);
    }

    /// A compaction had this done.
    pub(super) fn compacted(&self, price: Vop) {
        self.compaction.fetch_add(price.0, Ordering::Relaxed);
    }
}

impl OthersDid {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
            pieces: self.pieces.saturating_sub(earlier.pieces),
            out_ns: self.out_ns.saturating_sub(earlier.out_ns),
            compaction: self.compaction.saturating_sub(earlier.compaction),
        }
    }
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
        self.streams.store(others.run_ns > 0, Ordering::Relaxed);
        let drives = self.drives.len() as u32;
        for drive in &self.drives {
            drive.hold(permits.map(|permits| permits_each(permits, drives)));
            if drive.queue.others() != others {
                drive.queue.set_others(others);
            }
        }
    }

    /// Compactions of each tenant may have this part of the device's time from now on, or what was
    /// reserved for them, if that is more; `None`: any. Those that writers wait for are not
    /// bounded, nor is a piece that has waited for 10 s.
    pub fn bound_compaction(&self, part: Option<f64>) {
        let capacity = self.state().capacity_per_s * 1e6;
        let per_s = part.map_or(u64::MAX, |part| (part * capacity) as u64);
        let places = self.places.lock();
        let before = self.compaction_per_s.load(Ordering::Relaxed);
        // The capacity is estimated anew all the time.
        if before.abs_diff(per_s) > before / 20 {
            self.compaction_per_s.store(per_s, Ordering::Relaxed);
            for (tenant, place) in places.iter() {
                self.place(*tenant, *place);
            }
        }
    }

    /// What work without due times did; totals.
    #[must_use]
    pub fn of_others(&self) -> OthersDid {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        OthersDid {
            bytes: of(&self.others.bytes),
            waited_ns: of(&self.others.waited_ns),
            pieces: of(&self.others.pieces),
            out_ns: of(&self.others.out_ns),
            compaction: of(&self.others.compaction),
        }
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
