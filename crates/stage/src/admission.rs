//! Admission to await: `admission.admit(principal, class).await`.
//!
//! A thin adapter over [`Stage::next`], which stays the one place where a turn is granted. A waiting task
//! is an item in the stage whose grant is put where the task will find it, and the task is woken. It knows no
//! runtime: whoever owns the thread calls [`Admission::pump`] when the time it returned has come, and
//! everything else that can change an answer pumps by itself.

use crate::stage::{Admitted, Next, Stage};
use crate::{
    Allocation, ClassTotals, Clock, Cost, DispatchOptions, Nanos, Observer, Permit, PrincipalId,
    Verdict, Wake,
};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Why a task was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// Its principal's queue is full, or the principal is unknown.
    Full,
    /// The principal was removed while it waited.
    Removed,
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Rejected::Full => "the principal's queue is full",
            Rejected::Removed => "the principal was removed",
        })
    }
}

impl std::error::Error for Rejected {}

/// Where a waiting task finds its grant.
#[derive(Debug)]
struct Seat<const R: usize>(RefCell<Waiting<R>>);

#[derive(Debug)]
enum Waiting<const R: usize> {
    Queued(Waker),
    Granted(Admitted<(), R>),
    Removed,
    /// The task has taken its grant, or is gone.
    Left,
}

impl<const R: usize> Seat<R> {
    /// Puts an answer where the task will look, and wakes it; gives the answer back if it has left.
    fn answer(&self, answer: Waiting<R>) -> Option<Waiting<R>> {
        let mut state = self.0.borrow_mut();
        let Waiting::Queued(waker) = &*state else {
            return Some(answer);
        };
        let waker = waker.clone();
        *state = answer;
        // A waker may run the task at once.
        drop(state);
        waker.wake();
        None
    }
}

#[derive(Debug)]
struct Inner<const R: usize, C, O> {
    stage: RefCell<Stage<Rc<Seat<R>>, R, O>>,
    clock: C,
}

/// A stage whose tasks await their turn. Cheap to clone; clones are the same stage. It stays on its thread;
/// permits may leave it.
#[derive(Debug)]
pub struct Admission<const R: usize, C, O = ()>(Rc<Inner<R, C, O>>);

impl<const R: usize, C, O> Clone for Admission<R, C, O> {
    fn clone(&self) -> Self {
        Admission(Rc::clone(&self.0))
    }
}

impl<const R: usize, C: Clock, O: Observer> Admission<R, C, O> {
    /// A stage as by [`Stage::new`]. `wake` is called when a permit was dropped on another thread; the
    /// stage's thread should then pump.
    ///
    /// # Panics
    /// As [`Stage::new`] does.
    #[must_use]
    pub fn new(
        options: DispatchOptions<R>,
        classes: usize,
        clock: C,
        observer: O,
        wake: Option<Wake>,
    ) -> Self {
        let mut stage = Stage::new(options, classes, observer);
        if let Some(wake) = wake {
            stage = stage.with_wake(wake);
        }
        let stage = RefCell::new(stage);
        Admission(Rc::new(Inner { stage, clock }))
    }

    /// See [`Stage::configure`].
    pub fn configure(&self, principal: PrincipalId, allocation: &Allocation) {
        let now = self.0.clock.now();
        self.0
            .stage
            .borrow_mut()
            .configure(now, principal, allocation);
        self.pump();
    }

    /// Forgets a principal; its waiting tasks are told so.
    pub fn remove(&self, principal: PrincipalId) {
        let now = self.0.clock.now();
        let seats = self.0.stage.borrow_mut().remove(now, principal);
        for seat in seats {
            seat.answer(Waiting::Removed);
        }
        self.pump();
    }

    /// Waits for a turn. A future that is dropped has left the queue as far as anybody can tell.
    pub fn admit(&self, principal: PrincipalId, class: u8) -> Admit<R, C, O> {
        Admit {
            admission: self.clone(),
            principal,
            class,
            seat: None,
        }
    }

    /// Ends a turn whose permit went elsewhere and came back; see [`Stage::settle`].
    pub fn settle(&self, permit: Permit, actual: Cost<R>) {
        let now = self.0.clock.now();
        self.0.stage.borrow_mut().settle(now, permit, actual);
        self.pump();
    }

