//! What tenants were promised of the device: once a second, requests priced and VOPs provided for
//! them.

use super::ledger::{tag_of, Purpose, Used};
use engine::device::{Activity, TAGS};
use policy::cost::device::Vop;
use policy::profile::{Done, Interval, Request};
use policy::provision::{Provision, Provisioned, Provisioner, Reservation};
use policy::supply::Demand;
use policy::Nanos;
use std::collections::BTreeMap;
use telemetry::{Answered, Class};

/// A tenant's totals at the end of an interval, but for its I/O. They only grow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Served {
    /// Gets answered.
    pub get: Answered,
    /// Puts answered.
    pub put: Answered,
    /// Bytes committed, by tag.
    pub written_bytes: [u64; TAGS],
    /// How near its database is to delaying its writers, now: no total.
    pub write_pressure: f64,
}

/// Processor time of the process so far, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processors {
    /// All of it.
    pub used_ns: u64,
    /// What tenants were charged for requests.
    pub charged_ns: u64,
}

/// What a tenant was promised, what that came to, and what it used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promised {
    /// Prices and allocation.
    pub provisioned: Provisioned,
    /// VOPs a second in the last interval.
    pub used_per_s: f64,
}

/// All reservations together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Booked {
    /// VOPs a second that they need.
    pub wanted_per_s: f64,
    /// VOPs a second that all tenants used in the last interval.
    pub used_per_s: f64,
    /// What each gets of what it needs, at most 1.
    pub scale: f64,
    /// By how much they exceed what the device does at present, once that has lasted; VOPs a
    /// second.
    pub overbooked_per_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    served: Served,
    used: Used,
}

/// State between intervals.
#[derive(Debug)]
pub(super) struct Promises {
    provisioner: Provisioner,
    seen: BTreeMap<u32, Totals>,
    used_per_s: BTreeMap<u32, f64>,
    processors: Processors,
    provision: Provision,
    since: Nanos,
    /// It was said that there is too little.
    said: bool,
}

/// What changed with an interval.
pub(super) struct Change {
    /// What is each tenant's now.
    pub provided: Vec<(u32, Provisioned)>,
    /// Overbooking that begins (by this many VOPs a second), or ends.
    pub overbooked: Option<Option<f64>>,
}

impl Promises {
    pub(super) fn new(provisioner: Provisioner, now: Nanos) -> Promises {
        Promises {
            provisioner,
            seen: BTreeMap::new(),
            used_per_s: BTreeMap::new(),
            processors: Processors::default(),
            provision: Provision {
                scale: 1.0,
                ..Provision::default()
            },
            since: now,
            said: false,
        }
    }

    pub(super) fn reserve(&mut self, tenant: u32, reservation: Reservation) {
        self.provisioner.reserve(tenant, reservation);
    }

    pub(super) fn remove(&mut self, tenant: u32) {
        self.provisioner.remove(tenant);
        self.provision.tenants.remove(&tenant);
        self.seen.remove(&tenant);
        self.used_per_s.remove(&tenant);
    }

    pub(super) fn promised(&self, tenant: u32) -> Promised {
        let provisioned = self.provision.tenants.get(&tenant);
        Promised {
            provisioned: provisioned.copied().unwrap_or_default(),
            used_per_s: self.used_per_s.get(&tenant).copied().unwrap_or_default(),
        }
    }

    pub(super) fn booked(&self) -> Booked {
        let Provision {
            wanted_per_s,
            scale,
            overbooked_per_s,
            ..
        } = self.provision;
        Booked {
            used_per_s: self.used_per_s.values().sum(),
            wanted_per_s,
            scale,
            overbooked_per_s,
        }
    }

    pub(super) fn would_take(&self, tenant: Option<u32>, reservation: Reservation) -> Demand {
        self.provisioner.would_take(tenant, reservation)
    }

    pub(super) fn present(&self) -> Demand {
        self.provisioner.present()
    }

