//! `report.html`: one file that needs nothing else. Pictures as the paper drew them, the verdicts,
//! and what it takes to run it again.

mod columns;
mod html;
mod pictures;
mod single;
mod time;

use serde_json::Value;

use crate::done::Done;
use crate::observed::Observed;
use crate::plan;
use crate::server::config;
use crate::spec::Experiment;
use crate::table;
use crate::verdict::Judged;
use crate::way;

use html::row;
pub(crate) use html::{escape, plain as plain_page};

pub use single::of_simulation;

const STYLE: &str = include_str!("report.css");
const DRAW: &str = include_str!("report.js");
const UPLOT: &str = include_str!("../../../../web/vendor/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../../../web/vendor/uPlot.min.css");
const MARKS: &str = include_str!("../../../../web/plot-marks.js");
const PLOT: &str = include_str!("../../../../web/plot.js");
const PLOT_STYLE: &str = include_str!("../../../../web/plot.css");

/// The page. `outcome` is the result as it is written beside it: seed, commit and machine are taken
/// from there.
pub fn page(experiment: &Experiment, done: &Done, outcome: &Value) -> String {
    let pictures = pictures::of(experiment, done);
    let body = [
        head(experiment, done),
        verdicts(&done.judged),
        html::pictures(&pictures),
        told(
            "What the paper printed",
            std::slice::from_ref(&experiment.paper),
        ),
        told("What was learnt", &experiment.learnt),
        compared(experiment),
        runs(experiment, done),
        again(done, outcome),
        configuration(experiment, done),
    ]
    .concat();
    html::page(&experiment.name, &body, &pictures)
}

fn head(experiment: &Experiment, done: &Done) -> String {
    let summary = table::summary(&done.judged);
    // Green says that what matters was judged: not that nothing was found wrong.
    let mark = match done.passed() {
        false => "missed",
        true if done.all_met() => "met",
        true => "open",
    };
    let short = if done.quick {
        "<p class=\"warning\">This is a short run, for a first look: not for a verdict on what is prone to noise.</p>"
    } else {
        ""
    };
    format!(
        "<header><h1>{}</h1><p class=\"source\">{}</p><p>{}</p><p class=\"summary {mark}\">{}</p>{short}</header>\n",
        escape(&experiment.title),
        escape(&experiment.source),
        escape(&experiment.shows),
        escape(&summary),
    )
}

fn verdicts(judged: &[Judged]) -> String {
    let head = "<tr><th></th><th>target</th><th class=\"n\">measured</th><th>range</th><th class=\"n\">bound</th>\
                <th class=\"paper\">paper</th><th>beside it</th></tr>";
    let rows: String = judged.iter().map(verdict).collect();
    format!("<section><h2>Verdicts</h2><div class=\"wide\"><table class=\"verdicts\">{head}{rows}</table></div></section>\n")
}

/// Bounds as print has them.
pub(crate) fn bound(text: &str) -> String {
    text.replace(">=", "≥").replace("<=", "≤")
}

fn verdict(judged: &Judged) -> String {
    let (median, range) = judged
        .measured
        .as_ref()
        .map(table::measured)
        .unwrap_or_default();
    let word = table::word(&judged.judgement);
    let why = judged.judgement.why();
    let why = why.map_or_else(String::new, |why| {
        format!("<br><small>{}</small>", escape(why))
    });
    let must = table::bound(judged).map(|one| bound(&one));
    let class = match judged.judgement.pass() {
        Some(true) => "pass",
        Some(false) => "miss",
        None => "open",
    };
    format!(
        "<tr class=\"{class}\"><td class=\"word\">{word}</td><td>{}{why}</td><td class=\"n\">{median}</td>\
         <td class=\"range\">{range}</td><td class=\"n\">{}</td><td class=\"paper\">{}</td><td>{}</td></tr>\n",
        escape(&judged.target),
        escape(&must.unwrap_or_default()),
        escape(&judged.paper),
        beside(judged),
    )
}

/// The other variants' figures, none torn apart at the end of a line.
fn beside(judged: &Judged) -> String {
    let each = table::beside(judged).into_iter();
    let each = each.map(|text| format!("<span>{}</span>", escape(&text)));
    each.collect::<Vec<String>>().join(", ")
}

fn told(heading: &str, paragraphs: &[String]) -> String {
    if paragraphs.is_empty() {
        return String::new();
    }
    let each = paragraphs.iter();
    let text: String = each.map(|one| format!("<p>{}</p>", escape(one))).collect();
    format!("<section><h2>{heading}</h2>{text}</section>\n")
}

