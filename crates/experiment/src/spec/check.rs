//! What must hold between the parts of an experiment: names that are used exist, and what a short
//! or a full run leaves out is not asked for.

use std::collections::BTreeSet;

use super::query::Query;
use super::{Experiment, Plot, PlotKind};
use crate::measure::figure::Figure;
use crate::measure::window::series;
use settings::table::Problems;

/// Reports everything that does not fit together.
pub fn check(experiment: &Experiment, problems: &Problems) {
    let check = Check {
        experiment,
        problems,
    };
    if experiment.variants.is_empty() {
        problems.add("variant", "is missing: there is nothing to run");
    }
    if experiment.verdicts.is_empty() {
        problems.add("verdict", "is missing: there is nothing to show");
    }
    check.unique(
        "variant",
        experiment.variants.iter().map(|v| v.name.as_str()),
    );
    check.unique("point", experiment.points.iter().map(|p| p.name.as_str()));
    for name in experiment.quick.points.iter().flatten() {
        check.point("quick, points", name);
    }
    for name in experiment
        .changes
        .iter()
        .flat_map(|change| &change.variants)
        .flatten()
    {
        check.variant("change, variants", name);
    }
    for variant in &experiment.variants {
        let place = format!("variant {:?}, points", variant.name);
        let named = variant.points.iter().flatten();
        named.for_each(|name| check.point(&place, name));
    }
    for yardstick in &experiment.yardsticks {
        let place = format!("yardstick {:?}", yardstick.sets);
        check.variant(&place, &yardstick.variant);
        check.point(&place, &yardstick.point);
    }
    let mut texts = BTreeSet::new();
    for verdict in &experiment.verdicts {
        let place = format!("verdict {:?}", verdict.target);
        if !texts.insert(&verdict.target) {
            problems.add(&place, "is there twice");
        }
        check.query(&place, &verdict.points, &verdict.query);
        for name in std::iter::once(&verdict.variant).chain(&verdict.off) {
            check.runs_at(&place, name, &verdict.points);
        }
    }
    experiment.plots.iter().for_each(|plot| check.plot(plot));
}

struct Check<'a> {
    experiment: &'a Experiment,
    problems: &'a Problems,
}

impl Check<'_> {
    fn unique<'n>(&self, what: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen = BTreeSet::new();
        for name in names {
            if name.contains('/') {
                self.problems
                    .add(what, format!("{name:?} has a slash, which --only parts at"));
            }
            if !seen.insert(name) {
                self.problems.add(what, format!("{name:?} is there twice"));
            }
        }
    }

    fn variant(&self, place: &str, name: &str) {
        if self.experiment.variant(name).is_none() {
            let known: Vec<&str> = self
                .experiment
                .variants
                .iter()
                .map(|variant| variant.name.as_str())
                .collect();
            let what = format!("there is no variant {name:?}, only {}", known.join(", "));
            self.problems.add(place, what);
        }
    }

    /// A variant that a verdict asks for exists, and is run where it asks.
    fn runs_at(&self, place: &str, name: &str, points: &[String]) {
        let Some(variant) = self.experiment.variant(name) else {
            return self.variant(place, name);
        };
        for point in points.iter().filter(|point| !variant.runs_at(point)) {
            let what = format!("variant {name:?} is not run at point {point:?}");
            self.problems.add(place, what);
        }
    }

    fn point(&self, place: &str, name: &str) {
        if self.experiment.point(name).is_none() {
            let known: Vec<String> = self
                .experiment
                .points
                .iter()
                .map(|point| format!("{:?}", point.name))
                .collect();
            let what = format!("there is no point {name:?}, only {}", known.join(", "));
            self.problems.add(place, what);
        }
    }

    fn query(&self, place: &str, points: &[String], query: &Query) {
        if points.is_empty() {
            self.problems.add(place, "names no point");
        }
        let all = points
            .iter()
            .map(String::as_str)
            .chain(query.other_points());
        all.for_each(|point| self.point(place, point));
        if let Some(side) = &query.against {
            let swept = side.best_of.iter().flat_map(|best| &best.variants);
            let named = side.variant.iter().chain(swept);
            named.for_each(|variant| self.variant(place, variant));
        }
    }

    fn plot(&self, plot: &Plot) {
        let place = format!("plot {:?}", plot.title);
        plot.variants
            .iter()
            .for_each(|variant| self.variant(&place, variant));
        match &plot.kind {
            PlotKind::Bars(query) => self.query(&place, &plot.points, query),
            PlotKind::Curve { y, x } => {
                self.query(&place, &plot.points, y);
                match x {
                    Some(x) => self.query(&place, &plot.points, x),
                    None => self.have_x(&place, &plot.points),
                }
            }
            PlotKind::Tenants(_) | PlotKind::Time(_) => {
                plot.points
                    .iter()
                    .for_each(|point| self.point(&place, point));
                if plot.points.len() != 1 {
                    self.problems.add(&place, "is drawn of one point: name it");
                }
            }
        }
        if let PlotKind::Time(figures) = &plot.kind {
            let known = |figure: &Figure| series(*figure).is_some();
            if !figures.iter().all(known) {
                let what = "second by second there are only rate, offered, failed, p50, p95, p99, outstanding, share and permits";
                self.problems.add(&place, what);
            }
        }
        if let PlotKind::Bars(query) = &plot.kind {
            if query.measure.settles() && plot.y_log {
                self.problems
                    .add(&place, "times that may be zero have no logarithm");
            }
        }
    }

    fn have_x(&self, place: &str, points: &[String]) {
        for name in points {
            if self
                .experiment
                .point(name)
                .is_some_and(|point| point.x.is_none())
            {
                let what = format!("point {name:?} has no x, and the curve is over nothing else");
                self.problems.add(place, what);
            }
        }
    }
}
