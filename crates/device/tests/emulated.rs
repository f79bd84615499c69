//! Calibrating an emulated device, in emulated time: everything but the I/O is what ships.

use device::{
    calibrate, plot, Bench, DeviceError, EmulatedDisk, Load, Machine, Measured, Mix, Plan, Profile,
    Repeats, Sample,
};
use policy::cost::device::{CostModel, Op, Rule};
use policy::device::{HddParameters, Model, SsdParameters};
use std::time::Duration;

/// A bench that spoils some slices.
struct Emulated {
    bench: EmulatedDisk,
    slices: u64,
    /// Multiplies what a slice counted.
    hiccup: fn(slice: u64, load: &Load) -> f64,
}

impl Emulated {
    fn new(model: Model) -> Emulated {
        Emulated {
            bench: EmulatedDisk::new(model),
            slices: 0,
            hiccup: |_, _| 1.0,
        }
    }
}

impl Bench for Emulated {
    fn run(&mut self, load: &Load, slice: Duration) -> Result<Sample, DeviceError> {
        self.slices += 1;
        let sample = self.bench.run(load, slice)?;
        let spoilt = |count: u64| (count as f64 * (self.hiccup)(self.slices, load)).ceil() as u64;
        Ok(Sample {
            reads: spoilt(sample.reads),
            writes: spoilt(sample.writes),
            ..sample
        })
    }

    fn syncs(&mut self, bytes: u64, slice: Duration) -> Result<f64, DeviceError> {
        self.bench.syncs(bytes, slice)
    }

    fn deletes(&mut self) -> Result<f64, DeviceError> {
        self.bench.deletes()
    }
}

fn plan() -> Plan {
    Plan {
        slice: Duration::from_millis(400),
        repeats: Repeats::new(2, 7),
        mixed_repeats: Repeats::new(2, 4),
        ..Plan::quick()
    }
}

fn measure(bench: &mut Emulated) -> Result<Measured, DeviceError> {
    let mut last = -1.0;
    calibrate(bench, &plan(), &mut |what, part| {
        assert!(
            !what.is_empty() && (0.0..=1.0).contains(&part) && part >= last,
            "{what} {part}"
        );
        last = part;
    })
}

fn ssd() -> Emulated {
    Emulated::new(Model::Ssd(SsdParameters::default()))
}

fn near(value: f64, wanted: f64, tolerance: f64) {
    assert!(
        (value / wanted - 1.0).abs() <= tolerance,
        "{value} instead of {wanted}"
    );
}

#[test]
fn finds_what_the_ssd_is_like() {
    let measured = measure(&mut ssd()).expect("measured");
    assert_eq!(measured.read.len(), 11);
    near(measured.read[0].per_s, 38e3, 0.03);
    near(measured.write[0].per_s, 12e3, 0.05);
    near(measured.read[10].per_s, 270e6 / f64::from(1 << 20), 0.05);
    near(measured.write[10].per_s, 165e6 / f64::from(1 << 20), 0.05);
    // Its controller is busy with a few I/Os already; the thesis's knees are at 64 and 32 KiB.
    assert!((2..=8).contains(&measured.depth), "{}", measured.depth);
    assert!(
        [64, 128].contains(&(measured.chunk_bytes >> 10)),
        "{}",
        measured.chunk_bytes
    );
    near(measured.read_ns.0 as f64, 82e3, 0.1);
    near(measured.write_ns.0 as f64, 105e3, 0.1);
    // Nine pairs of sizes by three mixes, and the way down to the bottom of the valley.
    assert!(measured.seen.len() > 27, "{}", measured.seen.len());
    let max = CostModel::new(Rule::Exact, &measured.calibration().expect("rates")).max_per_s();
    let least = measured
        .seen
        .iter()
        .map(|seen| seen.vop_per_s)
        .fold(f64::MAX, f64::min);
    assert!(
        measured.floor_per_s <= least && measured.floor_per_s > 0.3 * max,
        "{} {least}",
        measured.floor_per_s
    );
    // A sync's price leaves out the write that comes with it: here a command is left.
    assert!(
        measured.sync_per_s > 8e3 && measured.sync_per_s < 40e3,
        "{}",
        measured.sync_per_s
    );
    assert!(
        measured.delete_per_s > 8e3 && measured.delete_per_s < 12.5e3,
        "{}",
        measured.delete_per_s
    );
}

