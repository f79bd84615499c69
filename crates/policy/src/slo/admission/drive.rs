//! What requests take at a drive, alone and in a queue.

use crate::cost::Nanos;

/// The drives under a server, all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drives {
    /// How many; requests go to all of them alike.
    pub count: u32,
    /// Whether an arm moves to where data lies.
    pub seeks: bool,
    /// A small read with nothing beside it: median and 99th percentile, ns.
    pub alone_ns: [Nanos; 2],
    /// The same in a full queue, ns of the drive's time: 1 over the rate.
    pub together_ns: f64,
    /// I/Os of a full queue.
    pub depth: u32,
    /// Bytes a second of one stream.
    pub stream_bytes_per_s: f64,
}

/// What a request asks of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Reads, one after another.
    pub ios: f64,
    /// What they take beyond small reads, for their bytes, ns.
    pub moved_ns: f64,
}

/// The part of requests beyond a 99th percentile.
const BEYOND_P99: f64 = 0.01;
/// A drive that takes always the same is taken to vary by this part of it.
const STEADY: f64 = 0.1;
/// The part of the time that an arm is on its way for other work.
const ON_THE_WAY: f64 = 0.25;
/// Steps in which the rest of a way is looked at.
const STEPS: u32 = 8;
/// The smallest pieces that other work is cut into.
const PIECE_BYTES: f64 = 65_536.0;

impl Drives {
    /// A small read's part of a drive's time if `n` are served as one group.
    ///
    /// An arm goes the shorter ways the more it can choose from: 12.7, 10.7, 9.8, 8.4 and 6.2 ms
    /// over a whole disk for n = 1, 3, 5, 10 and 32 are within 2 % of a straight line in ln n
    /// (docs/theory/latency.md, 5), and over 5 GB within 9 %. Without an arm, n of them go at once
    /// until the drive does no more.
    #[must_use]
    pub fn small_ns(&self, n: f64) -> f64 {
        let alone_ns = self.alone_ns[0] as f64;
        let least_ns = self.together_ns.min(alone_ns);
        let n = n.max(1.0);
        if !self.seeks {
            return (alone_ns / n).max(least_ns);
        }
        let full = f64::from(self.depth.max(2));
        let way = (n.ln() / full.ln()).min(1.0);
        alone_ns - (alone_ns - least_ns) * way
    }

    /// A request's part of a drive's time in such a group, ns.
    #[must_use]
    pub fn takes_ns(&self, work: &Work, n: f64) -> f64 {
        work.ios * self.small_ns(n) + work.moved_ns
    }

    /// How long a request is under way with nothing beside it, if a part `late` of them (0 to 1)
    /// may take longer: by median and 99th percentile, as if the tail fell exponentially.
    #[must_use]
    pub fn alone_ns(&self, work: &Work, late: f64) -> f64 {
        let [median_ns, tail_ns] = self.alone_ns.map(|ns| ns as f64);
        let late = late.clamp(1e-9, 0.5);
        let further = (0.5 / late).ln() / (0.5 / BEYOND_P99).ln();
        // The ways of several reads vary each for itself.
        let spread_ns = (tail_ns - median_ns).max(STEADY * median_ns) * work.ios.max(0.01).sqrt();
        work.ios * median_ns + spread_ns * further + work.moved_ns
    }

    /// The part of requests that are under way for longer with nothing beside them, 0 to 1.
    #[must_use]
    pub fn late_alone(&self, work: &Work, bound_ns: f64) -> f64 {
        let [median_ns, tail_ns] = self.alone_ns.map(|ns| ns as f64);
        let least_ns = STEADY * median_ns;
        let spread_ns = (tail_ns - median_ns).max(least_ns) * work.ios.max(0.01).sqrt();
        let further = (bound_ns - work.ios * median_ns - work.moved_ns) / spread_ns;
        (0.5 * (-further * (0.5 / BEYOND_P99).ln()).exp()).min(1.0)
    }

    /// The same beside other work in its smallest pieces, of which one has begun when a request is
    /// due. Mostly that is one of a stream, which takes its bytes only; an arm is on its way to the
    /// next stream, or back to the last, for a part of the time.
    #[must_use]
    pub fn late_beside(&self, work: &Work, bound_ns: f64) -> f64 {
        let moved_ns = PIECE_BYTES * 1e9 / self.stream_bytes_per_s.max(1.0);
        let streams = self.late_alone(work, bound_ns - moved_ns);
        if !self.seeks {
            return streams;
        }
        let way_ns = self.alone_ns[0] as f64 + moved_ns;
        let left = |step: u32| way_ns * (f64::from(step) + 0.5) / f64::from(STEPS);
        let ways = (0..STEPS).map(|step| self.late_alone(work, bound_ns - left(step)));
        let ways = ways.sum::<f64>() / f64::from(STEPS);
        (1.0 - ON_THE_WAY) * streams + ON_THE_WAY * ways
    }
}
