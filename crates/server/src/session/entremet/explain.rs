//! `ENTREMET EXPLAIN [tenant]`: where the time went.

use policy::portion::Portions;
use policy::Nanos;
use settings::tenant::Settings;
use telemetry::{Class, ClassTotals, HistogramSnapshot};

use super::{lines, time, Visit};
use crate::shared::{Controlled, Shared};
use crate::slo::Meter;
use crate::tenants::Tenant;

/// `ENTREMET EXPLAIN [tenant]`
pub fn explain(visit: &mut Visit<'_>) {
    let Some(tenant) = super::named(visit, 2) else {
        return;
    };
    let text = explained(visit.shared, &tenant, visit.operator());
    lines(&mut visit.reply(), &text);
}

/// Where the time of a tenant's requests went: its share in a line, and a line for each class.
/// Operators are told what others were promised, where that is in the way.
pub fn explained(shared: &Shared, tenant: &Tenant, operator: bool) -> Vec<String> {
    let settings = tenant.settings();
    let mut text = vec![share_line(
        &tenant.name,
        &settings,
        shared.tenants.totals().weight,
    )];
    text.extend(portions_line(tenant.portions(), &settings));
    let totals = shared.metrics.totals(&tenant.name);
    let classes = totals.iter().flat_map(|totals| totals.active());
    let classes: Vec<_> = classes
        .map(|(class, totals)| class_line(class, totals))
        .collect();
    match classes.is_empty() {
        true => text.push("no request since the start".into()),
        false => text.extend(classes),
    }
    let unix_s = (shared.options.wall_ms)() / 1_000;
    let now = shared.options.clock.now();
    for meter in tenant.meters().all() {
        text.extend(promise_lines(meter, now, unix_s));
    }
    if !tenant.meters().all().is_empty() {
        text.extend(super::admission::unfit(shared, tenant, operator));
        let control = shared.last_control();
        text.push(control_line(&control, unix_s));
        text.extend(control.failure_line(unix_s));
    }
    text
}

/// What keeps promises, and what it did last.
fn control_line(last: &Controlled, unix_s: u64) -> String {
    let policy = last.policy;
    match last.why.is_empty() {
        true => format!("controller {policy}: it has changed nothing yet"),
        false => format!(
            "controller {policy}, {} s ago: {}",
            unix_s.saturating_sub(last.unix_s),
            last.why.join(" ")
        ),
    }
}

/// A promise, how well it was kept, and where the time of those went that were late.
fn promise_lines(meter: &Meter, now: Nanos, unix_s: u64) -> Vec<String> {
    let kept = super::slo::how_well(meter, unix_s).join("; ");
    let mut text = vec![format!("promised for {}: {kept}", meter.slo())];
    let late = meter.lately.lock().all(now);
    if late.requests > 0 {
        text.push(format!(
            "late {}, {} requests of the last minutes: {}{}",
            meter.slo().of(),
            late.requests,
            super::slowest::parts(&late.parts, late.requests),
            super::slowest::behind(&late.behind, late.requests),
        ));
    }
    text
}

fn share_line(name: &str, settings: &Settings, weights: f64) -> String {
    let percent = 100.0 * settings.weight / weights;
    format!(
        "{name}: weight {} of {weights}, {percent:.2} % when everybody wants everything",
        settings.weight
    )
}

/// What of its rates and of its weight it has at this front.
fn portions_line(portions: Portions, settings: &Settings) -> Option<String> {
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let reserved = match settings.promise().requests_per_s() > 0.0 {
        true => {
            let [reads, writes] = portions.reserved.map(percent);
            format!(" {reads} of its reserved reads and {writes} of its writes,")
        }
        false => String::new(),
    };
    (portions != Portions::default()).then(|| {
        format!(
            "several fronts keep its rates and weight together: here {} of its limits, {} of its contract,{reserved} a weight of {:.3}",
            percent(portions.limit),
            percent(portions.promised),
            settings.weight * portions.weight
        )
    })
}

/// What became of one class since the start, and what took most of its slowest requests' time.
fn class_line(class: Class, totals: &ClassTotals) -> String {
    let requests = totals.requests.max(1);
    let mut text = format!(
        "{}: {} requests, {} errors, {} throttled; latency {}; waiting for its turn {}; CPU {} each",
        class.name(),
        totals.requests,
        totals.errors,
        totals.throttled.iter().sum::<u64>(),
        percentiles(&totals.latency),
        percentiles(&totals.queue),
        time(totals.cpu_ns as f64 / requests as f64),
    );
    if !totals.disk.is_empty() {
        let percent = 100.0 * totals.disk.count() as f64 / requests as f64;
        text += &format!(
            "; {percent:.1} % needed the disk, {}",
            percentiles(&totals.disk)
        );
    }
    // By the sums: percentiles of parts do not add up.
    text + "; mostly " + totals.parts.longest().words().words
}

fn percentiles(times: &HistogramSnapshot) -> String {
    format!(
        "p50 {} p99 {}",
        time(times.quantile(0.5)),
        time(times.quantile(0.99))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::Part;

    fn times(values: &[u64]) -> HistogramSnapshot {
        let histogram = telemetry::Histogram::new();
        values.iter().for_each(|&value| histogram.record(value));
        histogram.snapshot()
    }

    #[test]
    fn a_class_is_explained_in_one_line() {
        let mut parts = telemetry::TimeParts::default();
        (parts[Part::Turn], parts[Part::Disk]) = (400_000, 3_000_000);
        let totals = ClassTotals {
            requests: 4,
            errors: 1,
            cpu_ns: 20_000,
            latency: times(&[1_000_000; 4]),
            queue: times(&[100_000; 4]),
            disk: times(&[3_000_000]),
            parts,
            ..ClassTotals::default()
        };
        let line = class_line(Class::Get, &totals);
        assert!(
            line.starts_with("get: 4 requests, 1 errors, 0 throttled; latency p50 1.0"),
            "{line}"
        );
        assert!(
            line.contains("CPU 5.0 µs each; 25.0 % needed the disk, p50 3.0"),
            "{line}"
        );
        assert!(line.ends_with("; mostly with a handler"), "{line}");
    }
}
