//! From runs to verdicts. A verdict that lacks a run or a figure is an error, never a pass.

mod runs;

use crate::error::ExperimentError;
use crate::measure::median;
use crate::spec::{Bound, Experiment, Verdict};
use crate::table;

use runs::Answer;
pub use runs::Runs;

/// What the repeats say, as one number.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// What is held against the bound: the median, or of a guarantee the worst.
    pub value: f64,
    /// One value for each repeat.
    pub samples: Vec<f64>,
}

impl Sampled {
    /// Of at least one sample.
    fn new(samples: Vec<f64>, verdict: &Verdict) -> Option<Self> {
        let guarantee = verdict.bound.filter(|_| verdict.worst);
        let value = match guarantee {
            Some(bound) => bound.worst(&samples),
            None => median(&samples),
        };
        let value = value.filter(|value| !value.is_nan())?;
        Some(Self { value, samples })
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
    /// It was to be judged, but most of the runs were disturbed; how many.
    Disturbed(String),
    /// The bound is met, and is met with what is claimed switched off, too: it shows nothing.
    Idle(String),
}

impl Judgement {
    /// `true`, `false`, or neither.
    pub fn pass(&self) -> Option<bool> {
        match self {
            Self::Pass => Some(true),
            Self::Miss => Some(false),
            Self::NotJudged(_) | Self::Disturbed(_) | Self::Idle(_) => None,
        }
    }

    /// Why there is neither, where that is not plain.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::NotJudged(why) if why == "shown" => None,
            Self::NotJudged(why) | Self::Disturbed(why) | Self::Idle(why) => Some(why),
            Self::Pass | Self::Miss => None,
        }
    }
}

/// The same verdict where what it claims is switched off.
#[derive(Clone, Debug, PartialEq)]
pub struct Off {
    /// The variant in which it is.
    pub variant: String,
    /// What was measured there.
    pub value: f64,
    /// Whether the bound is missed there, as it must be.
    pub fails: bool,
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
    /// It is a guarantee: by every repeat.
    pub worst: bool,
    /// What it comes to where it is switched off; nothing where that did not run.
    pub off: Option<Off>,
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
        worst: verdict.worst,
        off: None,
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
    let missing = |why: String| ExperimentError::Verdict {
        target: judged.target.clone(),
        why,
    };
    let measured = Sampled::new(samples, verdict)
        .ok_or_else(|| missing("what was measured is not a number".into()))?;
    judged.off = match off(verdict, point, runs, extent) {
        Err(_) if extent.quick || extent.partial => None,
        found => found.map_err(missing)?,
    };
    judged.judgement = judgement(
        verdict,
        extent,
        measured.value,
        judged.off.as_ref(),
        disturbed,
    );
    judged.beside = beside(experiment, verdict, point, runs);
    judged.measured = Some(measured);
    Ok(judged)
}

/// How a verdict comes out that was measured; `disturbed` says how many of its repeats were.
fn judgement(
    verdict: &Verdict,
    extent: Extent,
    value: f64,
    off: Option<&Off>,
    disturbed: Option<String>,
) -> Judgement {
    let Some(bound) = verdict.bound else {
        return Judgement::NotJudged("shown".into());
    };
    if extent.quick && !verdict.quick {
        return Judgement::NotJudged("too short a run to tell".into());
    }
    // A short run judges only what nobody can disturb.
    if let Some(why) = disturbed.filter(|_| !extent.quick) {
        return Judgement::Disturbed(why);
    }
    if !bound.met_by(value) {
        return Judgement::Miss;
    }
    match off {
        Some(Off {
            variant,
            value,
            fails: false,
        }) => {
            let value = table::number(*value);
            Judgement::Idle(format!("met with it switched off, too: {variant} {value}"))
        }
        _ => Judgement::Pass,
    }
}

/// What the verdict comes to where what it claims is switched off.
fn off(verdict: &Verdict, point: &str, runs: &Runs, extent: Extent) -> Result<Option<Off>, String> {
    let (Some(variant), Some(bound)) = (&verdict.off, verdict.bound) else {
        return Ok(None);
    };
    // In a second, on a machine that does something else, anything may be as slow as anything.
    if extent.quick && verdict.query.is_a_time() {
        return Ok(None);
    }
    let answers = runs.answers(&verdict.query, variant, point, extent.partial)?;
    let (samples, _) = undisturbed(answers);
    let sampled = Sampled::new(samples, verdict);
    let value = sampled.ok_or("what was measured with it switched off is not a number")?;
    Ok(Some(Off {
        variant: variant.clone(),
        value: value.value,
        fails: !bound.met_by(value.value),
    }))
}

/// The samples of the repeats that were not disturbed, if those are most of them; otherwise all,
/// and how many were.
fn undisturbed(answers: Vec<Answer>) -> (Vec<f64>, Option<String>) {
    let all = answers.len();
    let clear = answers.iter().filter(|answer| !answer.disturbed).count();
    let few = clear * 2 <= all;
    let kept = answers
        .into_iter()
        .filter(|answer| few || !answer.disturbed);
    let samples = kept.map(|answer| answer.value).collect();
    let why = few.then(|| format!("{} of {all} repeats were disturbed", all - clear));
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
