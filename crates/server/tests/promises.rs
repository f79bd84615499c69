//! What is reserved of the device: from requests seen to turns given.

#[path = "common/device.rs"]
mod common;

use common::{costs, io, DONE};
use engine::device::{Activity, DeviceIo, DeviceStage, FileKind, Op};
use server::device::{tag_of, DeviceOptions, DeviceScheduler, Pricing, Served};
use stage::{Discipline, ManualClock};
use std::sync::{Arc, Mutex};
use telemetry::{Answered, Class};

type Stage = DeviceScheduler<ManualClock>;

/// A floor of 1,000 VOP/s.
fn stage(clock: &ManualClock, pricing: Pricing) -> Arc<Stage> {
    let options = DeviceOptions {
        costs: costs(),
        floor_per_s: 1000.0,
        depth: 1,
        chunk_bytes: 64 << 10,
        discipline: Discipline::Fair,
        pricing,
        overbook: false,
        seeks: false,
        stream_bytes_per_s: 1e9,
        read_alone_ns: [100_000, 200_000],
        doubt: None,
        brief: false,
    };
    let stage = DeviceScheduler::new(options, clock.clone(), None);
    for tenant in [0, 1] {
        stage.configure(tenant, 1.0);
    }
    stage
}

fn put() -> DeviceIo {
    DeviceIo {
        tag: tag_of(Class::Put),
        ..io(Op::Write, 4 << 10, Activity::Log, FileKind::Log)
    }
}

fn flush() -> DeviceIo {
    io(Op::Write, 4 << 10, Activity::Flush, FileKind::Data)
}

fn run(stage: &Stage, io: DeviceIo) {
    let token = stage.begin(&io);
    stage.end(&io, token, DONE);
}

/// Totals after this many puts of 4 KiB.
fn puts(requests: u64) -> Served {
    let bytes = requests * (4 << 10);
    // A key and the protocol come with each.
    let beside = 64 * requests;
    let mut served = Served {
        put: Answered {
            requests,
            bytes_in: bytes + beside,
            bytes_out: 0,
        },
        ..Served::default()
    };
    served.written_bytes[tag_of(Class::Put).index()] = bytes;
    served
}

/// A second in which tenant 0 does 100 puts of 4 KiB: 2 VOP each, and 1 later.
fn a_second(clock: &ManualClock, stage: &Stage, before: u64) {
    for number in 0..100 {
        run(stage, put());
        if number % 2 == 0 {
            run(stage, flush());
        }
    }
    clock.advance(1_000_000_000);
    stage.provide(&[(0, puts(before + 100))]);
}

#[test]
fn requests_are_priced_with_what_they_cause() {
    let clock = ManualClock::new(1);
    let stage = stage(&clock, Pricing::Profiles);
    stage.promise(0, [0.0, 400.0]);
    stage.provide(&[(0, puts(0))]);
    for second in 0..8 {
        a_second(&clock, &stage, 100 * second);
    }
    let promised = stage.promised(0);
    // Four normalised puts are 2 + 1 VOP.
    let wanted = promised.provisioned.wanted;
    assert!((wanted.foreground - 200.0).abs() < 1.0, "{promised:?}");
    assert!((wanted.background - 100.0).abs() < 1.0, "{promised:?}");
    assert!((promised.used_per_s - 300.0).abs() < 1.0, "{promised:?}");
    assert_eq!(stage.booked().scale, 1.0);
    // Twice of everything and more: over the floor.
    let wanted = stage.would_want_per_s(Some(0), [0.0, 2000.0]);
    assert!((wanted - 1500.0).abs() < 5.0, "{wanted}");
}

#[test]
fn without_profiles_a_request_is_priced_as_its_object_alone() {
    let clock = ManualClock::new(1);
    let stage = stage(&clock, Pricing::Objects);
    stage.promise(0, [0.0, 400.0]);
    stage.provide(&[(0, puts(0))]);
    a_second(&clock, &stage, 0);
    let wanted = stage.promised(0).provisioned.wanted;
    // 200 VOPs, divided as what was used is.
    assert!((wanted.foreground - 400.0 / 3.0).abs() < 1.0, "{wanted:?}");
    assert!((wanted.background - 200.0 / 3.0).abs() < 1.0, "{wanted:?}");
}

#[test]
fn who_is_promised_goes_first() {
    for promised in [0u32, 1] {
        let clock = ManualClock::new(1);
        let stage = stage(&clock, Pricing::Profiles);
        stage.promise(promised, [100.0, 0.0]);
        stage.provide(&[]);
        clock.advance(1_000_000_000);
        let order = Mutex::new(Vec::new());
        let get = |principal| DeviceIo {
            principal,
            ..io(Op::Read, 4 << 10, Activity::Get, FileKind::Data)
        };
        let held = stage.begin(&get(1 - promised));
        std::thread::scope(|scope| {
            for (parked, tenant) in (1..).zip([1 - promised, promised]) {
                let (stage, order) = (&stage, &order);
                scope.spawn(move || {
                    let token = stage.begin(&get(tenant));
                    order.lock().expect("not poisoned").push(tenant);
                    stage.end(&get(tenant), token, DONE);
                });
                while stage.parked() < parked {
                    std::thread::yield_now();
                }
            }
            stage.end(&get(1 - promised), held, DONE);
        });
        let order = order.into_inner().expect("not poisoned");
        assert_eq!(order, [promised, 1 - promised]);
    }
}

#[test]
fn overbooking_scales_all_alike_and_is_told() {
    let clock = ManualClock::new(1);
    let stage = stage(&clock, Pricing::Profiles);
    // A KiB read is taken to cost what 4 KiB do, 1 VOP; written, 2.
    stage.promise(0, [1000.0, 0.0]);
    stage.promise(1, [0.0, 500.0]);
    for _ in 0..3 {
        clock.advance(1_000_000_000);
        stage.provide(&[]);
    }
    let booked = stage.booked();
    assert!((booked.overbooked_per_s - 1000.0).abs() < 1.0, "{booked:?}");
    let got = [0, 1].map(|tenant| stage.promised(tenant).provisioned.allocated.total());
    assert!(got.iter().all(|got| (got - 500.0).abs() < 1.0), "{got:?}");
    stage.remove(1);
    stage.provide(&[]);
    assert_eq!(stage.booked().scale, 1.0);
    assert_eq!(stage.promised(1).provisioned.wanted.total(), 0.0);
}
