//! What to measure, and whether to believe it.
//!
//! Four questions, in this order, because each needs the answers before it:
//!
//! 1. how deep: the smallest number of outstanding 4 KiB reads with nearly the highest rate;
//! 2. the curves: reads and writes of each size alone, at that depth (thesis 6.3.3, fig. 6.4);
//! 3. interference: reads and writes of several sizes together, in several proportions (6.3.2, fig.
//!    6.5), counted in VOPs by the curves; and then down to the bottom of the valley, which lies
//!    between the sizes and mixes of the sweep;
//! 4. the floor: the first percentile of all those VOP rates, or the least load's median if that is
//!    less, or if there are fewer than a hundred. The thesis takes the least of its averages; ours
//!    is not above it, and not at the mercy of one hiccup either.
//!
//! Each is measured in short slices, in turns, again until it is stable: a machine that slows down
//! for a second spoils one slice of several loads, not all slices of one.

mod plan;
mod stable;

pub use plan::{Bench, Load, Mix, Plan, Repeats, Sample};

use crate::DeviceError;
use policy::cost::device::{self as cost, Calibration, CostModel, Curve, Op, Point, Rule, Sweep};
use stable::Series;
use std::time::Duration;

/// Told before each slice what is measured and which part of the work is done, 0 to 1.
pub type Progress<'a> = dyn FnMut(&str, f64) + 'a;

/// One size of a curve, measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bytes of each I/O.
    pub bytes: u64,
    /// I/Os a second: the median of the slices.
    pub per_s: f64,
    /// Half the range of the slices (without the best and the worst, if there are five), as a part
    /// of the median.
    pub spread: f64,
}

/// One load of the interference sweep, measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// The load.
    pub load: Load,
    /// VOPs a second: the median of the slices.
    pub vop_per_s: f64,
}

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Reads by size, smallest first.
    pub read: Vec<Rate>,
    /// Writes by size, smallest first.
    pub write: Vec<Rate>,
    /// Syncs a second.
    pub sync_per_s: f64,
    /// Deletes of a file a second.
    pub delete_per_s: f64,
    /// The interference sweep.
    pub seen: Vec<Seen>,
    /// First percentile of the VOP rates of all slices of that sweep, or the least load's median if
    /// that is less or there are fewer than a hundred slices; of a brief plan a part of that.
    pub floor_per_s: f64,
    /// I/Os outstanding that use the device well.
    pub depth: usize,
    /// Bytes of the pieces of large I/Os ([`cost::chunk_bytes`]).
    pub chunk_bytes: u64,
    /// Median and 99th percentile of a 4 KiB read alone at the device, nanoseconds.
    pub read_ns: (u64, u64),
    /// The same of a write.
    pub write_ns: (u64, u64),
}

impl Measured {
    /// What I/Os cost on this device, by the calibrated curves themselves.
    ///
    /// # Errors
    /// As [`Measured::calibration`].
    pub fn costs(&self) -> Result<CostModel, DeviceError> {
        Ok(CostModel::new(Rule::Exact, &self.calibration()?))
    }

    /// What may be promised to mixes of reads and writes, by the interference sweep and these
    /// prices. The floor is a part of the least that was seen, for what a brief plan steps over and
    /// for noise; of every other load no larger part is relied on. Loads that read and write by
    /// turns tell no proportion and are left out.
    #[must_use]
    pub fn sweep(&self, costs: &CostModel) -> Sweep {
        let least = self.seen.iter().map(|seen| seen.vop_per_s);
        let least = least.fold(f64::INFINITY, f64::min);
        let part = (self.floor_per_s / least).min(1.0);
        let seen = self.seen.iter().filter_map(|seen| {
            let Load {
                read_bytes,
                write_bytes,
                mix,
                ..
            } = seen.load;
            let Mix::Reads(percent) = mix else {
                return None;
            };
            let reads = f64::from(percent) * costs.cost(Op::Read, read_bytes).get();
            let writes = f64::from(100 - percent) * costs.cost(Op::Write, write_bytes).get();
            Some(cost::Seen {
                reads_part: reads / (reads + writes),
                read_bytes,
                write_bytes,
                vop_per_s: seen.vop_per_s,
            })
        });
        Sweep::new(costs.max_per_s(), self.floor_per_s, part, seen.collect())
    }

