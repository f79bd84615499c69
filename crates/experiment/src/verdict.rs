//! From runs to verdicts. A verdict that lacks a run or a figure is an error, never a pass.

use std::collections::BTreeMap;

use crate::error::ExperimentError;
use crate::measure::median;
use crate::observed::Observed;
use crate::spec::{Bound, Experiment, Query, Verdict};

/// What was measured, by repeat, variant and point.
#[derive(Debug, Default)]
pub struct Runs(BTreeMap<(usize, String, String), Observed>);

impl Runs {
    /// Keeps a run.
    pub fn add(&mut self, repeat: usize, variant: &str, point: &str, run: Observed) {
        self.0.insert((repeat, variant.into(), point.into()), run);
    }

    /// The runs of one variant at one point, by repeat.
    pub fn of<'a>(
        &'a self,
        variant: &'a str,
        point: &'a str,
    ) -> impl Iterator<Item = &'a Observed> {
        let is = move |key: &(usize, String, String)| key.1 == variant && key.2 == point;
        let found = self.0.iter().filter(move |(key, _)| is(key));
        found.map(|(_, run)| run)
    }

    /// All of them: repeat, variant, point, and what was observed.
    pub fn all(&self) -> impl Iterator<Item = (usize, &str, &str, &Observed)> {
        let runs = self.0.iter();
        runs.map(|((repeat, variant, point), run)| (*repeat, variant.as_str(), point.as_str(), run))
    }

    /// One answer for each repeat of a run.
    ///
    /// # Errors
    /// Why there is none for one of them; that there is no run at all is a reason too.
    pub fn samples(&self, query: &Query, variant: &str, point: &str) -> Result<Vec<f64>, String> {
        let repeats = self
            .0
            .keys()
            .filter(|key| key.1 == variant && key.2 == point);
        let samples = repeats
            .map(|(repeat, ..)| {
                let find = |variant: &str, point: &str| {
                    self.0
                        .get(&(*repeat, variant.to_string(), point.to_string()))
                };
                query
                    .answer(&find, variant, point)
                    .map_err(|why| format!("repeat {}: {why}", repeat + 1))
            })
            .collect::<Result<Vec<f64>, String>>()?;
        if samples.is_empty() {
            let place = crate::plan::place(variant, point);
            return Err(format!("there is no run of {place}"));
        }
        Ok(samples)
    }
}

/// A median with what it is the median of.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The median.
    pub median: f64,
    /// One value for each repeat.
    pub samples: Vec<f64>,
}

impl Sampled {
    /// Of at least one sample.
    fn new(samples: Vec<f64>) -> Option<Self> {
        let median = median(&samples).filter(|median| !median.is_nan())?;
        Some(Self { median, samples })
    }

    /// The lowest and the highest sample.
    pub fn range(&self) -> (f64, f64) {
        let least = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self
            .samples
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        (least, most)
    }
}

/// How a verdict came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// The bound is met.
    Pass,
    /// It is not.
    Miss,
    /// Nobody asked, or this kind of run cannot tell; why.
    NotJudged(String),
}

impl Judgement {
    /// `true`, `false`, or neither.
    pub fn pass(&self) -> Option<bool> {
        match self {
            Self::Pass => Some(true),
            Self::Miss => Some(false),
            Self::NotJudged(_) => None,
        }
    }
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The target, with its point where a verdict has several.
    pub target: String,
    /// Where it was measured.
    pub point: String,
    /// What was measured; nothing where nothing ran.
    pub measured: Option<Sampled>,
    /// The same measure under the other variants, for comparison.
    pub beside: Vec<(String, f64)>,
    /// What must be reached.
    pub bound: Option<Bound>,
    /// What the paper printed.
    pub paper: String,
    /// How it came out.
    pub judgement: Judgement,
}

/// What kind of run is judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// The short form.
    pub quick: bool,
    /// Some runs were left out on purpose.
    pub partial: bool,
}

