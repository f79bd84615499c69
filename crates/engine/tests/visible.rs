//! A reply shows only what is decided: whatever the durability, a command that saw a write waits
//! for it, and gets that write's error if it is refused.

mod common;

use bytes::Bytes;
use common::{commit, engine, small};
use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended, Fault, Op};
use engine::{
    Access, Database, Engine, EngineError, Entry, Header, Keys, Keyspace, Kind, Object, Order,
    Outcome, Seq, Site, Stop, Sync, Table,
};
use parking_lot::{Condvar, Mutex};
use std::ops::Bound;
use std::sync::Arc;
use tempfile::TempDir;

/// Holds up writes of the log until it is told what becomes of them.
#[derive(Default)]
struct Held {
    /// Whether writes wait, and whether those that do not wait fail.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Held {
    fn hold(&self) {
        *self.state.lock() = (true, false);
    }

    fn release(&self, fail: bool) {
        *self.state.lock() = (false, fail);
        self.changed.notify_all();
    }
}

impl DeviceStage for Held {
    fn fault(&self, io: &DeviceIo) -> Option<Fault> {
        let log = io.activity == Activity::Log && io.op == Op::Write;
        let mut state = self.state.lock();
        while log && state.0 {
            self.changed.wait(&mut state);
        }
        (log && state.1).then_some(Fault::NoSpace)
    }

