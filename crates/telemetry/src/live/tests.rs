use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::frame::TENANTS_MAX;
use super::reading::LATENCIES_MAX;
use super::view::LiveView;
use super::*;
use crate::cluster::ClusterView;
use crate::model::{
    Connections, Memory, PrincipalSnapshot, ServerSnapshot, StageSnapshot, State, Storage,
    TenantSnapshot, TenantStage,
};
use crate::parts::{Part, TimeParts};
use crate::recorder::{Limit, Recorder, Request};
use crate::shares::Capacities;
use crate::Class;

const SECOND: u64 = 1_000_000_000;

/// What it says is what was put there.
#[derive(Default)]
struct Said {
    tenants: Mutex<Vec<TenantSnapshot>>,
    stages: Mutex<Vec<StageSnapshot>>,
}

impl AdminSource for Said {
    fn state(&self) -> State {
        State::Ready
    }

    fn server(&self) -> ServerSnapshot {
        let capacities = Capacities {
            requests_per_s: 1e5,
            bytes_in_per_s: 1e9,
            bytes_out_per_s: 1e9,
            cpu_per_s: 2.0,
        };
        ServerSnapshot {
            version: String::new(),
            redis_version: String::new(),
            process_id: 1,
            uptime_s: 1,
            cores: 1,
            scheduler: "fair".into(),
            capacities,
            listen: Vec::new(),
            connections: Connections::default(),
            logins: crate::Logins::default(),
            certificates: Vec::new(),
            memory: Memory::default(),
            largest_turn: crate::LargestTurn::default(),
            storage: Storage::default(),
            cpu_user_s: 0.0,
            cpu_system_s: 0.0,
            slowlog_length: 0,
            reloads: 0,
            reloads_refused: 0,
            log_lines_lost: 0,
            device: None,
            device_doubt: None,
            engine_links: None,
            engine_replicas: None,
            control: crate::model::ControlSnapshot::default(),
        }
    }

    fn tenants(&self) -> Vec<TenantSnapshot> {
        self.tenants.lock().clone()
    }

    fn settings(&self, _: &str) -> Vec<crate::TenantSetting> {
        Vec::new()
    }

    fn explain(&self, _: &str) -> Option<crate::promise::Explanation> {
        None
    }

    fn attainment(&self, _: &str) -> Option<Vec<crate::promise::PromiseAttainment>> {
        None
    }

    fn newcomers(&self) -> TenantSnapshot {
        TenantSnapshot {
            name: "(newcomers)".into(),
            weight: 1.0,
            weight_here: 1.0,
            ..TenantSnapshot::default()
        }
    }

    fn stages(&self) -> Vec<StageSnapshot> {
        self.stages.lock().clone()
    }

    fn cluster(&self, _: Option<&str>) -> Option<ClusterView> {
        None
    }
}

/// A quarter waiting for a turn, a half for its commit, the rest its own.
fn parts(latency_ns: u64) -> TimeParts {
    let mut parts = TimeParts::default();
    parts[Part::Turn] = latency_ns / 4;
    parts[Part::Commit] = latency_ns / 2;
    parts[Part::Cpu] = latency_ns / 4;
    parts
}

/// A server of one core, its clock in the test's hand.
struct Bench {
    said: Said,
    registry: Registry,
    recorders: BTreeMap<String, Recorder>,
    history: History,
    now_ns: u64,
}

impl Bench {
    fn new(tenants: &[(&str, f64)]) -> Self {
        let bench = Self {
            said: Said::default(),
            registry: Registry::new(1),
            recorders: BTreeMap::new(),
            history: History::default(),
            now_ns: 0,
        };
        for &(name, weight) in tenants {
            bench.said.tenants.lock().push(TenantSnapshot {
                name: name.into(),
                weight,
                weight_here: weight,
                ..TenantSnapshot::default()
            });
        }
        bench
    }

    fn recorder(&mut self, tenant: &str) -> &mut Recorder {
        let registry = &self.registry;
        let new = || {
            registry
                .recorder(tenant, 0)
                .expect("one core, one recorder")
        };
        self.recorders.entry(tenant.into()).or_insert_with(new)
    }

    fn answer(&mut self, tenant: &str, class: Class, latency_ms: u64, count: u64) {
        let latency_ns = latency_ms * 1_000_000;
        let request = Request {
            class,
            latency_ns,
            queue_ns: latency_ns / 4,
            disk_ns: latency_ns / 2,
            bytes_in: 10 * count,
            bytes_out: 0,
            cpu_ns: latency_ns / 8 * count,
            failed: false,
            parts: parts(latency_ns),
        };
        self.recorder(tenant).record_many(&request, count);
    }

    /// One second passes.
    fn step(&mut self) -> Option<Frame> {
        self.now_ns += SECOND;
        self.history.step(&self.said, &self.registry, self.now_ns)
    }

    fn before(&self, stage: TenantStage) {
        self.said.tenants.lock()[0].stages = vec![stage];
    }
}

