//! Figures second by second.

use serde_json::{json, Value};

use super::pictures::{spec, LOOKS};
use crate::done::Done;
use crate::measure::figure::Figure;
use crate::measure::window;
use crate::observed::{Observed, Tenant};
use crate::spec::Plot;

/// Lines in one picture; more tenants than this are drawn as their groups' means.
const LINES_MAX: usize = 8;

/// The first repeat, a picture for each variant with one scale for all.
pub(super) fn pictures(plot: &Plot, figures: &[Figure], done: &Done) -> Vec<Value> {
    let point = &plot.points[0];
    let found = plot.variants.iter().filter_map(|variant| {
        let run = done.runs.of(variant, point).next()?;
        Some((variant, lines(run, figures)))
    });
    let found: Vec<(&String, Vec<Line>)> = found.collect();
    let all = found.iter().flat_map(|(_, lines)| lines);
    let most = all
        .flat_map(|line| line.values.iter().flatten())
        .copied()
        .fold(0.0, f64::max);
    let of = |(variant, lines): &(&String, Vec<Line>)| {
        let mut spec = spec(plot, json!({ "label": "time", "unit": "s" }), drawn(lines));
        spec["title"] = json!(variant);
        spec["y"]["max"] = json!(most * 1.05);
        spec
    };
    found.iter().map(of).collect()
}

/// The series of one figure of a run.
pub(super) fn series(run: &Observed, figure: Figure) -> Vec<Value> {
    drawn(&lines(run, &[figure]))
}

fn drawn(lines: &[Line]) -> Vec<Value> {
    let drawn = lines.iter().enumerate().map(|(look, line)| {
        json!({
            "name": line.name, "look": look % LOOKS, "kind": "line", "x": line.t_s, "y": line.values,
        })
    });
    drawn.collect()
}

struct Line {
    name: String,
    t_s: Vec<u64>,
    values: Vec<Option<f64>>,
}

/// A line for each figure of each tenant, or of each group where there are too many.
fn lines(run: &Observed, figures: &[Figure]) -> Vec<Line> {
    let mut groups: Vec<(&str, Vec<&Tenant>)> = Vec::new();
    let apart = run.tenants.len() <= LINES_MAX;
    for tenant in &run.tenants {
        let name = if apart {
            &tenant.load.name
        } else {
            &tenant.group
        };
        match groups.iter_mut().find(|(known, _)| known == name) {
            Some((_, members)) => members.push(tenant),
            None => groups.push((name, vec![tenant])),
        }
    }
    let mut lines = Vec::new();
    for (name, members) in groups {
        let name = match members.len() {
            1 => name.to_string(),
            many => format!("{name}, mean of {many}"),
        };
        for figure in figures {
            let word = Figure::WORDS.iter().find(|(_, known, _)| known == figure);
            let word = word.map_or("", |(word, ..)| word);
            let name = match (figures.len(), run.tenants.len()) {
                (1, _) => name.clone(),
                (_, 1) => word.to_string(),
                _ => format!("{name}, {word}"),
            };
            lines.push(line(name, &members, *figure));
        }
    }
    lines
}

/// The mean over some tenants.
fn line(name: String, members: &[&Tenant], figure: Figure) -> Line {
    let t_s = members[0].load.series.t_s.clone();
    let values = window::series(figure).map_or_else(Vec::new, |of| {
        let each: Vec<_> = members
            .iter()
            .map(|tenant| of(&tenant.load.series))
            .collect();
        let mean = |second: usize| {
            let there = each.iter().filter_map(|values| *values.get(second)?);
            let (sum, count) = there.fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
            (count > 0).then(|| sum / f64::from(count))
        };
        (0..t_s.len()).map(mean).collect()
    });
    Line { name, t_s, values }
}