    fn begin(&self, _: &DeviceIo) -> u64 {
        0
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

/// A keyspace whose commits are held up.
struct World {
    _folder: TempDir,
    held: Arc<Held>,
    engine: Arc<Engine>,
    keyspace: Arc<Keyspace>,
    hash: Header,
}

type Command = fn(&mut Access, &World) -> Result<(), Stop>;

const KEYS: [&[u8]; 6] = [b"old", b"new", b"hash", b"large", b"other", b"filler"];

fn string(value: &'static [u8]) -> Entry {
    Entry::string(Bytes::from_static(value))
}

impl World {
    fn new(sync: Sync) -> World {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let held = Arc::new(Held::default());
        let engine = engine(folder.path());
        let mut options = small(sync);
        options.device = Some(DeviceHook {
            stage: Arc::clone(&held) as Arc<dyn DeviceStage>,
            principal: 1,
        });
        let keyspace = engine.keyspace("t", options).expect("opened");
        let hash = commit(&keyspace, &KEYS, |access| {
            access.put(b"old", string(b"old"))?;
            access.put(b"other", string(b"other"))?;
            let mut hash = access.new_collection(Kind::Hash)?;
            hash.len = 2;
            for field in [b"a", b"b"] {
                let value = Bytes::from_static(b"v");
                access.put_record(Table::Field, hash.id, field, value)?;
            }
            let object = Object::Collection(hash);
            let expire_at_ms = None;
            access.put(
                b"hash",
                Entry {
                    object,
                    expire_at_ms,
                },
            )?;
            Ok(hash)
        });
        World {
            _folder: folder,
            held,
            engine,
            keyspace,
            hash: hash.expect("committed"),
        }
    }

    /// In phase 1; a position of 0: its reply waits for nothing.
    fn on_core(&self, keys: &Keys, command: Command) -> Seq {
        match self
            .keyspace
            .try_run(keys, 1, &mut |access| command(access, self))
        {
            Outcome::Done { seq, .. } => seq,
            other => panic!("{other:?}"),
        }
    }

    /// In phase 2.
    fn on_handler(&self, keys: &Keys, command: Command) -> Seq {
        let latch = self.keyspace.latch(keys, Box::new(|| {})).expect("free");
        let run = self.keyspace.run(&latch, Site::Handler, 1, &mut |access| {
            command(access, self)
        });
        run.expect("done").1
    }

    /// Writes without a commit, and returns the position.
    fn write(&self, keys: &Keys, command: Command) -> Seq {
        self.held.hold();
        let latch = self.keyspace.latch(keys, Box::new(|| {})).expect("free");
        let write = self.keyspace.run(&latch, Site::Handler, 1, &mut |access| {
            command(access, self)?;
            // The device is not asked about a page that is dirty already.
            access.put(b"filler", Entry::string(Bytes::from(vec![1; 10_000])))
        });
        write.expect("written").1
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What waits would keep the engine from its end.
        self.held.release(false);
        self.engine.shutdown();
    }
}

const NONE: Command = |_, _| Ok(());

/// A write, whether it takes all keys, what it changes, and a read that shows it.
type Case = (&'static str, bool, Command, Command);

fn cases() -> Vec<Case> {
    [on_keys(), on_all()].concat()
}

fn on_keys() -> Vec<Case> {
    vec![
        (
            "a new value",
            false,
            |access, _| access.put(b"old", string(b"new")),
            |access, _| access.with(b"old", |entry| assert_eq!(entry, Some(&string(b"new")))),
        ),
        (
            "a value too large for the cache",
            false,
            |access, _| access.put(b"large", Entry::string(Bytes::from(vec![1; 20_000]))),
            |access, _| access.get(b"large").map(|entry| assert!(entry.is_some())),
        ),
        (
            "a key that is gone",
            false,
            |access, _| access.delete(b"old").map(|_| ()),
            |access, _| access.get(b"old").map(|entry| assert_eq!(entry, None)),
        ),
        (
            "a key that is not deleted a second time",
            false,
            |access, _| access.delete(b"old").map(|_| ()),
            |access, _| access.delete(b"old").map(|deleted| assert!(!deleted)),
        ),
        (
            "a key that has another name",
            false,
            |access, _| access.rename(b"old", b"new").map(|_| ()),
            |access, _| access.with(b"new", |entry| assert!(entry.is_some())),
        ),
        (
            "the value of a field",
            false,
            |access, world| {
                let value = Bytes::from_static(b"w");
                access.get(b"hash")?;
                access.put_record(Table::Field, world.hash.id, b"a", value)
            },
            |access, world| {
                let value = access.record(Table::Field, world.hash.id, b"a")?;
                assert_eq!(value.as_deref(), Some(&b"w"[..]));
                Ok(())
            },
        ),
        (
            "fields in order, one of which is gone",
            false,
            |access, world| {
                access.get(b"hash")?;
                access.delete_record(Table::Field, world.hash.id, b"a")
            },
            |access, world| {
                let (all, id) = (Bound::Unbounded, world.hash.id);
                let page = access.records(Table::Field, id, all, all, Order::Up, 10)?;
                assert_eq!(page.items.len(), 1);
                Ok(())
            },
        ),
    ]
}

fn on_all() -> Vec<Case> {
    vec![
        (
            "a key before everything was removed",
            true,
            |access, _| access.clear(),
            |access, _| access.with(b"other", |entry| assert_eq!(entry, None)),
        ),
        (
            "a key of a database that was exchanged for another",
            true,
            |access, _| access.swap_databases(Database::FIRST, Database::new(1).unwrap()),
            |access, _| access.with(b"other", |entry| assert_eq!(entry, None)),
        ),
        (
            "a key before its database was emptied",
            true,
            |access, _| {
                access.select(Database::new(1).unwrap());
                access.put(b"other", string(b"other"))?;
                access.select(Database::FIRST);
                access.clear_database()
            },
            |access, _| access.with(b"other", |entry| assert_eq!(entry, None)),
        ),
    ]
}

#[test]
fn a_reply_waits_for_what_it_shows() {
    for sync in [Sync::Always, Sync::EverySecond, Sync::Never] {
        for (what, all, change, look) in cases() {
            let world = World::new(sync);
            let (keys, every) = (Keys::In(Database::FIRST, &KEYS), Keys::All);
            let seq = world.write(if all { &every } else { &keys }, change);
            for shown in [world.on_core(&keys, look), world.on_handler(&keys, look)] {
                assert!(shown >= seq, "{what}, {sync:?}: {shown} < {seq}");
                assert!(!world.keyspace.await_commit(0, shown), "{what}, {sync:?}");
            }
            if !all {
                let other: Command = |access, _| access.get(b"other").map(|_| ());
                assert_eq!(world.on_core(&keys, other), 0, "{what}: nothing is shown");
            }
            world.held.release(false);
            world.keyspace.wait_commit(seq).expect("committed");
            assert_eq!(world.on_core(&keys, look), 0, "{what}: it is decided");
        }
    }
}

#[test]
fn a_reply_that_showed_a_refused_write_becomes_its_error() {
    for sync in [Sync::Always, Sync::EverySecond, Sync::Never] {
        for (what, all, change, look) in cases() {
            let world = World::new(sync);
            let (keys, every) = (Keys::In(Database::FIRST, &KEYS), Keys::All);
            let seq = world.write(if all { &every } else { &keys }, change);
            let shown = world.on_core(&keys, look);
            world.held.release(true);
            let error = world.keyspace.wait_commit(seq).expect_err("refused");
            assert!(matches!(error, EngineError::Write { .. }), "{what}");
            let told = world.keyspace.commit_error(shown);
            assert!(told.is_some(), "{what}, {sync:?}: it was shown");
            world.on_core(&keys, |access, _| {
                access.with(b"old", |entry| assert_eq!(entry, Some(&string(b"old"))))
            });
        }
    }
}

/// A transaction that is not run because a watched key changed shows that it did.
#[test]
fn a_reply_that_shows_some_change_waits_for_all() {
    let world = World::new(Sync::EverySecond);
    let keys = Keys::In(Database::FIRST, &KEYS);
    let put: Command = |access, _| access.put(b"old", string(b"new"));
    let seq = world.write(&keys, put);
    assert_eq!(world.on_core(&keys, NONE), 0);
    let shown: Command = |access, _| {
        access.show_all();
        Ok(())
    };
    assert_eq!(world.on_core(&keys, shown), seq);
}
