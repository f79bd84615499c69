//! Those who work for a core: its handler stage, and handlers that go from one piece of work to the
//! next without the core.
//!
//! A handler that is done asks the stage itself what is next. So none sleeps while work waits, and
//! none is woken for work that another begins; the stage decides as late as it can, and nothing
//! lies between it and the handlers. The core hears of what is done with its mail, in batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use engine::{Handlers, Latch};
use parking_lot::{Mutex, MutexGuard};
use policy::slo::control::Turn;
use policy::{Cost, Nanos, PrincipalId};
use stage::{Admitted, Next, Permit, Stage, Terms};

use super::apart;
use super::handler::{Job, Task};
use super::help::Reach;
use super::message::{Handled, Message, Worked};
use super::stages::handler_stage;
use super::work::{Attempt, Stopwatch, Work};
use super::Mailbox;
use crate::connection::Ready;
use crate::shared::Shared;

/// A core's handler stage, and what handlers need that work for the core.
pub struct Crew {
    pub(super) shared: Arc<Shared>,
    pub(super) mailbox: Mailbox,
    /// Held for a decision.
    stage: Mutex<Stage<Task, 1>>,
    /// The core has ended, and wants no more of what it has queued.
    ended: AtomicBool,
    /// How many of them keep a processor busy.
    pub(super) reach: Reach,
}

/// What a handler can do without the core.
pub enum Piece {
    /// With the keys latched already, or not.
    Unit(Box<Work>, Option<Latch>),
    Job(Job),
}

/// A piece of work that may begin.
pub struct Granted {
    pub piece: Piece,
    pub permit: Permit,
    pub principal: PrincipalId,
    pub in_credit: bool,
    pub turn: Turn,
}

impl Granted {
    /// Of what the stage has let go. REQUIRES: it is not [`Task::is_for_core`].
    pub fn of(admitted: Admitted<Task, 1>, now: Nanos) -> Self {
        let piece = match admitted.item {
            Task::Run(work) => Piece::Unit(work, None),
            Task::Job(job) => Piece::Job(job),
            Task::Forward(_) | Task::GoOn(_) => unreachable!("the core's to begin"),
        };
        Self {
            piece,
            permit: admitted.permit,
            principal: admitted.principal,
            in_credit: admitted.in_credit,
            turn: turn(admitted.waited_ns, now),
        }
    }
}

/// A turn that was granted `now`.
pub fn turn(waited_ns: Nanos, now: Nanos) -> Turn {
    Turn {
        queued: now.saturating_sub(waited_ns),
        granted: now,
    }
}

/// A crew of which nobody works yet.
pub fn new(shared: &Arc<Shared>, mailbox: &Mailbox) -> Arc<Crew> {
    Arc::new(Crew {
        shared: Arc::clone(shared),
        mailbox: mailbox.clone(),
        stage: Mutex::new(Stage::new(handler_stage(shared))),
        ended: AtomicBool::new(false),
        reach: Reach::default(),
    })
}

