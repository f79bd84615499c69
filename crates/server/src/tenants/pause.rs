//! `CLIENT PAUSE`: until when a tenant's commands are held back, by its own wish.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use policy::Nanos;

/// Which commands are held back until when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    until: Nanos,
    /// Those that read, too.
    all: bool,
}

/// What a tenant has paused.
#[derive(Default)]
pub struct Pause {
    /// When it ends by the cores' clock, or before: every command looks.
    until: AtomicU64,
    held: Mutex<Held>,
    /// Connections that wait for its end.
    pub waiting: AtomicU32,
}

impl Pause {
    /// Begins or extends one. As in Redis it never gets shorter, nor lets through what it held
    /// back, before its end.
    pub fn begin(&self, now: Nanos, until: Nanos, all: bool) {
        let mut held = self.held.lock();
        if held.until <= now {
            *held = Held::default();
        }
        held.until = held.until.max(until);
        held.all |= all;
        self.until.store(held.until, Ordering::Release);
    }

    /// Ends it.
    pub fn end(&self) {
        let mut held = self.held.lock();
        *held = Held::default();
        self.until.store(0, Ordering::Release);
    }

    /// Until when a command is held back, if it is; `writes`: it may change data.
    #[inline]
    pub fn holds(&self, now: Nanos, writes: bool) -> Option<Nanos> {
        if self.until.load(Ordering::Acquire) <= now {
            return None;
        }
        let held = *self.held.lock();
        (held.until > now && (held.all || writes)).then_some(held.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_extended_and_widened_and_ends() {
        let pause = Pause::default();
        assert_eq!(pause.holds(5, true), None);
        pause.begin(5, 100, false);
        assert_eq!(
            (pause.holds(6, true), pause.holds(6, false)),
            (Some(100), None)
        );
        pause.begin(7, 50, true);
        assert_eq!(pause.holds(8, false), Some(100));
        assert_eq!(pause.holds(100, true), None);
        pause.begin(100, 200, false);
        assert_eq!(pause.holds(101, false), None, "the one before it is over");
        pause.end();
        assert_eq!(pause.holds(102, true), None);
    }
}
