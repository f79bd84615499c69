//! The thread that a command runs on.

use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

use engine::device::tagged;
use engine::{Access, EngineError, GoOn, Keys, Keyspace, Latch, Seq, Site, Stop};
use parking_lot::Mutex;
use policy::slo::control::Turn;
use policy::{Nanos, PrincipalId};
use resp::{Output, Reply};
use stage::{Permit, Terms};

use crate::connection::{Finished, Piece, Ready, Then, Until};
use crate::core::{
    crew::Crew,
    message::{Handled, Message, Worked},
    work::{Stopwatch, Work},
    Mailbox,
};
use crate::device::{on_terms, tag_of, waits};
use crate::tenants::{ConnectionKey, Ending, Passes};
use crate::unit::{level_apart, Told, Trace};

/// Work after which a command gives its permit back, for others to get in between: about what a
/// piece takes, and a hundred times what going round the stage costs.
const STRETCH_NS: Nanos = 5_000_000;

/// Goes on with `work` on a thread of its own; or has it wait, without its keys, until there may be
/// one more of those. A handler has worked on it since `began`, under `latch`, or nobody has.
pub fn begin(
    mut work: Work,
    permit: Permit,
    latch: Option<Latch>,
    began: Nanos,
    turn: Turn,
    crew: &Arc<Crew>,
) {
    let shared = &crew.shared;
    let reads = work.unit.only_reads();
    let (own, common) = (work.tenant.apart.of(reads), shared.apart.of(reads));
    let principal = work.tenant.id;
    work.terms.level = level_apart(work.terms.level);
    if !work.unit.passes.enter(own, common) {
        drop(latch);
        let worked = Worked {
            service_ns: shared.options.clock.now() - began,
            cpu_ns: 0,
        };
        let then = (work.key, Ready::Crowded(work.unit));
        return gave_back(crew, permit, principal, worked, Some(turn), then);
    }
    let (go, gone_on) = channel();
    let maker = Maker {
        key: work.key,
        principal,
        reads,
        crew: Arc::clone(crew),
        turn: Some(turn),
        first: Some(go),
        gone_on,
        class: permit.class(),
        level: work.terms.level,
        permit: Some(permit),
        watch: Stopwatch::of_another(began),
    };
    let make = move || maker.make(work, latch);
    shared.engine.streams().submit(Box::new(make));
}

/// The thread's side.
struct Maker {
    key: ConnectionKey,
    principal: PrincipalId,
    reads: bool,
    crew: Arc<Crew>,
    /// The turn that it began with, until its connection is told.
    turn: Option<Turn>,
    first: Option<Sender<Permit>>,
    gone_on: Receiver<Permit>,
    class: u8,
    level: u8,
    /// None: nobody waits for the reply any more.
    permit: Option<Permit>,
    watch: Stopwatch,
}

impl Maker {
    fn make(mut self, mut work: Work, latch: Option<Latch>) {
        let (shared, began) = (Arc::clone(&self.crew.shared), self.watch.began());
        self.watch.goes_on_here(&shared);
        let Some(latch) = self.latch(&mut work, latch) else {
            return self.give_back(work);
        };
        // Until the end: it may wait for its client at any time.
        let leave = leave(&work, self.crew.mailbox.clone());
        if let Some(keyspace) = &work.keyspace {
            keyspace.stays_until_told(&leave);
        }
        // Those of what the thread did before.
        let _ = waits();
        let mut trace = Trace::new(&*shared.options.clock);
        let maker = Arc::new(Mutex::new(self));
        let (mut output, result) = run(&work, latch, &mut trace, &maker);
        let empty = Output::new().mark();
        let (told, seq) = match result {
            Ok(done) => done,
            Err(EngineError::Abandoned) => return,
            Err(EngineError::Full) => {
                maker.lock().wait_for_room(&work);
                return maker.lock().give_back(work);
            }
            Err(error) => {
                output.rollback(empty);
                let text = shared.told(&work.tenant, &error);
                Reply::new(&mut output, work.protocol).error(&text);
                Default::default()
            }
        };
        let ending = Ending::of(output.since(empty));
        let (rest, whole) = output.end_stream();
        let service_ns = shared.options.clock.now() - began;
        work.note_if_slow(service_ns, &shared);
        let finished = Finished {
            output: rest,
            seq,
            class: work.unit.class,
            service_ns,
            waits: waits(),
            ending,
            failed: trace.count(&work.tenant.calls, work.core),
            told,
        };
        // Its passes are free before the client knows that it has its reply.
        drop(work);
        let then = match whole {
            true => Then::Finish(Box::new(finished)),
            false => Then::Tear,
        };
        maker.lock().hand_over(Output::new(), then);
    }

