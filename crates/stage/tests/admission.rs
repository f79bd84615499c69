//! Awaiting a turn, driven by hand: no runtime, no clock that runs by itself.

use stage::admission::{Admission, Admit, Rejected, Turn};
use stage::{Allocation, Cost, DispatchOptions, Limit, ManualClock, Meter, PrincipalId, Verdict};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

const A: PrincipalId = PrincipalId(0);
const B: PrincipalId = PrincipalId(1);

type Here = Admission<1, ManualClock>;

fn admission(permits: u32) -> (Here, ManualClock) {
    let mut options = DispatchOptions::new(
        [1_000_000],
        Meter {
            requests: 0,
            bytes: [false],
        },
    );
    options.permits = permits;
    options.queue_max = 2;
    let clock = ManualClock::default();
    let admission = Admission::new(options, 1, clock.clone(), (), None);
    admission.configure(A, &Allocation::default());
    admission.configure(B, &Allocation::default());
    (admission, clock)
}

/// A task: its future, and how often it was woken.
struct Task {
    future: Pin<Box<Admit<1, ManualClock, ()>>>,
    woken: Arc<Count>,
}

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Task {
    fn new(admission: &Here, principal: PrincipalId) -> Self {
        let future = Box::pin(admission.admit(principal, 0));
        Task {
            future,
            woken: Arc::default(),
        }
    }

    fn poll(&mut self) -> Option<Result<Turn<1, ManualClock, ()>, Rejected>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    fn turn(&mut self) -> Turn<1, ManualClock, ()> {
        self.poll().expect("ready").expect("admitted")
    }

    fn woken(&self) -> u32 {
        self.woken.0.load(Ordering::SeqCst)
    }
}

#[test]
fn a_free_permit_is_had_at_once_and_the_next_waits_for_it() {
    let (admission, clock) = admission(1);
    let (mut first, mut second) = (Task::new(&admission, A), Task::new(&admission, B));
    let turn = first.turn();
    assert!(second.poll().is_none());
    clock.advance(500);
    assert_eq!(second.woken(), 0);
    turn.settle(Cost([3]));
    assert_eq!(second.woken(), 1);
    let turn = second.turn();
    assert_eq!((turn.waited_ns, turn.verdict), (500, Verdict::Serve));
    turn.settle(Cost([1]));
    assert_eq!(admission.in_flight(), 0);
    let totals = admission.observe_class(B, 0).expect("known");
    assert_eq!((totals.settled, totals.waited_ns), (1, 500));
}

#[test]
fn a_cancelled_wait_takes_no_turn() {
    let (admission, _) = admission(1);
    let mut tasks: Vec<_> = [A, A, B].map(|p| Task::new(&admission, p)).into();
    let turn = tasks[0].turn();
    assert!(tasks[1].poll().is_none() && tasks[2].poll().is_none());
    // One leaves while it waits, one after it was granted and before it looked.
    drop(tasks.remove(1));
    turn.settle(Cost([1]));
    assert_eq!(tasks[1].woken(), 1);
    drop(tasks.pop());
    assert_eq!(admission.in_flight(), 0);
    assert!(Task::new(&admission, A).poll().is_some());
}

#[test]
fn a_dropped_turn_lets_the_next_one_in() {
    let (admission, _) = admission(1);
    let (mut first, mut second) = (Task::new(&admission, A), Task::new(&admission, A));
    let turn = first.turn();
    assert!(second.poll().is_none());
    drop(turn);
    assert_eq!(second.woken(), 1);
    let permit = second.turn().into_permit().expect("not settled");
    let permit = std::thread::spawn(move || permit).join().expect("no panic");
    admission.settle(permit, Cost([1]));
    assert_eq!(admission.in_flight(), 0);
}

#[test]
fn full_queues_and_removed_principals() {
    let (admission, _) = admission(1);
    let mut first = Task::new(&admission, A);
    let turn = first.turn();
    let mut waiting: Vec<_> = (0..3).map(|_| Task::new(&admission, A)).collect();
    assert!(waiting[0].poll().is_none() && waiting[1].poll().is_none());
    assert!(matches!(waiting[2].poll(), Some(Err(Rejected::Full))));
    admission.remove(A);
    assert_eq!(waiting[0].woken(), 1);
    assert!(matches!(waiting[0].poll(), Some(Err(Rejected::Removed))));
    assert!(matches!(
        Task::new(&admission, A).poll(),
        Some(Err(Rejected::Full))
    ));
    drop(turn);
    assert_eq!(admission.in_flight(), 0);
}

#[test]
fn the_pump_says_when_to_come_back() {
    let (admission, clock) = admission(4);
    clock.advance(1_000_000_000);
    let limit = Limit {
        requests_per_s: Some(1000.0),
        burst_ns: 0,
        max_wait_ns: 1_000_000_000,
        ..Limit::default()
    };
    admission.configure(
        A,
        &Allocation {
            limit,
            ..Allocation::default()
        },
    );
    Task::new(&admission, A).turn().settle(Cost([2]));
    let mut task = Task::new(&admission, A);
    assert!(task.poll().is_none());
    assert_eq!(admission.pump(), Some(1_002_000_000));
    clock.advance(2_000_000);
    assert_eq!(admission.pump(), None);
    assert_eq!(task.woken(), 1);
    assert_eq!(task.turn().waited_ns, 2_000_000);
}
