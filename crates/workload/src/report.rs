//! What a run says when it is over: a table to read and a `result.json` to compare.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{json, Value};

use crate::draw::Class;
use crate::error::WorkloadError;
use crate::stats::{ClassStats, Outcome, StreamStats};

/// A number of nanoseconds as people read it.
pub fn duration(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

/// A rate with thousands separated.
pub fn rate(per_s: f64) -> String {
    if per_s < 100.0 {
        return format!("{per_s:.1}");
    }
    let digits = format!("{per_s:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table: the first column left, the others right.
#[derive(Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The text, columns aligned; the first `left` columns to the left.
    pub fn render(&self, left: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - cell.chars().count());
                let (before, after) = if column < left {
                    ("", pad)
                } else {
                    (pad.as_str(), String::new())
                };
                let _ = write!(line, "{before}{cell}{after}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// The final table of a load: a line per tenant and class, then what went wrong.
pub fn table(outcome: &Outcome) -> String {
    let mut table = Table::default();
    table.row([
        "tenant",
        "workload",
        "class",
        "offered/s",
        "done/s",
        "failed",
        "missed keys",
        "p50",
        "p95",
        "p99",
        "max",
    ]);
    for stream in &outcome.streams {
        for class in Class::ALL {
            let stats = stream.class(class);
            if stats.offered > 0 {
                table.row(cells(outcome, stream, class.name(), stats));
            }
        }
    }
    let mut text = table.render(3);
    for stream in &outcome.streams {
        for (kind, error) in &stream.errors {
            let (tenant, tag) = (&stream.tenant, &stream.tag);
            let _ = writeln!(text, "failed: {tenant} ({tag}): {} x {kind}", error.count);
            if error.example != *kind {
                let _ = writeln!(text, "        first one: {}", error.example);
            }
        }
    }
    text
}

fn cells(outcome: &Outcome, stream: &StreamStats, class: &str, stats: &ClassStats) -> Vec<String> {
    let latency = stats.latency();
    vec![
        stream.tenant.clone(),
        stream.tag.clone(),
        class.into(),
        rate(stats.offered as f64 / outcome.elapsed_s.max(1e-9)),
        rate(outcome.achieved_per_s(stats)),
        stats.failed.to_string(),
        stats.missed.to_string(),
        duration(latency.percentile_ns(50.0)),
        duration(latency.percentile_ns(95.0)),
        duration(latency.percentile_ns(99.0)),
        duration(latency.max_ns()),
    ]
}

/// The figures of a load as JSON. Rates per second, latencies in nanoseconds.
pub fn figures(outcome: &Outcome) -> Value {
    let streams: Vec<Value> = outcome
        .streams
        .iter()
        .map(|s| stream_figures(outcome, s))
        .collect();
    json!({
        "elapsed_s": outcome.elapsed_s,
        "cut_short": outcome.cut_short,
        "bytes_out": outcome.bytes_out,
        "generator": {
            "busy": outcome.generator.busy,
            "cpu_s": outcome.generator.cpu_s,
            "lag_ns_p99": outcome.generator.lag.percentile_ns(99.0),
            "complaint": outcome.generator.complaint(),
        },
        "tenants": streams,
    })
}

fn stream_figures(outcome: &Outcome, stream: &StreamStats) -> Value {
    let classes: serde_json::Map<String, Value> = Class::ALL
        .iter()
        .filter(|class| stream.class(**class).offered > 0)
        .map(|class| {
            (
                class.name().to_string(),
                class_figures(outcome, stream.class(*class)),
            )
        })
        .collect();
    let errors: serde_json::Map<String, Value> = stream
        .errors
        .iter()
        .map(|(kind, error)| {
            (
                kind.clone(),
                json!({ "count": error.count, "example": error.example }),
            )
        })
        .collect();
    json!({
        "tenant": stream.tenant, "workload": stream.tag, "classes": classes, "errors": errors,
    })
}

fn class_figures(outcome: &Outcome, stats: &ClassStats) -> Value {
    let latency = stats.latency();
    json!({
        "offered_per_s": stats.offered as f64 / outcome.elapsed_s.max(1e-9),
        "done_per_s": outcome.achieved_per_s(stats),
        "completed": stats.completed,
        "failed": stats.failed,
        "missed_keys": stats.missed,
        "bytes_in": stats.bytes_in,
        "latency_ns": {
            "mean": latency.mean_ns(),
            "p50": latency.percentile_ns(50.0),
            "p95": latency.percentile_ns(95.0),
            "p99": latency.percentile_ns(99.0),
            "p999": latency.percentile_ns(99.9),
            "max": latency.max_ns(),
        },
    })
}

/// A whole `result.json` (DESIGN §7).
pub fn result(name: &str, verdicts: Vec<Value>, figures: Value, seed: u64) -> Value {
    json!({
        "name": name,
        "verdicts": verdicts,
        "figures": figures,
        "seed": seed,
        "commit": commit(),
        "machine": machine(),
    })
}

/// Writes `result.json` into `folder`, which is made if need be.
///
/// # Errors
/// [`WorkloadError::Output`].
pub fn write(folder: &Path, result: &Value) -> Result<(), WorkloadError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| WorkloadError::Output { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let path = folder.join("result.json");
    std::fs::write(&path, format!("{result:#}\n")).map_err(failed(&path))
}

/// The commit of the working tree that the run was started in; `None` outside of one.
fn commit() -> Option<String> {
    let output = std::process::Command::new("git")
        .args(["rev-parse", "HEAD"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}

fn machine() -> Value {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    json!({
        "cpu": model.map(|(_, name)| name),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "system": std::env::consts::OS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(rate(9.25), "9.2");
        assert_eq!(rate(1_234_567.4), "1,234,567");
        assert_eq!(rate(100.0), "100");
        assert_eq!(duration(950), "1 µs");
        assert_eq!(duration(1_500_000), "1.50 ms");
        assert_eq!(duration(2_000_000_000), "2.00 s");
    }

    #[test]
    fn a_table_names_tenants_classes_and_errors() {
        let mut stream = StreamStats::new("web", "twitter-1");
        stream.class_mut(Class::Get).offered = 20;
        stream.class_mut(Class::Get).completed = 19;
        stream.fail(Class::Get, "THROTTLED slow down");
        let outcome = Outcome {
            streams: vec![stream],
            elapsed_s: 2.0,
            ..Outcome::default()
        };
        let text = table(&outcome);
        assert!(
            text.contains("web     twitter-1  get         10.0     9.5       1"),
            "{text}"
        );
        assert!(text.contains("1 x THROTTLED") && text.contains("first one: THROTTLED slow down"));
        let figures = figures(&outcome);
        assert_eq!(figures["tenants"][0]["classes"]["get"]["done_per_s"], 9.5);
        assert_eq!(figures["tenants"][0]["errors"]["THROTTLED"]["count"], 1);
    }
}
