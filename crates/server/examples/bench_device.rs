//! What the hook under RocksDB and the device stage cost. First the stage alone: I/Os that begin and end and do nothing between,
//! by threads. Then point gets from the disk and from memory, of the same data without a hook, with a hook that does nothing,
//! and with the device stage: gets a second and the processor's time for each. In short turns, in one process, so that the
//! machine's moods hit all alike; medians of the rounds' ratios to the gets without a hook, and where they lie with 95 %.
//!
//! ```text
//! cargo run --release -p entremet-server --example bench_device [DIR] [rounds] [seconds of a slice]
//! ```

use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended, FileKind, Op, Tag};
use engine::{
    Access, Engine, EngineOptions, Entry, Keys, Keyspace, KeyspaceOptions, Outcome, Stop, Sync,
};
use policy::cost::device::{Calibration, CostModel, Curve, Point, Rule};
use server::device::{DeviceOptions, DeviceScheduler, Pricing};
use stage::{Clock, Discipline, Nanos};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEYS: u64 = 100_000;
const VALUE_BYTES: usize = 1024;
/// I/Os of the stage alone.
const ALONE: u64 = 2_000_000;
const NAMES: [&str; 3] = ["bare", "hook", "stage"];

#[derive(Clone)]
struct Real(Instant);

impl Clock for Real {
    fn now(&self) -> Nanos {
        self.0.elapsed().as_nanos() as Nanos
    }
}

/// A hook that does nothing.
struct Nothing;

impl DeviceStage for Nothing {
    fn begin(&self, _: &DeviceIo) -> u64 {
        0
    }

    fn end(&self, _: &DeviceIo, _: u64, _: Ended) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let root = args.next().unwrap_or_else(|| "bench-device".into());
    let rounds: usize = args.next().map_or(Ok(60), |text| text.parse())?;
    let slice = Duration::from_secs_f64(args.next().map_or(Ok(0.25), |text| text.parse())?);
    let stage = stage()?;
    for threads in [1, 8, 32] {
        alone(&*stage, threads);
    }
    for (place, block_cache_bytes) in [("disk", 4 << 20), ("memory", 1 << 30)] {
        let directory = Path::new(&root).join(place);
        let mut options = EngineOptions::new(&directory);
        options.block_cache_bytes = block_cache_bytes;
        let engine = Engine::open(options)?;
        let keyspaces = keyspaces(&engine)?;
        for keyspace in &keyspaces {
            fill(keyspace);
        }
        for threads in [1, 8, 32] {
            compare(place, &keyspaces, threads, rounds, slice);
        }
        drop(keyspaces);
        engine.shutdown();
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(())
}

fn stage() -> Result<Arc<DeviceScheduler<Real>>, Box<dyn std::error::Error>> {
    // Prices of no device in particular: the arithmetic takes the same time.
    let curve = |op| {
        let point = |bytes, per_s| Point { bytes, per_s };
        Curve::new(
            op,
            vec![
                point(1 << 12, 8e4),
                point(1 << 16, 2e4),
                point(1 << 20, 1e3),
            ],
        )
    };
    let calibration = Calibration::new(curve(Op::Read)?, curve(Op::Write)?, 2e4, 8e3)?;
    let options = DeviceOptions {
        costs: CostModel::new(Rule::Exact, &calibration),
        floor_per_s: 4e4,
        depth: 64,
        chunk_bytes: 128 << 10,
        discipline: Discipline::Fair,
        pricing: Pricing::Profiles,
        overbook: false,
        doubt: None,
    };
    let stage = DeviceScheduler::new(options, Real(Instant::now()), None);
    stage.configure(0, 1.0, 0);
    Ok(stage)
}

/// I/Os of the stage alone: what it adds to each while there are permits for all.
fn alone(stage: &dyn DeviceStage, threads: u64) {
    let io = DeviceIo {
        principal: 0,
        op: Op::Read,
        offset: 0,
        bytes: 4 << 10,
        file: FileKind::Data,
        activity: Activity::Get,
        urgent: false,
        tag: Tag(1),
    };
    let ended = Ended {
        bytes: io.bytes,
        ok: true,
    };
    let each = ALONE / threads;
    let (cpu, begin) = (AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..each {
                    let token = stage.begin(&io);
                    stage.end(&io, token, ended);
                }
                cpu.fetch_add(threads::cpu_ns(), Ordering::Relaxed);
            });
        }
    });
    let (cpu, done) = (cpu.into_inner() as f64, (each * threads) as f64);
    let wall = begin.elapsed().as_nanos() as f64;
    println!(
        "  alone {threads:>3} threads:  {:.0} ns of processor for each I/O, one each {:.0} ns",
        cpu / done,
        wall / done
    );
}

fn keyspaces(engine: &Arc<Engine>) -> Result<Vec<Arc<Keyspace>>, Box<dyn std::error::Error>> {
    let stage = stage()?;
    let hooks: [Option<Arc<dyn DeviceStage>>; 3] = [None, Some(Arc::new(Nothing)), Some(stage)];
    let mut keyspaces = Vec::new();
    for (name, stage) in NAMES.iter().zip(hooks) {
        // An object cache of nothing: every get goes to RocksDB.
        let mut options = KeyspaceOptions::new(Sync::Never, 4 << 10);
        options.device = stage.map(|stage| DeviceHook {
            stage,
            principal: 0,
        });
        keyspaces.push(engine.keyspace(name, options)?);
    }
    Ok(keyspaces)
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{number:012}").into_bytes()
}

