//! How many keys requests name.

use workload::draw::Alias;

/// How many keys a request names.
#[derive(Clone, Debug)]
pub struct KeyCount {
    counts: Vec<u32>,
    weights: Vec<f64>,
    alias: Alias,
}

impl KeyCount {
    /// From (count, weight) pairs; `None` unless there is a weight above zero.
    #[must_use]
    pub fn new(pairs: impl IntoIterator<Item = (u32, f64)>) -> Option<Self> {
        let (counts, weights): (Vec<u32>, Vec<f64>) = pairs.into_iter().unzip();
        let alias = Alias::new(&weights)?;
        Some(KeyCount {
            counts,
            weights,
            alias,
        })
    }

    /// Draws one, from 64 random bits.
    #[must_use]
    pub fn pick(&self, bits: u64) -> u32 {
        self.counts[self.alias.pick(bits)].max(1)
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let total: f64 = self.weights.iter().sum();
        let pairs = self.counts.iter().zip(&self.weights);
        pairs.map(|(c, w)| f64::from(*c) * w).sum::<f64>() / total
    }

    /// Smallest number of keys that a share `p` of the requests does not exceed.
    #[must_use]
    pub fn quantile(&self, p: f64) -> u32 {
        let total: f64 = self.weights.iter().sum();
        let mut pairs: Vec<_> = self.counts.iter().zip(&self.weights).collect();
        pairs.sort_by_key(|(count, _)| **count);
        let mut sum = 0.0;
        for (count, weight) in &pairs {
            sum += *weight;
            if sum >= p * total {
                return **count;
            }
        }
        pairs.last().map_or(1, |(count, _)| **count)
    }
}
