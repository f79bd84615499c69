//! The bench of an emulated device, in emulated time: calibrating it takes a second of computing,
//! and gives the prices and the floor that a server over such a device needs.

use crate::calibrate::{Bench, Load, Mix, Plan, Repeats, Sample};
use crate::dice::Dice;
use crate::DeviceError;
use policy::cost::device::Op;
use policy::device::{Device, Event, HddParameters, Io, Model, SsdParameters};
use std::time::Duration;

/// How long a load runs before what is sustained can be seen: an arm must have found its pace; an
/// SSD's dies, which begin a block together, must have come apart (after 0.4 s it writes 8 KiB 11 %
/// faster than after 5 s, and from then on it stays within 3 %).
pub(crate) fn warm_up_ns(model: &Model) -> u64 {
    match model {
        Model::Hdd(_) => 400_000_000,
        Model::Ssd(_) => 5_000_000_000,
    }
}

/// As on a real disk: threads that append and sync at the same time.
const SYNCERS: usize = 8;

/// A disk that is not there.
#[derive(Clone, Debug)]
pub struct EmulatedDisk {
    model: Model,
    slices: u64,
}

/// What was done from the end of the warm-up on.
#[derive(Default)]
struct Tally {
    reads: u64,
    writes: u64,
    syncs: u64,
    deletes: u64,
    latencies_ns: Vec<u64>,
}

impl EmulatedDisk {
    /// An idle disk.
    #[must_use]
    pub fn new(model: Model) -> EmulatedDisk {
        EmulatedDisk { model, slices: 0 }
    }

    /// The disk that is called `hdd` or `ssd`, as it is by default.
    #[must_use]
    pub fn named(name: &str) -> Option<EmulatedDisk> {
        let model = match name {
            "hdd" => Model::Hdd(HddParameters::default()),
            "ssd" => Model::Ssd(SsdParameters::default()),
            _ => return None,
        };
        Some(EmulatedDisk::new(model))
    }

    /// What the disk is like.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// A plan for it: two seconds of computing for an SSD, some seconds for a hard disk, of which
    /// even a slice of three seconds sees a few hundred I/Os only.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let quick = Plan::quick();
        match self.model {
            Model::Hdd(_) => Plan {
                slice: Duration::from_secs(3),
                ..quick
            },
            // Each slice is an SSD of its own that has warmed up: more loads tell more than more
            // slices of one.
            Model::Ssd(_) => Plan {
                slice: Duration::from_secs(1),
                repeats: Repeats::new(2, 4),
                mixed_repeats: Repeats::new(1, 1),
                ..Plan::full()
            },
        }
    }

    /// `workers` that each keep one I/O outstanding, given by `ask(worker, dice)`.
    fn closed(
        &mut self,
        workers: usize,
        slice: Duration,
        mut ask: impl FnMut(usize, &mut Dice) -> Io,
    ) -> Tally {
        self.slices += 1;
        let mut dice = Dice::new(self.slices);
        let mut device = Device::new(&self.model, self.slices);
        let mut asked: Vec<(u64, Io)> = (0..workers)
            .map(|worker| (0, ask(worker, &mut dice)))
            .collect();
        for (worker, (_, io)) in asked.iter().enumerate() {
            device.submit(0, worker as u64, *io);
        }
        let warm_ns = warm_up_ns(&self.model);
        let until = warm_ns + slice.as_nanos() as u64;
        let (mut now, mut tally) = (0, Tally::default());
        while now < until {
            match device.next(now) {
                Event::At(at) => now = at,
                Event::Idle => break,
                Event::Done { tag, .. } => {
                    let worker = tag as usize;
                    let (since, io) = asked[worker];
                    if (warm_ns..until).contains(&now) {
                        tally.count(io.op, now - since);
                    }
                    asked[worker] = (now, ask(worker, &mut dice));
                    device.submit(now, tag, asked[worker].1);
                }
            }
        }
        tally
    }
}

impl Tally {
    fn count(&mut self, op: Op, latency_ns: u64) {
        self.latencies_ns.push(latency_ns);
        match op {
            Op::Read => self.reads += 1,
            Op::Write => self.writes += 1,
            Op::Sync => self.syncs += 1,
            Op::Delete => self.deletes += 1,
        }
    }
}

impl Bench for EmulatedDisk {
    fn run(&mut self, load: &Load, slice: Duration) -> Result<Sample, DeviceError> {
        let mut tally = self.closed(load.workers, slice, |worker, dice| {
            let reads = match load.mix {
                Mix::Halves => worker % 2 == 0,
                Mix::Reads(percent) => dice.below(100) < u64::from(percent),
            };
            let (op, bytes) = if reads {
                (Op::Read, load.read_bytes)
            } else {
                (Op::Write, load.write_bytes)
            };
            dice.io(op, bytes)
        });
        tally.latencies_ns.sort_unstable();
        let at = |part: usize| {
            let place = tally.latencies_ns.len() * part / 100;
            tally.latencies_ns.get(place).copied().unwrap_or(0)
        };
        Ok(Sample {
            reads: tally.reads,
            writes: tally.writes,
            ns: slice.as_nanos() as u64,
            latency_ns: (at(50), at(99)),
        })
    }

    fn syncs(&mut self, bytes: u64, slice: Duration) -> Result<f64, DeviceError> {
        // Each worker has a log: an append, a sync, an append behind it …
        let mut steps = [0u64; SYNCERS];
        let tally = self.closed(SYNCERS, slice, |worker, _| {
            let step = steps[worker];
            steps[worker] += 1;
            let offset = (worker as u64 + 1) * (1 << 30) + step / 2 * bytes;
            let op = if step % 2 == 0 { Op::Write } else { Op::Sync };
            Io { op, offset, bytes }
        });
        Ok(tally.syncs.max(1) as f64 / slice.as_secs_f64())
    }

    fn deletes(&mut self) -> Result<f64, DeviceError> {
        let slice = Duration::from_secs(1);
        let tally = self.closed(1, slice, |_, _| Io {
            op: Op::Delete,
            offset: 0,
            bytes: 0,
        });
        Ok(tally.deletes.max(1) as f64 / slice.as_secs_f64())
    }
}
