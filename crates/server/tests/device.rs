//! The device stage: prices, who waits and who never does, what is counted.

#[path = "common/device.rs"]
mod common;

use common::{costs, io, DONE};
use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended, FileKind, Op};
use engine::{
    Access, Allotments, Database, Engine, EngineOptions, Entry, Keys, Keyspace, KeyspaceOptions,
    Object, Outcome, Sync,
};
use policy::cost::device::{Sweep, Vop};
use policy::device::{Layout, Model, SsdParameters};
use policy::dispatch::Others;
use policy::supply::Supply;
use server::device::{
    on_terms, tag_of, waits as device_waits, DeviceOptions, DeviceScheduler, Drives, Pricing,
};
use stage::{Clock, Discipline, ManualClock, Nanos, Terms};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;
use telemetry::Class;

fn options(depth: u32) -> DeviceOptions {
    DeviceOptions {
        costs: costs(),
        supply: Supply {
            sweep: Sweep::floor(40e3),
            processors: 1.0,
        },
        depth,
        chunk_bytes: 64 << 10,
        discipline: Discipline::Fair,
        pricing: Pricing::Profiles,
        overbook: false,
        seeks: false,
        stream_bytes_per_s: 1e9,
        read_alone_ns: [100_000, 200_000],
        doubt: None,
        brief: false,
    }
}

fn get() -> DeviceIo {
    io(Op::Read, 4 << 10, Activity::Get, FileKind::Data)
}

fn until(done: impl Fn() -> bool) {
    while !done() {
        std::thread::yield_now();
    }
}

#[test]
fn everything_is_charged_by_its_price_and_use() {
    let stage = DeviceScheduler::new(options(4), ManualClock::new(1), None);
    stage.configure(0, 1.0);
    let run = |io: DeviceIo, ended| {
        let token = stage.begin(&io);
        stage.end(&io, token, ended);
    };
    let tagged = DeviceIo {
        tag: tag_of(Class::Get),
        ..get()
    };
    run(tagged, DONE);
    // Asked for 64 KiB, 4 KiB before the end of the file.
    run(
        io(Op::Read, 64 << 10, Activity::Range, FileKind::Data),
        DONE,
    );
    run(io(Op::Write, 4 << 10, Activity::Log, FileKind::Log), DONE);
    run(
        io(Op::Sync, 0, Activity::Log, FileKind::Log),
        Ended { bytes: 0, ok: true },
    );
    run(
        io(Op::Delete, 0, Activity::Other, FileKind::Data),
        Ended { bytes: 0, ok: true },
    );
    // A write that failed has cost the device what it asked for.
    run(
        io(Op::Write, 64 << 10, Activity::Flush, FileKind::Data),
        Ended {
            bytes: 0,
            ok: false,
        },
    );
    let used = stage.used(0).expect("known");
    let of = |activity: Activity| {
        let sum = used.activity(activity);
        (sum.ios, sum.vops.get())
    };
    assert_eq!(of(Activity::Get), (1, 1.0));
    assert_eq!(of(Activity::Range), (1, 1.0));
    assert_eq!(of(Activity::Log), (2, 2.0 + 4.0));
    assert_eq!(of(Activity::Other), (1, 10.0));
    assert_eq!(of(Activity::Flush), (1, 10.0));
    let of_class = |class| used.class(class).vops.get();
    assert_eq!(of_class(Some(Class::Get)), 1.0);
    assert_eq!(of_class(None), 1.0 + 6.0 + 10.0 + 10.0);
    assert_eq!(used.cell(Some(Class::Get), Activity::Range).ios, 0);
    assert_eq!(used.total().ios, 6);
    assert_eq!(stage.parked(), 0);
    stage.remove(0);
    assert_eq!(stage.used(0), None);
    // Whoever is gone may still finish.
    run(get(), DONE);
}

#[test]
fn pieces_that_follow_each_other_in_a_file_are_not_interrupted() {
    let clock = ManualClock::new(1);
    let stage = DeviceScheduler::new(options(1), clock.clone(), None);
    (0..2).for_each(|tenant| stage.configure(tenant, 1.0));
    let scans = Others {
        linger_ns: 1_000_000,
        run_ns: 1_000_000_000,
        ..Others::default()
    };
    stage.steer(None, scans, None);
    let piece = |number: u64| DeviceIo {
        number: 7,
        offset: number * (64 << 10),
        ..io(Op::Read, 64 << 10, Activity::Range, FileKind::Data)
    };
    let other = DeviceIo {
        principal: 1,
        ..get()
    };
    let read = |io: &DeviceIo| stage.end(io, stage.begin(io), DONE);
    read(&piece(0));
    let second = stage.begin(&piece(1));
    let waited = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let token = stage.begin(&other);
            waited.store(true, Ordering::SeqCst);
            stage.end(&other, token, DONE);
        });
        until(|| stage.state().queued == 1);
        stage.end(&piece(1), second, DONE);
        read(&piece(2));
        // A reader of pages asks again for what it had read ahead of the last one.
        read(&piece(2));
        assert!(!waited.load(Ordering::SeqCst), "the arm stays");
        // Elsewhere in the file is another stream, which stands in line.
        read(&piece(9));
        assert!(waited.load(Ordering::SeqCst), "and the first is over");
    });
}

