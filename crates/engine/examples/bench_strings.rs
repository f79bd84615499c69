//! What long strings cost, by the size of their pieces; run it under `taskset -c 0`. To compare
//! sizes, change `PIECE_BYTES` (or `WHOLE_BYTES_MAX`) and build again:
//! docs/decisions/0019-strings-in-pieces.md has a table.
//!
//! ```text
//! cargo build --release -p entremet-engine --example bench_strings
//! taskset -c 0 target/release/examples/bench_strings [DIR]
//! ```

use bytes::Bytes;
use engine::{
    Access, Allotments, Database, Engine, EngineError, EngineOptions, Entry, Keys, Keyspace,
    KeyspaceOptions, Object, Outcome, Site, Stop, Sync, Text,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(std::env::args().nth(1).unwrap_or("bench-data".into()));
    println!(
        "pieces of {} KiB, strings of up to {} KiB are whole",
        engine::PIECE_BYTES / KIB,
        engine::WHOLE_BYTES_MAX / KIB
    );
    for bytes in [64 * KIB, 128 * KIB, MIB, 64 * MIB] {
        let directory = root.join("strings");
        let _ = std::fs::remove_dir_all(&directory);
        let engine = Engine::open(EngineOptions::new(&directory))?;
        let keyspace = engine.keyspace(
            "bench",
            KeyspaceOptions::new(Sync::EverySecond, Allotments::objects(64 << 20)),
        )?;
        report(&keyspace, bytes)?;
        drop(keyspace);
        engine.shutdown();
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(())
}

fn report(keyspace: &Arc<Keyspace>, bytes: usize) -> Result<(), EngineError> {
    let mut random = 88_172_645_463_325_252u64;
    let words = (0..bytes / 8).flat_map(|_| {
        random = next(random);
        random.to_le_bytes()
    });
    let value = Bytes::from_iter(words);
    println!("strings of {} KiB", bytes / KIB);
    let rounds = (256 * MIB / bytes).clamp(8, 2_000) as u64;
    timed(keyspace, "replaced", rounds, |_| {
        committed(keyspace, &mut |access| {
            access.put(b"k", Entry::string(value.clone()))
        })
    })?;
    // Until memory has let go of what is committed.
    std::thread::sleep(std::time::Duration::from_millis(100));
    timed(keyspace, "read whole", rounds, |_| {
        read_whole(keyspace, bytes)
    })?;
    keyspace.close();
    read_whole(keyspace, 0)?;
    timed(keyspace, "opened and read", rounds.min(20), |_| {
        assert!(keyspace.close());
        read_whole(keyspace, bytes)
    })?;
    timed(keyspace, "only opened", rounds.min(20), |_| {
        assert!(keyspace.close());
        run(keyspace, &mut |access| string(access).map(drop)).map(drop)
    })?;
    timed(keyspace, "one byte read", 20_000, |random| {
        run(keyspace, &mut |access| {
            let (text, at) = (string(access)?.0, random % bytes as u64);
            access.parts(&text, at..at + 1)?.next(access).map(drop)
        })
        .map(drop)
    })?;
    timed(keyspace, "one byte written", 2_000, |random| {
        committed(keyspace, &mut |access| {
            let (mut text, at) = (string(access)?.0, random % bytes as u64);
            access.write(&mut text, at, Bytes::from_static(b"b"))?;
            put(access, text)
        })
    })?;
    timed(keyspace, "one byte appended", 2_000, |_| {
        committed(keyspace, &mut |access| {
            let mut text = string(access)?.0;
            let end = text.len();
            access.write(&mut text, end, Bytes::from_static(b"b"))?;
            put(access, text)
        })
    })
}

fn read_whole(keyspace: &Arc<Keyspace>, bytes: usize) -> Result<(), EngineError> {
    run(keyspace, &mut |access| {
        let (text, _) = string(access)?;
        let (mut parts, mut read) = (access.parts(&text, 0..bytes as u64)?, 0);
        while let Some(part) = parts.next(access)? {
            read += part.len();
        }
        assert_eq!(read, bytes);
        Ok(())
    })
    .map(drop)
}

/// Does `act` so often, and says what it took of processors, background work included, and what was
/// written.
fn timed(
    keyspace: &Arc<Keyspace>,
    what: &str,
    times: u64,
    mut act: impl FnMut(u64) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let (written, began, cpu) = (
        keyspace.stats().committed_bytes,
        Instant::now(),
        cpu_seconds(),
    );
    for _ in 0..times {
        random = next(random);
        act(random)?;
    }
    let each = |total: f64| total / times as f64;
    println!(
        "  {what:>18}: {:>9.1} us of processor, {:>9.1} us, {:>8.1} KiB to the log",
        each(cpu_seconds() - cpu) * 1e6,
        each(began.elapsed().as_secs_f64()) * 1e6,
        each((keyspace.stats().committed_bytes - written) as f64) / KIB as f64
    );
    Ok(())
}

fn string(access: &mut Access) -> Result<(Text, Option<u64>), Stop> {
    match access.get(b"k")? {
        Some(Entry {
            object: Object::String(text),
            expire_at_ms,
        }) => Ok((text, expire_at_ms)),
        other => panic!("{other:?}"),
    }
}

fn put(access: &mut Access, text: Text) -> Result<(), Stop> {
    let (object, expire_at_ms) = (Object::String(text), None);
    let entry = Entry {
        object,
        expire_at_ms,
    };
    access.put(b"k", entry)
}

fn committed(
    keyspace: &Arc<Keyspace>,
    command: &mut dyn FnMut(&mut Access) -> Result<(), Stop>,
) -> Result<(), EngineError> {
    run(keyspace, command).and_then(|seq| keyspace.wait_commit(seq))
}

fn run(
    keyspace: &Arc<Keyspace>,
    command: &mut dyn FnMut(&mut Access) -> Result<(), Stop>,
) -> Result<u64, EngineError> {
    let keys = Keys::In(Database::FIRST, &[b"k"]);
    match keyspace.try_run(&keys, 1, command) {
        Outcome::Done { seq, .. } => Ok(seq),
        Outcome::Disk => {
            let latch = keyspace.latch(&keys, Box::new(|| {})).expect("one thread");
            keyspace
                .run(&latch, Site::Apart, 1, command)
                .map(|((), seq)| seq)
        }
        Outcome::Failed(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// Processor time of the whole process so far.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// xorshift64
fn next(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ (x << 17)
}
