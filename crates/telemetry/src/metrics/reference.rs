//! docs/reference/metrics.md, written from the catalogue.

use std::fmt::Write;

use super::catalogue::{
    Metric, CERTIFICATE, CLASS, PARTS, SERVER, STAGE, TENANT, TENANT_STAGE, THROTTLED, TIMES,
};
use super::device::{COST, DEVICE, OPERATION, TENANT_DEVICE, USE};
use super::promise::{BUDGET, MET, PERHAPS, PROMISE, WINDOWS};
use crate::class::Class;
use crate::exposition::BOUNDS;
use crate::parts::Part;

const HEAD: &str = "# Metrics

`GET /metrics` on the admin address answers in Prometheus's text format (version 0.0.4). This page is written from the
code by `UPDATE_DOCS=1 cargo test -p entremet-telemetry --test reference`; a test compares the two.

Metrics named `redis_*` mean what redis_exporter's of that name mean, so dashboards made for Redis work. Counters start
from 0 with the process.
";

/// The text of the page.
pub fn reference() -> String {
    let mut text = HEAD.to_string();
    section(
        &mut text,
        "The server",
        "No labels, except `db=\"db0\"` on `redis_db_keys`.",
    );
    let info = "Always 1; labels `redis_version`, `entremet_version`, `redis_mode`, `role`, `scheduler` say what runs.";
    row(&mut text, "redis_instance_info", "gauge", "1", info);
    rows(&mut text, SERVER);
    let about = "Label `shown_to` (`clients`, `admin`, `engine`).";
    section(&mut text, "Certificates", about);
    row(&mut text, CERTIFICATE.0, "gauge", "seconds", CERTIFICATE.1);
    section(&mut text, "Tenants", "Label `tenant`.");
    rows(&mut text, TENANT);
    let classes: Vec<String> = Class::ALL
        .iter()
        .map(|class| format!("`{}`", class.name()))
        .collect();
    let about = format!(
        "Labels `tenant` and `class` ({}); a class nobody used is left out. `entremet_tenant_throttled_total` \
         also has `limit` (`requests` or `bytes`).",
        classes.join(", ")
    );
    section(&mut text, "Tenants and classes", &about);
    rows(&mut text, CLASS);
    row(&mut text, THROTTLED.0, "counter", "requests", THROTTLED.1);
    row(&mut text, PARTS.0, "counter", "seconds", PARTS.1);
    for times in TIMES {
        row(&mut text, times.name, "histogram", "seconds", times.help);
    }
    let bounds: Vec<&str> = BOUNDS.iter().map(|(_, label)| *label).collect();
    let _ = writeln!(
        text,
        "\nHistogram bounds (`le`, seconds): {}, +Inf. Times are kept in buckets 1/32 of a power of two wide and go \
         to the bound that the larger part of their bucket lies under, so a bound is exact to 1.6 %.",
        bounds.join(", ")
    );
    parts(&mut text);
    let about = "Labels `tenant` and `stage` (`request`, `handler`, `device`), all cores together; stages it was never let through are left out.";
    section(&mut text, "Tenants at stages", about);
    rows(&mut text, TENANT_STAGE);
    section(
        &mut text,
        "Stages",
        "Labels `stage` (`request`, `handler`, `device`) and `core` (0 for the device, which is one for all).",
    );
    rows(&mut text, STAGE);
    promises(&mut text);
    device(&mut text);
    text
}

/// What the parts of a latency are.
fn parts(text: &mut String) {
    let name = PARTS.0;
    let _ = write!(
        text,
        "\n## Parts of the time\n\n`{name}` also has `part`. Parts that took no time are left out. Each begins where the one before \
         it ends, and together they are the latency.\n\n"
    );
    for part in Part::ALL {
        let words = part.words();
        let _ = writeln!(text, "* `{}`, {}: {}", words.name, words.words, words.about);
    }
}

fn promises(text: &mut String) {
    let about = "Only where something is promised (`[[tenant.slo]]`). Labels `tenant`, `workload` (empty for connections of none) and \
                 `class` (`get`, `put`, `multiget`, `scan`, `any`); a number that is not there is left out. Where `over` is named, it is \
                 `1h` or `30d`.";
    section(text, "Promises", about);
    rows(text, PROMISE);
    for metric in PERHAPS {
        row(text, metric.name, "gauge", metric.unit, metric.help);
    }
    let with = |labels: &str, help: &str| format!("{help} Also {labels}.");
    let windows = with("`over` and `outcome`", WINDOWS.1);
    row(text, WINDOWS.0, "gauge", "windows", &windows);
    row(text, MET.0, "gauge", "0 to 1", &with("`over`", MET.1));
    row(
        text,
        BUDGET.0,
        "gauge",
        "1 and less",
        &with("`over`", BUDGET.1),
    );
}

fn device(text: &mut String) {
    let about = "Only where `[device]` has a stage before it; see [the device stage](../mechanisms/device.md). No labels.";
    section(text, "The device", about);
    rows(text, DEVICE);
    section(
        text,
        "The device by operation",
        "Label `operation` (`read`, `write`, `sync`, `delete`).",
    );
    rows(text, OPERATION);
    section(text, "Tenants at the device", "Label `tenant`.");
    rows(text, TENANT_DEVICE);
    let about = "Labels `tenant`, `class` (that of the requests that waited for it, or `none`) and `activity` (`get`, \
                 `multiget`, `range`, `log`, `flush`, `compaction`, `open`, `verify`, `other`).";
    section(text, "What tenants use the device for", about);
    rows(text, USE);
    let about =
        "Labels `tenant`, `request` (`get`, `put`) and `part` (`direct`, `flush`, `compaction`).";
    section(text, "What requests cost", about);
    row(text, COST.0, "gauge", "VOP", COST.1);
}

fn section(text: &mut String, title: &str, about: &str) {
    let _ = write!(
        text,
        "\n## {title}\n\n{about}\n\n| name | type | unit | meaning |\n|---|---|---|---|\n"
    );
}

fn rows<S>(text: &mut String, metrics: &[Metric<S>]) {
    for metric in metrics {
        row(
            text,
            metric.name,
            metric.kind.name(),
            metric.unit,
            metric.help,
        );
    }
}

fn row(text: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    let _ = writeln!(text, "| `{name}` | {kind} | {unit} | {help} |");
}
