//! Which slots of the cluster are being moved. That is read only while requests wait for the end of
//! a move, or somebody looks at the cluster.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use front::{Topology, MOVES};
use parking_lot::RwLock;
use policy::Nanos;

use super::catalogue::Book;
use super::lookout::LOOK_EVERY_NS;
use super::UpstreamOptions;

/// What was read is true for so long: it is read again in each look while it is wanted, and who
/// looks at a cluster asks every two seconds.
const KNOWN_NS: Nanos = 3 * LOOK_EVERY_NS;

/// What is known of moves.
#[derive(Default)]
pub struct Moves {
    known: RwLock<front::Moves>,
    read_at: AtomicU64,
    /// Somebody has asked since they were last read.
    wanted: AtomicBool,
}

impl Moves {
    /// Whether somebody is moving a slot, as far as is known; `look_soon` is called where that is
    /// not known of late.
    pub fn goes_on(&self, slot: u16, now: Nanos, look_soon: impl FnOnce()) -> bool {
        self.want(now, look_soon);
        self.known.read().goes_on(slot, now)
    }

    /// Slots of the moves that are written down, as far as that is known of late; `look_soon` as
    /// above.
    pub fn rows(&self, now: Nanos, look_soon: impl FnOnce()) -> Vec<String> {
        match self.want(now, look_soon) {
            true => self.known.read().rows().map(str::to_owned).collect(),
            false => Vec::new(),
        }
    }

    /// Has them read. True: they were of late.
    fn want(&self, now: Nanos, look_soon: impl FnOnce()) -> bool {
        let first = !self.wanted.swap(true, Ordering::Relaxed);
        let passed = now.saturating_sub(self.read_at.load(Ordering::Relaxed));
        let known = passed <= KNOWN_NS;
        if first && !known {
            look_soon();
        }
        known
    }

    /// Reads what is written down, if somebody has asked.
    pub(super) fn look(&self, topology: &Topology, options: &UpstreamOptions, now: Nanos) {
        if !self.wanted.swap(false, Ordering::Relaxed) {
            return;
        }
        let entries =
            Book::open(topology, options).and_then(|mut book| book.ask(&[b"HGETALL", MOVES]));
        match entries {
            Ok(entries) => {
                self.known.write().hear(&entries, now);
                self.read_at.store(now, Ordering::Relaxed);
            }
            // What was read last holds for as long as a mover may be silent.
            Err(why) => tracing::debug!("moves of slots are as they were: {why}"),
        }
    }
}
