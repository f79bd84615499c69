//! Requests drawn from distributions, without an end.

use super::{Class, Counts, Popularity, Shares, Sizes, CLASSES};
use crate::rng::Rng;

/// One request, without its keys (those are in the buffer that the caller passed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// What is asked.
    pub class: Class,
    /// Size of the value to store; 0 unless [`Class::Put`].
    pub value_bytes: u32,
    /// Time to live to store with the value.
    pub ttl: Ttl,
    /// Keys of a [`Class::Range`] at most; 0 for the other classes.
    pub count: u32,
    /// A [`Class::Range`] asks for values as well.
    pub values: bool,
}

impl Draw {
    /// A request of `class` without a value.
    pub fn new(class: Class) -> Self {
        Self {
            class,
            value_bytes: 0,
            ttl: Ttl::None,
            count: 0,
            values: false,
        }
    }

    /// A put of this many bytes.
    pub fn put(value_bytes: u32, ttl: Ttl) -> Self {
        Self {
            value_bytes,
            ttl,
            ..Self::new(Class::Put)
        }
    }
}

/// How long what is put lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ttl {
    /// For ever.
    #[default]
    None,
    /// So many milliseconds.
    Ms(u64),
    /// Until the next multiple of this many milliseconds of the wall clock: all of them expire
    /// together.
    TogetherMs(u64),
}

/// What a stream of requests asks.
#[derive(Clone, Debug)]
pub struct Asks {
    /// How often each class is asked.
    pub shares: Shares,
    /// Which keys are asked for.
    pub popularity: Popularity,
    /// How large values are.
    pub sizes: Sizes,
    /// Keys of a multiget.
    pub multiget: Counts,
    /// Keys of a range.
    pub range: Counts,
    /// A range asks for values as well.
    pub range_values: bool,
    /// How long what is put lives.
    pub ttl: Ttl,
}

impl Asks {
    /// Gets of this many keys, all alike, of 1 KiB.
    pub fn gets(keys: u64) -> Self {
        Self {
            shares: Shares::GETS,
            popularity: Popularity::Uniform(keys),
            sizes: Sizes::Constant(1_024),
            multiget: Counts::Constant(10),
            range: Counts::Constant(100),
            range_values: true,
            ttl: Ttl::None,
        }
    }
}

/// An endless stream of requests.
#[derive(Clone, Debug)]
pub struct Mixture {
    rng: Rng,
    seed: u64,
    cumulative: [f64; CLASSES],
    asks: Asks,
}

impl Mixture {
    /// `seed` fixes value sizes (so that several streams over one keyspace agree), `stream` the
    /// sequence of requests.
    pub fn new(seed: u64, stream: u64, asks: Asks) -> Self {
        Self {
            rng: Rng::new(seed, stream),
            seed,
            cumulative: asks.shares.cumulative(),
            asks,
        }
    }

    /// The same with a sequence of its own.
    pub fn fork(&self, stream: u64) -> Self {
        let mut rng = self.rng.clone();
        Self {
            rng: Rng::new(rng.bits(), stream),
            ..self.clone()
        }
    }

    /// Changes the mix; what follows is drawn with the new one.
    pub fn set_shares(&mut self, shares: Shares) {
        self.cumulative = shares.cumulative();
    }

    /// What is asked before anything changes the mix.
    pub fn shares(&self) -> Shares {
        self.asks.shares
    }

    /// Number of keys drawn from.
    pub fn keys(&self) -> u64 {
        self.asks.popularity.keys()
    }

    /// Size of the value of `key`, bytes.
    pub fn value_bytes(&self, key: u64) -> u32 {
        self.asks.sizes.of(key, self.seed)
    }

    /// The next request, at `at_ns`; its keys replace what `keys` holds.
    pub fn draw(&mut self, at_ns: u64, keys: &mut Vec<u64>) -> Draw {
        keys.clear();
        let class = self.class();
        let (asks, rng) = (&mut self.asks, &mut self.rng);
        keys.push(asks.popularity.pick(rng, at_ns));
        match class {
            Class::Put => Draw::put(asks.sizes.of(keys[0], self.seed), asks.ttl),
            Class::Multiget => {
                for _ in 1..asks.multiget.draw(rng) {
                    keys.push(asks.popularity.pick(rng, at_ns));
                }
                Draw::new(class)
            }
            Class::Range => Draw {
                count: asks.range.draw(rng),
                values: asks.range_values,
                ..Draw::new(class)
            },
            Class::Get
            | Class::Delete
            | Class::Increment
            | Class::Bitcount
            | Class::Ping
            | Class::Invalid => Draw::new(class),
        }
    }

    fn class(&mut self) -> Class {
        // Pure loads are common in benches: they pay no random number.
        if self.cumulative[0] >= 1.0 {
            return Class::Get;
        }
        let u = self.rng.unit();
        let index = self.cumulative.iter().position(|c| u < *c);
        Class::ALL[index.unwrap_or(CLASSES - 1)]
    }
}
