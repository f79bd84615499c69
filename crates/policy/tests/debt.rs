//! A writer that was promised puts, whose compactions are put off as long as they may be.

use policy::cost::device::{Calibration, CostModel, Curve, Op, Point, Rule, Vop};
use policy::profile::{Done, Interval, Request};
use policy::provision::{Pricing, Provisioner};
use proptest::prelude::*;

/// Files of level 0 with which a compaction begins, and with which RocksDB delays writers.
const DUE: f64 = 8.0;
const BRINK: f64 = 24.0;
/// What a memtable holds, normalised puts.
const FILE: f64 = 4096.0;
/// VOPs that a file costs to read or to write.
const EACH: f64 = 1000.0;
/// What the tenant has already, in files: a compaction reads it and writes it anew.
const DATA: f64 = 8.0;

fn costs() -> CostModel {
    let curve = |op, small: f64, large: f64| {
        let point = |bytes, per_s| Point { bytes, per_s };
        Curve::new(op, vec![point(1 << 10, small), point(256 << 10, large)]).expect("rates")
    };
    let (read, write) = (curve(Op::Read, 36e3, 562.5), curve(Op::Write, 36e3, 562.5));
    let calibration = Calibration::new(read, write, 20e3, 20e3).expect("rates");
    CostModel::new(Rule::Exact, &calibration)
}

/// A database whose flushes and compactions have so many VOPs a second, the former first.
#[derive(Default)]
struct Database {
    files: f64,
    /// VOPs of compaction that is under way, and how many files that takes.
    compacting: Option<(f64, f64)>,
}

impl Database {
    /// A second in which a file is written; what flushes and compactions did.
    fn second(&mut self, per_s: f64) -> [f64; 2] {
        self.files += 1.0;
        if self.compacting.is_none() && self.files >= DUE {
            self.compacting = Some((EACH * (self.files + 2.0 * DATA), self.files));
        }
        let mut done = [EACH, 0.0];
        if let Some((left, taken)) = &mut self.compacting {
            done[1] = (per_s - EACH).clamp(0.0, *left);
            *left -= done[1];
            if *left == 0.0 {
                self.files -= *taken;
                self.compacting = None;
            }
        }
        done
    }
}

/// The highest pressure in twenty minutes of a promised writer that has so many VOPs a second
/// besides, on a device that does so many.
fn worst(besides_per_s: f64, available_per_s: f64) -> f64 {
    let mut provisioner = Provisioner::new(costs(), Pricing::Profiles);
    let mut reservation = [0.0; 2];
    reservation[Request::Put as usize] = FILE;
    provisioner.reserve(0, reservation);
    let mut database = Database::default();
    let (mut worst, mut has_per_s) = (0.0f64, EACH + besides_per_s);
    for _ in 0..1200 {
        let [flushed, compacted] = database.second(has_per_s);
        let pressure = database.files / BRINK;
        worst = worst.max(pressure);
        let mut interval = Interval::default();
        interval.done[Request::Put as usize] = Done {
            requests: 32,
            bytes: FILE as u64 * 1024,
            direct: Vop::new(0.3 * FILE),
            written_bytes: FILE as u64 * 1024,
        };
        interval.written_bytes = FILE as u64 * 1024;
        interval.internal = [Vop::new(flushed), Vop::new(compacted)];
        provisioner.observe(0, &interval);
        provisioner.presses(0, pressure);
        let got = provisioner.provision(available_per_s).tenants[&0];
        has_per_s = got.allocated.background + besides_per_s;
    }
    worst
}

#[test]
fn a_promised_writer_never_reaches_the_brink() {
    for besides_per_s in [0.0, 100.0, 300.0, 1000.0] {
        let worst = worst(besides_per_s, 20e3);
        assert!(worst < 0.95, "{besides_per_s} VOP/s besides: {worst}");
    }
}

proptest! {
    #[test]
    fn a_debt_takes_nothing_from_what_others_reserved(
        pressures in proptest::collection::vec(0.0f64..2.0, 2..6),
        puts in 1.0f64..3000.0,
        available in 1e3f64..40e3,
    ) {
        let mut calm = Provisioner::new(costs(), Pricing::Profiles);
        for tenant in 0..pressures.len() as u32 {
            calm.reserve(tenant, [0.0, puts]);
        }
        let mut pressed = calm.clone();
        for (tenant, pressure) in pressures.iter().enumerate() {
            pressed.presses(tenant as u32, *pressure);
        }
        let (calm, pressed) = (calm.provision(available), pressed.provision(available));
        let all: f64 = pressed.tenants.values().map(|one| one.allocated.total()).sum();
        let before: f64 = calm.tenants.values().map(|one| one.allocated.total()).sum();
        prop_assert!(all <= available.max(before) * (1.0 + 1e-9), "{all} of {available}");
        for (tenant, was) in &calm.tenants {
            let now = pressed.tenants[tenant];
            prop_assert_eq!(now.allocated.foreground, was.allocated.foreground);
            prop_assert!(now.allocated.background >= was.allocated.background);
            prop_assert_eq!(now.wanted, was.wanted);
        }
        prop_assert_eq!(pressed.overbooked_per_s, calm.overbooked_per_s);
    }
}
