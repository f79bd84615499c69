//! Time, as something to be asked. The real clock is built in the binary; tests set theirs by hand.

use policy::Nanos;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Something that knows the time.
pub trait Clock {
    /// Nanoseconds since an epoch of the clock's choice; never less than it said before.
    fn now(&self) -> Nanos;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Nanos {
        (**self).now()
    }
}

/// A clock that stands still until told otherwise. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn new(now: Nanos) -> Self {
        ManualClock(Arc::new(AtomicU64::new(now)))
    }

    /// Lets `ns` nanoseconds pass.
    pub fn advance(&self, ns: Nanos) {
        self.0.fetch_add(ns, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Nanos {
        self.0.load(Ordering::SeqCst)
    }
}
