//! What may be promised in all, of the device by the mix of what is reserved, and of processors.

#[path = "common/sweep.rs"]
mod common;

use common::{flow, mix, rates, seen, sweep, FLOOR, MAX};
use policy::cost::device::{Calibration, CostModel, Curve, Mix, Op, Point, Rule, Sweep, Vop};
use policy::profile::{Done, Interval};
use policy::provision::{Pricing, Provisioner};
use policy::supply::{Demand, Short, Supply};
use proptest::prelude::*;

proptest! {
    /// Whatever is promised, as much of the same fits and a little more does not.
    #[test]
    fn what_is_promisable_fits_and_no_more(
        rates in rates(), gets in 0.01..1.0f64, put_reads in 0.0..1.0f64,
        sizes in prop::array::uniform2(4.0..64.0f64), busy in 0.01..2.0f64,
    ) {
        let (sweep, _) = sweep(&rates);
        let supply = Supply { sweep, processors: 1.0 };
        let demand = Demand {
            device: [mix(1.0, sizes[0], 4.0).scaled(gets), mix(put_reads, sizes[0], sizes[1])],
            processors: busy,
        };
        let promisable = supply.promisable_per_s(&demand);
        let times = |by: f64| Demand {
            device: demand.device.map(|mix| mix.scaled(by)),
            processors: demand.processors * by,
        };
        let by = promisable / demand.vops_per_s();
        prop_assert_eq!(supply.short(&times(by * (1.0 - 1e-6))), None);
        prop_assert!(supply.short(&times(by * (1.0 + 1e-6))).is_some());
    }
}

#[test]
fn each_kind_of_request_has_to_fit_alone() {
    // Gets beside puts are fine; puts alone are where the valley is.
    let loads = vec![seen(0.2, 4, 4, FLOOR), seen(0.4, 4, 4, 38e3)];
    let supply = Supply {
        sweep: Sweep::new(MAX, FLOOR, 1.0, loads),
        processors: 1.0,
    };
    let gets = mix(1.0, 4.0, 4.0).scaled(10.0);
    let puts = mix(0.2, 4.0, 4.0);
    let demand = |puts: Mix| Demand {
        device: [gets, puts],
        processors: 0.0,
    };
    assert_eq!(supply.short(&demand(puts.scaled(17.0))), None);
    let short = supply.short(&demand(puts.scaled(20.0)));
    let Some(Short::Device {
        needed_per_s,
        promisable_per_s,
    }) = short
    else {
        panic!("{short:?}");
    };
    assert!((needed_per_s - 20e3).abs() < 1.0 && promisable_per_s == FLOOR);
}

#[test]
fn processors_may_be_short_first() {
    let (sweep, _) = sweep(&[30e3; 27]);
    let supply = Supply {
        sweep,
        processors: 2.0,
    };
    let demand = |processors| Demand {
        device: [mix(1.0, 4.0, 4.0), Mix::default()],
        processors,
    };
    assert_eq!(supply.short(&demand(1.8)), None);
    let short = supply.short(&demand(1.9));
    assert_eq!(
        short,
        Some(Short::Processors {
            needed: 1.9,
            promisable: 1.8
        })
    );
    // 1,000 VOPs for each tenth of a processor.
    let promisable = supply.promisable_per_s(&demand(0.1));
    assert!((promisable - 18e3).abs() < 1.0, "{promisable}");
}

fn costs() -> CostModel {
    let curve = |op| {
        let point = |bytes, per_s| Point { bytes, per_s };
        Curve::new(op, vec![point(4 << 10, MAX), point(64 << 10, MAX / 8.0)]).expect("rates")
    };
    let calibration = Calibration::new(curve(Op::Read), curve(Op::Write), 1e4, 1e4);
    CostModel::new(Rule::Exact, &calibration.expect("rates"))
}

