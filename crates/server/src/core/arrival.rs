//! When requests came: a core only sees them when it looks, and it only looks when it has a
//! processor.

use std::io;
use std::time::Duration;

use mio::Events;
use policy::Nanos;
use threads::Times;

use super::mailbox::{self, TOGETHER};
use super::{accept, Core};

/// The kernel counts such sleeps in ms.
const DOZE: Duration = Duration::from_millis(1);
/// A look at the poll that took longer was kept from its processor …
const HELD_NS: Nanos = 20_000;
/// … unless it had events to hand over; no more than this each.
const EVENT_NS: Nanos = 1_000;

/// A look at the poll: what it found had come by a time, and had not by another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// When the look before it found what it did; of one that slept, when it was woken.
    pub from: Nanos,
    /// When it began; of one that slept, when it ended.
    pub until: Nanos,
    /// It slept until something came rather than finding what was there.
    pub woken: bool,
}

impl Look {
    /// When the event at `place` of the `count` that it found had come. Clients count from then, so
    /// the server must.
    ///
    /// A look that slept was woken by the first of them, and while its thread then waited for a
    /// processor the others came. Another found what had come since the look before. The kernel
    /// lists events in the order in which they came; it does not say when, so they are spread
    /// evenly.
    pub fn came(&self, place: usize, count: usize) -> Nanos {
        let halves = 2 * place + usize::from(!self.woken);
        let span = self.until.saturating_sub(self.from);
        self.from + (span as u128 * halves as u128 / (2 * count.max(1)) as u128) as Nanos
    }
}

/// When a thread was woken last, and what it had done by then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Awake {
    at: Nanos,
    times: Times,
}

impl Awake {
    /// The thread went to sleep at `slept_at`, and `now` it runs again and has done so much.
    /// Returns for how long it has had no processor since it was woken.
    ///
    /// The kernel counts that together with the time for which others had its processor before it
    /// slept, which is what it was awake for and did not run. To ask before each sleep, too, would
    /// tell them apart to the last µs, and cost as much as a small request.
    fn woken(&mut self, slept_at: Nanos, now: Nanos, times: Times) -> Nanos {
        let ran_ns = times.ran_ns.saturating_sub(self.times.ran_ns);
        let waited_ns = times.waited_ns.saturating_sub(self.times.waited_ns);
        let before_ns = slept_at.saturating_sub(self.at).saturating_sub(ran_ns);
        *self = Self { at: now, times };
        waited_ns.saturating_sub(before_ns).min(now - slept_at)
    }
}

/// Whether a look that found `count` events, and could have been over soon after `since`, was kept
/// from its processor.
fn held(since: Nanos, now: Nanos, count: usize) -> bool {
    now > since + HELD_NS + count as Nanos * EVENT_NS
}

/// Whether so many pieces of work that are out are all that handlers can do, and so many that a
/// core which sleeps until some of them are back is woken.
fn all_work(out: u32, permits: u32) -> bool {
    out >= permits.max(TOGETHER as u32)
}

impl Core {
    /// Looks at the poll, and sleeps there if there is nothing to do. What it finds is noticed.
    pub(super) fn wait(&mut self, events: &mut Events) {
        let began = self.shared.options.clock.now();
        let until = self.agenda.sleeps_until(began);
        let looks_at = self.door.as_ref().and_then(accept::Door::looks_at);
        let pause_ends = self.paused.look_at().unwrap_or(until);
        let until = looks_at.map_or(until, |at| at.min(until)).min(pause_ends);
        let timeout = Duration::from_nanos(until.saturating_sub(began));
        let load = &self.shared.loads[self.id];
        self.balance
            .sleeps(load, began, self.lines.requests.queued());
        // What is there is found without sleeping, so that it is known which look slept.
        self.look(events, began, Duration::ZERO);
        let mut since = began;
        if events.is_empty() && !timeout.is_zero() {
            let slept_at = self.now;
            let timeout = self.doze(timeout);
            self.look(events, began, timeout);
            self.processor.slept(self.now - began);
            // It was ready to go on when it was woken; its processor may have had other work.
            let times = (self.shared.options.thread_times)();
            since = self.now - self.awake.woken(slept_at, self.now, times);
            self.look = Look {
                from: since,
                until: self.now,
                woken: true,
            };
        }
        self.balance.wakes(self.now);
        self.now_ms = (self.shared.options.wall_ms)();
        let count = self.notice(events);
        if held(since, self.now, count) {
            // It may have waited with these events in hand, and others came meanwhile.
            self.look(events, self.now, Duration::ZERO);
            self.look.from = since;
            self.notice(events);
        }
    }

