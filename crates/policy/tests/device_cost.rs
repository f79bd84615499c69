//! Prices of I/Os: what every rule must keep, whatever was measured, and the thesis's own example.

use policy::cost::device::{Calibration, CalibrationError, CostModel, Curve, Op, Point, Rule, Vop};
use proptest::prelude::*;

const KIB: u64 = 1024;

fn curve(op: Op, points: &[(u64, f64)]) -> Curve {
    let points = points.iter().map(|(bytes, per_s)| Point {
        bytes: *bytes,
        per_s: *per_s,
    });
    Curve::new(op, points.collect()).expect("a curve")
}

/// Near the Intel 320 of fig. 6.4: "10000 1KB reads, 3000 1KB writes and 160 256KB reads all
/// represent about a quarter of the SSD IO throughput" (6.3.3).
fn intel() -> Calibration {
    let read = [(1, 40e3), (4, 38e3), (16, 11e3), (64, 2.6e3), (256, 640.0)];
    let write = [(1, 12e3), (4, 10e3), (16, 4.2e3), (64, 1.3e3), (256, 330.0)];
    let in_bytes = |points: [(u64, f64); 5]| points.map(|(kib, per_s)| (kib * KIB, per_s));
    let read = curve(Op::Read, &in_bytes(read));
    let write = curve(Op::Write, &in_bytes(write));
    Calibration::new(read, write, 4e3, 1e3).expect("rates")
}

#[test]
fn the_example_of_the_thesis() {
    let model = CostModel::new(Rule::Exact, &intel());
    let total = |count: f64, op, kib| count * model.cost(op, kib * KIB).get();
    for vops in [
        total(10_000.0, Op::Read, 1),
        total(3_000.0, Op::Write, 1),
        total(160.0, Op::Read, 256),
    ] {
        assert!((vops - 10_000.0).abs() < 1.0, "{vops}");
    }
    assert!((model.max_per_s() - 40e3).abs() < f64::EPSILON);
}

#[test]
fn syncs_and_deletes_have_a_price() {
    for rule in Rule::ALL {
        let model = CostModel::new(rule, &intel());
        for bytes in [0, 1, u64::MAX] {
            assert_eq!(model.cost(Op::Sync, bytes), Vop::new(10.0), "{rule:?}");
            assert_eq!(model.cost(Op::Delete, bytes), Vop::new(40.0), "{rule:?}");
        }
    }
}

#[test]
fn baselines_are_what_they_are_called() {
    let calibration = intel();
    let cost = |rule, kib: u64| {
        CostModel::new(rule, &calibration)
            .cost(Op::Write, kib * KIB)
            .get()
    };
    let near = |left: f64, right: f64| assert!((left / right - 1.0).abs() < 1e-4, "{left} {right}");
    near(cost(Rule::Constant, 100), 100.0 * cost(Rule::Constant, 1));
    near(cost(Rule::Fixed, 1000), cost(Rule::Exact, 1));
    near(cost(Rule::Linear, 1), cost(Rule::Exact, 1));
    // It ends at the largest size up to 128 KiB, by which it is compared, and goes on beyond.
    near(cost(Rule::Linear, 64), cost(Rule::Exact, 64));
    assert!(cost(Rule::Linear, 256) < 0.99 * cost(Rule::Exact, 256));
    let middle = (cost(Rule::Linear, 1) + cost(Rule::Linear, 255)) / 2.0;
    near(cost(Rule::Linear, 128), middle);
    // 7.2.2: constant charges far more than the curve, fixed undercuts it.
    assert!(cost(Rule::Constant, 64) > 2.0 * cost(Rule::Exact, 64));
    assert!(cost(Rule::Fixed, 64) < cost(Rule::Exact, 64) / 4.0);
}