    /// The curves as prices are made of them, with noise levelled.
    ///
    /// # Errors
    /// [`DeviceError::Implausible`] if the rates cannot be a device's.
    pub fn calibration(&self) -> Result<Calibration, DeviceError> {
        let implausible = |error: policy::cost::device::CalibrationError| {
            DeviceError::Implausible(error.to_string())
        };
        let curve = |op, rates: &[Rate]| Curve::levelled(op, &points(rates)).map_err(implausible);
        let (read, write) = (curve(Op::Read, &self.read)?, curve(Op::Write, &self.write)?);
        Calibration::new(read, write, self.sync_per_s, self.delete_per_s).map_err(implausible)
    }
}

/// The size by which depth and latency are judged: what a point read of the engine takes.
const PAGE_BYTES: u64 = 4 << 10;
/// "Nearly the highest": a deeper queue that gains less only makes others wait.
const ENOUGH: f64 = 0.95;

/// Measures.
///
/// # Errors
/// What the bench says, and [`DeviceError::Implausible`] with the reason.
pub fn calibrate(
    bench: &mut dyn Bench,
    plan: &Plan,
    progress: &mut Progress<'_>,
) -> Result<Measured, DeviceError> {
    let steps = plan.steps();
    let mut work = Work {
        bench,
        plan,
        progress,
        done: 0,
        steps,
        spent: Duration::ZERO,
    };
    let [read_ns, write_ns] = work.alone()?;
    let depth = work.depth()?;
    let [read, write] = work.curves(depth)?;
    let (sync_per_s, delete_per_s) = work.others(&write)?;
    let mut measured = Measured {
        chunk_bytes: chunk(&read, &write),
        read,
        write,
        sync_per_s,
        delete_per_s,
        seen: Vec::new(),
        floor_per_s: 0.0,
        depth,
        read_ns,
        write_ns,
    };
    check_curves(&measured, plan.spread_max)?;
    let costs = measured.costs()?;
    (measured.seen, measured.floor_per_s) = work.interference(depth, &costs)?;
    check_floor(&measured, costs.max_per_s())?;
    Ok(measured)
}

/// The size of pieces that suits both, reading and writing.
fn chunk(read: &[Rate], write: &[Rate]) -> u64 {
    let of = |rates: &[Rate]| cost::chunk_bytes(&points(rates));
    of(read).max(of(write)).unwrap_or(PAGE_BYTES)
}

fn points(rates: &[Rate]) -> Vec<Point> {
    let point = |rate: &Rate| Point {
        bytes: rate.bytes,
        per_s: rate.per_s,
    };
    rates.iter().map(point).collect()
}

/// A disk that answers faster than this is memory: 20 million I/Os, or 100 GB, a second.
const PER_S_MAX: f64 = 2e7;
const BYTES_PER_S_MAX: f64 = 1e11;
/// Slower than this it is broken, or the machine is.
const PER_S_MIN: f64 = 1.0;
/// How much more often than a smaller I/O a larger one may be done, before it is no noise. Below a
/// page a disk may really be slower (it reads a sector of 4 KiB to write 1 KiB of it).
const RISE_MAX: f64 = 1.5;

fn check_curves(measured: &Measured, spread_max: f64) -> Result<(), DeviceError> {
    for (what, rates) in [("reads", &measured.read), ("writes", &measured.write)] {
        for rate in rates {
            let Rate {
                bytes,
                per_s,
                spread,
            } = *rate;
            let here = format!("{per_s:.0} {what} of {bytes} bytes a second");
            if per_s > PER_S_MAX || per_s * bytes as f64 > BYTES_PER_S_MAX {
                let text = format!("{here} is no disk's rate; something answers from memory. Measure a directory on the disk itself");
                return Err(DeviceError::Implausible(text));
            }
            if per_s < PER_S_MIN {
                let text = format!(
                    "{here}; the disk or its path is failing, or something else uses all of it"
                );
                return Err(DeviceError::Implausible(text));
            }
            if spread > spread_max {
                let text = format!("{here} change by {:.0} % from one try to the next; measure again when the machine and its disk have nothing else to do", 100.0 * spread);
                return Err(DeviceError::Implausible(text));
            }
        }
        for pair in rates.windows(2) {
            let rise = pair[1].per_s / pair[0].per_s;
            if rise > RISE_MAX && pair[0].bytes >= PAGE_BYTES {
                let text = format!(
                    "{what} of {} bytes were done {rise:.1} times as often as of {} bytes; measure again when the machine has nothing else to do",
                    pair[1].bytes, pair[0].bytes
                );
                return Err(DeviceError::Implausible(text));
            }
        }
    }
    Ok(())
}

