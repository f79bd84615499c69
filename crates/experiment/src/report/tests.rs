//! Reports of runs made by hand.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::error::ExperimentError;
use crate::measure::made::series;
use crate::verdict::{judge, Extent, Judgement, Runs};

const REST: &str = "
[[verdict]]
target = \"even <b>shares</b>\"
variant = \"fair\"
point = \"a\"
measure = \"mmr\"
bound = \">= 0.9\"
[[plot]]
title = \"Bars\"
kind = \"bars\"
measure = \"mmr\"
line = \">= 0.9\"
[[plot]]
title = \"Lines\"
kind = \"time\"
points = \"a\"
y = \"rate\"
y_unit = \"req/s\"
";

fn done(experiment: &Experiment) -> Done {
    let mut runs = Runs::default();
    for repeat in 0..3 {
        for variant in ["fifo", "fair"] {
            for point in ["a", "b"] {
                let run = series(&[("x", &[1, 2]), ("y", &[1, 4])]);
                runs.add(repeat, variant, point, run);
            }
        }
    }
    Done {
        judged: judge(experiment, &runs, Extent::default()).expect("judged"),
        runs,
        yardsticks: vec![
            ("server.scheduler.requests".into(), json!("5/s")),
            ("fault".into(), json!([{"node": 0}, {"node": 1}])),
        ],
        notes: vec!["</script><b>note".into()],
        quick: false,
        seed: 7,
        processors: 64,
        took_s: 1.0,
        command: "entremet experiment made".into(),
        cut: None,
    }
}

fn experiment() -> Experiment {
    crate::spec::made(&["fifo", "fair"], &["a", "b"], REST)
}

#[test]
fn pictures_hold_every_variant_with_range_and_target() {
    let experiment = experiment();
    let pictures = pictures::of(&experiment, &done(&experiment));
    let bars = &pictures[0].specs[0];
    assert_eq!(bars["x"]["categories"], json!(["a", "b"]));
    assert_eq!(bars["series"][1]["name"], "fair");
    assert_eq!(bars["series"][1]["y"], json!([1.0, 1.0]));
    assert_eq!(bars["targets"][0]["value"], 0.9);
    // Over time: a picture for each variant, all with the same scale.
    assert_eq!(pictures[1].specs.len(), 2);
    assert_eq!(pictures[1].specs[0]["series"][1]["y"], json!([1.0, 4.0]));
    let tops: BTreeSet<String> = pictures[1]
        .specs
        .iter()
        .map(|spec| spec["y"]["max"].to_string())
        .collect();
    assert_eq!(tops.len(), 1);
}

#[test]
fn the_page_is_whole_and_nothing_breaks_out_of_it() {
    let experiment = experiment();
    let done = done(&experiment);
    let outcome = crate::result::of(&experiment, &done);
    let page = page(&experiment, &done, &outcome);
    for part in [
        "even &lt;b&gt;shares&lt;/b&gt;",
        "entremet experiment made",
        "server.scheduler.requests",
        "2 of them, in result.json",
        "&lt;/script&gt;&lt;b&gt;note",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(!page.contains("<b>note"));
    // Nothing is fetched.
    for part in ["src=", "href=", "@import", "url(h"] {
        assert!(!page.contains(part), "{part}");
    }
    assert_eq!(page.matches("data-plot=\"").count(), 3);
}

#[test]
fn a_page_is_green_only_if_every_target_was_judged_and_met() {
    let experiment = experiment();
    let mark = |done: &Done| {
        let page = page(&experiment, done, &crate::result::of(&experiment, done));
        let found = ["met", "missed", "open"].into_iter();
        let found: Vec<&str> = found
            .filter(|mark| page.contains(&format!("<p class=\"summary {mark}\">")))
            .collect();
        found.join(" and ")
    };
    let mut made = done(&experiment);
    assert_eq!(mark(&made), "met");
    let not_judged = Judgement::NotJudged("too short a run to tell".into());
    let mut more = made.judged[0].clone();
    more.judgement = not_judged.clone();
    made.judged.push(more);
    assert_eq!(mark(&made), "open", "one of two was not judged");
    made.judged[0].judgement = not_judged;
    assert_eq!(mark(&made), "open", "nothing was judged");
    made.judged[0].judgement = Judgement::Miss;
    assert_eq!(mark(&made), "missed");
    made.judged.clear();
    assert_eq!(mark(&made), "open", "there is nothing to be judged");
    let mut cut = done(&experiment);
    cut.cut = Some(ExperimentError::Usage("interrupted".into()));
    assert_eq!(mark(&cut), "open", "runs are missing");
}

#[test]
fn a_result_keeps_every_run_and_verdict() {
    let experiment = experiment();
    let done = done(&experiment);
    let outcome = crate::result::of(&experiment, &done);
    assert_eq!(outcome["name"], "made");
    assert_eq!(outcome["verdicts"][0]["pass"], true);
    assert_eq!(outcome["verdicts"][0]["bound"], ">= 0.9");
    assert_eq!(outcome["verdicts"][0]["samples"], json!([1.0, 1.0, 1.0]));
    assert_eq!(
        outcome["figures"]["runs"].as_array().map(Vec::len),
        Some(12)
    );
    assert_eq!(outcome["seed"], 7);
    assert_eq!(outcome["machine"]["cores"], 64);
}
