//! The device stage: every I/O of every tenant's database, priced in VOPs and queued before one
//! device.
//!
//! RocksDB's threads and the handlers come in through [`engine::device::DeviceStage`]. An I/O that
//! may wait takes a turn of its tenant at one [`Blocking`] stage: fair shares over VOPs, permits
//! for as many as the device uses well. A tenant has two principals there: foreground, and
//! background (flush, compaction), between which its weight is divided as what it causes is:
//! whoever writes pays for flushes and compactions with its own share, and cannot run ahead of them
//! until writes stall. Thesis 6.4 allows compaction at most a tenth of a tenant's VOPs; here that
//! is what it has at least, so that debt drains, and it may have what nobody wants. Background work
//! that writers wait for already goes as foreground.
//!
//! What may not wait (metadata, written under a database's mutex) is charged afterwards.

mod disk;
mod emulated;
mod ledger;
mod promises;

pub use disk::{Disk, Measure, Unmeasured};
pub use emulated::Emulated;
pub use ledger::{tag_of, Done, Sum, Used};
pub use policy::provision::Pricing;
pub use promises::{Booked, Promised, Served};

use engine::device::{DeviceIo, DeviceStage, Ended, Op};
use ledger::Ledger;
use parking_lot::Mutex;
use policy::cost::device::{CostModel, Vop};
use policy::depth::{Capacity, Depth, Slice, Trial};
use policy::provision::{Provisioner, Reservation, VopRate};
use promises::Promises;
use stage::blocking::Blocking;
use stage::{
    Allocation, Clock, Cost, Discipline, DispatchOptions, Nanos, Observation, Permit, PrincipalId,
};
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
    /// I/Os outstanding at the start and at least, as calibrated; the depth is found from there.
    pub depth: u32,
    /// Larger I/Os are cut into pieces of this many bytes.
    pub chunk_bytes: u64,
    /// Who is next.
    pub discipline: Discipline,
    /// What reserved requests are taken to cost.
    pub pricing: Pricing,
    /// Whether a reservation beyond the floor is taken, and all are scaled down, or refused.
    pub overbook: bool,
    /// Why the prices may be wrong.
    pub doubt: Option<String>,
    /// Measured by less than the full plan: the floor is known less well.
    pub brief: bool,
}

/// The least part of its tenant's weight for background work (thesis 6.4: 10 %).
const BACKGROUND: f64 = 0.1;

thread_local! {
    /// I/Os that this thread has begun and not ended. It does one at a time; they nest at most.
    static BEGUN: RefCell<Vec<Begun>> = const { RefCell::new(Vec::new()) };
}

/// How often the depth and the capacity follow: some hundred I/Os of an SSD, a few of a hard disk.
const SLICE_NS: Nanos = 100_000_000;

/// An I/O under way.
struct Begun {
    /// None: it may not wait, or its tenant is gone.
    permit: Option<Permit>,
    at: Nanos,
}

/// A tenant's place at the device: both parts of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Place {
    weight: f64,
    reserved: VopRate,
    /// What part of what it causes is done later.
    later_part: Option<f64>,
}

/// The stage of a server, on the server's clock.
pub type Device = DeviceScheduler<Arc<dyn Clock + Send + Sync>>;

