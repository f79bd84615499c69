//! How many threads compute at a time.
//!
//! Sixteen handlers that walk over what is in memory weigh as much as half a core, whatever their
//! nice value says of each, and the kernel lets each have the processor until its next tick. So of
//! those that compute there are as many at a time as processors, in turns; those that wait for a
//! device need no turn.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::LazyLock;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::{times, Times};

/// A turn ends after this long, if others wait for one. Whoever sleeps in the middle of its turn
/// keeps nobody waiting for longer.
const TURN: Duration = Duration::from_millis(2);

/// What a thread that asks for a turn is told.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Go,
    /// Until a turn ends at this time, or somebody says so.
    Wait(Option<Instant>),
}

/// The turns of `places` threads at a time; `W` is how a thread is woken.
struct Turns<W> {
    places: Vec<Option<(u64, Instant)>>,
    waiting: VecDeque<(u64, W)>,
}

impl<W> Turns<W> {
    fn new(places: usize) -> Self {
        Self {
            places: std::iter::repeat_with(|| None).take(places).collect(),
            waiting: VecDeque::new(),
        }
    }

    /// Thread `id` wants to go on computing. Also returned: who should ask again now.
    fn ask(&mut self, id: u64, now: Instant, waker: impl FnOnce() -> W) -> (Told, Option<&W>) {
        let mine = |place: &&mut Option<(u64, Instant)>| place.is_some_and(|(of, _)| of == id);
        if let Some(place) = self.places.iter_mut().find(mine) {
            let going_on = place.is_some_and(|(_, until)| until > now);
            if going_on || self.waiting.is_empty() {
                if !going_on {
                    *place = Some((id, now + TURN));
                }
                return (Told::Go, None);
            }
            *place = None;
        }
        if !self.waiting.iter().any(|(of, _)| *of == id) {
            self.waiting.push_back((id, waker()));
        }
        let first = self.waiting.front().is_some_and(|(of, _)| *of == id);
        let over =
            |place: &&mut Option<(u64, Instant)>| place.is_none_or(|(_, until)| until <= now);
        match self.places.iter_mut().find(over) {
            Some(place) if first => {
                *place = Some((id, now + TURN));
                self.waiting.pop_front();
                (Told::Go, self.waiting.front().map(|(_, waker)| waker))
            }
            Some(_) => (
                Told::Wait(None),
                self.waiting.front().map(|(_, waker)| waker),
            ),
            None => {
                let ends = self.places.iter().flatten().map(|(_, until)| *until).min();
                (Told::Wait(ends.filter(|_| first)), None)
            }
        }
    }

    /// Thread `id` computes no more. Returned: who should ask again now.
    fn end(&mut self, id: u64) -> Option<&W> {
        let place = self
            .places
            .iter_mut()
            .find(|place| place.is_some_and(|(of, _)| of == id))?;
        *place = None;
        self.waiting.front().map(|(_, waker)| waker)
    }
}

/// A stretch of a thread's life, from a look on.
struct Me {
    id: u64,
    looked: Instant,
    ready_ns: u64,
    /// Whether it may have a place.
    placed: bool,
}

static TURNS: LazyLock<Mutex<Turns<Thread>>> = LazyLock::new(|| {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Mutex::new(Turns::new(processors))
});

thread_local! {
    static ME: RefCell<Me> = {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        RefCell::new(Me { id, looked: Instant::now(), ready_ns: ready_ns(), placed: false })
    };
}

/// Time for which the calling thread ran or was ready to, ns.
fn ready_ns() -> u64 {
    let Times { ran_ns, waited_ns } = times();
    ran_ns + waited_ns
}

/// Between two stretches of what may be a long computation, of a tenth of a millisecond or so each:
/// waits for the calling thread's turn if it has computed rather than waited for a device since it
/// last said so, and steps back for who is more urgent. Costs two µs.
pub fn step() {
    ME.with_borrow_mut(|me| {
        let (now, ready) = (Instant::now(), ready_ns());
        let passed = now.duration_since(std::mem::replace(&mut me.looked, now));
        let computed = ready.saturating_sub(std::mem::replace(&mut me.ready_ns, ready));
        if u128::from(computed) * 2 < passed.as_nanos() {
            me.give_back();
        } else if me.take_turn() {
            (me.looked, me.ready_ns) = (Instant::now(), ready_ns());
        }
    });
    thread::yield_now();
}

