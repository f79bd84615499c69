//! Waking up on time: the readiness queue counts in milliseconds, which is too coarse for arrivals.

use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry};
use rustix::time::{
    timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags,
    Timespec,
};

use super::fleet::TIMER;
use crate::error::WorkloadError;

/// A timer in a readiness queue.
pub(crate) struct Timer(OwnedFd);

impl Timer {
    pub(crate) fn new(registry: &Registry) -> Result<Self, WorkloadError> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)
            .map_err(|e| WorkloadError::system("making a timer")(e.into()))?;
        registry
            .register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)
            .map_err(WorkloadError::system("watching a timer"))?;
        Ok(Self(timer))
    }

    /// Wakes the queue once after this long; `wait_ns` is above zero and below a second.
    pub(crate) fn arm(&self, wait_ns: u64) -> Result<(), WorkloadError> {
        let at = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        let spec = Itimerspec {
            it_interval: at(0),
            it_value: at(wait_ns as i64),
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &spec)
            .map(|_| ())
            .map_err(|e| WorkloadError::system("setting a timer")(e.into()))
    }
}
