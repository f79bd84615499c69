//! Several threads at once: nothing lost, nobody starved, work shared.

mod common;

use bytes::Bytes;
use common::{close, engine, get, increment, run, set, small, string};
use engine::{
    Access, Allotments, Database, Entry, Keys, KeyspaceOptions, Outcome, Site, Stop, Sync,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};

#[test]
fn increments_from_many_threads_all_count() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    const THREADS: u64 = 4;
    const EACH: u64 = 2000;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let keyspace = &keyspace;
            scope.spawn(move || {
                for i in 0..EACH {
                    let (a, b) = (format!("k{}", i % 3), format!("k{}", (i + 1) % 3));
                    let (a, b) = (a.as_bytes(), b.as_bytes());
                    // Two keys at once, so that shards are locked in different orders of keys.
                    let (_, seq) =
                        run(keyspace, &Keys::In(Database::FIRST, &[a, b]), 1, |access| {
                            increment(access, a)?;
                            increment(access, b)
                        })
                        .unwrap();
                    if i % 7 == thread {
                        keyspace.wait_commit(seq).unwrap();
                    }
                    // Everything out of memory now and then: phase 2, latches, fills.
                    if i % 100 == 50 + thread {
                        let allotments = keyspace.stats().allotments;
                        keyspace.set_allotments(Allotments::default());
                        keyspace.close();
                        keyspace.set_allotments(allotments);
                    }
                }
            });
        }
    });
    let total: u64 = (0..3)
        .map(|i| get(&keyspace, format!("k{i}").as_bytes()).unwrap().unwrap())
        .map(|v| std::str::from_utf8(&v).unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(total, THREADS * EACH * 2);
    engine.shutdown();
}

#[test]
fn writes_that_arrive_during_a_commit_share_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (held, hold) = sync_channel::<()>(0);
    let hold = Mutex::new(hold);
    let options = KeyspaceOptions::new(Sync::Always, Allotments::objects(1 << 20))
        .notify(move |_| hold.lock().unwrap().recv().unwrap_or(()));
    let keyspace = engine.keyspace("t", options).unwrap();
    let put =
        |key: &[u8]| match keyspace.try_run(&Keys::In(Database::FIRST, &[key]), 1, &mut |access| {
            access.put(key, Entry::string(Bytes::from_static(b"v")))
        }) {
            Outcome::Done { seq, .. } => seq,
            other => panic!("{other:?}"),
        };
    let before = keyspace.stats().commits;
    let first = put(b"first");
    assert!(!keyspace.await_commit(3, first));
    keyspace.kick();
    // The committer has decided the first write and is held in `notify`.
    keyspace.wait_commit(first).unwrap();
    let mut last = 0;
    for i in 0..500u32 {
        last = put(&i.to_be_bytes());
        keyspace.kick();
    }
    drop(held);
    keyspace.wait_commit(last).unwrap();
    engine.shutdown();
    let stats = keyspace.stats();
    assert_eq!(stats.committed_writes, 501);
    assert_eq!(stats.commits - before, 2, "500 writes were one group");
}

#[test]
fn misses_on_one_key_share_one_latch() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    set(&keyspace, b"k", b"v").unwrap();
    close(&keyspace);
    let keys: [&[u8]; 1] = [b"k"];
    let keys = Keys::In(Database::FIRST, &keys);
    let mut read = |access: &mut engine::Access| access.get(b"k");
    assert!(matches!(
        keyspace.try_run(&keys, 1, &mut read),
        Outcome::Disk
    ));
    let (told, when) = channel();
    let opened = told.clone();
    let waiter = Box::new(move || opened.send(()).unwrap());
    assert!(keyspace.latch(&keys, waiter).is_none(), "it is closed");
    when.recv().unwrap();
    let latch = keyspace
        .latch(&keys, Box::new(|| panic!("not queued")))
        .unwrap();
    for _ in 0..10 {
        assert!(matches!(
            keyspace.try_run(&keys, 1, &mut read),
            Outcome::Busy
        ));
        let told = told.clone();
        assert!(keyspace.wait(&keys, Box::new(move || told.send(()).unwrap())));
    }
    keyspace.run(&latch, Site::Handler, 1, &mut read).unwrap();
    assert!(
        when.try_recv().is_err(),
        "told before the latch was released"
    );
    drop(latch);
    assert_eq!(when.try_iter().count(), 10);
    assert!(!keyspace.wait(&keys, Box::new(|| {})));
    for _ in 0..10 {
        match keyspace.try_run(&keys, 1, &mut read) {
            Outcome::Done { reply, .. } => assert!(reply.is_some()),
            other => panic!("{other:?}"),
        }
    }
    engine.shutdown();
}

