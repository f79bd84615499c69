//! The device stage: every I/O of every tenant's database, priced in VOPs and queued before one
//! device.
//!
//! RocksDB's threads and the handlers come in through [`engine::device::DeviceStage`]. An I/O that
//! may wait takes a turn of its tenant at one [`Blocking`](stage::blocking::Blocking) stage: fair
//! shares over VOPs, permits for as many as the device uses well. A tenant has two principals
//! there: foreground, and background (flush, compaction), between which its weight is divided as
//! what it causes is: whoever writes pays for flushes and compactions with its own share, and
//! cannot run ahead of them until writes stall. Thesis 6.4 allows compaction at most a tenth of a
//! tenant's VOPs; here that is what it has at least, so that debt drains, and it may have what
//! nobody wants. Background work that writers wait for already goes as foreground.
//!
//! What may not wait (metadata, written under a database's mutex) is charged afterwards.

mod disk;
mod drive;
mod emulated;
mod ledger;
mod places;
mod promises;
mod steer;
mod thread;

pub use disk::{Disk, Measure, Unmeasured};
use drive::Drive;
pub use emulated::Drives;
use emulated::Emulated;
pub use ledger::{tag_of, Done, Purpose, Sum, Used};
pub use policy::provision::Pricing;
pub use promises::{Booked, Processors, Promised, Served};
pub use thread::{on_terms, waits, OnTerms, Waits};

use engine::device::{Activity, DeviceIo, DeviceStage, Ended, Op};
use ledger::Ledger;
use parking_lot::Mutex;
use places::{background, foreground, Place};
use policy::cost::device::{CostModel, Vop};
use policy::depth::Trial;
use policy::device::Layout;
use policy::provision::{Provisioner, Reservation};
use policy::supply::{Demand, Supply};
use promises::Promises;
use stage::{Clock, Cost, Discipline, Nanos, Observation, Permit, PrincipalId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use steer::OfOthers;
pub use steer::OthersDid;
use thread::{waited, Begun, Stream};

/// How the device is used.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// What I/Os cost.
    pub costs: CostModel,
    /// What may be promised.
    pub supply: Supply,
    /// I/Os outstanding at the start and at least, as calibrated; the depth is found from there.
    pub depth: u32,
    /// Larger I/Os are cut into pieces of this many bytes.
    pub chunk_bytes: u64,
    /// Who is next.
    pub discipline: Discipline,
    /// What reserved requests are taken to cost.
    pub pricing: Pricing,
    /// Whether a reservation beyond what may be promised is taken, and all are scaled down, or
    /// refused.
    pub overbook: bool,
    /// An arm must move to where data lies.
    pub seeks: bool,
    /// Bytes a second of one stream of reads.
    pub stream_bytes_per_s: f64,
    /// A small read with nothing beside it: median and 99th percentile, ns.
    pub read_alone_ns: [Nanos; 2],
    /// Why the prices may be wrong.
    pub doubt: Option<String>,
    /// Measured by less than the full plan: the floor is known less well.
    pub brief: bool,
}

/// The stage of a server, on the server's clock.
pub type Device = DeviceScheduler<Arc<dyn Clock + Send + Sync>>;

/// The stage before the device: a queue before each of its drives, of which a real device has one.
pub struct DeviceScheduler<C> {
    options: DeviceOptions,
    drives: Box<[Drive<C>]>,
    /// Where files lie on emulated drives.
    layout: Option<Layout>,
    ledger: Ledger,
    places: Mutex<BTreeMap<u32, Place>>,
    promises: Mutex<Promises>,
    others: OfOthers,
    /// Whether it matters that I/Os are pieces of a stream.
    streams: AtomicBool,
    /// Larger I/Os are cut into pieces of this many bytes.
    chunk_bytes: AtomicU64,
    /// What compactions of a tenant may cost a second, in millionths of a VOP; the largest number:
    /// anything.
    compaction_per_s: AtomicU64,
    clock: C,
}

/// The device at present, all drives together.
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
    /// The last trial of depths, of any drive.
    pub trial: Option<Trial>,
}

impl<C> std::fmt::Debug for DeviceScheduler<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceScheduler")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Whose file it is: files are numbered for each owner. Logs and metadata are files like any other,
/// of an owner of their own.
fn owner(io: &DeviceIo) -> u64 {
    u64::from(io.principal) << 8 | io.file as u64
}

