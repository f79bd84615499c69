//! What a device does when reads and writes come together, and so what may be promised of it.
//!
//! One kind of I/O alone gets all VOPs that a device has; mixed kinds get less, down to half. How
//! much less depends on the part that is read and on the sizes. A calibration measures that for
//! loads on a grid ([`Sweep`]). A mix whose parts are known ([`Mix`]) is held against the loads
//! around it; the floor is what is left where nothing is known.

use std::collections::BTreeSet;

/// I/Os of one direction, in any unit of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// How many.
    pub ios: f64,
    /// How many bytes they move.
    pub bytes: f64,
    /// What they cost, VOPs.
    pub vops: f64,
}

impl Flow {
    /// This and that.
    #[must_use]
    pub fn plus(self, other: Flow) -> Flow {
        Flow {
            ios: self.ios + other.ios,
            bytes: self.bytes + other.bytes,
            vops: self.vops + other.vops,
        }
    }

    fn scaled(self, by: f64) -> Flow {
        Flow {
            ios: self.ios * by,
            bytes: self.bytes * by,
            vops: self.vops * by,
        }
    }
}

/// What some work asks of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mix {
    /// Its reads.
    pub reads: Flow,
    /// Its writes.
    pub writes: Flow,
    /// Syncs and deletes, VOPs. They change what is stored and have no size.
    pub others: f64,
    /// VOPs of which nobody knows what they will be.
    pub unknown: f64,
}

impl Mix {
    /// VOPs of all of it.
    #[must_use]
    pub fn vops(&self) -> f64 {
        self.reads.vops + self.writes.vops + self.others + self.unknown
    }

    /// This and that.
    #[must_use]
    pub fn plus(&self, other: &Mix) -> Mix {
        Mix {
            reads: self.reads.plus(other.reads),
            writes: self.writes.plus(other.writes),
            others: self.others + other.others,
            unknown: self.unknown + other.unknown,
        }
    }

    /// So many times this.
    #[must_use]
    pub fn scaled(&self, by: f64) -> Mix {
        Mix {
            reads: self.reads.scaled(by),
            writes: self.writes.scaled(by),
            others: self.others * by,
            unknown: self.unknown * by,
        }
    }

    /// As much work of this kind as comes to so many VOPs; unknown work, if this is none.
    #[must_use]
    pub fn of_vops(&self, vops: f64) -> Mix {
        let all = self.vops();
        if all > 0.0 {
            return self.scaled(vops / all);
        }
        Mix {
            unknown: vops,
            ..Mix::default()
        }
    }
}

/// What the device did under one load of reads and writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// The part of its VOPs that were reads, 0 to 1.
    pub reads_part: f64,
    /// Bytes of a read.
    pub read_bytes: u64,
    /// Bytes of a write.
    pub write_bytes: u64,
    /// VOPs a second.
    pub vop_per_s: f64,
}

/// What is promised of the rate that the loads around a mix tell. A mix has I/Os of more than two
/// sizes and lies between loads. Of a hundred mixes drawn at random on the emulated SSD (two sizes
/// read, two written, any proportion) 99 then have what they were promised and one has 1/1.02 of
/// it; 95 are promised three quarters of what they have, and the floor is that for fewer than half.
/// `crates/device/tests/promisable.rs` draws them.
const SAFE: f64 = 0.93;

/// Loads of reads and writes together, as they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    seen: Vec<Seen>,
    /// Sizes of the grid, growing.
    read_sizes: Vec<u64>,
    write_sizes: Vec<u64>,
    max_per_s: f64,
    floor_per_s: f64,
    part: f64,
}

impl Sweep {
    /// `max_per_s`: VOPs a second of reads alone or writes alone. `floor_per_s`: what is left in
    /// any case. `part`: what may be relied on of a rate that was seen, above 0, at most 1.
    #[must_use]
    pub fn new(max_per_s: f64, floor_per_s: f64, part: f64, seen: Vec<Seen>) -> Sweep {
        Sweep {
            read_sizes: crossed(&seen, |load| (load.read_bytes, load.write_bytes)),
            write_sizes: crossed(&seen, |load| (load.write_bytes, load.read_bytes)),
            seen,
            max_per_s,
            floor_per_s,
            part: part * SAFE,
        }
    }

    /// Nothing is known but the floor.
    #[must_use]
    pub fn floor(floor_per_s: f64) -> Sweep {
        Sweep::new(floor_per_s, floor_per_s, 1.0, Vec::new())
    }

