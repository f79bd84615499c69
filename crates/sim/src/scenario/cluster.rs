//! `[cluster]`, `[[fault]]` and `[[pause]]`.

use crate::friction::{Copying, Friction};
use crate::spec::{
    AheadKnown, Cluster, Control, CostKnown, Disk, Fault, FaultKind, Machines, Noise, Pause,
    Redundancy, Resources, Routing, Scheduler, Selection, Service, Tuning, Weighs,
};
use policy::device::{HddParameters, Model, SsdParameters};
use policy::dispatch::Discipline;
use policy::multiget::{Levels, Order, Rates, Strategy};
use policy::replica::Rule;
use policy::slo::control::{CakeOptions, Policy};
use settings::units::{ByteRate, Bytes, Rate, Time};
use settings::Section;

/// What the tables say.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) cluster: Cluster,
    pub(super) scheduler: Scheduler,
    pub(super) routing: Routing,
    pub(super) partitions: u32,
    /// And whether their times are counted from the end of the warm-up.
    pub(super) faults: Vec<(Fault, bool)>,
    pub(super) pauses: Vec<Pause>,
    pub(super) keeper: Option<Policy>,
    pub(super) cake: CakeOptions,
}

pub(super) fn read(root: &Section) -> Read {
    let section = root.table("cluster");
    let nodes: u32 = section.get_or_default("nodes");
    let replicas: u32 = section.get_or_default("replicas");
    if replicas > nodes {
        let advice = "have at most as many replicas as nodes";
        section.error("replicas", &format!("is more than {nodes} nodes"), advice);
    }
    if section.gives("control") && nodes > 1 {
        let advice = "leave `nodes` out, or `control`";
        section.error("control", "knows the tenants of one node", advice);
    }
    let time = |name: &str| section.get_or_default::<Time>(name).ns();
    let sigma = section.get_or_default("sigma");
    let noises = [
        ("none", Noise::None),
        ("exponential", Noise::Exponential),
        ("log-normal", Noise::LogNormal(sigma)),
    ];
    let permits = section.get_or_default("permits");
    let cluster = Cluster {
        nodes,
        replicas: replicas.min(nodes),
        permits,
        processors: section.get("processors").unwrap_or(permits),
        routers: section.get("senders").unwrap_or(nodes),
        one_way_ns: time("one_way"),
        reply_ns: time("reply"),
        look_ns: time("look"),
        service: Service {
            operation_ns: time("operation") as f64,
            byte_ns: time("kib") as f64 / 1024.0,
            noise: section.word("noise", &noises).unwrap_or(Noise::None),
        },
        resources: Resources {
            bytes_in_per_s: section.get::<ByteRate>("bandwidth_in").map(ByteRate::per_s),
            requests_per_s: section.get::<Rate>("requests").map(Rate::per_s),
            bytes_out_per_s: section
                .get::<ByteRate>("bandwidth_out")
                .map(ByteRate::per_s),
        },
        control: control(&section),
        friction: friction(&section),
        device: device(&section),
    };
    Read {
        scheduler: scheduler(&section, &cluster),
        routing: routing(&section, &cluster),
        partitions: section.get("partitions").unwrap_or(nodes),
        faults: faults(root, &cluster),
        pauses: pauses(root, &cluster),
        keeper: section.get("control"),
        cake: cake(&section, &cluster),
        cluster,
    }
}

fn scheduler(section: &Section, cluster: &Cluster) -> Scheduler {
    // Four times the bottleneck suits sizes that vary, whatever their tail; see
    // policy::multiget::Tuner::deadline.
    let stretched = Strategy::Deadline {
        stretch_quarters: 16,
        slack_quarters: 2,
        tail: u64::MAX,
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
        discipline: section.get_or_default("scheduler"),
        order,
        strategy,
        levels: Levels::exponential(8, 1.5, first, Rates::Geometric(4)),
        guard_ns: section.get::<Time>("guard").map(Time::ns),
        cost: CostKnown::Expected,
        ahead: AheadKnown::Nothing,
        tuning: Tuning::None,
    }
}

/// Keys that mean nothing without a device.
const OF_DEVICES: [&str; 15] = [
    "cached",
    "cached_up_to",
    "depth",
    "device_scheduler",
    "follow_depth",
    "handlers",
    "disks",
    "span",
    "chunk",
    "file",
    "other_files",
    "range_reads",
    "wake",
    "piece",
    "control",
];
/// Values are at most as large as what is calibrated of a device.
const LARGEST_BYTES: u64 = 256 << 10;

