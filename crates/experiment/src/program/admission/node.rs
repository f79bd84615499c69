//! The simulated node of a mix, and who asks it.

use policy::dispatch::Discipline;
use policy::multiget::{Levels, Order, Rates, Strategy};
use policy::slo::Objective;
use policy::{Nanos, Promise};
use sim::{
    AheadKnown, Arrivals, Cluster, Control, CostKnown, Disk, Friction, KeyCount, Noise, Requests,
    Resources, Scheduler, Service, Stream, Tenant, Tuning,
};
use workload::draw::{Popularity, Sizes};

use super::{Place, DEPTH, DRIVES, HANDLERS};

pub(super) fn tenant(
    name: &str,
    objective: Option<Objective>,
    arrivals: Arrivals,
    bytes: u32,
) -> Tenant {
    Tenant {
        name: name.into(),
        group: name.into(),
        promise: Promise::share(1.0),
        objective,
        partitions: 1,
        streams: vec![Stream {
            arrivals,
            from_ns: 0,
            until_ns: Nanos::MAX,
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

/// One node over the drives.
pub(super) fn node(place: &Place) -> Cluster {
    Cluster {
        friction: Friction::default(),
        nodes: 1,
        replicas: 1,
        permits: 4_096,
        processors: 8,
        routers: 1,
        one_way_ns: 0,
        reply_ns: 0,
        look_ns: 0,
        service: Service {
            operation_ns: 20_000.0,
            byte_ns: 0.0,
            noise: Noise::None,
        },
        resources: Resources::default(),
        device: Some(Disk {
            model: place.model.clone(),
            depth: DEPTH,
            follows: false,
            handlers: Some(HANDLERS),
            cached: 0.0,
            cached_bytes_max: u64::MAX,
            largest_bytes: 256 << 10,
            disks: DRIVES,
            discipline: Discipline::Fair,
            span_bytes: place.span_bytes,
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

/// Tenants by share, and what one of them sends in the order in which it comes.
pub(super) fn in_turn() -> Scheduler {
    Scheduler {
        tuning: Tuning::None,
        discipline: Discipline::Fair,
        order: Order::Arrival,
        strategy: Strategy::Agnostic,
        levels: Levels::exponential(8, 1.5, 1, Rates::Geometric(4)),
        guard_ns: None,
        cost: CostKnown::Expected,
        ahead: AheadKnown::Nothing,
    }
}
