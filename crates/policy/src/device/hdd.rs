//! A hard disk: one arm, one platter's angle, and a queue.
//!
//! An I/O takes its command's overhead, the seek, the wait until its first sector passes, and the
//! transfer. The seek grows with the square root of a short distance and in proportion to a long
//! one (Ruemmler and Wilkes, An Introduction to Disk Drive Modeling, IEEE Computer 27(3), 1994);
//! the angle is the time's, so what was just missed takes a turn. From its queue the drive takes
//! what its head reaches first, as native command queueing does, unless something was passed over
//! too often.
//!
//! Left out: the write cache (a write is done when it is on the platter, so a sync costs a command
//! only), track and head switches within a transfer, remapped sectors, spin-down.

use super::{transfer_ns, Ends, Event, Io};
use crate::cost::device::Op;
use crate::cost::Nanos;

/// What a hard disk is like.
#[derive(Clone, Debug, PartialEq)]
pub struct HddParameters {
    /// Size, in bytes.
    pub capacity_bytes: u64,
    /// One turn of the platter, in nanoseconds.
    pub rotation_ns: Nanos,
    /// Seek to the next track, in nanoseconds.
    pub seek_track_ns: Nanos,
    /// Average seek between two random places, for reads, in nanoseconds.
    pub seek_average_ns: Nanos,
    /// Seek from one end to the other, in nanoseconds.
    pub seek_full_ns: Nanos,
    /// What a seek for a write takes longer, to settle, in nanoseconds.
    pub settle_write_ns: Nanos,
    /// Sustained rate at the outer edge (offset 0), bytes per second.
    pub outer_bytes_per_s: f64,
    /// Sustained rate at the inner edge, bytes per second.
    pub inner_bytes_per_s: f64,
    /// Rate of the cable, for what the read-ahead has, bytes per second.
    pub link_bytes_per_s: f64,
    /// How far the drive reads ahead, in bytes; 0: not at all.
    pub read_ahead_bytes: u64,
    /// A command's own time, in nanoseconds.
    pub overhead_ns: Nanos,
    /// I/Os that the drive sees at a time (NCQ: 32); the others wait in order of arrival.
    pub queue_depth: usize,
    /// An I/O that the drive has seen and passed over this many times goes first.
    pub passed_over_max: u32,
}

