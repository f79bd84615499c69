//! How much a command may do where it runs.

mod common;

use common::{engine, small};
use engine::{Access, EngineError, Keys, Outcome, Stop, Sync};

/// More than a core allows.
const MANY: u64 = 100_000;

/// Takes `MANY` steps, a few at a time, and notes how far it came.
fn walk(taken: &mut u64) -> impl FnMut(&mut Access) -> Result<(), Stop> + '_ {
    *taken = 0;
    |access| {
        while *taken < MANY {
            access.steps(10)?;
            *taken += 10;
        }
        Ok(())
    }
}

#[test]
fn a_long_walk_ends_on_a_core_and_goes_on_on_a_handler() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let name: [&[u8]; 1] = [b"k"];
    let (keys, mut taken) = (Keys::Some(&name), 0);
    let outcome = keyspace.try_run(&keys, 1, &mut walk(&mut taken));
    assert!(matches!(outcome, Outcome::Disk));
    assert!((500..2_000).contains(&taken), "{taken} steps on a core");
    let outcome = keyspace.try_run(&keys, 1, &mut |access| access.steps(u64::MAX));
    assert!(matches!(outcome, Outcome::Disk), "in one count as in many");
    let latch = keyspace.latch(&keys, Box::new(|| {})).expect("a latch");
    keyspace.run(&latch, 1, &mut walk(&mut taken)).unwrap();
    assert_eq!(taken, MANY);
    engine.shutdown();
}

#[test]
fn a_walk_that_nobody_waits_for_ends() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    let mut taken = 0;
    let ended = keyspace.scan(1, &mut |access| {
        let mut asked = 0;
        access.go_on_if(Some(Box::new(move || {
            asked += 1;
            asked < 5
        })));
        walk(&mut taken)(access)
    });
    assert!(matches!(ended, Err(EngineError::Abandoned)));
    assert!(taken < MANY / 10, "{taken} steps for nobody");
    engine.shutdown();
}