#[test]
fn nobody_waits_for_the_next_piece_of_a_command_that_has_ended() {
    let clock: Arc<dyn Clock + Send + std::marker::Sync> = Arc::new(ManualClock::new(1));
    let stage = DeviceScheduler::new(options(1), clock, None);
    (0..2).for_each(|tenant| stage.configure(tenant, 1.0));
    let scans = Others {
        linger_ns: 1_000_000,
        run_ns: 1_000_000_000,
        ..Others::default()
    };
    stage.steer(None, scans, None);
    let piece = DeviceIo { number: 7, ..get() };
    let other = DeviceIo {
        principal: 1,
        ..get()
    };
    let waited = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let command = on_terms(Terms::default(), Some(&stage));
        let first = stage.begin(&piece);
        scope.spawn(|| {
            let token = stage.begin(&other);
            waited.store(true, Ordering::SeqCst);
            stage.end(&other, token, DONE);
        });
        until(|| stage.state().queued == 1);
        stage.end(&piece, first, DONE);
        assert_eq!(stage.state().queued, 1, "there may be more of it");
        drop(command);
        until(|| waited.load(Ordering::SeqCst));
    });
}

#[test]
fn metadata_never_waits_and_data_does() {
    let stage = DeviceScheduler::new(options(1), ManualClock::new(1), None);
    stage.configure(0, 1.0);
    let held = stage.begin(&get());
    let manifest = io(Op::Write, 4 << 10, Activity::Compaction, FileKind::Metadata);
    let token = stage.begin(&manifest);
    stage.end(&manifest, token, DONE);
    let waited = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let token = stage.begin(&get());
            waited.store(true, Ordering::SeqCst);
            stage.end(&get(), token, DONE);
        });
        until(|| stage.parked() == 1);
        assert!(!waited.load(Ordering::SeqCst), "the only permit is out");
        stage.end(&get(), held, DONE);
    });
    assert!(waited.into_inner());
    assert_eq!(stage.state().in_flight, 0);
}

#[test]
fn foreground_goes_before_background_that_has_had_its_part() {
    let stage = DeviceScheduler::new(options(1), ManualClock::new(1), None);
    stage.configure(0, 1.0);
    let compaction = io(Op::Read, 64 << 10, Activity::Compaction, FileKind::Data);
    let order = std::sync::Mutex::new(Vec::new());
    let held = stage.begin(&compaction);
    std::thread::scope(|scope| {
        let spawn = |io: DeviceIo| {
            let (stage, order) = (&stage, &order);
            scope.spawn(move || {
                let token = stage.begin(&io);
                order
                    .lock()
                    .expect("not poisoned")
                    .push((io.activity, io.urgent));
                stage.end(
                    &io,
                    token,
                    Ended {
                        bytes: io.bytes,
                        ok: true,
                    },
                );
            })
        };
        let urgent = DeviceIo {
            urgent: true,
            ..compaction
        };
        for (parked, io) in (1..).zip([compaction, get(), urgent, get()]) {
            spawn(io);
            until(|| stage.parked() == parked);
        }
        stage.end(
            &compaction,
            held,
            Ended {
                bytes: 64 << 10,
                ok: true,
            },
        );
    });
    let order = order.into_inner().expect("not poisoned");
    assert_eq!(
        order.last(),
        Some(&(Activity::Compaction, false)),
        "{order:?}"
    );
}

#[test]
fn the_capacity_is_followed_and_pauses_teach_nothing() {
    let clock = ManualClock::new(1);
    let stage = DeviceScheduler::new(options(4), clock.clone(), None);
    stage.configure(0, 1.0);
    let read = || {
        let token = stage.begin(&get());
        clock.advance(12_500);
        stage.end(&get(), token, DONE);
    };
    // 80,000 reads of one VOP a second, twice the floor: nobody waited, so this is the least that
    // it can.
    for _ in 0..80_000 {
        read();
    }
    let state = stage.state();
    assert!(
        state.capacity_per_s > 60e3 && state.missing_per_s.is_none(),
        "{state:?}"
    );
    assert_eq!(
        (state.permits, state.trial),
        (4, None),
        "nobody waited: the depth stays"
    );
    clock.advance(3_600_000_000_000);
    read();
    assert_eq!(stage.state().capacity_per_s, state.capacity_per_s);
}

#[derive(Clone, Debug)]
struct Real(Instant);

impl Clock for Real {
    fn now(&self) -> Nanos {
        self.0.elapsed().as_nanos() as Nanos
    }
}