#[test]
fn a_frame_tells_the_last_three_seconds_only() {
    let mut bench = Bench::new(&[("web", 3.0), ("batch", 1.0), ("idle", 1.0)]);
    bench.answer("web", Class::Get, 500, 1_000);
    assert!(bench.step().is_none(), "one reading is no span");
    bench.answer("web", Class::Get, 1, 60);
    bench.answer("batch", Class::Put, 8, 30);
    let frame = bench.step().expect("two readings");
    assert_eq!(frame.view.span_s, 1.0);
    let names: Vec<&str> = frame.view.tenants.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(
        names,
        ["batch", "web", "idle"],
        "by share got, which is CPU here"
    );
    let web = &frame.view.tenants[1];
    assert_eq!(
        (web.rates.requests_per_s, web.class),
        (60.0, Some(Class::Get))
    );
    assert!(
        (web.p99_ms.expect("used") - 1.0).abs() < 0.04,
        "not the 500 ms of before"
    );
    assert_eq!(web.share.entitled_percent, 75.0, "idle does not count");
    assert_eq!(frame.view.tenants[2].p99_ms, None);
    for _ in 0..2 {
        bench.step();
    }
    let frame = bench.step().expect("a frame");
    assert_eq!(frame.view.span_s, 3.0);
    assert_eq!(
        frame.view.server.rates.requests_per_s, 0.0,
        "it is over 3 s ago"
    );
    assert!(frame.view.tenants.iter().all(|t| t.p99_ms.is_none()));
}

#[test]
fn latency_is_that_of_the_busiest_class_since_the_start() {
    let mut bench = Bench::new(&[("web", 1.0)]);
    bench.answer("web", Class::Get, 1, 100);
    bench.step();
    bench.answer("web", Class::Get, 1, 1);
    bench.answer("web", Class::Put, 9, 50);
    let live = bench.step().expect("a frame").view.tenants.remove(0);
    assert_eq!(
        live.class,
        Some(Class::Get),
        "50 puts do not make it change"
    );
    for _ in 0..3 {
        bench.step();
    }
    bench.answer("web", Class::Put, 9, 5);
    let live = bench.step().expect("a frame").view.tenants.remove(0);
    assert_eq!(live.class, Some(Class::Put), "no get lately");
    assert!((live.p50_ms.expect("used") - 9.0).abs() < 0.3);
}

#[test]
fn where_the_time_goes_adds_up() {
    let mut bench = Bench::new(&[("web", 1.0)]);
    bench.answer("web", Class::Get, 100, 10);
    bench.step();
    bench.answer("web", Class::Get, 8, 30);
    bench.answer("web", Class::Put, 12, 30);
    let frame = bench.step().expect("a frame");
    let time = frame.detail("web").expect("known").time;
    let told: Vec<(&str, f64)> = (time.parts.iter())
        .filter(|part| part.mean_ms > 0.0)
        .map(|part| (part.part.as_str(), part.mean_ms))
        .collect();
    assert_eq!(
        time.mean_ms, 10.0,
        "of all classes, since the reading before"
    );
    assert_eq!(told, [("turn", 2.5), ("cpu", 2.5), ("commit", 5.0)]);
    assert_eq!(
        time.parts.len(),
        crate::PARTS,
        "those that took no time, too"
    );
}

#[test]
fn what_is_asked_for_is_what_was_served_refused_and_waits() {
    let mut bench = Bench::new(&[("web", 1.0)]);
    let turns = |admitted, refused, waiting| TenantStage {
        stage: "request".into(),
        admitted,
        refused,
        waiting,
        waited_ns: admitted * 1_000_000,
        busy_ns: admitted * 20_000_000,
        ..TenantStage::default()
    };
    bench.recorder("web");
    bench.before(turns(5, 3, 0));
    bench.step();
    // Ten turns of four requests each, two turned away, and 20 connections in line.
    bench.answer("web", Class::Get, 1, 40);
    for _ in 0..8 {
        bench.recorder("web").throttled(Class::Get, Limit::Requests);
    }
    bench.before(turns(15, 5, 20));
    let web = bench.step().expect("a frame").view.tenants.remove(0);
    assert_eq!(web.rates.requests_per_s, 40.0);
    assert_eq!(web.asked_per_s, 40.0 + 8.0 + 20.0 * 4.0);
    let stage = &web.stages[0];
    assert_eq!(
        (stage.admitted_per_s, stage.asked_per_s, stage.waiting),
        (10.0, 10.0 + 2.0 + 20.0, 20)
    );
    assert_eq!((stage.wait_mean_ms, stage.permits_busy), (Some(1.0), 0.2));
}

#[test]
fn permits_are_averaged_over_the_time_that_the_core_has_told_of() {
    let mut bench = Bench::new(&[("web", 1.0)]);
    let told = |at_ns, admitted, busy_ns| StageSnapshot {
        stage: "request".into(),
        permits: 1,
        at_ns,
        admitted,
        busy_ns,
        ..StageSnapshot::default()
    };
    *bench.said.stages.lock() = vec![told(10 * SECOND, 100, SECOND)];
    bench.step();
    // Read a second later, it tells of half a second.
    *bench.said.stages.lock() = vec![told(10 * SECOND + SECOND / 2, 150, SECOND + SECOND / 4)];
    let stage = bench.step().expect("a frame").view.stages.remove(0);
    assert_eq!((stage.permits_busy, stage.admitted_per_s), (0.5, 100.0));
    let stage = bench.step().expect("a frame").view.stages.remove(0);
    assert_eq!(stage.permits_busy, 0.5, "it has told of nothing since");
}

