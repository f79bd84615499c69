//! What a stretch of work used of the processor, when others ran in its middle.
//!
//! A turn is charged the time it took: the processor time of a thread costs a µs to read, as much
//! as a small request. But whatever else the machine ran for 3 ms in the middle of a turn would be
//! charged to its tenant, and a tenant that is due a six-hundredth of a core would wait two seconds
//! for that. So work that took suspiciously long is looked at.

use policy::Nanos;

use crate::options::ThreadTime;

/// Work that took longer is looked at: several turns' time, and a hundred readings'.
const SUSPECT_NS: Nanos = 200_000;

/// How old the reading that it is compared with may be. What is lost outside of turns meanwhile
/// would be put down to the one that is looked at.
const FRESH_NS: Nanos = 2_000_000;

/// The time of one core's thread, by two clocks.
pub struct Processor {
    used: ThreadTime,
    /// Time spent asleep since the start.
    asleep_ns: Nanos,
    /// At the last reading of the thread's time: time awake by the clock on the wall, and the
    /// reading.
    awake_ns: Nanos,
    used_ns: Nanos,
}

impl Processor {
    /// REQUIRES: called on any thread, used on one.
    pub fn new(used: ThreadTime) -> Self {
        Self {
            used,
            asleep_ns: 0,
            awake_ns: 0,
            used_ns: 0,
        }
    }

    /// The thread was asleep for this long.
    pub fn slept(&mut self, ns: Nanos) {
        self.asleep_ns += ns;
    }

    /// Between stretches of work: takes a reading if the last one is old.
    pub fn refresh(&mut self, now: Nanos) {
        if (now - self.asleep_ns).saturating_sub(self.awake_ns) > FRESH_NS {
            self.read(now);
        }
    }

    /// What work from `begin` to `end` used: its length, less the time for which others had the
    /// processor.
    pub fn used_ns(&mut self, begin: Nanos, end: Nanos) -> Nanos {
        let length = end - begin;
        if length < SUSPECT_NS {
            return length;
        }
        length.saturating_sub(self.read(end))
    }

    /// Takes a reading; returns for how long others had the processor since the last one.
    fn read(&mut self, now: Nanos) -> Nanos {
        let (awake_ns, used_ns) = (now - self.asleep_ns, (self.used)());
        let awake_since = awake_ns.saturating_sub(self.awake_ns);
        let used_since = used_ns.saturating_sub(self.used_ns);
        (self.awake_ns, self.used_ns) = (awake_ns, used_ns);
        awake_since.saturating_sub(used_since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const MS: Nanos = 1_000_000;

    thread_local!(static USED: Cell<Nanos> = const { Cell::new(0) });

    /// A thread that has used `used` of the processor when the clock says `now`.
    fn at(used: Nanos) {
        USED.set(used);
    }

    fn processor() -> Processor {
        at(0);
        Processor::new(|| USED.get())
    }

    #[test]
    fn what_others_ran_in_the_middle_of_a_turn_is_not_charged() {
        let mut processor = processor();
        at(MS);
        processor.refresh(3 * MS);
        at(MS + 40_000);
        let used = processor.used_ns(3 * MS, 7 * MS);
        assert_eq!(used, 40_000, "4 ms by the clock, 40 us by the thread's");
    }

    #[test]
    fn a_turn_that_worked_for_all_its_time_is_charged_all() {
        let mut processor = processor();
        at(3 * MS);
        processor.refresh(3 * MS);
        at(7 * MS);
        assert_eq!(processor.used_ns(3 * MS, 7 * MS), 4 * MS);
    }

    #[test]
    fn sleep_is_nobody_s() {
        let mut processor = processor();
        at(3 * MS);
        processor.refresh(3 * MS);
        processor.slept(100 * MS);
        at(4 * MS);
        assert_eq!(processor.used_ns(103 * MS, 104 * MS), MS);
    }

    #[test]
    fn a_short_turn_is_charged_its_length_without_a_look() {
        let mut processor = processor();
        assert_eq!(processor.used_ns(3 * MS, 3 * MS + 50_000), 50_000);
    }

    #[test]
    fn more_is_never_taken_off_than_the_turn_took() {
        let mut processor = processor();
        at(0);
        processor.refresh(3 * MS);
        at(0);
        assert_eq!(processor.used_ns(9 * MS, 10 * MS), 0);
    }
}
