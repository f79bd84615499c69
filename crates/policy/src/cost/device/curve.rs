//! Measured rates by size, and the piecewise linear prices made of them.

use super::{fit, Op, Rule, Vop};

/// One measured size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes of each I/O, at least 1.
    pub bytes: u64,
    /// I/Os of that size that the device does a second, positive.
    pub per_s: f64,
}

/// Why rates cannot be a device's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// A line through fewer than two points is no curve.
    #[error("the {} curve has {found} points; at least 2 are needed", op.name())]
    TooFew {
        /// The curve.
        op: Op,
        /// Its points.
        found: usize,
    },
    /// Sizes must grow from point to point.
    #[error("the {} curve has {bytes} bytes after {before} bytes; sizes must grow from point to point", op.name())]
    Order {
        /// The curve.
        op: Op,
        /// The size out of order.
        bytes: u64,
        /// The size before it.
        before: u64,
    },
    /// A rate is zero, negative, or not a number.
    #[error("{rate} {}s a second is no rate; it must be more than 0 and at most 1e9", op.name())]
    Rate {
        /// What was counted.
        op: Op,
        /// Per second.
        rate: f64,
    },
    /// A larger I/O is done more often than a smaller one, so a tenant would gain by asking for
    /// more.
    #[error(
        "{} of {bytes} bytes are done more often than of {smaller} bytes ({per_s}/s, {smaller_per_s}/s); larger I/Os cannot be cheaper, measure again",
        op.name()
    )]
    Rising {
        /// The curve.
        op: Op,
        /// The larger size.
        bytes: u64,
        /// Its rate.
        per_s: f64,
        /// The size before it.
        smaller: u64,
        /// The rate of that.
        smaller_per_s: f64,
    },
}

/// Rates beyond this are no device's; it also keeps a price in 64 bits.
const PER_S_MAX: f64 = 1e9;

fn check_rate(op: Op, rate: f64) -> Result<(), CalibrationError> {
    // Not a number is in no range.
    if rate > 0.0 && rate <= PER_S_MAX {
        Ok(())
    } else {
        Err(CalibrationError::Rate { op, rate })
    }
}

/// I/Os a second by size: sizes grow, rates do not.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve(Vec<Point>);

impl Curve {
    /// A curve through points, ordered by size.
    ///
    /// # Errors
    /// The first rule that they break; `op` is for the text of the error.
    pub fn new(op: Op, points: Vec<Point>) -> Result<Curve, CalibrationError> {
        if points.len() < 2 {
            let found = points.len();
            return Err(CalibrationError::TooFew { op, found });
        }
        for point in &points {
            check_rate(op, point.per_s)?;
        }
        for pair in points.windows(2) {
            let [smaller, larger] = [pair[0], pair[1]];
            if smaller.bytes >= larger.bytes {
                let (bytes, before) = (larger.bytes, smaller.bytes);
                return Err(CalibrationError::Order { op, bytes, before });
            }
            if smaller.per_s < larger.per_s {
                return Err(CalibrationError::Rising {
                    op,
                    bytes: larger.bytes,
                    per_s: larger.per_s,
                    smaller: smaller.bytes,
                    smaller_per_s: smaller.per_s,
                });
            }
        }
        Ok(Curve(points))
    }

    /// The nearest curve to measured rates that never rises with size: neighbours that do are
    /// replaced by their geometric mean (pool adjacent violators). A device that is really slower
    /// at a smaller size (1 KiB on sectors of 4 KiB) could have done the larger I/O in its place,
    /// so no more is charged.
    ///
    /// # Errors
    /// As [`Curve::new`], except for rising rates.
    pub fn levelled(op: Op, measured: &[Point]) -> Result<Curve, CalibrationError> {
        for point in measured {
            check_rate(op, point.per_s)?;
        }
        // Pools: sum of logarithms, members.
        let mut pools: Vec<(f64, usize)> = Vec::new();
        let mean = |pool: (f64, usize)| pool.0 / pool.1 as f64;
        for point in measured {
            let mut pool = (point.per_s.ln(), 1);
            while let Some(before) = pools.last().filter(|before| mean(**before) < mean(pool)) {
                pool = (pool.0 + before.0, pool.1 + before.1);
                pools.pop();
            }
            pools.push(pool);
        }
        let rates = pools.iter().flat_map(|pool| {
            // A point that was not pooled keeps its very rate.
            let level = (pool.1 > 1).then(|| mean(*pool).exp());
            std::iter::repeat_n(level, pool.1)
        });
        let level = |(point, rate): (&Point, Option<f64>)| Point {
            per_s: rate.unwrap_or(point.per_s),
            ..*point
        };
        Curve::new(op, measured.iter().zip(rates).map(level).collect())
    }

    /// The points, smallest size first.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.0
    }

    fn highest_per_s(&self) -> f64 {
        self.0.iter().map(|point| point.per_s).fold(0.0, f64::max)
    }

    /// (bytes, VOP) at each point.
    pub(super) fn costs(&self, max_per_s: f64) -> Vec<(f64, f64)> {
        let cost = |point: &Point| (point.bytes as f64, max_per_s / point.per_s);
        self.0.iter().map(cost).collect()
    }
}