#[test]
fn bad_rates_are_refused_with_their_place() {
    let point = |bytes, per_s| Point { bytes, per_s };
    let refused = |points| Curve::new(Op::Write, points).expect_err("refused");
    let few = refused(vec![point(1, 1.0)]);
    assert_eq!(
        few.to_string(),
        "the write curve has 1 points; at least 2 are needed"
    );
    let order = refused(vec![point(8, 9.0), point(8, 9.0)]);
    assert!(matches!(
        order,
        CalibrationError::Order {
            bytes: 8,
            before: 8,
            ..
        }
    ));
    let rising = refused(vec![point(8, 9.0), point(16, 9.5)]);
    assert!(rising
        .to_string()
        .contains("of 16 bytes are done more often than of 8 bytes"));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e9] {
        let error = refused(vec![point(1, 5.0), point(2, rate)]);
        assert!(matches!(error, CalibrationError::Rate { .. }), "{rate}");
        let curve = || curve(Op::Read, &[(1, 2.0), (2, 1.0)]);
        assert!(Calibration::new(curve(), curve(), rate, 1.0).is_err());
        assert!(Calibration::new(curve(), curve(), 1.0, rate).is_err());
        assert!(Curve::levelled(Op::Read, &[point(1, 5.0), point(2, rate)]).is_err());
    }
}

#[test]
fn noise_is_levelled_and_nothing_else() {
    let points = [(1, 100.0), (2, 80.0), (4, 90.0), (8, 80.0), (16, 10.0)];
    let measured = points.map(|(bytes, per_s)| Point { bytes, per_s });
    let levelled = Curve::levelled(Op::Read, &measured).expect("a curve");
    let rates: Vec<f64> = levelled.points().iter().map(|point| point.per_s).collect();
    let mean = (80.0f64 * 90.0).sqrt();
    assert_eq!((rates[0], rates[3], rates[4]), (100.0, 80.0, 10.0));
    assert!(
        (rates[1] - mean).abs() < 1e-9 && (rates[2] - mean).abs() < 1e-9,
        "{rates:?}"
    );
}

/// A curve that a device could have: sizes that grow, rates that do not.
fn any_curve(op: Op) -> impl Strategy<Value = Curve> {
    let steps = prop::collection::vec((1u64..1 << 18, 0.3f64..=1.0), 2..14);
    (1u64..8192, 50.0f64..2e6, steps).prop_map(move |(first, fastest, steps)| {
        let mut point = Point {
            bytes: first,
            per_s: fastest,
        };
        let mut points = vec![point];
        for (more, slower) in steps {
            point = Point {
                bytes: point.bytes + more,
                per_s: point.per_s * slower,
            };
            points.push(point);
        }
        Curve::new(op, points).expect("a curve")
    })
}

fn any_calibration() -> impl Strategy<Value = Calibration> {
    (
        any_curve(Op::Read),
        any_curve(Op::Write),
        1.0f64..1e6,
        1.0f64..1e6,
    )
        .prop_map(|(read, write, sync, delete)| {
            Calibration::new(read, write, sync, delete).expect("rates")
        })
}

