//! From what a scenario says of keys and sizes to what they are drawn from. Where a real trace
//! was measured instead, its name is the error: reading it is for whoever has traces.

use crate::draw::{Counts, Popularity, Sizes};

use super::behaviour::{self, Behaviour, Favour, Values};

impl Behaviour {
    /// Which keys are asked for.
    ///
    /// # Errors
    /// The name of the trace that says it.
    pub fn drawn_keys(&self) -> Result<Popularity, &str> {
        let keys = self.keys.count;
        let zipf = |alpha| Popularity::zipf(alpha, keys).unwrap_or(Popularity::Uniform(keys));
        Ok(match &self.popularity {
            Favour::Uniform => Popularity::Uniform(keys),
            Favour::Zipf(alpha) => zipf(*alpha),
            Favour::Hotspot { keys: hot, share } => Popularity::Hotspot {
                hot: *hot,
                share: *share,
                keys,
            },
            Favour::Shifting { alpha, every, by } => Popularity::Shifting {
                of: Box::new(zipf(*alpha)),
                every_ns: super::build::ns(*every).max(1),
                by: (by * keys as f64).ceil() as u64,
            },
            Favour::Sequential => Popularity::Sequential { keys, next: 0 },
            Favour::Trace(name) => return Err(name),
        })
    }
}

impl Values {
    /// How large values are.
    ///
    /// # Errors
    /// The name of the trace that says it.
    pub fn drawn(&self) -> Result<Sizes, &str> {
        Ok(match self {
            Values::Constant(bytes) => Sizes::Constant(*bytes),
            Values::Uniform(min, max) => Sizes::Uniform(*min, *max),
            Values::LogNormal {
                mean,
                sigma,
                min,
                max,
            } => Sizes::LogNormal {
                mean_bytes: *mean,
                sigma: *sigma,
                within_bytes: (*min, *max),
            },
            Values::Histogram(sizes) => Sizes::histogram(sizes).unwrap_or(Sizes::Constant(1)),
            Values::Trace(name) => return Err(name),
        })
    }
}

impl behaviour::Counts {
    /// How many keys a request has.
    ///
    /// # Errors
    /// The name of the trace that says it.
    pub fn drawn(&self) -> Result<Counts, &str> {
        Ok(match self {
            Self::Constant(keys) => Counts::Constant(*keys),
            Self::Uniform(min, max) => Counts::Uniform(*min, *max),
            Self::LogNormal {
                mean,
                sigma,
                min,
                max,
            } => Counts::LogNormal {
                mean: *mean,
                sigma: *sigma,
                within: (*min, *max),
            },
            Self::Trace(name) => return Err(name),
        })
    }
}
