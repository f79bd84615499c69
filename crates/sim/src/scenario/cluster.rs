//! `[cluster]` and `[[fault]]`.

use crate::spec::{
    AheadKnown, Cluster, CostKnown, Fault, FaultKind, Noise, Redundancy, Routing, Scheduler,
    Selection, Service,
};
use policy::dispatch::Discipline;
use policy::multiget::{Levels, Order, Rates, Strategy};
use policy::replica::Rule;
use settings::units::Time;
use settings::Section;

/// What the two tables say.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) cluster: Cluster,
    pub(super) scheduler: Scheduler,
    pub(super) routing: Routing,
    pub(super) partitions: u32,
    pub(super) faults: Vec<Fault>,
}

pub(super) fn read(root: &Section) -> Read {
    let section = root.table("cluster");
    let nodes: u32 = section.get_or_default("nodes");
    let replicas: u32 = section.get_or_default("replicas");
    if replicas > nodes {
        let advice = "have at most as many replicas as nodes";
        section.error("replicas", &format!("is more than {nodes} nodes"), advice);
    }
    let time = |name: &str| section.get_or_default::<Time>(name).ns();
    let sigma = section.get_or_default("sigma");
    let noises = [
        ("none", Noise::None),
        ("exponential", Noise::Exponential),
        ("log-normal", Noise::LogNormal(sigma)),
    ];
    let cluster = Cluster {
        nodes,
        replicas: replicas.min(nodes),
        permits: section.get_or_default("permits"),
        routers: section.get("senders").unwrap_or(nodes),
        one_way_ns: time("one_way"),
        service: Service {
            operation_ns: time("operation") as f64,
            byte_ns: time("kib") as f64 / 1024.0,
            noise: section.word("noise", &noises).unwrap_or(Noise::None),
        },
    };
    Read {
        scheduler: scheduler(&section, &cluster),
        routing: routing(&section, &cluster),
        partitions: section.get("partitions").unwrap_or(nodes),
        faults: faults(root, nodes),
        cluster,
    }
}

fn scheduler(section: &Section, cluster: &Cluster) -> Scheduler {
    let disciplines = [
        ("fair", Discipline::Fair),
        ("lottery", Discipline::Lottery),
        ("fifo", Discipline::Fifo),
    ];
    // Four times the bottleneck suits sizes that vary; see policy::multiget::Tuner::stretch_quarters.
    let stretched = Strategy::Deadline {
        stretch_quarters: 16,
        slack_quarters: 2,
    };
    let orders = [
        ("stretched", (stretched, Order::Exact)),
        ("rein", (Strategy::Rein, Order::Levels)),
        ("rein-sbf", (Strategy::ShortestBottleneck, Order::Exact)),
        ("rein-sds", (Strategy::SlackDriven, Order::Exact)),
        ("arrival", (Strategy::Agnostic, Order::Arrival)),
    ];
    let (strategy, order) = section.word("order", &orders).unwrap_or(orders[0].1);
    let first = cluster.service.operation_ns as u64;
    Scheduler {
        discipline: section
            .word("scheduler", &disciplines)
            .unwrap_or(Discipline::Fair),
        order,
        strategy,
        levels: Levels::exponential(8, 1.5, first, Rates::Geometric(4)),
        guard_ns: section.get::<Time>("guard").map(Time::ns),
        cost: CostKnown::Expected,
        ahead: AheadKnown::Nothing,
    }
}

fn routing(section: &Section, cluster: &Cluster) -> Routing {
    let senders = cluster.routers;
    let rules = [
        ("least-finish", Rule::LeastFinish),
        ("least-outstanding", Rule::LeastOutstanding),
        ("hot-cold", Rule::HotCold),
        ("c3", Rule::C3 { senders }),
        ("in-turn", Rule::RoundRobin),
        ("random", Rule::Random),
    ];
    let again = [
        ("never", Redundancy::None),
        ("at-once", Redundancy::Duplicate),
        ("late", Redundancy::Speculative { quantile: 0.9 }),
    ];
    let redundancy = section.word("again", &again).unwrap_or(Redundancy::None);
    if redundancy != Redundancy::None && cluster.replicas < 2 {
        let advice = "set cluster.replicas to 2 or more, or leave `again` out";
        section.error("again", "has no second replica to send to", advice);
    }
    let probe: bool = section.get_or_default("probe");
    Routing {
        selection: Selection::Rule(section.word("replica", &rules).unwrap_or(Rule::LeastFinish)),
        redundancy,
        probe_from: probe.then(|| cluster.worth_probing_ns()),
    }
}

fn faults(root: &Section, nodes: u32) -> Vec<Fault> {
    let title = |_: &Section, place: usize| format!("fault number {}", place + 1);
    let one = |section: Section| {
        let node: u32 = section.get("node")?;
        if node >= nodes {
            let advice = "nodes are counted from 0";
            section.error("node", &format!("is not among {nodes} nodes"), advice);
        }
        let from_ns = section.get::<Time>("at")?.ns();
        Some(Fault {
            node: node.min(nodes - 1),
            from_ns,
            until_ns: from_ns + section.get::<Time>("length")?.ns(),
            kind: section
                .get("slow")
                .map_or(FaultKind::Pause, FaultKind::Slow),
        })
    };
    root.tables("fault", title)
        .into_iter()
        .filter_map(one)
        .collect()
}