    /// The latch that the work needs, if it needs one; the outer `None`: somebody else has its
    /// keys, and its connection is told when that is over.
    fn latch(&self, work: &mut Work, latch: Option<Latch>) -> Option<Option<Latch>> {
        let Some(keyspace) = &work.keyspace else {
            return Some(None);
        };
        if work.unit.only_reads() {
            // Its database must be open all the same.
            drop(latch);
            return keyspace.latch(&Keys::None, self.look_again()).map(|_| None);
        }
        if latch.is_some() {
            return Some(latch);
        }
        work.unit.latch(keyspace, self.look_again()).map(Some)
    }

    fn wait_for_room(&self, work: &Work) {
        let keyspace = work.keyspace.as_ref();
        if !keyspace.is_some_and(|keyspace| keyspace.wait_room(self.look_again())) {
            self.look_again()();
        }
    }

    fn look_again(&self) -> engine::Waiter {
        let (mailbox, key) = (self.crew.mailbox.clone(), self.key);
        Box::new(move || mailbox.send(Message::Ready(key, Ready::Look)))
    }

    /// Ends without having done the work, which begins again when its connection is told.
    fn give_back(&mut self, mut work: Work) {
        work.unit.passes = Passes::default();
        if let Some(permit) = self.permit.take() {
            self.send(permit, Ready::Waits(work.unit));
        }
    }

    /// Gives a permit back, with what came of it.
    fn send(&mut self, permit: Permit, ready: Ready) {
        let (worked, turn) = (self.watch.read(&self.crew.shared), self.turn.take());
        let then = (self.key, ready);
        gave_back(&self.crew, permit, self.principal, worked, turn, then);
    }

    /// Whether anybody waits for the rest of the command. After a stretch of work it is not known
    /// before the stage lets the tenant go on.
    fn go_on(&mut self) -> bool {
        let worked_ns = self.watch.read(&self.crew.shared).service_ns;
        if self.permit.is_some() && worked_ns >= STRETCH_NS {
            self.hand_over(Output::new(), Then::GoOn(Until::Now));
        }
        self.permit.is_some()
    }

    /// Gives a piece to the connection and, unless it was the last, waits for leave to make the
    /// next.
    fn hand_over(&mut self, output: Output, then: Then) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        let last = !matches!(then, Then::GoOn(..));
        let piece = Piece {
            output,
            go: self.first.take(),
            class: self.class,
            level: self.level,
            reads: self.reads,
            then,
        };
        self.send(permit, Ready::Piece(Box::new(piece)));
        if last {
            return;
        }
        if let Ok(permit) = self.gone_on.recv() {
            self.permit = Some(permit);
            self.watch = Stopwatch::start(&self.crew.shared);
        }
    }
}

/// A permit is free again, and the core, which grants it, is told what came of it.
fn gave_back(
    crew: &Crew,
    permit: Permit,
    principal: PrincipalId,
    worked: Worked,
    turn: Option<Turn>,
    then: (ConnectionKey, Ready),
) {
    crew.settle(permit, worked.service_ns);
    let handled = Handled {
        principal,
        worked,
        turn,
        then: Some(then),
    };
    crew.mailbox.send(Message::Handled(Box::new(handled)));
}

/// How this is ended when its tenant's writes have failed and the database is wanted: its
/// connection is closed, and that ends the thread, wherever it is.
fn leave(work: &Work, mailbox: Mailbox) -> Arc<dyn Fn() + Send + Sync> {
    let (client, tenant, key) = (Arc::clone(&work.client), Arc::clone(&work.tenant), work.key);
    Arc::new(move || {
        tracing::info!(
            tenant = tenant.name,
            client = client.id,
            "closed: its large reply keeps the database open, which must be opened again because writes fail"
        );
        mailbox.send(Message::Ready(key, Ready::Killed));
    })
}