/// Judges every verdict of an experiment.
///
/// # Errors
/// [`ExperimentError::Verdict`] when one cannot be reached though its runs were to be made.
pub fn judge(
    experiment: &Experiment,
    runs: &Runs,
    extent: Extent,
) -> Result<Vec<Judged>, ExperimentError> {
    let (_, points) = experiment.extent(extent.quick);
    let made: Vec<&str> = points.iter().map(|point| point.name.as_str()).collect();
    let mut judged = Vec::new();
    for verdict in &experiment.verdicts {
        for point in &verdict.points {
            judged.push(one(experiment, verdict, point, runs, extent, &made)?);
        }
    }
    Ok(judged)
}

fn one(
    experiment: &Experiment,
    verdict: &Verdict,
    point: &str,
    runs: &Runs,
    extent: Extent,
    made: &[&str],
) -> Result<Judged, ExperimentError> {
    let target = if verdict.points.len() > 1 {
        format!("{}: {point}", verdict.target)
    } else {
        verdict.target.clone()
    };
    let mut judged = Judged {
        target,
        point: point.into(),
        measured: None,
        beside: Vec::new(),
        bound: verdict.bound,
        paper: verdict.paper.clone(),
        judgement: Judgement::NotJudged(String::new()),
    };
    if let Some(why) = not_run(experiment, verdict, point, made) {
        judged.judgement = Judgement::NotJudged(why);
        return Ok(judged);
    }
    let samples = match runs.samples(&verdict.query, &verdict.variant, point) {
        Ok(samples) => samples,
        Err(_) if extent.partial => {
            judged.judgement = Judgement::NotJudged("left out by --only".into());
            return Ok(judged);
        }
        Err(why) if extent.quick && !verdict.quick => {
            judged.judgement = Judgement::NotJudged(format!("too short a run to measure: {why}"));
            return Ok(judged);
        }
        Err(why) => {
            let target = judged.target;
            return Err(ExperimentError::Verdict { target, why });
        }
    };
    let measured = Sampled::new(samples).ok_or_else(|| ExperimentError::Verdict {
        target: judged.target.clone(),
        why: "what was measured is not a number".into(),
    })?;
    judged.judgement = match verdict.bound {
        None => Judgement::NotJudged("shown".into()),
        Some(_) if extent.quick && !verdict.quick => {
            Judgement::NotJudged("too short a run to tell".into())
        }
        Some(bound) if bound.met_by(measured.median) => Judgement::Pass,
        Some(_) => Judgement::Miss,
    };
    judged.beside = beside(experiment, verdict, point, runs);
    judged.measured = Some(measured);
    Ok(judged)
}

/// Why this kind of run makes no run for a verdict.
fn not_run(
    experiment: &Experiment,
    verdict: &Verdict,
    point: &str,
    made: &[&str],
) -> Option<String> {
    let mut needed = std::iter::once(point).chain(verdict.query.other_points());
    let missing = needed.find(|point| !made.contains(point))?;
    match experiment
        .point(missing)
        .and_then(|point| point.later.as_ref())
    {
        Some(later) => Some(format!("later: {later}")),
        None => Some("not in the short form".into()),
    }
}

/// The same measure under the other variants, where it can be had.
fn beside(
    experiment: &Experiment,
    verdict: &Verdict,
    point: &str,
    runs: &Runs,
) -> Vec<(String, f64)> {
    // A verdict that compares with one variant would compare that one with itself.
    let compared = verdict
        .query
        .against
        .as_ref()
        .and_then(|side| side.variant.as_deref());
    let others = experiment
        .variants
        .iter()
        .map(|variant| variant.name.as_str());
    others
        .filter(|name| *name != verdict.variant && Some(*name) != compared)
        .filter_map(|name| {
            let samples = runs.samples(&verdict.query, name, point).ok()?;
            Some((name.to_string(), median(&samples)?))
        })
        .collect()
}

#[cfg(test)]
mod tests;
