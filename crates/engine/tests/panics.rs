//! A thread that panics takes the process along, wherever it is: what it left half done nobody
//! could finish. What was acknowledged before is there afterwards.

mod common;

use common::{engine, get, key, set, small, value};
use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended, Op};
use engine::Sync;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

const WRITES: u32 = 200;
const SIGABRT: i32 = 6;
/// Tells a child process where its data is.
const DATA: &str = "ENTREMET_TEST_DATA";

/// Runs a test of this file in a process of its own, which must end by itself; returns what it
/// printed.
fn ends(child: &str, data: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child, "--ignored", "--nocapture"])
        .env(DATA, data)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(SIGABRT), "{text}");
    text
}

fn data() -> PathBuf {
    std::env::var_os(DATA)
        .expect("run by a test of this file")
        .into()
}

fn all_there(data: &Path) {
    let engine = engine(data);
    let keyspace = engine.keyspace("t", small(Sync::EverySecond)).unwrap();
    for number in 0..WRITES {
        assert_eq!(
            get(&keyspace, &key(number)).unwrap().unwrap(),
            value(number)
        );
    }
    engine.shutdown();
}

#[test]
fn a_job_that_panics_ends_the_process_and_loses_nothing() {
    let data = tempfile::tempdir().unwrap();
    let text = ends("child_has_a_job_that_panics", data.path());
    assert!(text.contains("a bug in a job"), "{text}");
    all_there(data.path());
}

#[test]
#[ignore = "run in a child process by a_job_that_panics_ends_the_process_and_loses_nothing"]
fn child_has_a_job_that_panics() {
    let engine = engine(&data());
    let keyspace = engine.keyspace("t", small(Sync::EverySecond)).unwrap();
    for number in 0..WRITES {
        set(&keyspace, &key(number), &value(number)).unwrap();
    }
    engine
        .handlers()
        .submit(Box::new(|| panic!("a bug in a job")));
    engine.shutdown();
}

/// A scheduler with a bug that shows once it is told to.
#[derive(Default)]
struct Panics(AtomicBool);

impl DeviceStage for Panics {
    fn begin(&self, io: &DeviceIo) -> u64 {
        let log = io.activity == Activity::Log && io.op == Op::Write;
        assert!(!log || !self.0.load(Ordering::SeqCst), "a bug in a stage");
        0
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

#[test]
fn a_stage_that_panics_ends_the_process_and_loses_nothing() {
    let data = tempfile::tempdir().unwrap();
    let text = ends("child_has_a_stage_that_panics", data.path());
    assert!(text.contains("a bug in a stage"), "{text}");
    all_there(data.path());
}

#[test]
#[ignore = "run in a child process by a_stage_that_panics_ends_the_process_and_loses_nothing"]
fn child_has_a_stage_that_panics() {
    let engine = engine(&data());
    let stage = Arc::new(Panics::default());
    let mut options = small(Sync::EverySecond);
    options.device = Some(DeviceHook {
        stage: Arc::clone(&stage) as Arc<dyn DeviceStage>,
        principal: 1,
    });
    let keyspace = engine.keyspace("t", options).unwrap();
    for number in 0..WRITES {
        set(&keyspace, &key(number), &value(number)).unwrap();
    }
    stage.0.store(true, Ordering::SeqCst);
    // The committer writes it.
    let _ = set(&keyspace, b"one", &[1; 10_000]);
    unreachable!("nobody answers");
}
