//! What an I/O costs a device, in virtual IO operations (Libra, thesis 6.3.3).
//!
//! A device does fewer large I/Os a second than small ones, and not in proportion. A VOP unifies
//! them: an I/O costs as many VOPs as the smallest I/Os that the device could have done in its
//! place,
//!
//! ```text
//! cost(op, bytes) = max rate / rate(op, bytes)        (fig. 6.7, times the size)
//! ```
//!
//! so that a device busy with one kind of I/O, whatever its size and direction, serves the same
//! number of VOPs a second. The rates are measured ([`Calibration`]); between the measured sizes a
//! [`CostModel`] interpolates (`exact`), or follows a fitted curve (`fitted`), or one of the
//! baselines of 7.2.2.

mod chunk;
mod curve;
mod fit;
mod interference;

pub use chunk::{chunk_bytes, AHEAD_BYTES_MAX, CHUNK_BYTES_MAX};
pub use curve::{Calibration, CalibrationError, Curve, Point};
pub use interference::{Flow, Mix, Seen, Sweep};

use curve::Direction;

/// What an I/O does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Bytes from the device.
    Read,
    /// Bytes to the device.
    Write,
    /// What was written is made durable (fsync, fdatasync, sync_file_range that waits).
    Sync,
    /// A file is removed or its space given back.
    Delete,
}

impl Op {
    /// All of them.
    pub const ALL: [Op; 4] = [Op::Read, Op::Write, Op::Sync, Op::Delete];

    /// Its name in files and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Sync => "sync",
            Op::Delete => "delete",
        }
    }
}

/// An amount of device work, in millionths of a virtual IO operation. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vop(pub u64);

impl Vop {
    /// Units in one virtual IO operation.
    pub const ONE: Vop = Vop(1_000_000);
    /// No work.
    pub const ZERO: Vop = Vop(0);

    /// The nearest amount; not a number and negative count as 0, large saturates.
    #[must_use]
    pub fn new(vop: f64) -> Vop {
        Vop((vop * Vop::ONE.0 as f64).round() as u64)
    }

    /// In virtual IO operations.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0 as f64 / Vop::ONE.0 as f64
    }

    /// The sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Vop) -> Vop {
        Vop(self.0.saturating_add(other.0))
    }
}

/// How the cost of a size follows from the calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Interpolated between the calibrated sizes, and exact there.
    Exact,
    /// Cost per byte `a * bytes^-p + c`, fitted to the calibrated sizes; the thesis prints the
    /// exponents of its three SSDs (7.2.2: -1.22/-1.31, -1.17/-1.04, -1.27/-1.07 for reads/writes).
    Fitted,
    /// Straight from the smallest calibrated size to the largest within 128 KiB: an intercept and a
    /// cost per byte, as schedulers by virtual time assume.
    Linear,
    /// A hundred I/Os of 1 KiB cost as much as one of 100 KiB (DynamoDB).
    Constant,
    /// Every I/O costs as much as one of the smallest size (provisioned IOPS).
    Fixed,
}

impl Rule {
    /// All of them, the default first.
    pub const ALL: [Rule; 5] = [
        Rule::Exact,
        Rule::Fitted,
        Rule::Linear,
        Rule::Constant,
        Rule::Fixed,
    ];

    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rule::Exact => "exact",
            Rule::Fitted => "fitted",
            Rule::Linear => "linear",
            Rule::Constant => "constant",
            Rule::Fixed => "fixed",
        }
    }
}

/// The price list of one device under one [`Rule`].
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    rule: Rule,
    read: Direction,
    write: Direction,
    sync: Vop,
    delete: Vop,
    max_per_s: f64,
}

impl CostModel {
    /// The prices that follow from a calibration.
    #[must_use]
    pub fn new(rule: Rule, calibration: &Calibration) -> CostModel {
        let max_per_s = calibration.max_per_s();
        let of = |curve: &Curve| Direction::of(rule, &curve.costs(max_per_s));
        CostModel {
            rule,
            read: of(calibration.read()),
            write: of(calibration.write()),
            sync: Vop::new(max_per_s / calibration.sync_per_s()),
            delete: Vop::new(max_per_s / calibration.delete_per_s()),
            max_per_s,
        }
    }

    /// What one I/O costs. Syncs and deletes have one price, whatever their size: what they make
    /// durable or free was charged when it was written. An I/O below the smallest calibrated size
    /// costs as much as one of that size; beyond the largest, as much per byte as the largest (the
    /// kernel cuts it in such pieces), except under [`Rule::Linear`] and [`Rule::Fixed`].
    #[must_use]
    pub fn cost(&self, op: Op, bytes: u64) -> Vop {
        match op {
            Op::Read => self.read.cost(bytes),
            Op::Write => self.write.cost(bytes),
            Op::Sync => self.sync,
            Op::Delete => self.delete,
        }
    }

    /// VOPs a second that the device serves when nothing interferes (the highest calibrated rate).
    #[must_use]
    pub fn max_per_s(&self) -> f64 {
        self.max_per_s
    }

    /// The rule it was made by.
    #[must_use]
    pub fn rule(&self) -> Rule {
        self.rule
    }
}