fn fill(keyspace: &Arc<Keyspace>) {
    let mut random = 1;
    for number in 0..KEYS {
        let value: Vec<u8> = (0..VALUE_BYTES / 8)
            .flat_map(|_| next(&mut random).to_le_bytes())
            .collect();
        let entry = Entry::string(bytes::Bytes::from(value));
        run(keyspace, &key(number), |access, key| {
            access.put(key, entry.clone())
        });
    }
}

/// Runs a command through whatever phases it needs, on this thread.
fn run<R>(
    keyspace: &Arc<Keyspace>,
    key: &[u8],
    mut command: impl FnMut(&mut Access, &[u8]) -> Result<R, Stop>,
) -> R {
    let keys = [key];
    let keys = Keys::Some(&keys);
    let mut command = |access: &mut Access| command(access, key);
    loop {
        let (told, when) = channel();
        let waiter = Box::new(move || told.send(()).unwrap_or(()));
        let told = match keyspace.try_run(&keys, 1, &mut command) {
            Outcome::Done { reply, .. } => return reply,
            Outcome::Failed(error) => panic!("{error}"),
            Outcome::Busy => keyspace.wait(&keys, waiter),
            Outcome::Full => keyspace.wait_room(waiter),
            Outcome::Disk => match keyspace.latch(&keys, waiter) {
                Some(latch) => match keyspace.run(&latch, 1, &mut command) {
                    Ok((reply, _)) => return reply,
                    Err(error) => panic!("{error}"),
                },
                None => true,
            },
        };
        if told {
            // Whoever was to tell is gone only with the keyspace.
            let _ = when.recv();
        }
    }
}

fn next(random: &mut u64) -> u64 {
    *random = random
        .wrapping_mul(0x5851_F42D_4C95_7F2D)
        .wrapping_add(0x1405_7B7E_F767_814F);
    *random ^ *random >> 29
}

fn compare(place: &str, keyspaces: &[Arc<Keyspace>], threads: u64, rounds: usize, slice: Duration) {
    let mut seen = vec![Vec::new(); NAMES.len()];
    for round in 0..=rounds {
        for turn in 0..NAMES.len() {
            let at = (round + turn) % NAMES.len();
            let figures = gets(&keyspaces[at], threads, slice);
            // The first round warms caches up.
            if round > 0 {
                seen[at].push(figures);
            }
        }
    }
    let bare = &seen[0];
    let [rate, cpu_us] = [|of: &(f64, f64)| of.0, |of: &(f64, f64)| of.1]
        .map(|figure| middle(bare.iter().map(figure).collect()).0);
    print!("{place:>7} {threads:>3} threads:  bare {rate:>7.0}/s {cpu_us:.2} us");
    for (name, ours) in NAMES.iter().zip(&seen).skip(1) {
        let ratio = |figure: fn(&(f64, f64)) -> f64| {
            let pairs = ours.iter().zip(bare);
            let (median, [low, high]) = middle(
                pairs
                    .map(|(ours, bare)| figure(ours) / figure(bare))
                    .collect(),
            );
            format!("{median:.3} [{low:.3} {high:.3}]")
        };
        let (rate, cpu) = (ratio(|of| of.0), ratio(|of| of.1));
        print!("  {name}: rate {rate}, processor {cpu}");
    }
    println!();
}

/// The median, and the bounds between which it lies with 95 %: how many are below the true one is binomial.
fn middle(mut figures: Vec<f64>) -> (f64, [f64; 2]) {
    figures.sort_by(f64::total_cmp);
    let half = figures.len() as f64 / 2.0;
    let low = (half - 0.98 * (2.0 * half).sqrt()).max(0.0) as usize;
    let high = figures.len() - 1 - low;
    (figures[figures.len() / 2], [figures[low], figures[high]])
}

/// Gets a second, and microseconds of processor for each.
fn gets(keyspace: &Arc<Keyspace>, threads: u64, slice: Duration) -> (f64, f64) {
    let (stop, done, cpu) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (stop, done, cpu) = (&stop, &done, &cpu);
            scope.spawn(move || {
                let (mut random, mut count) = (thread + 1, 0);
                while !stop.load(Ordering::Relaxed) {
                    let key = key((next(&mut random) >> 20) % KEYS);
                    run(keyspace, &key, |access, key| access.get(key));
                    count += 1;
                    if count % 16 == 0 && begin.elapsed() >= slice {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
                done.fetch_add(count, Ordering::Relaxed);
                cpu.fetch_add(threads::cpu_ns(), Ordering::Relaxed);
            });
        }
    });
    let done = done.into_inner() as f64;
    let rate = done / begin.elapsed().as_secs_f64();
    (rate, cpu.into_inner() as f64 / 1e3 / done)
}
