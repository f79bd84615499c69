//! Random commands against a model: a `BTreeMap` and no cache, no log, no database.
//!
//! Between the commands everything that must not matter happens: commits waited for or not,
//! caches emptied, databases closed and reopened (memtables become files), the
//! whole engine restarted.

#[path = "../common/mod.rs"]
mod common;
mod execute;
mod reference;

use common::{engine, run, small};
use engine::{Allotments, Database, Engine, Keys, Keyspace, Sync, PIECE_BYTES};
use execute::execute;
use proptest::prelude::*;
use reference::Model;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    String(Vec<u8>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    /// Member -> score.
    Set(BTreeMap<Vec<u8>, i8>),
}

/// A key of a database: [`NAMES`] of each.
type Key = u8;
const NAMES: Key = 6;
const DATABASES: u8 = 3;
const KEYS: Key = NAMES * DATABASES;

#[derive(Clone, Debug)]
enum Op {
    Get(Key),
    Set(Key, Vec<u8>, Option<u64>),
    Append(Key, Vec<u8>),
    Read(Key, u64, u64),
    Write(Key, u64, Vec<u8>),
    Extend(Key, u64),
    Copy(Key, Key),
    Delete(Key),
    Expire(Key, u64),
    Rename(Key, Key),
    HashSet(Key, u8, Vec<u8>),
    HashDelete(Key, u8),
    HashAll(Key, bool),
    SetAdd(Key, u8, i8),
    SetRange(Key, i8, i8),
    /// Several commands as one, as EXEC does: all of it or nothing.
    Exec(Vec<Op>, bool),
    Clear,
    /// FLUSHDB.
    Empty(u8),
    /// SWAPDB.
    Swap(u8, u8),
    Keys(Key, bool, usize),
    Count(u8),
    Advance(u64),
    ExpireSome,
    // What must not be seen:
    Commit,
    Evict,
    Close,
    Restart,
}

/// A place in a string, most of them beside an end of a piece.
fn place() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => 0..40u64,
        3 => (0..4u64, 0..8u64).prop_map(|(piece, by)| (piece * PIECE_BYTES as u64 + by).saturating_sub(4)),
        1 => 0..4 * PIECE_BYTES as u64,
    ]
}

/// Bytes that differ from place to place, so that none can stand for another.
fn long() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |seed: u64, len| {
        (0..len)
            .map(|at| (at * 31 + seed + at / 251) as u8)
            .collect()
    };
    (0..200u64, place()).prop_map(move |(seed, len)| bytes(seed, len))
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..20),
        1 => (any::<u8>(), 2000..12_000usize).prop_map(|(b, n)| vec![b; n]),
    ]
}

/// Most keys are of the first database, which has a form of its own.
fn key() -> impl Strategy<Value = Key> {
    prop_oneof![3 => 0..NAMES, 1 => NAMES..KEYS]
}

/// What changes or reads a string.
fn on_strings() -> impl Strategy<Value = Op> {
    let bytes = || prop_oneof![3 => value(), 1 => long()];
    prop_oneof![
        2 => (key(), long(), prop::option::of(1..50u64)).prop_map(|(k, v, t)| Op::Set(k, v, t)),
        2 => (key(), bytes()).prop_map(|(k, v)| Op::Append(k, v)),
        4 => (key(), place(), bytes()).prop_map(|(k, at, v)| Op::Write(k, at, v)),
        4 => (key(), place(), place()).prop_map(|(k, at, len)| Op::Read(k, at, len)),
        1 => (key(), place()).prop_map(|(k, len)| Op::Extend(k, len)),
        1 => (key(), key()).prop_map(|(a, b)| Op::Copy(a, b)),
    ]
}

/// What is about whole databases.
fn on_databases() -> impl Strategy<Value = Op> {
    let database = || 0..DATABASES;
    prop_oneof![
        1 => Just(Op::Clear),
        3 => database().prop_map(Op::Empty),
        3 => (database(), database()).prop_map(|(a, b)| Op::Swap(a, b)),
    ]
}

