//! What the admin address shows of promises.

use std::sync::Arc;

use policy::slo::Budget;
use policy::words::Words;
use policy::Nanos;
use telemetry::{
    ClusterPromise, ControlSnapshot, Delay, Explanation, LateTime, PartSpent, PromiseAttainment,
    PromiseKept, PromiseSnapshot, PromiseStep, PromiseWindow, SlowRequest, TimeParts,
};

use crate::session::{explained, slow_line};
use crate::shared::Shared;
use crate::slo::{Bucket, Delays, Line, Meter, Slow, Where, Window};
use crate::tenants::Tenant;

/// What keeps promises, and what it did last.
pub(super) fn control(shared: &Shared) -> ControlSnapshot {
    let last = shared.last_control();
    let unix_s = (shared.options.wall_ms)() / 1_000;
    let failure = last.failure.as_ref();
    let waits = failure.is_some_and(|failure| !failure.begun_anew);
    ControlSnapshot {
        controller: last.policy.to_string(),
        changed_unix_s: last.unix_s,
        failures: last.failures,
        failure: waits.then(|| last.failure_line(unix_s)).flatten(),
        why: last.why,
    }
}

/// All promises of a tenant; `now` is the server's clock's time and that of the day, in s.
pub(super) fn promises(tenant: &Tenant, now: (Nanos, u64)) -> Vec<PromiseSnapshot> {
    let meters = tenant.meters();
    meters
        .all()
        .iter()
        .map(|meter| promise(meter, now))
        .collect()
}

fn promise(meter: &Meter, (now, unix_s): (Nanos, u64)) -> PromiseSnapshot {
    let (slo, objective) = (meter.slo(), meter.objective());
    let counts = meter.read().counts;
    let record = meter.record.lock();
    let last = record.windows().next_back().map(window);
    PromiseSnapshot {
        workload: slo.workload.clone(),
        class: slo.class.word().to_string(),
        percentile: objective.latency.map(|latency| latency.percentile),
        at_most_ms: objective
            .latency
            .map(|latency| latency.at_most_ns as f64 / 1e6),
        window_s: objective.window_ns as f64 / 1e9,
        throughput_per_s: objective.throughput_per_s,
        contract_per_s: objective.contract_per_s,
        contract_portion: meter.portion(),
        throughput_portion: record.part(),
        importance: objective.importance,
        requests: counts.requests,
        late: counts.late,
        beyond: counts.beyond,
        beyond_late: counts.beyond_late,
        last,
        hour: kept(meter, &record.history.last_hour(unix_s)),
        days: kept(meter, &record.history.last_30_days(unix_s)),
        late_time: late_time(&meter.lately.lock().all(now)),
    }
}

/// Those that several fronts keep together, at all of them.
pub(super) fn of_cluster(tenant: &Tenant, unix_s: u64) -> Vec<ClusterPromise> {
    let meters = tenant.meters();
    let one = |meter: &Arc<Meter>| {
        let (slo, objective) = (meter.slo(), meter.objective());
        let throughput_portion = meter.record.lock().part();
        let whole = meter.whole.lock();
        let (fronts, record) = whole.seen()?;
        let latency = objective.latency;
        let last = record.windows().next_back().map(window);
        Some(ClusterPromise {
            workload: slo.workload.clone(),
            class: slo.class.word().to_string(),
            fronts: fronts as u64,
            percentile: latency.map(|latency| latency.percentile),
            at_most_ms: latency.map(|latency| latency.at_most_ns as f64 / 1e6),
            window_s: objective.window_ns as f64 / 1e9,
            contract_per_s: objective.contract_per_s,
            contract_portion: meter.portion(),
            throughput_per_s: objective.throughput_per_s,
            throughput_portion,
            last,
            hour: kept(meter, &record.history.last_hour(unix_s)),
            days: kept(meter, &record.history.last_30_days(unix_s)),
        })
    };
    meters.all().iter().filter_map(one).collect()
}

