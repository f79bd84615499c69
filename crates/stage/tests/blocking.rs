//! Threads before one resource: nobody parks without need, nobody is forgotten, shares hold.

use stage::blocking::{Blocking, Rejected};
use stage::{
    Allocation, Clock, Cost, DispatchOptions, LaneAllocation, LaneId, ManualClock, Meter, Nanos,
    Others, PrincipalId, Terms,
};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const A: PrincipalId = PrincipalId(0);
const B: PrincipalId = PrincipalId(1);

type Device<C = ManualClock> = Blocking<1, C>;

/// A resource that does a billion units a second, so that a unit takes a nanosecond.
fn device<C: Clock + Clone + Send + Sync + 'static>(permits: u32, clock: &C) -> Arc<Device<C>> {
    let meter = Meter {
        requests: 0,
        bytes: [false],
    };
    let mut options = DispatchOptions::new([1_000_000_000], meter);
    options.permits = permits;
    let device = Blocking::new(options, clock.clone());
    device.configure(A, &Allocation::share(1.0));
    device.configure(B, &Allocation::share(1.0));
    device
}

fn until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

#[test]
fn whoever_finds_a_permit_never_parks() {
    let clock = ManualClock::new(1);
    let device = device(2, &clock);
    for turn in 0..1000 {
        let first = device.admit(A, 0).expect("a turn");
        let second = device.admit(B, 1).expect("a turn");
        assert_eq!(
            (first.waited_ns, second.waited_ns, device.in_flight()),
            (0, 0, 2)
        );
        clock.advance(10);
        device.settle(second.permit, Cost([turn]));
        device.settle(first.permit, Cost([10]));
    }
    assert_eq!(device.parked(), 0);
    let seen = device.observe(A).expect("known");
    assert_eq!((seen.granted, seen.charged_ns), (1000, 10_000));
}

#[test]
fn a_permit_given_back_wakes_the_one_that_is_next() {
    let clock = ManualClock::new(1);
    let device = device(1, &clock);
    let held = device.admit(A, 0).expect("a turn");
    let (told, order) = channel();
    let waiting = |principal, name| {
        let (device, told) = (Arc::clone(&device), told.clone());
        thread::spawn(move || {
            let entry = device.admit(principal, 0).expect("a turn");
            told.send(name).expect("heard");
            device.settle(entry.permit, Cost([1]));
        })
    };
    // A has used much, B nothing: B goes first although it came later.
    let first = waiting(A, "a");
    until(|| device.queued() == 1);
    let second = waiting(B, "b");
    until(|| device.queued() == 2);
    clock.advance(50_000);
    device.settle(held.permit, Cost([50_000]));
    assert_eq!([order.recv(), order.recv()], [Ok("b"), Ok("a")]);
    first.join().expect("ended");
    second.join().expect("ended");
    assert_eq!(
        (device.parked(), device.queued(), device.in_flight()),
        (2, 0, 0)
    );
}

#[test]
fn a_dropped_permit_is_free_again() {
    let clock = ManualClock::new(1);
    let device = device(1, &clock);
    let held = device.admit(A, 0).expect("a turn");
    let other = Arc::clone(&device);
    let waiting = thread::spawn(move || other.admit(B, 0).map(|entry| drop(entry.permit)));
    until(|| device.queued() == 1);
    drop(held);
    waiting.join().expect("ended").expect("a turn");
    assert!(device.admit(A, 0).is_ok());
}

#[test]
fn what_is_due_goes_before_others_that_came_first() {
    let clock = ManualClock::new(1);
    let device = device(1, &clock);
    device.configure_lane(A, LaneId(1), &LaneAllocation::default());
    let held = device.admit(A, 0).expect("a turn");
    let order = Arc::new(Mutex::new(Vec::new()));
    let terms = |principal: PrincipalId| Terms {
        lane: LaneId(u8::from(principal == A)),
        due_at: (principal == A).then_some(1),
        ..Terms::default()
    };
    let threads: Vec<_> = [B, A]
        .into_iter()
        .map(|principal| {
            let (device, order) = (Arc::clone(&device), Arc::clone(&order));
            let queued = device.queued();
            let at = Arc::clone(&device);
            let thread = thread::spawn(move || {
                let entry = device.admit_on(principal, 0, terms(principal));
                order.lock().expect("alone").push(principal);
                device.settle(entry.expect("a turn").permit, Cost([1]));
            });
            until(|| at.queued() == queued + 1);
            thread
        })
        .collect();
    // Its tenant has had a second of the device, and goes first all the same.
    device.charge(A, Cost([1_000_000_000]));
    device.settle(held.permit, Cost([1]));
    for thread in threads {
        thread.join().expect("ended");
    }
    assert_eq!(*order.lock().expect("alone"), [A, B]);
    let seen = device.observe_lane(A, LaneId(1)).expect("a lane");
    assert_eq!((seen.timed, device.others()), (1, Others::default()));
}