    /// An interval has ended in which these tenants came to these totals, and the device does so
    /// many VOPs a second.
    pub(super) fn step(
        &mut self,
        now: Nanos,
        totals: &[(u32, Served, Used)],
        processors: Processors,
        available_per_s: f64,
    ) -> Change {
        let ns = now.saturating_sub(self.since).max(1);
        self.since = now;
        let mut internal_ns = 0;
        for &(tenant, served, used) in totals {
            let totals = Totals { served, used };
            // A tenant begins with nothing: its first second, which may be all that it does, counts
            // like any other.
            let before = self.seen.insert(tenant, totals).unwrap_or_default();
            let interval = interval(&before, &totals);
            internal_ns += interval.internal_processor_ns;
            self.provisioner.observe(tenant, &interval);
            self.provisioner.presses(tenant, served.write_pressure);
            let vops = since(used.total().vops, before.used.total().vops);
            self.used_per_s.insert(tenant, vops.get() * 1e9 / ns as f64);
        }
        let before = std::mem::replace(&mut self.processors, processors);
        let charged_ns = processors.charged_ns.saturating_sub(before.charged_ns);
        let used_ns = processors.used_ns.saturating_sub(before.used_ns);
        self.provisioner
            .used_processors(ns, used_ns, charged_ns + internal_ns);
        self.provision = self.provisioner.provision(available_per_s);
        let tenants = self.provision.tenants.iter();
        let over = self.provision.overbooked_per_s;
        let overbooked = match (over > 0.0, self.said) {
            (true, false) => Some(Some(over)),
            // Not at the first interval that fits: it would be said again at the next that does
            // not.
            (false, true) if self.provision.scale == 1.0 => Some(None),
            _ => None,
        };
        self.said = overbooked.map_or(self.said, |over| over.is_some());
        Change {
            provided: tenants.map(|(at, got)| (*at, *got)).collect(),
            overbooked,
        }
    }
}

fn since(now: Vop, before: Vop) -> Vop {
    Vop(now.0.saturating_sub(before.0))
}

fn interval(before: &Totals, now: &Totals) -> Interval {
    let direct = |class| {
        since(
            now.used.class(Some(class)).vops,
            before.used.class(Some(class)).vops,
        )
    };
    let written =
        |tag: usize| now.served.written_bytes[tag].saturating_sub(before.served.written_bytes[tag]);
    let done = |class, now: Answered, before: Answered, bytes: fn(&Answered) -> u64| Done {
        requests: now.requests.saturating_sub(before.requests),
        bytes: bytes(&now).saturating_sub(bytes(&before)),
        direct: direct(class),
        written_bytes: written(tag_of(class).index()),
    };
    let internal = |activity| {
        since(
            now.used.activity(activity).vops,
            before.used.activity(activity).vops,
        )
    };
    // What no request waits for and is neither: a new log, metadata of new files. Memtables that
    // were flushed leave it.
    let none = |used: &Used| {
        let cells = [Activity::Log, Activity::Other].map(|activity| used.cell(None, activity).vops);
        cells[0].plus(cells[1])
    };
    let flush = internal(Activity::Flush).plus(since(none(&now.used), none(&before.used)));
    let mix = |purpose| now.used.mix_since(&before.used, purpose);
    let since_ns = |now: u64, before: u64| now.saturating_sub(before);
    let mut done_by = [Done::default(); Request::ALL.len()];
    done_by[Request::Get as usize] = done(Class::Get, now.served.get, before.served.get, |a| {
        a.bytes_out
    });
    done_by[Request::Put as usize] = done(Class::Put, now.served.put, before.served.put, |a| {
        a.bytes_in
    });
    Interval {
        done: done_by,
        written_bytes: (0..TAGS).map(written).sum(),
        internal: [flush, internal(Activity::Compaction)],
        direct_mix: [Class::Get, Class::Put].map(|class| mix(Purpose::Request(class))),
        internal_mix: [Purpose::Flush, Purpose::Compaction].map(mix),
        processor_ns: [
            since_ns(now.served.get.cpu_ns, before.served.get.cpu_ns),
            since_ns(now.served.put.cpu_ns, before.served.put.cpu_ns),
        ],
        internal_processor_ns: since_ns(
            now.used.internal_processor_ns,
            before.used.internal_processor_ns,
        ),
    }
}
