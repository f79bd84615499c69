//! The experiments of this repository: all of them can be read, and say what a reader needs.

#[path = "switched/table.rs"]
#[expect(dead_code, reason = "only the names are of use here")]
mod table;

use std::path::PathBuf;

use experiment::find;
use experiment::measure::figure::{Combine, Figure};
use experiment::plan;
use experiment::player::LoadClient;
use experiment::spec::Measure;
use experiment::way;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

#[test]
fn every_folder_is_a_good_experiment() {
    let experiments = find::read(&folder(), &["all".to_string()]).expect("all can be used");
    for experiment in &experiments {
        let name = &experiment.name;
        let readme = std::fs::read_to_string(experiment.folder.join("README.md"));
        let readme = readme.unwrap_or_else(|error| panic!("{name}: README.md: {error}"));
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}");
        for part in ["**Claim.**", "**Here.**", "**Caveats.**"] {
            // What there is no caveat about need not make one up.
            let optional = part == "**Caveats.**";
            assert!(
                optional || readme.contains(part),
                "{name}: README.md lacks {part}"
            );
        }
        assert!(!experiment.plots.is_empty(), "{name} draws nothing");
        let quick = experiment
            .verdicts
            .iter()
            .filter(|one| one.quick && one.bound.is_some());
        assert!(quick.count() > 0, "{name}: a short run judges nothing");
    }
}

#[test]
fn published_results_stand_beside_their_baselines() {
    for experiment in find::read(&folder(), &["all".to_string()]).expect("all can be used") {
        let names: Vec<&str> = experiment
            .variants
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        // Who compares orders of requests compares all that there are.
        if names.contains(&"fifo") {
            let all = ["fifo", "lottery", "fair"];
            let all = all.iter().all(|one| names.contains(one));
            assert!(all, "{}: {names:?}", experiment.name);
        }
        assert!(names.len() > 1, "{}", experiment.name);
        // A device's own time has no noise: a repeat is another seed there.
        let program = experiment.base.get("program").and_then(|one| one.as_str());
        let exact = program.is_some_and(|name| name.starts_with("device-"));
        let least = match experiment.name.as_str() {
            _ if exact => 1,
            // Ten minutes at once; each run is five times, of which the least counts.
            "client-server-agreement" | "one-request" => 1,
            // A hundred mixes of tenants are a hundred repeats.
            "admission" => 1,
            // Runs over a minute.
            "libra-adapt"
            | "libra-amplification"
            | "libra-reservations"
            | "libra-writer"
            | "pisces-dynamic"
            | "pisces-dynamic-cluster"
            | "placement-cluster" => 3,
            "cake-convergence" | "cake-spike" | "promise-flash" => 3,
            "cake-consolidation" | "cake-diurnal" | "cake-mechanisms" | "cake-stages" => 3,
            "cake-tradeoff" | "frosting-feedback" | "promises-cross-check" => 3,
            "cake-diurnal-simulated" | "cake-spike-simulated" | "many-slos-simulated" => 3,
            "cake-consolidation-simulated" | "cake-tradeoff-simulated" => 3,
            "pisces-dynamic-simulated" | "pisces-isolation-simulated" => 3,
            "pisces-scale-simulated" | "pisces-weighted-simulated" => 3,
            _ => 5,
        };
        assert!(experiment.repeats >= least, "{}", experiment.name);
    }
}

/// Experiments whose verdicts do not say yet how each is made to fail; those of
/// [`table::EXPERIMENTS`] have rows there that do. The list only shrinks.
const TO_COME: [&str; 5] = [
    "client-server-agreement",
    "disk-neighbour",
    "disk-speed",
    "one-request",
    "simulator-cross-check",
];

#[test]
fn a_verdict_names_what_switches_it_off_or_says_why_nothing_does() {
    let mut silent = Vec::new();
    for experiment in find::read(&folder(), &["all".to_string()]).expect("all can be used") {
        let name = experiment.name.as_str();
        if TO_COME.contains(&name) || table::EXPERIMENTS.contains(&name) {
            continue;
        }
        let judged = experiment.verdicts.iter().filter(|one| one.bound.is_some());
        // That a request which fails is counted has a test of its own (entremet/tests).
        let judged = judged.filter(|one| one.query.choice.figure != Figure::Failed);
        let none = judged.filter(|one| one.off.is_none() && one.no_off.is_empty());
        silent.extend(none.map(|one| format!("{}: {}", experiment.name, one.target)));
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn the_reference_names_every_measure_and_figure() {
    let page = folder().join("../docs/reference/experiment.md");
    let page = std::fs::read_to_string(page).expect("the reference");
    let measures = Measure::WORDS.iter().map(|(word, _)| *word);
    let figures = Figure::WORDS.iter().map(|(word, ..)| *word);
    let combinations = Combine::WORDS.iter().map(|(word, _)| *word);
    for word in measures.chain(figures).chain(combinations) {
        assert!(page.contains(&format!("`{word}`")), "{word}");
    }
}

#[test]
fn the_guide_s_experiment_is_a_good_one() {
    let guide =
        std::fs::read_to_string(folder().join("../docs/guide/experiments.md")).expect("the guide");
    let (_, rest) = guide.split_once("```toml\n").expect("an example");
    let (text, _) = rest.split_once("```").expect("its end");
    let made = tempfile::tempdir().expect("folder");
    let inner = made.path().join("deletes");
    std::fs::create_dir(&inner).expect("inner");
    std::fs::write(inner.join("experiment.toml"), text).expect("file");
    find::read(made.path(), &["deletes".to_string()]).expect("what the guide says can be used");
}

#[test]
fn every_scenario_can_be_played() {
    let mut problems = Vec::new();
    for experiment in find::read(&folder(), &["all".to_string()]).expect("all can be used") {
        for quick in [false, true] {
            for run in plan::runs(&experiment, quick, Some(1), None) {
                let scenario = experiment.scenario(run.variant, run.point, quick);
                let origin = format!("{} {}", experiment.name, run.label());
                problems.extend(way::problem(&LoadClient, &scenario, &origin));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