/// The end of a computation, if it was one.
pub fn end() {
    ME.with_borrow_mut(Me::give_back);
}

impl Me {
    /// `true`: it had to wait.
    fn take_turn(&mut self) -> bool {
        self.placed = true;
        let mut waited = false;
        loop {
            let told = {
                let mut turns = TURNS.lock();
                let (told, next) = turns.ask(self.id, Instant::now(), thread::current);
                if let Some(next) = next {
                    next.unpark();
                }
                told
            };
            match told {
                Told::Go => return waited,
                Told::Wait(None) => thread::park(),
                Told::Wait(Some(until)) => {
                    thread::park_timeout(until.saturating_duration_since(Instant::now()));
                }
            }
            waited = true;
        }
    }

    fn give_back(&mut self) {
        if std::mem::take(&mut self.placed) {
            if let Some(next) = TURNS.lock().end(self.id) {
                next.unpark();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks as thread `id`, which is woken by its name.
    fn ask(turns: &mut Turns<u64>, id: u64, now: Instant) -> (Told, Option<u64>) {
        let (told, next) = turns.ask(id, now, || id);
        (told, next.copied())
    }

    #[test]
    fn turns_go_round_when_there_are_more_threads_than_places() {
        let (mut turns, begin) = (Turns::new(1), Instant::now());
        assert_eq!(ask(&mut turns, 1, begin), (Told::Go, None));
        assert_eq!(
            ask(&mut turns, 2, begin),
            (Told::Wait(Some(begin + TURN)), None)
        );
        assert_eq!(
            ask(&mut turns, 3, begin),
            (Told::Wait(None), None),
            "behind who looks at the time"
        );
        assert_eq!(
            ask(&mut turns, 1, begin + TURN / 2),
            (Told::Go, None),
            "its turn is not over"
        );
        assert_eq!(
            ask(&mut turns, 1, begin + TURN),
            (Told::Wait(None), Some(2)),
            "now it is"
        );
        assert_eq!(ask(&mut turns, 2, begin + TURN), (Told::Go, Some(3)));
        assert_eq!(
            ask(&mut turns, 3, begin + TURN),
            (Told::Wait(Some(begin + TURN * 2)), None)
        );
        assert_eq!(turns.end(2), Some(&3));
        assert_eq!(ask(&mut turns, 3, begin + TURN), (Told::Go, Some(1)));
    }

    #[test]
    fn who_sleeps_in_its_turn_loses_it_and_who_is_alone_keeps_it() {
        let (mut turns, begin) = (Turns::new(2), Instant::now());
        for id in [1, 2] {
            assert_eq!(ask(&mut turns, id, begin), (Told::Go, None));
        }
        assert_eq!(
            ask(&mut turns, 1, begin + TURN * 3),
            (Told::Go, None),
            "nobody waits"
        );
        assert_eq!(
            ask(&mut turns, 3, begin + TURN * 3),
            (Told::Go, None),
            "2 sleeps"
        );
        assert_eq!(turns.end(2), None);
        assert_eq!(
            ask(&mut turns, 2, begin + TURN * 3),
            (Told::Wait(Some(begin + TURN * 4)), None)
        );
    }

    #[test]
    fn many_threads_that_compute_all_come_to_an_end() {
        let threads: Vec<_> = (0..32)
            .map(|seed: u64| {
                thread::spawn(move || {
                    let mut sum = seed;
                    for round in 0..200_000_u64 {
                        sum = std::hint::black_box(
                            sum.wrapping_mul(6_364_136_223_846_793_005) ^ round,
                        );
                        if round % 1_000 == 0 {
                            step();
                        }
                    }
                    end();
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("its end");
        }
    }
}
