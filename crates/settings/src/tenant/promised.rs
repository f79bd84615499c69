//! What a tenant's connections may be told apart by, and what each kind was promised.

use std::fmt;

use policy::slo::{Latency, Objective};
use policy::words::{Choice, Words};
use serde::{Deserialize, Serialize};

use crate::units::{Rate, Time};

/// Workloads that a tenant may have.
pub const WORKLOADS_MAX: usize = 32;

/// The window of a promise that says none, in ns.
const WINDOW_NS: u64 = 10_000_000_000;

/// What some of a tenant's connections are used for: each workload is a queue of its own at every
/// stage, so that a tenant's batch jobs and its interactive requests do not wait behind each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// 1 to 64 characters of `[A-Za-z0-9_.-]`.
    pub name: String,
    /// Patterns that `CLIENT SETNAME` may match; none, here and in `libraries`: the name itself.
    pub clients: Vec<String>,
    /// Patterns that `CLIENT SETINFO LIB-NAME` may match.
    pub libraries: Vec<String>,
    /// Share relative to the tenant's other workloads, > 0.
    pub weight: f64,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            name: String::new(),
            clients: Vec::new(),
            libraries: Vec::new(),
            weight: 1.0,
        }
    }
}

impl Workload {
    /// The patterns that names of clients are held against.
    pub fn client_patterns(&self) -> &[String] {
        match self.clients.is_empty() && self.libraries.is_empty() {
            true => std::slice::from_ref(&self.name),
            false => &self.clients,
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |what: &str, patterns: &[String]| {
            let any = !patterns.is_empty();
            any.then(|| format!("{what} named {}", patterns.join(" or ")))
        };
        let clients = named("clients", self.client_patterns());
        let libraries = named("libraries", &self.libraries);
        let whose: Vec<String> = clients.into_iter().chain(libraries).collect();
        write!(
            f,
            "{} ({}; weight {})",
            self.name,
            whose.join(" or "),
            self.weight
        )
    }
}

/// A promise for one class of a workload's requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Kept")]
pub struct Slo {
    /// The workload; none: the connections of no workload.
    pub workload: Option<String>,
    /// The class.
    pub class: SloClass,
    /// The percentile, 1 to 99.999.
    pub percentile: f64,
    /// What it should not exceed, in ns; none: latency is not promised.
    pub at_most_ns: Option<u64>,
    /// It holds in each window of this length, in ns; none: of 10 s.
    pub window_ns: Option<u64>,
    /// Requests per second that should be served.
    pub throughput_per_s: Option<f64>,
    /// Offered requests per second up to which it holds.
    pub contract_per_s: Option<f64>,
    /// 1 to 100.
    pub importance: u32,
}

/// As data directories hold it. Older ones have percentile and bound together.
#[derive(Deserialize)]
#[serde(default)]
struct Kept {
    workload: Option<String>,
    class: SloClass,
    latency: Option<(f64, u64)>,
    percentile: f64,
    at_most_ns: Option<u64>,
    window_ns: Option<u64>,
    throughput_per_s: Option<f64>,
    contract_per_s: Option<f64>,
    importance: u32,
}

impl Default for Kept {
    fn default() -> Self {
        let Slo {
            percentile,
            importance,
            class,
            ..
        } = Slo::default();
        Self {
            workload: None,
            class,
            latency: None,
            percentile,
            at_most_ns: None,
            window_ns: None,
            throughput_per_s: None,
            contract_per_s: None,
            importance,
        }
    }
}

impl From<Kept> for Slo {
    fn from(kept: Kept) -> Self {
        Self {
            workload: kept.workload,
            class: kept.class,
            percentile: kept
                .latency
                .map_or(kept.percentile, |(percentile, _)| percentile),
            at_most_ns: kept.latency.map(|(_, ns)| ns).or(kept.at_most_ns),
            window_ns: kept.window_ns,
            throughput_per_s: kept.throughput_per_s,
            contract_per_s: kept.contract_per_s,
            importance: kept.importance,
        }
    }
}

impl Default for Slo {
    fn default() -> Self {
        Self {
            workload: None,
            class: SloClass::Any,
            percentile: 99.0,
            at_most_ns: None,
            window_ns: None,
            throughput_per_s: None,
            contract_per_s: None,
            importance: 50,
        }
    }
}

impl Slo {
    /// What it promises, as `policy` judges it.
    #[must_use]
    pub fn objective(&self) -> Objective {
        Objective {
            latency: self.at_most_ns.map(|at_most_ns| Latency {
                percentile: self.percentile,
                at_most_ns,
            }),
            throughput_per_s: self.throughput_per_s,
            contract_per_s: self.contract_per_s,
            importance: self.importance,
            window_ns: self.window_ns.unwrap_or(WINDOW_NS),
        }
    }

    /// Whether both are for the same requests.
    #[must_use]
    pub fn is_of(&self, workload: Option<&str>, class: SloClass) -> bool {
        self.workload.as_deref() == workload && self.class == class
    }

    /// Whose requests it is for: `get` or `get of batch`.
    #[must_use]
    pub fn of(&self) -> String {
        let class = self.class.word();
        match &self.workload {
            Some(workload) => format!("{class} of {workload}"),
            None => class.to_string(),
        }
    }

    /// What it promises, without whose requests it is for.
    #[must_use]
    pub fn targets(&self) -> String {
        let latency = self.at_most_ns.map(|ns| {
            format!(
                "{} % of requests within {}",
                self.percentile,
                Time::from_ns(ns)
            )
        });
        let throughput =
            (self.throughput_per_s).map(|per_s| format!("{} served", Rate::words(per_s)));
        let targets: Vec<String> = latency.into_iter().chain(throughput).collect();
        let window = Time::from_ns(self.objective().window_ns);
        let contract = self.contract_per_s.map(Rate::words);
        let contract = contract.map_or(String::new(), |rate| format!(", up to {rate} offered"));
        format!("{} in every {window}{contract}", targets.join(" and "))
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.of(), self.targets())
    }
}

/// The classes of requests that can be promised something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SloClass {
    /// Reads of one key.
    Get,
    /// Writes of one key.
    Put,
    /// Reads or writes of several keys in one request.
    Multiget,
    /// Walks over a range or a whole keyspace.
    Scan,
    /// All of these.
    Any,
}

impl Words for SloClass {
    #[rustfmt::skip]
    const ALL: &'static [(Self, Choice)] = &[
        (Self::Get, ("get", "Reads of one key.")),
        (Self::Put, ("put", "Writes of one key.")),
        (Self::Multiget, ("multiget", "Reads or writes of several keys in one request.")),
        (Self::Scan, ("scan", "Walks over a range or a whole keyspace.")),
        (Self::Any, ("any", "All of these together.")),
    ];
}
