//! How the commands of a transaction end.

use commands::Spec;
use policy::Nanos;
use stage::Clock;

use crate::tenants::{CommandStats, Ending};

/// How one command ended.
struct Ended {
    spec: &'static Spec,
    ending: Ending,
    took: Nanos,
}

/// Notes how the commands of a transaction end, while it runs.
pub struct Trace<'c> {
    clock: &'c (dyn Clock + Send + Sync),
    ended: Vec<Ended>,
}

impl<'c> Trace<'c> {
    /// Nothing has ended yet.
    pub fn new(clock: &'c (dyn Clock + Send + Sync)) -> Self {
        let ended = Vec::new();
        Self { clock, ended }
    }

    /// The transaction begins again.
    pub fn restart(&mut self) {
        self.ended.clear();
    }

    /// Now.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// A command that began then has ended.
    pub fn note(&mut self, spec: &'static Spec, ending: Ending, began: Nanos) {
        let took = self.now() - began;
        self.ended.push(Ended { spec, ending, took });
    }

    /// Counts what has ended, on this core's account; returns how many ended with an error.
    pub fn count(self, calls: &CommandStats, core: usize) -> u32 {
        let mut failed = 0;
        for step in self.ended {
            failed += u32::from(step.ending.is_error());
            calls.count(core, Some(step.spec), &step.ending, step.took);
        }
        failed
    }
}
