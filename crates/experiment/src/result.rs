//! `result.json`: verdicts, every figure of every run, and what it takes to repeat them (DESIGN
//! §7).

use std::path::{Path, PathBuf};

use serde_json::{json, Value};

use crate::done::Done;
use crate::error::ExperimentError;
use crate::spec::Experiment;
use crate::table;
use crate::verdict::{Judged, Judgement};

/// The whole result.
pub fn of(experiment: &Experiment, done: &Done) -> Value {
    let verdicts = done.judged.iter().map(verdict).collect();
    let runs: Vec<Value> = done
        .runs
        .all()
        .map(|(repeat, variant, point, observed)| {
            json!({
                "variant": variant, "point": point, "repeat": repeat + 1, "observed": observed,
            })
        })
        .collect();
    let figures = json!({
        "quick": done.quick,
        "took_s": done.took_s,
        "command": done.command,
        "notes": done.notes,
        "yardsticks": done.yardsticks.iter().cloned().collect::<serde_json::Map<String, Value>>(),
        "experiment": experiment.text,
        "runs": runs,
    });
    let mut result = workload::report::result(&experiment.name, verdicts, figures, done.seed);
    // By now this thread is on the load's processors and sees no others.
    result["machine"]["cores"] = json!(done.processors);
    result
}

fn verdict(judged: &Judged) -> Value {
    let measured = judged.measured.as_ref();
    let why = match &judged.judgement {
        Judgement::NotJudged(why) | Judgement::Disturbed(why) | Judgement::Idle(why) => Some(why),
        Judgement::Pass | Judgement::Miss => None,
    };
    let off = judged.off.as_ref();
    let off =
        off.map(|off| json!({ "variant": off.variant, "measured": off.value, "fails": off.fails }));
    let beside: serde_json::Map<String, Value> = judged
        .beside
        .iter()
        .map(|(variant, value)| (variant.clone(), json!(value)))
        .collect();
    json!({
        "target": judged.target,
        "word": table::word(&judged.judgement),
        "measured": measured.map(|sampled| sampled.value),
        "samples": measured.map(|sampled| &sampled.samples),
        "bound": judged.bound.map(|bound| bound.to_string()),
        "worst": judged.worst,
        "off": off,
        "paper": judged.paper,
        "pass": judged.judgement.pass(),
        "not_judged": why,
        "beside": beside,
    })
}

/// Writes a file of a result, making its folder.
///
/// # Errors
/// [`ExperimentError::Output`].
pub fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, ExperimentError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ExperimentError::Output { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(failed(&path))?;
    Ok(path)
}