#[test]
fn what_newcomers_take_is_nobody_s_share() {
    let mut bench = Bench::new(&[("web", 3.0), ("idle", 6.0)]);
    bench.recorder("(newcomers)");
    bench.step();
    bench.answer("web", Class::Get, 1, 100);
    bench.answer("(newcomers)", Class::Other, 1, 300);
    let view = bench.step().expect("a frame").view;
    assert_eq!(view.tenants_total, 2);
    assert!(view
        .tenants
        .iter()
        .all(|tenant| tenant.name != "(newcomers)"));
    assert_eq!(view.server.rates.requests_per_s, 100.0, "tenants'");
    let (web, newcomers) = (&view.tenants[0], &view.newcomers);
    assert_eq!(
        (web.share.got_percent, newcomers.share.got_percent),
        (25.0, 75.0)
    );
    assert_eq!(
        (web.share.entitled_percent, newcomers.share.entitled_percent),
        (75.0, 25.0)
    );
}

#[test]
fn a_tenant_that_is_only_refused_is_seen() {
    let mut bench = Bench::new(&[("greedy", 1.0)]);
    bench.recorder("greedy");
    bench.step();
    bench.recorder("greedy").throttled(Class::Put, Limit::Bytes);
    let frame = bench.step().expect("a frame");
    assert_eq!(frame.view.tenants[0].rates.throttled_per_s, 1.0);
    let classes = frame.detail("greedy").expect("known").classes;
    assert_eq!(classes[0].throttled_bytes_per_s, 1.0);
    assert_eq!(frame.view.server.rates.throttled_per_s, 1.0);
    assert!(frame.detail("nobody").is_none());
}

#[test]
fn long_lists_are_cut_and_say_so() {
    let names: Vec<String> = (0..TENANTS_MAX + 20).map(|i| format!("t{i:04}")).collect();
    let tenants: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 1.0)).collect();
    let mut bench = Bench::new(&tenants);
    bench.step();
    for name in &names {
        bench.answer(name, Class::Get, 1, 1);
    }
    let principals = (0..40).map(|i| PrincipalSnapshot {
        name: format!("t{i:04}"),
        waiting: i,
        ..PrincipalSnapshot::default()
    });
    bench.said.stages.lock().push(StageSnapshot {
        principals: principals.collect(),
        ..StageSnapshot::default()
    });
    let frame = bench.step().expect("a frame");
    assert_eq!(frame.view.tenants.len(), TENANTS_MAX);
    assert_eq!(frame.view.tenants_total, names.len() as u64);
    let stage = &frame.view.stages[0];
    assert_eq!((stage.principals.len(), stage.principals_total), (16, 40));
    assert_eq!((stage.principals[0].waiting, stage.waiting), (39, 780));
    let seen = |frame: &Frame| {
        let known = names.iter().filter(|name| {
            let detail = frame.detail(name).expect("known");
            detail.live.p99_ms.is_some()
        });
        known.count()
    };
    // Those beyond had nothing yet, so everything of theirs is new.
    assert_eq!(seen(&frame), LATENCIES_MAX);
    for name in &names {
        bench.answer(name, Class::Get, 1, 1);
    }
    let last = names.last().expect("some");
    let late = bench
        .step()
        .expect("a frame")
        .detail(last)
        .expect("known")
        .live;
    assert_eq!(
        (late.p99_ms, late.errors_per_s),
        (None, None),
        "not looked at"
    );
    assert!(late.rates.requests_per_s > 0.0, "rates are known of all");
}

#[test]
fn the_text_is_the_view() {
    let mut bench = Bench::new(&[("web", 1.0)]);
    bench.answer("web", Class::Scan, 3, 7);
    bench.step();
    bench.answer("web", Class::Scan, 3, 7);
    let frame = bench.step().expect("a frame");
    let back: LiveView = serde_json::from_str(&frame.json).expect("JSON");
    assert_eq!(back, frame.view);
}

#[test]
fn a_tenant_made_anew_counts_from_nothing() {
    let mut bench = Bench::new(&[("web", 1.0)]);
    bench.answer("web", Class::Get, 1, 500);
    bench.step();
    bench.registry.remove("web");
    bench.recorders.clear();
    bench.answer("web", Class::Get, 1, 20);
    let frame = bench.step().expect("a frame");
    assert_eq!(
        frame.view.tenants[0].rates.requests_per_s, 0.0,
        "less than before is not negative"
    );
    bench.answer("web", Class::Get, 1, 20);
    for _ in 0..3 {
        bench.answer("web", Class::Get, 1, 30);
        bench.step();
    }
    bench.answer("web", Class::Get, 1, 30);
    let rate = bench.step().expect("a frame").view.tenants[0]
        .rates
        .requests_per_s;
    assert_eq!(rate, 30.0);
}
