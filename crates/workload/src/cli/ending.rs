//! What is printed and written when a run is over.

use std::path::Path;

use serde_json::Value;

use crate::error::WorkloadError;
use crate::report;
use crate::stats::Outcome;

/// Where results go.
pub(super) struct Output<'a> {
    pub(super) folder: Option<&'a Path>,
    pub(super) histograms: bool,
}

/// Prints the table, writes `result.json`.
///
/// # Errors
/// [`WorkloadError::Output`]; [`WorkloadError::CutShort`] if the run did not come to its end.
pub(super) fn conclude(
    outcome: &Outcome,
    output: &Output<'_>,
    name: &str,
    seed: u64,
    figures: Value,
) -> Result<(), WorkloadError> {
    println!("\n{}", report::table(outcome));
    let generator = &outcome.generator;
    println!(
        "generator: CPU {:.0} % busy, p99 send lag {}",
        generator.busy * 100.0,
        report::duration(generator.lag.percentile_ns(99.0))
    );
    if generator.moved > 0 {
        println!(
            "moved: fronts sent requests on to others {} times",
            generator.moved
        );
    }
    if let Some(complaint) = generator.complaint() {
        println!("NOTE: {complaint}");
    }
    if let Some(folder) = output.folder {
        report::write(folder, &report::result(name, Vec::new(), figures, seed))?;
        println!("wrote {}", folder.join("result.json").display());
        if output.histograms {
            report::write_histograms(folder, outcome)?;
            println!("wrote {}", folder.join("latency.hlog").display());
        }
    }
    match &outcome.cut_short {
        Some(why) => Err(WorkloadError::CutShort(why.clone())),
        None => Ok(()),
    }
}

/// Figures as a JSON value.
pub(super) fn json(figures: &report::Figures) -> Value {
    serde_json::to_value(figures).unwrap_or_default()
}
