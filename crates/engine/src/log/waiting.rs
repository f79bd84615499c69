//! Waiting for the log: cores by a bit, handlers asleep, connections by a waiter.

use super::Log;
use crate::{Seq, Waiter};
use std::sync::atomic::Ordering;

impl Log {
    /// `true`: decided. Else the core is among those told of the next decision. The bit is set
    /// before `decided` is read again and the committer does both the other way round, so one of
    /// the two sees the other.
    pub(crate) fn await_decision(&self, core: usize, seq: Seq) -> bool {
        if self.decided() >= seq {
            return true;
        }
        self.waiting.fetch_or(1 << (core % 64), Ordering::SeqCst);
        self.decided() >= seq
    }

    pub(crate) fn take_waiting(&self) -> u64 {
        self.waiting.swap(0, Ordering::SeqCst)
    }

    /// Blocks until `seq` is decided.
    pub(crate) fn sleep_until(&self, seq: Seq) {
        let mut state = self.state.lock();
        while self.decided() < seq {
            state.sleepers += 1;
            self.changed.wait(&mut state);
            state.sleepers -= 1;
        }
    }

    /// Queues `waiter` for room; `false`: there is some.
    pub(crate) fn wait_room(&self, waiter: Waiter) -> bool {
        let mut state = self.state.lock();
        let full = self.full() && state.failure.is_none();
        if full {
            state.room.push(waiter);
        }
        full
    }

    /// Waits until no committer is on this log and becomes the one. Blocks; ends because
    /// REQUIRES: [`Log::refuse`] was called.
    pub(crate) fn seize(&self) {
        let mut state = self.state.lock();
        while state.busy {
            state.sleepers += 1;
            self.changed.wait(&mut state);
            state.sleepers -= 1;
        }
        state.busy = true;
    }

    /// Waits until the last committer has left; `false`: there is more to write, or writing fails.
    pub(crate) fn sleep_until_quiet(&self) -> bool {
        let mut state = self.state.lock();
        while state.busy && state.queue.is_empty() && state.failure.is_none() {
            state.sleepers += 1;
            self.changed.wait(&mut state);
            state.sleepers -= 1;
        }
        !state.busy && state.queue.is_empty() && state.failure.is_none()
    }
}
