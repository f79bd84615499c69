//! Reservations of requests turned into allocations of a device (thesis 6.3.1, its end, and 6.3.2).
//!
//! A tenant that was promised `v_a` normalised requests a second needs `v_a profile_a` VOPs a
//! second. All together must fit what the device does at present, as far as is known
//! (`depth::Capacity`); if they do not, each is scaled down by the same factor, and that is
//! reported. The thesis holds them under the floor, what the device does under the worst of mixes,
//! and leaves half of it to nobody; that is where the estimate begins here. A new reservation must
//! fit under what may be promised to the mix of all of them (`supply::Supply`).
//!
//! An allocation has two parts, because the I/O has: what requests do themselves, and what the
//! engine does for them later. Were the second not reserved too, flushes and compactions would fall
//! behind the puts that were. They still would by price alone: a compaction that is put off takes
//! more at once and is cheaper by the put, so who has little of it is taken to need little. So what
//! is left when all reservations have what they need goes to debts first.

use crate::cost::device::CostModel;
use crate::profile::{Interval, Profile, Ratio, Request, RequestCost, ALPHA, REQUESTS};
use crate::stall::PAUSED_FROM;
use crate::supply::Demand;
use std::collections::BTreeMap;

/// How much is allocated for each unit needed, where the device allows it: a price is an average,
/// and half of the time requests cost more. The surplus costs nobody anything while it is not
/// needed.
const HEADROOM: f64 = 1.1;
/// How much more is allocated to what is done later, of what it needs, where writes begin to pause
/// for it ([`PAUSED_FROM`]). Put off as long as RocksDB lets it, a compaction costs half of what it
/// does when it is due.
const BEHIND: f64 = 0.5;
/// Of a process that is charged for less than this part of a processor, what it does besides says
/// nothing of what it does for requests.
const BUSY: f64 = 0.1;
/// Overbooking is reported when it has lasted for this many intervals: the first requests of a
/// tenant are priced before its profile is known.
const LASTS: u32 = 3;

/// Normalised requests a second that a tenant was promised, in the order of [`Request::ALL`]. 0:
/// none.
pub type Reservation = [f64; REQUESTS];

/// What requests are taken to cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pricing {
    /// What they were seen to cost, indirect costs included.
    Profiles,
    /// One I/O of the object's size; the baseline (thesis 7.4.1). It differs by the price alone:
    /// what is allocated is divided between requests and what is done later as their use is.
    Objects,
}

/// VOPs a second that are a tenant's before anybody's share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VopRate {
    /// For what its requests do themselves.
    pub foreground: f64,
    /// For what is flushed and compacted on their behalf.
    pub background: f64,
}

impl VopRate {
    /// Both parts.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.foreground + self.background
    }

    /// The same in all, so much of it for what is done later: a tenant's one allocation, from which
    /// flushes and compactions draw as well.
    fn split(&self, later_part: Option<f64>) -> VopRate {
        let (total, later) = (self.total(), later_part.unwrap_or_default());
        VopRate {
            foreground: total * (1.0 - later),
            background: total * later,
        }
    }

    fn scaled(&self, scale: f64) -> VopRate {
        VopRate {
            foreground: self.foreground * scale,
            background: self.background * scale,
        }
    }
}

/// One tenant's part of a [`Provision`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Provisioned {
    /// What its reservations need.
    pub wanted: VopRate,
    /// What it gets.
    pub allocated: VopRate,
    /// The price of a normalised request, in the order of [`Request::ALL`].
    pub costs: [RequestCost; REQUESTS],
    /// Whether that price was measured, not assumed.
    pub measured: [bool; REQUESTS],
    /// What part of what it causes is done later, 0 to 1; `None` while that is unknown.
    pub later_part: Option<f64>,
}

/// The answer for an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provision {
    /// By tenant, those without reservations included.
    pub tenants: BTreeMap<u32, Provisioned>,
    /// VOPs a second that all reservations need.
    pub wanted_per_s: f64,
    /// What each gets of what it needs, above 0, at most 1.
    pub scale: f64,
    /// By how much the reservations exceed what there is, VOPs a second; 0 if they fit, or only
    /// just do not.
    pub overbooked_per_s: f64,
}

#[derive(Clone, Debug, Default)]
struct Tenant {
    profile: Profile,
    reservation: Reservation,
    /// How near its database is to delaying its writers (`stall::Pressure::part`).
    pressure: f64,
}

/// Turns reservations into allocations, once an interval.
#[derive(Clone, Debug)]
pub struct Provisioner {
    costs: CostModel,
    pricing: Pricing,
    tenants: BTreeMap<u32, Tenant>,
    /// Processor time of the process for each that requests were charged.
    beside: Ratio,
    /// Intervals in a row in which there was too little.
    over: u32,
}

impl Provisioner {
    /// Without tenants.
    #[must_use]
    pub fn new(costs: CostModel, pricing: Pricing) -> Provisioner {
        Provisioner {
            costs,
            pricing,
            tenants: BTreeMap::new(),
            beside: Ratio::default(),
            over: 0,
        }
    }

    /// What a tenant is promised from now on; it is added if it is new.
    pub fn reserve(&mut self, tenant: u32, reservation: Reservation) {
        let reservation = reservation.map(|per_s| if per_s > 0.0 { per_s } else { 0.0 });
        self.tenants.entry(tenant).or_default().reservation = reservation;
    }

    /// Forgets a tenant and its profile.
    pub fn remove(&mut self, tenant: u32) {
        self.tenants.remove(&tenant);
    }

    /// What a tenant did in the interval that ended. Unknown tenants are nobody's.
    pub fn observe(&mut self, tenant: u32, interval: &Interval) {
        if let Some(tenant) = self.tenants.get_mut(&tenant) {
            tenant.profile.step(interval);
        }
    }

