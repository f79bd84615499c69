//! Memtables that find objects by hash say what RocksDB's own say.

use super::set_object_memtables;
use proptest::prelude::*;
use rocksdb::{Direction, IteratorMode, Options, ReadOptions, Snapshot, WriteBatch, DB};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// Before the objects, among them, behind them: of each few, so that they meet.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let head = prop::sample::select(b"!hmopsx".to_vec());
    let tail = prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', 255]), 0..12);
    (head, tail).prop_map(|(head, tail)| {
        let mut key = vec![head];
        key.extend(tail);
        key
    })
}

fn object() -> impl Strategy<Value = Vec<u8>> {
    (0..400u16).prop_map(|number| format!("o{number}").into_bytes())
}

#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>),
    Delete(Vec<u8>),
    Range(Vec<u8>, Vec<u8>),
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<Change>),
    Snapshot,
    Get(Vec<u8>),
    /// From a key, so many entries; each time in the direction that is said.
    Walk(Vec<u8>, Vec<bool>),
    /// All between two keys, up or down.
    Between(Vec<u8>, Vec<u8>, bool),
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let any_key = || prop_oneof![key(), object()];
    let change = prop_oneof![
        8 => any_key().prop_map(Change::Put),
        2 => any_key().prop_map(Change::Delete),
        1 => (key(), key()).prop_map(|(a, b)| Change::Range(a.clone().min(b.clone()), a.max(b))),
    ];
    prop_oneof![
        6 => prop::collection::vec(change, 1..40).prop_map(Step::Write),
        1 => Just(Step::Snapshot),
        6 => any_key().prop_map(Step::Get),
        3 => (any_key(), prop::collection::vec(any::<bool>(), 0..30))
            .prop_map(|(key, way)| Step::Walk(key, way)),
        2 => (key(), key(), any::<bool>()).prop_map(|(a, b, up)| Step::Between(a, b, up)),
        1 => Just(Step::Flush),
    ]
}

fn open(objects: bool) -> (TempDir, DB) {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_allow_concurrent_memtable_write(false);
    options.set_disable_auto_compactions(true);
    if objects {
        set_object_memtables(&mut options);
    }
    let db = DB::open(&options, directory.path()).unwrap();
    (directory, db)
}

type Found = Vec<(Box<[u8]>, Box<[u8]>)>;

fn walk(db: &DB, options: ReadOptions, from: &[u8], way: &[bool]) -> Found {
    let mut iterator = db.raw_iterator_opt(options);
    match way.first() {
        Some(true) | None => iterator.seek(from),
        Some(false) => iterator.seek_for_prev(from),
    }
    let mut found = Found::new();
    for up in way {
        let Some((key, value)) = iterator.item() else {
            break;
        };
        found.push((key.into(), value.into()));
        match up {
            true => iterator.next(),
            false => iterator.prev(),
        }
    }
    iterator.status().unwrap();
    found
}

fn between(db: &DB, mut options: ReadOptions, from: &[u8], to: &[u8], up: bool) -> Found {
    options.set_iterate_lower_bound(from);
    options.set_iterate_upper_bound(to);
    let mode = match up {
        true => IteratorMode::From(from, Direction::Forward),
        false => IteratorMode::End,
    };
    db.iterator_opt(mode, options).map(Result::unwrap).collect()
}

/// Runs the steps and says what was read.
fn run(db: &DB, steps: &[Step]) -> Vec<Found> {
    let (mut read, mut number) = (Vec::new(), 0u32);
    let mut snapshots: Vec<Option<Snapshot<'_>>> = vec![None];
    for step in steps {
        match step {
            Step::Write(changes) => {
                let mut batch = WriteBatch::default();
                for change in changes {
                    number += 1;
                    match change {
                        Change::Put(key) => batch.put(key, number.to_be_bytes()),
                        Change::Delete(key) => batch.delete(key),
                        Change::Range(from, to) => batch.delete_range(from, to),
                    }
                }
                db.write(batch).unwrap();
            }
            Step::Snapshot => snapshots.push(Some(db.snapshot())),
            Step::Flush => db.flush().unwrap(),
            Step::Get(..) | Step::Walk(..) | Step::Between(..) => {
                for snapshot in &snapshots {
                    let mut options = ReadOptions::default();
                    if let Some(snapshot) = snapshot {
                        options.set_snapshot(snapshot);
                    }
                    read.push(match step {
                        Step::Get(key) => {
                            let value = db.get_opt(key, &options).unwrap();
                            value
                                .map(|value| (key.as_slice().into(), value.into()))
                                .into_iter()
                                .collect()
                        }
                        Step::Walk(from, way) => walk(db, options, from, way),
                        Step::Between(from, to, up) if from < to => {
                            between(db, options, from, to, *up)
                        }
                        _ => Found::new(),
                    });
                }
            }
        }
    }
    read
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn reads_are_those_of_a_skip_list(steps in prop::collection::vec(step(), 1..120)) {
        let [(_one, ours), (_other, theirs)] = [true, false].map(open);
        prop_assert_eq!(run(&ours, &steps), run(&theirs, &steps));
    }
}

/// Each batch has an object and a record behind all objects: whoever sees one sees the other.
#[test]
fn readers_beside_the_writer_see_whole_batches_in_order() {
    const BATCHES: u32 = 30_000;
    let (_directory, db) = open(true);
    // Neither in order nor against it.
    let name = |number: u32| number.wrapping_mul(2_654_435_761).to_be_bytes();
    let raw = |head: u8, number: u32| [&[head], &name(number)[..]].concat();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| loop {
                let last = ended.load(Ordering::Acquire);
                let snapshot = db.snapshot();
                let all = |head: u8| {
                    let mut options = ReadOptions::default();
                    options.set_snapshot(&snapshot);
                    between(&db, options, &[head], &[head + 1], true)
                };
                let [objects, records] = [b'o', b'x'].map(all);
                let names = |found: &Found| -> Vec<Box<[u8]>> {
                    found.iter().map(|(key, _)| key[1..].into()).collect()
                };
                let (objects, records) = (names(&objects), names(&records));
                assert!(objects.is_sorted());
                assert!(objects == records);
                for number in (0..objects.len() as u32).step_by(97) {
                    assert!(snapshot.get(raw(b'o', number)).unwrap().is_some());
                }
                if last {
                    assert_eq!(objects.len(), BATCHES as usize);
                    break;
                }
            });
        }
        for number in 0..BATCHES {
            let mut batch = WriteBatch::default();
            batch.put(raw(b'o', number), b"v");
            batch.put(raw(b'x', number), b"v");
            db.write(batch).unwrap();
        }
        ended.store(true, Ordering::Release);
    });
}