fn late_time(late: &Where) -> LateTime {
    LateTime {
        looked_at: late.requests,
        parts: parts(&late.parts, late.requests),
        delays: delays(&late.behind, late.requests),
    }
}

fn parts(parts: &TimeParts, requests: u64) -> Vec<PartSpent> {
    let all = PartSpent::of(parts, requests);
    all.filter(|part| part.mean_ms > 0.0).collect()
}

fn delays(behind: &Delays, requests: u64) -> Vec<Delay> {
    let delay = |((line, whom), ns): (&(Line, String), &u64)| Delay {
        line: line.name().to_string(),
        behind: whom.clone(),
        mean_ms: (*ns / requests.max(1)) as f64 / 1e6,
    };
    let mut delays: Vec<Delay> = behind.iter().map(delay).collect();
    delays.sort_by(|a, b| b.mean_ms.total_cmp(&a.mean_ms));
    delays
}

/// Where the time of a tenant's requests goes, and why.
pub(super) fn explain(shared: &Shared, tenant: &Tenant) -> Explanation {
    let slowest = tenant.slowest.list();
    let unix_s = (shared.options.wall_ms)() / 1_000;
    let request = |slow: &Slow| SlowRequest {
        at_ms: slow.unix_s * 1_000,
        latency_ms: slow.latency_ns as f64 / 1e6,
        class: slow.class.name().to_string(),
        workload: slow.workload.clone(),
        command: slow.command.to_string(),
        client: slow.client.clone(),
        together: slow.requests,
        parts: parts(&slow.parts, 1),
        delays: delays(&slow.behind, 1),
        words: slow_line(slow, unix_s),
    };
    Explanation {
        lines: explained(shared, tenant, true),
        slowest: slowest.iter().map(request).collect(),
    }
}

/// 30 days are so many points in a plot, 6 h each.
const STEP_HOURS: u64 = 6;

/// How well a tenant's promises were kept, step by step.
pub(super) fn attainment(tenant: &Tenant, unix_s: u64) -> Vec<PromiseAttainment> {
    let meters = tenant.meters();
    let of = |meter: &Arc<Meter>| {
        let record = meter.record.lock();
        let minutes = record.history.last_minutes(unix_s);
        let hours = record.history.last_hours(unix_s, STEP_HOURS);
        PromiseAttainment {
            workload: meter.slo().workload.clone(),
            class: meter.slo().class.word().to_string(),
            percentile: meter.objective().latency.map(|latency| latency.percentile),
            hour: minutes
                .map(|(minute, bucket)| step(minute * 60, bucket))
                .collect(),
            days: hours
                .iter()
                .map(|(hour, bucket)| step(hour * 3_600, bucket))
                .collect(),
        }
    };
    meters.all().iter().map(of).collect()
}

fn step(unix_s: u64, bucket: &Bucket) -> PromiseStep {
    let attainment = bucket.attainment();
    PromiseStep {
        at_ms: unix_s * 1_000,
        windows_met: attainment.met,
        windows_missed: attainment.missed,
        windows_without_data: attainment.no_data,
        requests: bucket.requests,
        requests_late: bucket.late,
    }
}

fn window(window: &Window) -> PromiseWindow {
    let counts = &window.counts;
    PromiseWindow {
        outcome: window.outcome.word().to_string(),
        latency_ms: window.latency_ns.map(|ns| ns.round() / 1e6),
        sample: counts.requests,
        sample_late: counts.late,
        served_per_s: window.served_per_s,
    }
}

fn kept(meter: &Meter, bucket: &Bucket) -> PromiseKept {
    let attainment = bucket.attainment();
    let budget = (meter.objective().latency).map(|latency| Budget::of(&latency, &bucket.counts()));
    PromiseKept {
        windows_met: attainment.met,
        windows_missed: attainment.missed,
        windows_without_data: attainment.no_data,
        requests: bucket.requests,
        late: bucket.late,
        met_percent: attainment.part().map(|part| 100.0 * part),
        budget_left_percent: budget
            .and_then(|budget| budget.left())
            .map(|left| 100.0 * left),
    }
}