proptest! {
    /// An I/O never costs less for being larger.
    #[test]
    fn prices_never_fall_with_size(calibration in any_calibration(), a in 0u64..1 << 23, b in 0u64..1 << 23) {
        for rule in Rule::ALL {
            let model = CostModel::new(rule, &calibration);
            for op in Op::ALL {
                let (small, large) = (model.cost(op, a.min(b)), model.cost(op, a.max(b)));
                prop_assert!(small <= large, "{rule:?} {op:?}: {small:?} {large:?}");
                prop_assert!(small > Vop::ZERO);
            }
        }
    }

    /// A device busy with I/Os of one calibrated size and direction serves the same VOPs a second
    /// (6.3.3).
    #[test]
    fn exact_is_exact_at_calibrated_sizes(calibration in any_calibration()) {
        let model = CostModel::new(Rule::Exact, &calibration);
        for (op, curve) in [(Op::Read, calibration.read()), (Op::Write, calibration.write())] {
            for point in curve.points() {
                let served = point.per_s * model.cost(op, point.bytes).get();
                prop_assert!((served / model.max_per_s() - 1.0).abs() < 2e-6, "{op:?} {point:?}: {served}");
            }
        }
    }

    /// Between two calibrated sizes the price lies between theirs.
    #[test]
    fn exact_stays_between_its_neighbours(calibration in any_calibration(), part in 0.0f64..1.0) {
        let model = CostModel::new(Rule::Exact, &calibration);
        for pair in calibration.write().points().windows(2) {
            let bytes = pair[0].bytes + (part * (pair[1].bytes - pair[0].bytes) as f64) as u64;
            let price = model.cost(Op::Write, bytes);
            prop_assert!(model.cost(Op::Write, pair[0].bytes) <= price);
            prop_assert!(price <= model.cost(Op::Write, pair[1].bytes));
        }
    }

    /// Beyond the largest calibrated size an I/O costs what chunks of that size cost: cutting it
    /// changes nothing of the price.
    #[test]
    fn the_largest_size_sets_the_price_beyond(calibration in any_calibration(), times in 1u64..64) {
        let largest = calibration.read().points().last().expect("points").bytes;
        let model = CostModel::new(Rule::Exact, &calibration);
        let whole = model.cost(Op::Read, largest * times).get();
        let chunks = model.cost(Op::Read, largest).get() * times as f64;
        prop_assert!((whole / chunks - 1.0).abs() < 1e-3, "{whole} {chunks}");
    }

    /// On curves of its own form the fit is close everywhere, also between the calibrated sizes.
    #[test]
    fn fitted_follows_a_power_law(a in 100.0f64..5000.0, p in 1.0f64..1.3, per_kib in 0.05f64..2.0) {
        let law = |bytes: f64| a * bytes.powf(1.0 - p) + per_kib / 1024.0 * bytes;
        let turn = (a * (p - 1.0) * 1024.0 / per_kib).powf(1.0 / p);
        let from = 1 + (turn.max(1024.0).log2()).ceil() as u32;
        prop_assume!(from < 18);
        let rate = |bytes: u64| Point { bytes, per_s: 1e6 / law(bytes as f64) };
        let curve = |op| Curve::new(op, (from..=20).map(|power| rate(1 << power)).collect()).expect("a curve");
        let calibration = Calibration::new(curve(Op::Read), curve(Op::Write), 1.0, 1.0).expect("rates");
        let (fitted, exact) = (CostModel::new(Rule::Fitted, &calibration), CostModel::new(Rule::Exact, &calibration));
        for power in from..20 {
            for bytes in [1u64 << power, 3 << (power - 1)] {
                let truth = calibration.max_per_s() / rate(bytes).per_s;
                let error = fitted.cost(Op::Read, bytes).get() / truth - 1.0;
                prop_assert!(error.abs() < 0.02, "{bytes}: {error}, exact {}", exact.cost(Op::Read, bytes).get() / truth - 1.0);
            }
        }
    }

    /// Levelling only ever pools what rises, and keeps the level.
    #[test]
    fn levelling_keeps_the_mean(rates in prop::collection::vec(1.0f64..1e5, 2..12)) {
        let sizes = (0..).map(|power| 512u64 << power);
        let measured: Vec<Point> = sizes.zip(&rates).map(|(bytes, per_s)| Point { bytes, per_s: *per_s }).collect();
        let levelled = Curve::levelled(Op::Write, &measured).expect("a curve");
        let log = |points: &[Point]| points.iter().map(|point| point.per_s.ln()).sum::<f64>();
        prop_assert!((log(&measured) - log(levelled.points())).abs() < 1e-6);
        if let Ok(as_it_is) = Curve::new(Op::Write, measured) {
            prop_assert_eq!(as_it_is, levelled);
        }
    }
}
