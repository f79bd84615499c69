//! The device stage: every I/O of every tenant's database, priced in VOPs and queued before one device.
//!
//! RocksDB's threads and the handlers come in through [`engine::device::DeviceStage`]. An I/O that may wait takes a turn of
//! its tenant at one [`Blocking`] stage: fair shares over VOPs, permits for as many as the device uses well.
//! A tenant has two principals there: foreground, and background (flush, compaction) with a tenth of its weight.
//! Thesis 6.4 allows compaction at most a tenth of a tenant's VOPs; here that is what it gets at least while its
//! tenant and others are busy, so that debt drains, and it may have what nobody wants. Background work that writers
//! wait for already goes as foreground.
//!
//! What may not wait (metadata, written under a database's mutex) is charged afterwards.

mod emulated;
mod ledger;

pub use emulated::Emulated;
pub use ledger::{tag_of, Sum, Used};

use engine::device::{Activity, DeviceIo, DeviceStage, Ended};
use ledger::Ledger;
use parking_lot::Mutex;
use policy::cost::device::{CostModel, Vop};
use policy::depth::{Capacity, Depth, Slice, Trial};
use stage::blocking::Blocking;
use stage::{Allocation, Clock, Cost, Discipline, DispatchOptions, Nanos, Permit, PrincipalId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// How the device is used.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// What I/Os cost.
    pub costs: CostModel,
    /// VOPs a second that are left when reads and writes mix badly.
    pub floor_per_s: f64,
    /// I/Os outstanding at the start; the depth is found from there.
    pub depth: u32,
    /// Larger I/Os are cut into pieces of this many bytes.
    pub chunk_bytes: u64,
    /// Who is next.
    pub discipline: Discipline,
}

/// A part of its tenant's weight for background work (thesis 6.4: 10 %).
const BACKGROUND: f64 = 0.1;

thread_local! {
    /// What this thread was granted and has not given back. A thread does one I/O at a time; they nest at most.
    static HELD: RefCell<Vec<Permit>> = const { RefCell::new(Vec::new()) };
}

/// How often the depth and the capacity follow: some hundred I/Os of an SSD, a few of a hard disk.
const SLICE_NS: Nanos = 100_000_000;

/// Tokens of I/Os that hold a permit, and of those that do not.
const HOLDS: u64 = 1;
const FREE: u64 = 0;

/// The stage of a server, on the server's clock.
pub type Device = DeviceScheduler<Arc<dyn Clock + Send + Sync>>;

/// The one stage before one device.
pub struct DeviceScheduler<C> {
    options: DeviceOptions,
    queue: Arc<Blocking<1, C>>,
    ledger: Ledger,
    numbers: Mutex<BTreeMap<String, u32>>,
    live: Mutex<Live>,
    emulated: Option<Emulated<C>>,
    clock: C,
    /// When the present slice ends.
    slice_ends: AtomicU64,
}

/// What is re-estimated while it runs.
struct Live {
    depth: Depth,
    capacity: Capacity,
    since: Nanos,
    done: Vop,
    parked: u64,
    /// The last trial of depths.
    trial: Option<Trial>,
    /// Below its floor, which was said.
    below: bool,
}

/// The device at present.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceState {
    /// I/Os that may be outstanding.
    pub permits: u32,
    /// I/Os outstanding.
    pub in_flight: u32,
    /// I/Os that wait.
    pub queued: u64,
    /// VOPs a second that the device does under the present mix.
    pub capacity_per_s: f64,
    /// By how much that is less than the floor, VOPs a second.
    pub missing_per_s: Option<f64>,
    /// The last trial of depths.
    pub trial: Option<Trial>,
}

impl<C> std::fmt::Debug for DeviceScheduler<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceScheduler")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

fn foreground(tenant: u32) -> PrincipalId {
    PrincipalId(2 * tenant)
}

fn background(tenant: u32) -> PrincipalId {
    PrincipalId(2 * tenant + 1)
}

