//! The thesis's sweeps: eight tenants over pairs of sizes.

use super::{Arena, Got, Sizes, StageOptions, Tenant};
use crate::calibrate::{Measured, Mix};
use crate::DeviceError;
use policy::cost::device::{CostModel, Rule};
use std::time::Duration;

/// Tenants, half of them readers where they differ (6.2.3, 7.2.1).
const TENANTS: usize = 8;
/// Requests that each keeps outstanding at least …
const WORKERS: usize = 8;
/// … and all together, times what the device is given at a time: where nobody waits nothing is
/// decided.
const WAITING: usize = 2;

/// A device that was calibrated, to be shared.
pub struct Sweep {
    arena: Box<dyn Arena>,
    measured: Measured,
    slice: Duration,
    seed: u64,
}

/// Readers of one size beside writers of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Bytes of a read.
    pub read_bytes: u64,
    /// Bytes of a write.
    pub write_bytes: u64,
    /// Least over greatest throughput ratio of the tenants: requests a second over those of a
    /// tenant whose kind has the device to itself (7.2.1). 1: prices say what I/Os take from
    /// others.
    pub mmr: f64,
    /// Least over greatest VOPs charged. 1: the scheduler keeps to the prices.
    pub vop_mmr: f64,
}

impl Sweep {
    /// A device and what calibrating it found; everything is then measured for `slice` of its time.
    #[must_use]
    pub fn new(
        arena: impl Arena + 'static,
        measured: Measured,
        slice: Duration,
        seed: u64,
    ) -> Self {
        Sweep {
            arena: Box::new(arena),
            measured,
            slice,
            seed,
        }
    }

    /// What calibrating found.
    #[must_use]
    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    /// The prices by a rule.
    ///
    /// # Errors
    /// As [`Measured::calibration`].
    pub fn costs(&self, rule: Rule) -> Result<CostModel, DeviceError> {
        Ok(CostModel::new(rule, &self.measured.calibration()?))
    }

    fn contest(&self, costs: &CostModel, tenants: &[Tenant]) -> Result<Vec<Got>, DeviceError> {
        let stage = StageOptions {
            costs,
            floor_per_s: self.measured.floor_per_s,
            depth: self.measured.depth as u32,
            chunk_bytes: self.measured.chunk_bytes,
        };
        (self.arena).contest(&stage, tenants, self.slice, self.seed)
    }

    fn tenant(&self, reads_percent: u32, read: Sizes, write: Sizes) -> Tenant {
        Tenant {
            workers: WORKERS.max((WAITING * self.measured.depth).div_ceil(TENANTS)),
            reads_percent,
            read,
            write,
        }
    }

    /// Four readers and four writers under a price rule, for every pair of sizes (fig. 7.1, 7.3).
    ///
    /// # Errors
    /// As [`Sweep::costs`] and [`Arena::contest`].
    pub fn pairs(
        &self,
        rule: Rule,
        reads: &[u64],
        writes: &[u64],
    ) -> Result<Vec<Pair>, DeviceError> {
        let costs = self.costs(rule)?;
        let half = |percent, bytes: u64| {
            [self.tenant(percent, Sizes::of(bytes), Sizes::of(bytes)); TENANTS / 2]
        };
        // Four alone have a quarter each; an eighth is what each is owed among eight.
        let owed = |percent, bytes| {
            let alone = self.contest(&costs, &half(percent, bytes))?;
            Ok(alone.iter().map(|got| got.per_s).sum::<f64>() / TENANTS as f64)
        };
        let all = |percent, sizes: &[u64]| {
            let each = sizes.iter().map(|bytes| owed(percent, *bytes));
            each.collect::<Result<Vec<f64>, DeviceError>>()
        };
        let (owed_reads, owed_writes) = (all(100, reads)?, all(0, writes)?);
        let mut pairs = Vec::new();
        for (read_bytes, owed_reads) in reads.iter().zip(&owed_reads) {
            for (write_bytes, owed_writes) in writes.iter().zip(&owed_writes) {
                let tenants = [half(100, *read_bytes), half(0, *write_bytes)].concat();
                let got = self.contest(&costs, &tenants)?;
                let (readers, writers) = got.split_at(TENANTS / 2);
                let ratios = readers.iter().map(|got| got.per_s / owed_reads);
                let ratios = ratios.chain(writers.iter().map(|got| got.per_s / owed_writes));
                pairs.push(Pair {
                    read_bytes: *read_bytes,
                    write_bytes: *write_bytes,
                    mmr: min_max_ratio(ratios),
                    vop_mmr: min_max_ratio(got.iter().map(|got| got.vop_per_s)),
                });
            }
        }
        Ok(pairs)
    }

    /// VOPs a second that are left for every pair of sizes under a mix, whose sizes spread by
    /// `sigma_bytes` (fig. 6.5, 6.6).
    ///
    /// # Errors
    /// As [`Sweep::costs`] and [`Arena::contest`].
    pub fn capacity(
        &self,
        mix: Mix,
        reads: &[u64],
        writes: &[u64],
        sigma_bytes: u64,
    ) -> Result<Vec<f64>, DeviceError> {
        let costs = self.costs(Rule::Exact)?;
        let sizes = |bytes: &u64| Sizes {
            mean_bytes: *bytes,
            sigma_bytes,
        };
        let mut capacity = Vec::new();
        for read in reads.iter().map(sizes) {
            for write in writes.iter().map(sizes) {
                let tenants: Vec<Tenant> = (0..TENANTS)
                    .map(|number| match mix {
                        Mix::Reads(percent) => self.tenant(percent, read, write),
                        Mix::Halves => self.tenant(100 * (number % 2) as u32, read, write),
                    })
                    .collect();
                let got = self.contest(&costs, &tenants)?;
                capacity.push(got.iter().map(|got| got.vop_per_s).sum());
            }
        }
        Ok(capacity)
    }
}

fn min_max_ratio(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    least / values.fold(0.0, f64::max)
}
