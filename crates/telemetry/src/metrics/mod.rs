//! `/metrics`: every metric, declared once and used for the page, the reference and its test.
//!
//! Where a metric means what redis_exporter's of the same name means, it has that name, so that
//! dashboards made for Redis work; everything that knows of tenants is `entremet_*`.

mod catalogue;
mod device;
mod page;
mod promise;
mod reference;

use std::collections::BTreeMap;

use crate::model::{ServerSnapshot, StageSnapshot, State, TenantSnapshot};
use crate::shares::{Recent, Share};
use crate::totals::{TenantTotals, Usage};
use crate::upstream::{EngineLinks, EngineReplicas};

pub use page::render;
pub use reference::reference;

/// Everything one scrape shows, gathered before the page is written.
pub struct Scrape {
    /// Whether requests are served.
    pub state: State,
    /// The server as a whole.
    pub server: ServerSnapshot,
    /// Every tenant by name.
    pub tenants: BTreeMap<String, TenantScrape>,
    /// Connections that speak for no tenant yet, as if they were one's.
    pub newcomers: Option<TenantScrape>,
    /// Every stage.
    pub stages: Vec<StageSnapshot>,
    /// All tenants' counters together, those of tenants since removed included.
    pub usage: Usage,
}

/// One tenant's part of a scrape.
pub struct TenantScrape {
    /// What the server says of it.
    pub gauges: TenantSnapshot,
    /// Its share, computed over the last seconds.
    pub share: Share,
    /// What it used in the last seconds.
    pub recent: Recent,
    /// Its counters.
    pub totals: TenantTotals,
}

impl Scrape {
    /// A number of newcomers.
    fn newcomers(&self, of: impl Fn(&TenantScrape) -> f64) -> f64 {
        self.newcomers.as_ref().map_or(0.0, of)
    }

    /// Connections to the engine behind this server.
    fn engine_replicas(&self) -> EngineReplicas {
        self.server.engine_replicas.unwrap_or_default()
    }

    fn engine_links(&self) -> EngineLinks {
        self.server.engine_links.unwrap_or_default()
    }

    /// A sum over tenants.
    fn sum(&self, of: impl Fn(&TenantSnapshot) -> u64) -> f64 {
        self.tenants
            .values()
            .map(|tenant| of(&tenant.gauges))
            .sum::<u64>() as f64
    }
}
