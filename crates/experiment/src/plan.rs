//! Which runs, in which order.
//!
//! Machines are shared and noisy, and drift: baseline and ours take turns, so that what they are
//! compared by was measured side by side. Each repeat begins with another variant, so that none is
//! always the first after the preceding point.

use settings::units::Time;
use toml::Table;

use crate::error::ExperimentError;
use crate::spec::{Experiment, Point, Variant};

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Which side.
    pub variant: &'a Variant,
    /// Where.
    pub point: &'a Point,
    /// From 0.
    pub repeat: usize,
}

impl Run<'_> {
    /// As messages call it.
    pub fn label(&self) -> String {
        let place = place(&self.variant.name, &self.point.name);
        format!("{place}, repeat {}", self.repeat + 1)
    }

    /// About how long it takes, seconds.
    pub fn seconds(&self, experiment: &Experiment, quick: bool) -> f64 {
        seconds(&experiment.scenario(self.variant, self.point, quick))
    }
}

/// `variant/point`, or the variant alone where there is one nameless point.
pub fn place(variant: &str, point: &str) -> String {
    if point.is_empty() {
        variant.into()
    } else {
        format!("{variant}/{point}")
    }
}

/// `--only`: runs of one variant, of one point, or of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Only {
    /// The variant; `None` all.
    pub variant: Option<String>,
    /// The point; `None` all.
    pub point: Option<String>,
}

impl Only {
    /// Reads `VARIANT`, `VARIANT/POINT` or `/POINT`.
    ///
    /// # Errors
    /// [`ExperimentError::Usage`] when the experiment has none of that name.
    pub fn parse(text: &str, experiment: &Experiment) -> Result<Self, ExperimentError> {
        let (variant, point) = text.split_once('/').unwrap_or((text, ""));
        let given = |name: &str| (!name.is_empty()).then(|| name.to_string());
        let only = Self {
            variant: given(variant),
            point: given(point),
        };
        let strange = |what: &str, name: &Option<String>, known: Vec<&str>| {
            let name = name.as_deref()?;
            (!known.contains(&name)).then(|| {
                let known = known.join(", ");
                format!(
                    "--only {text}: {} has no {what} {name:?}, only {known}",
                    experiment.name
                )
            })
        };
        let variants = experiment.variants.iter().map(|v| v.name.as_str());
        let points = experiment.points.iter().map(|p| p.name.as_str());
        let wrong = strange("variant", &only.variant, variants.collect())
            .or_else(|| strange("point", &only.point, points.collect()));
        match wrong {
            Some(wrong) => Err(ExperimentError::Usage(wrong)),
            None => Ok(only),
        }
    }

    fn wants(&self, variant: &str, point: &str) -> bool {
        self.variant.as_deref().is_none_or(|name| name == variant)
            && self.point.as_deref().is_none_or(|name| name == point)
    }
}

/// What a run takes besides the time that its scenario says: start, preload, last replies, end.
const AROUND_S: f64 = 1.0;

/// About how long a run takes, seconds.
pub fn seconds(scenario: &Table) -> f64 {
    let of = |key: &str| {
        let text = scenario.get(key).and_then(toml::Value::as_str);
        let parsed = text.and_then(|text| text.parse::<Time>().ok());
        parsed.map_or(0.0, |time| time.duration().as_secs_f64())
    };
    of("warm_up") + of("duration") + AROUND_S
}

/// The runs of an experiment, in order.
pub fn runs<'a>(
    experiment: &'a Experiment,
    quick: bool,
    repeats: Option<usize>,
    only: Option<&Only>,
) -> Vec<Run<'a>> {
    let (usual, points) = experiment.extent(quick);
    let variants = &experiment.variants;
    let mut runs = Vec::new();
    for repeat in 0..repeats.unwrap_or(usual) {
        for point in &points {
            for turn in 0..variants.len() {
                let variant = &variants[(turn + repeat) % variants.len()];
                let asked = only.is_none_or(|only| only.wants(&variant.name, &point.name));
                let enough = variant.repeats.is_some_and(|most| repeat >= most);
                if asked && !enough && variant.runs_at(&point.name) {
                    runs.push(Run {
                        variant,
                        point,
                        repeat,
                    });
                }
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment() -> Experiment {
        crate::spec::made(
            &["fifo", "fair"],
            &["even", "uneven"],
            "[[verdict]]\ntarget = \"t\"\nvariant = \"fair\"\npoint = \"*\"\nmeasure = \"mmr\"\nbound = \">= 1\"",
        )
    }

    fn order(repeats: usize, only: Option<&str>) -> Vec<String> {
        let experiment = experiment();
        let only = only.map(|only| Only::parse(only, &experiment).expect("known"));
        let runs = runs(&experiment, false, Some(repeats), only.as_ref());
        runs.iter().map(Run::label).collect()
    }

    #[test]
    fn variants_take_turns_and_turns_begin_with_another() {
        let want = [
            "fifo/even, repeat 1",
            "fair/even, repeat 1",
            "fifo/uneven, repeat 1",
            "fair/uneven, repeat 1",
            "fair/even, repeat 2",
            "fifo/even, repeat 2",
            "fair/uneven, repeat 2",
            "fifo/uneven, repeat 2",
        ];
        assert_eq!(order(2, None), want);
    }

    #[test]
    fn a_variant_may_run_at_some_points_and_in_some_repeats() {
        let mut experiment = experiment();
        experiment.variants[0].points = Some(vec!["even".into()]);
        experiment.variants[0].repeats = Some(1);
        let runs = runs(&experiment, false, Some(2), None);
        let fifo = runs.iter().filter(|run| run.variant.name == "fifo");
        let labels: Vec<String> = fifo.map(Run::label).collect();
        assert_eq!(labels, ["fifo/even, repeat 1"]);
        assert_eq!(runs.len(), 1 + 4);
    }

    #[test]
    fn only_names_a_variant_a_point_or_both() {
        assert_eq!(
            order(1, Some("fair")),
            ["fair/even, repeat 1", "fair/uneven, repeat 1"]
        );
        assert_eq!(
            order(1, Some("/even")),
            ["fifo/even, repeat 1", "fair/even, repeat 1"]
        );
        assert_eq!(order(1, Some("fair/uneven")), ["fair/uneven, repeat 1"]);
        let wrong = Only::parse("fare/even", &experiment()).expect_err("no such variant");
        assert_eq!(wrong.exit_status(), 2);
        assert!(wrong.to_string().contains("only fifo, fair"), "{wrong}");
    }
}
