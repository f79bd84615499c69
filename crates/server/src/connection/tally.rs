//! What the requests under way have cost so far, and where their time went.
//!
//! Their time is one line from when they came to when their replies have left, and every stretch of
//! it goes to one part. It is cut where the core has the time at hand: when a turn begins, after
//! the last command in it, and when it ends. So telling the parts apart reads no clock.

use engine::Lookups;
use policy::slo::control::{Turn, DEVICE, HANDLERS, STAGES};
use policy::Nanos;
use smallvec::SmallVec;
use telemetry::{Class, Part, TimeParts};

use crate::device::Waits;
use crate::slo::{Line, Within};

/// Requests answered but not yet counted: their latency ends when the reply leaves.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// Their class.
    pub class: Class,
    /// How many.
    pub count: u32,
}

/// A request that its core cannot answer at once.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Its class, as it is counted.
    pub class: Class,
    /// Whether it is within the contracts of its promises.
    pub within: Within,
    /// When it must have its turn at each stage.
    pub due_at: [Option<Nanos>; STAGES],
    /// So far it has waited for its database to open, and for nothing else.
    pub opening: bool,
}

/// A wait for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Before what.
    pub line: Line,
    /// Which drive, of the device.
    pub drive: usize,
    /// From when, ns of the core's clock.
    pub from: Nanos,
    /// Until when.
    pub until: Nanos,
}

/// Waits that are kept one by one; of requests that waited more often, the first.
const WAITS: usize = 16;

/// What requests have cost until their replies leave.
#[derive(Default)]
pub struct Tally {
    /// Requests answered but not yet counted: their latency ends when the reply leaves.
    pub answered: SmallVec<[Answered; 4]>,
    /// When the oldest of them came, in ns of the core's clock; 0: none is under way.
    pub since: Nanos,
    /// Time in the request stage's queue, ns.
    pub queue_ns: Nanos,
    /// Time on a handler, ns.
    pub disk_ns: Nanos,
    /// Time on the core, ns.
    pub cpu_ns: Nanos,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Requests answered with an error.
    pub failed: u32,
    /// Keys that reads found, and did not.
    pub lookups: Lookups,
    /// Waits in the handler stage that have ended since `until`, ns.
    at_handlers_ns: Nanos,
    /// Waits at the device that have ended since `until`, ns.
    at_device_ns: Nanos,
    /// What they have waited for turns, so far.
    pub waits: SmallVec<[Wait; 2]>,
    /// Their first turn at the handlers, and at the device.
    pub turns: [Option<Turn>; STAGES],
    /// Their connection is in line by a due time that is kept to: they are within their contract.
    pub timed: bool,
    /// The request that it waits for, once it is known what that is.
    pub begun: Option<Begun>,
    /// So far the time of the requests under way has its parts; before them, the end of the last
    /// turn.
    until: Nanos,
    /// Those parts but for what they took in turns.
    parts: TimeParts,
    /// Time in turns until the replies were made, all of them together, ns.
    ran_ns: Nanos,
}

impl Tally {
    /// Requests came at `came`, and now stand in line, unless others were under way.
    pub fn begin(&mut self, came: Nanos, now: Nanos) {
        if self.since != 0 {
            return;
        }
        self.since = came.min(now);
        let free_at = self.until.clamp(self.since, now);
        (self.parts, self.ran_ns) = (TimeParts::default(), 0);
        (self.at_handlers_ns, self.at_device_ns) = (0, 0);
        self.waits.clear();
        self.turns = [None; STAGES];
        self.parts[Part::Together] = free_at - self.since;
        self.parts[Part::Arrival] = now - free_at;
        self.until = now;
    }

    /// A request of a class begins, or `opening` its database does, before it can: when it must
    /// have its turns. `settle` tells that of one that came then, and uses its contracts up; once,
    /// so that one which waited for its database keeps what it was given.
    pub fn settle(
        &mut self,
        class: Class,
        opening: bool,
        settle: impl FnOnce(Nanos) -> (Within, [Option<Nanos>; STAGES]),
    ) -> [Option<Nanos>; STAGES] {
        let before = self.begun.take();
        let opened = before.filter(|begun| begun.opening && begun.class == class);
        let (within, due_at) = match opened {
            Some(begun) => (begun.within, begun.due_at),
            None => settle(self.since),
        };
        self.begun = Some(Begun {
            class,
            within,
            due_at,
            opening,
        });
        due_at
    }