#[test]
fn removal_more_permits_and_strangers() {
    let clock = ManualClock::new(1);
    let device = device(1, &clock);
    assert_eq!(
        device.admit(PrincipalId(9), 0).expect_err("unknown"),
        Rejected::Full
    );
    let held = device.admit(A, 0).expect("a turn");
    let wait = |principal| {
        let device = Arc::clone(&device);
        thread::spawn(move || {
            device
                .admit(principal, 0)
                .map(|entry| device.settle(entry.permit, Cost([1])))
        })
    };
    let removed = wait(B);
    until(|| device.queued() == 1);
    device.remove(B);
    assert_eq!(removed.join().expect("ended"), Err(Rejected::Removed));
    let granted = wait(A);
    until(|| device.queued() == 1);
    device.set_permits(2);
    granted.join().expect("ended").expect("a second permit");
    device.settle(held.permit, Cost([1]));
}

/// Eight threads keep two principals busy, with weights 3 to 1 and turns of different length.
#[test]
fn shares_hold_between_threads_and_depth_is_bounded() {
    const PERMITS: u32 = 2;
    const THREADS: u64 = 8;
    let clock = ManualClock::new(1);
    let device = device(PERMITS, &clock);
    device.configure(A, &Allocation::share(3.0));
    let (stop, inside, most) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    let used = [AtomicU64::new(0), AtomicU64::new(0)];
    thread::scope(|scope| {
        for worker in 0..THREADS {
            let (device, clock, stop, inside, most, used) =
                (&device, &clock, &stop, &inside, &most, &used);
            let principal = worker as usize % 2;
            scope.spawn(move || {
                let cost = [3_000, 7_000][principal];
                while !stop.load(Ordering::SeqCst) {
                    let entry = device
                        .admit(PrincipalId(principal as u32), 0)
                        .expect("a turn");
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    clock.advance(cost / u64::from(PERMITS));
                    let all: u64 = used.iter().map(|used| used.load(Ordering::SeqCst)).sum();
                    // Both have work all the time only once all threads have come.
                    if device.parked() >= THREADS {
                        used[principal].fetch_add(cost, Ordering::SeqCst);
                    }
                    stop.fetch_or(all > 40_000_000, Ordering::SeqCst);
                    // Until all the others wait: a turn given while a thread of one principal is
                    // on its way goes to the other, whatever the weights.
                    until(|| {
                        device.queued() >= THREADS - u64::from(PERMITS)
                            || stop.load(Ordering::SeqCst)
                    });
                    inside.fetch_sub(1, Ordering::SeqCst);
                    device.settle(entry.permit, Cost([cost]));
                }
            });
        }
    });
    assert!(most.into_inner() <= PERMITS);
    let [a, b] = used.map(|used| used.into_inner() as f64);
    assert!((a / b / 3.0 - 1.0).abs() < 0.05, "{a} to {b}");
}

#[test]
fn somebody_asks_when_a_stream_is_given_up() {
    let clock = ManualClock::new(1);
    let device = device(1, &clock);
    let scans = Others {
        linger_ns: 1_000,
        run_ns: 1_000_000_000,
        ..Others::default()
    };
    device.set_others(scans);
    let piece = Terms {
        stream: 1,
        ..Terms::default()
    };
    let held = device.admit_on(A, 0, piece).expect("a turn");
    let other = Arc::clone(&device);
    let waiting = thread::spawn(move || other.admit(B, 0).map(|entry| entry.granted));
    until(|| device.queued() == 1);
    device.settle(held.permit, Cost([1_000]));
    assert_eq!(device.queued(), 1, "the next piece is waited for");
    clock.advance(2_000);
    let granted = waiting.join().expect("ended").expect("a turn");
    assert_eq!(granted, 2_001);
}

/// Says whenever somebody looks at it.
#[derive(Clone)]
struct Watched(ManualClock, Sender<()>);

impl Clock for Watched {
    fn now(&self) -> Nanos {
        let _ = self.1.send(());
        self.0.now()
    }
}

#[test]
fn who_waits_for_a_turn_sleeps_until_it_is_given() {
    let (told, looks) = channel();
    let clock = Watched(ManualClock::new(1), told);
    let device = device(1, &clock);
    let held = device.admit(A, 0).expect("a turn");
    let other = Arc::clone(&device);
    let waiting = thread::spawn(move || other.admit(B, 0).map(|entry| drop(entry.permit)));
    until(|| device.parked() == 1);
    // It looks once more before it falls asleep.
    let mut quiet = (0..10).map(|_| looks.recv_timeout(Duration::from_millis(50)).is_err());
    assert!(quiet.any(|quiet| quiet), "it looks by itself");
    device.settle(held.permit, Cost([1]));
    waiting.join().expect("ended").expect("a turn");
}