#[test]
fn one_bad_slice_changes_little() {
    let calm = measure(&mut ssd()).expect("measured");
    // Every 17th slice the machine was busy elsewhere, or stopped.
    let hiccups: [fn(u64, &Load) -> f64; 2] = [
        |slice, _| if slice % 17 == 0 { 0.4 } else { 1.0 },
        |slice, _| if slice % 17 == 0 { 0.0 } else { 1.0 },
    ];
    for hiccup in hiccups {
        let mut shaken = Emulated { hiccup, ..ssd() };
        let shaken = measure(&mut shaken).expect("measured");
        for (calm, shaken) in calm
            .read
            .iter()
            .chain(&calm.write)
            .zip(shaken.read.iter().chain(&shaken.write))
        {
            near(shaken.per_s, calm.per_s, 0.06);
        }
    }
}

fn refusal(model: Emulated) -> String {
    let mut model = model;
    let error = measure(&mut model).expect_err("refused");
    assert!(matches!(error, DeviceError::Implausible(_)), "{error}");
    error.to_string()
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let with = |hiccup| Emulated { hiccup, ..ssd() };
    let memory = refusal(with(|_, _| 5_000.0));
    assert!(memory.contains("answers from memory"), "{memory}");
    let dead = refusal(with(
        |_, load| if load.read_bytes > 1 << 19 { 0.0 } else { 1.0 },
    ));
    assert!(dead.contains("the disk hangs"), "{dead}");
    let wild = refusal(with(|slice, _| [1.0, 0.1, 4.0][(slice % 3) as usize]));
    assert!(wild.contains("change by"), "{wild}");
    let rising = refusal(with(
        |_, load| if load.read_bytes == 8 << 10 { 3.0 } else { 1.0 },
    ));
    assert!(
        rising.contains("8192 bytes were done") && rising.contains("times as often as of 4096"),
        "{rising}"
    );
    let stalls = refusal(with(|_, load| match load.mix {
        Mix::Reads(0 | 100) => 1.0,
        _ => 0.005,
    }));
    assert!(
        stalls.contains("with reads and writes mixed only"),
        "{stalls}"
    );
}

#[test]
fn a_hard_disk_is_plausible_too() {
    let mut hdd = Emulated::new(Model::Hdd(HddParameters::default()));
    let slow = Plan {
        slice: Duration::from_secs(3),
        ..Plan::quick()
    };
    let measured = calibrate(&mut hdd, &slow, &mut |_, _| {}).expect("measured");
    assert!(
        measured.depth >= 32,
        "deep queues help an arm: {}",
        measured.depth
    );
    // Positioning costs as much as a transfer of a megabyte.
    assert_eq!(measured.chunk_bytes, 1 << 20);
}

/// Counts the time in slices.
struct Counted {
    bench: EmulatedDisk,
    spent: Duration,
    loads: usize,
}

impl Bench for Counted {
    fn run(&mut self, load: &Load, slice: Duration) -> Result<Sample, DeviceError> {
        self.spent += slice;
        self.loads += 1;
        self.bench.run(load, slice)
    }

    fn syncs(&mut self, bytes: u64, slice: Duration) -> Result<f64, DeviceError> {
        self.spent += slice;
        self.bench.syncs(bytes, slice)
    }

    fn deletes(&mut self) -> Result<f64, DeviceError> {
        self.bench.deletes()
    }
}

#[test]
fn a_brief_measurement_is_brief_and_near_the_long_one() {
    for (name, seconds) in [("ssd", 8.0), ("hdd", 40.0)] {
        let disk = || EmulatedDisk::named(name).expect("a disk");
        let plan = disk().plan();
        let long = calibrate(&mut disk(), &plan, &mut |_, _| {}).expect("measured");
        let mut counted = Counted {
            bench: disk(),
            spent: Duration::ZERO,
            loads: 0,
        };
        let brief = calibrate(&mut counted, &Plan::brief(), &mut |_, _| {}).expect("measured");
        let spent_s = counted.spent.as_secs_f64();
        assert!(spent_s < seconds, "{name}: {spent_s} s");
        // Two latencies, four depths, ten of the curves, nine pairs.
        assert!(counted.loads >= 25, "{name}: {}", counted.loads);
        // What it promises is there.
        let part = brief.floor_per_s / long.floor_per_s;
        assert!((0.6..1.02).contains(&part), "{name}: {part} of the floor");
        let costs = [&brief, &long].map(|measured| measured.costs().expect("prices"));
        for (op, bytes) in [
            (Op::Read, 4 << 10),
            (Op::Write, 4 << 10),
            (Op::Write, 256 << 10),
        ] {
            let [brief, long] = [&costs[0], &costs[1]].map(|costs| costs.cost(op, bytes).get());
            // In 50 ms an SSD erases, or does not.
            near(brief, long, 0.6);
        }
    }
}

