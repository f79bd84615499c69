//! Every tenant's counters, and what they came to lately.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::class::Class;
use crate::recorder::{Counters, Recorder};
use crate::shares::Recent;
use crate::totals::{Answered, TenantTotals, Usage};

/// The counters of all tenants on all cores. Locked when a tenant comes or goes and at a scrape,
/// never by a request.
pub struct Registry {
    cores: usize,
    tenants: Mutex<BTreeMap<String, Tenant>>,
    /// What tenants since removed had used: the sum over all must never fall.
    departed: Mutex<Usage>,
    window: Mutex<Window>,
}

struct Tenant {
    cores: Vec<Arc<Counters>>,
}

impl Tenant {
    fn new(cores: usize) -> Self {
        Self {
            cores: (0..cores).map(|_| Arc::default()).collect(),
        }
    }

    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.cores
            .iter()
            .for_each(|core| core.add_usage_to(&mut usage));
        usage
    }
}

/// Two earlier readings, so that a rate always spans one to two turns of [`Registry::turn`].
#[derive(Default)]
struct Window {
    older: Reading,
    newer: Reading,
}

#[derive(Clone, Default)]
struct Reading {
    at_ns: u64,
    usage: BTreeMap<String, Usage>,
}

impl Registry {
    /// A registry for a server of that many cores.
    pub fn new(cores: usize) -> Self {
        Self {
            cores,
            tenants: Mutex::default(),
            departed: Mutex::default(),
            window: Mutex::default(),
        }
    }

    /// How many cores record.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// The writing end for a tenant on a core; the tenant is added if it is new. `None` when that
    /// core has it already, or there is no such core.
    pub fn recorder(&self, tenant: &str, core: usize) -> Option<Recorder> {
        let mut tenants = self.tenants.lock();
        let entry = match tenants.get_mut(tenant) {
            Some(entry) => entry,
            None => tenants
                .entry(tenant.to_string())
                .or_insert_with(|| Tenant::new(self.cores)),
        };
        Recorder::new(Arc::clone(entry.cores.get(core)?))
    }

    /// Forgets a tenant. Recorders still out write to counters that nobody reads; a tenant added
    /// again under the name starts from zero.
    pub fn remove(&self, tenant: &str) {
        let mut tenants = self.tenants.lock();
        if let Some(gone) = tenants.remove(tenant) {
            self.departed.lock().add(&gone.usage());
        }
    }

    /// One tenant's totals, if it is known.
    pub fn totals(&self, tenant: &str) -> Option<TenantTotals> {
        let cores = self.tenants.lock().get(tenant)?.cores.clone();
        let mut totals = TenantTotals::default();
        for core in &cores {
            core.add_to(&mut totals.classes);
            core.add_usage_to(&mut totals.usage);
        }
        Some(totals)
    }

    /// How much of a class a tenant was answered; nothing if it is unknown.
    pub fn answered(&self, tenant: &str, class: Class) -> Answered {
        let mut answered = Answered::default();
        for core in self
            .tenants
            .lock()
            .get(tenant)
            .iter()
            .flat_map(|t| &t.cores)
        {
            core.add_answered_to(class, &mut answered);
        }
        answered
    }

    /// What each tenant used since the start, those who used nothing included.
    pub fn usages(&self) -> Vec<(String, Usage)> {
        let tenants = self.tenants.lock();
        let usage = tenants
            .iter()
            .map(|(name, tenant)| (name.clone(), tenant.usage()));
        usage.collect()
    }

    /// All tenants together, those removed included.
    pub fn usage(&self) -> Usage {
        let tenants = self.tenants.lock();
        let mut sum = *self.departed.lock();
        tenants.values().for_each(|tenant| sum.add(&tenant.usage()));
        sum
    }

    /// Starts a new turn of the window that [`Registry::recent`] looks over; called every few
    /// seconds. `now_ns` counts from an epoch of the caller's choice and must not go back.
    pub fn turn(&self, now_ns: u64) {
        let reading = self.read(now_ns);
        let mut window = self.window.lock();
        window.older = std::mem::replace(&mut window.newer, reading);
    }

