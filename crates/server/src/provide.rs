//! What was promised of the device: provided for once a second, and checked before it is promised.

use std::io;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use policy::profile::UNIT_BYTES;
use settings::tenant::Settings;
use telemetry::Class;

use crate::device::{Device, Served};
use crate::shared::Shared;
use crate::tenants::{RegistryError, Tenant};

/// Between two steps (thesis 6.3.1: once a second).
const INTERVAL: Duration = Duration::from_secs(1);

/// The thread that provides, and what ends it when it is dropped.
pub struct Provider {
    thread: JoinHandle<()>,
    end: Sender<()>,
}

impl Provider {
    /// Starts it, where there is a device stage to provide for.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(shared: &Arc<Shared>) -> io::Result<Option<Provider>> {
        if shared.options.device.is_none() {
            return Ok(None);
        }
        let (end, ended) = channel();
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name("provide".into());
        let thread = thread.spawn(move || {
            let _whole = threads::Whole;
            run(&shared, &ended);
        })?;
        Ok(Some(Provider { thread, end }))
    }

    /// Ends it.
    pub fn stop(self) {
        drop(self.end);
        // A panic would have ended the process.
        let _ = self.thread.join();
    }
}

fn run(shared: &Shared, ended: &Receiver<()>) {
    while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if let Some(device) = &shared.options.device {
            shared.provide(device);
        }
    }
}

impl Shared {
    /// Tells the device stage of every tenant, also of those whose database is not open yet, and says if what they were
    /// promised is more than there is. A configuration is not refused for that: what requests cost is not known yet.
    pub(crate) fn promise_the_device(&self) {
        let Some(device) = &self.options.device else {
            return;
        };
        for tenant in self.tenants.list() {
            let _ = self.device_hook(&tenant);
        }
        let wanted = device.would_want_per_s(None, [0.0; 2]);
        if let Some(over) = over(wanted, device.options().floor_per_s) {
            tracing::warn!("{over}, at the prices known now (requests that were never seen are taken to be of 1 KiB); what does not fit is scaled down evenly");
        }
    }

    /// Ends an interval: what each tenant did in it, told to the device stage.
    pub(crate) fn provide(&self, device: &Device) {
        let served = |tenant: &Arc<crate::tenants::Tenant>| {
            let answered = |class| self.metrics.answered(&tenant.name, class);
            let served = Served {
                get: answered(Class::Get),
                put: answered(Class::Put),
                written_bytes: tenant
                    .keyspace()
                    .map(|keyspace| keyspace.written_bytes())
                    .unwrap_or_default(),
            };
            (device.number(&tenant.name), served)
        };
        let tenants = self.tenants.list();
        let served: Vec<_> = tenants.iter().map(served).collect();
        device.provide(&served);
        for tenant in &tenants {
            promise_writes(device, tenant);
        }
    }

    /// Refuses a reservation that the device could not keep beside the others, at the prices known now; where
    /// overbooking is wanted, says so only.
    pub(crate) fn fits_the_device(
        &self,
        name: &str,
        settings: &Settings,
    ) -> Result<(), RegistryError> {
        let Some(device) = &self.options.device else {
            return Ok(());
        };
        let promise = settings.promise();
        if promise.requests_per_s() == 0.0 {
            return Ok(());
        }
        let wanted = device.would_want_per_s(Some(device.number(name)), promise.reserved_per_s);
        // What is promised already stays promised, and may be lowered, whatever requests have come to cost.
        if wanted <= device.would_want_per_s(None, [0.0; 2]) {
            return Ok(());
        }
        let options = device.options();
        let Some(over) = over(wanted, options.floor_per_s) else {
            return Ok(());
        };
        if options.overbook {
            tracing::warn!(tenant = name, "{over}; all get evenly less");
            return Ok(());
        }
        Err(RegistryError::Infeasible(format!(
            "{over}; reserve less, or set device.overbook"
        )))
    }
}

/// A writer that its database would stall pauses, but not below the puts that the device was just told to provide for.
fn promise_writes(device: &Device, tenant: &Tenant) {
    let Some(keyspace) = tenant.keyspace() else {
        return;
    };
    let promised = device.promised(device.number(&tenant.name)).provisioned;
    let (wanted, allocated) = (promised.wanted.total(), promised.allocated.total());
    let provided = if wanted > 0.0 {
        allocated / wanted
    } else {
        0.0
    };
    let puts_per_s = tenant.settings().reserve_put_per_s.unwrap_or_default();
    keyspace.promise_writes((puts_per_s * provided * UNIT_BYTES) as u64);
}

/// What is wrong with reservations that need so many VOPs a second; `None`: nothing.
fn over(wanted_per_s: f64, floor_per_s: f64) -> Option<String> {
    (wanted_per_s > floor_per_s).then(|| {
        format!(
            "reservations of all tenants would need {wanted_per_s:.0} VOP/s, {:.0} more than the device's floor of {floor_per_s:.0}",
            wanted_per_s - floor_per_s
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_said_with_its_size() {
        assert_eq!(over(18e3, 18e3), None);
        let text = over(20_500.0, 18e3).expect("too much");
        assert!(text.contains("20500 VOP/s, 2500 more"), "{text}");
    }
}
