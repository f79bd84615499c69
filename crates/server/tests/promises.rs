//! What is reserved of the device: from requests seen to turns given.

#[path = "common/device.rs"]
mod common;

use common::{costs, io, DONE};
use engine::device::{Activity, DeviceIo, DeviceStage, FileKind, Op};
use policy::cost::device::{Seen, Sweep};
use policy::supply::{Short, Supply};
use server::device::{tag_of, DeviceOptions, DeviceScheduler, Pricing, Processors, Served};
use stage::{Discipline, ManualClock};
use std::sync::{Arc, Mutex};
use telemetry::{Answered, Class};

type Stage = DeviceScheduler<ManualClock>;

/// A processor, a floor of 1,000 VOP/s, and 4,000 of 4 KiB while half or more of it is reads.
fn supply() -> Supply {
    let load = |reads_part, vop_per_s| Seen {
        reads_part,
        read_bytes: 4 << 10,
        write_bytes: 4 << 10,
        vop_per_s,
    };
    let seen = vec![load(0.1, 1000.0), load(0.5, 4000.0)];
    Supply {
        sweep: Sweep::new(4000.0, 1000.0, 1.0, seen),
        processors: 1.0,
    }
}

/// On that device.
fn stage(clock: &ManualClock, pricing: Pricing) -> Arc<Stage> {
    let options = DeviceOptions {
        costs: costs(),
        supply: supply(),
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
            // A thousandth of a second each.
            cpu_ns: requests * 1_000_000,
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
    stage.provide(&[(0, puts(before + 100))], Processors::default());
}

/// Eight of them, with 400 normalised puts a second promised.
fn eight_seconds(clock: &ManualClock) -> Arc<Stage> {
    let stage = stage(clock, Pricing::Profiles);
    stage.promise(0, [0.0, 400.0]);
    stage.provide(&[(0, puts(0))], Processors::default());
    for second in 0..8 {
        a_second(clock, &stage, 100 * second);
    }
    stage
}

#[test]
fn requests_are_priced_with_what_they_cause() {
    let clock = ManualClock::new(1);
    let stage = eight_seconds(&clock);
    let promised = stage.promised(0);
    // Four normalised puts are 2 + 1 VOP.
    let wanted = promised.provisioned.wanted;
    assert!((wanted.foreground - 200.0).abs() < 1.0, "{promised:?}");
    assert!((wanted.background - 100.0).abs() < 1.0, "{promised:?}");
    assert!((promised.used_per_s - 300.0).abs() < 1.0, "{promised:?}");
    assert_eq!(stage.booked().scale, 1.0);
    // Twice of everything and more: over the floor.
    let wanted = stage.would_take(Some(0), [0.0, 2000.0]).vops_per_s();
    assert!((wanted - 1500.0).abs() < 5.0, "{wanted}");
}

#[test]
fn flushes_that_are_behind_have_what_nobody_reserved() {
    let clock = ManualClock::new(1);
    let stage = eight_seconds(&clock);
    let allocated = || stage.promised(0).provisioned.allocated;
    let calm = allocated();
    clock.advance(1_000_000_000);
    let pressed = Served {
        write_pressure: 1.0,
        ..puts(800)
    };
    stage.provide(&[(0, pressed)], Processors::default());
    let pressed = allocated();
    assert!((pressed.foreground - calm.foreground).abs() < 1.0);
    let more = pressed.background - calm.background;
    assert!((more - 200.0).abs() < 2.0, "{calm:?} {pressed:?}");
}

/// A second of gets of a VOP each beside the puts, so many of both.
fn gets_and_puts(clock: &ManualClock, stage: &Stage, gets: u64, puts_done: u64) {
    let get = DeviceIo {
        tag: tag_of(Class::Get),
        ..io(Op::Read, 4 << 10, Activity::Get, FileKind::Data)
    };
    (0..gets).for_each(|_| run(stage, get));
    (0..puts_done).for_each(|_| run(stage, put()));
    clock.advance(1_000_000_000);
    let get = Answered {
        requests: gets,
        bytes_in: 0,
        bytes_out: gets * (4096 + 64),
        cpu_ns: gets * 1_000_000,
    };
    let served = Served {
        get,
        ..puts(puts_done)
    };
    stage.provide(&[(0, served)], Processors::default());
}

#[test]
fn a_reservation_has_to_fit_under_what_its_own_mix_may_be_promised() {
    let clock = ManualClock::new(1);
    let stage = stage(&clock, Pricing::Profiles);
    stage.promise(0, [0.0; 2]);
    let short = |reservation| {
        let demand = stage.would_take(Some(0), reservation);
        stage.options().supply.short(&demand)
    };
    // Nobody knows what puts become.
    assert!(
        matches!(short([0.0, 600.0]), Some(Short::Device { promisable_per_s, .. }) if promisable_per_s == 1000.0)
    );
    gets_and_puts(&clock, &stage, 200, 100);
    // Normalised gets cost .25, puts .5. Half is read: 2,000 VOP/s of 3,720 are wanted.
    assert!(!matches!(
        short([4000.0, 2000.0]),
        Some(Short::Device { .. })
    ));
    // As much of puts with a few gets: hardly more than the floor.
    let Some(Short::Device {
        needed_per_s,
        promisable_per_s,
    }) = short([400.0, 3800.0])
    else {
        panic!("a few reads cost writes most of what there is");
    };
    assert!((needed_per_s - 2000.0).abs() < 1.0, "{needed_per_s}");
    assert!(
        (1000.0..1100.0).contains(&promisable_per_s),
        "{promisable_per_s}"
    );
}

#[test]
fn a_reservation_has_to_fit_into_the_processors() {
    let clock = ManualClock::new(1);
    let stage = stage(&clock, Pricing::Profiles);
    stage.promise(0, [0.0; 2]);
    gets_and_puts(&clock, &stage, 200, 100);
    let short = |gets| {
        let demand = stage.would_take(Some(0), [gets, 0.0]);
        stage.options().supply.short(&demand)
    };
    // A millisecond for four of them: .9 of a processor for 3,600, which are 900 VOPs.
    assert_eq!(short(3500.0), None);
    let Some(Short::Processors { needed, promisable }) = short(4000.0) else {
        panic!("a whole processor");
    };
    assert!((needed - 1.0).abs() < 1e-3 && (promisable - 0.9).abs() < 1e-9);
    // 300 requests took .3 s for 400 VOPs.
    let promisable = stage.promisable_per_s();
    assert!((promisable - 1200.0).abs() < 5.0, "{promisable}");
}

#[test]
fn without_profiles_a_request_is_priced_as_its_object_alone() {
    let clock = ManualClock::new(1);
    let stage = stage(&clock, Pricing::Objects);
    stage.promise(0, [0.0, 400.0]);
    stage.provide(&[(0, puts(0))], Processors::default());
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
        stage.provide(&[], Processors::default());
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
        stage.provide(&[], Processors::default());
    }
    let booked = stage.booked();
    assert!((booked.overbooked_per_s - 1000.0).abs() < 1.0, "{booked:?}");
    let got = [0, 1].map(|tenant| stage.promised(tenant).provisioned.allocated.total());
    assert!(got.iter().all(|got| (got - 500.0).abs() < 1.0), "{got:?}");
    stage.remove(1);
    stage.provide(&[], Processors::default());
    assert_eq!(stage.booked().scale, 1.0);
    assert_eq!(stage.promised(1).provisioned.wanted.total(), 0.0);
}