impl Crew {
    /// The stage, for a look or a change.
    pub fn stage(&self) -> MutexGuard<'_, Stage<Task, 1>> {
        self.stage.lock()
    }

    /// Queues a task. `false`: there is no room, or no such principal.
    pub fn enqueue(&self, principal: PrincipalId, class: u8, terms: Terms, task: Task) -> bool {
        let mut stage = self.stage();
        let now = self.shared.options.clock.now();
        stage.enqueue_on(now, principal, class, terms, task).is_ok()
    }

    /// A permit is given back after work that took so long.
    pub fn settle(&self, permit: Permit, service_ns: Nanos) {
        let mut stage = self.stage();
        let now = self.shared.options.clock.now();
        stage.settle(now, permit, Cost([service_ns]));
    }

    /// No handler begins anything more.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Has a handler begin with a piece of work.
    pub fn submit(self: &Arc<Self>, granted: Granted) {
        let crew = Arc::clone(self);
        self.threads(granted.in_credit)
            .submit(Box::new(move || crew.work(granted)));
    }

    /// The threads that run what was granted.
    fn threads(&self, in_credit: bool) -> &Handlers {
        match in_credit {
            true => self.shared.engine.first_handlers(),
            false => self.shared.engine.handlers(),
        }
    }

    /// Whether somebody waits for a handler, of this core or of one that has lent it permits.
    pub(super) fn wanted(&self) -> bool {
        let stage = self.stage();
        stage.queued() > 0 || stage.overdrawn()
    }

    /// Pieces of work that are with handlers, of all cores.
    pub(super) fn out(&self) -> usize {
        let pools = [self.threads(true), self.threads(false)];
        pools.map(Handlers::jobs).iter().sum()
    }

    /// Works, on a handler, as long as the stage has work for this kind of handler.
    fn work(self: &Arc<Self>, first: Granted) {
        let mut watch = Stopwatch::start(&self.shared);
        let mut next = Some(first);
        while let Some(granted) = next {
            next = self.run(granted, &mut watch);
            threads::turns::end();
        }
    }

    /// Does a piece of work, and returns the next. What the handler does between two pieces is
    /// counted with the second.
    fn run(self: &Arc<Self>, granted: Granted, watch: &mut Stopwatch) -> Option<Granted> {
        let Granted {
            piece,
            permit,
            principal,
            in_credit,
            turn,
        } = granted;
        let (began, then) = match piece {
            Piece::Job(job) => (None, job(&self.shared)),
            Piece::Unit(work, latch) => {
                let key = work.key;
                let ready = match work.attempt(latch, watch, self) {
                    Attempt::Finished(finished) => Ready::Finished(Box::new(finished)),
                    Attempt::Waits(unit) => Ready::Waits(unit),
                    Attempt::Long(work, latch) => {
                        apart::begin(*work, permit, latch, watch.began(), turn, self);
                        return None;
                    }
                };
                (Some(turn), Some((key, ready)))
            }
        };
        let worked = watch.lap(&self.shared);
        let next = self.done(permit, worked, in_credit);
        let handled = Box::new(Handled {
            principal,
            worked,
            turn: began,
            then,
        });
        let message = Message::Handled(handled);
        match in_credit {
            true => self.mailbox.send(message),
            false => self.mailbox.send_soon(message),
        }
        next
    }

    /// Gives a permit back. Of what may begin now, what is for this kind of handler is returned, as
    /// long as nobody else waits for one, and what is not goes to others.
    fn done(self: &Arc<Self>, permit: Permit, worked: Worked, first: bool) -> Option<Granted> {
        let mut done = Some(permit);
        loop {
            let mut stage = self.stage();
            let now = self.shared.options.clock.now();
            if let Some(permit) = done.take() {
                stage.settle(now, permit, Cost([worked.service_ns]));
                // Other cores have as many out as this one, or nothing is known of them: alone it
                // has been if all that is out is its own, which is still counted.
                let others = stage.in_flight();
                if others > 0 || self.out() <= 1 {
                    self.reach.learn(worked, others);
                }
            }
            // Before an engine the stage holds what only the core can send.
            if self.shared.upstream.is_some() || self.ended.load(Ordering::Acquire) {
                return None;
            }
            let Next::Admitted(admitted) = stage.next(now) else {
                return None;
            };
            drop(stage);
            if admitted.item.is_for_core() {
                self.mailbox.send(Message::Granted(Box::new(admitted)));
                continue;
            }
            let next = Granted::of(admitted, now);
            if next.in_credit == first && !self.threads(first).wanted() {
                return Some(next);
            }
            self.submit(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::tests::shared;
    use crate::tenants::ConnectionKey;
    use mio::Poll;
    use stage::{Allocation, Discipline, DispatchOptions};
    use std::sync::mpsc::{channel, Receiver, Sender};

    const KEY: ConnectionKey = ConnectionKey {
        index: 3,
        generation: 0,
    };

    /// A crew with work of two tenants, of which one piece may be under way. Each piece says
    /// that it has begun and waits until it may go on.
    struct Trial {
        crew: Arc<Crew>,
        told: Receiver<usize>,
        go_on: Vec<Sender<()>>,
        _poll: Poll,
        _directory: tempfile::TempDir,
    }

    /// Lets one piece of work of two tenants go at a time, in an order that is not that in which
    /// they came.
    fn narrow<T>() -> Stage<T, 1> {
        let mut stage = Stage::new(DispatchOptions {
            discipline: Discipline::Lottery,
            seed: 1,
            ..DispatchOptions::handlers(1)
        });
        for id in 0..2 {
            stage.configure(0, PrincipalId(id), &Allocation::share(1.0));
        }
        stage
    }

    fn trial(whose: &[u32]) -> Trial {
        let directory = tempfile::tempdir().expect("a directory");
        let shared = Arc::new(shared(directory.path(), &[]));
        let poll = Poll::new().expect("a poll");
        let crew = new(&shared, &Mailbox::new(&poll).expect("a mailbox"));
        *crew.stage() = narrow();
        let (say, told) = channel();
        let mut go_on = Vec::new();
        for (place, &id) in whose.iter().enumerate() {
            let ((go, may_go), say) = (channel(), say.clone());
            let job = move |_: &Arc<Shared>| {
                let _ = say.send(place);
                let _ = may_go.recv();
                None
            };
            let task = Task::Job(Box::new(job));
            assert!(crew.enqueue(PrincipalId(id), 0, Terms::default(), task));
            go_on.push(go);
        }
        Trial {
            crew,
            told,
            go_on,
            _poll: poll,
            _directory: directory,
        }
    }

    impl Trial {
        /// What a core does once, for all that it may.
        fn release(&self) {
            loop {
                let next = self.crew.stage().next(0);
                let Next::Admitted(admitted) = next else {
                    return;
                };
                self.crew.submit(Granted::of(admitted, 0));
            }
        }

        fn mail(&self) -> Message {
            loop {
                match self.crew.mailbox.take() {
                    Some(message) => return message,
                    None => std::thread::yield_now(),
                }
            }
        }
    }

    /// The order in which a stage lets work go of which one piece is under way.
    fn order(whose: &[u32]) -> Vec<u32> {
        let mut stage = narrow();
        for &id in whose {
            let queued = stage.enqueue(0, PrincipalId(id), 0, id);
            assert!(queued.is_ok());
        }
        let next = || match stage.next(0) {
            Next::Admitted(admitted) => {
                stage.settle(0, admitted.permit, Cost([0]));
                Some(admitted.item)
            }
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn handlers_go_on_without_their_core_in_the_order_of_the_stage() {
        let whose = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1];
        let trial = trial(&whose);
        trial.release();
        let mut begun = Vec::new();
        for _ in &whose {
            let place = trial.told.recv().expect("the next");
            begun.push(whose[place]);
            assert!(trial.told.try_recv().is_err(), "one may be under way");
            assert_eq!(trial.crew.stage().in_flight(), 1);
            let _ = trial.go_on[place].send(());
            assert!(matches!(trial.mail(), Message::Handled(_)));
        }
        assert_eq!(begun, order(&whose));
        assert_ne!(begun, whose, "arrival order would be no test");
        assert_eq!(trial.crew.stage().in_flight(), 0);
    }

    #[test]
    fn what_only_the_core_can_begin_is_left_to_it() {
        let trial = trial(&[0]);
        let (terms, task) = (Terms::default(), Task::GoOn(KEY));
        assert!(trial.crew.enqueue(PrincipalId(0), 0, terms, task));
        trial.release();
        let _ = trial.go_on[0].send(());
        let mail = [trial.mail(), trial.mail()];
        let granted = mail.into_iter().find_map(|message| match message {
            Message::Granted(admitted) => Some(admitted.item),
            _ => None,
        });
        assert!(matches!(granted, Some(Task::GoOn(key)) if key == KEY));
    }

    #[test]
    fn nothing_more_is_begun_for_a_core_that_has_ended() {
        let trial = trial(&[0, 0]);
        trial.release();
        assert_eq!(trial.told.recv(), Ok(0));
        trial.crew.end();
        let _ = trial.go_on[0].send(());
        assert!(matches!(trial.mail(), Message::Handled(_)));
        assert_eq!(trial.crew.stage().queued(), 1);
        assert!(trial.told.try_recv().is_err());
    }
}