/// For whom an I/O waits.
fn principal(io: &DeviceIo) -> PrincipalId {
    if io.activity.background() && !io.urgent {
        background(io.principal)
    } else {
        foreground(io.principal)
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> DeviceScheduler<C> {
    /// A stage without tenants. With `emulated`, an I/O ends when that device would have done it.
    #[must_use]
    pub fn new(options: DeviceOptions, clock: C, emulated: Option<Emulated<C>>) -> Arc<Self> {
        let mut dispatch = DispatchOptions::device(
            &options.costs,
            options.floor_per_s,
            options.depth,
            options.chunk_bytes,
        );
        dispatch.discipline = options.discipline;
        let live = Live {
            depth: Depth::new(options.depth),
            capacity: Capacity::new(options.floor_per_s),
            since: clock.now(),
            done: Vop::ZERO,
            parked: 0,
            trial: None,
            below: false,
        };
        Arc::new(DeviceScheduler {
            queue: Blocking::new(dispatch, Activity::ALL.len(), clock.clone(), ()),
            ledger: Ledger::default(),
            numbers: Mutex::default(),
            live: Mutex::new(live),
            emulated,
            slice_ends: AtomicU64::new(clock.now() + SLICE_NS),
            clock,
            options,
        })
    }

    /// A tenant's number, the same for the same name: its database may stay open while it is removed and added again.
    #[must_use]
    pub fn number(&self, tenant: &str) -> u32 {
        let mut numbers = self.numbers.lock();
        let next = numbers.len() as u32;
        *numbers.entry(tenant.to_owned()).or_insert(next)
    }

    /// A tenant's share, at any time. Tenants are numbered densely from 0, as [`DeviceScheduler::number`] does.
    pub fn configure(&self, tenant: u32, weight: f64, reserved_permits: u32) {
        let allocation = Allocation {
            reserved_permits,
            ..Allocation::share(weight)
        };
        self.ledger.open(tenant);
        self.queue.configure(foreground(tenant), &allocation);
        let share = Allocation::share(weight * BACKGROUND);
        self.queue.configure(background(tenant), &share);
    }

    /// Forgets a tenant. I/Os of its that wait go on unscheduled.
    pub fn remove(&self, tenant: u32) {
        self.queue.remove(foreground(tenant));
        self.queue.remove(background(tenant));
        self.ledger.close(tenant);
    }

    /// What a tenant used so far, by class and by what RocksDB did it for; `None` if it is unknown.
    #[must_use]
    pub fn used(&self, tenant: u32) -> Option<Used> {
        self.ledger.used(tenant)
    }

    /// The device at present.
    #[must_use]
    pub fn state(&self) -> DeviceState {
        let live = self.live.lock();
        DeviceState {
            permits: live.depth.permits(),
            in_flight: self.queue.in_flight(),
            queued: self.queue.queued(),
            capacity_per_s: live.capacity.per_s(),
            missing_per_s: live.capacity.missing_per_s(),
            trial: live.trial,
        }
    }

    /// At the end of a slice, whichever I/O ends then lets the depth and the capacity follow: no thread of its
    /// own, and none is needed while nothing happens.
    fn follow(&self) {
        let (now, ends) = (self.clock.now(), self.slice_ends.load(Ordering::Relaxed));
        let next = now + SLICE_NS;
        let swap = |ends| {
            let order = Ordering::Relaxed;
            self.slice_ends.compare_exchange(ends, next, order, order)
        };
        if now < ends || swap(ends).is_err() {
            return;
        }
        let mut live = self.live.lock();
        let (done, parked) = (self.ledger.total(), self.queue.parked());
        let slice = Slice {
            done: Vop(done.0.saturating_sub(live.done.0)),
            ns: now.saturating_sub(live.since),
            limited: parked > live.parked && self.queue.queued() > 0,
        };
        (live.since, live.done, live.parked) = (now, done, parked);
        // After a pause the slice is as long as that, and says nothing.
        if slice.ns == 0 || slice.ns > 2 * SLICE_NS {
            return;
        }
        live.capacity.step(&slice);
        let step = live.depth.step(&slice);
        live.trial = step.trial.or(live.trial);
        let missing = live.capacity.missing_per_s();
        let said = std::mem::replace(&mut live.below, missing.is_some());
        drop(live);
        self.queue.set_permits(step.permits);
        if let Some(missing_per_s) = missing.filter(|_| !said) {
            let floor_per_s = self.options.floor_per_s;
            tracing::warn!(floor_per_s, missing_per_s, "the device does less than its calibrated floor: what was promised on it cannot all be kept; calibrate again if this stays");
        }
    }

    /// Threads that had to park, ever.
    #[must_use]
    pub fn parked(&self) -> u64 {
        self.queue.parked()
    }

    fn price(&self, io: &DeviceIo, bytes: u64) -> Vop {
        self.options.costs.cost(io.op, bytes)
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> DeviceStage for DeviceScheduler<C> {
    fn begin(&self, io: &DeviceIo) -> u64 {
        let mut holds = FREE;
        if io.may_wait() {
            // Refused means that the tenant is gone or unknown: its last I/Os must not be lost with it.
            if let Ok(entry) = self.queue.admit(principal(io), io.activity as u8) {
                HELD.with_borrow_mut(|held| held.push(entry.permit));
                holds = HOLDS;
            }
        }
        match &self.emulated {
            Some(emulated) => emulated.submit(io) << 1 | holds,
            None => holds,
        }
    }

    fn end(&self, io: &DeviceIo, token: u64, ended: Ended) {
        if let Some(emulated) = &self.emulated {
            emulated.wait(token >> 1);
        }
        // Reads ask beyond the end of a file; what was not moved did not cost. An error did: the device tried.
        let price = self.price(io, if ended.ok { ended.bytes } else { io.bytes });
        let cost = Cost([price.0]);
        self.ledger.add(io.principal, io.tag, io.activity, price);
        let held = (token & HOLDS == HOLDS)
            .then(|| HELD.with_borrow_mut(Vec::pop))
            .flatten();
        match held {
            Some(permit) => self.queue.settle(permit, cost),
            None => self.queue.charge(principal(io), cost),
        }
        self.follow();
    }

    fn chunk_bytes(&self) -> u64 {
        self.options.chunk_bytes
    }
}
