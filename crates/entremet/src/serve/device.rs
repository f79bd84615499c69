//! What the databases lie on, as the configuration has it: a measured disk, one that is measured
//! now, or an emulated one.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use device::{DeviceError, EmulatedDisk, Machine, Measured, Profile, Rate, Way, BESIDE_DATA};
use policy::cost::device::CostModel;
use policy::supply::Supply;
use server::device::{Device, DeviceOptions, Disk, Drives, Measure, Pricing, Unmeasured};
use settings::units::Bytes;
use stage::Clock;

use crate::cli::VERSION;
use crate::config::{self, Config};

/// A device that does fewer small reads a second than this has an arm.
const SEEKS_PER_S: f64 = 2_000.0;

type SharedClock = Arc<dyn Clock + Send + Sync>;

/// The disk. Call it once the data directory can be inspected.
///
/// # Errors
/// A profile that cannot be used.
pub fn of(config: &Config, clock: &SharedClock, seed: u64) -> Result<Arc<Disk>, Box<dyn Error>> {
    let (settings, data) = (&config.device, &config.engine.path);
    if config.engine.upstream.is_some() {
        return Ok(Disk::unscheduled("an engine keeps the data"));
    }
    if let Some(path) = &settings.profile {
        return named(config, path, clock);
    }
    if let Some(mut disk) = settings.model.as_deref().and_then(EmulatedDisk::named) {
        return emulated(config, &mut disk, clock, seed);
    }
    if !settings.stage {
        let why = "device.stage is false: the disk is not scheduled, and a tenant's writes can slow everybody's reads";
        tracing::warn!("{why}");
        return Ok(Disk::unscheduled(why));
    }
    let kept = data.join(BESIDE_DATA);
    if let Some(profile) = Profile::beside(data)? {
        let Some(difference) = profile.machine.other_disk(&Machine::of(data)?) else {
            let how = if profile.quick { "briefly" } else { "exactly" };
            tracing::info!(
                "I/O is scheduled by {}, which was measured {how}",
                kept.display()
            );
            return scheduled(config, &profile, None, clock);
        };
        tracing::warn!(
            "{} is of another disk ({difference}): the disk is measured again and the file replaced",
            kept.display()
        );
    }
    Ok(Disk::to_be_measured(measure(config, kept, clock)))
}

/// By a profile that the configuration names.
fn named(config: &Config, path: &Path, clock: &SharedClock) -> Result<Arc<Disk>, Box<dyn Error>> {
    let (profile, data) = (Profile::load(path)?, &config.engine.path);
    engine::create_directory(data)?;
    let here = Machine::of(data)?;
    let doubt = profile.machine.difference(&here).map(|difference| {
        format!(
            "device.profile {} was made elsewhere: {difference}; prices and floor may be wrong, run `entremet calibrate {}`",
            path.display(),
            data.display()
        )
    });
    scheduled(config, &profile, doubt, clock)
}

fn scheduled(
    config: &Config,
    profile: &Profile,
    doubt: Option<String>,
    clock: &SharedClock,
) -> Result<Arc<Disk>, Box<dyn Error>> {
    let options = DeviceOptions {
        doubt,
        brief: profile.quick,
        ..options(config, &profile.measured)?
    };
    Ok(Disk::scheduled(Device::new(
        options,
        Arc::clone(clock),
        None,
    )))
}

fn emulated(
    config: &Config,
    disk: &mut EmulatedDisk,
    clock: &SharedClock,
    seed: u64,
) -> Result<Arc<Disk>, Box<dyn Error>> {
    tracing::warn!(
        "device.model: I/O is made as slow as an emulated {} would be; for experiments only",
        config.device.model.as_deref().unwrap_or_default()
    );
    let plan = disk.plan();
    let measured = device::calibrate(disk, &plan, &mut |_, _| {})?;
    let settings = &config.device;
    let span = settings.span.map(Bytes::get);
    let drives = Drives::new(disk.model(), settings.disks, span, seed, clock);
    let options = options(config, &measured)?;
    let stage = Device::new(options, Arc::clone(clock), Some(drives));
    Ok(Disk::scheduled(stage))
}

/// Measures the disk under the data in some seconds, and keeps the result beside them.
fn measure(config: &Config, kept: PathBuf, clock: &SharedClock) -> Measure {
    let (config, clock) = (config.clone(), Arc::clone(clock));
    Box::new(move |stop: &Arc<AtomicBool>| {
        let data = &config.engine.path;
        tracing::info!(
            "measuring the disk under {} for some seconds, so that I/O can be scheduled; `entremet calibrate` measures it exactly",
            data.display()
        );
        let measured = device::measure(
            data,
            &Way::brief(),
            VERSION,
            Arc::clone(stop),
            &mut |_, _| {},
        );
        let profile = measured.map_err(unmeasured)?;
        let options = options(&config, &profile.measured)
            .map_err(|why| Unmeasured::NotNow(why.to_string()))?;
        match profile.save(&kept) {
            Ok(()) => tracing::info!("what was measured is kept in {}", kept.display()),
            Err(why) => {
                tracing::warn!("what was measured is used but not kept, so the next start measures again: {why}");
            }
        }
        let options = DeviceOptions {
            brief: true,
            ..options
        };
        Ok(Device::new(options, Arc::clone(&clock), None))
    })
}

/// A disk that has no room, fails or is busy may be measured later; what is in memory never.
fn unmeasured(error: DeviceError) -> Unmeasured {
    match error {
        DeviceError::Stopped => Unmeasured::Stopped,
        DeviceError::Unfit { .. } => Unmeasured::Never(error.to_string()),
        _ => Unmeasured::NotNow(error.to_string()),
    }
}

fn options(config: &Config, measured: &Measured) -> Result<DeviceOptions, DeviceError> {
    let (reads, costs) = (&measured.read, measured.costs()?);
    // What has an arm turns a disk round for each read: some hundred a second at most.
    let seeks = reads.first().is_some_and(|rate| rate.per_s < SEEKS_PER_S);
    Ok(DeviceOptions {
        seeks,
        stream_bytes_per_s: stream_bytes_per_s(reads, seeks),
        read_alone_ns: [measured.read_ns.0, measured.read_ns.1],
        supply: supply(measured, &costs),
        costs,
        depth: measured.depth as u32,
        chunk_bytes: measured.chunk_bytes,
        pricing: pricing(&config.device),
        overbook: config.device.overbook,
        doubt: None,
        brief: false,
        discipline: config.scheduler.device,
    })
}

/// What may be promised of the device, and of the processors that this process may use.
fn supply(measured: &Measured, costs: &CostModel) -> Supply {
    let processors = std::thread::available_parallelism();
    Supply {
        sweep: measured.sweep(costs),
        processors: processors.map_or(1, std::num::NonZero::get) as f64,
    }
}

/// The rate of one stream of reads. An arm that has moved reads on: what a large read takes longer
/// than a small one is spent on its bytes alone.
fn stream_bytes_per_s(reads: &[Rate], seeks: bool) -> f64 {
    let (Some(small), Some(large)) = (reads.first(), reads.last()) else {
        return 0.0;
    };
    let longer_s = 1.0 / large.per_s - 1.0 / small.per_s;
    match seeks && longer_s > 0.0 {
        true => (large.bytes - small.bytes) as f64 / longer_s,
        false => large.per_s * large.bytes as f64,
    }
}

fn pricing(device: &config::Device) -> Pricing {
    if device.learn_prices {
        Pricing::Profiles
    } else {
        Pricing::Objects
    }
}
