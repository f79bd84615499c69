//! From runs to verdicts. A verdict that lacks a run or a figure is an error, never a pass.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::error::ExperimentError;
use crate::machine;
use crate::measure::figure::Figure;
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
        let answers = self.answers(query, variant, point, false)?;
        Ok(answers.into_iter().map(|answer| answer.value).collect())
    }

    /// `partial`: a repeat that lacks a run says nothing, in the place of failing all.
    fn answers(
        &self,
        query: &Query,
        variant: &str,
        point: &str,
        partial: bool,
    ) -> Result<Vec<Answer>, String> {
        let repeats = self
            .0
            .keys()
            .filter(|key| key.1 == variant && key.2 == point);
        let answers = repeats
            .map(|(repeat, ..)| {
                let disturbed = Cell::new(false);
                let find = |variant: &str, point: &str| {
                    let key = (*repeat, variant.to_string(), point.to_string());
                    let run = self.0.get(&key);
                    disturbed.set(
                        disturbed.get() || run.is_some_and(|run| machine::disturbed(run.withheld)),
                    );
                    run
                };
                let value = query
                    .answer(&find, variant, point)
                    .map_err(|why| format!("repeat {}: {why}", repeat + 1))?;
                // A request that fails does so whatever a host does, and a zero is one.
                let disturbed = disturbed.get() && !query.asks_for(Figure::Failed);
                Ok(Answer { value, disturbed })
            })
            .filter(|answer| !partial || answer.is_ok())
            .collect::<Result<Vec<_>, String>>()?;
        if answers.is_empty() {
            let place = crate::plan::place(variant, point);
            return Err(format!("there is no run of {place}"));
        }
        Ok(answers)
    }
}

/// What one repeat says.
struct Answer {
    value: f64,
    /// The machine's host disturbed one of the runs that it rests on.
    disturbed: bool,
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
    /// It was to be judged, but the machine's host disturbed most of the runs; how many.
    Disturbed(String),
}

impl Judgement {
    /// `true`, `false`, or neither.
    pub fn pass(&self) -> Option<bool> {
        match self {
            Self::Pass => Some(true),
            Self::Miss => Some(false),
            Self::NotJudged(_) | Self::Disturbed(_) => None,
        }
    }

    /// Why there is neither, where that is not plain.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::NotJudged(why) if why == "shown" => None,
            Self::NotJudged(why) | Self::Disturbed(why) => Some(why),
            Self::Pass | Self::Miss => None,
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
    /// Some runs were left out on purpose, or never came.
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
    let answers = match runs.answers(&verdict.query, &verdict.variant, point, extent.partial) {
        Ok(answers) => answers,
        Err(_) if extent.partial => {
            judged.judgement = Judgement::NotJudged("runs for it were not made".into());
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
    let (samples, disturbed) = undisturbed(answers);
    let measured = Sampled::new(samples).ok_or_else(|| ExperimentError::Verdict {
        target: judged.target.clone(),
        why: "what was measured is not a number".into(),
    })?;
    judged.judgement = match (verdict.bound, disturbed) {
        (None, _) => Judgement::NotJudged("shown".into()),
        (Some(_), _) if extent.quick && !verdict.quick => {
            Judgement::NotJudged("too short a run to tell".into())
        }
        // A short run judges only what no host can disturb.
        (Some(_), Some(why)) if !extent.quick => Judgement::Disturbed(why),
        (Some(bound), _) if bound.met_by(measured.median) => Judgement::Pass,
        (Some(_), _) => Judgement::Miss,
    };
    judged.beside = beside(experiment, verdict, point, runs);
    judged.measured = Some(measured);
    Ok(judged)
}

/// The samples of the repeats that the host did not disturb, if those are most of them; otherwise
/// all, and how many it did.
fn undisturbed(answers: Vec<Answer>) -> (Vec<f64>, Option<String>) {
    let all = answers.len();
    let clear = answers.iter().filter(|answer| !answer.disturbed).count();
    let few = clear * 2 <= all;
    let kept = answers
        .into_iter()
        .filter(|answer| few || !answer.disturbed);
    let samples = kept.map(|answer| answer.value).collect();
    let why = few.then(|| format!("the host disturbed {} of {all} repeats", all - clear));
    (samples, why)
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