/// Runs the command, with its reply into the output that is returned.
fn run(
    work: &Work,
    latch: Option<Latch>,
    trace: &mut Trace<'_>,
    maker: &Arc<Mutex<Maker>>,
) -> (Output, Result<(Told, Seq), EngineError>) {
    let shared = Arc::clone(&maker.lock().crew.shared);
    let (unit, now_ms) = (&work.unit, (shared.options.wall_ms)());
    let _tagged = tagged(tag_of(unit.class));
    // What takes this long has no due time for each of its I/Os.
    let terms = Terms {
        due_at: None,
        ..work.terms
    };
    let _on_terms = on_terms(terms, shared.options.disk.stage());
    let sink = Arc::clone(maker);
    let mut output = Output::streamed(Box::new(move |piece| {
        sink.lock().hand_over(piece, Then::GoOn(Until::Taken));
    }));
    let Some(keyspace) = &work.keyspace else {
        let with = work.surroundings(now_ms, trace, &shared);
        let ended = unit.run(None, &mut output, with);
        let ended = ended.map_err(|_| EngineError::Misuse("a unit without data was stopped"));
        return (output, ended.map(|told| (told, 0)));
    };
    let Some(latch) = latch else {
        let shows = unit.shows.unwrap_or_else(|| keyspace.last_seq());
        if shows > keyspace.committed() {
            // It waits for that without a permit.
            let until = Until::Committed(shows);
            maker.lock().hand_over(Output::new(), Then::GoOn(until));
        }
        let read = &mut |access: &mut Access<'_>| {
            access.go_on_if(go_on(maker));
            let mut with = work.surroundings(now_ms, trace, &shared);
            with.context.held_bytes_max = usize::MAX;
            unit.run(Some(access), &mut output, with)
        };
        let ended = keyspace.scan(shows, Site::Apart, now_ms, read);
        return (output, ended.map(|told| (told, 0)));
    };
    let (mut kept, empty) = (Output::new(), Output::new().mark());
    let effect = &mut |access: &mut Access<'_>| {
        access.go_on_if(go_on(maker));
        kept.rollback(empty);
        let with = work.surroundings(now_ms, trace, &shared);
        unit.run(Some(access), &mut kept, with)
    };
    match keyspace.run(&latch, Site::Apart, now_ms, effect) {
        Err(EngineError::Large) => {}
        ended => return (kept, ended),
    }
    let ended = run_twice(work, keyspace, latch, now_ms, trace, &mut output, maker);
    (output, ended.map(|told| (told, 0)))
}

/// How a command apart asks whether it may go on.
fn go_on(maker: &Arc<Mutex<Maker>>) -> Option<GoOn> {
    let maker = Arc::clone(maker);
    Some(Box::new(move || maker.lock().go_on()))
}

/// Runs a command that writes, and whose replies are too large to be kept until it is done.
fn run_twice(
    work: &Work,
    keyspace: &Arc<Keyspace>,
    latch: Latch,
    now_ms: u64,
    trace: &mut Trace<'_>,
    output: &mut Output,
    maker: &Arc<Mutex<Maker>>,
) -> Result<Told, EngineError> {
    let shared = Arc::clone(&maker.lock().crew.shared);
    let mut answer = |access: &mut Access<'_>, outdated: bool, output: &mut Output| {
        access.go_on_if(go_on(maker));
        let mut with = work.surroundings(now_ms, trace, &shared);
        with.context.held_bytes_max = usize::MAX;
        work.unit.answer(outdated, Some(access), output, with)
    };
    let answer = std::cell::RefCell::new(&mut answer);
    keyspace.run_twice(
        latch,
        now_ms,
        &mut |access| -> Result<bool, Stop> {
            let mut unseen = Output::unseen();
            let outdated = work.unit.outdated(access.now_ms());
            (answer.borrow_mut())(access, outdated, &mut unseen)?;
            Ok(outdated)
        },
        &mut |seq| {
            let mut maker = maker.lock();
            maker.hand_over(Output::new(), Then::GoOn(Until::Committed(seq)));
            maker.permit.is_some()
        },
        &mut |access, outdated| (answer.borrow_mut())(access, outdated, output),
    )
}
