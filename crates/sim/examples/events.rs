//! How fast the simulator is: events a second of processor time, for 128 nodes under a load of 75 %
//! with each order.
//!
//! `cargo run --release -p entremet-sim --example events`

use policy::dispatch::Discipline;
use policy::multiget::{Levels, Order, Rates, Strategy};
use policy::replica::Rule;
use policy::Promise;
use sim::{
    run, AheadKnown, Arrivals, Cluster, Control, CostKnown, Friction, KeyCount, Noise, Redundancy,
    Requests, Resources, Routing, Scheduler, Selection, Service, Spec, Stream, Tenant, Tuning,
};
use workload::draw::{Popularity, Sizes};

fn spec(order: Order, rule: Rule) -> Option<Spec> {
    let keys = KeyCount::new([(1, 0.6), (20, 0.4)])?;
    let (nodes, permits, operation_ns) = (128, 8, 2e6);
    let per_s = 0.75 * f64::from(nodes * permits) * 1e9 / operation_ns / keys.mean();
    Some(Spec {
        seed: 1,
        duration_ns: 3_000_000_000,
        warm_up_ns: 0,
        drain_ns: 0,
        cluster: Cluster {
            nodes,
            replicas: 3,
            permits,
            processors: permits,
            routers: 128,
            resources: Resources::default(),
            device: None,
            control: Control::default(),
            friction: Friction::default(),
            one_way_ns: 50_000,
            reply_ns: 0,
            look_ns: 0,
            service: Service {
                operation_ns,
                byte_ns: 0.0,
                noise: Noise::Exponential,
            },
        },
        scheduler: Scheduler {
            discipline: Discipline::Fair,
            order,
            strategy: Strategy::Rein,
            levels: Levels::exponential(4, 3.0, 1, Rates::Linear),
            guard_ns: None,
            cost: CostKnown::Operations,
            ahead: AheadKnown::Nothing,
            tuning: Tuning::None,
        },
        routing: Routing {
            selection: Selection::Rule(rule),
            redundancy: Redundancy::None,
            probe_from: None,
        },
        tenants: vec![Tenant {
            name: "all".into(),
            group: "all".into(),
            promise: Promise::share(1.0),
            objective: None,
            partitions: 128,
            streams: vec![Stream {
                arrivals: Arrivals::Poisson { per_s },
                from_ns: 0,
                until_ns: u64::MAX,
                quota: None,
                requests: Requests {
                    puts: 0.0,
                    range: false,
                    keys,
                    popularity: Popularity::Uniform(100_000),
                    values: Sizes::Constant(100),
                },
            }],
        }],
        faults: Vec::new(),
        pauses: Vec::new(),
        keeper: None,
    })
}

/// Time this thread has had on a processor: other work on the machine must not count.
fn on_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse().ok());
    first.unwrap_or(0)
}

fn main() {
    for order in [Order::Arrival, Order::Levels, Order::Exact] {
        for rule in [Rule::RoundRobin, Rule::LeastFinish] {
            let Some(spec) = spec(order, rule) else {
                continue;
            };
            let began_ns = on_cpu_ns();
            let events = run(&spec).events as f64;
            let rate = events * 1e3 / (on_cpu_ns() - began_ns) as f64;
            println!("{order:<8?} {rule:<12?} {events:>10} events, {rate:.2} M events/s");
        }
    }
}
