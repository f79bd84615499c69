//! Internal measurements: what is shown without a server and without a cluster.
//!
//! A scenario that names a `program` is handed to it; every other key is a parameter, so that
//! variants and points lay theirs over as they do over any scenario. What comes back is what a run
//! observed: figures by name ([`Figure::Whole`]), or tenants.
//!
//! [`Figure::Whole`]: crate::measure::figure::Figure::Whole

mod admission;
mod device;
mod disk;
mod disk_speed;
mod levels;
mod plan;
mod queues;
mod rein;
mod request;

use std::collections::BTreeMap;
use std::path::Path;

use settings::table::{whole, Fields, Problems};
use toml::Table;

use crate::observed::Observed;

/// An internal measurement.
#[derive(Clone, Copy)]
pub struct Program {
    /// What scenarios call it.
    pub name: &'static str,
    /// Whether what it measures takes real time, so that others on the machine disturb it.
    pub timed: bool,
    /// Reads its parameters and gives the work to do, so that a scenario can be checked without
    /// doing it.
    pub prepare: fn(&Fields) -> Work,
}

/// Does the work, and tells what it observed, or why it could not.
pub type Work = Box<dyn FnOnce(&Host) -> Result<Observed, String>>;

/// What a program that starts a server does it with.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// The binary.
    pub binary: &'a Path,
    /// The server's processors. The program itself has others.
    pub cores: &'a [usize],
}

/// A run of figures that no tenant has.
fn figures<const N: usize>(figures: [(&str, f64); N]) -> Observed {
    let named = figures.map(|(name, value)| (name.to_string(), value));
    Observed {
        figures: BTreeMap::from(named),
        ..Observed::default()
    }
}

/// All of them.
const ALL: &[Program] = &[
    admission::ADMISSION,
    device::INTERFERENCE,
    device::PRICES,
    disk_speed::DISK_SPEED,
    plan::PLAN,
    queues::QUEUES,
    rein::REIN,
    request::REQUEST,
];

/// Whether a scenario is one for a program.
pub fn is(scenario: &Table) -> bool {
    scenario.contains_key("program")
}

/// Whether a scenario is one for a program whose tenants share a device.
pub fn shares_a_device(scenario: &Table) -> bool {
    let name = scenario.get("program").and_then(toml::Value::as_str);
    let sharing = [&device::INTERFERENCE, &device::PRICES];
    sharing.into_iter().any(|one| Some(one.name) == name)
}

/// Whether others on the machine disturb what a scenario's program measures: what goes on in
/// simulated time they do not, but for a real disk in the place of an emulated one.
pub fn is_timed(scenario: &Table) -> bool {
    let name = scenario.get("program").and_then(toml::Value::as_str);
    let timed = |one: &&Program| Some(one.name) == name && one.timed;
    scenario.contains_key("profile") || ALL.iter().any(|one| timed(&one))
}

/// What is wrong with a scenario, if anything; `origin` is what the text calls it.
pub fn problem(scenario: &Table, origin: &str) -> Option<String> {
    prepared(scenario, ALL)
        .err()
        .map(|why| format!("{origin}: {why}"))
}

/// Runs one.
///
/// # Errors
/// As [`problem`], and what kept it from its work.
pub fn play(scenario: &Table, host: &Host) -> Result<Observed, String> {
    prepared(scenario, ALL)?(host)
}

/// The work that a scenario asks for, or everything that is wrong with it.
fn prepared(scenario: &Table, all: &[Program]) -> Result<Work, String> {
    let name = scenario.get("program").and_then(toml::Value::as_str);
    let Some(program) = all.iter().find(|one| Some(one.name) == name) else {
        let known: Vec<&str> = all.iter().map(|one| one.name).collect();
        let known = known.join(", ");
        return Err(format!("program: is none of those there are: {known}"));
    };
    let problems = Problems::default();
    let parameters = Fields::new(scenario, "", &problems);
    let work = (program.prepare)(&parameters);
    // What is a scenario's whoever plays it.
    let _ = (parameters.has("program"), seed(&parameters));
    parameters.finish();
    match problems.list() {
        none if none.is_empty() => Ok(work),
        some => Err(some.join("\n")),
    }
}

/// The scenario's seed.
fn seed(parameters: &Fields) -> u64 {
    parameters
        .get("seed", "a whole number from 0", whole)
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: Program = Program {
        name: "double",
        timed: false,
        prepare: |parameters| {
            let number = parameters.count("number").unwrap_or(3);
            let word = parameters.word("word", &["one", "two"]);
            Box::new(move |_| {
                let doubled = 2.0 * number as f64;
                Ok(figures([(word, doubled)]))
            })
        },
    };

    fn told(text: &str) -> Result<BTreeMap<String, f64>, String> {
        let scenario: Table = text.parse().expect("toml");
        let host = Host {
            binary: Path::new("none"),
            cores: &[],
        };
        Ok(prepared(&scenario, &[DOUBLE])?(&host)?.figures)
    }

    #[test]
    fn parameters_reach_the_program_and_figures_come_back() {
        let figures = told("program = \"double\"\nseed = 4\nword = \"two\"").expect("good");
        assert_eq!(figures, BTreeMap::from([("two".to_string(), 6.0)]));
        let figures = told("program = \"double\"\nnumber = 5\nword = \"one\"").expect("good");
        assert_eq!(figures, BTreeMap::from([("one".to_string(), 10.0)]));
    }

    #[test]
    fn everything_wrong_is_said_at_once() {
        let bad = "program = \"double\"\nnumber = \"x\"\nword = \"three\"\nnumbr = 1";
        let problems = told(bad).expect_err("bad");
        for part in ["number: ", "word: ", "one, two", "numbr: means nothing"] {
            assert!(problems.contains(part), "{part}: {problems}");
        }
        let unknown = told("program = \"halve\"").expect_err("unknown");
        assert!(unknown.contains("double"), "{unknown}");
        assert!(told("program = 3").is_err());
    }
}