fn device(section: &Section) -> Option<Disk> {
    let models = [
        ("none", None),
        ("ssd", Some(Model::Ssd(SsdParameters::default()))),
        ("hdd", Some(Model::Hdd(HddParameters::default()))),
    ];
    let word: String = section.get_or_default("device");
    let found = models.into_iter().find(|(name, _)| *name == word);
    let model = found.and_then(|(_, model)| model);
    let (cached, depth) = (section.get("cached"), section.get("depth"));
    let (follows, handlers) = (
        section.get_or_default("follow_depth"),
        section.get("handlers"),
    );
    let discipline = section.get_or_default("device_scheduler");
    let bytes = |name: &str| section.get::<Bytes>(name).map(Bytes::get);
    let (disks, span, chunk) = (section.get("disks"), bytes("span"), bytes("chunk"));
    let other_files = section.get_or_default("other_files");
    let range_reads = section.get_or_default("range_reads");
    let time = |name: &str| section.get_or_default::<Time>(name).ns();
    let (file_bytes, wake_ns, piece_ns) = (bytes("file"), time("wake"), time("piece"));
    let cached_up_to = bytes("cached_up_to");
    if model.is_none() {
        for key in OF_DEVICES {
            if section.gives(key) {
                let advice = "set cluster.device to \"ssd\" or \"hdd\", or leave it out";
                section.error(key, "is of a device, and nodes have none", advice);
            }
        }
    }
    Some(Disk {
        model: model?,
        depth: depth.unwrap_or(32),
        follows,
        handlers,
        cached: cached.unwrap_or(0.0),
        cached_bytes_max: cached_up_to.unwrap_or(u64::MAX),
        largest_bytes: LARGEST_BYTES,
        disks: disks.unwrap_or(1),
        discipline,
        span_bytes: span.unwrap_or(crate::prices::SPAN_BYTES),
        chunk_bytes: chunk,
        file_bytes,
        other_files,
        range_reads,
        wake_ns,
        piece_ns,
    })
}

/// Cake as it ships, but for what is said.
fn cake(section: &Section, cluster: &Cluster) -> CakeOptions {
    let usual = CakeOptions::default();
    let (permits, handled) = (section.get("cake_permits"), section.get("cake_handled"));
    let keeper: Option<Policy> = section.get("control");
    for key in ["cake_permits", "cake_handled"] {
        if section.gives(key) && keeper != Some(Policy::Cake) {
            let advice = "set cluster.control to \"cake\", or leave it out";
            section.error(key, "is of the controller \"cake\"", advice);
        }
    }
    let device = cluster.device.as_ref();
    let at_a_disk = device.map_or(usual.drive_permits, |device| match device.model {
        Model::Hdd(_) => usual.drive_permits,
        Model::Ssd(_) => device.depth,
    });
    CakeOptions {
        drives: device.map_or(1, |device| device.disks),
        drive_permits: permits.unwrap_or(at_a_disk),
        handled_ns: handled.map_or(usual.handled_ns, |low: Time| [low.ns(), low.ns() * 4 / 3]),
        ..usual
    }
}

fn control(section: &Section) -> Control {
    let placements = [("ring", false), ("demand", true)];
    let weights = [
        ("fixed", Weighs::Fixed),
        ("exchange", Weighs::Exchanged),
        ("served", Weighs::Served),
    ];
    let control = Control {
        interval_ns: section.get_or_default::<Time>("interval").ns(),
        places: section.word("placement", &placements).unwrap_or(false),
        horizon_ns: section.get::<Time>("horizon").map(Time::ns),
        weighs: section.word("weights", &weights).unwrap_or(Weighs::Fixed),
    };
    if control.weighs != Weighs::Fixed
        && !section
            .get_or_default::<Discipline>("scheduler")
            .keeps_shares()
    {
        let advice = "set cluster.scheduler to \"fair\", or leave `weights` out";
        section.error("weights", "needs a scheduler that follows weights", advice);
    }
    if control.horizon_ns.is_some() && !section.gives("copy") {
        let advice = "set cluster.copy to a rate, or leave it out";
        section.error("horizon", "weighs copies, and moves take no time", advice);
    }
    control
}

