//! The only real clocks of the program.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use stage::{Clock, Nanos};

/// Monotonic time since the process made it.
pub struct Monotonic(Instant);

impl Monotonic {
    /// A clock that starts at one second: 0 means "never" in places.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Nanos {
        1_000_000_000 + self.0.elapsed().as_nanos() as Nanos
    }
}

/// Time of day in ms since the Unix epoch; 0 while the machine's clock is set before it.
pub fn wall_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