fn command() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => key().prop_map(Op::Get),
        4 => (key(), value(), prop::option::of(1..50u64)).prop_map(|(k, v, t)| Op::Set(k, v, t)),
        2 => (key(), value()).prop_map(|(k, v)| Op::Append(k, v)),
        2 => key().prop_map(Op::Delete),
        1 => (key(), 1..50u64).prop_map(|(k, t)| Op::Expire(k, t)),
        2 => (key(), 0..NAMES).prop_map(|(a, b)| Op::Rename(a, a - a % NAMES + b)),
        4 => (key(), 0..8u8, value()).prop_map(|(k, f, v)| Op::HashSet(k, f, v)),
        2 => (key(), 0..8u8).prop_map(|(k, f)| Op::HashDelete(k, f)),
        2 => (key(), any::<bool>()).prop_map(|(k, down)| Op::HashAll(k, down)),
        3 => (key(), 0..8u8, any::<i8>()).prop_map(|(k, m, s)| Op::SetAdd(k, m, s)),
        2 => (key(), any::<i8>(), any::<i8>()).prop_map(|(k, a, b)| Op::SetRange(k, a, b)),
        8 => on_strings(),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        24 => command(),
        3 => (prop::collection::vec(prop_oneof![8 => command(), 1 => on_databases()], 1..5), any::<bool>())
            .prop_map(|(c, a)| Op::Exec(c, a)),
        2 => on_databases(),
        2 => (key(), any::<bool>(), 1..8usize).prop_map(|(k, down, n)| Op::Keys(k, down, n)),
        1 => (0..DATABASES).prop_map(Op::Count),
        2 => (1..30u64).prop_map(Op::Advance),
        1 => Just(Op::ExpireSome),
        3 => Just(Op::Commit),
        3 => Just(Op::Evict),
        3 => Just(Op::Close),
        1 => Just(Op::Restart),
    ]
}

/// What a command says; compared between the two.
#[derive(Debug, PartialEq)]
enum Said {
    Nothing,
    Flag(bool),
    Bytes(Option<Vec<u8>>),
    WrongType,
    Pairs(Vec<(Vec<u8>, Vec<u8>)>),
    Names(Vec<Vec<u8>>),
    Count(u64),
}

fn database(key: Key) -> Database {
    Database::new(i64::from(key / NAMES)).unwrap()
}

fn name(key: Key) -> Vec<u8> {
    // One is a prefix of others, one holds bytes that look like ends of ranges, one looks as if it
    // were of another database.
    [
        b"k".to_vec(),
        b"kk".to_vec(),
        b"k\0".to_vec(),
        vec![0xff],
        vec![],
        vec![0xff; 10],
    ][usize::from(key % NAMES)]
    .clone()
}

/// The system under test, restartable.
struct System {
    directory: tempfile::TempDir,
    open: Option<(Arc<Engine>, Arc<Keyspace>)>,
    last: u64,
    sync: Sync,
}

impl System {
    fn new(sync: Sync) -> System {
        let mut system = System {
            directory: tempfile::tempdir().unwrap(),
            open: None,
            last: 0,
            sync,
        };
        system.restart();
        system
    }

    fn restart(&mut self) {
        if let Some((engine, keyspace)) = self.open.take() {
            drop(keyspace);
            engine.shutdown();
        }
        let engine = engine(self.directory.path());
        let keyspace = engine.keyspace("model", small(self.sync)).unwrap();
        self.open = Some((engine, keyspace));
        self.last = 0;
    }

    fn keyspace(&self) -> &Arc<Keyspace> {
        &self.open.as_ref().unwrap().1
    }

    fn apply(&mut self, op: &Op, now: u64) -> Said {
        match op {
            Op::Restart => self.restart(),
            Op::Commit => self.keyspace().wait_commit(self.last).unwrap(),
            Op::Evict => {
                let allotments = self.keyspace().stats().allotments;
                self.keyspace().set_allotments(Allotments::default());
                self.keyspace().set_allotments(allotments);
            }
            Op::Close => {
                self.keyspace().wait_commit(self.last).unwrap();
                self.keyspace().close();
            }
            Op::ExpireSome => {
                self.keyspace().expire_some(now, 3).unwrap();
            }
            Op::Advance(_) => {}
            command => return self.command(command, now),
        }
        Said::Nothing
    }