/// A second of puts of 4 KiB: a VOP of log each, and half a VOP of compaction, half of it reads.
fn puts(requests: u64, processor_ns: u64, internal_processor_ns: u64) -> Interval {
    let vops = requests as f64;
    let put = Done {
        requests,
        bytes: requests * (4096 + 64),
        direct: Vop::new(vops),
        written_bytes: requests * 4096,
    };
    let compaction = Mix {
        reads: flow(vops / 4.0, 64.0),
        writes: flow(vops / 4.0, 64.0),
        ..Mix::default()
    };
    Interval {
        done: [Done::default(), put],
        written_bytes: put.written_bytes,
        internal: [Vop::ZERO, Vop::new(vops / 2.0)],
        direct_mix: [Mix::default(), mix(0.0, 4.0, 4.0).scaled(vops / 1000.0)],
        internal_mix: [Mix::default(), compaction],
        processor_ns: [0, processor_ns],
        internal_processor_ns,
    }
}

#[test]
fn a_reservation_has_the_mix_that_its_requests_were_seen_to_have() {
    let mut provisioner = Provisioner::new(costs(), Pricing::Profiles);
    provisioner.reserve(0, [0.0, 4000.0]);
    let before = provisioner.would_take(None, [0.0; 2]);
    assert!(
        before.device[1].unknown > 0.0,
        "what puts become is not known"
    );
    for _ in 0..10 {
        provisioner.observe(0, &puts(1000, 0, 0));
    }
    let take = provisioner.would_take(None, [0.0; 2]).device[1];
    // 4,000 normalised puts are 1,000.
    let near =
        |value: f64, wanted: f64| assert!((value - wanted).abs() < 0.01 * wanted, "{take:?}");
    near(take.vops(), 1500.0);
    near(take.reads.vops, 250.0);
    near(take.reads.bytes / take.reads.ios, 65_536.0);
    assert_eq!(take.unknown, 0.0);
    // What a second has is what is reserved, too.
    assert!((provisioner.present().vops_per_s() - 1500.0).abs() < 50.0);
    // Another tenant's puts are not known by these; its gets are taken to be reads of a block.
    let other = provisioner.would_take(None, [1000.0, 0.0]);
    assert_eq!(
        other.device[0].reads.bytes / other.device[0].reads.ios,
        4096.0
    );
    assert_eq!(other.device[0].unknown, 0.0);
    assert!(provisioner.would_take(None, [0.0, 1.0]).device[1].unknown > 0.0);
}

#[test]
fn processor_time_is_of_requests_and_of_what_they_cause() {
    let mut provisioner = Provisioner::new(costs(), Pricing::Profiles);
    let processors = |provisioner: &Provisioner| {
        let demand = provisioner.would_take(Some(0), [0.0, 8000.0]);
        demand.processors
    };
    provisioner.reserve(0, [0.0, 4000.0]);
    assert_eq!(processors(&provisioner), 0.0, "nobody knows");
    for _ in 0..10 {
        provisioner.observe(0, &puts(1000, 200_000_000, 100_000_000));
    }
    // Three tenths of a second for 4,000.
    let near = |value: f64, wanted: f64| (value - wanted).abs() < 0.01 * wanted;
    assert!(near(processors(&provisioner), 0.6));
    // Of four tenths that the process used, three were charged.
    provisioner.used_processors(1_000_000_000, 400_000_000, 300_000_000);
    assert!(near(processors(&provisioner), 0.8));
    // An idle process says nothing.
    provisioner.used_processors(1_000_000_000, 90_000_000, 10_000_000);
    assert!(near(processors(&provisioner), 0.8));
}

#[test]
fn a_demand_is_within_another_if_no_part_of_it_is_more() {
    let demand = |gets: f64, puts: f64, processors| Demand {
        device: [gets, puts].map(|vops| mix(0.5, 4.0, 4.0).scaled(vops)),
        processors,
    };
    assert!(demand(1.0, 1.0, 0.5).within(&demand(1.0, 2.0, 0.5)));
    assert!(!demand(2.0, 1.0, 0.5).within(&demand(1.0, 3.0, 0.5)));
    assert!(!demand(1.0, 1.0, 0.6).within(&demand(2.0, 2.0, 0.5)));
}
