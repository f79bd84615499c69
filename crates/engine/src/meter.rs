//! How much a command may do where it runs.
//!
//! Work is counted in **steps**: a key or a record that is looked at or written is one, 4 KiB that
//! are copied are one, a read that may wait for the device is [`DEVICE_STEPS`]. Steps are counted,
//! not timed, so that the same command stops at the same site on every machine.
//!
//! * In a turn of a core a command may take [`TURN_STEPS`]: others wait for that core. Beyond, it
//!   stops with [`Stop::Disk`] and runs again on a handler.
//! * On a handler it may take [`HANDLER_STEPS`]: its permit is the next one's. Beyond, it stops
//!   with [`Stop::Large`] and runs again on a thread of its own.
//! * There it may take as many as it needs, in pieces: every [`STRIDE`] steps it lets others have
//!   the processor, and asks whether it may go on.

use crate::Stop;

/// Steps of a command in a turn of a core: half a millisecond, were each a record in memory.
pub const TURN_STEPS: u64 = 512;
/// Steps of a command on a handler: some 10 ms, were each a part of a read from the disk.
pub const HANDLER_STEPS: u64 = 1_024;
/// Steps between two pauses of a command that others are to get in between.
const STRIDE: u64 = 256;
/// A read that may wait for the device takes some 100 us, as long as so many records in memory.
pub(crate) const DEVICE_STEPS: u64 = 8;
/// Bytes that are copied or looked through in about the time of a step.
const BYTES_PER_STEP: usize = 4 << 10;

/// Says whether anybody still waits for a command, perhaps after a wait.
pub type GoOn = Box<dyn FnMut() -> bool + Send>;

/// Where a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// In a turn of a core.
    Turn,
    /// On a handler.
    Handler,
    /// On a thread of its own.
    Apart,
}

/// Counts the steps of one command.
pub(crate) struct Meter {
    site: Site,
    steps: u64,
    /// Steps at which it is looked what becomes of the command.
    look_at: u64,
    go_on: Option<GoOn>,
}

impl Meter {
    pub(crate) fn new(site: Site) -> Meter {
        let look_at = match site {
            Site::Turn => TURN_STEPS + 1,
            Site::Handler | Site::Apart => STRIDE,
        };
        let (steps, go_on) = (0, None);
        Meter {
            site,
            steps,
            look_at,
            go_on,
        }
    }

    /// Where the command runs.
    pub(crate) fn site(&self) -> Site {
        self.site
    }

    /// Steps so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Asks `go_on` at each pause from now on.
    pub(crate) fn ask(&mut self, go_on: Option<GoOn>) {
        self.go_on = go_on;
    }

    /// Counts `steps` more.
    #[inline]
    pub(crate) fn count(&mut self, steps: u64) -> Result<(), Stop> {
        let after = self.steps.saturating_add(steps);
        if after >= self.look_at {
            return self.look(after);
        }
        self.steps = after;
        Ok(())
    }

    /// As [`Meter::count`] would stop the command, but counts nothing.
    pub(crate) fn foresee(&self, steps: u64) -> Result<(), Stop> {
        let after = self.steps.saturating_add(steps);
        match self.site {
            Site::Turn if after > TURN_STEPS => Err(Stop::Disk),
            Site::Handler if after > HANDLER_STEPS => Err(Stop::Large),
            _ => Ok(()),
        }
    }

    /// Counts so many bytes that are copied or looked through.
    #[inline]
    pub(crate) fn copied(&mut self, bytes: usize) -> Result<(), Stop> {
        match bytes / BYTES_PER_STEP {
            0 => Ok(()),
            steps => self.count(steps as u64),
        }
    }

    /// What becomes of the command at this many steps. Those that it may not take are not counted.
    #[cold]
    fn look(&mut self, steps: u64) -> Result<(), Stop> {
        match self.site {
            Site::Turn => return Err(Stop::Disk),
            Site::Handler if steps > HANDLER_STEPS => return Err(Stop::Large),
            Site::Handler | Site::Apart => self.steps = steps,
        }
        self.look_at = self.steps + STRIDE;
        self.pause()
    }

    /// Lets others have the processor, and asks whether the command may go on.
    pub(crate) fn pause(&mut self) -> Result<(), Stop> {
        threads::turns::step();
        match self.go_on.as_mut().is_none_or(|go_on| go_on()) {
            true => Ok(()),
            false => Err(crate::EngineError::Abandoned.into()),
        }
    }
}

/// A placeholder while the real one is lent: counts nothing that matters.
impl Default for Meter {
    fn default() -> Self {
        Meter::new(Site::Apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::Arc;

    fn steps_until_it_stops(site: Site) -> (u64, Option<Stop>) {
        let mut meter = Meter::new(site);
        for _ in 0..100_000 {
            if let Err(stop) = meter.count(1) {
                return (meter.steps(), Some(stop));
            }
        }
        (meter.steps(), None)
    }

    #[test]
    fn a_command_stops_where_its_place_ends() {
        assert!(
            matches!(steps_until_it_stops(Site::Turn), (steps, Some(Stop::Disk)) if steps == TURN_STEPS)
        );
        assert!(
            matches!(steps_until_it_stops(Site::Handler), (steps, Some(Stop::Large)) if steps <= HANDLER_STEPS + STRIDE)
        );
        assert!(matches!(steps_until_it_stops(Site::Apart), (100_000, None)));
    }

    #[test]
    fn one_count_of_very_much_stops_at_once() {
        let much = (TURN_STEPS as usize + 1) * BYTES_PER_STEP;
        assert!(matches!(
            Meter::new(Site::Turn).copied(much),
            Err(Stop::Disk)
        ));
        assert!(Meter::new(Site::Turn).copied(BYTES_PER_STEP - 1).is_ok());
        assert!(matches!(
            Meter::new(Site::Handler).count(u64::MAX / 2),
            Err(Stop::Large)
        ));
    }

    #[test]
    fn a_command_apart_asks_at_every_pause_and_ends_when_nobody_waits() {
        let asked = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&asked);
        let mut meter = Meter::new(Site::Apart);
        meter.ask(Some(Box::new(move || {
            seen.fetch_add(1, Ordering::Relaxed) < 9
        })));
        let ended = (0..100 * STRIDE).find_map(|_| meter.count(1).err());
        assert!(matches!(
            ended,
            Some(Stop::Error(crate::EngineError::Abandoned))
        ));
        assert_eq!(asked.load(Ordering::Relaxed), 10);
        assert!(meter.steps() <= 11 * STRIDE);
    }
}
