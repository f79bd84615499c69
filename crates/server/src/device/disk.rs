//! What the databases lie on: a disk with a stage before it, a disk without one, or a disk that
//! gets its stage once it has been measured.

use super::Device;
use engine::device::{DeviceHook, DeviceIo, DeviceStage, Ended, Fault};
use parking_lot::{Mutex, RwLock};
use policy::Nanos;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// Why a measurement did not give a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmeasured {
    /// The server ends.
    Stopped,
    /// It may well be another time; why it was not this time.
    NotNow(String),
    /// This disk cannot be measured, and why.
    Never(String),
}

/// Measures the disk and makes the stage for it, on the calling thread, for seconds; ends soon
/// after the flag is set.
pub type Measure = Box<dyn FnMut(&Arc<AtomicBool>) -> Result<Arc<Device>, Unmeasured> + Send>;

/// I/O that began before there was a stage, and so ends without one.
const UNSEEN: u64 = u64::MAX;

/// What the databases lie on. Where a stage is to come, it is their hook from the start: databases
/// that are open go on, and their next I/O is the stage's.
pub struct Disk {
    stage: OnceLock<Arc<Device>>,
    /// Why I/O is not scheduled, as long as there is no stage.
    unscheduled: RwLock<String>,
    /// What makes the stage.
    measure: Mutex<Option<Measure>>,
    /// Whether there is a stage, or may be one.
    hooked: bool,
    /// Tenants' numbers.
    numbers: Mutex<BTreeMap<String, u32>>,
}

impl Disk {
    /// A disk with a stage before it.
    #[must_use]
    pub fn scheduled(stage: Arc<Device>) -> Arc<Disk> {
        Disk::new(Some(stage), String::new(), None)
    }

    /// A disk without a stage, and why.
    #[must_use]
    pub fn unscheduled(why: impl Into<String>) -> Arc<Disk> {
        Disk::new(None, why.into(), None)
    }

    /// A disk that `measure` makes a stage for, once the server runs.
    #[must_use]
    pub fn to_be_measured(measure: Measure) -> Arc<Disk> {
        let why = "the disk is not scheduled yet: it is being measured, which takes some seconds";
        Disk::new(None, why.into(), Some(measure))
    }

    fn new(stage: Option<Arc<Device>>, unscheduled: String, measure: Option<Measure>) -> Arc<Disk> {
        Arc::new(Disk {
            hooked: stage.is_some() || measure.is_some(),
            stage: stage.map(OnceLock::from).unwrap_or_default(),
            unscheduled: RwLock::new(unscheduled),
            measure: Mutex::new(measure),
            numbers: Mutex::default(),
        })
    }

    /// The stage, if there is one by now.
    pub fn stage(&self) -> Option<&Arc<Device>> {
        self.stage.get()
    }

    /// A tenant's number, the same for the same name: its database may stay open while it is
    /// removed and added again.
    #[must_use]
    pub fn number(&self, tenant: &str) -> u32 {
        let mut numbers = self.numbers.lock();
        let next = numbers.len() as u32;
        *numbers.entry(tenant.to_owned()).or_insert(next)
    }

    /// What a tenant's database is opened with.
    pub(crate) fn hook(self: &Arc<Self>, tenant: &str) -> Option<DeviceHook> {
        self.hooked.then(|| DeviceHook {
            stage: Arc::clone(self) as Arc<dyn DeviceStage>,
            principal: self.number(tenant),
        })
    }

    /// Behind whom somebody waited for a drive from `from` to `until`: tenants, and ns.
    pub(crate) fn behind(&self, drive: usize, from: Nanos, until: Nanos) -> Vec<(String, Nanos)> {
        let Some(stage) = self.stage() else {
            return Vec::new();
        };
        let numbers = self.numbers.lock();
        let name = |number: u32| numbers.iter().find(|(_, known)| **known == number);
        let behind = stage.behind(drive, from, until).into_iter();
        let named = behind.filter_map(|(number, background, ns)| {
            let (name, _) = name(number)?;
            let whom = match background {
                true => format!("{name} (background)"),
                false => name.clone(),
            };
            Some((whom, ns))
        });
        named.collect()
    }

    /// Why the disk is not scheduled, or may be at wrong prices; none: all is well.
    pub(crate) fn doubt(&self) -> Option<String> {
        match self.stage() {
            Some(stage) => stage.options().doubt.clone(),
            None => Some(self.unscheduled.read().clone()),
        }
    }

    pub(crate) fn hooked(&self) -> bool {
        self.hooked
    }

    /// What makes the stage, for whoever does so.
    pub(crate) fn take_measure(&self) -> Option<Measure> {
        self.measure.lock().take()
    }

    pub(crate) fn stays_unscheduled(&self, why: String) {
        *self.unscheduled.write() = why;
    }

    /// From now on there is a stage.
    pub(crate) fn schedule(&self, stage: Arc<Device>) {
        let _ = self.stage.set(stage);
    }
}

impl DeviceStage for Disk {
    fn begin(&self, io: &DeviceIo) -> u64 {
        self.stage().map_or(UNSEEN, |stage| stage.begin(io))
    }

    fn fault(&self, io: &DeviceIo) -> Option<Fault> {
        self.stage()?.fault(io)
    }

    fn end(&self, io: &DeviceIo, token: u64, ended: Ended) {
        if let Some(stage) = self.stage().filter(|_| token != UNSEEN) {
            stage.end(io, token, ended);
        }
    }

    fn chunk_bytes(&self) -> u64 {
        self.stage().map_or(u64::MAX, |stage| stage.chunk_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::{options, read};
    use stage::{Clock, ManualClock};

    #[test]
    fn an_io_that_began_without_a_stage_ends_without_it() {
        let disk = Disk::to_be_measured(Box::new(|_| Err(Unmeasured::Stopped)));
        assert!(disk
            .doubt()
            .is_some_and(|why| why.contains("being measured")));
        let hook = disk.hook("web").expect("its stage is to come");
        assert_eq!(hook.principal, disk.number("web"));
        let io = read(hook.principal);
        let ended = Ended {
            bytes: io.bytes,
            ok: true,
        };
        let before = hook.stage.begin(&io);
        let clock: Arc<dyn Clock + Send + Sync> = Arc::new(ManualClock::new(1));
        let stage = Device::new(options(), clock, None);
        stage.configure(hook.principal, 1.0);
        disk.schedule(Arc::clone(&stage));
        // One more begins and ends inside: the thread's are told apart by their tokens.
        let after = hook.stage.begin(&io);
        assert_eq!(stage.state().in_flight, 1);
        hook.stage.end(&io, after, ended);
        hook.stage.end(&io, before, ended);
        let used = stage.used(hook.principal).expect("a tenant");
        assert_eq!((used.total().ios, stage.state().in_flight), (1, 0));
        assert_eq!((disk.doubt(), hook.stage.chunk_bytes()), (None, 64 << 10));
    }

    #[test]
    fn without_a_stage_databases_have_no_hook() {
        let disk = Disk::unscheduled("nobody wants it");
        assert!(disk.hook("web").is_none() && disk.stage().is_none());
        assert_eq!(disk.doubt().as_deref(), Some("nobody wants it"));
    }
}
