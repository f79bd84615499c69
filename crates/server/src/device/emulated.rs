//! A device that is not there, in real time: an I/O is done on the real disk, and ends when the
//! model says.

use engine::device::DeviceIo;
use parking_lot::Mutex;
use policy::device::{Device, Event, Io, Layout, Model};
use stage::{Clock, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::thread::{self, Thread};
use std::time::Duration;

#[derive(Debug)]
struct State {
    device: Device,
    submitted: u64,
    /// Done, and their threads have not asked.
    done: BTreeSet<u64>,
    /// Threads that wait, by what they wait for.
    waiting: BTreeMap<u64, Thread>,
    /// Who keeps the time for all of them, and until when it sleeps.
    keeper: Option<(u64, Nanos)>,
}

impl State {
    /// Takes what is done by `now` and wakes whoever waits for it; returns when to ask again.
    fn advance(&mut self, now: Nanos) -> Option<Nanos> {
        loop {
            match self.device.next(now) {
                Event::Done { tag, .. } => {
                    self.done.insert(tag);
                    if let Some(thread) = self.waiting.remove(&tag) {
                        thread.unpark();
                    }
                }
                Event::At(at) => return Some(at),
                Event::Idle => return None,
            }
        }
    }

    /// Whether `tag` has to sleep until `next` and no longer: nobody else does.
    fn keeps(&mut self, tag: u64, next: Nanos) -> bool {
        let keeps = match self.keeper {
            Some((keeper, until)) => keeper == tag || next < until,
            None => true,
        };
        if keeps {
            self.keeper = Some((tag, next));
        }
        keeps
    }

    /// The thread that waited for `tag` goes. If it kept the time, another is woken to do so: the
    /// one that began last, which has longest to wait. So it is if nobody keeps the time: this
    /// thread may be the one that was woken for that, and found its own I/O done.
    fn leave(&mut self, tag: u64) {
        if self.keeper.is_none_or(|(keeper, _)| keeper == tag) {
            self.keeper = None;
            if let Some((_, thread)) = self.waiting.last_key_value() {
                thread.unpark();
            }
        }
    }
}

/// Emulated drives for an experiment, all alike, and where files lie on them. The real disk must be
/// faster than all of them together.
#[derive(Debug)]
pub struct Drives<C> {
    pub(super) drives: Vec<Emulated<C>>,
    pub(super) layout: Layout,
}

impl<C: Clock + Clone> Drives<C> {
    /// So many drives by a model. Files lie within `span_bytes` of each (`None`: anywhere), where
    /// the seed has them.
    #[must_use]
    pub fn new(model: &Model, disks: u32, span_bytes: Option<u64>, seed: u64, clock: &C) -> Self {
        let one = |disk| Emulated::new(model, seed.wrapping_add(u64::from(disk)), clock.clone());
        let capacity_bytes = model.capacity_bytes();
        Drives {
            drives: (0..disks.max(1)).map(one).collect(),
            layout: Layout {
                disks: disks.max(1),
                span_bytes: span_bytes.map_or(capacity_bytes, |span| span.min(capacity_bytes)),
                seed,
            },
        }
    }
}

/// One emulated drive.
#[derive(Debug)]
pub(super) struct Emulated<C> {
    state: Mutex<State>,
    clock: C,
}

impl<C: Clock> Emulated<C> {
    /// A device by a model; the seed places data in it.
    #[must_use]
    pub fn new(model: &Model, seed: u64, clock: C) -> Self {
        let state = State {
            device: Device::new(model, seed),
            submitted: 0,
            done: BTreeSet::new(),
            waiting: BTreeMap::new(),
            keeper: None,
        };
        Emulated {
            state: Mutex::new(state),
            clock,
        }
    }

    /// An I/O begins at this byte of the device; returns its number.
    pub(super) fn submit(&self, io: &DeviceIo, offset: u64) -> u64 {
        let mut state = self.state.lock();
        state.submitted += 1;
        let tag = state.submitted;
        let now = self.clock.now();
        let (op, bytes) = (io.op, io.bytes);
        state.device.submit(now, tag, Io { op, offset, bytes });
        tag
    }

    /// Waits until the model has done it. One of the waiting threads keeps the time for the others,
    /// and each is woken for its own I/O only: were all woken for each, a host of two processors
    /// would be slower than the device.
    pub(super) fn wait(&self, tag: u64) {
        let mut state = self.state.lock();
        loop {
            let now = self.clock.now();
            let next = state.advance(now);
            if state.done.remove(&tag) {
                state.leave(tag);
                return;
            }
            state.waiting.insert(tag, thread::current());
            let keeps = next.filter(|next| state.keeps(tag, *next));
            drop(state);
            match keeps {
                Some(at) => thread::park_timeout(Duration::from_nanos(at.saturating_sub(now))),
                None => thread::park(),
            }
            state = self.state.lock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::cost::device::Op;
    use policy::device::SsdParameters;

    /// Nobody is woken so late.
    const LONG: Duration = Duration::from_secs(20);

    /// The last of three waits on when the keeper has gone and the one that it woke was done, too.
    #[test]
    fn somebody_keeps_the_time_as_long_as_somebody_waits() {
        let mut state = State {
            device: Device::new(&Model::Ssd(SsdParameters::default()), 1),
            submitted: 3,
            done: BTreeSet::new(),
            waiting: BTreeMap::new(),
            keeper: None,
        };
        let (op, bytes) = (Op::Read, 4 << 10);
        for (tag, now) in [(1, 0), (3, 0), (2, 1_000_000_000)] {
            let io = Io {
                op,
                offset: 0,
                bytes,
            };
            state.device.submit(now, tag, io);
        }
        let (woken, wakes) = std::sync::mpsc::channel();
        let waiter = |tag: u64| {
            let woken = woken.clone();
            let handle = thread::spawn(move || {
                thread::park();
                let _ = woken.send(tag);
            });
            (tag, handle.thread().clone())
        };
        state.waiting.extend([waiter(2), waiter(3)]);
        // The first is done and goes: the third, which began last, is to keep the time.
        assert!(state.keeps(1, 1_000));
        state.leave(1);
        assert_eq!(wakes.recv_timeout(LONG), Ok(3));
        // Before it has the lock, a fourth finds that the third is done.
        assert!(state.advance(500_000_000).is_some());
        assert!(state.done.remove(&3));
        state.leave(3);
        assert_eq!(wakes.recv_timeout(LONG), Ok(2));
    }
}
