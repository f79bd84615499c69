//! One drive: a queue before it, and how many I/Os it should have at a time. A device is one of
//! them, an emulated one may be several.

use super::{DeviceOptions, DeviceState, Emulated};
use crate::slo::Trail;
use parking_lot::Mutex;
use policy::cost::device::Vop;
use policy::depth::{Follower, Trial, SLICE_NS};
use stage::blocking::Blocking;
use stage::{Clock, Cost, DispatchOptions, Nanos, Observation, PrincipalId};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// A drive with its queue.
pub(super) struct Drive<C> {
    /// Who waits for it.
    pub queue: Arc<Blocking<1, C>>,
    /// An I/O ends when this would have done it.
    pub emulated: Option<Emulated<C>>,
    /// Who had it, by principal.
    pub trail: Mutex<Trail>,
    /// What it has done, in millionths of a VOP.
    done: AtomicU64,
    live: Mutex<Live>,
    /// Permits that a controller has set; 0: as many as the drive uses well.
    held: AtomicU32,
    /// When the present slice ends.
    slice_ends: AtomicU64,
}

/// What is re-estimated while it runs.
struct Live {
    follower: Follower,
    parked: u64,
    /// At the end of the last slice.
    since: Nanos,
    /// Processor time of the server, then.
    cpu_ns: u64,
    /// The last trial of depths.
    trial: Option<Trial>,
    /// Below its floor, which was said.
    below: bool,
}

impl<C: Clock + Clone + Send + Sync + 'static> Drive<C> {
    /// A drive for which nobody waits.
    pub fn new(options: &DeviceOptions, clock: C, emulated: Option<Emulated<C>>) -> Self {
        let floor_per_s = options.supply.sweep.floor_per_s();
        let mut dispatch = DispatchOptions::device(
            &options.costs,
            floor_per_s,
            options.depth,
            options.chunk_bytes,
        );
        dispatch.discipline = options.discipline;
        let now = clock.now();
        Self {
            queue: Blocking::new(dispatch, clock),
            emulated,
            trail: Mutex::default(),
            done: AtomicU64::new(0),
            live: Mutex::new(Live {
                follower: Follower::new(now, options.depth, floor_per_s),
                parked: 0,
                since: now,
                cpu_ns: 0,
                trial: None,
                below: false,
            }),
            held: AtomicU32::new(0),
            slice_ends: AtomicU64::new(now + SLICE_NS),
        }
    }

    /// So many permits it has from now on; `None`: as many as it uses well.
    pub fn hold(&self, permits: Option<u32>) {
        let permits = permits.unwrap_or(0);
        if self.held.swap(permits, Ordering::Relaxed) != permits {
            let own = self.live.lock().follower.permits();
            self.queue
                .set_permits(if permits == 0 { own } else { permits });
        }
    }

    /// It has done an I/O of this price, for whom it had worked since `began`.
    pub fn done(&self, whom: PrincipalId, began: Nanos, now: Nanos, price: Vop) {
        self.trail.lock().note(whom.0, began, now);
        self.done.fetch_add(price.0, Ordering::Relaxed);
    }

    /// The drive at present.
    pub fn state(&self) -> DeviceState {
        let live = self.live.lock();
        DeviceState {
            permits: live.follower.permits(),
            in_flight: self.queue.in_flight(),
            queued: self.queue.queued(),
            capacity_per_s: live.follower.capacity().per_s(),
            missing_per_s: live.follower.capacity().missing_per_s(),
            trial: live.trial,
        }
    }

    /// At the end of a slice, whichever I/O ends then lets the depth and the capacity follow: no
    /// thread of its own, and none is needed while nothing happens.
    pub fn follow(&self, now: Nanos, floor_per_s: f64) {
        let ends = self.slice_ends.load(Ordering::Relaxed);
        let next = now + SLICE_NS;
        let swap = |ends| {
            let order = Ordering::Relaxed;
            self.slice_ends.compare_exchange(ends, next, order, order)
        };
        if now < ends || swap(ends).is_err() {
            return;
        }
        let mut live = self.live.lock();
        let (done, parked) = (Vop(self.done.load(Ordering::Relaxed)), self.queue.parked());
        // Who waits for a rate, or because others' work is bounded, does not wait for the drive.
        let full = self.queue.in_flight() >= self.queue.permits();
        let limited = full && parked > live.parked && self.queue.queued() > 0;
        let cpu_ns = threads::process_cpu_ns();
        let used_ns = cpu_ns - std::mem::replace(&mut live.cpu_ns, cpu_ns);
        let since = std::mem::replace(&mut live.since, now);
        live.parked = parked;
        let Some(step) = live.follower.step(now, done, limited) else {
            return;
        };
        live.trial = step.trial.or(live.trial);
        let missing = live.follower.capacity().missing_per_s();
        let said = std::mem::replace(&mut live.below, missing.is_some());
        drop(live);
        if self.held.load(Ordering::Relaxed) == 0 {
            self.queue.set_permits(step.permits);
        }
        if let Some(missing_per_s) = missing.filter(|_| !said) {
            let processors = used_ns as f64 / (now - since) as f64;
            tracing::warn!(floor_per_s, missing_per_s, processors, "while I/Os wait, the device does less than its calibrated floor: what was promised on it cannot all be kept; if as many processors are in use as the server has, these are short; else calibrate again if this stays");
        }
    }
}

/// A principal before two drives: its queues and totals added up, of its debts the larger.
pub(super) fn together(all: Observation<1>, one: Observation<1>) -> Observation<1> {
    Observation {
        queued: all.queued + one.queued,
        in_flight: all.in_flight + one.in_flight,
        granted: all.granted + one.granted,
        refused: all.refused + one.refused,
        rejected: all.rejected + one.rejected,
        waited_ns: all.waited_ns.saturating_add(one.waited_ns),
        occupied_ns: all.occupied_ns.saturating_add(one.occupied_ns),
        busy_ns: all.busy_ns.saturating_add(one.busy_ns),
        consumed: Cost([all.consumed.0[0].saturating_add(one.consumed.0[0])]),
        charged_ns: all.charged_ns.saturating_add(one.charged_ns),
        forgiven_ns: all.forgiven_ns.saturating_add(one.forgiven_ns),
        debt_ns: all.debt_ns.max(one.debt_ns),
        best_effort: all.best_effort || one.best_effort,
        ..all
    }
}
