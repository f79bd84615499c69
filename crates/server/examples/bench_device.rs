//! What the hook under RocksDB and the device stage cost. First the stage alone: I/Os that begin
//! and end and do nothing between, by threads. Then point gets from the disk and from memory, of
//! the same tables without a hook, with a hook that does nothing, and with the device stage: gets a
//! second and the processor's time for each.
//!
//! In short turns, in one process, so that the machine's moods hit all alike. Where in memory a
//! database happens to lie is worth ten percent for as long as it is open, so all are opened anew
//! many times, in another order; each time is one sample, and medians are told with the bounds
//! between which they lie with 95 %.
//!
//! ```text
//! cargo run --release -p entremet-server --example bench_device [DIR] [times] [seconds of a turn]
//! ```

use engine::device::{Activity, DeviceHook, DeviceIo, DeviceStage, Ended, FileKind, Op, Tag};
use engine::{
    Access, Allotments, Database, Engine, EngineOptions, Entry, Keys, Keyspace, KeyspaceOptions,
    Outcome, Stop, Sync,
};
use policy::cost::device::{Calibration, CostModel, Curve, Point, Rule, Sweep};
use policy::generator::Generator;
use policy::supply::Supply;
use server::device::{DeviceOptions, DeviceScheduler, Pricing};
use stage::{Clock, Discipline, Nanos};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEYS: u64 = 100_000;
const VALUE_BYTES: usize = 1024;
/// I/Os of the stage alone.
const ALONE: u64 = 2_000_000;
/// An engine that takes less than a fiftieth of a processor for this long has settled.
const QUIET: Duration = Duration::from_secs(2);
/// Turns of each that count, of each time.
const ROUNDS: usize = 3;
/// Threads that read everything before.
const WARMING: u64 = 16;
const THREADS: [u64; 3] = [1, 8, 32];
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
    let times: usize = args.next().map_or(Ok(12), |text| text.parse())?;
    let turn = Duration::from_secs_f64(args.next().map_or(Ok(0.2), |text| text.parse())?);
    let stage = stage()?;
    for threads in THREADS {
        alone(&*stage, threads);
    }
    for (place, block_cache_bytes) in [("disk", 4 << 20), ("memory", 1 << 30)] {
        let directory = Path::new(&root).join(place);
        let open = || {
            let mut options = EngineOptions::new(&directory);
            options.block_cache_bytes = block_cache_bytes;
            Engine::open(options)
        };
        fill(&open()?)?;
        // What the log has goes to tables when it is opened again.
        settled(&open()?)?;
        share(&directory)?;
        let part = block_cache_bytes / NAMES.len() as u64;
        let mut samples = THREADS.map(|_| Vec::new());
        for time in 0..times {
            let engine = open()?;
            let keyspaces = keyspaces(&engine, &order(time), part)?;
            keyspaces.values().for_each(warm_up);
            for (samples, threads) in samples.iter_mut().zip(THREADS) {
                samples.push(compare(&keyspaces, threads, turn));
            }
            drop(keyspaces);
            engine.shutdown();
        }
        for (samples, threads) in samples.iter().zip(THREADS) {
            println!("{place:>7} {threads:>3} threads: {}", told(samples));
        }
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
        supply: Supply {
            sweep: Sweep::floor(4e4),
            processors: 1.0,
        },
        depth: 64,
        chunk_bytes: 128 << 10,
        discipline: Discipline::Fair,
        pricing: Pricing::Profiles,
        overbook: false,
        seeks: false,
        stream_bytes_per_s: 1e9,
        read_alone_ns: [100_000, 200_000],
        doubt: None,
        brief: false,
    };
    let stage = DeviceScheduler::new(options, Real(Instant::now()), None);
    stage.configure(0, 1.0);
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
        number: 0,
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

/// All keyspaces; another is the first, and the next one the other way round.
fn order(time: usize) -> [usize; NAMES.len()] {
    let mut order = std::array::from_fn(|turn| (time / 2 + turn) % NAMES.len());
    if time % 2 == 1 {
        order.reverse();
    }
    order
}

/// Opens those keyspaces in that order, each with this much of the block cache.
fn keyspaces(
    engine: &Arc<Engine>,
    order: &[usize],
    block_cache_bytes: u64,
) -> Result<BTreeMap<usize, Arc<Keyspace>>, Box<dyn std::error::Error>> {
    let stage = stage()?;
    let hooks: [Option<Arc<dyn DeviceStage>>; 3] = [None, Some(Arc::new(Nothing)), Some(stage)];
    let mut keyspaces = BTreeMap::new();
    for &at in order {
        // An object cache of nothing: every get goes to RocksDB.
        let mut options = KeyspaceOptions::new(Sync::Never, Allotments::objects(4 << 10));
        options.allotments.block_cache_bytes = block_cache_bytes;
        options.device = hooks[at].clone().map(|stage| DeviceHook {
            stage,
            principal: 0,
        });
        keyspaces.insert(at, engine.keyspace(NAMES[at], options)?);
    }
    Ok(keyspaces)
}

/// Brings all blocks into the block cache, as far as they fit: a get that goes to the disk costs as
/// much as five that do not.
fn warm_up(keyspace: &Arc<Keyspace>) {
    std::thread::scope(|scope| {
        for first in 0..WARMING {
            scope.spawn(move || {
                for number in (first..KEYS).step_by(WARMING as usize) {
                    run(keyspace, &key(number), |access, key| access.get(key));
                }
            });
        }
    });
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{number:012}").into_bytes()
}

