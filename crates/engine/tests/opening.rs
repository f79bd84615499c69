//! A database is opened once, whoever asks, and nobody else waits for that on the threads that they
//! need.

mod common;

use common::{close, engine, get, set, small};
use engine::device::{
    on_terms, terms, Activity, DeviceHook, DeviceIo, DeviceStage, Ended, Fault, Terms,
};
use engine::{Database, EngineError, Keys, KeyspaceOptions, Sync};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Beyond this a test has failed: what it waits for does not come.
const NEVER: Duration = Duration::from_secs(60);

/// Holds up what is read to open a database, or has it fail.
#[derive(Default)]
struct Openings {
    /// Held, and how many wait.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
    fail: Mutex<bool>,
    /// When each was due.
    due: Mutex<Vec<Option<u64>>>,
}

impl Openings {
    fn hold(&self, held: bool) {
        self.state.lock().0 = held;
        self.changed.notify_all();
    }

    fn wait(&self, wanted: usize) {
        let mut state = self.state.lock();
        self.changed
            .wait_while(&mut state, |state| state.1 < wanted);
    }
}

impl DeviceStage for Openings {
    fn fault(&self, io: &DeviceIo) -> Option<Fault> {
        (io.activity == Activity::Open && *self.fail.lock()).then_some(Fault::Failed)
    }