impl Default for HddParameters {
    /// A desktop disk of 1 TB at 7,200 turns a minute, by data sheets of its class (Seagate
    /// Barracuda 7200.12: seek 8.5 ms reading and 9.5 ms writing, 4.17 ms rotational latency, 125
    /// MB/s sustained, 32 MB of cache, NCQ 32). Not in them, and typical: full seek, inner rate,
    /// command overhead.
    fn default() -> Self {
        HddParameters {
            capacity_bytes: 1_000_000_000_000,
            rotation_ns: 8_333_333,
            seek_track_ns: 1_000_000,
            seek_average_ns: 8_500_000,
            seek_full_ns: 18_000_000,
            settle_write_ns: 1_000_000,
            outer_bytes_per_s: 125e6,
            inner_bytes_per_s: 60e6,
            link_bytes_per_s: 300e6,
            read_ahead_bytes: 1 << 20,
            overhead_ns: 100_000,
            queue_depth: 32,
            passed_over_max: 128,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    tag: u64,
    io: Io,
    since: Nanos,
    passed_over: u32,
}

/// A hard disk at work.
#[derive(Clone, Debug)]
pub struct Hdd {
    parameters: HddParameters,
    /// In order of arrival; the drive sees the first `queue_depth`.
    queue: Vec<Queued>,
    /// The I/O at the head, if any, is in here with its end.
    ends: Ends,
    /// When the head is free.
    free_at: Nanos,
    /// Where the head is: the byte behind the last one it passed for an I/O.
    head: u64,
    /// When it passed that. What the drive had read ahead was passed before its I/O ended.
    head_at: Nanos,
    /// Whether the last I/O was a read, so that the drive goes on reading.
    reading: bool,
    /// Where it began to read: what lies between there and the head it knows.
    read_from: u64,
    /// Seek by relative distance x: `track + root * sqrt(x) + line * x`.
    seek_root: f64,
    seek_line: f64,
}

/// The part of a sector that is asked for does not matter.
const SECTOR_BYTES: u64 = 512;

impl Hdd {
    /// A disk with its head at the outer edge.
    ///
    /// # Panics
    /// If the capacity, the rotation, a rate or the depth is not positive.
    #[must_use]
    pub fn new(parameters: HddParameters) -> Hdd {
        let p = &parameters;
        assert!(
            p.capacity_bytes > 0 && p.rotation_ns > 0 && p.queue_depth > 0,
            "{p:?}"
        );
        let rates = [p.outer_bytes_per_s, p.inner_bytes_per_s, p.link_bytes_per_s];
        assert!(rates.iter().all(|rate| *rate > 0.0), "{p:?}");
        // Between two random places E[x] = 1/3 and E[sqrt(x)] = 8/15; two equations, two unknowns.
        let average = p.seek_average_ns as f64 - p.seek_track_ns as f64;
        let full = p.seek_full_ns as f64 - p.seek_track_ns as f64;
        let seek_root = (average - full / 3.0) / (8.0 / 15.0 - 1.0 / 3.0);
        Hdd {
            seek_root,
            seek_line: full - seek_root,
            queue: Vec::new(),
            ends: Ends::default(),
            free_at: 0,
            head: 0,
            head_at: 0,
            reading: false,
            read_from: 0,
            parameters,
        }
    }

    pub(super) fn submit(&mut self, now: Nanos, tag: u64, io: Io) {
        let offset = io.offset % self.parameters.capacity_bytes;
        let io = Io { offset, ..io };
        self.queue.push(Queued {
            tag,
            io,
            since: now,
            passed_over: 0,
        });
    }

    pub(super) fn next(&mut self, now: Nanos) -> Event {
        // I/Os that were submitted at `now` begin at `now`: the next end is then known.
        self.start_until(now.saturating_add(1));
        self.ends.next(now)
    }

    pub(super) fn outstanding(&self) -> usize {
        self.queue.len() + self.ends.len()
    }

    /// Begins whatever begins before `now`.
    fn start_until(&mut self, now: Nanos) {
        while let Some(first) = self.queue.first() {
            let start = self.free_at.max(first.since);
            if start >= now {
                return;
            }
            let index = self.choose(start);
            let chosen = self.queue.remove(index);
            self.queue[..index]
                .iter_mut()
                .for_each(|older| older.passed_over += 1);
            let end = self.serve(start, &chosen.io);
            self.ends.put(end, chosen.tag);
            self.free_at = end;
        }
    }

    /// Which of the I/Os that the drive sees at `start` it takes. REQUIRES: the first is there by
    /// then.
    fn choose(&self, start: Nanos) -> usize {
        // What begins at `start` must not depend on what came later, however late anybody asks.
        let seen = self.queue.iter().take(self.parameters.queue_depth);
        let seen = seen.take_while(|queued| queued.since <= start).enumerate();
        if self.queue[0].passed_over >= self.parameters.passed_over_max {
            return 0;
        }
        // `min_by_key` takes the first of equals, which is the oldest.
        let soonest = seen.min_by_key(|(_, queued)| self.reach_ns(start, &queued.io));
        soonest.map_or(0, |(index, _)| index)
    }

    /// How long after `start` the first byte of an I/O is under the head, or known.
    fn reach_ns(&self, start: Nanos, io: &Io) -> Nanos {
        let p = &self.parameters;
        if matches!(io.op, Op::Sync | Op::Delete) || self.read_ahead(start, io).is_some() {
            return p.overhead_ns;
        }
        let streams = io.offset == self.head && start == self.free_at;
        if streams {
            return 0;
        }
        let there = start + p.overhead_ns + self.seek_ns(io);
        let angle = self.angle_ns(io.offset);
        let wait = (angle + p.rotation_ns - there % p.rotation_ns) % p.rotation_ns;
        there + wait - start
    }

    fn serve(&mut self, start: Nanos, io: &Io) -> Nanos {
        if matches!(io.op, Op::Sync | Op::Delete) {
            return start + self.parameters.overhead_ns;
        }
        let p = &self.parameters;
        let bytes = io.bytes.max(1).next_multiple_of(SECTOR_BYTES);
        let (head_at, end) = match self.read_ahead(start, io) {
            Some(passed) => {
                let handed_over = start + p.overhead_ns + transfer_ns(bytes, p.link_bytes_per_s);
                (passed, handed_over.max(passed))
            }
            None => {
                let reached = start + self.reach_ns(start, io);
                let end = reached + transfer_ns(bytes, self.rate(io.offset));
                (end, end)
            }
        };
        let goes_on = self.reading && (self.read_from..=self.head).contains(&io.offset);
        if !goes_on {
            self.read_from = io.offset;
        }
        (self.head, self.head_at) = ((io.offset + bytes) % p.capacity_bytes, head_at);
        self.reading = io.op == Op::Read;
        end
    }

    /// If the drive went on reading into its cache and an I/O continues there: when the last of its
    /// bytes has passed the head.
    fn read_ahead(&self, start: Nanos, io: &Io) -> Option<Nanos> {
        let p = &self.parameters;
        // Where an I/O overlaps what was read last, the rest counts.
        let new_bytes = (io.offset + io.bytes).checked_sub(self.head)?;
        let known_from = self
            .read_from
            .max(self.head.saturating_sub(p.read_ahead_bytes));
        let since_s = start.saturating_sub(self.head_at) as f64 / super::NS_PER_S;
        let passed_bytes = (since_s * self.rate(self.head)) as u64;
        let known_to = self.head + passed_bytes.min(p.read_ahead_bytes);
        let continues =
            io.op == Op::Read && self.reading && (known_from..=known_to).contains(&io.offset);
        let ahead = continues
            && io.bytes <= p.read_ahead_bytes
            && (start > self.head_at || io.offset < self.head);
        ahead.then(|| self.head_at + transfer_ns(new_bytes, self.rate(io.offset)))
    }

    fn seek_ns(&self, io: &Io) -> Nanos {
        let p = &self.parameters;
        let distance = self.head.abs_diff(io.offset);
        let settle = if io.op == Op::Write {
            p.settle_write_ns
        } else {
            0
        };
        if distance < self.track_bytes(io.offset) {
            // The same track, or one next to it: nothing moves far enough to be called a seek.
            return settle.min(p.seek_track_ns);
        }
        let x = distance as f64 / p.capacity_bytes as f64;
        let far = self.seek_root * x.sqrt() + self.seek_line * x;
        p.seek_track_ns + far.max(0.0) as Nanos + settle
    }

    /// The rate falls from the outer to the inner edge, because tracks become shorter.
    fn rate(&self, offset: u64) -> f64 {
        let p = &self.parameters;
        let inward = offset as f64 / p.capacity_bytes as f64;
        p.outer_bytes_per_s + (p.inner_bytes_per_s - p.outer_bytes_per_s) * inward
    }

    fn track_bytes(&self, offset: u64) -> u64 {
        let per_turn = self.rate(offset) * self.parameters.rotation_ns as f64 / super::NS_PER_S;
        (per_turn as u64).max(1)
    }

    /// When in a turn a place passes the head.
    fn angle_ns(&self, offset: u64) -> Nanos {
        let track = self.track_bytes(offset);
        let turn = u128::from(offset % track) * u128::from(self.parameters.rotation_ns);
        (turn / u128::from(track)) as Nanos
    }
}