fn friction(section: &Section) -> Friction {
    let time = |name: &str| section.get_or_default::<Time>(name).ns();
    let load = section.get("copy_load").unwrap_or(0.0);
    let copy = section.get::<ByteRate>("copy").map(|rate| Copying {
        bytes_per_s: rate.per_s(),
        load,
    });
    if copy.is_none() && section.gives("copy_load") {
        let advice = "set cluster.copy to a rate, or leave it out";
        section.error("copy_load", "is of copies, and moves take no time", advice);
    }
    let late_ns = time("late");
    if 2 * late_ns > section.get_or_default::<Time>("interval").ns() {
        let advice = "have at most half of cluster.interval";
        section.error("late", "decides after the next step began", advice);
    }
    Friction {
        jitter_ns: time("jitter"),
        skew_ns: time("skew"),
        notice_ns: time("notice"),
        probe_ns: time("probe_work"),
        late_ns,
        copy,
    }
}

fn routing(section: &Section, cluster: &Cluster) -> Routing {
    let senders = cluster.routers;
    let rules = [
        ("least-finish", Selection::Rule(Rule::LeastFinish)),
        ("least-outstanding", Selection::Rule(Rule::LeastOutstanding)),
        ("hot-cold", Selection::Rule(Rule::HotCold)),
        ("c3", Selection::Rule(Rule::C3 { senders })),
        ("in-turn", Selection::Rule(Rule::RoundRobin)),
        ("random", Selection::Rule(Rule::Random)),
        ("windows", Selection::Windows),
    ];
    let selection = section.word("replica", &rules).unwrap_or(rules[0].1);
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
    if redundancy != Redundancy::None && selection == Selection::Windows {
        let advice = "leave `again` out, or choose replicas by another rule";
        section.error("again", "cannot be held to windows", advice);
    }
    let probe: bool = section.get_or_default("probe");
    Routing {
        selection,
        redundancy,
        probe_from: probe.then(|| cluster.worth_probing_ns()),
    }
}

fn faults(root: &Section, cluster: &Cluster) -> Vec<(Fault, bool)> {
    let nodes = cluster.nodes;
    let title = |_: &Section, place: usize| format!("fault number {}", place + 1);
    let one = |section: Section| {
        let node: u32 = section.get("node")?;
        if node >= nodes {
            let advice = "nodes are counted from 0";
            section.error("node", &format!("is not among {nodes} nodes"), advice);
        }
        let from_ns = section.get::<Time>("at")?.ns();
        let dead: bool = section.get_or_default("dead");
        let disks: bool = section.get_or_default("disks");
        let slow = section.get("slow").map(match disks {
            true => FaultKind::SlowDisks,
            false => FaultKind::Slow,
        });
        if disks && (slow.is_none() || cluster.device.is_none()) {
            let advice = "give `slow`, and the cluster a `device`, or leave `disks` out";
            section.error("disks", "says which part of a node is slow", advice);
        }
        if dead && slow.is_some() {
            section.error(
                "slow",
                "means nothing at a node that is dead",
                "leave one of them out",
            );
        }
        let fault = Fault {
            node: node.min(nodes - 1),
            from_ns,
            until_ns: from_ns + section.get::<Time>("length")?.ns(),
            kind: match dead {
                true => FaultKind::Dead,
                false => slow.unwrap_or(FaultKind::Pause),
            },
        };
        Some((fault, !section.get_or_default::<bool>("in_warm_up")))
    };
    root.tables("fault", title)
        .into_iter()
        .filter_map(one)
        .collect()
}

fn pauses(root: &Section, cluster: &Cluster) -> Vec<Pause> {
    let title = |_: &Section, place: usize| format!("pause number {}", place + 1);
    let one = |section: Section| {
        let machines = [("nodes", Machines::Nodes), ("senders", Machines::Senders)];
        let of = section.word("of", &machines);
        if of == Some(Machines::Senders) && cluster.reply_ns == 0 {
            let advice = "set cluster.reply to what a sender takes for a reply";
            section.error(
                "of",
                "names senders, which do nothing that takes time",
                advice,
            );
        }
        let time = |name: &str| section.get::<Time>(name).map(Time::ns);
        let (every, length) = (time("every"), time("length"));
        let (of, every, length_ns) = (of?, every?, length?);
        if every <= length_ns {
            let advice = "let machines pause more seldom, or for less long";
            section.error("every", "leaves no time between pauses", advice);
        }
        Some(Pause {
            of,
            every_ns: every as f64,
            length_ns,
        })
    };
    let all = root.tables("pause", title);
    all.into_iter().filter_map(one).collect()
}