    /// VOPs a second that are left under any mix.
    #[must_use]
    pub fn floor_per_s(&self) -> f64 {
        self.floor_per_s
    }

    /// VOPs a second that may be promised to work of this mix: what the loads around it did, less
    /// what is uncertain, and never less than the floor. That is all there is where nothing lies
    /// around it, or a part of it is unknown.
    ///
    /// Around a mix are the next sizes below and above its mean sizes, and of each pair of these
    /// the loads with a smaller and with a larger part of reads; reads alone and writes alone are
    /// loads of every pair. The least of the pairs counts. Between two loads of a pair the device's
    /// time is divided between them, if the one with more reads did more; otherwise the lesser
    /// counts, because a few reads among writes can cost half of the rate at once.
    #[must_use]
    pub fn promisable_per_s(&self, mix: &Mix) -> f64 {
        let known = (mix.unknown == 0.0).then(|| self.around(mix)).flatten();
        let promised = known.map_or(0.0, |rate| rate.min(self.max_per_s) * self.part);
        promised.max(self.floor_per_s)
    }

    fn around(&self, mix: &Mix) -> Option<f64> {
        let all = mix.vops();
        if self.seen.is_empty() || all <= 0.0 {
            return None;
        }
        let reads_part = mix.reads.vops / all;
        if reads_part == 0.0 || reads_part == 1.0 {
            return Some(self.max_per_s);
        }
        let (from_read, to_read) = between(&self.read_sizes, mix.reads)?;
        let (from_write, to_write) = between(&self.write_sizes, mix.writes)?;
        let near = |load: &&Seen| {
            (from_read..=to_read).contains(&load.read_bytes)
                && (from_write..=to_write).contains(&load.write_bytes)
        };
        let near = self.seen.iter().filter(near);
        let pairs: BTreeSet<_> = near
            .map(|load| (load.read_bytes, load.write_bytes))
            .collect();
        let rates = pairs.into_iter().map(|pair| self.rate(pair, reads_part));
        rates.reduce(f64::min)
    }

    /// The rate of one pair of sizes.
    fn rate(&self, (read_bytes, write_bytes): (u64, u64), reads_part: f64) -> f64 {
        let of_pair =
            |load: &&Seen| (load.read_bytes, load.write_bytes) == (read_bytes, write_bytes);
        let loads = self.seen.iter().filter(of_pair);
        let alone = [(0.0, self.max_per_s), (1.0, self.max_per_s)];
        let [mut below, mut above] = alone;
        for load in loads {
            let at = (load.reads_part, load.vop_per_s.min(self.max_per_s));
            if at.0 <= reads_part && at.0 >= below.0 {
                below = at;
            }
            if at.0 >= reads_part && at.0 <= above.0 {
                above = at;
            }
        }
        if below.1 >= above.1 {
            return above.1;
        }
        let toward = (reads_part - below.0) / (above.0 - below.0);
        1.0 / (toward / above.1 + (1.0 - toward) / below.1)
    }
}

/// Sizes of one direction that are of the grid: tried with more than half as many sizes of the
/// other as any. What was tried beside the grid, on the way down to the floor, was tried with few.
fn crossed(seen: &[Seen], sizes: impl Fn(&Seen) -> (u64, u64)) -> Vec<u64> {
    let pairs: BTreeSet<(u64, u64)> = seen.iter().map(sizes).collect();
    let with = |size: u64| pairs.iter().filter(|pair| pair.0 == size).count();
    let most = pairs.iter().map(|pair| with(pair.0)).max().unwrap_or(0);
    let own: BTreeSet<u64> = pairs.iter().map(|pair| pair.0).collect();
    own.into_iter()
        .filter(|size| 2 * with(*size) > most)
        .collect()
}

/// The next sizes to either side of a flow's mean. What is smaller than the smallest is taken for
/// it, as it is priced; there is nothing beyond the largest.
fn between(sizes: &[u64], flow: Flow) -> Option<(u64, u64)> {
    let smallest = *sizes.first()?;
    if flow.ios <= 0.0 {
        return None;
    }
    let mean = (flow.bytes / flow.ios).max(smallest as f64);
    let below = sizes.iter().rev().find(|size| **size as f64 <= mean)?;
    let above = sizes.iter().find(|size| **size as f64 >= mean)?;
    Some((*below, *above))
}
