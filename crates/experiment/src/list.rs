//! `entremet experiment list`.

use std::path::Path;

use workload::report::Table;

use crate::error::ExperimentError;
use crate::find;
use crate::plan;
use crate::spec::Experiment;

/// Name, time, what of, of each.
///
/// # Errors
/// What [`find::read`] says.
pub fn text(folder: &Path) -> Result<String, ExperimentError> {
    let experiments = find::read(folder, &["all".to_string()])?;
    let mut table = Table::default();
    table.row(["name", "quick", "full", "runs", "targets", "of", "what"]);
    for experiment in &experiments {
        let runs = plan::runs(experiment, false, None, None).len();
        let targets: usize = experiment.verdicts.iter().map(|one| one.points.len()).sum();
        table.row([
            experiment.name.clone(),
            time(experiment, true),
            time(experiment, false),
            runs.to_string(),
            targets.to_string(),
            experiment.source.clone(),
            experiment.title.clone(),
        ]);
    }
    Ok(table.render(7))
}

/// About how long all runs take.
fn time(experiment: &Experiment, quick: bool) -> String {
    let runs = plan::runs(experiment, quick, None, None);
    let seconds: f64 = runs.iter().map(|run| run.seconds(experiment, quick)).sum();
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}