/// What was measured of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    read: Curve,
    write: Curve,
    sync_per_s: f64,
    delete_per_s: f64,
}

impl Calibration {
    /// Curves of reads and writes, and the rates of syncs (each after one small write, whose own
    /// time is not counted) and of deletes of a data file.
    ///
    /// # Errors
    /// [`CalibrationError::Rate`] for a rate that is none.
    pub fn new(
        read: Curve,
        write: Curve,
        sync_per_s: f64,
        delete_per_s: f64,
    ) -> Result<Calibration, CalibrationError> {
        check_rate(Op::Sync, sync_per_s)?;
        check_rate(Op::Delete, delete_per_s)?;
        Ok(Calibration {
            read,
            write,
            sync_per_s,
            delete_per_s,
        })
    }

    /// Rates of reads.
    #[must_use]
    pub fn read(&self) -> &Curve {
        &self.read
    }

    /// Rates of writes.
    #[must_use]
    pub fn write(&self) -> &Curve {
        &self.write
    }

    /// Syncs a second.
    #[must_use]
    pub fn sync_per_s(&self) -> f64 {
        self.sync_per_s
    }

    /// Deletes a second.
    #[must_use]
    pub fn delete_per_s(&self) -> f64 {
        self.delete_per_s
    }

    /// Max-IOP of fig. 6.7: the highest rate on either curve, which costs one VOP an I/O.
    #[must_use]
    pub fn max_per_s(&self) -> f64 {
        self.read.highest_per_s().max(self.write.highest_per_s())
    }
}

/// Prices of one direction: straight lines between corners.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Direction {
    /// (bytes, price), at least one, by bytes; prices do not fall.
    corners: Vec<(u64, u64)>,
    /// Price of a byte beyond the last corner, times 2^[`SLOPE_FRACTION`].
    beyond: u64,
}

/// A byte costs down to 10^-6 VOP on fast devices, which is the unit of a price.
const SLOPE_FRACTION: u32 = 24;
/// Corners of a fitted curve between two sizes that differ by a factor of 2: straight lines are
/// then within 10^-4 of it.
const FITTED_PER_OCTAVE: f64 = 16.0;

/// Where the linear baseline ends: the largest I/O that it is compared by. Drawn to a larger one,
/// it would be good where nobody looks, and worse between.
const LINEAR_TO: f64 = 131_072.0;

impl Direction {
    /// `costs`: (bytes, VOP) as calibrated, at least two.
    pub(super) fn of(rule: Rule, costs: &[(f64, f64)]) -> Direction {
        let (first, last) = (costs[0], costs[costs.len() - 1]);
        let per_byte = last.1 / last.0;
        match rule {
            Rule::Exact => Direction::through(costs, per_byte),
            Rule::Fitted => {
                let line = fit::PowerLaw::fitted(costs);
                let steps = ((last.0 / first.0).log2() * FITTED_PER_OCTAVE).ceil();
                let bytes = |step: f64| (first.0 * (last.0 / first.0).powf(step / steps)).round();
                let sizes = (0..=steps as u32).map(|step| bytes(f64::from(step)));
                let corners: Vec<(f64, f64)> = sizes.map(|size| (size, line.cost(size))).collect();
                Direction::through(&corners, line.cost(last.0) / last.0)
            }
            Rule::Linear => {
                let within = costs.iter().rev().find(|(bytes, _)| *bytes <= LINEAR_TO);
                let end = within.filter(|end| end.0 > first.0).copied();
                let end = end.unwrap_or(last);
                let slope = (end.1 - first.1) / (end.0 - first.0);
                Direction::through(&[first, end], slope)
            }
            Rule::Constant => Direction::through(&[first], first.1 / first.0),
            Rule::Fixed => Direction::through(&[first], 0.0),
        }
    }

    fn through(corners: &[(f64, f64)], beyond: f64) -> Direction {
        let mut rounded: Vec<(u64, u64)> = Vec::with_capacity(corners.len());
        for (bytes, vop) in corners {
            let (bytes, price) = (*bytes as u64, Vop::new(*vop).0);
            // Corners of a fitted curve at a few bytes can fall on the same size.
            if rounded.last().is_some_and(|(before, _)| *before == bytes) {
                rounded.pop();
            }
            let floor = rounded.last().map_or(0, |(_, price)| *price);
            rounded.push((bytes, price.max(floor)));
        }
        let scale = Vop::ONE.0 as f64 * f64::from(1u32 << SLOPE_FRACTION);
        Direction {
            corners: rounded,
            beyond: (beyond * scale).round() as u64,
        }
    }

    pub(super) fn cost(&self, bytes: u64) -> Vop {
        let at = self.corners.partition_point(|(size, _)| *size <= bytes);
        let Some((from, price)) = at.checked_sub(1).map(|below| self.corners[below]) else {
            return Vop(self.corners[0].1);
        };
        let over = u128::from(bytes - from);
        let more = match self.corners.get(at) {
            Some((to, next)) => {
                let (rise, run) = (u128::from(next - price), u128::from(to - from));
                (rise * over + run / 2) / run
            }
            None => (u128::from(self.beyond) * over) >> SLOPE_FRACTION,
        };
        Vop(price.saturating_add(u64::try_from(more).unwrap_or(u64::MAX)))
    }
}
