//! What one run measured: the load's figures of every tenant, and what they cost the server.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use workload::report::figures::{
    Figures, GeneratorFigures, LatencyFigures, LoadFigures, TenantFigures,
};
use workload::stats::Pace;

use crate::machine::Disturbance;
use crate::server::times::{self, Latencies};

/// Of `figures`: requests that were neither answered nor failed at the end, of loads that send so
/// many in all. Absent where there are none such.
pub const LEFT: &str = "left";

/// One run: of the load against a server, of the simulator, or of a program.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Observed {
    /// Length of what was measured, seconds.
    pub elapsed_s: f64,
    /// How the load generator fared.
    pub generator: GeneratorFigures,
    /// One element for each tenant, in the scenario's order.
    pub tenants: Vec<Tenant>,
    /// What the run cost the server.
    pub server: ServerUse,
    /// Part of the processors' time, the run's whole life long, that the host of a virtual machine
    /// gave to others: 0 to 1.
    #[serde(default)]
    pub withheld: f64,
    /// Part of it that other processes of this machine used.
    #[serde(default)]
    pub others: f64,
    /// Times that the run was made: until it was not disturbed. The last one counts.
    #[serde(default)]
    pub tried: usize,
    /// It was made before and read from its file.
    #[serde(skip)]
    pub kept: bool,
    /// What all of that took, preloads and starts included, seconds.
    #[serde(default)]
    pub took_s: f64,
    /// How evenly it was answered, by the load's count.
    #[serde(skip)]
    pub pace: Pace,
    /// Figures that no tenant has, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
}

/// One tenant.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Tenant {
    /// Its name in the scenario, before a `count` made several of it.
    pub group: String,
    /// Its name, weight and figures.
    #[serde(flatten)]
    pub load: TenantFigures,
    /// Processor time that the server charged it, seconds per second; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_per_s: Option<f64>,
    /// In which of the windows that ended its promise was kept, by the server, in order; of several
    /// promises, the one that was kept least. Empty where it has none, or no window said something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<bool>,
    /// What it lacked of its promise, weighted by importance, in the mean of all windows; simulated
    /// runs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub badness: Option<f64>,
    /// What the server's own histograms say of the measured time, ms, by the server's class; empty
    /// where nobody looked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_ms: Latencies,
}

/// What a run cost the server, load and preload together.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ServerUse {
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// Resident memory at the end, bytes.
    pub resident_bytes: u64,
}

/// What is known of loads that send so many requests in all.
pub fn left(left: Option<u64>) -> BTreeMap<String, f64> {
    let left = left.map(|left| (LEFT.into(), left as f64));
    left.into_iter().collect()
}

impl Observed {
    /// Seconds until all loads that send so many requests in all were answered; infinite if some
    /// were not.
    ///
    /// # Errors
    /// When there are no such loads.
    pub fn finished_s(&self) -> Result<f64, String> {
        match self.figures.get(LEFT) {
            Some(0.0) => Ok(self.elapsed_s),
            Some(_) => Ok(f64::INFINITY),
            None => Err("no load of the run has `requests`".into()),
        }
    }

    /// What disturbed it.
    pub fn disturbance(&self) -> Disturbance {
        Disturbance {
            withheld: self.withheld,
            others: self.others,
        }
    }

    /// The same run, which rests on yardsticks that were disturbed so much.
    #[must_use]
    pub fn told_in(self, disturbance: Disturbance) -> Self {
        let Disturbance { withheld, others } = self.disturbance().worse(disturbance);
        Self {
            withheld,
            others,
            ..self
        }
    }

    /// Whether figures of this run mean little.
    pub fn disturbed(&self) -> bool {
        self.disturbance().too_much()
    }

    /// A load's figures; `group` knows a tenant's name in the scenario.
    pub fn new(figures: Figures, group: impl Fn(&str) -> String) -> Self {
        let tenants = figures.tenants.into_iter().map(|load| Tenant {
            group: group(&load.name),
            load,
            ..Tenant::default()
        });
        Self {
            elapsed_s: figures.elapsed_s,
            generator: figures.generator,
            tenants: tenants.collect(),
            figures: left(figures.left),
            ..Self::default()
        }
    }

    /// Tenants whose name or group is one of `names` (all if there are none), or the reason why
    /// not.
    ///
    /// # Errors
    /// The name that means nothing here.
    pub fn select(&self, names: &[String]) -> Result<Vec<&Tenant>, String> {
        let is =
            |tenant: &Tenant, name: &String| tenant.load.name == *name || tenant.group == *name;
        let stranger = names
            .iter()
            .find(|name| !self.tenants.iter().any(|tenant| is(tenant, name)));
        if let Some(stranger) = stranger {
            let known: BTreeSet<&str> = self.tenants.iter().map(|one| one.group.as_str()).collect();
            let known: Vec<&str> = known.into_iter().collect();
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

/// Part of the windows in which a promise was kept; none: there are none.
pub fn kept(windows: &[bool]) -> Option<f64> {
    let kept = windows.iter().filter(|kept| **kept).count();
    (!windows.is_empty()).then(|| kept as f64 / windows.len() as f64)
}

impl Tenant {
    /// Part of the windows in which its promise was kept.
    pub fn kept(&self) -> Option<f64> {
        kept(&self.windows)
    }

    /// Windows before the first from which on its promise was kept in all; infinite if the last was
    /// missed.
    pub fn converged(&self) -> Option<f64> {
        let missed = self.windows.iter().rposition(|kept| !kept);
        match (missed, self.windows.len()) {
            (_, 0) => None,
            (None, _) => Some(0.0),
            (Some(last), all) if last + 1 == all => Some(f64::INFINITY),
            (Some(last), _) => Some((last + 1) as f64),
        }
    }

    /// The figures of a class, or of all together.
    ///
    /// # Errors
    /// When the tenant never asked for that class.
    pub fn figures(&self, class: Option<&str>) -> Result<&LoadFigures, String> {
        let Some(class) = class else {
            return Ok(&self.load.total);
        };
        let found = self.load.classes.iter().find(|one| one.class == class);
        found.map(|found| &found.load).ok_or_else(|| {
            let name = &self.load.name;
            format!("tenant {name} asked for nothing of class {class:?}")
        })
    }

    /// What the server's own histograms say of a class of the load, or of all together.
    ///
    /// # Errors
    /// When they say nothing.
    pub fn server_ms(&self, class: Option<&str>) -> Result<&LatencyFigures, String> {
        let class = class.map_or(times::ALL, times::class_of);
        self.server_ms.get(class).ok_or_else(|| {
            let name = &self.load.name;
            format!("the server's histograms say nothing of tenant {name}, class {class:?}")
        })
    }
}