    /// Hands out what can be granted now. Returns when to pump again even if nothing happens before;
    /// `None`: only if something does.
    pub fn pump(&self) -> Option<Nanos> {
        loop {
            let now = self.0.clock.now();
            // Bound here, so that the stage is free again before a task is woken.
            let next = self.0.stage.borrow_mut().next(now);
            let admitted = match next {
                Next::At(at) => return Some(at),
                Next::Idle => return None,
                Next::Admitted(admitted) => admitted,
            };
            let (seat, entry) = admitted.split();
            if let Some(Waiting::Granted(entry)) = seat.answer(Waiting::Granted(entry)) {
                // It was cancelled while it waited, and has used nothing.
                self.0
                    .stage
                    .borrow_mut()
                    .settle(now, entry.permit, Cost::ZERO);
            }
        }
    }

    /// See [`Stage::observe_class`].
    #[must_use]
    pub fn observe_class(&self, principal: PrincipalId, class: u8) -> Option<ClassTotals> {
        let now = self.0.clock.now();
        self.0.stage.borrow().observe_class(now, principal, class)
    }

    /// Permits out; see [`Stage::in_flight`].
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.0.stage.borrow().in_flight()
    }
}

/// A task waiting for its turn; made by [`Admission::admit`]. It queues when first polled.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Admit<const R: usize, C: Clock, O: Observer> {
    admission: Admission<R, C, O>,
    principal: PrincipalId,
    class: u8,
    seat: Option<Rc<Seat<R>>>,
}

impl<const R: usize, C: Clock, O: Observer> Future for Admit<R, C, O> {
    type Output = Result<Turn<R, C, O>, Rejected>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let seat = match &self.seat {
            Some(seat) => Rc::clone(seat),
            None => {
                let seat = Rc::new(Seat(RefCell::new(Waiting::Queued(context.waker().clone()))));
                let inner = &self.admission.0;
                let now = inner.clock.now();
                let mut stage = inner.stage.borrow_mut();
                let taken = stage.admit(now, self.principal, self.class, Rc::clone(&seat));
                drop(stage);
                if taken.is_err() {
                    return Poll::Ready(Err(Rejected::Full));
                }
                self.seat = Some(Rc::clone(&seat));
                self.admission.pump();
                seat
            }
        };
        let mut state = seat.0.borrow_mut();
        match std::mem::replace(&mut *state, Waiting::Left) {
            Waiting::Queued(_) => {
                *state = Waiting::Queued(context.waker().clone());
                Poll::Pending
            }
            Waiting::Granted(entry) => Poll::Ready(Ok(Turn {
                waited_ns: entry.waited_ns,
                budget: entry.budget,
                verdict: entry.verdict,
                permit: Some(entry.permit),
                admission: self.admission.clone(),
            })),
            Waiting::Removed | Waiting::Left => Poll::Ready(Err(Rejected::Removed)),
        }
    }
}

impl<const R: usize, C: Clock, O: Observer> Drop for Admit<R, C, O> {
    fn drop(&mut self) {
        let Some(seat) = self.seat.take() else { return };
        let state = std::mem::replace(&mut *seat.0.borrow_mut(), Waiting::Left);
        if let Waiting::Granted(entry) = state {
            self.admission.settle(entry.permit, Cost::ZERO);
        }
    }
}

/// A task's turn. Settle it with [`Turn::settle`]; dropped, it ends at its estimate.
#[derive(Debug)]
pub struct Turn<const R: usize, C: Clock, O: Observer> {
    /// How long the task waited, in nanoseconds.
    pub waited_ns: Nanos,
    /// How much of each resource the turn may use.
    pub budget: Cost<R>,
    /// Serve or refuse.
    pub verdict: Verdict,
    permit: Option<Permit>,
    admission: Admission<R, C, O>,
}

impl<const R: usize, C: Clock, O: Observer> Turn<R, C, O> {
    /// Ends the turn; it used `actual`.
    pub fn settle(mut self, actual: Cost<R>) {
        if let Some(permit) = self.permit.take() {
            self.admission.settle(permit, actual);
        }
    }

    /// The bare permit, for work that goes on elsewhere; bring it back to [`Admission::settle`].
    #[must_use]
    pub fn into_permit(mut self) -> Option<Permit> {
        self.permit.take()
    }
}

impl<const R: usize, C: Clock, O: Observer> Drop for Turn<R, C, O> {
    fn drop(&mut self) {
        if self.permit.take().is_some() {
            self.admission.pump();
        }
    }
}