/// Fills the keyspace without a hook, and ends the engine.
fn fill(engine: &Arc<Engine>) -> Result<(), Box<dyn std::error::Error>> {
    let keyspace = &keyspaces(engine, &[0], 0)?[&0];
    let mut random = Generator::new(1);
    for number in 0..KEYS {
        let value: Vec<u8> = (0..VALUE_BYTES / 8)
            .flat_map(|_| random.bits().to_le_bytes())
            .collect();
        let entry = Entry::string(bytes::Bytes::from(value));
        run(keyspace, &key(number), |access, key| {
            access.put(key, entry.clone())
        });
    }
    engine.shutdown();
    Ok(())
}

/// Waits until an engine that opens that keyspace has nothing more to do, and ends it.
fn settled(engine: &Arc<Engine>) -> Result<(), Box<dyn std::error::Error>> {
    let _open = keyspaces(engine, &[0], 0)?;
    let mut before = threads::process_cpu_ns();
    loop {
        std::thread::sleep(QUIET);
        let now = threads::process_cpu_ns();
        if u128::from(now - std::mem::replace(&mut before, now)) < QUIET.as_nanos() / 50 {
            break;
        }
    }
    engine.shutdown();
    Ok(())
}

/// Gives the other keyspaces the same tables, in the same place on the disk: where tables lie is
/// worth a quarter of what can be read of them.
fn share(directory: &Path) -> std::io::Result<()> {
    let tenants = directory.join("tenants");
    for name in &NAMES[1..] {
        std::fs::create_dir(tenants.join(name))?;
        for file in std::fs::read_dir(tenants.join(NAMES[0]))? {
            let (from, to) = (file?.path(), tenants.join(name));
            let to = to.join(from.file_name().unwrap_or_default());
            if from.extension().is_some_and(|kind| kind == "sst") {
                std::fs::hard_link(from, to)?;
            } else {
                std::fs::copy(from, to)?;
            }
        }
    }
    Ok(())
}

/// Runs a command through whatever phases it needs, on this thread.
fn run<R>(
    keyspace: &Arc<Keyspace>,
    key: &[u8],
    mut command: impl FnMut(&mut Access, &[u8]) -> Result<R, Stop>,
) -> R {
    let keys = [key];
    let keys = Keys::In(Database::FIRST, &keys);
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
                Some(latch) => match keyspace.run(&latch, engine::Site::Handler, 1, &mut command) {
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

/// What one keyspace did.
#[derive(Clone, Copy)]
struct Done {
    per_s: f64,
    cpu_us: f64,
}

/// The middle of what each keyspace did in some rounds.
fn compare(
    keyspaces: &BTreeMap<usize, Arc<Keyspace>>,
    threads: u64,
    turn: Duration,
) -> [Done; NAMES.len()] {
    let mut seen = NAMES.map(|_| Vec::new());
    for round in 0..=ROUNDS {
        for at in order(round) {
            let done = gets(&keyspaces[&at], threads, turn);
            // The first round warms caches up.
            if round > 0 {
                seen[at].push(done);
            }
        }
    }
    seen.map(|seen| Done {
        per_s: middle(seen.iter().map(|done| done.per_s)).0,
        cpu_us: middle(seen.iter().map(|done| done.cpu_us)).0,
    })
}

/// Gets without a hook, and the others beside them.
fn told(samples: &[[Done; NAMES.len()]]) -> String {
    let of = |figure: fn(&Done) -> f64| middle(samples.iter().map(|sides| figure(&sides[0]))).0;
    let mut told = format!(
        " bare {:.0}/s {:.2} us",
        of(|done| done.per_s),
        of(|done| done.cpu_us)
    );
    for at in 1..NAMES.len() {
        let ratio = |figure: fn(&Done) -> f64| {
            let each = samples
                .iter()
                .map(|sides| figure(&sides[at]) / figure(&sides[0]));
            let (median, [low, high]) = middle(each);
            format!("{median:.3} [{low:.3} {high:.3}]")
        };
        let (rate, cpu) = (ratio(|done| done.per_s), ratio(|done| done.cpu_us));
        told += &format!("  {}: rate {rate}, processor {cpu}", NAMES[at]);
    }
    told
}

/// The median, and the bounds between which it lies with 95 %: how many are below the true one is
/// binomial.
fn middle(figures: impl Iterator<Item = f64>) -> (f64, [f64; 2]) {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    let half = figures.len() as f64 / 2.0;
    let low = (half - 0.98 * (2.0 * half).sqrt()).max(0.0) as usize;
    let high = figures.len() - 1 - low;
    (figures[figures.len() / 2], [figures[low], figures[high]])
}

fn gets(keyspace: &Arc<Keyspace>, threads: u64, turn: Duration) -> Done {
    let (stop, done, cpu) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (stop, done, cpu) = (&stop, &done, &cpu);
            scope.spawn(move || {
                let (mut random, mut count) = (Generator::new(thread + 1), 0);
                while !stop.load(Ordering::Relaxed) {
                    let key = key(random.below(KEYS));
                    run(keyspace, &key, |access, key| access.get(key));
                    count += 1;
                    if count % 16 == 0 && begin.elapsed() >= turn {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
                done.fetch_add(count, Ordering::Relaxed);
                cpu.fetch_add(threads::cpu_ns(), Ordering::Relaxed);
            });
        }
    });
    let done = done.into_inner() as f64;
    Done {
        per_s: done / begin.elapsed().as_secs_f64(),
        cpu_us: cpu.into_inner() as f64 / 1e3 / done,
    }
}
