//! Runs whose outcome is known beforehand: from queueing theory, from shares, from arithmetic.

use policy::dispatch::Discipline;
use policy::multiget::{Levels, Order, Rates, Strategy};
use policy::replica::Rule;
use policy::Promise;
use sim::{
    run, AheadKnown, Arrivals, Cluster, Control, CostKnown, Fault, FaultKind, Friction, KeyCount,
    Noise, Outcome, Redundancy, Requests, Resources, Routing, Scheduler, Selection, Service, Spec,
    Stream, Tenant, Tuning,
};
use workload::draw::{Popularity, Sizes};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn stream(arrivals: Arrivals, keys: &[(u32, f64)]) -> Stream {
    Stream {
        arrivals,
        from_ns: 0,
        until_ns: u64::MAX,
        quota: None,
        requests: Requests {
            puts: 0.0,
            range: false,
            keys: KeyCount::new(keys.iter().copied()).expect("a weight above zero"),
            popularity: Popularity::Uniform(10_000),
            values: Sizes::Constant(100),
        },
    }
}

fn tenant(name: &str, weight: f64, arrivals: Arrivals, keys: &[(u32, f64)]) -> Tenant {
    Tenant {
        name: name.into(),
        group: name.into(),
        promise: Promise::share(weight),
        objective: None,
        partitions: 16,
        streams: vec![stream(arrivals, keys)],
    }
}

/// One tenant of single gets, exponential service of 1 ms, no network.
fn spec(nodes: u32, permits: u32, per_s: f64) -> Spec {
    Spec {
        seed: 7,
        duration_ns: 60 * S,
        warm_up_ns: S,
        drain_ns: 5 * S,
        cluster: Cluster {
            nodes,
            replicas: 1,
            permits,
            processors: permits,
            routers: 4,
            resources: Resources::default(),
            device: None,
            control: Control::default(),
            friction: Friction::default(),
            one_way_ns: 0,
            reply_ns: 0,
            look_ns: 0,
            service: Service {
                operation_ns: MS as f64,
                byte_ns: 0.0,
                noise: Noise::Exponential,
            },
        },
        scheduler: Scheduler {
            discipline: Discipline::Fair,
            order: Order::Arrival,
            strategy: Strategy::Agnostic,
            levels: Levels::exponential(4, 3.0, 1, Rates::Linear),
            guard_ns: None,
            cost: CostKnown::Operations,
            ahead: AheadKnown::Nothing,
            tuning: Tuning::None,
        },
        routing: Routing {
            selection: Selection::Rule(Rule::RoundRobin),
            redundancy: Redundancy::None,
            probe_from: None,
        },
        tenants: vec![tenant("a", 1.0, Arrivals::Poisson { per_s }, &[(1, 1.0)])],
        faults: Vec::new(),
        pauses: Vec::new(),
        keeper: None,
    }
}

fn mean_ms(outcome: &Outcome, tenant: usize) -> f64 {
    outcome.tenants[tenant].latency_ns.mean() / MS as f64
}

fn near(measured: f64, wanted: f64, part: f64) {
    assert!(
        (measured / wanted - 1.0).abs() <= part,
        "{measured}, wanted {wanted}"
    );
}

#[test]
fn one_server_agrees_with_theory() {
    // M/M/1 at 70 %: 1 ms / (1 - 0.7).
    near(mean_ms(&run(&spec(1, 1, 700.0)), 0), 1.0 / 0.3, 0.05);
}

#[test]
fn eight_servers_agree_with_theory() {
    // M/M/8 at 75 %: Erlang's C is 0.3570, so the mean wait is 0.3570 / (8 * 0.25) = 0.1785 ms.
    near(mean_ms(&run(&spec(1, 8, 6_000.0)), 0), 1.1785, 0.02);
}

#[test]
fn a_multiget_takes_as_long_as_its_slowest() {
    // At 1 % load nobody waits: the mean of the largest of 8 exponentials is the 8th harmonic
    // number.
    let mut spec = spec(16, 8, 10.0);
    spec.tenants[0] = tenant("a", 1.0, Arrivals::Poisson { per_s: 50.0 }, &[(8, 1.0)]);
    let harmonic: f64 = (1..=8).map(|k| 1.0 / f64::from(k)).sum();
    near(mean_ms(&run(&spec), 0), harmonic, 0.05);
}

#[test]
fn the_network_is_crossed_twice() {
    let mut spec = spec(4, 4, 10.0);
    spec.cluster.one_way_ns = 3 * MS;
    spec.cluster.service.noise = Noise::None;
    let outcome = run(&spec);
    assert_eq!(outcome.tenants[0].latency_ns.min() / MS, 6);
    near(outcome.tenants[0].quantile_ns(0.5) as f64, 7e6, 0.001);
}

#[test]
fn weights_share_the_nodes() {
    let mut spec = spec(4, 2, 0.0);
    spec.duration_ns = 20 * S;
    let closed = Arrivals::Closed { clients: 400 };
    spec.tenants = vec![
        tenant("light", 1.0, closed, &[(1, 1.0)]),
        tenant("heavy", 3.0, closed, &[(1, 1.0)]),
    ];
    for order in [Order::Arrival, Order::Levels, Order::Exact] {
        spec.scheduler.order = order;
        spec.scheduler.strategy = Strategy::Rein;
        let outcome = run(&spec);
        let operations = |t: usize| outcome.tenants[t].operations as f64;
        near(operations(1) / operations(0), 3.0, 0.05);
        near(outcome.utilisation, 1.0, 0.02);
    }
}

