//! The Grafana dashboard and the alert rules name only metrics and labels that there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana/");

/// Name and type of every metric in the reference.
fn catalogue() -> BTreeMap<String, String> {
    let reference = telemetry::metrics::reference();
    let rows = reference.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((name.to_string(), rest.split(' ').next()?.to_string()))
    });
    rows.collect()
}

/// The metric names in an expression, suffixes of histograms included.
fn named(expression: &str) -> BTreeSet<String> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let ours = |name: &&str| name.starts_with("entremet_") || name.starts_with("redis_");
    expression
        .split(word)
        .filter(ours)
        .map(str::to_string)
        .collect()
}

/// What is wrong with the names of an expression.
fn unknown(expression: &str, catalogue: &BTreeMap<String, String>) -> Vec<String> {
    let known = |name: &String| {
        let histogram = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .and_then(|base| catalogue.get(base));
        match (catalogue.get(name), histogram) {
            // A histogram has no series of its bare name.
            (Some(kind), _) => kind != "histogram",
            (None, Some(kind)) => kind == "histogram",
            (None, None) => false,
        }
    };
    named(expression)
        .into_iter()
        .filter(|name| !known(name))
        .collect()
}

/// Counters only grow, so that only their rates say something.
fn bare_counters(expression: &str, catalogue: &BTreeMap<String, String>) -> Vec<String> {
    let counters = named(expression).into_iter().filter(|name| {
        let counter = catalogue.get(name).is_some_and(|kind| kind == "counter");
        let rated = ["rate(", "increase(", "label_values("]
            .iter()
            .any(|function| expression.contains(&format!("{function}{name}")));
        counter && !rated
    });
    counters.collect()
}

fn expressions(json: &Value, found: &mut Vec<String>) {
    match json {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text)
                        if key == "expr" || key == "definition" || key == "query" =>
                    {
                        found.push(text.clone());
                    }
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

fn check(texts: &[String], at_least: usize) {
    let catalogue = catalogue();
    let mut all = BTreeSet::new();
    for text in texts {
        assert_eq!(unknown(text, &catalogue), [""; 0], "in {text}");
        assert_eq!(bare_counters(text, &catalogue), [""; 0], "in {text}");
        all.extend(named(text));
    }
    assert!(all.len() >= at_least, "{} metrics: {all:?}", all.len());
}

#[test]
fn the_dashboard_names_what_there_is() {
    let text = fs::read_to_string(format!("{FOLDER}dashboard.json")).expect("dashboard.json");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let mut found = Vec::new();
    expressions(&json, &mut found);
    check(&found, 20);
    let panels = json["panels"].as_array().expect("panels");
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "every panel has its own id");
}

#[test]
fn the_alerts_name_what_there_is() {
    let text = fs::read_to_string(format!("{FOLDER}alerts.yml")).expect("alerts.yml");
    // Every rule is an item of its own, and its expression comes before `for` or `labels`.
    let rules: Vec<&str> = text.split("- alert: ").skip(1).collect();
    let expression = |rule: &&str| {
        let from = rule.find("expr:").expect("an expression");
        let rest = &rule[from..];
        let end = ["\n        for:", "\n        labels:"]
            .iter()
            .filter_map(|mark| rest.find(mark))
            .min();
        rest[..end.expect("labels")].to_string()
    };
    let found: Vec<String> = rules.iter().map(expression).collect();
    assert!(
        rules.len() >= 8
            && rules
                .iter()
                .all(|rule| rule.contains("summary:") && rule.contains("do:"))
    );
    check(&found, 9);
}

#[test]
fn a_wrong_name_would_be_found() {
    let catalogue = catalogue();
    assert_eq!(
        unknown("rate(entremet_tenant_reqs_total[1m])", &catalogue),
        ["entremet_tenant_reqs_total"]
    );
    assert_eq!(
        unknown("entremet_tenant_latency_seconds", &catalogue),
        ["entremet_tenant_latency_seconds"]
    );
    assert_eq!(
        unknown("entremet_tenant_weight_sum", &catalogue),
        ["entremet_tenant_weight_sum"]
    );
    assert_eq!(
        bare_counters("entremet_commits_total > 5", &catalogue),
        ["entremet_commits_total"]
    );
}