    /// What they waited for until now was nobody's here: their time begins.
    pub fn begin_now(&mut self, now: Nanos) {
        self.since = 0;
        self.begin(now, now);
    }

    /// A turn begins after a wait of `in_line_ns` in the line before `line`; until it stood there
    /// it waited for `what`.
    pub fn waited(&mut self, what: Part, line: Part, in_line_ns: Nanos, begin: Nanos) {
        let mut left = begin.saturating_sub(self.until);
        let at_handlers_ns = std::mem::take(&mut self.at_handlers_ns);
        let at_device_ns = std::mem::take(&mut self.at_device_ns);
        self.wait(Line::Core, 0, in_line_ns, begin);
        for (part, ns) in [
            (line, in_line_ns),
            (Part::Handler, at_handlers_ns),
            (Part::Device, at_device_ns),
            (what, Nanos::MAX),
        ] {
            let ns = ns.min(left);
            self.parts[part] += ns;
            left -= ns;
        }
        self.until = self.until.max(begin);
    }

    /// They had a turn in the handler stage.
    pub fn at_handler(&mut self, turn: Turn) {
        let waited_ns = turn.granted - turn.queued;
        self.at_handlers_ns += waited_ns;
        self.turns[HANDLERS].get_or_insert(turn);
        self.wait(Line::Handler, 0, waited_ns, turn.granted);
    }

    /// They waited so at the device.
    pub fn at_device(&mut self, waits: &Waits) {
        self.at_device_ns += waits.ns;
        self.turns[DEVICE] = self.turns[DEVICE].or(waits.first);
        for (drive, from, until) in &waits.spans {
            self.wait(Line::Device, *drive, until - from, *until);
        }
    }

    fn wait(&mut self, line: Line, drive: usize, ns: Nanos, until: Nanos) {
        if ns > 0 && self.waits.len() < WAITS {
            self.waits.push(Wait {
                line,
                drive,
                from: until.saturating_sub(ns),
                until,
            });
        }
    }

    /// The turn has ended, in which replies were handed over from `sent_from` on. It used `cpu_ns`
    /// of the processor.
    pub fn worked(&mut self, begin: Nanos, end: Nanos, sent_from: Option<Nanos>, cpu_ns: Nanos) {
        let sent_from = sent_from.unwrap_or(end).clamp(begin, end);
        let (ran_ns, sent_ns) = (sent_from - begin, end - sent_from);
        let lost_ns = (end - begin).saturating_sub(cpu_ns);
        let lost_running = lost_ns.min(ran_ns);
        self.ran_ns += ran_ns - lost_running;
        self.parts[Part::Processor] += lost_ns;
        self.parts[Part::Reply] += sent_ns - (lost_ns - lost_running);
        self.until = end;
    }

