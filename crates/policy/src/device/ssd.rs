//! A solid-state disk: a controller, dies, and a write buffer.
//!
//! * The **controller** and the cable take a fixed time for each command and move its bytes, one
//!   command after the other. They bound small I/Os ("the SSD is processor bound by its
//!   controller", thesis 6.2.3) and, with long transfers, bandwidth.
//! * **Dies** read pages, program them and erase blocks, each die one thing at a time. Consecutive
//!   pages lie on different dies.
//! * **Writes** go to a buffer and are done once there; pages leave it when a die has programmed
//!   them. A full buffer makes writes wait for the dies, erasing included: that is the sustained
//!   write rate.
//! * **Interference**: a read goes before programs that have not begun, but not before the one that
//!   runs: it waits for what is left of that, or of an erase with the copying of what was still
//!   valid in the block. Blocks are filled across all dies (a superblock), so that dies erase at
//!   about the same time, and commands are taken in order, so that a write which waits for the
//!   buffer keeps small reads waiting.
//!
//! Left out: suspended programs, pages of several speeds, fragmentation that grows with the disk's
//! fill (its average is in `erase_ns`), trim (a delete costs a command).

use super::{transfer_ns, Ends, Event, Io};
use crate::cost::device::Op;
use crate::cost::Nanos;
use crate::generator::{mix64, Generator};
use std::collections::VecDeque;

/// What an SSD is like.
#[derive(Clone, Debug, PartialEq)]
pub struct SsdParameters {
    /// Dies that work at the same time (channels times dies on each).
    pub dies: usize,
    /// Bytes of a page, the unit that is read and programmed.
    pub page_bytes: u64,
    /// Pages of a block, the unit that is erased.
    pub block_pages: u64,
    /// Reading a page, in nanoseconds.
    pub read_ns: Nanos,
    /// Programming a page, in nanoseconds.
    pub program_ns: Nanos,
    /// Erasing a block, with the copying that goes with it, in nanoseconds.
    pub erase_ns: Nanos,
    /// The controller's time for a read, in nanoseconds.
    pub command_read_ns: Nanos,
    /// The controller's time for a write (mapping, its log), in nanoseconds.
    pub command_write_ns: Nanos,
    /// Rate of the cable and the controller's memory, bytes per second.
    pub link_bytes_per_s: f64,
    /// What a command takes besides, without keeping others waiting, in nanoseconds.
    pub latency_ns: Nanos,
    /// Pages that the write buffer holds.
    pub buffer_pages: usize,
}