/// The one stage before one device.
pub struct DeviceScheduler<C> {
    options: DeviceOptions,
    queue: Arc<Blocking<1, C>>,
    ledger: Ledger,
    places: Mutex<BTreeMap<u32, Place>>,
    promises: Mutex<Promises>,
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
    /// Processor time of the server.
    cpu_ns: u64,
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
        let provisioner = Provisioner::new(options.costs.clone(), options.pricing);
        let live = Live {
            depth: Depth::new(options.depth, options.depth),
            capacity: Capacity::new(options.floor_per_s),
            since: clock.now(),
            done: Vop::ZERO,
            parked: 0,
            cpu_ns: 0,
            trial: None,
            below: false,
        };
        Arc::new(DeviceScheduler {
            queue: Blocking::new(dispatch, clock.clone()),
            ledger: Ledger::default(),
            places: Mutex::default(),
            promises: Mutex::new(Promises::new(provisioner, clock.now())),
            live: Mutex::new(live),
            emulated,
            slice_ends: AtomicU64::new(clock.now() + SLICE_NS),
            clock,
            options,
        })
    }

    /// A tenant's share, at any time. Tenants are numbered densely from 0, as [`Disk::number`]
    /// does.
    pub fn configure(&self, tenant: u32, weight: f64) {
        self.ledger.open(tenant);
        let mut places = self.places.lock();
        let place = places.entry(tenant).or_default();
        place.weight = weight;
        self.place(tenant, *place);
    }

    /// Normalised requests a second that a tenant was promised; VOPs follow with the next
    /// [`DeviceScheduler::provide`].
    pub fn promise(&self, tenant: u32, reservation: Reservation) {
        self.promises.lock().reserve(tenant, reservation);
    }

    /// VOPs a second that all reservations would need if this tenant (`None`: a new one) had this
    /// reservation.
    #[must_use]
    pub fn would_want_per_s(&self, tenant: Option<u32>, reservation: Reservation) -> f64 {
        self.promises.lock().would_want_per_s(tenant, reservation)
    }

    /// Ends an interval of about a second: prices what was done in it, and provides for what was
    /// promised. Tenants' totals are by number.
    pub fn provide(&self, served: &[(u32, Served)]) {
        let with_used = served
            .iter()
            .filter_map(|&(tenant, served)| Some((tenant, served, self.used(tenant)?)));
        let totals: Vec<_> = with_used.collect();
        let capacity_per_s = self.live.lock().capacity.per_s().max(1.0);
        let mut promises = self.promises.lock();
        let change = promises.step(self.clock.now(), &totals, capacity_per_s);
        drop(promises);
        let mut places = self.places.lock();
        for (tenant, got) in change.provided {
            let Some(place) = places.get_mut(&tenant) else {
                continue;
            };
            let before = *place;
            (place.reserved, place.later_part) = (got.allocated, got.later_part);
            if *place != before {
                self.place(tenant, *place);
            }
        }
        drop(places);
        match change.overbooked {
            Some(Some(over_per_s)) => tracing::warn!(
                capacity_per_s, over_per_s,
                "reservations need more than the device can do, so all are scaled down evenly: lower some, or calibrate"
            ),
            Some(None) => tracing::info!(capacity_per_s, "the device does what reservations need again"),
            None => {}
        }
    }

    /// What a tenant was promised of the device, as last provided.
    #[must_use]
    pub fn promised(&self, tenant: u32) -> Promised {
        self.promises.lock().promised(tenant)
    }

    /// What all reservations come to.
    #[must_use]
    pub fn booked(&self) -> Booked {
        self.promises.lock().booked()
    }

    /// How the device is used.
    #[must_use]
    pub fn options(&self) -> &DeviceOptions {
        &self.options
    }

    /// A tenant's queues and totals, foreground and background; `None` if it is unknown.
    #[must_use]
    pub fn observe(&self, tenant: u32) -> Option<[Observation<1>; 2]> {
        let [requests, later] = [foreground(tenant), background(tenant)];
        Some([self.queue.observe(requests)?, self.queue.observe(later)?])
    }

    /// I/Os done, what they cost and their time at the device, by operation in the order of
    /// [`Op::ALL`].
    #[must_use]
    pub fn done(&self) -> [Done; Op::ALL.len()] {
        self.ledger.done()
    }

    /// Tells the queue. Called with the places locked, so that the last word is the last.
    fn place(&self, tenant: u32, place: Place) {
        // Prices and rates are in millionths of a VOP.
        let rate = |per_s: f64| Some(per_s * 1e6).filter(|per_s| *per_s > 0.0);
        let weight = place.weight * (1.0 + BACKGROUND);
        let least = BACKGROUND / (1.0 + BACKGROUND);
        // The rest is for requests: who only writes must not have nothing left for a read.
        let later_part = place.later_part.unwrap_or(least).clamp(least, 1.0 - least);
        let requests = Allocation {
            reservation_per_s: rate(place.reserved.foreground),
            ..Allocation::share(weight * (1.0 - later_part))
        };
        self.queue.configure(foreground(tenant), &requests);
        let later = Allocation {
            reservation_per_s: rate(place.reserved.background),
            ..Allocation::share(weight * later_part)
        };
        self.queue.configure(background(tenant), &later);
    }

    /// Forgets a tenant. I/Os of its that wait go on unscheduled.
    pub fn remove(&self, tenant: u32) {
        self.queue.remove(foreground(tenant));
        self.queue.remove(background(tenant));
        self.ledger.close(tenant);
        self.places.lock().remove(&tenant);
        self.promises.lock().remove(tenant);
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

    /// At the end of a slice, whichever I/O ends then lets the depth and the capacity follow: no
    /// thread of its own, and none is needed while nothing happens.
    fn follow(&self, now: Nanos) {
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
        let (done, parked) = (self.ledger.total(), self.queue.parked());
        let slice = Slice {
            done: Vop(done.0.saturating_sub(live.done.0)),
            ns: now.saturating_sub(live.since),
            limited: parked > live.parked && self.queue.queued() > 0,
        };
        (live.since, live.done, live.parked) = (now, done, parked);
        let cpu_ns = threads::process_cpu_ns();
        let used_ns = cpu_ns - std::mem::replace(&mut live.cpu_ns, cpu_ns);
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
            let processors = used_ns as f64 / slice.ns as f64;
            tracing::warn!(floor_per_s, missing_per_s, processors, "while I/Os wait, the device does less than its calibrated floor: what was promised on it cannot all be kept; if as many processors are in use as the server has, these are short; else calibrate again if this stays");
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
        // Refused means that the tenant is gone or unknown: its last I/Os must not be lost with it.
        let admit = || self.queue.admit(principal(io), io.activity as u8).ok();
        let entry = io.may_wait().then(admit).flatten();
        let at = entry
            .as_ref()
            .map_or_else(|| self.clock.now(), |entry| entry.at);
        let permit = entry.map(|entry| entry.permit);
        let token = self.emulated.as_ref().map_or(0, |device| device.submit(io));
        BEGUN.with_borrow_mut(|begun| begun.push(Begun { permit, at }));
        token
    }

    fn end(&self, io: &DeviceIo, token: u64, ended: Ended) {
        if let Some(emulated) = &self.emulated {
            emulated.wait(token);
        }
        // Reads ask beyond the end of a file; what was not moved did not cost. An error did: the
        // device tried.
        let price = self.price(io, if ended.ok { ended.bytes } else { io.bytes });
        let cost = Cost([price.0]);
        let begun = BEGUN.with_borrow_mut(Vec::pop);
        let (at, permit) = begun.map_or((None, None), |begun| (Some(begun.at), begun.permit));
        let now = match permit {
            Some(permit) => self.queue.settle(permit, cost),
            None => self.queue.charge(principal(io), cost),
        };
        let took_ns = at.map_or(0, |at| now.saturating_sub(at));
        self.ledger.add(io, price, took_ns);
        self.follow(now);
    }

    fn chunk_bytes(&self) -> u64 {
        self.options.chunk_bytes
    }
}

#[cfg(test)]
pub(crate) mod tests;
