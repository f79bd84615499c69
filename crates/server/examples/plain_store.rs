//! A store of the usual design, to measure ours against: `entremet experiment disk-speed` starts
//! it.
//!
//! A few threads, each with an event loop of its own, read RocksDB in the middle of it, as Kvrocks
//! does. There are no tenants, no queues and no cache but RocksDB's: `GET` and `SET` are done, and
//! all else is answered `OK`. Its tables are built as ours.
//!
//! ```text
//! plain_store serve DIR THREADS CACHE_BYTES           says where it listens
//! plain_store read  DIR THREADS CACHE_BYTES SECONDS   the same files without a server: gets a second, µs of processor each
//! ```

mod store;

use mio::{Events, Interest, Poll, Token};
use policy::generator::Generator;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, IteratorMode, Options, DB,
};
use rustix::time::{clock_gettime, ClockId};
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{hand_out, value, Failure, Socket};

/// As our server has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Reads before what counts.
const WARM_UP: Duration = Duration::from_millis(1_000);
const READ_BYTES: usize = 16 << 10;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", directory, threads, cache] => {
            let options = options(cache.parse()?);
            serve(&Arc::new(DB::open(&options, directory)?), threads.parse()?)
        }
        ["read", directory, threads, cache, seconds] => {
            let options = options(cache.parse()?);
            let database = DB::open_for_read_only(&options, directory, false)?;
            let length = Duration::from_secs_f64(seconds.parse()?);
            read(&database, threads.parse()?, length)
        }
        _ => Err(
            "expected serve DIR THREADS CACHE_BYTES, or read DIR THREADS CACHE_BYTES SECONDS"
                .into(),
        ),
    }
}

/// As crates/engine/src/files/rocks.rs has them, as far as reads from the disk see it.
fn options(cache_bytes: usize) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(cache_bytes));
    table.set_format_version(6);
    table.set_bloom_filter(10.0, false);
    table.set_optimize_filters_for_memory(true);
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_partition_filters(true);
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_top_level_index_and_filter(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    options.set_level_compaction_dynamic_level_bytes(true);
    let mut levels = vec![DBCompressionType::None; 2];
    levels.resize(7, DBCompressionType::Lz4);
    options.set_compression_per_level(&levels);
    options.set_use_direct_reads(true);
    options.set_use_direct_io_for_flush_and_compaction(true);
    options
}

/// Accepts, and hands connections to the loops in turn. Does not return.
fn serve(database: &Arc<DB>, threads: usize) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let ready = format!(
        "plain store is ready: clients on {}",
        listener.local_addr()?
    );
    let database = Arc::clone(database);
    let work = move |poll, arrivals| turn(poll, &arrivals, &database);
    hand_out(&listener, threads, &ready, work)
}

/// One loop's thread.
fn turn(mut poll: Poll, arrivals: &Receiver<Socket>, database: &DB) -> Result<(), Failure> {
    let mut sockets: HashMap<usize, Socket> = HashMap::new();
    let (mut events, mut next) = (Events::with_capacity(256), 0);
    let both = Interest::READABLE | Interest::WRITABLE;
    loop {
        poll.poll(&mut events, None)?;
        for mut socket in arrivals.try_iter() {
            (poll.registry()).register(&mut socket.stream, Token(next), both)?;
            sockets.insert(next, socket);
            next += 1;
        }
        for event in &events {
            let Token(number) = event.token();
            let open = (sockets.get_mut(&number)).map(|socket| answer(socket, database));
            if matches!(open, Some(Ok(false) | Err(_))) {
                sockets.remove(&number);
            }
        }
    }
}

/// Answers all that has come. `false`: the client has gone.
fn answer(socket: &mut Socket, database: &DB) -> Result<bool, Failure> {
    let mut open = true;
    let mut some = [0; READ_BYTES];
    loop {
        match socket.stream.read(&mut some) {
            Ok(0) => {
                open = false;
                break;
            }
            Ok(count) => socket.input.extend_from_slice(&some[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    socket.answer(|words, output| reply(database, words, output))?;
    let mut sent = 0;
    while sent < socket.output.len() {
        match socket.stream.write(&socket.output[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    socket.output.drain(..sent);
    Ok(open)
}

fn reply(database: &DB, words: &[&[u8]], output: &mut Vec<u8>) -> Result<(), Failure> {
    match words {
        [get, key] if get.eq_ignore_ascii_case(b"get") => {
            value(output, database.get_pinned(key)?.as_deref())?;
        }
        [set, key, value, ..] if set.eq_ignore_ascii_case(b"set") => {
            database.put(key, value)?;
            output.extend_from_slice(b"+OK\r\n");
        }
        _ => output.extend_from_slice(b"+OK\r\n"),
    }
    Ok(())
}

/// Random gets by threads that do nothing else.
fn read(database: &DB, threads: u64, length: Duration) -> Result<(), Failure> {
    let keys: Vec<Box<[u8]>> = database
        .iterator(IteratorMode::Start)
        .map(|entry| entry.map(|(key, _)| key))
        .collect::<Result<_, _>>()?;
    if keys.is_empty() {
        return Err("there are no keys".into());
    }
    let from = Instant::now() + WARM_UP;
    let until = from + length;
    let gets = AtomicU64::new(0);
    let cpu_s = std::thread::scope(|scope| {
        for thread in 0..threads {
            let (keys, gets) = (&keys, &gets);
            scope.spawn(move || {
                let mut random = Generator::new(thread);
                let mut counted = 0;
                loop {
                    let key = &keys[random.below(keys.len() as u64) as usize];
                    database.get_pinned(key).expect("a value");
                    let now = Instant::now();
                    if now >= until {
                        break;
                    }
                    counted += u64::from(now >= from);
                }
                gets.fetch_add(counted, Ordering::Relaxed);
            });
        }
        std::thread::sleep(WARM_UP);
        let before = cpu_s();
        std::thread::sleep(length);
        cpu_s() - before
    });
    let gets = gets.into_inner() as f64;
    let (per_s, each_us) = (gets / length.as_secs_f64(), cpu_s * 1e6 / gets.max(1.0));
    println!("{per_s:.0} {each_us:.2}");
    Ok(())
}

/// Of this process, in seconds.
fn cpu_s() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
