//! What the tests share: an engine in a directory of its own, and a command run to its end.
#![allow(dead_code)] // each test binary uses a part

use bytes::Bytes;
use engine::device::{DeviceHook, DeviceIo, DeviceStage, Ended};
use engine::{
    Access, Allotments, Database, Engine, EngineError, EngineOptions, Entry, Keys, Keyspace,
    KeyspaceOptions, Object, Outcome, Seq, Site, Stop, Sync,
};
use policy::generator::Generator;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Lets every I/O pass, so that all that these tests do is done through the hook too.
struct Pass;

impl DeviceStage for Pass {
    fn begin(&self, io: &DeviceIo) -> u64 {
        io.offset ^ u64::from(io.principal)
    }

    fn end(&self, io: &DeviceIo, token: u64, ended: Ended) {
        assert_eq!(token, self.begin(io));
        assert!(ended.bytes <= io.bytes, "{io:?} {ended:?}");
    }

    fn chunk_bytes(&self) -> u64 {
        8 << 10
    }
}

/// Small everything, so that limits are met: cache 64 KiB in 4 shards, batches of 4 KiB, values
/// apart from 64 bytes on; under a hook that cuts larger I/Os into two pages.
pub fn small(sync: Sync) -> KeyspaceOptions {
    let mut options = KeyspaceOptions::new(sync, Allotments::objects(64 << 10));
    options.shards = 4;
    options.memtable_bytes = 256 << 10;
    options.batch_bytes = 4 << 10;
    options.pending_bytes = 64 << 10;
    options.large_value_bytes = 64;
    options.device = Some(DeviceHook {
        stage: Arc::new(Pass),
        principal: 3,
    });
    options
}

pub fn engine(directory: &Path) -> Arc<Engine> {
    Engine::open(engine_options(directory)).expect("engine")
}

pub fn engine_options(directory: &Path) -> EngineOptions {
    let mut options = EngineOptions::new(directory);
    options.object_cache_bytes = 128 << 10;
    options.block_cache_bytes = 4 << 20;
    options.handlers = 4;
    options.tick = Duration::from_millis(20);
    options.idle_close = None;
    options
}

/// Closes the database, which may be in use for a moment: syncs and upkeep have threads of their
/// own.
pub fn close(keyspace: &Keyspace) {
    let until = Instant::now() + Duration::from_secs(60);
    while !keyspace.close() {
        assert!(Instant::now() < until, "it is in use all the time");
        std::thread::yield_now();
    }
}

/// Runs a command through whatever phases it needs, as a server does, blocking this thread.
pub fn run<R>(
    keyspace: &Arc<Keyspace>,
    keys: &Keys,
    now_ms: u64,
    mut f: impl FnMut(&mut Access) -> Result<R, Stop>,
) -> Result<(R, Seq), EngineError> {
    loop {
        let (told, when) = channel();
        let waiter = || {
            let told = told.clone();
            Box::new(move || told.send(()).unwrap_or(()))
        };
        let told = match keyspace.try_run(keys, now_ms, &mut f) {
            Outcome::Done { reply, seq } => return Ok((reply, seq)),
            Outcome::Failed(error) => return Err(error),
            Outcome::Busy => keyspace.wait(keys, waiter()),
            Outcome::Full => keyspace.wait_room(waiter()),
            Outcome::Disk => match keyspace.latch(keys, waiter()) {
                Some(latch) => match keyspace.run(&latch, Site::Apart, now_ms, &mut f) {
                    Err(EngineError::Full) => keyspace.wait_room(waiter()),
                    ended => return ended,
                },
                None => true,
            },
        };
        if told {
            when.recv().expect("told");
        }
    }
}

/// The same, and waits for the commit.
pub fn commit<R>(
    keyspace: &Arc<Keyspace>,
    keys: &[&[u8]],
    f: impl FnMut(&mut Access) -> Result<R, Stop>,
) -> Result<R, EngineError> {
    let (reply, seq) = run(keyspace, &Keys::In(Database::FIRST, keys), 1, f)?;
    keyspace.wait_commit(seq)?;
    Ok(reply)
}

pub fn set(keyspace: &Arc<Keyspace>, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
    commit(keyspace, &[key], |access| {
        access.put(key, Entry::string(Bytes::copy_from_slice(value)))
    })
}

pub fn get(keyspace: &Arc<Keyspace>, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
    let read = |access: &mut Access| access.get(key);
    let (entry, _) = run(keyspace, &Keys::In(Database::FIRST, &[key]), 1, read)?;
    Ok(entry.and_then(string))
}

pub fn string(entry: Entry) -> Option<Bytes> {
    match entry.object {
        Object::String(text) => text.whole().cloned(),
        Object::Collection(_) => None,
    }
}

/// Adds one to a decimal number and returns it.
pub fn increment(access: &mut Access, key: &[u8]) -> Result<u64, Stop> {
    let old = access.get(key)?.and_then(string);
    let old = old.map_or(0, |v| std::str::from_utf8(&v).unwrap().parse().unwrap());
    let new: u64 = old + 1;
    access.put(key, Entry::string(Bytes::from(new.to_string())))?;
    Ok(new)
}

/// A value of 1 KiB, another for each number.
pub fn value(number: u32) -> Vec<u8> {
    // Not to be compressed away.
    let mut generator = Generator::new(u64::from(number));
    (0..1024 / 8)
        .flat_map(|_| generator.bits().to_le_bytes())
        .collect()
}

/// Keys in no order.
pub fn key(number: u32) -> Vec<u8> {
    format!(
        "key:{:08}",
        number.wrapping_mul(2_654_435_761) % 100_000_000
    )
    .into_bytes()
}
