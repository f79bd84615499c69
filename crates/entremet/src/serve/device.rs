//! The device stage that the configuration asks for: a measured disk, or an emulated one.

use std::error::Error;
use std::sync::Arc;

use device::{EmulatedDisk, Machine, Measured, Profile};
use server::device::{Device, DeviceOptions, Emulated, Pricing};
use stage::Clock;

use crate::config::Config;

type SharedClock = Arc<dyn Clock + Send + Sync>;

/// The stage; none where neither a profile nor a model is named. Call it once the data directory can be inspected.
///
/// # Errors
/// A profile that cannot be used.
pub fn of(
    config: &Config,
    clock: &SharedClock,
    seed: u64,
) -> Result<Option<Arc<Device>>, Box<dyn Error>> {
    let settings = &config.device;
    if let Some(path) = &settings.profile {
        let profile = Profile::load(path)?;
        engine::create_directory(&config.engine.path)?;
        let here = Machine::of(&config.engine.path)?;
        let doubt = profile.machine.difference(&here).map(|difference| {
            format!(
                "device.profile {} was made elsewhere: {difference}; prices and floor may be wrong, run `entremet calibrate {}`",
                path.display(),
                config.engine.path.display()
            )
        });
        if let Some(doubt) = &doubt {
            tracing::warn!("{doubt}");
        }
        let options = DeviceOptions {
            doubt,
            ..options(config, &profile.measured)?
        };
        return Ok(Some(Device::new(options, Arc::clone(clock), None)));
    }
    let Some(mut disk) = settings.model.as_deref().and_then(EmulatedDisk::named) else {
        tracing::warn!("{}", server::device::NO_PROFILE);
        return Ok(None);
    };
    tracing::warn!(
        "device.model: I/O is made as slow as an emulated {} would be; for experiments only",
        settings.model.as_deref().unwrap_or_default()
    );
    let plan = disk.plan();
    let measured = device::calibrate(&mut disk, &plan, &mut |_, _| {})?;
    let emulated = Emulated::new(disk.model(), seed, Arc::clone(clock));
    let options = options(config, &measured)?;
    Ok(Some(Device::new(
        options,
        Arc::clone(clock),
        Some(emulated),
    )))
}

fn options(config: &Config, measured: &Measured) -> Result<DeviceOptions, Box<dyn Error>> {
    Ok(DeviceOptions {
        costs: measured.costs()?,
        floor_per_s: measured.floor_per_s,
        depth: measured.depth as u32,
        chunk_bytes: measured.chunk_bytes,
        pricing: if config.device.profiles {
            Pricing::Profiles
        } else {
            Pricing::Objects
        },
        overbook: config.device.overbook,
        doubt: None,
        discipline: config.scheduler.device,
    })
}