fn put(keyspace: &Arc<Keyspace>, key: &[u8], value: &[u8]) {
    let entry = Entry::string(bytes::Bytes::copy_from_slice(value));
    loop {
        let done = keyspace.try_run(
            &Keys::In(Database::FIRST, &[key]),
            1,
            &mut |access: &mut Access| access.put(key, entry.clone()),
        );
        match done {
            Outcome::Done { seq, .. } => return keyspace.wait_commit(seq).expect("committed"),
            Outcome::Full | Outcome::Busy => std::thread::yield_now(),
            Outcome::Failed(error) => panic!("{error}"),
            Outcome::Disk => panic!("a blind write of a string needs no disk"),
        }
    }
}

/// The whole way: a database over the stage over an emulated SSD.
#[test]
fn a_database_works_over_an_emulated_device() {
    let clock = Real(Instant::now());
    let ssds = Drives::new(&Model::Ssd(SsdParameters::default()), 2, None, 1, &clock);
    let stage = DeviceScheduler::new(options(8), clock, Some(ssds));
    stage.configure(0, 1.0);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let engine = Engine::open(EngineOptions::new(folder.path())).expect("an engine");
    let mut options = KeyspaceOptions::new(Sync::Always, Allotments::objects(1 << 20));
    options.memtable_bytes = 256 << 10;
    let hook: Arc<dyn DeviceStage> = stage.clone();
    options.device = Some(DeviceHook {
        stage: hook,
        principal: 0,
    });
    let keyspace = engine.keyspace("tenant", options).expect("a keyspace");
    for number in 0u32..400 {
        put(&keyspace, &number.to_be_bytes(), &[number as u8; 2000]);
    }
    let key = 7u32.to_be_bytes();
    let found = keyspace.try_run(
        &Keys::In(Database::FIRST, &[&key]),
        1,
        &mut |access: &mut Access| access.get(&key),
    );
    let Outcome::Done {
        reply: Some(entry), ..
    } = found
    else {
        panic!("what was just written is in memory")
    };
    assert!(
        matches!(entry.object, Object::String(text) if text.whole().is_some_and(|value| value[..] == [7; 2000]))
    );
    drop(keyspace);
    engine.shutdown();
    let used = stage.used(0).expect("known");
    let ios = |activity: Activity| used.activity(activity).ios;
    assert!(
        ios(Activity::Log) >= 800,
        "each write was appended and synced: {used:?}"
    );
    assert!(ios(Activity::Flush) > 0, "{used:?}");
    assert!(used.total().vops < Vop::new(1e9));
    let state = stage.state();
    assert_eq!((state.in_flight, state.queued), (0, 0));
}

/// Files whole on one drive each, and a queue before each drive.
#[test]
fn a_file_waits_for_its_own_drive_only() {
    let (seed, clock) = (7, Real(Instant::now()));
    let ssds = Drives::new(&Model::Ssd(SsdParameters::default()), 2, None, seed, &clock);
    let stage = DeviceScheduler::new(options(1), clock, Some(ssds));
    for tenant in 0..2 {
        stage.configure(tenant, 1.0);
    }
    let layout = Layout {
        disks: 2,
        span_bytes: Model::Ssd(SsdParameters::default()).capacity_bytes(),
        seed,
    };
    let on = |disk| {
        let mut numbers = (1..).filter(|number| layout.spot(0, *number).disk == disk);
        DeviceIo {
            number: numbers.next().expect("some file is there"),
            ..get()
        }
    };
    let (first, other) = (on(0), on(1));
    let held = stage.begin(&first);
    // The other drive is free.
    let token = stage.begin(&other);
    stage.end(&other, token, DONE);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let token = stage.begin(&first);
            stage.end(&first, token, DONE);
            device_waits()
        });
        until(|| stage.parked() == 1);
        stage.end(&first, held, DONE);
        let waits = waiter.join().expect("ended");
        let [(drive, from, until)] = waits.spans[..] else {
            panic!("it waited once: {waits:?}")
        };
        assert_eq!((drive, until - from), (0, waits.ns));
        assert_eq!(stage.behind(drive, from, until), [(0, false, waits.ns)]);
    });
    let state = stage.state();
    assert_eq!((state.permits, state.in_flight, state.queued), (2, 0, 0));
}

#[test]
fn a_controller_s_permits_are_those_of_all_drives_together() {
    let clock = Real(Instant::now());
    let ssds = Drives::new(&Model::Ssd(SsdParameters::default()), 2, None, 7, &clock);
    let stage = DeviceScheduler::new(options(8), clock, Some(ssds));
    stage.configure(0, 1.0);
    stage.steer(Some(4), Others::default(), None);
    let io = DeviceIo { number: 1, ..get() };
    let begun = [0, 1].map(|_| stage.begin(&io));
    std::thread::scope(|scope| {
        scope.spawn(|| stage.end(&io, stage.begin(&io), DONE));
        until(|| stage.parked() == 1);
        begun
            .into_iter()
            .for_each(|token| stage.end(&io, token, DONE));
    });
    assert_eq!(stage.state().in_flight, 0);
}
