//! Which slots of the cluster somebody is moving. That is read only while requests wait for the end
//! of a move.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use front::{Topology, MOVES};
use parking_lot::RwLock;
use policy::Nanos;

use super::catalogue::Book;
use super::lookout::LOOK_EVERY_NS;
use super::UpstreamOptions;

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
        let first = !self.wanted.swap(true, Ordering::Relaxed);
        if first && now.saturating_sub(self.read_at.load(Ordering::Relaxed)) > 2 * LOOK_EVERY_NS {
            look_soon();
        }
        self.known.read().goes_on(slot, now)
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
