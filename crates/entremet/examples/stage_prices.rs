//! Price rules through the stage that ships, with a thread for every request: what
//! `libra-costmodels` computes in the emulated SSD's own time, here in real time, for a few pairs
//! of sizes.
//!
//! ```text
//! cargo run --release -p entremet --example stage_prices [seconds of a slice]
//! ```

use device::{EmulatedDisk, Measured};
use engine::device::{Activity, DeviceIo, DeviceStage, Ended, FileKind, Op, Tag};
use policy::cost::device::{CostModel, Rule};
use policy::generator::Generator;
use policy::supply::Supply;
use server::device::{Device, DeviceOptions, Drives, Pricing};
use stage::{Clock, Discipline, Nanos};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Four readers and four writers (7.2.1), each with this many requests outstanding.
const TENANTS: u32 = 8;
const THREADS: u32 = 8;
/// Until dies have come apart and the depth is found.
const WARM_UP: Duration = Duration::from_secs(3);
const SPAN_BYTES: u64 = 8 << 30;
/// KiB read, KiB written.
const PAIRS: [(u64, u64); 3] = [(4, 4), (4, 64), (64, 4)];

struct Real(Instant);

impl Clock for Real {
    fn now(&self) -> Nanos {
        self.0.elapsed().as_nanos() as Nanos
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args()
        .nth(1)
        .map_or(Ok(4.0), |text| text.parse())?;
    let slice = Duration::from_secs_f64(seconds);
    let mut disk = EmulatedDisk::named("ssd").ok_or("no such model")?;
    let plan = disk.plan();
    let measured = device::calibrate(&mut disk, &plan, &mut |_, _| {})?;
    for rule in [Rule::Exact, Rule::Linear, Rule::Constant] {
        let costs = CostModel::new(rule, &measured.calibration()?);
        for (read, write) in PAIRS {
            let kinds = [(Op::Read, read << 10), (Op::Write, write << 10)];
            // Four alone have a quarter each; an eighth is what each is owed among eight.
            let owed = kinds.map(|kind| {
                let alone = contest(
                    &disk,
                    &measured,
                    &costs,
                    &[kind; TENANTS as usize / 2],
                    slice,
                );
                alone.iter().sum::<f64>() / f64::from(TENANTS)
            });
            let both: Vec<_> = (0..TENANTS as usize)
                .map(|tenant| kinds[tenant % 2])
                .collect();
            let got = contest(&disk, &measured, &costs, &both, slice);
            let ratios = got
                .iter()
                .enumerate()
                .map(|(tenant, rate)| rate / owed[tenant % 2]);
            let ratios: Vec<f64> = ratios.collect();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let mmr = least / ratios.iter().copied().fold(0.0, f64::max);
            println!(
                "{:>8}, {read:>3} KiB read, {write:>3} KiB written: MMR {mmr:.3}, {:.0} and {:.0} requests a second each",
                rule.name(), got[0], got[1]
            );
        }
    }
    Ok(())
}

/// Requests a second of each tenant, all of equal shares.
fn contest(
    disk: &EmulatedDisk,
    measured: &Measured,
    costs: &CostModel,
    tenants: &[(Op, u64)],
    slice: Duration,
) -> Vec<f64> {
    let clock: Arc<dyn Clock + Send + Sync> = Arc::new(Real(Instant::now()));
    let options = DeviceOptions {
        costs: costs.clone(),
        supply: Supply {
            sweep: measured.sweep(costs),
            processors: 1.0,
        },
        depth: measured.depth as u32,
        chunk_bytes: measured.chunk_bytes,
        discipline: Discipline::Fair,
        pricing: Pricing::Profiles,
        overbook: false,
        seeks: false,
        stream_bytes_per_s: 1e9,
        read_alone_ns: [100_000, 200_000],
        doubt: None,
        brief: false,
    };
    let drives = Drives::new(disk.model(), 1, None, 1, &clock);
    let stage = Device::new(options, clock, Some(drives));
    let done: Vec<AtomicU64> = tenants.iter().map(|_| AtomicU64::new(0)).collect();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for (tenant, (&(op, bytes), done)) in (0..).zip(tenants.iter().zip(&done)) {
            stage.configure(tenant, 1.0);
            for thread in 0..THREADS {
                let stage = &stage;
                scope.spawn(move || {
                    let mut random = Generator::new(u64::from(tenant * THREADS + thread));
                    while begun.elapsed() < WARM_UP + slice {
                        request(stage, tenant, op, bytes, &mut random);
                        let measured = begun.elapsed() >= WARM_UP;
                        done.fetch_add(u64::from(measured), Ordering::Relaxed);
                    }
                });
            }
        }
    });
    let rate = |done: AtomicU64| done.into_inner() as f64 / slice.as_secs_f64();
    done.into_iter().map(rate).collect()
}

/// One request, cut into chunks as the hook does it.
fn request(stage: &Arc<Device>, tenant: u32, op: Op, bytes: u64, random: &mut Generator) {
    let mut offset = random.below(SPAN_BYTES >> 12) << 12;
    let mut left = bytes;
    while left > 0 {
        let bytes = left.min(stage.chunk_bytes());
        let io = DeviceIo {
            principal: tenant,
            op,
            offset,
            bytes,
            file: FileKind::Data,
            number: 0,
            activity: Activity::Get,
            urgent: false,
            tag: Tag::default(),
        };
        let token = stage.begin(&io);
        stage.end(&io, token, Ended { bytes, ok: true });
        (left, offset) = (left - bytes, offset + bytes);
    }
}
