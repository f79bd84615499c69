//! All results of a folder on one page: which targets were met, which were not, and how far from
//! its bound each is.

mod page;
mod picture;

use std::path::{Path, PathBuf};

use serde_json::Value;
use workload::report::Table;

use crate::error::ExperimentError;
use crate::spec::{Bound, Experiment};
use crate::{find, result};

/// One experiment's result.
#[derive(Clone, Debug, Default)]
struct Row {
    name: String,
    title: String,
    /// `None`: there is no result.
    result: Option<Outcome>,
}

/// What a result says.
#[derive(Clone, Debug, Default)]
struct Outcome {
    verdicts: Vec<Line>,
    /// The short form.
    quick: bool,
    runs: usize,
    took_s: f64,
    commit: String,
}

/// One verdict of it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Line {
    target: String,
    word: String,
    measured: Option<f64>,
    bound: Option<Bound>,
    /// The bound in words.
    must: String,
    paper: String,
    why: String,
}

/// How verdicts came out, in the order in which they are counted.
const WORDS: [&str; 6] = ["pass", "MISS", "disturbed", "idle", "later", "not judged"];

impl Line {
    fn read(verdict: &Value) -> Self {
        let text = |key: &str| verdict[key].as_str().unwrap_or_default().to_string();
        let bound = text("bound");
        let each = if verdict["worst"] == Value::Bool(true) {
            " in each"
        } else {
            ""
        };
        Self {
            target: text("target"),
            word: text("word"),
            measured: verdict["measured"].as_f64(),
            bound: Bound::parse(&bound),
            must: format!("{bound}{each}"),
            paper: text("paper"),
            why: text("not_judged"),
        }
    }

    /// By what factor the bound is met (above 1) or missed; `None` where that is no number, as for
    /// a bound of zero.
    fn margin(&self) -> Option<f64> {
        let (measured, bound) = (self.measured?, self.bound?);
        let margin = match bound {
            Bound::AtLeast(bound) => measured / bound,
            Bound::AtMost(bound) => bound / measured,
        };
        (margin.is_finite() && margin > 0.0).then_some(margin)
    }

    fn judged(&self) -> bool {
        self.word == "pass" || self.word == "MISS"
    }
}

impl Outcome {
    fn read(result: &Value) -> Self {
        let (figures, verdicts) = (&result["figures"], result["verdicts"].as_array());
        Self {
            verdicts: verdicts.into_iter().flatten().map(Line::read).collect(),
            quick: figures["quick"] == Value::Bool(true),
            runs: figures["runs"].as_array().map_or(0, Vec::len),
            took_s: figures["took_s"].as_f64().unwrap_or_default(),
            commit: result["commit"].as_str().unwrap_or_default().to_string(),
        }
    }

    /// Verdicts with a bound.
    fn targets(&self) -> impl Iterator<Item = &Line> {
        self.verdicts.iter().filter(|line| line.bound.is_some())
    }

    /// How many targets came out so.
    fn count(&self, word: &str) -> usize {
        self.targets().filter(|line| line.word == word).count()
    }
}

/// An experiment with its result in a folder of results, if there is one that can be read.
fn row(name: &str, experiments: &Path, out: &Path) -> Row {
    let path = out.join(name).join("result.json");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let result = serde_json::from_str::<Value>(&text).ok();
    // One that is being written, and cannot be read yet, is not the others' business.
    let title = Experiment::read(&experiments.join(name)).map(|one| one.title);
    Row {
        name: name.into(),
        title: title.unwrap_or_default(),
        result: result.as_ref().map(Outcome::read),
    }
}

/// Writes `summary.html` and `summary.svg` of the results in `out`, and says where.
///
/// # Errors
/// What [`find::names`] says, and [`ExperimentError::Output`].
pub fn write(experiments: &Path, out: &Path) -> Result<PathBuf, ExperimentError> {
    let rows = rows(experiments, out)?;
    result::write(out, "summary.svg", &picture::of(&rows))?;
    result::write(out, "summary.html", &page::of(&rows))
}

