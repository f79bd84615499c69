//! Promises beside scans on four hard disks (Cake, section 4): who keeps them, and what scans get.

use policy::device::{HddParameters, Model};
use policy::dispatch::Discipline;
use policy::multiget::{Levels, Order, Rates, Strategy};
use policy::replica::Rule;
use policy::slo::control::{Controller, Policy};
use policy::slo::{Latency, Objective, Outcome};
use policy::Promise;
use sim::{
    run, AheadKnown, Arrivals, Cluster, Control, CostKnown, Disk, Friction, Keeper, KeyCount,
    Noise, Redundancy, Requests, Resources, Routing, Scheduler, Selection, Service, Spec, Stream,
    Tenant, Tuning,
};
use workload::draw::{Popularity, Sizes};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn tenant(name: &str, objective: Option<Objective>, arrivals: Arrivals, bytes: u32) -> Tenant {
    Tenant {
        name: name.into(),
        group: name.into(),
        promise: Promise::share(1.0),
        objective,
        partitions: 1,
        streams: vec![Stream {
            arrivals,
            from_ns: 0,
            until_ns: u64::MAX,
            quota: None,
            requests: Requests {
                keys: KeyCount::new([(1, 1.0)]).expect("a weight above zero"),
                puts: 0.0,
                range: false,
                popularity: Popularity::Uniform(1 << 20),
                values: Sizes::Constant(bytes),
            },
        }],
    }
}

/// One node with four disks, and 5 GB of data on each.
fn cluster() -> Cluster {
    Cluster {
        friction: Friction::default(),
        nodes: 1,
        replicas: 1,
        permits: 256,
        processors: 8,
        routers: 1,
        one_way_ns: 50_000,
        reply_ns: 0,
        look_ns: 0,
        service: Service {
            operation_ns: 50_000.0,
            byte_ns: 0.0,
            noise: Noise::None,
        },
        resources: Resources::default(),
        device: Some(Disk {
            model: Model::Hdd(HddParameters::default()),
            depth: 32,
            handlers: Some(128),
            cached: 0.0,
            cached_bytes_max: u64::MAX,
            largest_bytes: 256 << 10,
            disks: 4,
            follows: false,
            discipline: Discipline::Fair,
            span_bytes: 5_000_000_000,
            chunk_bytes: Some(4 << 20),
            file_bytes: None,
            other_files: 0,
            range_reads: 0,
            wake_ns: 0,
            piece_ns: 0,
        }),
        control: Control::default(),
    }
}

/// A hundred gets of 8 KiB a second, 99 % of them promised within 150 ms, beside 64 scanners that
/// read 4 MiB at a time: 5 GB of data on each of four disks.
fn spec(policy: Policy) -> Spec {
    let objective = Objective {
        latency: Some(Latency {
            percentile: 99.0,
            at_most_ns: 150 * MS,
        }),
        throughput_per_s: None,
        contract_per_s: None,
        importance: 80,
        window_ns: 10 * S,
    };
    let gets = Arrivals::Poisson { per_s: 100.0 };
    let scans = Arrivals::Closed { clients: 64 };
    Spec {
        seed: 1,
        duration_ns: 80 * S,
        warm_up_ns: 20 * S,
        drain_ns: 20 * S,
        cluster: cluster(),
        scheduler: Scheduler {
            tuning: Tuning::None,
            discipline: Discipline::Fair,
            order: Order::Arrival,
            strategy: Strategy::Agnostic,
            levels: Levels::exponential(8, 1.5, 1, Rates::Geometric(4)),
            guard_ns: None,
            cost: CostKnown::Expected,
            ahead: AheadKnown::Nothing,
        },
        routing: Routing {
            selection: Selection::Rule(Rule::LeastFinish),
            redundancy: Redundancy::None,
            probe_from: None,
        },
        tenants: vec![
            tenant("front", Some(objective), gets, 8 << 10),
            tenant("batch", None, scans, 4 << 20),
        ],
        faults: Vec::new(),
        pauses: Vec::new(),
        keeper: Some(Keeper {
            controller: Controller::new(policy),
            interval_ns: S,
        }),
    }
}