/// A floor below this part of the highest rate promises nothing worth having.
const FLOOR_MIN: f64 = 0.01;

fn check_floor(measured: &Measured, max_per_s: f64) -> Result<(), DeviceError> {
    let floor = measured.floor_per_s;
    if floor >= FLOOR_MIN * max_per_s {
        return Ok(());
    }
    let text = format!("with reads and writes mixed only {floor:.0} of {max_per_s:.0} VOP/s are left; the disk stalls for longer than a slice, or something else uses it");
    Err(DeviceError::Implausible(text))
}

/// Slices without any I/O before it is the disk that hangs: in one the process, or the whole
/// machine, may have been stopped.
const TRIES: usize = 3;

/// A slice in which not every worker could end an I/O is too short for this load on this disk. So
/// much longer is the next.
const LONGER: u32 = 4;

/// Steps from the least load of the sweep towards a lesser one; each takes at most six loads. A
/// step goes to the next size, so these cross the gaps of the coarsest sweep.
const DESCENTS: usize = 6;

struct Work<'a, 'p> {
    bench: &'a mut dyn Bench,
    plan: &'a Plan,
    progress: &'a mut Progress<'p>,
    done: usize,
    steps: usize,
    /// Time in slices so far.
    spent: Duration,
}

impl Work<'_, '_> {
    fn tell(&mut self, what: &str) {
        let part = (self.done as f64 / self.steps as f64).min(1.0);
        (self.progress)(what, part);
        self.done += 1;
    }

    /// One slice, of `length` or, where that is too short for the load, longer: then `length` is so
    /// from now on.
    fn slice(
        &mut self,
        what: &str,
        load: &Load,
        length: &mut Duration,
    ) -> Result<Sample, DeviceError> {
        self.tell(what);
        for last in (0..TRIES).rev() {
            let sample = self.bench.run(load, *length)?;
            self.spent = self.spent.saturating_add(*length);
            let done = sample.reads + sample.writes;
            let enough = if last == 0 { 1 } else { load.workers as u64 };
            if done >= enough && sample.ns > 0 {
                return Ok(sample);
            }
            if last > 0 {
                *length *= LONGER;
            }
        }
        let text = format!(
            "nothing was done in {TRIES} tries of {what}, the last of {length:?}; the disk hangs"
        );
        Err(DeviceError::Implausible(text))
    }

    /// Slices of each load in turns, by what `value` makes of them, until they are stable.
    fn series(
        &mut self,
        what: &str,
        loads: &[Load],
        repeats: Repeats,
        value: impl Fn(&Load, &Sample) -> f64,
    ) -> Result<Vec<Series>, DeviceError> {
        let mut all = vec![(Series::default(), self.plan.slice); loads.len()];
        for repeat in 0..repeats.most {
            for (load, (series, length)) in loads.iter().zip(&mut all) {
                let wanted = repeat < repeats.least || !series.stable();
                if repeat == 0 || wanted && self.spent < self.plan.repeats_within {
                    let sample = self.slice(what, load, length)?;
                    series.push(value(load, &sample));
                }
            }
        }
        Ok(all.into_iter().map(|(series, _)| series).collect())
    }

    /// Latency of one I/O at a time.
    fn alone(&mut self) -> Result<[(u64, u64); 2], DeviceError> {
        let mut of = |what, load| {
            let sample = self.slice(what, &load, &mut self.plan.slice.clone());
            sample.map(|sample| sample.latency_ns)
        };
        Ok([
            of("the latency of reads", Load::reads(1, PAGE_BYTES))?,
            of("the latency of writes", Load::writes(1, PAGE_BYTES))?,
        ])
    }

