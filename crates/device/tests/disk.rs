//! The bench on the disk that holds the target directory. Rates are not looked at: a shared machine
//! has none.

use device::{Bench, DeviceError, Disk, Load, Mix, Sample};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

const SCRATCH: u64 = 64 << 20;
const SLICE: Duration = Duration::from_millis(30);

/// A folder on the disk, with something of the user's in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let kept = folder.path().join("kept");
    std::fs::write(&kept, "mine").expect("written");
    (folder, kept)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

/// `None` on a file system that cannot bypass the page cache: there is nothing to measure there,
/// and it must say so.
fn open(folder: &Path, stop: &Arc<AtomicBool>) -> Option<Disk> {
    match Disk::open(folder, SCRATCH, Arc::clone(stop), &mut |_| {}) {
        Ok(disk) => Some(disk),
        Err(DeviceError::Unfit { reason, .. }) => {
            assert!(
                reason.contains("O_DIRECT") || reason.contains("in memory"),
                "{reason}"
            );
            println!("not measured: {reason}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A slice in which there was what is wanted. In one or the other the machine may have been busy
/// elsewhere.
fn run(disk: &mut Disk, load: &Load, wanted: fn(&Sample) -> bool) -> Sample {
    let mut slices = (0..100).map(|_| disk.run(load, SLICE).expect("a slice"));
    slices.find(wanted).expect("done in one of many slices")
}

#[test]
fn loads_run_and_nothing_stays() {
    let (folder, kept) = folder();
    let stop = Arc::new(AtomicBool::new(false));
    let Some(mut disk) = open(folder.path(), &stop) else {
        return;
    };
    assert_eq!(disk.scratch_bytes(), SCRATCH);
    assert!(disk.smallest_bytes() <= 4096);
    let reads = run(&mut disk, &Load::reads(2, 4096), |done| done.reads > 0);
    assert!(
        reads.writes == 0 && reads.ns > 0 && reads.latency_ns.0 > 0,
        "{reads:?}"
    );
    assert!(reads.latency_ns.0 <= reads.latency_ns.1);
    let writes = run(&mut disk, &Load::writes(2, 1 << 20), |done| done.writes > 0);
    assert_eq!(writes.reads, 0, "{writes:?}");
    let halves = Load {
        mix: Mix::Halves,
        read_bytes: 4096,
        write_bytes: 65536,
        workers: 4,
    };
    run(&mut disk, &halves, |done| done.reads > 0 && done.writes > 0);
    let synced = (0..100).any(|_| disk.syncs(4096, SLICE).expect("syncs") > 0.0);
    assert!(synced, "in one of many slices");
    assert!(disk.deletes().expect("deletes") > 0.0);
    drop(disk);
    assert_eq!(names(folder.path()), ["kept"]);
    assert_eq!(std::fs::read_to_string(kept).expect("still there"), "mine");
}

#[test]
fn an_interruption_ends_everything_and_cleans_up() {
    let (folder, _) = folder();
    let stop = Arc::new(AtomicBool::new(false));
    let Some(mut disk) = open(folder.path(), &stop) else {
        return;
    };
    stop.store(true, Ordering::Relaxed);
    let stopped =
        |result: Result<f64, DeviceError>| assert!(matches!(result, Err(DeviceError::Stopped)));
    stopped(
        disk.run(&Load::reads(2, 4096), Duration::from_secs(3600))
            .map(|_| 0.0),
    );
    stopped(disk.syncs(4096, Duration::from_secs(3600)));
    stopped(disk.deletes());
    drop(disk);
    let filling = Disk::open(folder.path(), SCRATCH, stop, &mut |_| {}).expect_err("stopped");
    assert!(matches!(filling, DeviceError::Stopped));
    assert_eq!(names(folder.path()), ["kept"]);
}

#[test]
fn what_cannot_be_measured_is_said() {
    let open = |path: &str| {
        let stop = Arc::new(AtomicBool::new(false));
        Disk::open(Path::new(path), SCRATCH, stop, &mut |_| {})
            .expect_err("refused")
            .to_string()
    };
    let missing = open("/nowhere/at/all");
    assert!(
        missing.contains("cannot inspect /nowhere/at/all"),
        "{missing}"
    );
    if Path::new("/dev/shm").is_dir() {
        let memory = open("/dev/shm");
        assert!(
            memory.contains("/dev/shm cannot be measured: it is in memory"),
            "{memory}"
        );
    }
}

#[test]
fn what_a_killed_measurement_left_is_removed_by_the_next() {
    let (folder, _) = folder();
    let place = |name: &str| folder.path().join(format!(".entremet-calibrate-{name}"));
    std::fs::create_dir(place("1")).expect("a folder");
    std::fs::write(place("1").join("deleted-0"), "left").expect("written");
    std::fs::create_dir(place("2")).expect("a folder");
    let alive = std::fs::File::open(place("2")).expect("a folder");
    alive.lock().expect("locked, as by a process that lives");
    std::fs::write(place("3"), "no folder").expect("written");
    let stop = Arc::new(AtomicBool::new(false));
    drop(open(folder.path(), &stop));
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(
        left,
        [".entremet-calibrate-2", ".entremet-calibrate-3", "kept"]
    );
}
