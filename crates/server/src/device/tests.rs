//! Devices and I/Os for tests of what is before the databases.

use super::*;
use engine::device::{Activity, FileKind, Tag};
use policy::cost::device::{Calibration, Curve, Point, Rule, Sweep};
use policy::supply::Supply;
use stage::ManualClock;

/// A device that does 10,000 I/Os a second.
pub(crate) fn options() -> DeviceOptions {
    let point = |bytes, per_s| Point { bytes, per_s };
    let curve = |op| {
        let points = vec![point(4 << 10, 1e4), point(64 << 10, 1e3)];
        Curve::new(op, points).expect("rates")
    };
    let calibration = Calibration::new(curve(Op::Read), curve(Op::Write), 1e4, 1e4);
    DeviceOptions {
        costs: CostModel::new(Rule::Exact, &calibration.expect("rates")),
        supply: Supply {
            sweep: Sweep::floor(5e3),
            processors: 1.0,
        },
        depth: 4,
        chunk_bytes: 64 << 10,
        discipline: Discipline::Fair,
        pricing: Pricing::Profiles,
        overbook: false,
        seeks: false,
        stream_bytes_per_s: 1e9,
        read_alone_ns: [100_000, 200_000],
        doubt: None,
        brief: true,
    }
}

/// A read of a page for a tenant.
pub(crate) fn read(principal: u32) -> DeviceIo {
    DeviceIo {
        principal,
        op: Op::Read,
        offset: 0,
        bytes: 4 << 10,
        file: FileKind::Data,
        number: 0,
        activity: Activity::Get,
        urgent: false,
        tag: Tag(0),
    }
}

const DONE: Ended = Ended {
    bytes: 4 << 10,
    ok: true,
};

/// A write of a compaction.
fn compaction() -> DeviceIo {
    DeviceIo {
        op: Op::Write,
        activity: Activity::Compaction,
        ..read(0)
    }
}

#[test]
fn compactions_wait_for_their_rate_and_nobody_for_them() {
    let clock = ManualClock::new(1);
    let stage = DeviceScheduler::new(options(), clock.clone(), None);
    stage.configure(0, 1.0);
    let run = |io: DeviceIo| stage.end(&io, stage.begin(&io), DONE);
    // A VOP a second.
    stage.bound_compaction(Some(0.0002));
    run(compaction());
    std::thread::scope(|scope| {
        scope.spawn(|| run(compaction()));
        while stage.state().queued == 0 {
            std::thread::yield_now();
        }
        run(read(0));
        // Who writes waits for these, or soon does.
        run(DeviceIo {
            urgent: true,
            ..compaction()
        });
        run(DeviceIo {
            activity: Activity::Flush,
            ..compaction()
        });
        // That it waits says nothing of what the device can do.
        for _ in 0..50 {
            clock.advance(policy::depth::SLICE_NS / 4);
            run(read(0));
        }
        let state = stage.state();
        assert_eq!((state.queued, state.capacity_per_s), (0, 5e3));
    });
    assert_eq!(stage.of_others().compaction, 2 * 1_000_000);
}

#[test]
fn compactions_go_on_when_they_are_no_longer_bounded() {
    let stage = DeviceScheduler::new(options(), ManualClock::new(1), None);
    stage.configure(0, 1.0);
    let run = |io: DeviceIo| stage.end(&io, stage.begin(&io), DONE);
    stage.bound_compaction(Some(0.01));
    run(compaction());
    std::thread::scope(|scope| {
        scope.spawn(|| run(compaction()));
        while stage.state().queued == 0 {
            std::thread::yield_now();
        }
        stage.bound_compaction(None);
    });
    assert_eq!(stage.state().queued, 0);
}