#[test]
fn a_latch_is_all_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let ab: [&[u8]; 3] = [b"a", b"b", b"a"];
    let bc: [&[u8]; 2] = [b"b", b"c"];
    let c: [&[u8]; 1] = [b"c"];
    let first = keyspace
        .latch(&Keys::In(Database::FIRST, &ab), Box::new(|| {}))
        .unwrap();
    let (told, when) = channel();
    let waiter = Box::new(move || told.send(()).unwrap());
    assert!(keyspace
        .latch(&Keys::In(Database::FIRST, &bc), waiter)
        .is_none());
    // What was refused kept nothing.
    drop(
        keyspace
            .latch(&Keys::In(Database::FIRST, &c), Box::new(|| {}))
            .unwrap(),
    );
    drop(first);
    when.try_recv().unwrap();
    drop(
        keyspace
            .latch(&Keys::In(Database::FIRST, &bc), Box::new(|| {}))
            .unwrap(),
    );
    engine.shutdown();
}

/// A multiget reads from the disk: nobody who reads its keys waits for it, and no writer starves.
#[test]
fn readers_of_several_keys_are_in_the_way_of_writers_only() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    for key in [b"a", b"b", b"c"] {
        set(&keyspace, key, b"v").unwrap();
    }
    let (a, b): ([&[u8]; 1], [&[u8]; 1]) = ([b"a"], [b"b"]);
    let (ab, bc): ([&[u8]; 2], [&[u8]; 2]) = ([b"a", b"b"], [b"b", b"c"]);
    let [a, b] = [&a, &b].map(|names| Keys::In(Database::FIRST, names));
    let [ab, bc] = [&ab, &bc].map(|names| Keys::In(Database::FIRST, names));
    let (tell, told) = channel();
    let waiter = |who: &'static str| {
        let tell = tell.clone();
        Box::new(move || tell.send(who).unwrap())
    };
    let unasked = || Box::new(|| panic!("not queued"));
    let read = &mut |access: &mut Access| access.get(b"b");
    let write = &mut |access: &mut Access| {
        let entry = Entry::string(Bytes::from_static(b"w"));
        access.put(b"b", entry)
    };

    let first = keyspace.latch_to_read(&ab, unasked()).expect("free");
    let second = keyspace.latch_to_read(&bc, unasked()).expect("readers");
    let single = keyspace.latch_to_read(&b, unasked()).expect("readers");
    assert!(matches!(
        keyspace.try_read(&b, 1, read),
        Outcome::Done { .. }
    ));
    assert!(!keyspace.wait_to_read(&b, unasked()));
    assert!(matches!(keyspace.try_run(&b, 1, write), Outcome::Busy));
    // Whoever needs the disk from now on comes after the writer, and what is in memory passes.
    assert!(keyspace.latch(&b, waiter("writer")).is_none());
    assert!(keyspace.latch_to_read(&bc, waiter("reader")).is_none());
    assert!(keyspace.wait(&b, waiter("in memory")));
    assert!(matches!(
        keyspace.try_read(&b, 1, read),
        Outcome::Done { .. }
    ));
    for latch in [first, single] {
        drop(latch);
        assert!(told.try_recv().is_err());
    }
    drop(second);
    let order: Vec<_> = told.try_iter().collect();
    assert_eq!(order, ["writer", "reader", "in memory"]);

    let writer = keyspace.latch(&b, unasked()).expect("all are gone");
    assert!(matches!(keyspace.try_read(&b, 1, read), Outcome::Busy));
    assert!(keyspace.wait_to_read(&b, waiter("reader")));
    drop(writer);
    // Who reads one key has it alone: it will be in memory for the others.
    let alone = keyspace.latch_to_read(&a, unasked()).expect("free");
    assert!(keyspace.latch_to_read(&ab, waiter("reader")).is_none());
    assert!(keyspace.wait_to_read(&a, waiter("reader")));
    drop(alone);
    assert_eq!(told.try_iter().count(), 3);

    let reader = keyspace.latch_to_read(&ab, unasked()).expect("free");
    let refused = keyspace.run(&reader, Site::Handler, 1, write);
    assert!(matches!(refused, Err(engine::EngineError::Misuse(_))));
    drop(reader);
    assert!(matches!(
        keyspace.try_read(&b, 1, write),
        Outcome::Failed(engine::EngineError::Misuse(_))
    ));
    assert_eq!(get(&keyspace, b"b").unwrap().as_deref(), Some(&b"v"[..]));
    engine.shutdown();
}