    /// Sleeps for a moment only while all of its handlers are at work: what comes back soon is
    /// answered together.
    fn doze(&self, timeout: Duration) -> Duration {
        let all_work = {
            let stage = self.handlers.stage();
            all_work(stage.in_flight(), stage.permits())
        };
        if !all_work {
            return timeout;
        }
        self.mailbox().doze();
        timeout.min(DOZE)
    }

    fn look(&mut self, events: &mut Events, began: Nanos, mut timeout: Duration) {
        while let Err(error) = self.poll.poll(events, Some(timeout)) {
            if error.kind() != io::ErrorKind::Interrupted {
                tracing::error!(core = self.id, %error, "poll failed");
                break;
            }
            // A process that stood still goes on here: what came meanwhile has not been looked for.
            timeout = Duration::ZERO;
        }
        self.now = self.shared.options.clock.now();
        self.look = Look {
            from: self.look.until,
            until: began,
            woken: false,
        };
    }

    /// Takes note of what a look found, and says how much that was.
    fn notice(&mut self, events: &Events) -> usize {
        let count = events.iter().count();
        for (place, event) in events.iter().enumerate() {
            match event.token() {
                mailbox::NUDGE => {}
                token if accept::is_door(token) => self.door_rings(self.now),
                token => self.noticed(token, event, self.look.came(place, count)),
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(from: Nanos, until: Nanos, woken: bool) -> Look {
        Look { from, until, woken }
    }

    #[test]
    fn what_a_busy_core_finds_came_between_two_looks_in_the_order_of_the_list() {
        let busy = look(1_000, 101_000, false);
        assert_eq!(busy.came(0, 1), 51_000);
        let each = [0, 1, 2, 3].map(|place| busy.came(place, 4));
        assert_eq!(each, [13_500, 38_500, 63_500, 88_500]);
        assert_eq!(look(1_000, 1_000, false).came(0, 1), 1_000);
    }

    #[test]
    fn a_core_waits_for_several_handlers_only_where_it_has_several() {
        let several = TOGETHER as u32;
        assert!(all_work(several, several) && all_work(9, 8));
        assert!(!all_work(7, 8), "one could begin at once");
        assert!(!all_work(1, 1) && !all_work(3, 3));
    }

    #[test]
    fn what_wakes_a_core_came_before_it_had_a_processor() {
        assert_eq!(look(500_000, 500_000, true).came(2, 3), 500_000);
        let late = look(200_000, 500_000, true);
        assert_eq!(
            [0, 1, 2].map(|place| late.came(place, 3)),
            [200_000, 300_000, 400_000]
        );
    }

    #[test]
    fn what_a_thread_waited_for_before_it_slept_is_not_put_down_to_being_woken() {
        let (mut ran, mut waited, mut clock) = (7_000, 3_000, 50_000_000);
        let mut awake = Awake::default();
        // What it ran, waited for and slept, and how long it had no processor when it was woken.
        for (runs, waits, sleeps, woken_late) in [
            (9_000, 0, 100_000, 0),
            (9_000, 0, 100_000, 3_000_000),
            (9_000, 2_000_000, 100_000, 0),
            (9_000, 2_000_000, 100_000, 3_000_000),
            (700_000, 40_000, 0, 250_000),
        ] {
            // It runs while the kernel puts it to sleep, too.
            ran += runs + 3_000;
            waited += waits + woken_late;
            let slept_at = clock + runs + waits;
            clock = slept_at + 3_000 + sleeps + woken_late;
            let times = Times {
                ran_ns: ran,
                waited_ns: waited,
            };
            let found = awake.woken(slept_at, clock, times);
            assert!(found.abs_diff(woken_late) <= 3_000, "{found} {woken_late}");
        }
        let uncounted = awake.woken(clock + 10_000, clock + 90_000, Times::default());
        assert_eq!(uncounted, 0);
    }

    #[test]
    fn a_look_that_took_longer_than_its_events_was_kept_from_its_processor() {
        assert!(!held(500_000, 515_000, 1));
        assert!(!held(500_000, 560_000, 124), "many take their time");
        assert!(held(500_000, 3_500_000, 1));
        assert!(held(500_000, 3_500_000, 124));
    }
}
