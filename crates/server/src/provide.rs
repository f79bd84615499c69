//! Provides what was promised of the device, once a second, and checks promises before they are
//! made. A disk that was not measured yet is measured first.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use policy::profile::UNIT_BYTES;
use policy::supply::{Short, Supply};
use settings::tenant::Settings;
use telemetry::Class;

use crate::device::{Device, Measure, Processors, Served, Unmeasured};
use crate::shared::Shared;
use crate::tenants::{RegistryError, Tenant};

/// Between two steps (thesis 6.3.1: once a second).
const INTERVAL: Duration = Duration::from_secs(1);

/// After this long the disk is measured again if it could not be, and after that no more until the
/// next start: a machine that is too busy for a second, or a disk that is full for an hour, has
/// another try; one that always is, is not held up for ever.
const AGAIN: [Duration; 3] = [
    Duration::from_secs(60),
    Duration::from_secs(600),
    Duration::from_secs(3_600),
];

/// The thread that provides, and what ends it when it is dropped.
pub struct Provider {
    thread: JoinHandle<()>,
    end: Sender<()>,
    /// Ends a measurement.
    stop: Arc<AtomicBool>,
}

impl Provider {
    /// Starts it, where there is a device stage to provide for, or may be one.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(shared: &Arc<Shared>) -> io::Result<Option<Provider>> {
        if !shared.options.disk.hooked() {
            return Ok(None);
        }
        let (end, ended) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(shared), Arc::clone(&stop));
        let thread = thread::Builder::new().name("provide".into());
        let thread = thread.spawn(move || {
            let _whole = threads::Whole;
            if let Some(measure) = shared.options.disk.take_measure() {
                shared.measure_the_disk(measure, &stopped, &ended);
            }
            run(&shared, &ended);
        })?;
        Ok(Some(Provider { thread, end, stop }))
    }

    /// Ends it.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.end);
        // A panic would have ended the process.
        let _ = self.thread.join();
    }
}

fn run(shared: &Shared, ended: &Receiver<()>) {
    while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if let Some(device) = shared.options.disk.stage() {
            shared.provide(device);
        }
    }
}

