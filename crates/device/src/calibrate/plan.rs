//! Loads, how many of them, and who runs them.

use crate::DeviceError;
use policy::cost::device::{CostModel, Op};
use std::time::Duration;

/// How reads and writes share the workers of a [`Load`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Every worker reads with this probability in percent, and writes otherwise.
    Reads(u32),
    /// Every other worker reads, the others write (the thesis's 1:1).
    Halves,
}

/// Workers that each keep one I/O outstanding, at random places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// How many: the depth.
    pub workers: usize,
    /// Bytes of a read.
    pub read_bytes: u64,
    /// Bytes of a write.
    pub write_bytes: u64,
    /// Who does what.
    pub mix: Mix,
}

impl Load {
    /// Reads only.
    #[must_use]
    pub fn reads(workers: usize, bytes: u64) -> Load {
        Load {
            workers,
            read_bytes: bytes,
            write_bytes: bytes,
            mix: Mix::Reads(100),
        }
    }

    /// Writes only.
    #[must_use]
    pub fn writes(workers: usize, bytes: u64) -> Load {
        Load {
            mix: Mix::Reads(0),
            ..Load::reads(workers, bytes)
        }
    }
}

/// What a load did in one slice, after warming up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Reads done.
    pub reads: u64,
    /// Writes done.
    pub writes: u64,
    /// In this time, nanoseconds.
    pub ns: u64,
    /// Median and 99th percentile of the time an I/O took, nanoseconds.
    pub latency_ns: (u64, u64),
}

impl Sample {
    /// I/Os a second.
    #[must_use]
    pub fn per_s(&self) -> f64 {
        (self.reads + self.writes) as f64 * 1e9 / self.ns as f64
    }

    pub(super) fn vop_per_s(&self, load: &Load, costs: &CostModel) -> f64 {
        let of = |count: u64, op, bytes| count as f64 * costs.cost(op, bytes).get();
        let vops = of(self.reads, Op::Read, load.read_bytes)
            + of(self.writes, Op::Write, load.write_bytes);
        vops * 1e9 / self.ns as f64
    }
}

/// Whoever does the I/O.
pub trait Bench {
    /// Runs a load for about `slice`.
    ///
    /// # Errors
    /// An I/O failed, or the user interrupts.
    fn run(&mut self, load: &Load, slice: Duration) -> Result<Sample, DeviceError>;

    /// Appends of `bytes` to a log, each followed by a sync: pairs a second.
    ///
    /// # Errors
    /// As [`Bench::run`].
    fn syncs(&mut self, bytes: u64, slice: Duration) -> Result<f64, DeviceError>;

    /// Deletes of files a second.
    ///
    /// # Errors
    /// As [`Bench::run`].
    fn deletes(&mut self) -> Result<f64, DeviceError>;
}

/// Slices of each load.
#[derive(Clone, Copy, Debug)]
pub struct Repeats {
    /// So many in any case.
    pub least: usize,
    /// So many if the load's value is not stable before.
    pub most: usize,
}

impl Repeats {
    /// From `least` to `most`.
    #[must_use]
    pub const fn new(least: usize, most: usize) -> Repeats {
        Repeats { least, most }
    }
}

/// What is measured, and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Sizes of the curves, bytes, growing.
    pub sizes: Vec<u64>,
    /// Sizes of the interference sweep.
    pub mixed_sizes: Vec<u64>,
    /// Mixes of the interference sweep.
    pub mixes: Vec<Mix>,
    /// Depths that are tried, growing.
    pub depths: Vec<usize>,
    /// Length of one slice.
    pub slice: Duration,
    /// Slices of each load.
    pub repeats: Repeats,
    /// The same in the interference sweep.
    pub mixed_repeats: Repeats,
    /// After this much time in slices nothing is measured twice.
    pub repeats_within: Duration,
    /// Half the range of a curve's slices at most, as a part of their median: beyond it the median
    /// means nothing.
    pub spread_max: f64,
    /// The floor, as a part of the least that was seen: few loads step over the bottom of the
    /// valley.
    pub floor_part: f64,
}

const KIB: u64 = 1 << 10;
/// Loads that are usually measured on the way to the bottom of the valley.
const NEAR: usize = 12;
/// Parts of the I/Os that read, in percent (fig. 6.5).
const PERCENTS: [u32; 5] = [99, 75, 50, 25, 1];

