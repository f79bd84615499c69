//! `result.json`, and the raw histograms beside it.

use std::path::Path;
use std::time::Duration;

use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::V2Serializer;
use serde_json::{json, Value};

use crate::draw::Class;
use crate::error::WorkloadError;
use crate::stats::Outcome;

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

/// Writes the latencies of every tenant and class into `latency.hlog` in `folder`: HdrHistogram's
/// log format (V2, nanoseconds), an interval each, its tag TENANT/CLASS or TENANT:WORKLOAD/CLASS.
/// The tools of HdrHistogram read it.
///
/// # Errors
/// [`WorkloadError::Output`].
pub fn write_histograms(folder: &Path, outcome: &Outcome) -> Result<(), WorkloadError> {
    let path = folder.join("latency.hlog");
    let failed = |source| WorkloadError::Output {
        path: path.clone(),
        source,
    };
    let unwritable =
        |what: &dyn std::fmt::Debug| failed(std::io::Error::other(format!("{what:?}")));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let (mut bytes, mut serializer) = (Vec::new(), V2Serializer::new());
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("latency in ns; one interval for each tenant and class")
        .begin_log_with(&mut bytes, &mut serializer)
        .map_err(|e| unwritable(&e))?;
    let length = Duration::from_secs_f64(outcome.elapsed_s.max(0.0));
    for tenant in &outcome.tenants {
        for class in Class::ALL {
            let latency = tenant.class(class).latency();
            if latency.count() == 0 {
                continue;
            }
            let (name, colon) = (&tenant.tenant, if tenant.tag.is_empty() { "" } else { ":" });
            let tag = format!("{name}{colon}{}/{}", tenant.tag, class.name()).replace(',', "_");
            log.write_histogram(latency.raw(), Duration::ZERO, length, Tag::new(&tag))
                .map_err(|e| unwritable(&e))?;
        }
    }
    std::fs::write(&path, bytes).map_err(failed)
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