    fn command(&mut self, op: &Op, now: u64) -> Said {
        let names: Vec<_> = keys_of(op)
            .into_iter()
            .map(|k| (database(k), name(k)))
            .collect();
        let names: Vec<_> = names
            .iter()
            .map(|(d, name)| (*d, name.as_slice()))
            .collect();
        let one = names.first().map(|(database, _)| *database);
        let same: Vec<_> = names.iter().map(|(_, name)| *name).collect();
        let keys = match op {
            Op::Keys(..) | Op::Count(_) => Keys::None,
            op if is_wide(op) => Keys::All,
            _ => match one.filter(|one| names.iter().all(|(database, _)| database == one)) {
                Some(one) => Keys::In(one, &same),
                None => Keys::Across(&names),
            },
        };
        match run(self.keyspace(), &keys, now, |access| execute(access, op)) {
            Ok((said, seq)) => {
                self.last = self.last.max(seq);
                said
            }
            Err(error) => {
                assert!(matches!(op, Op::Exec(_, true)), "{error}");
                Said::Nothing
            }
        }
    }
}

fn is_wide(op: &Op) -> bool {
    match op {
        Op::Clear | Op::Empty(_) | Op::Swap(..) => true,
        Op::Exec(ops, _) => ops.iter().any(is_wide),
        _ => false,
    }
}

fn keys_of(op: &Op) -> Vec<Key> {
    match op {
        Op::Get(k) | Op::Set(k, ..) | Op::Append(k, _) | Op::Delete(k) | Op::Expire(k, _) => {
            vec![*k]
        }
        Op::Read(k, ..) | Op::Write(k, ..) | Op::Extend(k, _) => vec![*k],
        Op::HashSet(k, ..) | Op::HashDelete(k, _) | Op::HashAll(k, _) => vec![*k],
        Op::SetAdd(k, ..) | Op::SetRange(k, ..) => vec![*k],
        Op::Rename(a, b) | Op::Copy(a, b) => vec![*a, *b],
        Op::Exec(ops, _) => ops.iter().flat_map(keys_of).collect(),
        _ => vec![],
    }
}

/// First bytes of the records in the files of an empty keyspace. Properties stay, and so may
/// entries of the expiry index, until their time comes.
fn left_behind(directory: &tempfile::TempDir) -> String {
    let database = directory.path().join("tenants/model");
    let database = rocksdb::DB::open_for_read_only(&Default::default(), database, false).unwrap();
    let records = database.iterator(rocksdb::IteratorMode::Start);
    let first = records.map(|record| char::from(record.unwrap().0[0]));
    first.filter(|first| !['!', 'x'].contains(first)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn commands_do_what_the_model_says(
        ops in prop::collection::vec(op(), 1..150),
        (always, clear) in any::<(bool, bool)>(),
    ) {
        let mut system = System::new(if always { Sync::Always } else { Sync::EverySecond });
        let mut model = Model { now: 1_000, ..Model::default() };
        for (at, op) in ops.iter().enumerate() {
            let now = model.now;
            let got = system.apply(op, now);
            let want = model.apply(op);
            prop_assert_eq!(got, want, "command {} of {:?}", at, ops);
        }
        if clear {
            system.apply(&Op::Clear, model.now);
        }
        for key in 0..KEYS {
            system.apply(&Op::Delete(key), model.now);
        }
        system.restart();
        for database in 0..DATABASES {
            prop_assert_eq!(system.apply(&Op::Count(database), model.now), Said::Count(0));
        }
        system.open.take().unwrap().0.shutdown();
        prop_assert_eq!(left_behind(&system.directory), "", "after {:?}", ops);
    }
}
