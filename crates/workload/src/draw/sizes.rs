//! How large values are, and how many keys a request has.

use super::Alias;
use crate::rng::Rng;
use policy::generator::mix64;

/// Value sizes in bytes. The size belongs to the key: the same key and seed give the same size.
#[derive(Clone, Debug)]
pub enum Sizes {
    /// Always the same.
    Constant(u32),
    /// Any from the first to the second, alike.
    Uniform(u32, u32),
    /// Log-normal with this mean (bytes) and sigma of the logarithm.
    LogNormal {
        /// Mean in bytes (not the median).
        mean_bytes: f64,
        /// Standard deviation of ln(size).
        sigma: f64,
        /// What is outside is taken for the nearer end: the smallest and the largest size, bytes.
        within_bytes: (u32, u32),
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
pub const VALUE_BYTES_MAX: u32 = 64 << 20;

impl Sizes {
    /// From sizes with their weights; `None` if no weight is above zero.
    pub fn histogram(sizes: &[(u32, f64)]) -> Option<Self> {
        let weights: Vec<f64> = sizes.iter().map(|(_, weight)| *weight).collect();
        let sizes_bytes = sizes.iter().map(|(size, _)| *size).collect();
        let alias = Alias::new(&weights)?;
        Some(Self::Histogram { alias, sizes_bytes })
    }

    /// The size of the value of key `key`, 1 to [`VALUE_BYTES_MAX`].
    pub fn of(&self, key: u64, seed: u64) -> u32 {
        match self {
            Self::Constant(bytes) => *bytes,
            Self::Uniform(min, max) => {
                let span = u64::from(max - min) + 1;
                min + Rng::new(seed, key).below(span) as u32
            }
            Self::LogNormal {
                mean_bytes,
                sigma,
                within_bytes: (min, max),
            } => {
                let size = log_normal(&mut Rng::new(seed, key), *mean_bytes, *sigma);
                size.clamp(f64::from(*min), f64::from(*max)) as u32
            }
            Self::Histogram { alias, sizes_bytes } => {
                sizes_bytes[alias.pick(mix64(seed ^ mix64(key)))].clamp(1, VALUE_BYTES_MAX)
            }
        }
    }
}

/// How many keys a request has: drawn anew for each.
#[derive(Clone, Debug)]
pub enum Counts {
    /// Always as many.
    Constant(u32),
    /// Any from the first to the second, alike.
    Uniform(u32, u32),
    /// Log-normal with this mean and sigma of the logarithm.
    LogNormal {
        /// Mean (not the median).
        mean: f64,
        /// Standard deviation of ln(count).
        sigma: f64,
        /// The least and the most.
        within: (u32, u32),
    },
    /// Any of these, alike; at least one.
    Measured(Vec<u32>),
}

impl Counts {
    /// The next count, at least 1.
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        let count = match self {
            Self::Constant(count) => *count,
            Self::Uniform(min, max) => min + rng.below(u64::from(max - min) + 1) as u32,
            Self::LogNormal {
                mean,
                sigma,
                within: (min, max),
            } => {
                let count = log_normal(rng, *mean, *sigma).round();
                count.clamp(f64::from(*min), f64::from(*max)) as u32
            }
            Self::Measured(counts) => counts[rng.below(counts.len() as u64) as usize],
        };
        count.max(1)
    }
}

/// Log-normal with this mean and sigma of the logarithm.
fn log_normal(rng: &mut Rng, mean: f64, sigma: f64) -> f64 {
    mean * (sigma * rng.normal() - sigma * sigma / 2.0).exp()
}
