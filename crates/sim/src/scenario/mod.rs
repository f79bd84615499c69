//! Scenarios: the language of `workload::scenario`, and `[cluster]`, `[[fault]]` and `[[pause]]`
//! beside it.

mod cluster;
pub mod reference;
pub mod schema;
mod server;
mod tenants;

use crate::error::SimError;
use crate::spec::{Fault, Keeper, Spec, Tenant};
use policy::cost::device::AHEAD_BYTES_MAX;
use policy::device::Model;
use policy::slo::control::{Auto, AutoOptions, Cake, Controller, Policy};
use settings::{Reader, Report};
use std::path::Path;
use std::time::Duration;
use toml::de::DeTable;
use workload::scenario::Scenario;

/// A scenario that can be simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What results call it.
    pub name: String,
    /// What is simulated.
    pub spec: Spec,
}

impl Plan {
    /// Reads a file; gives its text back too.
    ///
    /// # Errors
    /// [`SimError::Input`], or [`SimError::Scenario`] with everything that is wrong.
    pub fn load(file: &Path) -> Result<(Self, String), SimError> {
        let text = std::fs::read_to_string(file).map_err(|source| SimError::Input {
            path: file.into(),
            source,
        })?;
        let plan = Self::from_text(&text, &file.display().to_string())?;
        Ok((plan, text))
    }

    /// Reads a text; `origin` is what problems call it.
    ///
    /// # Errors
    /// [`SimError::Scenario`] with everything that is wrong, and everything that the simulator does
    /// not have.
    pub fn from_text(text: &str, origin: &str) -> Result<Self, SimError> {
        let table = text.parse();
        let table: toml::Table = table.map_err(|error: toml::de::Error| SimError::Scenario {
            origin: origin.into(),
            problems: error.to_string(),
        })?;
        Self::from_table(table, origin)
    }

    /// Reads a table; `origin` is what problems call it.
    ///
    /// # Errors
    /// As [`Plan::from_text`].
    pub fn from_table(mut table: toml::Table, origin: &str) -> Result<Self, SimError> {
        let refused = |problems: Vec<String>| SimError::Scenario {
            origin: origin.into(),
            problems: problems.join("\n"),
        };
        let mut own = toml::Table::new();
        for name in ["cluster", "fault", "pause"] {
            own.extend(table.remove(name).map(|value| (name.to_string(), value)));
        }
        server::fill(&mut own, table.get("server"));
        let (cluster, mut problems) = read_own(&own.to_string(), origin);
        let scenario = match Scenario::from_table(table, origin) {
            Ok(scenario) => scenario,
            Err(error) => {
                problems.push(error.to_string());
                return Err(refused(problems));
            }
        };
        let warm_up = scenario.warm_up;
        let tenants = tenants::tenants(&scenario, &cluster, &mut problems);
        if !problems.is_empty() {
            return Err(refused(problems));
        }
        let faults = cluster.faults.iter().map(|(fault, after_warm_up)| {
            let since_ns = if *after_warm_up { ns(warm_up) } else { 0 };
            Fault {
                from_ns: fault.from_ns + since_ns,
                until_ns: fault.until_ns + since_ns,
                ..*fault
            }
        });
        let keeper = keeper(&cluster, &tenants);
        let spec = Spec {
            seed: scenario.seed,
            duration_ns: ns(warm_up + scenario.duration),
            warm_up_ns: ns(warm_up),
            drain_ns: ns(scenario.drain),
            faults: faults.collect(),
            pauses: cluster.pauses,
            keeper,
            cluster: cluster.cluster,
            scheduler: cluster.scheduler,
            routing: cluster.routing,
            tenants,
        };
        Ok(Plan {
            name: scenario.name,
            spec,
        })
    }
}

/// How often a controller decides, as on a server where nothing is said.
const KEEP_NS: u64 = 1_000_000_000;

/// Who keeps promises: told what the disks are like, as on a server.
fn keeper(cluster: &cluster::Read, tenants: &[Tenant]) -> Option<Keeper> {
    let controller = match cluster.keeper? {
        Policy::Auto => {
            let device = cluster.cluster.device.as_ref()?;
            // Where there is one for each request, none need be kept free.
            let handlers = device.handlers.unwrap_or(0);
            let streams = || tenants.iter().flat_map(|tenant| &tenant.streams);
            let usual = AutoOptions {
                piece_bytes_max: match streams().any(|stream| stream.requests.range) {
                    true => AHEAD_BYTES_MAX,
                    false => AutoOptions::default().piece_bytes_max,
                },
                drives: device.disks,
                ..AutoOptions::default()
            };
            let options = match &device.model {
                Model::Hdd(disk) => AutoOptions {
                    handlers,
                    stream_bytes_per_s: disk.outer_bytes_per_s,
                    ..usual
                },
                Model::Ssd(_) => AutoOptions {
                    seeks: false,
                    depth: device.depth,
                    handlers,
                    ..usual
                },
            };
            Controller::Auto(Box::new(Auto::new(options)))
        }
        Policy::Cake => Controller::Cake(Box::new(Cake::new(cluster.cake))),
        policy => Controller::new(policy),
    };
    Some(Keeper {
        controller,
        interval_ns: KEEP_NS,
    })
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// `[cluster]`, `[[fault]]` and `[[pause]]`, and what is wrong with them.
fn read_own(text: &str, origin: &str) -> (cluster::Read, Vec<String>) {
    let (document, _) = DeTable::parse_recoverable(text);
    let reader = Reader::new(&schema::LANGUAGE, Report::placeless(origin, text), false);
    let read = cluster::read(&reader.root(document.get_ref()));
    let report = reader.report.into_inner();
    let mut problems = Vec::new();
    if report.failed() {
        problems.push(report.to_string().trim_end().to_string());
    }
    (read, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_consistent_and_every_key_is_read() {
        assert_eq!(schema::LANGUAGE.mistakes(), Vec::<String>::new());
        let text = "[cluster]\n[[fault]]\nnode = 0\nat = \"1s\"\nlength = \"1s\"\n[[pause]]";
        let (document, _) = DeTable::parse_recoverable(text);
        let reader = Reader::new(&schema::LANGUAGE, Report::placeless("x", text), false);
        let read = cluster::read(&reader.root(document.get_ref()));
        let read = (read.cluster.nodes, read.faults.len(), read.pauses.len());
        assert_eq!(read, (1, 1, 0));
        let asked = reader.asked();
        let never: Vec<_> = schema::LANGUAGE
            .keys()
            .map(|key| key.path)
            .filter(|path| !asked.contains(path))
            .collect();
        assert_eq!(never, Vec::<&str>::new());
    }
}
