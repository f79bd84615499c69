//! What two readings and the server's gauges say together.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::reading::{Reading, Spent};
use super::view::{
    ClassLive, LiveView, PlaceLive, Rates, ServerLive, StageLive, TenantDetail, TenantLive,
    TimeSpent, WaitLive,
};
use crate::api::TimesView;
use crate::class::Class;
use crate::model::{ServerSnapshot, StageSnapshot, State, TenantSnapshot, TenantStage};
use crate::shares::{shares, Recent, Share};
use crate::stage::StageKind;
use crate::totals::{ClassTotals, Usage};

/// Tenants in one [`LiveView`]; a person reads no more, and a browser draws no more.
pub(super) const TENANTS_MAX: usize = 1_000;
/// Principals listed for one stage.
const PRINCIPALS_MAX: usize = 16;
/// Other tenants shown beside one.
const OTHERS_MAX: usize = 5;

/// The server's gauges at the moment of a reading.
pub(super) struct Gauges {
    pub(super) at_ms: u64,
    pub(super) state: State,
    pub(super) server: ServerSnapshot,
    pub(super) tenants: Vec<TenantSnapshot>,
    pub(super) stages: Vec<StageSnapshot>,
}

/// One second's view, and what it takes to look closer at a tenant.
pub(crate) struct Frame {
    /// What everybody is shown, as JSON, written once for all.
    pub(crate) json: String,
    pub(crate) view: LiveView,
    gauges: Gauges,
    before: Arc<Reading>,
    now: Arc<Reading>,
}

impl Frame {
    pub(super) fn new(gauges: Gauges, before: Arc<Reading>, now: Arc<Reading>) -> Self {
        let span_s = now.at_ns.saturating_sub(before.at_ns).max(1) as f64 / 1e9;
        let spent: BTreeMap<&str, Spent> = gauges
            .tenants
            .iter()
            .map(|tenant| (tenant.name.as_str(), between(&before, &now, &tenant.name)))
            .collect();
        let mut tenants = tenants(&gauges, &spent, span_s);
        let mut all = Usage::default();
        spent.values().for_each(|spent| all.add(&spent.usage));
        tenants.truncate(TENANTS_MAX);
        let view = LiveView {
            at_ms: gauges.at_ms,
            span_s: short(span_s),
            server: server(&gauges, &all, now.cpu_s - before.cpu_s, span_s),
            tenants,
            tenants_total: gauges.tenants.len() as u64,
            stages: gauges
                .stages
                .iter()
                .map(|stage| stage_live(stage, &before, span_s))
                .collect(),
        };
        let json = serde_json::to_string(&view).unwrap_or_default();
        Self {
            json,
            view,
            gauges,
            before,
            now,
        }
    }

    /// One tenant, if there is one of that name, without its settings.
    pub(crate) fn detail(&self, name: &str) -> Option<TenantDetail> {
        let named = |tenant: &&TenantSnapshot| tenant.name == name;
        let tenant = self.gauges.tenants.iter().find(named)?.clone();
        let spent = between(&self.before, &self.now, name);
        let listed = self.view.tenants.iter().find(|live| live.name == name);
        let span_s = self.view.span_s;
        // Beyond the list shares are too small to be told.
        let live = listed.cloned().unwrap_or_else(|| {
            let share = Share::default();
            tenant_live(&tenant, &spent, share, span_s)
        });
        let others = self.view.tenants.iter().filter(|other| other.name != name);
        Some(TenantDetail {
            at_ms: self.view.at_ms,
            span_s,
            live,
            classes: spent
                .classes
                .iter()
                .map(|(class, totals)| class_live(*class, totals, span_s))
                .collect(),
            time: time_spent(&spent),
            settings: Vec::new(),
            places: places(&self.gauges.stages, name),
            others: others
                .filter(|other| other.share.got_percent > 0.0)
                .take(OTHERS_MAX)
                .cloned()
                .collect(),
            tenant,
        })
    }
}

