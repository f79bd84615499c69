//! The bench of a real disk.
//!
//! It works in a scratch file of its own, which it creates anew (never opening what is there) and
//! unlinks at once: the file has no name, so nothing of the user's can be hit, and however the
//! process ends, its space is free again. Only the files whose deletion is measured have names, for
//! a moment, in a directory of their own.

mod scratch;

use crate::calibrate::{Bench, Load, Mix, Sample};
use crate::{DeviceError, Dice};
use policy::cost::device::Op;
pub use scratch::with_buffer;
use scratch::{Folder, Scratch};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Threads that append and sync at the same time: a server's committers.
const SYNCERS: usize = 8;
/// Files deleted for one measurement, and their size: enough for the file system to have blocks to
/// free.
const DELETED_FILES: usize = 16;
const DELETED_BYTES: u64 = 1 << 20;
/// The part of a slice that only warms up.
const WARM_UP: u32 = 5;

/// A directory's disk.
#[derive(Debug)]
pub struct Disk {
    folder: Folder,
    scratch: Scratch,
    stop: Arc<AtomicBool>,
    slices: u64,
}

impl Disk {
    /// Looks whether `directory` can be measured and fills a scratch file of about `bytes` there
    /// (less on a slow disk). When `stop` becomes true, everything under way ends with
    /// [`DeviceError::Stopped`]. Progress is told as a part, 0 to 1.
    ///
    /// # Errors
    /// The directory does not exist, is in memory, lacks space, or cannot be read around the page
    /// cache.
    pub fn open(
        directory: &Path,
        bytes: u64,
        stop: Arc<AtomicBool>,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Disk, DeviceError> {
        let folder = Folder::create(directory)?;
        let scratch = Scratch::fill(&folder, bytes, &stop, progress)?;
        Ok(Disk {
            folder,
            scratch,
            stop,
            slices: 0,
        })
    }

    /// The smallest I/O that the disk does around the page cache, bytes.
    #[must_use]
    pub fn smallest_bytes(&self) -> u64 {
        self.scratch.smallest_bytes
    }

    /// Bytes of the scratch file.
    #[must_use]
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch.bytes
    }

    /// Reads or writes the whole buffer, which must be [of the kind that direct I/O
    /// accepts](with_buffer), somewhere in the scratch file: at a multiple of its own size up to a
    /// page.
    ///
    /// # Errors
    /// The disk's.
    ///
    /// # Panics
    /// If the operation is neither, or the buffer larger than the file.
    pub fn io(&self, op: Op, buffer: &mut [u8], dice: &mut Dice) -> Result<(), DeviceError> {
        (self.scratch)
            .io(op, buffer, dice)
            .map_err(self.failed("do I/O in"))
    }

    fn check_stop(&self) -> Result<(), DeviceError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(DeviceError::Stopped);
        }
        Ok(())
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(std::io::Error) -> DeviceError + use<'_> {
        DeviceError::io(action, self.folder.path())
    }
}

/// What one worker did.
#[derive(Default)]
struct Tally {
    reads: u64,
    writes: u64,
    latencies_ns: Vec<u64>,
}

struct Worker<'a> {
    scratch: &'a Scratch,
    load: Load,
    number: usize,
    dice: Dice,
    stop: &'a AtomicBool,
    /// What ends after this is counted, until there.
    from: Instant,
    until: Instant,
}

impl Worker<'_> {
    fn run(mut self, buffer: &mut [u8]) -> std::io::Result<Tally> {
        let mut tally = Tally::default();
        let mut begin = Instant::now();
        while begin < self.until && !self.stop.load(Ordering::Relaxed) {
            let reads = match self.load.mix {
                Mix::Halves => self.number % 2 == 0,
                Mix::Reads(percent) => self.dice.below(100) < u64::from(percent),
            };
            let (op, size) = if reads {
                (Op::Read, self.load.read_bytes)
            } else {
                (Op::Write, self.load.write_bytes)
            };
            let bytes = &mut buffer[..size as usize];
            self.scratch.io(op, bytes, &mut self.dice)?;
            let end = Instant::now();
            // By their ends: of I/Os that must also begin inside, each worker would lose one, which
            // is most of them where an I/O takes as long as the slice.
            if end > self.from && end <= self.until {
                tally.reads += u64::from(reads);
                tally.writes += u64::from(!reads);
                tally.latencies_ns.push((end - begin).as_nanos() as u64);
            }
            begin = end;
        }
        Ok(tally)
    }
}

