//! Brings together what the server says and what the cores counted.

use std::collections::BTreeMap;

use crate::metrics::{Scrape, TenantScrape};
use crate::model::{AdminSource, TenantSnapshot};
use crate::registry::Registry;
use crate::shares::{shares, Recent, Share};

/// One scrape. `now_ns` is on the clock of [`Registry::turn`].
pub fn gather(source: &dyn AdminSource, registry: &Registry, now_ns: u64) -> Scrape {
    let server = source.server();
    let recent = registry.recent(now_ns);
    let gauges = source.tenants();
    let used: Vec<(f64, Option<Recent>)> = gauges
        .iter()
        .map(|tenant| (tenant.weight, recent.get(&tenant.name).copied()))
        .collect();
    let shares = shares(&used, &server.capacities);
    let scrape =
        |((gauges, share), (_, recent)): ((TenantSnapshot, Share), (f64, Option<Recent>))| {
            let totals = registry.totals(&gauges.name).unwrap_or_default();
            let recent = recent.unwrap_or_default();
            (
                gauges.name.clone(),
                TenantScrape {
                    gauges,
                    share,
                    recent,
                    totals,
                },
            )
        };
    let tenants: BTreeMap<_, _> = gauges
        .into_iter()
        .zip(shares)
        .zip(used)
        .map(scrape)
        .collect();
    Scrape {
        state: source.state(),
        server,
        tenants,
        stages: source.stages(),
        usage: registry.usage(),
    }
}
