//! How a load behaves: when it asks, what it asks, and how it treats its connections.

use std::path::PathBuf;
use std::time::Duration;

use crate::draw::Shares;

/// Everything that a phase can change.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// When requests leave.
    pub pace: Pace,
    /// Connections; 0: none.
    pub connections: usize,
    /// What is asked.
    pub mix: Shares,
    /// Which keys there are.
    pub keys: Keys,
    /// Which of them are asked for.
    pub popularity: Favour,
    /// Sizes of values.
    pub values: Values,
    /// Keys of a multiget.
    pub multiget: Counts,
    /// Keys of a range.
    pub range: Counts,
    /// A range asks for values too.
    pub range_values: bool,
    /// Time to live of what is put.
    pub ttl: Option<Duration>,
    /// All that is put in one `ttl` expires at the same moment.
    pub ttl_together: bool,
    /// How connections introduce themselves.
    pub handshake: Handshake,
    /// Replies after which a connection is closed and made anew; 0: never.
    pub reconnect_after: u64,
    /// Replies are read no faster than this on each connection, bytes per second.
    pub read_rate: Option<f64>,
    /// The named way to misbehave that it follows.
    pub misbehave: Option<String>,
}

/// When requests leave.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// When the last ones were answered.
    Closed {
        /// Requests sent at once on a connection, at least 1.
        depth: usize,
    },
    /// When they are due.
    Open {
        /// When they are due.
        arrivals: Arrivals,
        /// A crowd on top.
        spike: Option<Spike>,
        /// Unanswered requests on a connection beyond which no more are sent.
        outstanding: usize,
    },
}

/// When the requests of an open loop are due.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// At random, so many a second.
    Poisson(f64),
    /// Evenly spaced, so many a second.
    Constant(f64),
    /// At random, along a curve.
    Curve(Curved),
    /// As in a trace, which says what is asked as well.
    Trace(Replayed),
}

/// A crowd.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spike {
    /// When it begins, from the end of the warm-up.
    pub at: Duration,
    /// How long it lasts.
    pub length: Duration,
    /// By what it multiplies the rate.
    pub times: f64,
    /// When it comes again.
    pub every: Option<Duration>,
}

/// A rate that changes with time.
#[derive(Clone, Debug, PartialEq)]
pub struct Curved {
    /// Where it comes from.
    pub from: CurveFrom,
    /// Where in it the run begins, in its own time.
    pub offset: Duration,
    /// How many times faster its time passes.
    pub speed_up: f64,
    /// How its height is set.
    pub scale: Scale,
}

/// Where a curve comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum CurveFrom {
    /// A series of [`crate::trace::rate`].
    Series(String),
    /// A text file with a rate on each line.
    File {
        /// The file.
        path: PathBuf,
        /// How long a line holds.
        step: Duration,
    },
}

/// How the height of a curve is set, requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// As measured.
    Own,
    /// Its mean is this.
    Mean(f64),
    /// Its highest step is this.
    Peak(f64),
}

/// A trace to replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// One of [`crate::replay::STREAMS`].
    pub name: String,
    /// How many times faster its time passes.
    pub speed_up: f64,
    /// Multiplies the rate of those that have a rate curve.
    pub rate_scale: f64,
}

/// Which keys there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// How many.
    pub count: u64,
    /// Their length, bytes.
    pub bytes: u16,
    /// Loads of a tenant with the same word share their keys.
    pub space: String,
    /// They are stored before the run.
    pub preload: bool,
}

/// Which keys are asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Favour {
    /// All alike.
    Uniform,
    /// Zipf's law with this exponent.
    Zipf(f64),
    /// A few hot keys.
    Hotspot {
        /// How many.
        keys: u64,
        /// Their part of the requests.
        share: f64,
    },
    /// Zipf's law whose hot keys move.
    Shifting {
        /// Its exponent.
        alpha: f64,
        /// How long it stays.
        every: Duration,
        /// By what part of the keys it then moves on.
        by: f64,
    },
    /// One after the other.
    Sequential,
    /// As measured in this workload of `kv-meta-cachelib`.
    Trace(String),
}

/// Sizes of values, bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// All the same.
    Constant(u32),
    /// Any from the first to the second.
    Uniform(u32, u32),
    /// Log-normal.
    LogNormal {
        /// Mean, not median.
        mean: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// No smaller than this.
        min: u32,
        /// No larger than this.
        max: u32,
    },
    /// As measured in this workload of `kv-meta-cachelib`.
    Trace(String),
    /// These sizes, with their weights.
    Histogram(Vec<(u32, f64)>),
}

/// How many keys a request has.
#[derive(Clone, Debug, PartialEq)]
pub enum Counts {
    /// Always as many.
    Constant(u32),
    /// Any from the first to the second.
    Uniform(u32, u32),
    /// Log-normal.
    LogNormal {
        /// Mean, not median.
        mean: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// No fewer than this.
        min: u32,
        /// No more than this.
        max: u32,
    },
    /// The sizes of this trace's requests.
    Trace(String),
}

/// How connections introduce themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// AUTH, HELLO, tag.
    Full,
    /// Not at all.
    None,
    /// With half a command, and then never again.
    Partial,
}

impl Handshake {
    /// The words of the language.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("full", Self::Full),
        ("none", Self::None),
        ("partial", Self::Partial),
    ];
}