#[test]
fn a_steady_stream_of_latches_does_not_starve_whole_keyspace_work() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let done = AtomicBool::new(false);
    let turns = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (keyspace, done, turns) = (&keyspace, &done, &turns);
            scope.spawn(move || {
                let mut held = None;
                let mut i = 0u8;
                // Hand over hand: this thread always holds one of its keys.
                while !done.load(Ordering::Acquire) {
                    i = i.wrapping_add(1);
                    let key = [thread, i % 2];
                    let keys: [&[u8]; 1] = [&key];
                    let (told, when) = channel();
                    let waiter = Box::new(move || told.send(()).unwrap_or(()));
                    match keyspace.latch(&Keys::In(Database::FIRST, &keys), waiter) {
                        Some(latch) => held = Some(latch),
                        None => {
                            held = None;
                            when.recv().unwrap();
                        }
                    }
                    turns.fetch_add(1, Ordering::Relaxed);
                }
                drop(held);
            });
        }
        while turns.load(Ordering::Relaxed) < 1000 {
            std::thread::yield_now();
        }
        for _ in 0..20 {
            run(&keyspace, &Keys::All, 1, |access| access.clear()).unwrap();
            let latch = loop {
                let (told, when) = channel();
                let waiter = Box::new(move || told.send(()).unwrap_or(()));
                match keyspace.latch(&Keys::All, waiter) {
                    Some(latch) => break latch,
                    None => when.recv().unwrap(),
                }
            };
            drop(latch);
        }
        done.store(true, Ordering::Release);
    });
    engine.shutdown();
}

#[test]
fn a_bar_whose_claimant_left_is_lifted() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let a: [&[u8]; 1] = [b"a"];
    let b: [&[u8]; 1] = [b"b"];
    let held = keyspace
        .latch(&Keys::In(Database::FIRST, &a), Box::new(|| {}))
        .unwrap();
    // Wants everything, is told, and never comes back.
    assert!(keyspace.latch(&Keys::All, Box::new(|| {})).is_none());
    let (told, when) = channel();
    let waiter = Box::new(move || told.send(()).unwrap());
    assert!(keyspace
        .latch(&Keys::In(Database::FIRST, &b), waiter)
        .is_none());
    drop(held);
    when.recv().unwrap();
    drop(
        keyspace
            .latch(&Keys::In(Database::FIRST, &b), Box::new(|| {}))
            .unwrap(),
    );
    engine.shutdown();
}

#[test]
fn a_command_that_breaks_the_rules_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let value = || Entry::string(Bytes::from_static(b"v"));
    let keys: [&[u8]; 1] = [b"a"];
    // Some key of 64 lies in another shard than "a".
    let outcome = keyspace.try_run(&Keys::In(Database::FIRST, &keys), 1, &mut |access| {
        (0..64u8).try_for_each(|i| access.put(&[i], value()))
    });
    assert!(matches!(outcome, Outcome::Failed(_)));
    let written = keyspace.scan(0, Site::Apart, 1, &mut |access| access.put(b"a", value()));
    assert!(written.is_err());
    let cleared = keyspace.try_run(&Keys::In(Database::FIRST, &keys), 1, &mut |access| {
        access.clear()
    });
    assert!(matches!(cleared, Outcome::Failed(_)));
    let stopped = keyspace.try_run(&Keys::In(Database::FIRST, &keys), 1, &mut |access| {
        access.put(b"a", value())?;
        Err::<(), _>(Stop::Disk)
    });
    assert!(matches!(stopped, Outcome::Disk));
    assert_eq!(
        keyspace
            .scan(0, Site::Apart, 1, &mut |access| access.estimate_keys())
            .unwrap(),
        0
    );
    assert_eq!(get(&keyspace, b"a").unwrap(), None);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        keyspace.try_run(&Keys::In(Database::FIRST, &keys), 1, &mut |_| -> Result<
            (),
            Stop,
        > {
            panic!("bug")
        })
    }));
    assert!(panicked.is_err());
    set(&keyspace, b"a", b"works on").unwrap();
    engine.shutdown();
}

