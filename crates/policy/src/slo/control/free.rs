//! How many handlers stay free for requests with due times.
//!
//! Who has a handler keeps it until it has read all it wants: a scan for many times what a get may
//! take where the device is fast. Going first is then no use to a request that finds all handlers
//! at work for scans. So some are kept free: about as many as promised requests have at work, and
//! what chance adds to that.

use super::auto::AutoOptions;
use super::Seen;

/// What counts of an older interval when the next one is over.
const MEMORY: f64 = 0.9;

/// Handlers that are kept free of other work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    most: u32,
    /// Whether requests need what is reckoned, or one has always been enough.
    needed: bool,
    /// Beyond what is reckoned: it was not enough.
    extra: u32,
    /// Mean number of handlers at work for promised requests.
    busy: f64,
}

impl Free {
    /// Where an arm seeks, requests wait for it with a handler, and with time enough: one is kept
    /// until that is not enough.
    pub(super) fn first(options: &AutoOptions) -> Self {
        Free {
            most: options.handlers / 2,
            needed: !options.seeks,
            extra: u32::from(!options.seeks),
            busy: 0.0,
        }
    }

    /// Takes in an interval: the mean follows up at once, and down slowly.
    pub(super) fn see(&mut self, seen: &Seen) {
        let busy = seen.handled_ns as f64 / seen.elapsed_ns.max(1) as f64;
        self.busy = busy.max(busy + MEMORY * (self.busy - busy));
    }

    /// Of arrivals at random as many as `busy` are there at a time, with a spread of its root:
    /// three of these are exceeded once in a thousand times.
    pub(super) fn kept(&self) -> u32 {
        let reckoned = match self.needed {
            true => (self.busy + 3.0 * self.busy.sqrt()).ceil() as u32,
            false => 0,
        };
        reckoned
            .saturating_add(self.extra)
            .saturating_add(1)
            .min(self.most)
    }

    /// Whether more could be kept.
    pub(super) fn may_grow(&self) -> bool {
        self.kept() < self.most
    }

    /// It was not enough: tells whether there are more now.
    pub(super) fn more(&mut self) -> bool {
        let before = self.kept();
        match self.needed {
            true => self.extra = self.extra.saturating_add(1).min(self.most),
            false => self.needed = true,
        }
        self.kept() > before
    }
}
