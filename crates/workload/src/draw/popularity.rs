//! Which keys are asked for.

use super::Alias;
use crate::rng::Rng;

/// Which key a request names, as a rank from 0 (the most popular).
#[derive(Clone, Debug)]
pub enum Popularity {
    /// All of this many keys alike.
    Uniform(u64),
    /// Buckets of equally popular keys, hottest first.
    Buckets {
        /// Chooses a bucket by its share of all accesses.
        alias: Alias,
        /// First rank and number of keys of each bucket.
        ranges: Vec<(u64, u64)>,
        /// Keys in use; the measured tail is folded onto them.
        keys: u64,
    },
    /// A few hot keys, alike among themselves, and the others.
    Hotspot {
        /// How many are hot, at most all.
        hot: u64,
        /// The part of requests that goes to them.
        share: f64,
        /// All keys.
        keys: u64,
    },
    /// One key after the other: what a cache that forgets the least recently used can do least
    /// with.
    Sequential {
        /// All keys.
        keys: u64,
        /// The next one.
        next: u64,
    },
    /// Another popularity whose hot keys move on from time to time.
    Shifting {
        /// The popularity.
        of: Box<Popularity>,
        /// How long it stays, ns, above zero.
        every_ns: u64,
        /// Keys that it then moves on by.
        by: u64,
    },
}

/// Rounds of draws in which the keys of one multiget are looked for.
const ROUNDS_MAX: usize = 32;

impl Popularity {
    /// From (keys in the bucket, accesses to the bucket) pairs, hottest first, folded onto `keys`.
    /// `None` if the buckets hold nothing.
    pub fn buckets(buckets: &[(u64, f64)], keys: u64) -> Option<Self> {
        let weights: Vec<f64> = buckets.iter().map(|(_, weight)| *weight).collect();
        let mut from = 0;
        let ranges = buckets
            .iter()
            .map(|(count, _)| {
                let range = (from, (*count).max(1));
                from += (*count).max(1);
                range
            })
            .collect();
        let alias = Alias::new(&weights)?;
        Some(Self::Buckets {
            alias,
            ranges,
            keys: keys.max(1),
        })
    }

    /// Zipf with exponent `alpha` over `keys`, as buckets that double in size: exact for the first
    /// keys, and within a bucket the mean of its members.
    pub fn zipf(alpha: f64, keys: u64) -> Option<Self> {
        let (mut from, mut width, mut buckets) = (0u64, 1u64, Vec::new());
        while from < keys {
            let count = width.min(keys - from);
            let middle = from as f64 + (count as f64 + 1.0) / 2.0;
            buckets.push((count, count as f64 * middle.powf(-alpha)));
            from += count;
            width = (from / 16).max(1);
        }
        Self::buckets(&buckets, keys)
    }

    /// Number of distinct ranks that [`Popularity::pick`] can return.
    pub fn keys(&self) -> u64 {
        match self {
            Self::Uniform(keys) | Self::Hotspot { keys, .. } | Self::Sequential { keys, .. } => {
                *keys
            }
            Self::Buckets { keys, ranges, .. } => {
                let held = ranges.last().map_or(0, |(from, count)| from + count);
                held.min(*keys)
            }
            Self::Shifting { of, .. } => of.keys(),
        }
    }

    /// Appends `count` ranks, all different, for one request at `at_ns`: nobody asks for a key
    /// twice in one multiget. Fewer where there are no more, or where [`ROUNDS_MAX`] rounds of
    /// draws have not found them.
    pub fn pick_distinct(&mut self, rng: &mut Rng, at_ns: u64, count: u32, ranks: &mut Vec<u64>) {
        let (first, wanted) = (ranks.len(), count as usize);
        for _ in 0..ROUNDS_MAX {
            let missing = (first + wanted).saturating_sub(ranks.len());
            ranks.extend((0..missing).map(|_| self.pick(rng, at_ns)));
            if wanted < 2 {
                return;
            }
            ranks[first..].sort_unstable();
            // Only what this call drew: callers collect the keys of many requests in one list.
            let mut kept = first;
            for at in first..ranks.len() {
                if at == first || ranks[at] != ranks[kept - 1] {
                    ranks[kept] = ranks[at];
                    kept += 1;
                }
            }
            ranks.truncate(kept);
            if ranks.len() == first + wanted {
                return;
            }
        }
    }

    /// A rank in [0, `keys`) for a request at `at_ns`.
    pub fn pick(&mut self, rng: &mut Rng, at_ns: u64) -> u64 {
        match self {
            Self::Uniform(keys) => rng.below(*keys),
            Self::Buckets {
                alias,
                ranges,
                keys,
            } => {
                let (from, count) = ranges[alias.pick(rng.bits())];
                fold(from + rng.below(count), *keys)
            }
            Self::Hotspot { hot, share, keys } => {
                if rng.unit() < *share || hot == keys {
                    rng.below(*hot)
                } else {
                    *hot + rng.below(*keys - *hot)
                }
            }
            Self::Sequential { keys, next } => {
                let rank = *next;
                *next = (rank + 1) % (*keys).max(1);
                rank
            }
            Self::Shifting { of, every_ns, by } => {
                let keys = of.keys().max(1);
                let moved = u128::from(at_ns / *every_ns) * u128::from(*by);
                let rank = u128::from(of.pick(rng, at_ns)) + moved;
                (rank % u128::from(keys)) as u64
            }
        }
    }
}

/// Maps a measured rank onto `keys` keys. The head keeps its ranks, because the head is what makes
/// a workload skewed; the tail is folded onto the upper half.
fn fold(rank: u64, keys: u64) -> u64 {
    let head = keys / 2;
    if rank < keys {
        rank
    } else {
        head + (rank - head) % (keys - head)
    }
}
