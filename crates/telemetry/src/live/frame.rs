//! What two readings and the server's gauges say together.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::reading::{Reading, Spent};
use super::view::{
    ClassLive, LiveView, PartSpent, PlaceLive, Rates, ServerLive, StageLive, TenantDetail,
    TenantLive, TimeSpent, WaitLive,
};
use crate::api::TimesView;
use crate::class::Class;
use crate::model::{ServerSnapshot, StageSnapshot, State, TenantSnapshot, TenantStage};
use crate::parts::TimeParts;
use crate::shares::{shares, Recent, Share, Using};
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
    pub(super) newcomers: TenantSnapshot,
    pub(super) stages: Vec<StageSnapshot>,
}

impl Gauges {
    /// The tenants, and newcomers behind them.
    pub(super) fn everybody(&self) -> impl Iterator<Item = &TenantSnapshot> {
        self.tenants.iter().chain([&self.newcomers])
    }
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
            .everybody()
            .map(|tenant| (tenant.name.as_str(), between(&before, &now, &tenant.name)))
            .collect();
        let spans = Spans::new(span_s, &before, &now);
        let (mut tenants, newcomers) = everybody(&gauges, &spent, &spans);
        let mut all = Usage::default();
        let of_tenants = gauges
            .tenants
            .iter()
            .map(|tenant| &spent[tenant.name.as_str()]);
        of_tenants.for_each(|spent| all.add(&spent.usage));
        tenants.truncate(TENANTS_MAX);
        let view = LiveView {
            at_ms: gauges.at_ms,
            span_s: short(span_s),
            server: server(&gauges, &all, now.cpu_s - before.cpu_s, span_s),
            tenants,
            tenants_total: gauges.tenants.len() as u64,
            newcomers,
            stages: gauges
                .stages
                .iter()
                .map(|stage| stage_live(stage, &before))
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
            let spans = Spans::new(span_s, &self.before, &self.now);
            tenant_live(&tenant, &spent, share, &spans)
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

/// The times that rates are over: counters of tenants are read as they are, those of stages as
/// their cores last wrote them down.
struct Spans {
    span_s: f64,
    stages: [Option<f64>; StageKind::ALL.len()],
}

impl Spans {
    fn new(span_s: f64, before: &Reading, now: &Reading) -> Self {
        let stages = StageKind::ALL.map(|kind| now.span_of(before, kind.name()));
        Self { span_s, stages }
    }

    fn of(&self, stage: &str) -> f64 {
        let kinds = StageKind::ALL.iter().zip(self.stages);
        let mut spans = kinds.filter(|(kind, _)| kind.name() == stage);
        let span = spans.next().and_then(|(_, span)| span);
        span.unwrap_or(self.span_s)
    }
}

/// All tenants, those with the largest shares first, and newcomers.
fn everybody(
    gauges: &Gauges,
    spent: &BTreeMap<&str, Spent>,
    spans: &Spans,
) -> (Vec<TenantLive>, TenantLive) {
    let used: Vec<Using> = gauges
        .everybody()
        .map(|tenant| {
            let spent = &spent[tenant.name.as_str()];
            let recent = Recent::over(&spent.usage, (spans.span_s * 1e9) as u64);
            Using::of(tenant, (!spent.is_idle()).then_some(recent))
        })
        .collect();
    let (by_newcomers, by_tenants) = used
        .split_last()
        .map_or((None, &used[..]), |(last, rest)| (Some(last), rest));
    let shares = shares(by_tenants, by_newcomers, &gauges.server.capacities);
    let mut tenants: Vec<TenantLive> = gauges
        .everybody()
        .zip(shares)
        .map(|(tenant, share)| tenant_live(tenant, &spent[tenant.name.as_str()], share, spans))
        .collect();
    let newcomers = tenants.pop().unwrap_or_default();
    tenants.sort_by(|a, b| {
        let by_share = b.share.got_percent.total_cmp(&a.share.got_percent);
        let by_asking = b.rates.throttled_per_s.total_cmp(&a.rates.throttled_per_s);
        by_share
            .then(by_asking)
            .then(b.connections.cmp(&a.connections))
            .then_with(|| a.name.cmp(&b.name))
    });
    (tenants, newcomers)
}

fn tenant_live(tenant: &TenantSnapshot, spent: &Spent, share: Share, spans: &Spans) -> TenantLive {
    let span_s = spans.span_s;
    let main = spent.of_main();
    let ms = |p: f64| main.map(|totals| totals.latency.quantile(p).round() / 1e6);
    let errors: u64 = spent.classes.iter().map(|(_, totals)| totals.errors).sum();
    let seen = spent.usage.requests == 0 || !spent.classes.is_empty();
    TenantLive {
        name: tenant.name.clone(),
        number: tenant.number,
        weight: tenant.weight,
        asked_per_s: short(asked(spent) / span_s),
        rates: rates(&spent.usage, span_s),
        errors_per_s: seen.then(|| short(errors as f64 / span_s)),
        cpu_charged_per_s: short(spent.usage.cpu_ns as f64 / 1e9 / span_s),
        occupancy: short(spent.usage.occupied_ns as f64 / 1e9 / span_s),
        share: Share {
            configured_percent: short(share.configured_percent),
            entitled_percent: short(share.entitled_percent),
            got_percent: short(share.got_percent),
        },
        class: spent.main,
        p50_ms: ms(0.5),
        p99_ms: ms(0.99),
        stages: spent
            .stages
            .iter()
            .map(|stage| wait_live(stage, spans.of(&stage.stage)))
            .collect(),
        connections: tenant.connections,
        limit_requests_per_s: tenant.limit_requests_per_s,
        write_error: tenant.write_error.clone(),
        kept_percent: kept_percent(tenant),
    }
}

fn kept_percent(tenant: &TenantSnapshot) -> Option<f64> {
    let kept = tenant.promises.iter();
    let kept = kept.filter_map(|promise| promise.hour.met_percent);
    kept.min_by(f64::total_cmp)
}

/// Requests that were asked for: answered, turned away, and those that wait, each connection in
/// line with as many as a turn of the tenant's answers.
fn asked(spent: &Spent) -> f64 {
    let at = |kind: StageKind| spent.stages.iter().find(|stage| stage.stage == kind.name());
    let requests = spent.usage.requests as f64;
    let in_line = at(StageKind::Request).map_or(0.0, |stage| {
        let a_turn = requests / stage.admitted.max(1) as f64;
        stage.waiting as f64 * a_turn.max(1.0)
    });
    let handlers = at(StageKind::Handler).map_or(0, |stage| stage.waiting);
    requests + spent.usage.throttled as f64 + in_line + handlers as f64
}

fn wait_live(stage: &TenantStage, span_s: f64) -> WaitLive {
    let wait_ms = |admitted| stage.waited_ns as f64 / admitted as f64 / 1e6;
    WaitLive {
        stage: stage.stage.clone(),
        waiting: stage.waiting,
        permits_busy: short(stage.busy_ns as f64 / 1e9 / span_s),
        admitted_per_s: short(stage.admitted as f64 / span_s),
        asked_per_s: short((stage.admitted + stage.refused + stage.waiting) as f64 / span_s),
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
    let (mut parts, mut requests) = (TimeParts::default(), 0);
    for (_, totals) in &spent.classes {
        parts.add(&totals.parts);
        requests += totals.requests;
    }
    TimeSpent {
        mean_ms: short(parts.sum() as f64 / requests.max(1) as f64 / 1e6),
        parts: PartSpent::of(&parts, requests).collect(),
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
        memory_resident: server.memory.resident,
        memory_process_max: server.memory.process_max,
        memory_used: server.memory.used,
        memory_max: server.memory.max,
        cpu_per_s: short(cpu_s / span_s),
        rates: rates(all, span_s),
        device: server.device.clone(),
        device_doubt: server.device_doubt.clone(),
        control_failure: server.control.failure.clone(),
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

fn stage_live(stage: &StageSnapshot, before: &Reading) -> StageLive {
    let key = (stage.stage.clone(), stage.core);
    let earlier = before.stages.get(&key).copied().unwrap_or_default();
    let span_ns = stage.at_ns.saturating_sub(earlier.at_ns).max(1) as f64;
    let mut principals = stage.principals.clone();
    principals.sort_by_key(|principal| Reverse((principal.waiting, principal.permits_in_use)));
    principals.truncate(PRINCIPALS_MAX);
    StageLive {
        stage: stage.stage.clone(),
        core: stage.core,
        policy: stage.policy.clone(),
        permits: stage.permits,
        permits_busy: short(stage.busy_ns.saturating_sub(earlier.busy_ns) as f64 / span_ns),
        admitted_per_s: short(
            stage.admitted.saturating_sub(earlier.admitted) as f64 / span_ns * 1e9,
        ),
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
