//! What is asked: classes, keys and value sizes, drawn from distributions.

use crate::rng::{mix64, Rng};

/// Request classes of a load (DESIGN §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// `GET` of one key.
    Get,
    /// `SET` of one key.
    Put,
    /// `MGET` of several keys.
    Multiget,
    /// `DEL` of one key.
    Delete,
}

impl Class {
    /// Every class, in the order of reports.
    pub const ALL: [Class; 4] = [Class::Get, Class::Put, Class::Multiget, Class::Delete];

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Get => "get",
            Class::Put => "put",
            Class::Multiget => "multiget",
            Class::Delete => "delete",
        }
    }
}

/// A discrete distribution sampled in constant time (Vose's alias method).
#[derive(Clone, Debug)]
pub struct Alias {
    /// Probability (scaled to 2^32) of keeping the column drawn, and where to go otherwise.
    columns: Vec<(u32, u32)>,
}

impl Alias {
    /// From non-negative weights. `None` if there is none above zero or more than 2^32.
    pub fn new(weights: &[f64]) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        let n = u32::try_from(weights.len()).ok()?;
        if !total.is_finite() || total <= 0.0 || weights.iter().any(|w| *w < 0.0) {
            return None;
        }
        let mut scaled: Vec<f64> = weights.iter().map(|w| w * f64::from(n) / total).collect();
        let mut columns: Vec<(u32, u32)> = (0..n).map(|i| (u32::MAX, i)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..scaled.len()).partition(|&i| scaled[i] < 1.0);
        while let (Some(less), Some(&more)) = (small.pop(), large.last()) {
            columns[less] = ((scaled[less] * u32::MAX as f64) as u32, more as u32);
            scaled[more] -= 1.0 - scaled[less];
            if scaled[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        Some(Self { columns })
    }

    /// An index, from one word of randomness.
    pub fn pick(&self, bits: u64) -> usize {
        let column = ((bits >> 32) * self.columns.len() as u64) >> 32;
        let (keep, other) = self.columns[column as usize];
        if (bits as u32) <= keep {
            column as usize
        } else {
            other as usize
        }
    }
}

/// Which key a request names, as a rank from 0 (the most popular).
#[derive(Clone, Debug)]
pub enum Popularity {
    /// All of so many keys alike.
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
}

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
            Self::Uniform(keys) => *keys,
            Self::Buckets { keys, ranges, .. } => {
                let held = ranges.last().map_or(0, |(from, count)| from + count);
                held.min(*keys)
            }
        }
    }

    /// A rank in [0, `keys`).
    pub fn pick(&self, rng: &mut Rng) -> u64 {
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

/// Value sizes in bytes. The size belongs to the key: the same key and seed give the same size.
#[derive(Clone, Debug)]
pub enum Sizes {
    /// Always the same.
    Constant(u32),
    /// Log-normal with this mean (bytes) and sigma of the logarithm.
    LogNormal {
        /// Mean in bytes (not the median).
        mean_bytes: f64,
        /// Standard deviation of ln(size).
        sigma: f64,
    },
    /// Measured sizes with their weights.
    Histogram {
        /// Chooses a size by its weight.
        alias: Alias,
        /// Sizes, bytes.
        sizes_bytes: Vec<u32>,
    },
}

/// No value is drawn above this; a heavier tail than any of the measured histograms' (4 MiB).
pub const VALUE_BYTES_MAX: u32 = 8 << 20;

impl Sizes {
    /// The size of the value of key `key`, 1 to [`VALUE_BYTES_MAX`].
    pub fn of(&self, key: u64, seed: u64) -> u32 {
        match self {
            Self::Constant(bytes) => *bytes,
            Self::LogNormal { mean_bytes, sigma } => {
                let normal = Rng::new(seed, key).normal();
                let size = mean_bytes * (sigma * normal - sigma * sigma / 2.0).exp();
                size.clamp(1.0, f64::from(VALUE_BYTES_MAX)) as u32
            }
            Self::Histogram { alias, sizes_bytes } => {
                sizes_bytes[alias.pick(mix64(seed ^ mix64(key)))].clamp(1, VALUE_BYTES_MAX)
            }
        }
    }
}

/// One request, without its keys (those are in the buffer that the caller passed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// What is asked.
    pub class: Class,
    /// Size of the value to store; 0 unless [`Class::Put`].
    pub value_bytes: u32,
    /// Time to live to store with the value, seconds; 0 = none.
    pub ttl_s: u32,
}

/// How often each class is asked, as weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Weight of `get`.
    pub get: f64,
    /// Weight of `put`.
    pub put: f64,
    /// Weight of `multiget`.
    pub multiget: f64,
    /// Weight of `delete`.
    pub delete: f64,
}

impl Shares {
    fn cumulative(self) -> [f64; 4] {
        let weights = [self.get, self.put, self.multiget, self.delete];
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        weights.map(|weight| {
            sum += weight;
            if total > 0.0 {
                sum / total
            } else {
                1.0
            }
        })
    }
}

/// An endless stream of requests with a mix of classes, one popularity and one size distribution.
#[derive(Clone, Debug)]
pub struct Mixture {
    rng: Rng,
    seed: u64,
    cumulative: [f64; 4],
    popularity: Popularity,
    sizes: Sizes,
    /// Keys of a multiget.
    multiget_keys: u32,
    ttl_s: u32,
}

impl Mixture {
    /// `seed` fixes value sizes (so that several streams over one keyspace agree), `stream` the
    /// sequence of requests. `multiget_keys` is the number of keys of each multiget.
    pub fn new(
        (seed, stream): (u64, u64),
        shares: Shares,
        popularity: Popularity,
        sizes: Sizes,
        multiget_keys: u32,
    ) -> Self {
        let rng = Rng::new(seed, stream);
        let cumulative = shares.cumulative();
        Self {
            rng,
            seed,
            cumulative,
            popularity,
            sizes,
            multiget_keys,
            ttl_s: 0,
        }
    }

    /// Changes the mix; what follows is drawn with the new one.
    pub fn set_shares(&mut self, shares: Shares) {
        self.cumulative = shares.cumulative();
    }

    /// Time to live of every put that follows, seconds; 0 = none.
    pub fn set_ttl(&mut self, ttl_s: u32) {
        self.ttl_s = ttl_s;
    }

    /// Number of keys drawn from.
    pub fn keys(&self) -> u64 {
        self.popularity.keys()
    }

    /// Size of the value of `key`, bytes.
    pub fn value_bytes(&self, key: u64) -> u32 {
        self.sizes.of(key, self.seed)
    }

    /// The next request; its keys replace what `keys` holds.
    pub fn draw(&mut self, keys: &mut Vec<u64>) -> Draw {
        keys.clear();
        let class = self.class();
        keys.push(self.popularity.pick(&mut self.rng));
        let (mut value_bytes, mut ttl_s) = (0, 0);
        match class {
            Class::Put => {
                value_bytes = self.value_bytes(keys[0]);
                ttl_s = self.ttl_s;
            }
            Class::Multiget => {
                for _ in 1..self.multiget_keys {
                    keys.push(self.popularity.pick(&mut self.rng));
                }
            }
            Class::Get | Class::Delete => {}
        }
        Draw {
            class,
            value_bytes,
            ttl_s,
        }
    }

    fn class(&mut self) -> Class {
        // Pure loads are common in benches: they pay no random number.
        if self.cumulative[0] >= 1.0 {
            return Class::Get;
        }
        let u = self.rng.unit();
        let index = self.cumulative.iter().position(|c| u < *c).unwrap_or(3);
        Class::ALL[index]
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
