//! When a core has something to do again.

use policy::Nanos;

/// How often cores tell each other what was used.
pub const ROUND_NS: Nanos = 1_000_000;

/// How often a core without work looks around (idle connections, expiry).
const TICK_NS: Nanos = 1_000_000_000;

/// What a core has to do though nobody asks it.
pub struct Agenda {
    /// Nothing is runnable before this time.
    pub wake_at: Option<Nanos>,
    /// There is more mail than was read, or more to do for what was.
    pub mail_waits: bool,
    /// There are more requests to be seen that wait ([`super::unanswered`]).
    pub more_to_see: bool,
    round_ends: Nanos,
    tick_at: Nanos,
}

impl Agenda {
    /// A core begins.
    pub fn new(now: Nanos) -> Self {
        Self {
            wake_at: None,
            mail_waits: false,
            more_to_see: false,
            round_ends: now + ROUND_NS,
            tick_at: now + TICK_NS,
        }
    }

    /// Until when the core can sleep if nothing comes.
    pub fn sleeps_until(&self, now: Nanos) -> Nanos {
        match self.wake_at {
            _ if self.mail_waits || self.more_to_see => now,
            Some(at) => at.min(self.tick_at),
            None => self.tick_at,
        }
    }

    /// The core is not to sleep longer than to `at`.
    pub fn wake_by(&mut self, at: Nanos) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// True once at the end of each round, which begins the next.
    pub fn round_is_over(&mut self, now: Nanos) -> bool {
        let over = now >= self.round_ends;
        if over {
            self.round_ends = now + ROUND_NS;
        }
        over
    }

    /// True once a second.
    pub fn ticks(&mut self, now: Nanos) -> bool {
        let ticks = now >= self.tick_at;
        if ticks {
            self.tick_at = now + TICK_NS;
        }
        ticks
    }
}