    fn begin(&self, io: &DeviceIo) -> u64 {
        if io.activity == Activity::Open {
            self.due.lock().push(terms().due_at);
            let mut state = self.state.lock();
            state.1 += 1;
            self.changed.notify_all();
            self.changed.wait_while(&mut state, |state| state.0);
            state.1 -= 1;
        }
        0
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

fn options(openings: &Arc<Openings>) -> KeyspaceOptions {
    let mut options = small(Sync::Never);
    options.device = Some(DeviceHook {
        stage: Arc::clone(openings) as Arc<dyn DeviceStage>,
        principal: 1,
    });
    options
}

/// Three hundred clients of a database that does not open.
const ASKERS: usize = 300;

#[test]
fn many_who_ask_are_told_of_one_try() {
    let dir = tempfile::tempdir().unwrap();
    let first = engine(dir.path());
    set(
        &first.keyspace("t", small(Sync::Always)).unwrap(),
        b"k",
        b"v",
    )
    .unwrap();
    first.shutdown();
    drop(first);
    let engine = engine(dir.path());
    let openings = Arc::new(Openings::default());
    *openings.fail.lock() = true;
    openings.hold(true);
    let tries = Arc::new(AtomicU32::new(0));
    let (tell, told) = channel();
    let ask = || {
        let (tries, tell, openings) = (Arc::clone(&tries), tell.clone(), Arc::clone(&openings));
        let options = move || {
            tries.fetch_add(1, Ordering::SeqCst);
            options(&openings)
        };
        engine.open_keyspace("t", options, move |opened| tell.send(opened).unwrap());
    };
    let begun = Instant::now();
    // Some join the try that is under way, and some come after it.
    (0..ASKERS / 2).for_each(|_| ask());
    openings.wait(1);
    assert!(told.try_recv().is_err(), "nothing is known yet");
    openings.hold(false);
    for number in 0..ASKERS {
        let opened = told.recv_timeout(NEVER).expect("told");
        assert!(matches!(opened, Err(EngineError::Open { .. })));
        if (ASKERS / 2 - 1..ASKERS - 1).contains(&number) {
            ask();
        }
    }
    // The first pause is a second.
    let most = 1 + begun.elapsed().as_secs();
    assert!(u64::from(tries.load(Ordering::SeqCst)) <= most);

    // It is tried again by itself once somebody asks after a while.
    *openings.fail.lock() = false;
    let keyspace = loop {
        ask();
        match told.recv_timeout(NEVER).expect("told") {
            Ok(keyspace) => break keyspace,
            Err(_) => std::thread::yield_now(),
        }
    };
    assert_eq!(get(&keyspace, b"k").unwrap().unwrap(), "v");
    engine.shutdown();
}

#[test]
fn who_opens_a_database_anew_keeps_no_handler() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let openings = Arc::new(Openings::default());
    let keyspace = engine.keyspace("t", options(&openings)).unwrap();
    set(&keyspace, b"k", b"v").unwrap();
    close(&keyspace);
    openings.hold(true);
    let (tell, told) = channel();
    for keys in [Keys::In(Database::FIRST, &[b"k"]), Keys::None, Keys::All] {
        let tell = tell.clone();
        let waiter = Box::new(move || tell.send(()).unwrap());
        assert!(keyspace.latch(&keys, waiter).is_none(), "it is not open");
    }
    openings.wait(1);
    assert!(told.try_recv().is_err(), "it is not open yet");
    // Neither another tenant's database nor a handler waits for it.
    let other = engine.keyspace("other", small(Sync::Always)).unwrap();
    set(&other, b"k", b"v").unwrap();
    let (handle, handled) = channel();
    engine
        .handlers()
        .submit(Box::new(move || handle.send(()).unwrap()));
    handled.recv_timeout(NEVER).expect("a handler is free");
    openings.hold(false);
    for _ in 0..3 {
        told.recv_timeout(NEVER).expect("told");
    }
    assert_eq!(get(&keyspace, b"k").unwrap().unwrap(), "v");
    engine.shutdown();
}

/// More than there are threads that commit.
const TENANTS: usize = 40;

#[test]
fn writes_to_closed_databases_keep_no_committer() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let openings = Arc::new(Openings::default());
    let tenants: Vec<_> = (0..TENANTS)
        .map(|number| {
            let keyspace = engine.keyspace(&format!("t{number}"), options(&openings));
            keyspace.unwrap()
        })
        .collect();
    let other = engine.keyspace("other", small(Sync::Always)).unwrap();
    openings.hold(true);
    let mut written = Vec::new();
    for tenant in &tenants {
        close(tenant);
        let put = &mut |access: &mut engine::Access| {
            access.put(b"k", engine::Entry::string(bytes::Bytes::from_static(b"v")))
        };
        match tenant.try_run(&Keys::In(Database::FIRST, &[b"k"]), 1, put) {
            engine::Outcome::Done { seq, .. } => written.push(seq),
            other => panic!("{other:?}"),
        }
        tenant.kick();
    }
    openings.wait(1);
    let (tell, told) = channel();
    let writer = std::thread::spawn(move || tell.send(set(&other, b"k", b"v")));
    let committed = told.recv_timeout(NEVER);
    openings.hold(false);
    committed.expect("a committer is free").unwrap();
    for (tenant, seq) in tenants.iter().zip(written) {
        tenant.wait_commit(seq).unwrap();
        assert_eq!(get(tenant, b"k").unwrap().unwrap(), "v");
    }
    writer.join().unwrap().unwrap();
    engine.shutdown();
}

#[test]
fn a_database_is_opened_on_the_terms_of_whoever_asked_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let openings = Arc::new(Openings::default());
    let due = |due_at| {
        on_terms(Terms {
            due_at,
            ..Terms::default()
        })
    };
    let (tell, told) = channel();
    let by_name = due(Some(7));
    let for_it = Arc::clone(&openings);
    engine.open_keyspace(
        "t",
        move || options(&for_it),
        move |opened| tell.send(opened).unwrap(),
    );
    drop(by_name);
    let keyspace = told.recv_timeout(NEVER).expect("told").unwrap();
    // And when it was closed meanwhile.
    close(&keyspace);
    let (tell, told) = channel();
    let by_key = due(Some(9));
    let waiter = Box::new(move || tell.send(()).unwrap());
    assert!(
        keyspace.latch(&Keys::None, waiter).is_none(),
        "it is not open"
    );
    drop(by_key);
    told.recv_timeout(NEVER).expect("told");
    let mut seen = openings.due.lock().clone();
    seen.dedup();
    assert_eq!(seen, [Some(7), Some(9)]);
    assert_eq!(terms(), Terms::default());
    engine.shutdown();
}