/// What variants and points are, as far as their names do not say it.
fn compared(experiment: &Experiment) -> String {
    let fact = |name: &str, about: &str| {
        format!(
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(name),
            escape(about)
        )
    };
    let variants = experiment
        .variants
        .iter()
        .map(|one| (&one.name, &one.about));
    let points = experiment.points.iter().map(|one| (&one.name, &one.about));
    let told = variants
        .chain(points)
        .filter(|(_, about)| !about.is_empty());
    let mut rows: String = told.map(|(name, about)| fact(name, about)).collect();
    for point in &experiment.points {
        if let Some(why) = &point.later {
            rows += &fact(&point.name, &format!("later: {why}"));
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!("<section><h2>What was compared</h2><table class=\"facts\">{rows}</table></section>\n")
}

/// Every variant at every point: what it did, whatever was judged.
fn runs(experiment: &Experiment, done: &Done) -> String {
    let columns = columns::of(&done.runs);
    let heads = ["run", "repeats"].map(String::from).into_iter();
    let heads: Vec<String> = heads
        .chain(columns.iter().map(|one| one.head.clone()))
        .collect();
    let mut rows = row("th", &heads);
    for point in &experiment.points {
        for variant in &experiment.variants {
            let observed: Vec<&Observed> = done.runs.of(&variant.name, &point.name).collect();
            if !observed.is_empty() {
                let place = plan::place(&variant.name, &point.name);
                let own = [place, observed.len().to_string()].into_iter();
                let cells = columns.iter().map(|column| column.median(&observed));
                rows += &row("td", &own.chain(cells).collect::<Vec<String>>());
            }
        }
    }
    let about = "Medians over the repeats. Latency is the highest of the tenants' own; it counts from when a \
                 request was due (open loop) or sent (closed loop). <code>result.json</code> has every run.";
    let each = done.notes.iter();
    let notes: String = each
        .map(|note| format!("<li>{}</li>", escape(note)))
        .collect();
    let notes = if notes.is_empty() {
        notes
    } else {
        format!("<p>To know about these figures:</p><ul class=\"warning\">{notes}</ul>")
    };
    format!("<section><h2>Runs</h2><p>{about}</p><div class=\"wide\"><table>{rows}</table></div>{notes}</section>\n")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "unknown".into(),
        other => other.to_string(),
    }
}

fn again(done: &Done, outcome: &Value) -> String {
    let fact = |name: &str, value: &str| {
        format!(
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(name),
            escape(value)
        )
    };
    let machine = &outcome["machine"];
    let (cpu, system) = (plain(&machine["cpu"]), plain(&machine["system"]));
    let mut rows = [
        fact("command", &done.command),
        fact("commit", &plain(&outcome["commit"])),
        fact(
            "seed",
            &format!("{}; each repeat takes the next", done.seed),
        ),
        fact(
            "machine",
            &format!("{cpu}, {} processors, {system}", machine["cores"]),
        ),
        fact("took", &format!("{:.0} s", done.took_s)),
    ]
    .concat();
    for (key, value) in &done.yardsticks {
        let told = match value.as_array() {
            Some(list) => format!("{} of them, in result.json", list.len()),
            None => plain(value),
        };
        rows += &fact(key, &format!("{told}, measured first"));
    }
    format!("<section><h2>To repeat it</h2><table class=\"facts\">{rows}</table></section>\n")
}

/// Text that is shown when somebody wants to see it.
fn folded(name: &str, text: &str) -> String {
    let (name, text) = (escape(name), escape(text));
    format!("<details><summary>{name}</summary><pre>{text}</pre></details>")
}

fn configuration(experiment: &Experiment, done: &Done) -> String {
    let mut text = folded("experiment.toml", &experiment.text);
    if let Some(point) = experiment.extent(done.quick).1.first() {
        for variant in &experiment.variants {
            let scenario = experiment.scenario(variant, point, done.quick);
            let place = plan::place(&variant.name, &point.name);
            let (what, table) = if way::takes_a_server(&scenario) {
                ("The server's configuration", config::of_scenario(&scenario))
            } else {
                ("The scenario", scenario)
            };
            text += &folded(&format!("{what}: {place}"), &table.to_string());
        }
    }
    format!("<section><h2>Configuration</h2>{text}</section>\n")
}

#[cfg(test)]
mod tests;