fn between(before: &Reading, now: &Reading, name: &str) -> Spent {
    now.tenants.get(name).map_or_else(Spent::default, |kept| {
        Spent::between(before.tenants.get(name).map(Arc::as_ref), kept)
    })
}

/// All tenants, those with the largest shares first.
fn tenants(gauges: &Gauges, spent: &BTreeMap<&str, Spent>, span_s: f64) -> Vec<TenantLive> {
    let used: Vec<(f64, Option<Recent>)> = gauges
        .tenants
        .iter()
        .map(|tenant| {
            let spent = &spent[tenant.name.as_str()];
            let recent = Recent::over(&spent.usage, (span_s * 1e9) as u64);
            (tenant.weight, (!spent.is_idle()).then_some(recent))
        })
        .collect();
    let shares = shares(&used, &gauges.server.capacities);
    let mut tenants: Vec<TenantLive> = gauges
        .tenants
        .iter()
        .zip(shares)
        .map(|(tenant, share)| tenant_live(tenant, &spent[tenant.name.as_str()], share, span_s))
        .collect();
    tenants.sort_by(|a, b| {
        let by_share = b.share.got_percent.total_cmp(&a.share.got_percent);
        let by_asking = b.rates.throttled_per_s.total_cmp(&a.rates.throttled_per_s);
        by_share
            .then(by_asking)
            .then(b.connections.cmp(&a.connections))
            .then_with(|| a.name.cmp(&b.name))
    });
    tenants
}

fn tenant_live(tenant: &TenantSnapshot, spent: &Spent, share: Share, span_s: f64) -> TenantLive {
    let main = spent.of_main();
    let ms = |p: f64| main.map(|totals| totals.latency.quantile(p).round() / 1e6);
    let errors: u64 = spent.classes.iter().map(|(_, totals)| totals.errors).sum();
    let seen = spent.usage.requests == 0 || !spent.classes.is_empty();
    TenantLive {
        name: tenant.name.clone(),
        weight: tenant.weight,
        rates: rates(&spent.usage, span_s),
        errors_per_s: seen.then(|| short(errors as f64 / span_s)),
        cpu_charged_per_s: short(spent.usage.cpu_ns as f64 / 1e9 / span_s),
        occupancy: short(spent.usage.occupied_ns as f64 / 1e9 / span_s),
        share: Share {
            configured_percent: short(share.configured_percent),
            wanted_percent: short(share.wanted_percent),
            got_percent: short(share.got_percent),
        },
        class: spent.main,
        p50_ms: ms(0.5),
        p99_ms: ms(0.99),
        stages: spent.stages.iter().map(|s| wait_live(s, span_s)).collect(),
        connections: tenant.connections,
        limit_requests_per_s: tenant.limit_requests_per_s,
        write_error: tenant.write_error.clone(),
    }
}

fn wait_live(stage: &TenantStage, span_s: f64) -> WaitLive {
    let wait_ms = |admitted| stage.waited_ns as f64 / admitted as f64 / 1e6;
    WaitLive {
        stage: stage.stage.clone(),
        waiting: stage.waiting,
        permits_in_use: stage.permits_in_use,
        admitted_per_s: short(stage.admitted as f64 / span_s),
        wait_mean_ms: (stage.admitted > 0).then(|| short(wait_ms(stage.admitted))),
    }
}

fn class_live(class: Class, totals: &ClassTotals, span_s: f64) -> ClassLive {
    let per_s = |count: u64| short(count as f64 / span_s);
    ClassLive {
        class,
        rates: Rates {
            requests_per_s: per_s(totals.requests),
            throttled_per_s: per_s(totals.throttled.iter().sum()),
            bytes_in_per_s: per_s(totals.bytes_in),
            bytes_out_per_s: per_s(totals.bytes_out),
        },
        errors_per_s: per_s(totals.errors),
        throttled_requests_per_s: per_s(totals.throttled[0]),
        throttled_bytes_per_s: per_s(totals.throttled[1]),
        latency: TimesView::new(&totals.latency),
        queue: TimesView::new(&totals.queue),
        disk: TimesView::new(&totals.disk),
    }
}

