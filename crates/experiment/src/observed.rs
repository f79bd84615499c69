//! What one run measured: the figures that measures are computed from, and that `result.json` keeps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One run of the load against one server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Observed {
    /// Length of what was measured, seconds.
    pub elapsed_s: f64,
    /// The load client's own state.
    pub generator: Generator,
    /// One element for each tenant, in the scenario's order.
    pub tenants: Vec<Tenant>,
    /// What the run cost the server.
    #[serde(default)]
    pub server: ServerUse,
}

/// Whether the load client kept up.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Generator {
    /// Part of the time that its busiest thread had work, 0 to 1.
    pub busy: f64,
    /// How late requests left, 99th percentile, ms.
    pub lag_p99_ms: f64,
    /// What it has to say against its own figures.
    pub complaint: Option<String>,
}

/// What a run cost the server, load and preload together.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ServerUse {
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// Resident memory at the end, bytes.
    pub resident_bytes: u64,
}

/// One tenant's figures.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Tenant {
    /// Its name at the server.
    pub name: String,
    /// Its name in the scenario, before a `count` made several of it.
    #[serde(default)]
    pub group: String,
    /// Its weight.
    pub weight: f64,
    /// All classes together.
    pub total: Figures,
    /// Each class that was asked for.
    pub classes: Vec<ClassFigures>,
    /// Failures by kind.
    pub errors: Vec<ErrorCount>,
    /// Second by second.
    pub series: Series,
}

/// A class's figures.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ClassFigures {
    /// `get`, `put`, …
    pub class: String,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Rates are averages over the measured time; bytes are the client's: in is replies, out is requests.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Figures {
    /// Requests that the scenario wanted to send, per second.
    pub offered_per_s: f64,
    /// Requests answered without an error, per second.
    pub rate_per_s: f64,
    /// Requests answered with an error, or never.
    pub failed: u64,
    /// Reads that found nothing.
    pub missed: u64,
    /// Bytes of replies per second.
    pub bytes_in_per_s: f64,
    /// Bytes of requests per second.
    pub bytes_out_per_s: f64,
    /// From the intended send time.
    pub latency_ms: Latency,
}

/// Milliseconds.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Highest.
    pub max: f64,
}

/// Failures of one kind.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ErrorCount {
    /// First word of the server's text, or one of the client's own.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The first one's text.
    pub example: String,
}

/// One element a second.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Series {
    /// End of each second, counted from the start of the load.
    pub t_s: Vec<f64>,
    /// Requests answered in it.
    pub rate_per_s: Vec<f64>,
    /// Median latency, ms; none where nothing was answered.
    #[serde(default)]
    pub p50_ms: Vec<Option<f64>>,
    /// 99th percentile, ms; none where nothing was answered.
    #[serde(default)]
    pub p99_ms: Vec<Option<f64>>,
}

impl Observed {
    /// Tenants whose name or group is one of `names` (all if there are none), or the reason why not.
    ///
    /// # Errors
    /// The name that means nothing here.
    pub fn select(&self, names: &[String]) -> Result<Vec<&Tenant>, String> {
        let is = |tenant: &Tenant, name: &String| tenant.name == *name || tenant.group == *name;
        if let Some(stranger) = names
            .iter()
            .find(|name| !self.tenants.iter().any(|tenant| is(tenant, name)))
        {
            let known: BTreeMap<&str, ()> = self
                .tenants
                .iter()
                .map(|tenant| (tenant.group.as_str(), ()))
                .collect();
            let known: Vec<&str> = known.into_keys().collect();
            return Err(format!(
                "no tenant {stranger:?} was loaded; there are {}",
                known.join(", ")
            ));
        }
        let chosen: Vec<&Tenant> = self
            .tenants
            .iter()
            .filter(|tenant| names.is_empty() || names.iter().any(|name| is(tenant, name)))
            .collect();
        if chosen.is_empty() {
            return Err("no tenant was loaded".into());
        }
        Ok(chosen)
    }
}

impl Tenant {
    /// The figures of a class, or of all together.
    ///
    /// # Errors
    /// When the tenant never asked for that class.
    pub fn figures(&self, class: Option<&str>) -> Result<&Figures, String> {
        let Some(class) = class else {
            return Ok(&self.total);
        };
        let found = self.classes.iter().find(|figures| figures.class == class);
        found
            .map(|found| &found.figures)
            .ok_or_else(|| format!("tenant {} asked for nothing of class {class:?}", self.name))
    }
}
