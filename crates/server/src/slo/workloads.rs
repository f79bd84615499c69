//! To which of its tenant's workloads a connection belongs.

use commands::glob_matches;
use settings::tenant::Workload;

/// A tenant's workloads, in the order of its settings. Lane 0 is for connections of none; the lane
/// of the first workload is 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workloads(Vec<Workload>);

impl Workloads {
    /// Those of a tenant's settings.
    pub fn new(workloads: &[Workload]) -> Self {
        Self(workloads.to_vec())
    }

    /// The lane of a connection that calls itself so, and whose library calls itself so; empty: it
    /// has not said.
    pub fn lane(&self, client: &str, library: &str) -> usize {
        let matches = |patterns: &[String], name: &str| {
            let name = name.as_bytes();
            let one = |pattern: &String| glob_matches(pattern.as_bytes(), name);
            !name.is_empty() && patterns.iter().any(one)
        };
        let of = |one: &Workload| {
            matches(one.client_patterns(), client) || matches(&one.libraries, library)
        };
        self.0.iter().position(of).map_or(0, |place| place + 1)
    }

    /// The lane of the workload of this name; none: there is no such workload.
    pub fn named(&self, name: &str) -> Option<usize> {
        let at = self.0.iter().position(|one| one.name == name);
        at.map(|place| place + 1)
    }

    /// The name of a lane's workload; none: of none, or there is no such lane.
    pub fn name(&self, lane: usize) -> Option<&str> {
        let one = self.0.get(lane.checked_sub(1)?)?;
        Some(&one.name)
    }

    /// The weight of a lane beside the tenant's others.
    pub fn weight(&self, lane: usize) -> f64 {
        let one = lane.checked_sub(1).and_then(|place| self.0.get(place));
        one.map_or(1.0, |one| one.weight)
    }

    /// Lanes, that of no workload among them.
    pub fn lanes(&self) -> usize {
        self.0.len() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(name: &str, clients: &[&str], libraries: &[&str]) -> Workload {
        let all = |list: &[&str]| list.iter().map(|text| (*text).to_string()).collect();
        Workload {
            name: name.into(),
            clients: all(clients),
            libraries: all(libraries),
            weight: 1.0,
        }
    }

    #[test]
    fn the_first_workload_whose_pattern_matches_is_a_connection_s_own() {
        let workloads = Workloads::new(&[
            workload("batch", &["etl-*", "report-?"], &["spark*"]),
            workload("web", &[], &[]),
            workload("rest", &["*"], &[]),
        ]);
        for (client, library, lane) in [
            ("etl-7", "", 1),
            ("report-1", "", 1),
            ("report-12", "", 3),
            ("", "spark-redis", 1),
            ("web", "jedis", 2),
            ("web-1", "", 3),
            ("", "jedis", 0),
            ("", "", 0),
        ] {
            assert_eq!(workloads.lane(client, library), lane, "{client} {library}");
        }
        assert_eq!((workloads.lanes(), workloads.name(2)), (4, Some("web")));
        assert_eq!((workloads.named("web"), workloads.name(0)), (Some(2), None));
        assert_eq!(Workloads::default().lane("web", ""), 0);
    }
}
