//! What the engine does alone on the processors it is given; run it under `taskset -c 0`.
//!
//! ```text
//! cargo build --release -p entremet-engine --example bench_engine
//! taskset -c 0 target/release/examples/bench_engine [DIR] [seconds] [only this concurrency]
//! ```

use bytes::Bytes;
use engine::{
    Allotments, Database, Engine, EngineOptions, Entry, Keys, Keyspace, KeyspaceOptions, Outcome,
    Sync,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEYS: u64 = 200_000;
const VALUE_BYTES: usize = 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let root = PathBuf::from(args.next().unwrap_or_else(|| "bench-data".into()));
    let seconds: u64 = args.next().map_or(Ok(10), |s| s.parse())?;
    let length = Duration::from_secs(seconds);
    // First: later, what the others gave back would be used again and not be seen.
    let only = args.next().and_then(|s| s.parse().ok());
    if only.is_none_or(|only| only == 0) {
        report_memory(&root.join("tenants"), 400)?;
    }
    for concurrency in [1, 50, 800] {
        if only.is_some_and(|only: u64| only != concurrency) {
            continue;
        }
        let directory = root.join(format!("puts-{concurrency}"));
        let (engine, keyspace) = open(&directory, Sync::EverySecond)?;
        report_puts(&keyspace, concurrency, length);
        if concurrency == 800 {
            report_gets(&keyspace, length / 2);
        }
        drop(keyspace);
        engine.shutdown();
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(())
}

fn open(
    directory: &Path,
    sync: Sync,
) -> Result<(Arc<Engine>, Arc<Keyspace>), Box<dyn std::error::Error>> {
    let _ = std::fs::remove_dir_all(directory);
    let engine = Engine::open(EngineOptions::new(directory))?;
    let keyspace = engine.keyspace(
        "bench",
        KeyspaceOptions::new(sync, Allotments::objects(512 << 20)),
    )?;
    Ok((engine, keyspace))
}

/// Random overwrites; `concurrency` writes, then their commit, as a core with this many
/// connections does.
fn report_puts(keyspace: &Arc<Keyspace>, concurrency: u64, length: Duration) {
    let value = vec![b'x'; VALUE_BYTES];
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut puts = 0u64;
    let (started, cpu) = (Instant::now(), cpu_seconds());
    let mut last_report = (Instant::now(), 0);
    let mut slowest = Duration::ZERO;
    while started.elapsed() < length {
        let turn = Instant::now();
        let mut last = 0;
        for _ in 0..concurrency {
            random = next(random);
            let key = format!("key:{:012}", random % KEYS);
            last = put(keyspace, key.as_bytes(), &value);
        }
        keyspace.wait_commit(last).expect("commit");
        slowest = slowest.max(turn.elapsed());
        puts += concurrency;
        if last_report.0.elapsed() > Duration::from_secs(2) {
            let rate = (puts - last_report.1) as f64 / last_report.0.elapsed().as_secs_f64();
            println!("    {:>9.0} puts/s", rate);
            last_report = (Instant::now(), puts);
        }
    }
    let elapsed = started.elapsed().as_secs_f64();
    if std::env::var_os("THREADS").is_some() {
        print_threads(puts);
    }
    let stats = keyspace.stats();
    println!(
        "puts, {concurrency:>3} at once: {:>9.0} /s, {:.2} us of processor each ({:.1} a commit, slowest turn {:.1} ms, files {} MiB, debt {} MiB)",
        puts as f64 / elapsed,
        (cpu_seconds() - cpu) / puts as f64 * 1e6,
        stats.committed_writes as f64 / stats.commits as f64,
        slowest.as_secs_f64() * 1e3,
        stats.disk_bytes >> 20,
        stats.compaction_debt_bytes >> 20,
    );
}

fn put(keyspace: &Keyspace, key: &[u8], value: &[u8]) -> u64 {
    let keys = [key];
    loop {
        let outcome = keyspace.try_run(&Keys::In(Database::FIRST, &keys), 1, &mut |access| {
            access.put(key, Entry::string(Bytes::copy_from_slice(value)))
        });
        match outcome {
            Outcome::Done { seq, .. } => return seq,
            Outcome::Full => keyspace
                .wait_commit(keyspace.committed() + 1)
                .expect("commit"),
            other => panic!("{other:?}"),
        }
    }
}

fn report_gets(keyspace: &Arc<Keyspace>, length: Duration) {
    let keys: Vec<String> = (0..KEYS).map(|i| format!("key:{i:012}")).collect();
    for (name, span) in [("100 keys", 100), ("all keys", KEYS)] {
        let mut random = 1u64;
        let (mut gets, mut found) = (0u64, 0u64);
        let (started, cpu) = (Instant::now(), cpu_seconds());
        while started.elapsed() < length {
            for _ in 0..1000 {
                random = next(random);
                let key = keys[(random % span) as usize].as_bytes();
                let declared = [key];
                match keyspace.try_run(&Keys::In(Database::FIRST, &declared), 1, &mut |access| {
                    access.get(key)
                }) {
                    Outcome::Done { reply, .. } => found += u64::from(reply.is_some()),
                    Outcome::Disk => {}
                    other => panic!("{other:?}"),
                }
            }
            gets += 1000;
        }
        println!(
            "cached gets, {name}: {:>9.0} /s, {:.3} us of processor each ({:.1} % found in memory)",
            gets as f64 / started.elapsed().as_secs_f64(),
            (cpu_seconds() - cpu) / gets as f64 * 1e6,
            found as f64 / gets as f64 * 100.0
        );
    }
}

/// Resident bytes for each tenant: closed again after one small write, and with its database
/// open. (Twenty go first: what is made once for all is not theirs.)
fn report_memory(directory: &Path, tenants: u64) -> Result<(), Box<dyn std::error::Error>> {
    let _ = std::fs::remove_dir_all(directory);
    let engine = Engine::open(EngineOptions::new(directory))?;
    let mut kept = Vec::new();
    let mut grown = |from: u64, to: u64, close: bool| -> Result<u64, engine::EngineError> {
        let before = resident_bytes();
        for i in from..to {
            let keyspace = idle(&engine, i)?;
            assert!(!close || keyspace.close());
            kept.push(keyspace);
        }
        Ok(resident_bytes().saturating_sub(before) / (to - from) / 1024)
    };
    grown(0, 20, true)?;
    let closed = grown(20, 20 + tenants, true)?;
    let open = grown(20 + tenants, 20 + 2 * tenants, false)?;
    println!("a tenant with one key: {closed} KiB closed, {open} KiB with its database open");
    drop(kept);
    engine.shutdown();
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

fn idle(engine: &Arc<Engine>, i: u64) -> Result<Arc<Keyspace>, engine::EngineError> {
    let name = format!("tenant-{i}");
    let keyspace = engine.keyspace(
        &name,
        KeyspaceOptions::new(Sync::EverySecond, Allotments::objects(64 << 20)),
    )?;
    let seq = put(&keyspace, b"key", b"value");
    keyspace.wait_commit(seq)?;
    Ok(keyspace)
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|p| p.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// Processor time of each thread so far, by name.
fn print_threads(puts: u64) {
    let mut times = std::collections::BTreeMap::<String, f64>::new();
    for task in std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
    {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let name = stat.split(['(', ')']).nth(1).unwrap_or_default().to_owned();
        *times.entry(name).or_default() += cpu_of(&stat);
    }
    for (name, seconds) in times {
        println!(
            "    {:>6.2} us a put in {name}",
            seconds / puts as f64 * 1e6
        );
    }
}

/// Processor time of the whole process so far, seconds: background work included, and what
/// other processes take is not.
fn cpu_seconds() -> f64 {
    cpu_of(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

fn cpu_of(stat: &str) -> f64 {
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|f| f.parse::<u64>().ok())
        .sum();
    ticks as f64 / 100.0
}

/// xorshift64
fn next(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ (x << 17)
}