/// Windows, those of them in which the promise was kept, and scans a second.
fn played(policy: Policy) -> (usize, usize, f64) {
    let spec = spec(policy);
    let out = run(&spec);
    let objective = spec.tenants[0].objective.expect("a promise");
    let windows = &out.tenants[0].windows;
    let met = windows
        .iter()
        .filter(|window| objective.judge(&window.counts) == Outcome::Met);
    let scans_per_s = out.tenants[1].answered as f64 * 1e9 / out.measured_ns as f64;
    (windows.len(), met.count(), scans_per_s)
}

#[test]
fn auto_keeps_a_promise_that_is_not_kept_without_it_and_scans_go_on() {
    let (windows, met, scans_per_s) = played(Policy::Auto);
    assert!(windows >= 5, "{windows} windows");
    assert_eq!(met, windows, "kept in every window");
    // Alone they get 108 a second.
    assert!(scans_per_s > 75.0, "{scans_per_s}");
    let (windows, met, _) = played(Policy::Static);
    assert!(met < windows, "a promise that needs keeping");
}

#[test]
fn a_run_is_the_same_every_time() {
    let once = played(Policy::Auto);
    assert_eq!(once, played(Policy::Auto));
}

#[test]
fn shares_are_told_as_a_controller_sets_them_or_as_they_were_taken() {
    let shares = |policy| {
        let tenants = run(&spec(policy)).tenants;
        [0, 1].map(|tenant: usize| tenants[tenant].shares.clone())
    };
    let [front, batch] = shares(Policy::Cake);
    // One a second. Cake begins with half, which is more than enough, and takes a tenth of it away
    // twice in the 20 s before.
    assert_eq!((front.len(), batch.len()), (60, 60));
    assert!(front
        .iter()
        .zip(&batch)
        .all(|(a, b)| (a + b - 1.0).abs() < 1e-9));
    assert!((front[0] - 0.5 * 0.9 * 0.9).abs() < 1e-9, "{}", front[0]);
    // It sets none, and gets are little of what the disks do.
    let [front, batch] = shares(Policy::Auto);
    assert!(front
        .iter()
        .zip(&batch)
        .all(|(a, b)| (a + b - 1.0).abs() < 1e-9));
    let mean = front.iter().sum::<f64>() / front.len() as f64;
    assert!((0.005..0.2).contains(&mean), "{mean}");
}

/// Scans a second of 2 MiB each, by ranges, and the disks that they were read from.
fn scans_per_s(change: impl Fn(&mut Disk)) -> f64 {
    let mut spec = spec(Policy::Static);
    spec.duration_ns = 40 * S;
    let requests = &mut spec.tenants[1].streams[0].requests;
    requests.range = true;
    requests.keys = KeyCount::new([(256, 1.0)]).expect("a weight above zero");
    requests.popularity = Popularity::Uniform(80_000);
    requests.values = Sizes::Constant(8 << 10);
    spec.cluster.device.as_mut().map(change);
    let out = run(&spec);
    out.tenants[1].answered as f64 * 1e9 / out.measured_ns as f64
}

#[test]
fn what_a_scan_does_besides_its_pieces_makes_it_slower() {
    let slower: [fn(&mut Disk); 5] = [
        |_| (),
        |disk| disk.wake_ns = 5 * MS,
        |disk| disk.piece_ns = 5 * MS,
        |disk| disk.other_files = 8,
        |disk| disk.range_reads = 4,
    ];
    let [at_once, slower @ ..] = slower.map(|change| {
        scans_per_s(|disk| {
            (disk.depth, disk.handlers) = (1, Some(1));
            change(disk);
        })
    });
    // Eight pieces each; what the drive has read ahead meanwhile it need not read again.
    for slower in slower {
        assert!(1.2 * slower < at_once, "{at_once}: {slower}");
    }
}

#[test]
fn files_lie_whole_on_one_disk_each() {
    // One file for all, on one disk; or as many as there are disks.
    let [one, many] =
        [1 << 40, 16 << 20].map(|bytes| scans_per_s(|disk| disk.file_bytes = Some(bytes)));
    assert!(2.0 * one < many, "{one} {many}");
}