impl Plan {
    /// Below ten minutes: 1 KiB to 1 MiB by powers of 2; 36 pairs of sizes by 6 mixes.
    #[must_use]
    pub fn full() -> Plan {
        let percents = PERCENTS.map(Mix::Reads);
        Plan {
            sizes: (0..=10).map(|power| KIB << power).collect(),
            mixed_sizes: [1, 4, 16, 64, 256, 1024].map(|kib| kib * KIB).into(),
            mixes: [Mix::Halves].into_iter().chain(percents).collect(),
            depths: (0..8).map(|power| 1 << power).collect(),
            slice: Duration::from_millis(300),
            repeats: Repeats::new(3, 9),
            mixed_repeats: Repeats::new(2, 4),
            repeats_within: Duration::MAX,
            spread_max: 0.5,
            floor_part: 1.0,
        }
    }

    /// Some seconds, half a minute on a hard disk: what a server measures by itself before it has
    /// anything better. Sizes by powers of 4, and one mix of nine pairs of them. Live estimates go
    /// on from there. Of the emulated SSD that sees 1.3 times the floor of the full plan, of the
    /// hard disk .98 times: hence three quarters.
    #[must_use]
    pub fn brief() -> Plan {
        Plan {
            sizes: [1, 4, 16, 64, 256].map(|kib| kib * KIB).into(),
            mixed_sizes: [4, 64, 256].map(|kib| kib * KIB).into(),
            mixes: vec![Mix::Reads(75)],
            depths: vec![1, 4, 16, 64],
            slice: Duration::from_millis(50),
            repeats: Repeats::new(3, 5),
            mixed_repeats: Repeats::new(3, 5),
            repeats_within: Duration::from_secs(8),
            // Three slices are not many; prices that are wrong by half are better than none.
            spread_max: 1.0,
            floor_part: 0.75,
        }
    }

    /// Below a minute: the same sizes in shorter slices; 9 pairs of sizes by 3 mixes. The floor is
    /// seen less well.
    #[must_use]
    pub fn quick() -> Plan {
        Plan {
            mixed_sizes: [4, 32, 256].map(|kib| kib * KIB).into(),
            mixes: vec![Mix::Halves, Mix::Reads(75), Mix::Reads(25)],
            depths: (0..7).map(|power| 1 << power).collect(),
            slice: Duration::from_millis(100),
            repeats: Repeats::new(3, 7),
            mixed_repeats: Repeats::new(3, 7),
            ..Plan::full()
        }
    }

    /// Leaves out sizes below `bytes`, which the device cannot do.
    #[must_use]
    pub fn at_least(mut self, bytes: u64) -> Plan {
        self.sizes.retain(|size| *size >= bytes);
        self.mixed_sizes.retain(|size| *size >= bytes);
        self
    }

    /// The interference sweep at a depth.
    pub(super) fn mixes(&self, depth: usize) -> Vec<Load> {
        let mut loads = Vec::new();
        for mix in &self.mixes {
            for read_bytes in &self.mixed_sizes {
                for write_bytes in &self.mixed_sizes {
                    loads.push(Load {
                        // Halves need two.
                        workers: depth.max(2),
                        read_bytes: *read_bytes,
                        write_bytes: *write_bytes,
                        mix: *mix,
                    });
                }
            }
        }
        loads
    }

    /// Loads next to one: the next smaller or larger size, a little more read or written.
    pub(super) fn near(&self, load: &Load) -> Vec<Load> {
        let beside = |bytes: u64| {
            let at = self.sizes.iter().position(|size| *size == bytes);
            let next = [at.and_then(|at| at.checked_sub(1)), at.map(|at| at + 1)];
            let sizes = next.into_iter().flatten();
            sizes.filter_map(|at| self.sizes.get(at).copied())
        };
        let reads = beside(load.read_bytes).map(|read_bytes| Load {
            read_bytes,
            ..*load
        });
        let writes = beside(load.write_bytes).map(|write_bytes| Load {
            write_bytes,
            ..*load
        });
        let mixes = PERCENTS.windows(2).filter_map(|pair| match load.mix {
            Mix::Reads(percent) if percent == pair[0] => Some(pair[1]),
            Mix::Reads(percent) if percent == pair[1] => Some(pair[0]),
            _ => None,
        });
        let mixes = mixes.map(|percent| Load {
            mix: Mix::Reads(percent),
            ..*load
        });
        reads.chain(writes).chain(mixes).collect()
    }

    /// Slices, if none has to be repeated for being unstable.
    pub(super) fn steps(&self) -> usize {
        let curves = (2 * self.sizes.len() + self.depths.len() + 2) * self.repeats.least;
        let mixed = self.mixes.len() * self.mixed_sizes.len().pow(2);
        2 + curves + (mixed + NEAR) * self.mixed_repeats.least
    }
}
