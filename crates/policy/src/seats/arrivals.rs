//! How often each peer may connect.

use std::collections::{BTreeMap, BTreeSet};

use crate::cost::Nanos;

/// A rate for each peer, and a burst, as the time at which a peer will have its whole burst again
/// (the generic cell rate algorithm, ITU-T I.371). Peers who have it need no entry, so the table is
/// as large as there are peers who came lately.
#[derive(Clone, Debug)]
pub struct Arrivals<P> {
    peers_max: usize,
    whole_at: BTreeMap<P, Nanos>,
    by_time: BTreeSet<(Nanos, P)>,
}

impl<P: Ord + Copy> Arrivals<P> {
    /// A table of at most `peers_max` peers (>= 1). Beyond, the one that has most of its burst is
    /// forgotten: it has all of it again, which helps nobody who has so many addresses.
    #[must_use]
    pub fn new(peers_max: usize) -> Self {
        Arrivals {
            peers_max,
            whole_at: BTreeMap::new(),
            by_time: BTreeSet::new(),
        }
    }

    /// Whether a peer may come now, at `per_s` (> 0) and after a pause so many seconds' worth of it
    /// at once.
    pub fn come(&mut self, now: Nanos, peer: P, per_s: f64, burst_s: f64) -> bool {
        let each_ns = (1e9 / per_s).max(1.0) as Nanos;
        let burst_ns = ((burst_s * 1e9) as Nanos).max(each_ns);
        while let Some((at, peer)) = self.by_time.first().copied().filter(|(at, _)| *at <= now) {
            self.by_time.remove(&(at, peer));
            self.whole_at.remove(&peer);
        }
        let before = self.whole_at.get(&peer).copied();
        let after = before.unwrap_or(now).max(now) + each_ns;
        if after - now > burst_ns {
            return false;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, peer));
        } else if self.whole_at.len() >= self.peers_max {
            if let Some((_, other)) = self.by_time.pop_first() {
                self.whole_at.remove(&other);
            }
        }
        self.whole_at.insert(peer, after);
        self.by_time.insert((after, peer));
        true
    }

    /// Peers who have not their whole burst, as far as was looked.
    pub fn len(&self) -> usize {
        self.whole_at.len()
    }

    /// True if nobody came lately.
    pub fn is_empty(&self) -> bool {
        self.whole_at.is_empty()
    }
}
