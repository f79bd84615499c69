//! Permits that are never lost.

use stage::{
    Allocation, Cost, DispatchOptions, LaneAllocation, LaneId, Meter, Nanos, Next, Others,
    PrincipalId, Stage, Terms,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

const A: PrincipalId = PrincipalId(0);
const B: PrincipalId = PrincipalId(1);

fn options(permits: u32) -> DispatchOptions<2> {
    let meter = Meter {
        requests: 0,
        bytes: [false, true],
    };
    let mut options = DispatchOptions::new([1_000_000, 1_000_000_000], meter);
    options.permits = permits;
    options.queue_max = 4;
    options
}

fn stage(permits: u32) -> Stage<u32, 2> {
    let mut stage = Stage::new(options(permits));
    stage.configure(0, A, &Allocation::default());
    stage.configure(0, B, &Allocation::default());
    stage
}

fn granted(stage: &mut Stage<u32, 2>, now: Nanos) -> stage::Admitted<u32, 2> {
    match stage.next(now) {
        Next::Admitted(admitted) => admitted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn queues_are_bounded() {
    let mut stage = stage(1);
    for item in 0..4 {
        stage.enqueue(0, A, 0, item).expect("room");
    }
    assert_eq!(stage.enqueue(0, A, 0, 4), Err(4));
    assert_eq!(stage.enqueue(0, PrincipalId(7), 0, 5), Err(5));
    assert_eq!(stage.queued(), 4);
    assert_eq!(stage.remove(0, A), [0, 1, 2, 3]);
    assert_eq!(stage.observe(0, A), None);
}

#[test]
fn a_dropped_permit_is_charged_its_estimate_and_free_again() {
    let mut stage = stage(1);
    stage.enqueue(0, A, 0, 1).expect("room");
    stage.enqueue(0, A, 0, 2).expect("room");
    drop(granted(&mut stage, 0).permit);
    assert_eq!(stage.in_flight(), 1);
    let second = granted(&mut stage, 1000);
    assert_eq!(second.item, 2);
    let seen = stage.observe(1000, A).expect("known");
    assert_eq!((seen.in_flight, seen.charged_ns), (1, 100_000));
    stage.settle(1000, second.permit, Cost([0, 5000]));
    assert_eq!(stage.observe(1000, A).map(|o| o.charged_ns), Some(105_000));
}

#[test]
fn a_panic_does_not_keep_a_permit() {
    let mut stage = stage(1);
    stage.enqueue(0, A, 0, 1).expect("room");
    stage.enqueue(0, A, 0, 2).expect("room");
    let permit = granted(&mut stage, 0).permit;
    let work = std::thread::spawn(move || {
        let _mine = permit;
        std::panic::resume_unwind(Box::new("the work failed"));
    });
    assert!(work.join().is_err());
    assert_eq!(granted(&mut stage, 0).item, 2);
}

#[test]
fn a_permit_goes_to_another_thread_and_comes_back() {
    let woken = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&woken);
    let wake = Box::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let mut stage: Stage<u32, 2> = Stage::new(options(2)).with_wake(wake);
    stage.configure(0, A, &Allocation::default());
    for item in 0..3 {
        stage.enqueue(0, A, 0, item).expect("room");
    }
    let (back, lost) = (granted(&mut stage, 0).permit, granted(&mut stage, 0).permit);
    assert!(matches!(stage.next(0), Next::Idle));
    let back = std::thread::spawn(move || {
        drop(lost);
        back
    });
    let back = back.join().expect("no panic");
    assert_eq!(woken.load(Ordering::SeqCst), 1);
    stage.settle(10, back, Cost([1, 10]));
    assert_eq!(granted(&mut stage, 10).item, 2);
    assert_eq!(stage.in_flight(), 1);
}

#[test]
fn a_permit_of_another_stage_goes_home() {
    let (mut mine, mut other) = (stage(1), stage(1));
    mine.enqueue(0, A, 0, 1).expect("room");
    mine.enqueue(0, A, 0, 2).expect("room");
    let permit = granted(&mut mine, 0).permit;
    assert_eq!(permit.class(), 0);
    other.settle(0, permit, Cost([1, 1]));
    assert_eq!(other.in_flight(), 0);
    assert_eq!(granted(&mut mine, 0).item, 2);
}

#[test]
fn a_permit_says_its_lane_and_whether_its_due_time_was_kept_to() {
    let (mut stage, lane) = (stage(4), LaneId(2));
    let nothing = LaneAllocation {
        contract_per_s: Some(0.0),
        ..LaneAllocation::default()
    };
    let terms = Terms {
        lane,
        due_at: Some(0),
        ..Terms::default()
    };
    for (contract, timed) in [(LaneAllocation::default(), true), (nothing, false)] {
        stage.configure_lane(0, A, lane, &contract);
        stage.enqueue_on(0, A, 0, terms, 1).expect("room");
        let permit = granted(&mut stage, 0).permit;
        assert_eq!((permit.lane(), permit.timed()), (lane, timed));
        stage.settle(0, permit, Cost([1, 0]));
    }
    let seen = stage.observe_lane(0, A, lane).expect("a lane");
    assert_eq!((seen.granted, seen.timed, seen.in_flight), (2, 1, 0));
    let others = Others {
        permits: 1,
        ..Others::default()
    };
    stage.set_others(0, others);
    assert_eq!(stage.others(), others);
    stage.remove_lane(0, A, lane);
    assert_eq!(stage.observe_lane(0, A, lane), None);
}