    /// What each tenant with any request in the window spent there, per second.
    pub fn recent(&self, now_ns: u64) -> BTreeMap<String, Recent> {
        let now = self.read(now_ns);
        let window = self.window.lock();
        let span_ns = now_ns.saturating_sub(window.older.at_ns).max(1);
        let mut recent = BTreeMap::new();
        for (tenant, usage) in now.usage {
            let before = window.older.usage.get(&tenant).copied().unwrap_or_default();
            let spent = usage.since(&before);
            if spent != Usage::default() {
                recent.insert(tenant, Recent::over(&spent, span_ns));
            }
        }
        recent
    }

    /// What a tenant spent per second between the last two calls of [`Registry::turn`]; nothing
    /// before the second one.
    pub fn last_turn(&self, tenant: &str) -> Recent {
        let window = self.window.lock();
        let usage = |reading: &Reading| reading.usage.get(tenant).copied().unwrap_or_default();
        let span_ns = window.newer.at_ns.saturating_sub(window.older.at_ns);
        let spent = usage(&window.newer).since(&usage(&window.older));
        Recent::over(&spent, span_ns.max(1))
    }

    fn read(&self, at_ns: u64) -> Reading {
        let usages = self.usages().into_iter();
        Reading {
            at_ns,
            usage: usages
                .filter(|(_, usage)| *usage != Usage::default())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Request;

    fn get() -> Request {
        Request {
            class: Class::Get,
            latency_ns: 1_000,
            queue_ns: 0,
            disk_ns: 0,
            bytes_in: 10,
            bytes_out: 100,
            cpu_ns: 5,
            failed: false,
            parts: crate::TimeParts::default(),
        }
    }

    #[test]
    fn cores_are_merged_and_each_has_one_writer() {
        let registry = Registry::new(2);
        let mut first = registry.recorder("web", 0).expect("core 0");
        let mut second = registry.recorder("web", 1).expect("core 1");
        assert!(
            registry.recorder("web", 0).is_none(),
            "a core has one recorder"
        );
        assert!(registry.recorder("web", 2).is_none(), "there are two cores");
        first.record(&get());
        second.record_many(&get(), 4);
        assert_eq!(
            registry.totals("web").expect("known").classes[0]
                .latency
                .count(),
            5
        );
        assert_eq!(registry.usage().requests, 5);
        let answered = registry.answered("web", Class::Get);
        assert_eq!((answered.requests, answered.bytes_out), (5, 200));
        assert_eq!(registry.answered("batch", Class::Get), Answered::default());
        assert!(registry.totals("batch").is_none());
        drop(first);
        registry
            .recorder("web", 0)
            .expect("free again")
            .record(&get());
        assert_eq!(registry.usage().requests, 6, "nothing was lost on the way");
    }

    #[test]
    fn a_tenant_added_again_starts_from_zero() {
        let registry = Registry::new(1);
        let mut old = registry.recorder("web", 0).expect("first");
        old.record(&get());
        registry.remove("web");
        let mut new = registry.recorder("web", 0).expect("again");
        old.record(&get());
        new.record(&get());
        assert_eq!(registry.totals("web").expect("known").usage.requests, 1);
        assert_eq!(
            registry.usage().requests,
            2,
            "what a removed tenant used stays in the sum"
        );
    }

    #[test]
    fn recent_spans_one_to_two_turns() {
        const SECOND: u64 = 1_000_000_000;
        let registry = Registry::new(1);
        let mut web = registry.recorder("web", 0).expect("core 0");
        let _idle = registry.recorder("idle", 0).expect("core 0");
        web.record_many(&get(), 50);
        registry.turn(5 * SECOND);
        web.record_many(&get(), 50);
        assert_eq!(registry.recent(10 * SECOND)["web"].requests_per_s, 10.0);
        registry.turn(10 * SECOND);
        assert_eq!(registry.recent(10 * SECOND)["web"].requests_per_s, 10.0);
        registry.turn(15 * SECOND);
        assert!(registry.recent(16 * SECOND).is_empty(), "nothing since");
        assert!(!registry.recent(16 * SECOND).contains_key("idle"));
    }
}