/// Of a disk on which slices need not be made longer. A real one warms up for a fifth of each.
#[test]
fn a_full_measurement_takes_less_than_ten_minutes_and_a_quick_one_less_than_one() {
    for (plan, seconds) in [(Plan::full(), 600.0), (Plan::quick(), 60.0)] {
        let mut counted = Counted {
            bench: EmulatedDisk::named("ssd").expect("a disk"),
            spent: Duration::ZERO,
            loads: 0,
        };
        let measured = calibrate(&mut counted, &plan, &mut |_, _| {}).expect("measured");
        assert!(counted.loads > measured.seen.len());
        let spent_s = counted.spent.as_secs_f64() * 1.2;
        assert!(spent_s < seconds, "{spent_s} s");
    }
}

#[test]
fn a_slice_too_short_for_the_disk_is_made_longer() {
    let plan = |slice_ms| Plan {
        slice: Duration::from_millis(slice_ms),
        depths: vec![16],
        sizes: vec![4 << 10, 64 << 10],
        mixed_sizes: vec![4 << 10],
        mixes: vec![Mix::Halves],
        ..Plan::brief()
    };
    let rate = |slice_ms| {
        let mut hdd = EmulatedDisk::named("hdd").expect("a disk");
        let measured = calibrate(&mut hdd, &plan(slice_ms), &mut |_, _| {}).expect("measured");
        measured.read[0].per_s
    };
    // In 5 ms it does one I/O or none: 200 a second or 0, if that were believed.
    near(rate(5), rate(3_000), 0.25);
}

#[test]
fn a_profile_is_written_and_read_back() {
    let measured = measure(&mut ssd()).expect("measured");
    let drawn = plot(&measured);
    assert!(
        drawn.contains("1 MiB") && drawn.contains("75 % reads") && drawn.contains("floor"),
        "{drawn}"
    );
    let profile = Profile {
        made_s: 1_709_210_096,
        version: "0.1.0 \"x\"".into(),
        quick: true,
        directory: "/data/ä b".into(),
        machine: Machine::of(std::path::Path::new(".")).expect("this machine"),
        measured,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("device.toml");
    profile.save(&path).expect("written");
    let read = Profile::load(&path).expect("read");
    // Rates are kept to a tenth: what is written again is the same to the letter.
    assert_eq!(read.text(), profile.text());
    assert_eq!(
        (read.made_s, &read.version, read.machine),
        (profile.made_s, &profile.version, profile.machine)
    );
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        1
    );
}

#[test]
fn every_problem_of_a_profile_is_named_at_once() {
    let measured = measure(&mut ssd()).expect("measured");
    let profile = Profile {
        made_s: 0,
        version: String::new(),
        quick: true,
        directory: String::new(),
        machine: Machine::default(),
        measured,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("device.toml");
    let refused = |text: String| {
        std::fs::write(&path, text).expect("written");
        Profile::load(&path).expect_err("refused").to_string()
    };
    let text = profile.text();
    let spoilt = text
        .replace("quick = true", "quick = 1\nspeed = 9")
        .replace("1970-01-01", "1970-13-01")
        .replace("depth = ", "depth = 0\ndepths = ")
        .replace("reads = 75", "reads = 175")
        .replacen(", per_s = ", ", per_s = -", 1);
    let problems = refused(spoilt);
    for part in [
        "quick: 1 is not true or false",
        "speed: means nothing here",
        "made: ",
        "capacity, depth: 0 is not a whole number above 0",
        "capacity, depths: means nothing here",
        "rates, interference number 10, reads: 175",
        "rates, read number 1, per_s: -",
    ] {
        assert!(problems.contains(part), "{part} in {problems}");
    }
    assert!(refused(text.replace("format = 1", "format = 2")).contains("this version reads 1 only"));
    assert!(refused("format =".into()).contains("line 1 is not TOML"));
    assert!(refused(text.replace("bytes = 2048,", "bytes = 512,")).contains("sizes must grow"));
}
