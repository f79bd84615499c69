//! Brings together what the server says and what the cores counted.

use crate::metrics::{Scrape, TenantScrape};
use crate::model::{AdminSource, TenantSnapshot};
use crate::registry::Registry;
use crate::shares::{shares, Share, Using};

/// One scrape. `now_ns` is on the clock of [`Registry::turn`].
pub fn gather(source: &dyn AdminSource, registry: &Registry, now_ns: u64) -> Scrape {
    let server = source.server();
    let recent = registry.recent(now_ns);
    let gauges = source.tenants();
    let newcomers = source.newcomers();
    let used = |tenant: &TenantSnapshot| Using::of(tenant, recent.get(&tenant.name).copied());
    let by_tenants: Vec<_> = gauges.iter().map(used).collect();
    let by_newcomers = used(&newcomers);
    let shares = shares(&by_tenants, Some(&by_newcomers), &server.capacities);
    let used = by_tenants.into_iter().chain([by_newcomers]);
    let scrape = |((gauges, share), using): ((TenantSnapshot, Share), Using)| {
        let totals = registry.totals(&gauges.name).unwrap_or_default();
        TenantScrape {
            gauges,
            share,
            recent: using.used.unwrap_or_default(),
            totals,
        }
    };
    let everybody = gauges.into_iter().chain([newcomers]);
    let mut everybody: Vec<TenantScrape> = everybody.zip(shares).zip(used).map(scrape).collect();
    let newcomers = everybody.pop();
    let tenants = everybody.into_iter();
    Scrape {
        state: source.state(),
        server,
        tenants: tenants.map(|one| (one.gauges.name.clone(), one)).collect(),
        newcomers,
        stages: source.stages(),
        usage: registry.usage(),
    }
}