impl<C: Clock + Clone + Send + Sync + 'static> DeviceScheduler<C> {
    /// A stage without tenants. With `emulated` drives, an I/O ends when its drive would have done
    /// it.
    #[must_use]
    pub fn new(options: DeviceOptions, clock: C, emulated: Option<Drives<C>>) -> Arc<Self> {
        let provisioner = Provisioner::new(options.costs.clone(), options.pricing);
        let layout = emulated.as_ref().map(|drives| drives.layout);
        let drives: Vec<_> = match emulated {
            Some(drives) => drives.drives.into_iter().map(Some).collect(),
            None => vec![None],
        };
        let drives = drives.into_iter();
        let drives = drives.map(|emulated| Drive::new(&options, clock.clone(), emulated));
        Arc::new(DeviceScheduler {
            drives: drives.collect(),
            layout,
            ledger: Ledger::default(),
            places: Mutex::default(),
            promises: Mutex::new(Promises::new(provisioner, clock.now())),
            others: OfOthers::default(),
            streams: AtomicBool::new(false),
            chunk_bytes: AtomicU64::new(options.chunk_bytes),
            compaction_per_s: AtomicU64::new(u64::MAX),
            clock,
            options,
        })
    }

    /// Normalised requests a second that a tenant was promised; VOPs follow with the next
    /// [`DeviceScheduler::provide`].
    pub fn promise(&self, tenant: u32, reservation: Reservation) {
        self.promises.lock().reserve(tenant, reservation);
    }

    /// What all reservations would take if this tenant (`None`: a new one) had this reservation.
    #[must_use]
    pub fn would_take(&self, tenant: Option<u32>, reservation: Reservation) -> Demand {
        self.promises.lock().would_take(tenant, reservation)
    }

    /// VOPs a second that may be promised to requests like those of the last seconds, in their
    /// proportions. It follows from the calibration and from what each request takes, not from what
    /// the device does.
    #[must_use]
    pub fn promisable_per_s(&self) -> f64 {
        let present = self.promises.lock().present();
        self.options.supply.promisable_per_s(&present)
    }

    /// Ends an interval of about a second: prices what was done in it, and provides for what was
    /// promised. Tenants' totals are by number; `processors` are those of the process.
    pub fn provide(&self, served: &[(u32, Served)], processors: Processors) {
        let with_used = served
            .iter()
            .filter_map(|&(tenant, served)| Some((tenant, served, self.used(tenant)?)));
        let totals: Vec<_> = with_used.collect();
        let capacity_per_s = self.state().capacity_per_s.max(1.0);
        let mut promises = self.promises.lock();
        let change = promises.step(self.clock.now(), &totals, processors, capacity_per_s);
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
        Some([self.observed(requests)?, self.observed(later)?])
    }

    fn observed(&self, principal: PrincipalId) -> Option<Observation<1>> {
        let each = self
            .drives
            .iter()
            .map(|drive| drive.queue.observe(principal));
        let each: Option<Vec<_>> = each.collect();
        each?.into_iter().reduce(drive::together)
    }

    /// I/Os done, what they cost and their time at the device, by operation in the order of
    /// [`Op::ALL`].
    #[must_use]
    pub fn done(&self) -> [Done; Op::ALL.len()] {
        self.ledger.done()
    }

    /// What a tenant used so far, by class and by what RocksDB did it for; `None` if it is unknown.
    #[must_use]
    pub fn used(&self, tenant: u32) -> Option<Used> {
        self.ledger.used(tenant)
    }

    /// The device at present.
    #[must_use]
    pub fn state(&self) -> DeviceState {
        let states = self.drives.iter().map(Drive::state);
        let together = |all: DeviceState, one: DeviceState| DeviceState {
            permits: all.permits + one.permits,
            in_flight: all.in_flight + one.in_flight,
            queued: all.queued + one.queued,
            capacity_per_s: all.capacity_per_s + one.capacity_per_s,
            missing_per_s: match (all.missing_per_s, one.missing_per_s) {
                (None, None) => None,
                (all, one) => Some(all.unwrap_or_default() + one.unwrap_or_default()),
            },
            trial: all.trial.or(one.trial),
        };
        states.reduce(together).expect("there is a drive")
    }

    /// Threads that had to park, ever.
    #[must_use]
    pub fn parked(&self) -> u64 {
        self.drives.iter().map(|drive| drive.queue.parked()).sum()
    }

    /// Behind whom somebody waited for a drive from `from` to `until`: tenants' numbers, whether it
    /// was their background work, and ns.
    #[must_use]
    pub fn behind(&self, drive: usize, from: Nanos, until: Nanos) -> Vec<(u32, bool, Nanos)> {
        let behind = self.drives[drive].trail.lock().behind(from, until);
        let each = behind.into_iter();
        each.map(|(who, ns)| (who / 2, who % 2 == 1, ns)).collect()
    }

    /// For whom an I/O waits. Where compactions are bounded, flushes are not with them: they free
    /// the memory that requests filled, and go as these do.
    fn principal(&self, io: &DeviceIo) -> PrincipalId {
        let bounded = self.compaction_per_s.load(Ordering::Relaxed) < u64::MAX;
        let later = match io.activity {
            Activity::Flush => !bounded,
            activity => activity.background(),
        };
        match later && !io.urgent {
            true => background(io.principal),
            false => foreground(io.principal),
        }
    }

    /// The drive that an I/O is on, and where on it.
    fn spot(&self, io: &DeviceIo) -> (usize, u64) {
        let Some(layout) = &self.layout else {
            return (0, 0);
        };
        let spot = layout.spot(owner(io), io.number);
        (spot.disk, layout.byte(spot, io.offset))
    }

    /// A thread has read or written the last piece of this.
    fn end_stream(&self, stream: &Stream) {
        let (drive, whom) = (stream.drive, stream.whom);
        self.drives[drive].queue.end_stream(whom, stream.number);
    }

    fn price(&self, io: &DeviceIo, bytes: u64) -> Vop {
        self.options.costs.cost(io.op, bytes)
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> DeviceStage for DeviceScheduler<C> {
    fn begin(&self, io: &DeviceIo) -> u64 {
        let (at_drive, offset) = self.spot(io);
        let drive = &self.drives[at_drive];
        // Refused means that the tenant is gone or unknown: its last I/Os must not be lost with it.
        let (whom, activity) = (self.principal(io), io.activity as u8);
        let (terms, over) = match self.streams.load(Ordering::Relaxed) {
            true => thread::terms((owner(io), whom), at_drive, io),
            false => (engine::device::terms(), None),
        };
        if let Some(over) = &over {
            self.end_stream(over);
        }
        let admit = || drive.queue.admit_on(whom, activity, terms).ok();
        let entry = io.may_wait().then(admit).flatten();
        if let Some(entry) = &entry {
            if !entry.permit.timed() {
                let waited = &self.others.waited_ns;
                waited.fetch_add(entry.waited_ns, Ordering::Relaxed);
            }
            waited(at_drive, entry.waited_ns, entry.granted);
        }
        let at = entry
            .as_ref()
            .map_or_else(|| self.clock.now(), |entry| entry.at);
        thread::begin(Begun {
            permit: entry.map(|entry| entry.permit),
            at,
            drive: at_drive,
        });
        let emulated = drive.emulated.as_ref();
        emulated.map_or(0, |device| device.submit(io, offset))
    }

    fn end(&self, io: &DeviceIo, token: u64, ended: Ended) {
        // Every I/O that ends has begun on this thread.
        let begun = thread::end();
        let drive = &self.drives[begun.as_ref().map_or(0, |begun| begun.drive)];
        if let Some(emulated) = &drive.emulated {
            emulated.wait(token);
        }
        // Reads ask beyond the end of a file; what was not moved did not cost. An error did: the
        // device tried.
        let bytes = if ended.ok { ended.bytes } else { io.bytes };
        let price = self.price(io, bytes);
        let cost = Cost([price.0]);
        let (at, permit) = begun.map_or((None, None), |begun| (Some(begun.at), begun.permit));
        let timed = permit.as_ref().is_some_and(Permit::timed);
        let now = match permit {
            Some(permit) => drive.queue.settle(permit, cost),
            None => drive.queue.charge(self.principal(io), cost),
        };
        let took_ns = at.map_or(0, |at| now.saturating_sub(at));
        let processor_ns = match io.activity.background() {
            true => thread::worked_ns(),
            false => 0,
        };
        self.ledger.add(io, bytes, price, took_ns, processor_ns);
        drive.done(self.principal(io), at.unwrap_or(now), now, price);
        if io.activity == Activity::Compaction && !io.urgent {
            self.others.compacted(price);
        }
        if !timed {
            self.others.ended(ended.bytes, took_ns);
        }
        drive.follow(now, self.options.supply.sweep.floor_per_s());
    }

    fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
pub(crate) mod tests;