impl Shared {
    /// Has the disk measured, as often as it takes, and lets I/O go through the stage from then on.
    fn measure_the_disk(&self, mut measure: Measure, stop: &Arc<AtomicBool>, ended: &Receiver<()>) {
        for again in AGAIN.map(Some).into_iter().chain([None]) {
            let (why, again) = match in_background(&mut measure, stop) {
                Ok(stage) => return self.schedule_the_disk(stage),
                Err(Unmeasured::Stopped) => return,
                Err(Unmeasured::Never(why)) => (why, None),
                Err(Unmeasured::NotNow(why)) => (why, again),
            };
            let next = match again {
                Some(after) => format!("it is tried again in {} min", after.as_secs() / 60),
                None => "it is not tried again until the next start".to_string(),
            };
            let why = format!(
                "the disk is not scheduled, and a tenant's writes can slow everybody's reads: {why}; {next}"
            );
            tracing::warn!("{why}");
            self.options.disk.stays_unscheduled(why);
            let Some(after) = again else { return };
            if ended.recv_timeout(after) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    fn schedule_the_disk(&self, stage: Arc<Device>) {
        let options = stage.options();
        let (floor_per_s, depth) = (options.supply.sweep.floor_per_s(), options.depth);
        self.options.disk.schedule(stage);
        // Only now, when it is there: tenants that are listed after this look will find it
        // themselves.
        self.promise_the_device();
        tracing::info!(
            floor_per_s,
            depth,
            "the disk is measured: I/O is scheduled from now on"
        );
    }

    /// Tells the device stage of every tenant, also of those whose database is not open yet, and
    /// says if what they were promised is more than there is. A configuration is not refused for
    /// that: what requests cost is not known yet.
    pub(crate) fn promise_the_device(&self) {
        let Some(device) = self.options.disk.stage() else {
            return;
        };
        for tenant in self.tenants.list() {
            let _ = self.device_hook(&tenant);
        }
        let demand = device.would_take(None, [0.0; 2]);
        let supply = &device.options().supply;
        if let Some(short) = supply.short(&demand) {
            let over = over(&short, supply);
            tracing::warn!("{over}, at the prices known now (requests that were never seen are taken to be of 1 KiB); what does not fit is scaled down evenly");
        }
    }

    /// Ends an interval: what each tenant did in it, told to the device stage.
    pub(crate) fn provide(&self, device: &Device) {
        let served = |tenant: &Arc<crate::tenants::Tenant>| {
            let answered = |class| self.metrics.answered(&tenant.name, class);
            let keyspace = tenant.keyspace();
            // Asking a database costs more than a counter, and only what is promised depends on it.
            let reserved = tenant.settings().promise().requests_per_s() > 0.0;
            let pressing = keyspace.as_ref().filter(|_| reserved);
            let served = Served {
                get: answered(Class::Get),
                put: answered(Class::Put),
                write_pressure: pressing
                    .map(|keyspace| keyspace.write_pressure())
                    .unwrap_or_default(),
                written_bytes: keyspace
                    .map(|keyspace| keyspace.written_bytes())
                    .unwrap_or_default(),
            };
            (self.options.disk.number(&tenant.name), served)
        };
        let tenants = self.tenants.list();
        let served: Vec<_> = tenants.iter().map(served).collect();
        let processors = Processors {
            used_ns: threads::process_cpu_ns(),
            charged_ns: self.metrics.usage().cpu_ns,
        };
        device.provide(&served, processors);
        for tenant in &tenants {
            self.promise_writes(device, tenant);
        }
    }

    /// Refuses a reservation that the device or the processors could not keep beside the others, at
    /// the prices known now; where overbooking is wanted, says so only.
    pub(crate) fn fits_the_device(
        &self,
        name: &str,
        settings: &Settings,
    ) -> Result<(), RegistryError> {
        let Some(device) = self.options.disk.stage() else {
            return Ok(());
        };
        let promise = settings.promise();
        if promise.requests_per_s() == 0.0 {
            return Ok(());
        }
        let number = self.options.disk.number(name);
        let demand = device.would_take(Some(number), promise.reserved_per_s);
        // What is promised already stays promised, and may be lowered, whatever requests have come
        // to cost.
        if demand.within(&device.would_take(None, [0.0; 2])) {
            return Ok(());
        }
        let options = device.options();
        let Some(short) = options.supply.short(&demand) else {
            return Ok(());
        };
        let over = over(&short, &options.supply);
        if options.overbook {
            tracing::warn!(tenant = name, "{over}; all are scaled down evenly");
            return Ok(());
        }
        let known_well = match short {
            Short::Processors { .. } => ", or give the server more processors",
            Short::Device { .. } if options.brief => {
                ", or have `entremet calibrate` measure the device, which was measured briefly"
            }
            Short::Device { .. } => "",
        };
        Err(RegistryError::Infeasible(format!(
            "{over}; reserve less, or set device.overbook{known_well}"
        )))
    }

    /// A writer that its database would stall pauses, but not below the puts that the device was
    /// just told to provide for.
    fn promise_writes(&self, device: &Device, tenant: &Tenant) {
        let Some(keyspace) = tenant.keyspace() else {
            return;
        };
        let number = self.options.disk.number(&tenant.name);
        let promised = device.promised(number).provisioned;
        // Not of the whole: it may have more for a debt, which is worked off by writing no more.
        let (wanted, allocated) = (promised.wanted.foreground, promised.allocated.foreground);
        let provided = if wanted > 0.0 {
            allocated / wanted
        } else {
            0.0
        };
        let puts_per_s = tenant.settings().reserve_put_per_s.unwrap_or_default();
        keyspace.promise_writes((puts_per_s * provided * UNIT_BYTES) as u64);
    }
}

/// Measures on a thread of its own, whose threads step back for the cores. A thread that has
/// stepped back may not be allowed to the front again.
fn in_background(measure: &mut Measure, stop: &Arc<AtomicBool>) -> Result<Arc<Device>, Unmeasured> {
    let measured = thread::scope(|scope| {
        let thread = thread::Builder::new().name("measure".into());
        let measuring = thread.spawn_scoped(scope, || {
            let _whole = threads::Whole;
            // At the end of the line it would measure the processor: what else there is to do, and
            // not the disk.
            threads::Duty::Commit.begin();
            measure(stop)
        })?;
        // A panic would have ended the process.
        Ok(measuring.join().unwrap_or(Err(Unmeasured::Stopped)))
    });
    measured.unwrap_or_else(|error: io::Error| Err(Unmeasured::NotNow(error.to_string())))
}

/// What is wrong with reservations for which there is too little.
fn over(short: &Short, supply: &Supply) -> String {
    match *short {
        Short::Device {
            needed_per_s,
            promisable_per_s,
        } => {
            let of = if promisable_per_s > supply.sweep.floor_per_s() {
                "may be promised of the device to such a mix of reads and writes:"
            } else {
                "the device's floor of"
            };
            format!(
                "reservations of all tenants would need {needed_per_s:.0} VOP/s, {:.0} more than {of} {promisable_per_s:.0}",
                needed_per_s - promisable_per_s
            )
        }
        Short::Processors { needed, promisable } => format!(
            "reservations of all tenants would need {needed:.2} processors, {:.2} more than may be promised of {}: {promisable:.2}",
            needed - promisable,
            supply.processors
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{tests::options, Disk};
    use crate::shared::tests::shared;
    use policy::cost::device::Sweep;
    use std::sync::Mutex;

    /// What a server with two tenants makes of these results, one after the other, if nobody waits
    /// for a second try.
    fn measured(results: Vec<Result<(), Unmeasured>>) -> (Shared, usize) {
        let directory = tempfile::tempdir().expect("a folder");
        let mut shared = shared(directory.path(), &["web", "batch"]);
        let clock = Arc::clone(&shared.options.clock);
        let (tries, left) = (Arc::new(Mutex::new(0)), Mutex::new(results.into_iter()));
        let counted = Arc::clone(&tries);
        shared.options.disk = Disk::to_be_measured(Box::new(move |_| {
            *counted.lock().expect("alone") += 1;
            let result = left.lock().expect("alone").next().expect("one more");
            result.map(|()| Device::new(options(), Arc::clone(&clock), None))
        }));
        let (end, ended) = channel();
        drop(end);
        let measure = shared.options.disk.take_measure().expect("to be measured");
        shared.measure_the_disk(measure, &Arc::default(), &ended);
        shared.engine.shutdown();
        let tries = *tries.lock().expect("alone");
        (shared, tries)
    }

    #[test]
    fn all_tenants_are_scheduled_when_the_disk_was_measured() {
        let (shared, tries) = measured(vec![Ok(())]);
        let disk = &shared.options.disk;
        let device = disk.stage().expect("a stage");
        for name in ["web", "batch"] {
            assert!(device.observe(disk.number(name)).is_some(), "{name}");
        }
        assert_eq!((disk.doubt(), tries), (None, 1));
        let promise = |spec: &mut crate::tenants::TenantSpec| {
            spec.settings.reserve_get_per_s = Some(1e5);
            Ok(())
        };
        let refused = shared.change_tenant("web", promise).expect_err("too much");
        let refused = refused.to_string();
        assert!(refused.contains("which was measured briefly"), "{refused}");
    }

    #[test]
    fn why_a_disk_is_not_scheduled_is_kept() {
        for (why, next) in [
            (
                Unmeasured::NotNow("it is full".into()),
                "tried again in 1 min",
            ),
            (
                Unmeasured::Never("it is memory".into()),
                "until the next start",
            ),
        ] {
            let (shared, tries) = measured(vec![Err(why)]);
            let doubt = shared.options.disk.doubt().expect("a doubt");
            assert!(doubt.contains(next) && doubt.contains("it is "), "{doubt}");
            assert!(shared.options.disk.stage().is_none() && tries == 1);
        }
        let (shared, _) = measured(vec![Err(Unmeasured::Stopped)]);
        let doubt = shared.options.disk.doubt().expect("a doubt");
        assert!(
            doubt.contains("being measured"),
            "nobody will ask again: {doubt}"
        );
    }

    #[test]
    fn what_does_not_fit_is_said_with_its_size() {
        let supply = Supply {
            sweep: Sweep::floor(18e3),
            processors: 2.0,
        };
        let device = |promisable_per_s| Short::Device {
            needed_per_s: 20_500.0,
            promisable_per_s,
        };
        let said = over(&device(18e3), &supply);
        let wanted = "20500 VOP/s, 2500 more than the device's floor of 18000";
        assert!(said.ends_with(wanted), "{said}");
        let said = over(&device(20e3), &supply);
        let wanted =
            "500 more than may be promised of the device to such a mix of reads and writes: 20000";
        assert!(said.ends_with(wanted), "{said}");
        let processors = Short::Processors {
            needed: 2.0,
            promisable: 1.8,
        };
        let said = over(&processors, &supply);
        let wanted = "2.00 processors, 0.20 more than may be promised of 2: 1.80";
        assert!(said.ends_with(wanted), "{said}");
    }
}