#[test]
fn duplicates_double_the_load_and_speculation_does_not() {
    let mut spec = spec(8, 4, 8_000.0);
    spec.cluster.replicas = 3;
    let load = |redundancy| {
        let mut spec = spec.clone();
        spec.routing.redundancy = redundancy;
        run(&spec)
    };
    let once = load(Redundancy::None);
    near(once.utilisation, 0.25, 0.03);
    let twice = load(Redundancy::Duplicate);
    near(twice.utilisation, 0.5, 0.03);
    let late = load(Redundancy::Speculative { quantile: 0.9 });
    near(late.utilisation, 0.275, 0.05);
    // At low load two chances are better than one, and the tail is what speculation is for.
    let p99 = |outcome: &Outcome| outcome.tenants[0].quantile_ns(0.99);
    assert!(p99(&twice) < p99(&once) && p99(&late) < p99(&once));
}

#[test]
fn a_slow_node_is_avoided_by_who_looks() {
    let mut spec = spec(6, 2, 5_000.0);
    spec.cluster.replicas = 3;
    spec.faults = vec![Fault {
        node: 2,
        from_ns: 0,
        until_ns: 61 * S,
        kind: FaultKind::Slow(5.0),
    }];
    let p99 = |rule| {
        let mut spec = spec.clone();
        spec.routing.selection = Selection::Rule(rule);
        run(&spec).tenants[0].quantile_ns(0.99)
    };
    let blind = p99(Rule::RoundRobin);
    let senders = spec.cluster.routers;
    for rule in [
        Rule::LeastOutstanding,
        Rule::C3 { senders },
        Rule::HotCold,
        Rule::LeastFinish,
    ] {
        assert!(p99(rule) * 3 < blind, "{rule:?}");
    }
}

#[test]
fn a_pause_delays_and_loses_nothing() {
    let mut spec = spec(1, 1, 300.0);
    spec.cluster.service.noise = Noise::None;
    spec.duration_ns = 20 * S;
    spec.faults = vec![Fault {
        node: 0,
        from_ns: 5 * S,
        until_ns: 7 * S,
        kind: FaultKind::Pause,
    }];
    let paused = run(&spec);
    spec.faults.clear();
    let whole = run(&spec);
    assert_eq!(paused.tenants[0].requests, whole.tenants[0].requests);
    let longest = paused.tenants[0].latency_ns.max();
    assert!((1_990 * MS..2_010 * MS).contains(&longest), "{longest}");
}

#[test]
fn equal_seeds_give_equal_outcomes() {
    let mut spec = spec(8, 4, 8_000.0);
    spec.duration_ns = 3 * S;
    spec.scheduler.order = Order::Levels;
    spec.scheduler.strategy = Strategy::Rein;
    spec.cluster.replicas = 3;
    spec.routing = Routing {
        selection: Selection::Rule(Rule::LeastFinish),
        redundancy: Redundancy::Speculative { quantile: 0.95 },
        probe_from: None,
    };
    let text = |seed| {
        let mut spec = spec.clone();
        spec.seed = seed;
        format!("{:?}", run(&spec))
    };
    assert_eq!(text(3), text(3));
    assert_ne!(text(3), text(4));
}

#[test]
fn fewer_processors_than_permits_are_shared_and_never_idle() {
    // Eight gets of 1 ms of a processor, one each .1 ms, on four processors: from the fifth on they
    // share them, and the last one has one of its own again when only four are left. By hand, in
    // steps: it takes 1.6425 ms.
    let mut spec = spec(1, 8, 0.0);
    spec.cluster.processors = 4;
    spec.cluster.service.noise = Noise::None;
    (spec.warm_up_ns, spec.duration_ns) = (0, 10 * MS);
    let each = Arrivals::Constant { per_s: 10_000.0 };
    spec.tenants = vec![tenant("a", 1.0, each, &[(1, 1.0)])];
    spec.tenants[0].streams[0].until_ns = 850_000;
    let outcome = run(&spec);
    assert_eq!(outcome.tenants[0].requests, 8);
    let last = outcome.tenants[0].quantile_ns(1.0) as f64;
    near(last, 1_642_500.0, 0.001);
}

#[test]
fn what_is_never_answered_has_failed() {
    let failed = |replicas: u32, until_ns: u64| {
        let mut spec = spec(2, 1, 200.0);
        (spec.duration_ns, spec.cluster.replicas) = (4 * S, replicas);
        spec.faults = vec![Fault {
            node: 0,
            from_ns: 2 * S,
            until_ns,
            kind: FaultKind::Dead,
        }];
        let outcome = run(&spec);
        let tenant = &outcome.tenants[0];
        assert_eq!(tenant.offered, tenant.requests + tenant.unanswered());
        tenant.unanswered()
    };
    // Half of the keys have no other node.
    let lost = failed(1, u64::MAX / 2);
    assert!((150..250).contains(&lost), "{lost} of 400");
    assert_eq!(failed(2, u64::MAX / 2), 0, "the other replica answers");
    assert_eq!(
        failed(1, 5 * S),
        0,
        "it comes back while replies are waited for"
    );
}