    /// The requests that have been answered, at the end of a turn; what comes next is counted anew.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let until = self.until;
        let next = Self {
            until,
            ..Self::default()
        };
        std::mem::replace(self, next)
    }

    /// The parts of each request's latency. A turn's work is that of all requests in it: each one's
    /// own is taken to be the same.
    pub fn parts(&self) -> TimeParts {
        let requests: u64 = (self.answered.iter()).map(|all| u64::from(all.count)).sum();
        let own_ns = self.ran_ns / requests.max(1);
        let mut parts = self.parts;
        parts[Part::Cpu] += own_ns;
        parts[Part::Together] += self.ran_ns - own_ns;
        parts
    }

    /// Counts the keys that a read looked up.
    pub fn looked_up(&mut self, keys: Lookups) {
        self.lookups.found += keys.found;
        self.lookups.missed += keys.missed;
    }

    /// Counts a request that has been answered.
    pub fn count(&mut self, class: Class) {
        match self.answered.last_mut() {
            Some(last) if last.class == class => last.count += 1,
            _ => self.answered.push(Answered { class, count: 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonzero(parts: TimeParts) -> Vec<(Part, Nanos)> {
        let all = Part::ALL.into_iter().map(|part| (part, parts[part]));
        all.filter(|(_, ns)| *ns > 0).collect()
    }

    #[test]
    fn a_write_s_time_is_cut_where_its_turns_begin_and_end() {
        let mut tally = Tally::default();
        tally.begin(100, 150);
        tally.begin(400, 500);
        tally.waited(Part::Arrival, Part::Turn, 30, 180);
        tally.worked(180, 200, None, 20);
        tally.count(Class::Put);
        // Its commit was heard of at 900; it stood in line for 40 from then on.
        tally.waited(Part::Commit, Part::Return, 40, 940);
        tally.worked(940, 955, Some(940), 15);
        assert_eq!(tally.since, 100);
        assert_eq!(
            nonzero(tally.parts()),
            [
                (Part::Arrival, 50),
                (Part::Turn, 30),
                (Part::Cpu, 20),
                (Part::Commit, 700),
                (Part::Return, 40),
                (Part::Reply, 15)
            ]
        );
        assert_eq!(tally.parts().sum(), 955 - 100, "the parts are the whole");
    }

    #[test]
    fn requests_of_one_turn_wait_for_one_another_and_those_behind_them_for_all() {
        let mut tally = Tally::default();
        tally.begin(100, 100);
        tally.waited(Part::Arrival, Part::Turn, 0, 100);
        tally.worked(100, 150, Some(140), 50);
        for _ in 0..4 {
            tally.count(Class::Get);
        }
        let parts = [(Part::Together, 30), (Part::Cpu, 10), (Part::Reply, 10)];
        assert_eq!(nonzero(tally.take().parts()), parts);
        // What was read with them, and what came while they were under way.
        tally.begin(100, 150);
        assert_eq!(nonzero(tally.parts()), [(Part::Together, 50)]);
        tally.take().since = 0;
        tally.begin(120, 170);
        let parts = [(Part::Arrival, 20), (Part::Together, 30)];
        assert_eq!(nonzero(tally.parts()), parts);
    }

    #[test]
    fn a_request_whose_database_opens_uses_its_contract_once() {
        let mut tally = Tally::default();
        tally.begin(100, 100);
        let (mut left, due_at) = (2, [Some(300), Some(400)]);
        let mut settle = |tally: &mut Tally, class, opening| {
            tally.settle(class, opening, |came| {
                assert_eq!(came, 100);
                left -= 1;
                match left {
                    0.. => (Within::from_slice(&[true]), due_at),
                    _ => (Within::from_slice(&[false]), [None; STAGES]),
                }
            })
        };
        assert_eq!(settle(&mut tally, Class::Get, true), due_at);
        // It was closed again before its turn came.
        assert_eq!(settle(&mut tally, Class::Get, true), due_at);
        assert_eq!(settle(&mut tally, Class::Get, false), due_at);
        assert!(tally.begun.as_ref().is_some_and(|begun| begun.within[0]));
        // Those behind it are others.
        assert_eq!(settle(&mut tally, Class::Get, false), due_at);
        assert_eq!(settle(&mut tally, Class::Get, false), [None; STAGES]);
        assert!(tally.begun.as_ref().is_some_and(|begun| !begun.within[0]));
    }

    #[test]
    fn a_way_to_a_handler_and_back_is_its_wait_its_work_and_its_return() {
        let mut tally = Tally::default();
        tally.begin(100, 100);
        tally.waited(Part::Arrival, Part::Turn, 0, 100);
        tally.worked(100, 110, None, 10);
        tally.at_handler(Turn {
            queued: 110,
            granted: 310,
        });
        tally.count(Class::Get);
        tally.waited(Part::Disk, Part::Return, 5, 1_000);
        tally.worked(1_000, 1_400, Some(1_390), 100);
        assert_eq!(
            nonzero(tally.parts()),
            [
                (Part::Cpu, 100),
                (Part::Processor, 300),
                (Part::Handler, 200),
                (Part::Disk, 685),
                (Part::Return, 5),
                (Part::Reply, 10)
            ]
        );
        assert_eq!(tally.parts().sum(), 1_300);
    }

    #[test]
    fn what_one_line_says_twice_is_counted_once() {
        let mut tally = Tally::default();
        tally.begin(100, 100);
        // Queued in the middle of its own turn, it waited from before that turn's end.
        tally.worked(100, 150, None, 50);
        tally.waited(Part::Reply, Part::Return, 80, 200);
        tally.worked(200, 210, Some(200), 0);
        tally.count(Class::Get);
        assert_eq!(tally.parts().sum(), 110);
        assert_eq!(tally.parts()[Part::Return], 50);
        assert_eq!(tally.parts()[Part::Processor], 10, "also while it sent");
    }
}
