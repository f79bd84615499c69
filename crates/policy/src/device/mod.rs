//! Emulated devices: when would a hard disk, when would an SSD have done these I/Os?
//!
//! A result that depends on a disk repeats on no other machine, so the device under a stage can be
//! a model (DESIGN 7), and the simulator has nothing else. A model is given I/Os and the time, and
//! says which are done: [`Event::Done`], *ask again at t*, or nothing. It moves no data. The same
//! I/Os at the same times with the same seed are done at the same times.
//!
//! * [`Hdd`]: seek, rotation and transfer of one arm, and a queue from which the drive takes what
//!   its head reaches first;
//! * [`Ssd`]: a controller, dies that read, program and erase, and a write buffer.
//!
//! [`Layout`] says where files lie on several of them. Both models say what they leave out. Their
//! parameters are named, with units and sources.

mod hdd;
mod layout;
mod ssd;

pub use hdd::{Hdd, HddParameters};
pub use layout::{Layout, Spot};
pub use ssd::{Ssd, SsdParameters};

use crate::cost::device::Op;
use crate::cost::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One I/O as a device sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// What it does.
    pub op: Op,
    /// Where it begins, in bytes from the start of the device; beyond the end it wraps around.
    pub offset: u64,
    /// How many bytes; of no meaning for syncs.
    pub bytes: u64,
}

/// The answer to "what is done?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This I/O, at this time (not after the time of the question).
    Done {
        /// The number under which it was submitted.
        tag: u64,
        /// When.
        at: Nanos,
    },
    /// Nothing before this time, whatever else is submitted.
    At(Nanos),
    /// Nothing is outstanding.
    Idle,
}

/// Which device, and what it is like.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// A hard disk.
    Hdd(HddParameters),
    /// A solid-state disk.
    Ssd(SsdParameters),
}

impl Model {
    /// Bytes that it holds; of an SSD as many as places are told apart by: it has no far end.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            Model::Hdd(parameters) => parameters.capacity_bytes,
            Model::Ssd(_) => 1 << 40,
        }
    }
}

/// A device that is not there.
#[derive(Clone, Debug)]
pub enum Device {
    /// A hard disk.
    Hdd(Hdd),
    /// A solid-state disk.
    Ssd(Ssd),
}

impl Device {
    /// An idle device. The seed places data on the dies of an SSD; a hard disk needs none.
    ///
    /// # Panics
    /// If a parameter that divides something (a rate, a count, a size) is not positive.
    #[must_use]
    pub fn new(model: &Model, seed: u64) -> Device {
        match model {
            Model::Hdd(parameters) => Device::Hdd(Hdd::new(parameters.clone())),
            Model::Ssd(parameters) => Device::Ssd(Ssd::new(parameters.clone(), seed)),
        }
    }

    /// Gives the device an I/O under a number of the caller's choice. Times must not go back from
    /// call to call.
    pub fn submit(&mut self, now: Nanos, tag: u64, io: Io) {
        match self {
            Device::Hdd(hdd) => hdd.submit(now, tag, io),
            Device::Ssd(ssd) => ssd.submit(now, tag, io),
        }
    }

    /// What is done at `now`, the earliest first; call it until it names no more.
    pub fn next(&mut self, now: Nanos) -> Event {
        match self {
            Device::Hdd(hdd) => hdd.next(now),
            Device::Ssd(ssd) => ssd.next(now),
        }
    }

    /// I/Os submitted and not yet reported as done.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        match self {
            Device::Hdd(hdd) => hdd.outstanding(),
            Device::Ssd(ssd) => ssd.outstanding(),
        }
    }
}

/// I/Os whose end is known.
#[derive(Clone, Debug, Default)]
struct Ends(BinaryHeap<Reverse<(Nanos, u64, u64)>>, u64);

impl Ends {
    /// Ends at the same time come in the order in which they were put in.
    fn put(&mut self, at: Nanos, tag: u64) {
        self.1 += 1;
        self.0.push(Reverse((at, self.1, tag)));
    }

    fn next(&mut self, now: Nanos) -> Event {
        match self.0.peek() {
            None => Event::Idle,
            Some(Reverse((at, ..))) if *at > now => Event::At(*at),
            Some(_) => self
                .0
                .pop()
                .map_or(Event::Idle, |Reverse((at, _, tag))| Event::Done { tag, at }),
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

const NS_PER_S: f64 = 1e9;

/// Time to move `bytes` at a rate, in nanoseconds.
fn transfer_ns(bytes: u64, bytes_per_s: f64) -> Nanos {
    (bytes as f64 * NS_PER_S / bytes_per_s) as Nanos
}
