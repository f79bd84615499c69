//! What I/Os of a modelled device cost: it is tried in its own time.
//!
//! `device::calibrate` over `device::EmulatedDisk` asks more, and is not used here: the simulator
//! runs policies and does not import the crate of real disks, their files and threads (tests/tidy).
//! It also needs little of the rest: depth is the scenario's, a model has no hiccups to be told
//! from its rates, and one mix is near enough to a floor: what is reserved in a scenario is meant
//! to fit.
//! What makes prices of rates is `policy::cost::device`, for both.

use crate::spec::Disk;
use policy::cost::device::{chunk_bytes, Calibration, CostModel, Curve, Op, Point, Rule};
use policy::device::{Device, Event, Io, Model};
use policy::Nanos;
use workload::rng::Rng;

/// Sizes that are tried; beyond the largest an I/O costs as much for each byte as that.
const SIZES: [u64; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// I/Os go to this much of the device.
pub(crate) const SPAN_BYTES: u64 = 64 << 30;
/// What it reads and writes at least.
pub(crate) const PAGE_BYTES: u64 = 4 << 10;

/// Prices, and what a mix of reads and writes leaves of the highest rate.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    pub(crate) costs: CostModel,
    /// VOPs a second.
    pub(crate) floor_per_s: f64,
    /// Pieces of what is larger, where the scenario does not say: measured where the data lies.
    pub(crate) chunk_bytes: u64,
}

impl Prices {
    /// Tries the device. The same model and depth have the same prices, whatever the span of the
    /// data; a device that does nothing has none.
    pub(crate) fn of(device: &Disk) -> Option<Prices> {
        let (model, depth) = (&device.model, device.depth);
        let points = |op: Op, span_bytes: u64| {
            SIZES.map(|bytes| Point {
                bytes,
                per_s: rate(model, depth, span_bytes, |_| (op, bytes)),
            })
        };
        let alone = |op: Op| rate(model, depth, SPAN_BYTES, |_| (op, 0));
        let rates = [Op::Read, Op::Write].map(|op| points(op, SPAN_BYTES));
        let here = match device.span_bytes {
            SPAN_BYTES => rates,
            span_bytes => [Op::Read, Op::Write].map(|op| points(op, span_bytes)),
        };
        let read = Curve::levelled(Op::Read, &rates[0]).ok()?;
        let write = Curve::levelled(Op::Write, &rates[1]).ok()?;
        let (sync, delete) = (alone(Op::Sync), alone(Op::Delete));
        let calibration = Calibration::new(read, write, sync, delete).ok()?;
        let costs = CostModel::new(Rule::Exact, &calibration);
        let (read, write) = ((Op::Read, SIZES[0]), (Op::Write, SIZES[1]));
        let mixed = rate(model, depth, SPAN_BYTES, |number| match number % 2 {
            0 => read,
            _ => write,
        });
        let price = [read, write].map(|(op, bytes)| costs.cost(op, bytes).get());
        Some(Prices {
            floor_per_s: mixed * (price[0] + price[1]) / 2.0,
            chunk_bytes: here.iter().filter_map(|rates| chunk_bytes(rates)).max()?,
            costs,
        })
    }
}

/// I/Os a second that a device does within `span_bytes` of what `ask` says of each, so many at a
/// time.
fn rate(model: &Model, depth: u32, span_bytes: u64, ask: impl Fn(u64) -> (Op, u64)) -> f64 {
    // A second after the five in which the dies of an SSD, which begin a block together, come
    // apart; an arm needs longer for as many I/Os.
    let (warm_ns, until_ns): (Nanos, Nanos) = match model {
        Model::Ssd(_) => (5_000_000_000, 6_000_000_000),
        Model::Hdd(_) => (1_000_000_000, 11_000_000_000),
    };
    let (mut device, mut rng) = (Device::new(model, 1), Rng::new(1, 1));
    let mut asked = 0;
    let mut next = |device: &mut Device, now: Nanos| {
        let (op, bytes) = ask(asked);
        let offset = place(&mut rng, span_bytes);
        device.submit(now, asked, Io { op, offset, bytes });
        asked += 1;
    };
    for _ in 0..depth {
        next(&mut device, 0);
    }
    let (mut now, mut done) = (0, 0);
    while now < until_ns {
        match device.next(now) {
            Event::At(at) => now = at,
            Event::Idle => break,
            Event::Done { .. } => {
                done += u64::from(now >= warm_ns);
                next(&mut device, now);
            }
        }
    }
    done as f64 * 1e9 / (until_ns - warm_ns) as f64
}

/// A place within so many bytes of the device.
fn place(rng: &mut Rng, span_bytes: u64) -> u64 {
    rng.bits() % (span_bytes / PAGE_BYTES).max(1) * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::device::{HddParameters, SsdParameters};
    use policy::dispatch::Discipline;

    fn chunk_kib(model: Model, depth: u32, span_bytes: u64) -> u64 {
        let disk = Disk {
            model,
            depth,
            follows: false,
            handlers: None,
            cached: 0.0,
            cached_bytes_max: u64::MAX,
            largest_bytes: 256 << 10,
            disks: 1,
            discipline: Discipline::Fair,
            span_bytes,
            chunk_bytes: None,
            file_bytes: None,
            other_files: 0,
            range_reads: 0,
            wake_ns: 0,
            piece_ns: 0,
        };
        Prices::of(&disk).expect("prices").chunk_bytes >> 10
    }

    #[test]
    fn pieces_are_longer_where_an_arm_moves_further() {
        let hdd = |span_bytes| chunk_kib(Model::Hdd(HddParameters::default()), 1, span_bytes);
        assert_eq!(hdd(5_000_000_000), 1024);
        assert_eq!(hdd(1_000_000_000_000), 2048);
        let ssd = Model::Ssd(SsdParameters::default());
        assert_eq!(chunk_kib(ssd, 32, SPAN_BYTES), 64);
    }
}