    fn depth(&mut self) -> Result<usize, DeviceError> {
        let depths = &self.plan.depths;
        let loads: Vec<Load> = depths
            .iter()
            .map(|depth| Load::reads(*depth, PAGE_BYTES))
            .collect();
        let repeats = self.plan.repeats;
        let rates = self.series("the best depth", &loads, repeats, |_, sample| {
            sample.per_s()
        })?;
        let rates: Vec<f64> = rates.iter().map(Series::median).collect();
        let most = rates.iter().copied().fold(0.0, f64::max);
        let first = rates.iter().position(|rate| *rate >= ENOUGH * most);
        Ok(self.plan.depths[first.unwrap_or(0)])
    }

    fn curves(&mut self, depth: usize) -> Result<[Vec<Rate>; 2], DeviceError> {
        let sizes: Vec<u64> = self.plan.sizes.clone();
        let reads = sizes.iter().map(|bytes| Load::reads(depth, *bytes));
        let loads: Vec<Load> = reads
            .chain(sizes.iter().map(|bytes| Load::writes(depth, *bytes)))
            .collect();
        let repeats = self.plan.repeats;
        let all = self.series("rates by size", &loads, repeats, |_, sample| sample.per_s())?;
        let rate = |(bytes, series): (&u64, &Series)| Rate {
            bytes: *bytes,
            per_s: series.median(),
            spread: series.spread(),
        };
        let (reads, writes) = all.split_at(sizes.len());
        Ok([reads, writes].map(|half| sizes.iter().zip(half).map(rate).collect()))
    }

    /// Syncs and deletes. A sync comes with the write that it makes durable, which is charged for
    /// itself: its share of the time is taken out.
    fn others(&mut self, write: &[Rate]) -> Result<(f64, f64), DeviceError> {
        let (mut pairs, mut deletes) = (Series::default(), Series::default());
        for _ in 0..self.plan.repeats.least {
            self.tell("syncs");
            pairs.push(self.bench.syncs(PAGE_BYTES, self.plan.slice)?);
            self.tell("deletes");
            deletes.push(self.bench.deletes()?);
        }
        let page = write.iter().find(|rate| rate.bytes >= PAGE_BYTES);
        let write_s = page.map_or(0.0, |rate| 1.0 / rate.per_s);
        let pair_s = 1.0 / pairs.median();
        // Where a sync seems to cost nothing (a disk that promises what it does not keep), it is
        // one write.
        let sync_s = (pair_s - write_s).max(pair_s / 2.0);
        Ok((1.0 / sync_s, deletes.median()))
    }

    fn interference(
        &mut self,
        depth: usize,
        costs: &CostModel,
    ) -> Result<(Vec<Seen>, f64), DeviceError> {
        let what = "reads and writes together";
        let value = |load: &Load, sample: &Sample| sample.vop_per_s(load, costs);
        let repeats = self.plan.mixed_repeats;
        let mut loads = self.plan.mixes(depth);
        let mut all = self.series(what, &loads, repeats, value)?;
        // A coarse sweep steps over the bottom of the valley: from the least load seen go down to
        // it.
        for _ in 0..DESCENTS {
            let median = |load: &usize| all[*load].median();
            let least = (0..loads.len()).min_by(|a, b| median(a).total_cmp(&median(b)));
            let near = least.map(|least| self.plan.near(&loads[least]));
            let mut near = near.unwrap_or_default();
            near.retain(|load| !loads.contains(load));
            if near.is_empty() {
                break;
            }
            all.extend(self.series(what, &near, repeats, value)?);
            loads.extend(near);
        }
        let least = all.iter().map(Series::median).fold(f64::INFINITY, f64::min);
        let mut samples: Vec<f64> = all.iter().flat_map(Series::samples).copied().collect();
        samples.sort_by(f64::total_cmp);
        let seen = |(load, series): (&Load, &Series)| Seen {
            load: *load,
            vop_per_s: series.median(),
        };
        // Of fewer, the first percentile is the worst of all, which one hiccup makes.
        let percentile = (samples.len() >= 100).then(|| samples[samples.len() / 100]);
        let floor = percentile.map_or(least, |percentile| least.min(percentile));
        let floor = floor * self.plan.floor_part;
        Ok((loads.iter().zip(&all).map(seen).collect(), floor))
    }
}