/// Sums over all classes, divided by requests: percentiles of parts would not add up.
fn time_spent(spent: &Spent) -> TimeSpent {
    let sum = |of: fn(&ClassTotals) -> u64| -> f64 {
        spent
            .classes
            .iter()
            .map(|(_, totals)| of(totals))
            .sum::<u64>() as f64
    };
    let requests = sum(|totals| totals.latency.count());
    if requests == 0.0 {
        return TimeSpent::default();
    }
    let latency = sum(|totals| totals.latency.sum_ns());
    let on_disk = sum(|totals| totals.disk.count());
    let mut stages = spent.stages.iter();
    let handler = stages.find(|stage| stage.stage == StageKind::Handler.name());
    let wait = handler.map_or(0.0, |s| s.waited_ns as f64 / s.admitted.max(1) as f64);
    // The parts come from counters that are read one after the other and, at the stages, up to a second
    // late: each is bounded by what those before it left.
    let mut left = latency;
    let mut part = |ns: f64| {
        let ns = ns.min(left);
        left -= ns;
        short(ns / requests / 1e6)
    };
    TimeSpent {
        mean_ms: short(latency / requests / 1e6),
        request_stage_ms: part(sum(|totals| totals.queue.sum_ns())),
        disk_ms: part(sum(|totals| totals.disk.sum_ns())),
        handler_stage_ms: part(wait * on_disk),
        cpu_ms: part(sum(|totals| totals.cpu_ns)),
        rest_ms: part(f64::INFINITY),
    }
}

fn server(gauges: &Gauges, all: &Usage, cpu_s: f64, span_s: f64) -> ServerLive {
    let server = &gauges.server;
    ServerLive {
        state: gauges.state.clone(),
        version: server.version.clone(),
        uptime_s: server.uptime_s,
        scheduler: server.scheduler.clone(),
        cores: server.cores,
        connections: server.connections.open,
        connections_max: server.connections.max,
        memory_used: server.memory.used,
        memory_max: server.memory.max,
        cpu_per_s: short(cpu_s / span_s),
        rates: rates(all, span_s),
        device: server.device.clone(),
        device_doubt: server.device_doubt.clone(),
    }
}

fn rates(usage: &Usage, span_s: f64) -> Rates {
    let per_s = |count: u64| short(count as f64 / span_s);
    Rates {
        requests_per_s: per_s(usage.requests),
        throttled_per_s: per_s(usage.throttled),
        bytes_in_per_s: per_s(usage.bytes_in),
        bytes_out_per_s: per_s(usage.bytes_out),
    }
}

fn stage_live(stage: &StageSnapshot, before: &Reading, span_s: f64) -> StageLive {
    let key = (stage.stage.clone(), stage.core);
    let earlier = before.admitted.get(&key).copied().unwrap_or(0);
    let mut principals = stage.principals.clone();
    principals.sort_by_key(|principal| Reverse((principal.waiting, principal.permits_in_use)));
    principals.truncate(PRINCIPALS_MAX);
    StageLive {
        stage: stage.stage.clone(),
        core: stage.core,
        policy: stage.policy.clone(),
        permits: stage.permits,
        permits_in_use: stage.permits_in_use,
        admitted_per_s: short(stage.admitted.saturating_sub(earlier) as f64 / span_s),
        waiting: waiting(stage),
        principals,
        principals_total: stage.principals.len() as u64,
    }
}

fn waiting(stage: &StageSnapshot) -> u64 {
    stage.principals.iter().map(|p| p.waiting).sum()
}

fn places(stages: &[StageSnapshot], name: &str) -> Vec<PlaceLive> {
    let place = |stage: &StageSnapshot| {
        let mut principals = stage.principals.iter();
        Some(PlaceLive {
            stage: stage.stage.clone(),
            core: stage.core,
            waiting_all: waiting(stage),
            principal: principals.find(|p| p.name == name)?.clone(),
        })
    };
    stages.iter().filter_map(place).collect()
}

/// Four decimals: more would be the arithmetic's digits, and bytes on the wire.
pub(super) fn short(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
