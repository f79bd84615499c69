//! A device that is not there, in real time: an I/O is done on the real disk, and ends when the model says.

use engine::device::{DeviceIo, FileKind};
use parking_lot::{Condvar, Mutex};
use policy::device::{Device, Event, Io, Model};
use stage::Clock;
use std::collections::BTreeSet;
use std::time::Duration;

/// Where the model believes files to be: each tenant's data and log in a region of its own. Files of one kind share it,
/// so that offsets in different files may meet; what matters to an arm, that a log goes on where it ended and
/// that data is elsewhere, is kept.
const REGION_BYTES: u64 = 8 << 30;
const KINDS: u64 = 4;

#[derive(Debug)]
struct State {
    device: Device,
    submitted: u64,
    /// Done, and their threads have not been told.
    done: BTreeSet<u64>,
}

/// An emulated device for an experiment. The real disk must be faster than it.
#[derive(Debug)]
pub struct Emulated<C> {
    state: Mutex<State>,
    changed: Condvar,
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
        };
        Emulated {
            state: Mutex::new(state),
            changed: Condvar::new(),
            clock,
        }
    }

    /// An I/O begins; returns its number.
    pub(super) fn submit(&self, io: &DeviceIo) -> u64 {
        let kind = match io.file {
            FileKind::Data => 0,
            FileKind::Log => 1,
            FileKind::Metadata => 2,
            FileKind::Directory => 3,
        };
        let region = u64::from(io.principal) * KINDS + kind;
        let offset = region * REGION_BYTES + io.offset % REGION_BYTES;
        let mut state = self.state.lock();
        state.submitted += 1;
        let tag = state.submitted;
        let now = self.clock.now();
        let (op, bytes) = (io.op, io.bytes);
        state.device.submit(now, tag, Io { op, offset, bytes });
        tag
    }

    /// Waits until the model has done it. One of the waiting threads keeps the time for the others.
    pub(super) fn wait(&self, tag: u64) {
        let mut state = self.state.lock();
        loop {
            let now = self.clock.now();
            let mut others = false;
            let next = loop {
                match state.device.next(now) {
                    Event::Done { tag: done, .. } => {
                        others |= done != tag;
                        state.done.insert(done);
                    }
                    Event::At(at) => break Some(at),
                    Event::Idle => break None,
                }
            };
            if others {
                self.changed.notify_all();
            }
            if state.done.remove(&tag) {
                return;
            }
            match next {
                Some(at) => {
                    let ns = Duration::from_nanos(at.saturating_sub(now));
                    self.changed.wait_for(&mut state, ns);
                }
                None => self.changed.wait(&mut state),
            }
        }
    }
}