    /// How near a tenant's database is to delaying its writers, now (`stall::Pressure::part`).
    pub fn presses(&mut self, tenant: u32, part: f64) {
        if let Some(tenant) = self.tenants.get_mut(&tenant) {
            tenant.pressure = part;
        }
    }

    /// What all reservations would take if this tenant (`None`: a new one) had this reservation.
    #[must_use]
    pub fn would_take(&self, tenant: Option<u32>, reservation: Reservation) -> Demand {
        let others = self.tenants.iter().filter(|(at, _)| Some(**at) != tenant);
        let others = others.map(|(_, other)| self.taken(&other.profile, other.reservation));
        let profile = tenant.and_then(|at| self.tenants.get(&at));
        let profile = profile.map(|known| known.profile).unwrap_or_default();
        let own = self.taken(&profile, reservation);
        self.demand(others.chain([own]))
    }

    /// What requests take as they come of late, reserved or not: all that is promised, were it
    /// promised to these.
    #[must_use]
    pub fn present(&self) -> Demand {
        let each = self.tenants.values();
        let each = each.map(|tenant| self.taken(&tenant.profile, tenant.profile.volume()));
        self.demand(each)
    }

    /// What the process used of the processors in an interval of `ns`, and what of that requests,
    /// flushes and compactions were charged, ns.
    pub fn used_processors(&mut self, ns: u64, used_ns: u64, charged_ns: u64) {
        if charged_ns as f64 >= ns as f64 * BUSY {
            let used_ns = used_ns.max(charged_ns) as f64;
            self.beside.step(ALPHA, used_ns, charged_ns as f64);
        }
    }

    fn demand(&self, each: impl Iterator<Item = Demand>) -> Demand {
        let mut all = each.fold(Demand::default(), |all, one| all.plus(&one));
        all.processors *= self.beside.get().unwrap_or(1.0);
        all
    }

    fn taken(&self, profile: &Profile, reservation: Reservation) -> Demand {
        let priced = self.priced(profile, reservation);
        let mut demand = Demand::default();
        for (at, request) in Request::ALL.into_iter().enumerate() {
            let (per_s, cost) = (reservation[at], &priced.costs[at]);
            demand.device[at] = profile.mix(request, per_s, cost);
            demand.processors += per_s * profile.processor_ns(request).unwrap_or(0.0) / 1e9;
        }
        demand
    }

    /// Ends an interval: what everybody gets in the next, of `available_per_s` VOPs a second (more
    /// than 0).
    pub fn provision(&mut self, available_per_s: f64) -> Provision {
        let priced =
            |(at, tenant): (&u32, &Tenant)| (*at, self.priced(&tenant.profile, tenant.reservation));
        let mut tenants: BTreeMap<u32, Provisioned> = self.tenants.iter().map(priced).collect();
        let wanted_per_s: f64 = tenants.values().map(|tenant| tenant.wanted.total()).sum();
        let over = wanted_per_s > available_per_s;
        let fits = if wanted_per_s > 0.0 {
            available_per_s / wanted_per_s
        } else {
            1.0
        };
        for tenant in tenants.values_mut() {
            tenant.allocated = tenant.wanted.scaled(fits.min(HEADROOM));
        }
        self.catch_up(&mut tenants, available_per_s);
        let scale = fits.min(1.0);
        self.over = if over { self.over.saturating_add(1) } else { 0 };
        let overbooked_per_s = if self.over >= LASTS {
            wanted_per_s - available_per_s
        } else {
            0.0
        };
        Provision {
            tenants,
            wanted_per_s,
            scale,
            overbooked_per_s,
        }
    }

    /// Gives what nobody needs to those whose flushes and compactions are behind, by how far they
    /// are: a price that was learnt from compactions that are put off asks for so little that they
    /// are put off further, until the database stops its writers for many seconds.
    fn catch_up(&self, tenants: &mut BTreeMap<u32, Provisioned>, available_per_s: f64) {
        let allocated = |tenant: &Provisioned| tenant.allocated.total();
        let left_per_s = available_per_s - tenants.values().map(allocated).sum::<f64>();
        let behind = |at: &u32, tenant: &Provisioned| {
            let pressure = self.tenants[at].pressure.clamp(0.0, 1.0);
            tenant.wanted.background * BEHIND * (pressure / PAUSED_FROM).powi(2)
        };
        let all_per_s: f64 = tenants.iter().map(|(at, one)| behind(at, one)).sum();
        if left_per_s <= 0.0 || all_per_s == 0.0 {
            return;
        }
        let part = (left_per_s / all_per_s).min(1.0);
        for (at, tenant) in tenants {
            tenant.allocated.background += behind(at, tenant) * part;
        }
    }

    fn priced(&self, profile: &Profile, reservation: Reservation) -> Provisioned {
        let mut provisioned = Provisioned {
            later_part: profile.later_part(),
            ..Provisioned::default()
        };
        for (at, request) in Request::ALL.into_iter().enumerate() {
            let known = match self.pricing {
                Pricing::Profiles => profile.cost(request),
                Pricing::Objects => None,
            };
            let cost = known.unwrap_or_else(|| profile.object_cost(request, &self.costs));
            provisioned.measured[at] = known.is_some();
            provisioned.costs[at] = cost;
            provisioned.wanted.foreground += reservation[at] * cost.direct;
            provisioned.wanted.background += reservation[at] * cost.later();
        }
        if self.pricing == Pricing::Objects {
            provisioned.wanted = provisioned.wanted.split(provisioned.later_part);
        }
        provisioned
    }
}