/// One line for each experiment, and one for each target that was not met.
///
/// # Errors
/// What [`find::names`] says.
pub fn text(experiments: &Path, out: &Path) -> Result<String, ExperimentError> {
    Ok(lines(&rows(experiments, out)?))
}

fn rows(experiments: &Path, out: &Path) -> Result<Vec<Row>, ExperimentError> {
    let names = find::names(experiments)?;
    Ok(names
        .iter()
        .map(|name| row(name, experiments, out))
        .collect())
}

fn lines(rows: &[Row]) -> String {
    let mut table = Table::default();
    let heads = ["experiment", "targets", "met", "missed", "disturbed"];
    let more = ["idle", "later", "not judged", "runs", "took"];
    table.row([heads, more].concat());
    for row in rows {
        let Some(outcome) = &row.result else {
            table.row([row.name.as_str(), "not run"]);
            continue;
        };
        let counts = WORDS.map(|word| outcome.count(word).to_string());
        let form = if outcome.quick { ", short form" } else { "" };
        let mut cells = vec![row.name.clone(), outcome.targets().count().to_string()];
        cells.extend(counts);
        cells.push(outcome.runs.to_string());
        cells.push(format!("{}{form}", took(outcome.took_s)));
        table.row(cells);
    }
    table.render(10)
}

/// A time as people say it.
fn took(seconds: f64) -> String {
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcome() -> Outcome {
        let verdict = |word: &str, measured: f64, bound: &str, worst: bool| {
            json!({
                "target": "t < u", "word": word, "measured": measured, "bound": bound,
                "worst": worst, "paper": ".9", "not_judged": "why",
            })
        };
        Outcome::read(&json!({
            "commit": "abc", "figures": { "quick": false, "runs": [1, 2], "took_s": 200.0 },
            "verdicts": [
                verdict("pass", 2.0, ">= 1", true),
                verdict("MISS", 2.0, "<= 1", false),
                verdict("pass", 0.0, "<= 0", false),
                verdict("later", 0.0, ">= 1", false),
                json!({ "target": "s", "word": "shown", "measured": 3.0, "bound": null }),
            ],
        }))
    }

    fn both() -> [Row; 2] {
        let row = |name: &str, result| Row {
            name: name.into(),
            title: "T & t".into(),
            result,
        };
        [row("one", Some(outcome())), row("other", None)]
    }

    #[test]
    fn margins_are_how_far_a_bound_is() {
        let margins: Vec<Option<f64>> = outcome().targets().map(Line::margin).collect();
        assert_eq!(margins, [Some(2.0), Some(0.5), None, None]);
        assert_eq!(outcome().verdicts[0].must, ">= 1 in each");
    }

    #[test]
    fn the_text_counts_and_says_what_did_not_run() {
        let text = lines(&both());
        let words: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let one = ["one", "4", "2", "1", "0", "0", "1", "0", "2", "3", "min"];
        assert_eq!(words[1], one, "{text}");
        assert_eq!(words[2], ["other", "not", "run"]);
    }

    #[test]
    fn page_and_picture_have_every_verdict() {
        let page = page::of(&both());
        assert!(page.contains("t &lt; u") && page.contains("T &amp; t"));
        assert!(page.contains("2 of 4 targets met"), "{page}");
        assert!(page.contains("other") && page.contains("not run"));
        assert!(page.contains("<svg"), "the picture is in it");
        let picture = picture::of(&both());
        assert_eq!(picture.matches("class=\"met\"").count(), 2);
        assert_eq!(picture.matches("class=\"missed\"").count(), 1);
        assert_eq!(picture.matches("class=\"open\"").count(), 1);
    }

    #[test]
    fn a_folder_without_results_has_a_page_too() {
        let folder = tempfile::tempdir().expect("folder");
        let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let path = write(&experiments, folder.path()).expect("written");
        assert!(std::fs::read_to_string(path)
            .expect("page")
            .contains("not run"));
    }
}
