//! When requests came: a core only sees them when it looks, and it only looks when it has a processor.

use std::io;
use std::time::Duration;

use mio::Events;
use policy::Nanos;

use super::Core;

/// A look at the poll that took less, without the wait for a processor, did not sleep, ns: a fifth of what falling asleep and
/// waking takes …
const SLEPT_NS: Nanos = 2_000;
/// … and what an event takes to be handed over.
const EVENT_NS: Nanos = 100;

/// A look at the poll.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// When the look before it ended.
    pub before: Nanos,
    /// When it began …
    pub began: Nanos,
    /// … and ended.
    pub ended: Nanos,
    /// When it was woken, if it slept until something came rather than finding what was there.
    pub woken: Option<Nanos>,
}

impl Look {
    /// Of one that found `count` events and was ready to go on for `waited_ns` without a processor, when it was woken; nothing if
    /// it did not sleep.
    fn woken(began: Nanos, ended: Nanos, count: usize, waited_ns: Nanos) -> Option<Nanos> {
        let woken = ended.saturating_sub(waited_ns);
        (woken > began + SLEPT_NS + count as Nanos * EVENT_NS).then_some(woken)
    }

    /// When the event at `place` of the `count` that it found had come. Clients count from then, so the server must.
    ///
    /// A look that slept was woken by the first of them, and while its thread then waited for a processor the others came.
    /// Another found what had come since the look before. The kernel lists events in the order in which they came; it does
    /// not say when, so they are spread evenly.
    pub fn came(&self, place: usize, count: usize) -> Nanos {
        let (from, until, halves) = match self.woken {
            Some(woken) => (woken, self.ended, 2 * place),
            None => (self.before, self.began, 2 * place + 1),
        };
        let span = until.saturating_sub(from);
        from + (span as u128 * halves as u128 / (2 * count.max(1)) as u128) as Nanos
    }
}

impl Core {
    /// Looks at the poll, and sleeps there if there is nothing to do.
    pub(super) fn wait(&mut self, events: &mut Events) {
        let now = self.shared.options.clock.now();
        let until = match self.wake_at {
            _ if self.door_waits() => now,
            Some(at) => at.min(self.tick_at),
            None => self.tick_at,
        };
        let timeout = Duration::from_nanos(until.saturating_sub(now));
        let load = &self.shared.loads[self.id];
        self.balance.sleeps(load, now, self.stage.queued());
        let waited = self.shared.options.thread_waited;
        let waited_ns = if timeout.is_zero() { 0 } else { waited() };
        if let Err(error) = self.poll.poll(events, Some(timeout)) {
            if error.kind() != io::ErrorKind::Interrupted {
                tracing::error!(core = self.id, %error, "poll failed");
            }
        }
        self.now = self.shared.options.clock.now();
        let may_have_slept = !timeout.is_zero() && self.now > now + SLEPT_NS;
        self.look = Look {
            before: self.look.ended,
            began: now,
            ended: self.now,
            woken: may_have_slept
                .then(|| {
                    let waited_ns = waited().saturating_sub(waited_ns);
                    Look::woken(now, self.now, events.iter().count(), waited_ns)
                })
                .flatten(),
        };
        self.balance.wakes(self.now);
        if !timeout.is_zero() {
            self.processor.slept(self.now - now);
        }
        self.now_ms = (self.shared.options.wall_ms)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(began: Nanos, ended: Nanos, woken: Option<Nanos>) -> Look {
        Look {
            before: 1_000,
            began,
            ended,
            woken,
        }
    }

    #[test]
    fn what_a_busy_core_finds_came_between_two_looks_in_the_order_of_the_list() {
        let busy = look(101_000, 102_000, None);
        assert_eq!(busy.came(0, 1), 51_000);
        let each = [0, 1, 2, 3].map(|place| busy.came(place, 4));
        assert_eq!(each, [13_500, 38_500, 63_500, 88_500]);
        assert_eq!(look(1_000, 1_000, None).came(0, 1), 1_000);
    }

    #[test]
    fn what_wakes_a_core_came_before_it_had_a_processor() {
        assert_eq!(look(21_000, 500_000, Some(500_000)).came(2, 3), 500_000);
        let late = look(21_000, 500_000, Some(200_000));
        assert_eq!(
            [0, 1, 2].map(|place| late.came(place, 3)),
            [200_000, 300_000, 400_000]
        );
    }

    #[test]
    fn a_look_slept_if_something_else_than_a_processor_kept_it() {
        assert_eq!(Look::woken(21_000, 500_000, 1, 300_000), Some(200_000));
        assert_eq!(
            Look::woken(900_000, 920_000, 1, 0),
            Some(920_000),
            "for less than the round before it took, too"
        );
        assert_eq!(Look::woken(21_000, 500_000, 1, 478_500), None);
        assert_eq!(Look::woken(21_000, 500_000, 1, 900_000), None);
        assert_eq!(
            Look::woken(21_000, 41_000, 500, 0),
            None,
            "many events take their time to be handed over"
        );
    }
}
