//! The pictures' data, in the plot module's language (`web/plot.js`).

use serde_json::{json, Value};

use super::time;
use crate::done::Done;
use crate::measure::figure::Figure;
use crate::measure::median;
use crate::observed::Observed;
use crate::spec::{Experiment, Plot, PlotKind, Query};

/// Looks that the plot module has.
pub(super) const LOOKS: usize = 8;

/// A plot: one picture, or one for each variant.
pub(super) struct Picture {
    /// Its heading.
    pub title: String,
    /// What is drawn.
    pub specs: Vec<Value>,
}

/// All plots of an experiment.
pub(super) fn of(experiment: &Experiment, done: &Done) -> Vec<Picture> {
    let drawn = experiment.plots.iter().map(|plot| {
        let specs = match &plot.kind {
            PlotKind::Bars(query) => vec![bars(plot, query, done)],
            PlotKind::Tenants(figure) => vec![tenants(plot, *figure, done)],
            PlotKind::Curve { y, x } => vec![curve(experiment, plot, x.as_deref(), y, done)],
            PlotKind::Time(figures) => time::pictures(plot, figures, done),
        };
        Picture {
            title: plot.title.clone(),
            specs,
        }
    });
    drawn.collect()
}

/// Lowest, median and highest of some samples; nulls where there is none.
fn low_middle_high(samples: &[f64]) -> [Value; 3] {
    let finite = |value: f64| {
        if value.is_finite() {
            json!(value)
        } else {
            Value::Null
        }
    };
    match median(samples) {
        Some(middle) => [
            finite(samples.iter().copied().fold(f64::INFINITY, f64::min)),
            finite(middle),
            finite(samples.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        ],
        None => [Value::Null, Value::Null, Value::Null],
    }
}

/// One series from a value (low, middle, high) for each place.
fn series(name: &str, look: usize, kind: &str, places: Vec<(Value, [Value; 3])>) -> Value {
    let pick =
        |index: usize| -> Vec<&Value> { places.iter().map(|(_, one)| &one[index]).collect() };
    let x: Vec<&Value> = places.iter().map(|(x, _)| x).collect();
    json!({
        "name": name, "look": look % LOOKS, "kind": kind, "x": x,
        "y": pick(1), "low": pick(0), "high": pick(2),
    })
}

/// What all kinds have: the vertical axis, the target's line.
pub(super) fn spec(plot: &Plot, x: Value, series: Vec<Value>) -> Value {
    let scale = if plot.y_log { "log" } else { "linear" };
    let mut y = json!({ "label": plot.y.0, "unit": plot.y.1, "scale": scale });
    if !plot.y_log {
        y["min"] = json!(0);
    }
    let target = plot.target.map(|bound| {
        let label = format!("target {}", super::bound(&bound.to_string()));
        json!({ "axis": "y", "value": bound.value(), "label": label })
    });
    let targets: Vec<Value> = target.into_iter().collect();
    json!({ "x": x, "y": y, "series": series, "targets": targets })
}

fn categories(plot: &Plot, names: &[String]) -> Value {
    json!({ "label": plot.x.0, "unit": plot.x.1, "scale": "category", "categories": names })
}

fn bars(plot: &Plot, query: &Query, done: &Done) -> Value {
    let of = |(look, variant): (usize, &String)| {
        let points = plot.points.iter().enumerate();
        let at = points.map(|(place, point)| {
            let samples = done.runs.samples(query, variant, point);
            (json!(place), low_middle_high(&samples.unwrap_or_default()))
        });
        series(variant, look, "bars", at.collect())
    };
    let all = plot.variants.iter().enumerate().map(of).collect();
    spec(plot, categories(plot, &plot.points), all)
}

fn tenants(plot: &Plot, figure: Figure, done: &Done) -> Value {
    let point = &plot.points[0];
    let mut names: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for (look, variant) in plot.variants.iter().enumerate() {
        let runs: Vec<&Observed> = done.runs.of(variant, point).collect();
        let Some(first) = runs.first() else { continue };
        let tenants = first.tenants.iter();
        names = tenants.map(|tenant| tenant.load.name.clone()).collect();
        let of = |index: usize| {
            let found = runs.iter().filter_map(|run| run.tenants.get(index));
            let values: Vec<f64> = found.map(|tenant| figure.of(&tenant.load.total)).collect();
            (json!(index), low_middle_high(&values))
        };
        all.push(series(
            variant,
            look,
            "bars",
            (0..names.len()).map(of).collect(),
        ));
    }
    spec(plot, categories(plot, &names), all)
}

fn curve(experiment: &Experiment, plot: &Plot, x: Option<&Query>, y: &Query, done: &Done) -> Value {
    let place = |variant: &str, point: &str| match x {
        Some(x) => median(&done.runs.samples(x, variant, point).unwrap_or_default()),
        None => experiment.point(point).and_then(|point| point.x),
    };
    let of = |(look, variant): (usize, &String)| {
        let mut places: Vec<(f64, [Value; 3])> = Vec::new();
        for point in &plot.points {
            let samples = done.runs.samples(y, variant, point).unwrap_or_default();
            if let Some(at) = place(variant, point).filter(|at| at.is_finite()) {
                places.push((at, low_middle_high(&samples)));
            }
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let places = places.into_iter().map(|(at, value)| (json!(at), value));
        series(variant, look, "line", places.collect())
    };
    let all = plot.variants.iter().enumerate().map(of).collect();
    spec(plot, json!({ "label": plot.x.0, "unit": plot.x.1 }), all)
}