impl Default for SsdParameters {
    /// A SATA II disk near the Intel 320 series (160 GB) of the thesis's figures 6.4 to 6.6. By its
    /// data sheet and 6.3.3 that disk reads 270 MB/s and writes 165 MB/s, does some 38,000 small
    /// reads and 12,000 small writes a second at depth 32, and answers a read in 75 µs and a write
    /// in 90 µs. The times of reading and programming are usual for its 25 nm flash, per 4 KiB of
    /// its larger pages; erasing with its copying, and that the dies come to it together, are
    /// chosen so that interference costs up to half of the capacity (fig. 6.5: 18 of 37.5 kVOP/s).
    fn default() -> Self {
        SsdParameters {
            dies: 20,
            page_bytes: 4 << 10,
            block_pages: 256,
            read_ns: 50_000,
            program_ns: 405_000,
            erase_ns: 22_000_000,
            command_read_ns: 22_500,
            command_write_ns: 80_000,
            link_bytes_per_s: 280e6,
            latency_ns: 10_000,
            buffer_pages: 256,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Die {
    /// When the reads that it was given are done.
    reads_until: Nanos,
    /// When the programs and erases that it was given are done.
    writes_until: Nanos,
    /// Pages programmed since the last erase.
    programmed: u64,
}

/// An SSD at work.
#[derive(Clone, Debug)]
pub struct Ssd {
    parameters: SsdParameters,
    dies: Vec<Die>,
    /// When the controller is free.
    controller: Nanos,
    /// When each page in the buffer leaves it, the first in first.
    buffer: VecDeque<Nanos>,
    /// When the last page written so far is programmed.
    settled: Nanos,
    ends: Ends,
    generator: Generator,
    seed: u64,
}

impl Ssd {
    /// An idle disk; `seed` says which die has which page, and how far a program is when a read
    /// comes.
    ///
    /// # Panics
    /// If a count, a size or the rate is not positive.
    #[must_use]
    pub fn new(parameters: SsdParameters, seed: u64) -> Ssd {
        let p = &parameters;
        let counts = [
            p.dies as u64,
            p.page_bytes,
            p.block_pages,
            p.buffer_pages as u64,
        ];
        assert!(counts.iter().all(|count| *count > 0), "{p:?}");
        assert!(p.link_bytes_per_s > 0.0, "{p:?}");
        Ssd {
            dies: vec![Die::default(); p.dies],
            controller: 0,
            buffer: VecDeque::new(),
            settled: 0,
            ends: Ends::default(),
            generator: Generator::new(seed),
            seed,
            parameters,
        }
    }

    pub(super) fn submit(&mut self, now: Nanos, tag: u64, io: Io) {
        let end = match io.op {
            Op::Read => self.read(now, &io),
            Op::Write => self.write(now, &io),
            Op::Sync => self.command(now, self.parameters.command_write_ns, 0),
            Op::Delete => self.command(now, self.parameters.command_write_ns, 0),
        };
        self.ends.put(end + self.parameters.latency_ns, tag);
    }

    pub(super) fn next(&mut self, now: Nanos) -> Event {
        self.ends.next(now)
    }

    pub(super) fn outstanding(&self) -> usize {
        self.ends.len()
    }

    /// The controller takes a command and moves its bytes.
    fn command(&mut self, now: Nanos, command_ns: Nanos, bytes: u64) -> Nanos {
        let transfer = transfer_ns(bytes, self.parameters.link_bytes_per_s);
        self.controller = self.controller.max(now) + command_ns + transfer;
        self.controller
    }

    fn pages(&self, io: &Io) -> std::ops::Range<u64> {
        let page = self.parameters.page_bytes;
        io.offset / page..(io.offset.saturating_add(io.bytes.max(1))).div_ceil(page)
    }

    fn read(&mut self, now: Nanos, io: &Io) -> Nanos {
        let begun = self.controller.max(now) + self.parameters.command_read_ns;
        let moved = self.command(now, self.parameters.command_read_ns, io.bytes);
        let pages = self.pages(io);
        let read = pages.map(|page| self.read_page(begun, page)).max();
        // Pages move while others are read, so the later of the two ends the read.
        moved.max(read.unwrap_or(begun))
    }

    fn read_page(&mut self, begun: Nanos, page: u64) -> Nanos {
        let (index, p) = (self.die_of(page), &self.parameters);
        let die = &mut self.dies[index];
        let mut start = begun.max(die.reads_until);
        if die.writes_until > begun && die.reads_until <= begun {
            // Something is being programmed or erased, more likely the longer of the two.
            let round = p.program_ns * p.block_pages + p.erase_ns;
            let at = self.generator.below(round.max(1));
            let left = match at.checked_sub(p.erase_ns) {
                None => p.erase_ns - at,
                Some(at) => p.program_ns - at % p.program_ns.max(1),
            };
            start += left.min(die.writes_until - begun);
        }
        die.reads_until = start + p.read_ns;
        if die.writes_until > begun {
            die.writes_until += p.read_ns;
        }
        die.reads_until
    }

    /// Pages are striped over the dies; where a stripe begins is the mapping's secret, kept by the
    /// seed.
    fn die_of(&self, page: u64) -> usize {
        let dies = self.parameters.dies as u64;
        let stripe = mix64(self.seed ^ (page / dies));
        ((page + stripe % dies) % dies) as usize
    }

    fn write(&mut self, now: Nanos, io: &Io) -> Nanos {
        let pages = self.pages(io);
        let mut entered = self.command(now, self.parameters.command_write_ns, io.bytes);
        for _ in pages {
            while self.buffer.front().is_some_and(|left| *left <= entered) {
                self.buffer.pop_front();
            }
            if self.buffer.len() >= self.parameters.buffer_pages {
                entered = entered.max(self.buffer.pop_front().unwrap_or(entered));
            }
            // Pages leave in order: the buffer is the head of a log.
            self.settled = self.settled.max(self.program(entered));
            self.buffer.push_back(self.settled);
        }
        // Commands are taken in order: one that waits for the buffer keeps those behind it waiting.
        self.controller = entered;
        entered
    }

    /// The mapping appends to whichever die is free first.
    fn program(&mut self, entered: Nanos) -> Nanos {
        let p = &self.parameters;
        let busy = |die: &Die| die.writes_until.max(die.reads_until);
        let Some(die) = self.dies.iter_mut().min_by_key(|die| busy(die)) else {
            return entered;
        };
        let mut took = p.program_ns;
        die.programmed += 1;
        if die.programmed == p.block_pages {
            die.programmed = 0;
            took += p.erase_ns;
        }
        die.writes_until = entered.max(busy(die)) + took;
        die.writes_until
    }
}
