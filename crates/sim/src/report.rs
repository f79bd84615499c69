//! Verdicts: what was measured against what was promised.

use serde::Serialize;

/// What a reproduced result came to; written as `result.json` (DESIGN §7).
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The experiment.
    pub name: String,
    /// What was promised.
    pub verdicts: Vec<Verdict>,
    /// What a report draws, and what stands behind the verdicts.
    pub figures: serde_json::Value,
    /// The first of the seeds.
    pub seed: u64,
}

/// One promise.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// What is measured.
    pub target: String,
    /// What it came to.
    pub measured: f64,
    /// What it must be, as `>= 2` or `<= 1.04`.
    pub bound: String,
    /// What the paper had.
    pub paper: String,
    /// Whether it is.
    pub pass: bool,
}

impl Verdict {
    /// Passes if `measured` is at least `bound`.
    #[must_use]
    pub fn at_least(target: impl Into<String>, measured: f64, bound: f64, paper: &str) -> Self {
        Verdict {
            target: target.into(),
            measured,
            bound: format!(">= {bound}"),
            paper: paper.into(),
            pass: measured >= bound,
        }
    }

    /// Passes if `measured` is at most `bound`.
    #[must_use]
    pub fn at_most(target: impl Into<String>, measured: f64, bound: f64, paper: &str) -> Self {
        Verdict {
            target: target.into(),
            measured,
            bound: format!("<= {bound}"),
            paper: paper.into(),
            pass: measured <= bound,
        }
    }
}

impl Report {
    /// The verdicts as lines of text.
    #[must_use]
    pub fn lines(&self) -> String {
        let line = |v: &Verdict| {
            let word = if v.pass { "pass" } else { "MISS" };
            let (name, target, bound, paper) = (&self.name, &v.target, &v.bound, &v.paper);
            format!(
                "{word} {name}: {target}: {:.3} (bound {bound}; paper {paper})\n",
                v.measured
            )
        };
        self.verdicts.iter().map(line).collect()
    }
}