#[test]
fn handlers_drain_at_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let ran = Arc::new(AtomicU64::new(0));
    for _ in 0..100 {
        let ran = Arc::clone(&ran);
        engine.handlers().submit(Box::new(move || {
            ran.fetch_add(1, Ordering::Relaxed);
        }));
    }
    engine.shutdown();
    assert_eq!(ran.load(Ordering::Relaxed), 100);
}

#[test]
fn what_runs_twice_is_done_before_its_reply_begins() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Always)).unwrap();
    set(&keyspace, b"k", b"1").unwrap();
    let keys: &[&[u8]] = &[b"k"];
    let latch = keyspace
        .latch(&Keys::In(Database::FIRST, keys), Box::new(|| {}))
        .unwrap();
    let effect = &mut |access: &mut Access| increment(access, b"k");
    let committed = &mut |seq| keyspace.wait_commit(seq).is_ok();
    let reply = &mut |access: &mut Access, told| {
        // It is there for others, who write the key meanwhile, and the reply is of what it found.
        assert_eq!((told, &get(&keyspace, b"k")?.unwrap()[..]), (2, &b"2"[..]));
        set(&keyspace, b"k", b"7")?;
        assert_eq!(string(access.get(b"k")?.unwrap()).unwrap(), "1");
        increment(access, b"k")?;
        Ok(access.get(b"k")?.and_then(string))
    };
    let replied = keyspace
        .run_twice(latch, 1, effect, committed, reply)
        .unwrap();
    assert_eq!(replied.as_deref(), Some(&b"2"[..]));
    assert_eq!(get(&keyspace, b"k").unwrap().as_deref(), Some(&b"7"[..]));
    engine.shutdown();
}

#[test]
fn a_lookup_counts_once_wherever_its_command_ends() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let names: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
    for name in names {
        set(&keyspace, name, b"1").unwrap();
    }
    close(&keyspace);
    let counted = |keys: &[&[u8]]| {
        let before = keyspace.stats();
        let read =
            |access: &mut engine::Access| keys.iter().try_for_each(|key| access.with(key, |_| ()));
        run(&keyspace, &Keys::In(Database::FIRST, keys), 1, read).unwrap();
        let after = keyspace.stats();
        (
            after.cache_hits - before.cache_hits,
            after.cache_misses - before.cache_misses,
        )
    };
    assert_eq!(counted(&[b"a"]), (0, 1), "phase 1 and phase 2 looked");
    assert_eq!(counted(&[b"a"]), (1, 0));
    close(&keyspace);
    assert_eq!(counted(&names), (0, 4));
    assert_eq!(counted(&names), (4, 0));
    let looked = |stats: engine::KeyspaceStats| (stats.cache_hits, stats.cache_misses);
    let before = looked(keyspace.stats());
    keyspace.look_ahead(Database::FIRST, &[b"a", b"none", b"a", b"d"]);
    assert_eq!(looked(keyspace.stats()), before, "nobody has asked yet");
    let absent = || keyspace.absent(&Keys::In(Database::FIRST, &[b"a", b"none", b"b", b"other"]));
    assert_eq!(absent(), 2);
    counted(&[b"none"]);
    assert_eq!(absent(), 1, "memory knows that it is not there");
    let before = looked(keyspace.stats());
    close(&keyspace);
    assert_eq!(absent(), 4);
    assert_eq!(looked(keyspace.stats()), before, "nobody has asked");
    engine.shutdown();
}
