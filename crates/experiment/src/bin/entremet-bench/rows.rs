//! The table: one row per claim, with its target, what was measured and the baseline beside it. In
//! brackets: the lowest and highest of a few samples; of many, between what their median lies with
//! 95 % confidence.

use std::path::Path;

use experiment::ExperimentError;
use serde_json::{json, Value};
use workload::report;

/// On which side of the bound the measured value has to be.
#[derive(Clone, Copy)]
pub enum Bound {
    /// At least this much.
    AtLeast(f64),
    /// At most this much.
    AtMost(f64),
    /// Shown, not judged.
    Shown,
}

/// One row.
pub struct Row {
    /// What is claimed.
    pub name: String,
    /// The measured value (a ratio, an MMR, a size): the median over repeats.
    pub measured: f64,
    /// What it must reach.
    pub bound: Bound,
    /// The two sides in words: ours and the baseline's.
    pub sides: String,
    /// One value per repeat.
    pub samples: Vec<f64>,
    /// Everything else worth keeping.
    pub figures: Value,
}

impl Row {
    /// A row from one value per repeat.
    pub fn new(name: impl Into<String>, bound: Bound, samples: Vec<f64>) -> Self {
        let measured = median(&samples);
        let (name, sides, figures) = (name.into(), String::new(), Value::Null);
        Self {
            name,
            measured,
            bound,
            sides,
            samples,
            figures,
        }
    }

    /// Says what the two sides were.
    pub fn sides(mut self, sides: impl Into<String>) -> Self {
        self.sides = sides.into();
        self
    }

    /// Keeps more figures for `result.json`.
    pub fn figures(mut self, figures: Value) -> Self {
        self.figures = figures;
        self
    }

    fn pass(&self) -> Option<bool> {
        match self.bound {
            Bound::AtLeast(bound) => Some(self.measured >= bound),
            Bound::AtMost(bound) => Some(self.measured <= bound),
            Bound::Shown => None,
        }
    }

    fn target(&self) -> String {
        match self.bound {
            Bound::AtLeast(bound) => format!(">= {bound}"),
            Bound::AtMost(bound) => format!("<= {bound}"),
            Bound::Shown => String::new(),
        }
    }
}

/// The median; 0 of none.
pub fn median(samples: &[f64]) -> f64 {
    experiment::measure::median(samples).unwrap_or_default()
}

/// All rows of a run.
pub struct Rows {
    only: Option<String>,
    group: &'static str,
    rows: Vec<(&'static str, Row)>,
}

impl Rows {
    pub fn new(only: Option<String>) -> Self {
        Self {
            only,
            group: "",
            rows: Vec::new(),
        }
    }

    /// Whether anything in a group may be wanted. `--only fairness/weights` names group and row.
    pub fn wants_group(&self, group: &str) -> bool {
        let Some(only) = &self.only else { return true };
        only.split('/')
            .next()
            .is_some_and(|first| group.contains(first))
    }

    /// Whether a row of the current group is wanted.
    pub fn wants(&self, row: &str) -> bool {
        let wanted = self.only.as_deref().and_then(|only| only.split_once('/'));
        wanted.is_none_or(|(_, name)| row.contains(name))
    }

    pub fn begin(&mut self, group: &'static str) {
        println!("== {group}");
        self.group = group;
    }

    /// Adds and prints a row.
    pub fn add(&mut self, row: Row) {
        let verdict = match row.pass() {
            Some(true) => "pass",
            Some(false) => "MISS",
            None => "",
        };
        let (name, measured, target, sides) = (&row.name, row.measured, row.target(), &row.sides);
        let spread = spread(&row.samples);
        println!("{name:<44} {measured:>9.3} {spread:<15} {target:>9} {verdict:<4}  {sides}");
        self.rows.push((self.group, row));
    }

    /// Writes `result.json` and says how many passed. True if none missed.
    pub fn finish(self, out: Option<&Path>, seed: u64) -> Result<bool, ExperimentError> {
        if let (true, Some(only)) = (self.rows.is_empty(), &self.only) {
            return Err(ExperimentError::Usage(format!(
                "--only {only}: nothing is named so; name a group, or GROUP/ROW"
            )));
        }
        let judged: Vec<bool> = self.rows.iter().filter_map(|(_, row)| row.pass()).collect();
        let missed = judged.iter().filter(|pass| !**pass).count();
        println!(
            "== {} of {} targets met",
            judged.len() - missed,
            judged.len()
        );
        if let Some(folder) = out {
            let verdicts = self.rows.iter().filter(|(_, row)| row.pass().is_some());
            let verdicts = verdicts.map(|(group, row)| verdict(group, row)).collect();
            let figures = self
                .rows
                .iter()
                .map(|(group, row)| figures(group, row))
                .collect();
            report::write(
                folder,
                &report::result("bench", verdicts, Value::Array(figures), seed),
            )?;
        }
        Ok(missed == 0)
    }
}

/// Samples from which the bounds of their median say more than their extremes.
const MANY: usize = 20;

fn spread(samples: &[f64]) -> String {
    if samples.len() < 2 {
        return String::new();
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // How many of them are below the true median is binomial: 1.96 standard deviations are √count /
    // 2 each.
    let outside = match count >= MANY {
        true => (count as f64 / 2.0 - 0.98 * (count as f64).sqrt()) as usize,
        false => 0,
    };
    let (low, high) = (sorted[outside], sorted[count - 1 - outside]);
    format!("[{low:.3} {high:.3}]")
}

fn verdict(group: &str, row: &Row) -> Value {
    let paper = Value::Null;
    json!({
        "target": format!("{group}/{}", row.name), "measured": row.measured,
        "bound": row.target(), "paper": paper, "pass": row.pass(),
    })
}

fn figures(group: &str, row: &Row) -> Value {
    json!({
        "row": format!("{group}/{}", row.name), "measured": row.measured,
        "samples": row.samples, "sides": row.sides, "more": row.figures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_judged_by_their_bound() {
        assert_eq!(
            Row::new("a", Bound::AtLeast(1.0), vec![1.0]).pass(),
            Some(true)
        );
        assert_eq!(
            Row::new("a", Bound::AtMost(1.0), vec![1.1]).pass(),
            Some(false)
        );
        assert_eq!(Row::new("a", Bound::Shown, vec![1.1]).pass(), None);
    }

    #[test]
    fn of_few_samples_the_extremes_are_shown_and_of_many_the_bounds_of_their_median() {
        assert_eq!(spread(&[2.0]), "");
        assert_eq!(spread(&[3.0, 1.0, 2.0]), "[1.000 3.000]");
        let many: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(spread(&many), "[40.000 59.000]");
    }

    #[test]
    fn only_names_a_group_or_a_row() {
        let rows = Rows::new(Some("fairness/weights".into()));
        assert!(rows.wants_group("fairness") && !rows.wants_group("speed"));
        assert!(rows.wants("weights 4:3:2:1") && !rows.wants("8 equal"));
        assert!(Rows::new(None).wants("anything"));
    }
}