impl Bench for Disk {
    fn run(&mut self, load: &Load, slice: Duration) -> Result<Sample, DeviceError> {
        self.slices += 1;
        let largest = load.read_bytes.max(load.write_bytes);
        let begin = Instant::now();
        let (from, until) = (begin + slice / WARM_UP, begin + slice + slice / WARM_UP);
        let worker = |number: usize| Worker {
            scratch: &self.scratch,
            load: *load,
            number,
            dice: Dice::new(self.slices << 16 | number as u64),
            stop: &self.stop,
            from,
            until,
        };
        let tallies: Vec<std::io::Result<Tally>> = thread::scope(|scope| {
            let spawn = |number| {
                let worker = worker(number);
                scope.spawn(move || scratch::with_buffer(largest, |buffer| worker.run(buffer)))
            };
            let threads: Vec<_> = (0..load.workers).map(spawn).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
                Ok(tally) => tally,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            threads.into_iter().map(join).collect()
        });
        self.check_stop()?;
        let mut all = Tally::default();
        for tally in tallies {
            let mut tally = tally.map_err(self.failed("do I/O in"))?;
            all.reads += tally.reads;
            all.writes += tally.writes;
            all.latencies_ns.append(&mut tally.latencies_ns);
        }
        all.latencies_ns.sort_unstable();
        let at = |part: usize| {
            let place = all.latencies_ns.len() * part / 100;
            all.latencies_ns.get(place).copied().unwrap_or(0)
        };
        Ok(Sample {
            reads: all.reads,
            writes: all.writes,
            ns: (until - from).as_nanos() as u64,
            latency_ns: (at(50), at(99)),
        })
    }

    fn syncs(&mut self, bytes: u64, slice: Duration) -> Result<f64, DeviceError> {
        let until = Instant::now() + slice;
        let logs: Result<Vec<File>, DeviceError> =
            (0..SYNCERS).map(|_| self.folder.nameless(false)).collect();
        let logs = logs?;
        let append = |log: &File| -> std::io::Result<u64> {
            let record = vec![1; bytes as usize];
            let mut pairs = 0;
            while Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
                // Buffered, as RocksDB's log must be: direct writes would skip its sync.
                log.write_all_at(&record, pairs * bytes)?;
                log.sync_data()?;
                pairs += 1;
            }
            Ok(pairs)
        };
        let begin = Instant::now();
        let append = &append;
        let counts: Vec<std::io::Result<u64>> = thread::scope(|scope| {
            let threads: Vec<_> = logs
                .iter()
                .map(|log| scope.spawn(move || append(log)))
                .collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
                Ok(count) => count,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            threads.into_iter().map(join).collect()
        });
        let seconds = begin.elapsed().as_secs_f64();
        self.check_stop()?;
        let mut pairs = 0;
        for count in counts {
            pairs += count.map_err(self.failed("sync a log in"))?;
        }
        Ok(pairs as f64 / seconds)
    }

    fn deletes(&mut self) -> Result<f64, DeviceError> {
        let mut names: Vec<PathBuf> = Vec::new();
        for number in 0..DELETED_FILES {
            self.check_stop()?;
            names.push(self.folder.named(number, DELETED_BYTES)?);
        }
        let begin = Instant::now();
        for name in &names {
            std::fs::remove_file(name).map_err(DeviceError::io("remove", name))?;
        }
        Ok(DELETED_FILES as f64 / begin.elapsed().as_secs_f64())
    }
}
