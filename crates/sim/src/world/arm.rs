//! A modelled disk whose time may pass more slowly for a while.

use policy::device::{Device, Event, Io, Model};
use policy::Nanos;

/// One disk.
#[derive(Debug)]
pub(super) struct Arm {
    device: Device,
    time: Time,
    /// When it is looked at again, if at all.
    pub(super) look_at: Nanos,
    /// Where its log goes on.
    pub(super) log_at: u64,
}

impl Arm {
    pub(super) fn new(model: &Model, seed: u64) -> Self {
        Self {
            device: Device::new(model, seed),
            time: Time::default(),
            look_at: Nanos::MAX,
            log_at: 0,
        }
    }

    pub(super) fn submit(&mut self, now: Nanos, tag: u64, io: Io) {
        self.device.submit(self.time.of_disk(now), tag, io);
    }

    /// As [`Device::next`].
    pub(super) fn next(&mut self, now: Nanos) -> Event {
        match self.device.next(self.time.of_disk(now)) {
            // Rounded to the future, or it would be asked again at once.
            Event::At(at) => Event::At(self.time.of_all(at).max(now + 1)),
            event => event,
        }
    }

    /// All that it does takes so many times as long from now on, also what it has begun.
    pub(super) fn slow(&mut self, now: Nanos, times: f64) {
        self.time = Time {
            since: (now, self.time.of_disk(now)),
            times,
        };
        self.look_at = Nanos::MAX;
    }
}

/// A disk's own time.
#[derive(Debug)]
struct Time {
    /// A moment, in everybody's time and in the disk's.
    since: (Nanos, Nanos),
    /// How long a second of the disk takes since then.
    times: f64,
}

impl Default for Time {
    fn default() -> Self {
        Self {
            since: (0, 0),
            times: 1.0,
        }
    }
}

impl Time {
    fn of_disk(&self, now: Nanos) -> Nanos {
        let (all, disk) = self.since;
        disk + ((now - all) as f64 / self.times) as Nanos
    }

    fn of_all(&self, at: Nanos) -> Nanos {
        let (all, disk) = self.since;
        all + (at.saturating_sub(disk) as f64 * self.times).ceil() as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::cost::device::Op;
    use policy::device::HddParameters;

    /// When an I/O is done that is asked for at once, if the disk is slow from then until then.
    fn done_at(slow: Option<(Nanos, Nanos)>) -> Nanos {
        let mut arm = Arm::new(&Model::Hdd(HddParameters::default()), 1);
        let io = Io {
            op: Op::Read,
            offset: 1 << 30,
            bytes: 1 << 20,
        };
        arm.submit(0, 7, io);
        let mut changes = slow.map_or(vec![], |(from, until)| vec![(from, 10.0), (until, 1.0)]);
        let mut now = 0;
        loop {
            let at = match arm.next(now) {
                Event::Done { tag, .. } => {
                    assert_eq!(tag, 7);
                    return now;
                }
                Event::At(at) => at,
                Event::Idle => panic!("it has an I/O"),
            };
            match changes.first() {
                Some((change_at, times)) if *change_at < at => {
                    arm.slow(*change_at, *times);
                    now = *change_at;
                    changes.remove(0);
                }
                _ => now = at,
            }
        }
    }

    #[test]
    fn a_slow_disk_takes_longer_for_what_it_has_begun_and_for_as_long_as_it_is_slow() {
        let usual = done_at(None);
        assert!(usual > 5_000_000, "an arm must move");
        let near = |at: Nanos, expected: Nanos| at.abs_diff(expected) <= 20;
        assert!(near(done_at(Some((0, Nanos::MAX - 1))), 10 * usual));
        let half = usual / 2;
        assert!(near(
            done_at(Some((half, Nanos::MAX - 1))),
            half + 10 * half
        ));
        assert!(near(done_at(Some((1_000, 1_001_000))), usual + 900_000));
    }
}
