//! So many a second, a minute or an hour.

use std::fmt;
use std::str::FromStr;

use super::bytes::Bytes;
use super::number::{largest, scale_of, split};

/// The time that a rate counts over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl Per {
    const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    const fn name(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
        }
    }

    const fn seconds(self) -> f64 {
        match self {
            Self::Second => 1.0,
            Self::Minute => 60.0,
            Self::Hour => 3_600.0,
        }
    }

    fn split(text: &str, example: &str) -> Result<(String, Self), String> {
        let Some((amount, per)) = text.rsplit_once('/') else {
            return Err(format!(
                "{text:?} does not say per what; write it as in {example:?}"
            ));
        };
        let per = per.trim();
        match Self::ALL.into_iter().find(|known| known.name() == per) {
            Some(per) => Ok((amount.to_string(), per)),
            None => Err(format!(
                "\"/{per}\" in {text:?} is not a time to count over: /s, /min, /h"
            )),
        }
    }
}

/// Requests in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    count: u64,
    per: Per,
}

const COUNTS: [(&str, u64); 3] = [("M", 1_000_000), ("k", 1_000), ("", 1)];

impl Rate {
    /// That many requests in that time.
    pub const fn new(count: u64, per: Per) -> Self {
        Self { count, per }
    }

    /// The rate of that many requests per second, if it can be written.
    pub fn of(per_s: f64) -> Option<Self> {
        let (count, per) = whole(per_s)?;
        Some(Self { count, per })
    }

    /// Requests per second in words: as a rate is written, or with a fraction.
    pub fn words(per_s: f64) -> String {
        Self::of(per_s).map_or_else(|| format!("{per_s}/s"), |rate| rate.to_string())
    }

    /// Requests per second.
    pub fn per_s(self) -> f64 {
        self.count as f64 / self.per.seconds()
    }
}

/// The whole number, and the shortest time that it counts over, that come to exactly that many a
/// second.
fn whole(per_s: f64) -> Option<(u64, Per)> {
    Per::ALL.into_iter().find_map(|per| {
        let count = (per_s * per.seconds()).round() as u64;
        (count as f64 / per.seconds() == per_s).then_some((count, per))
    })
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (amount, per) = Per::split(text, "2000/s")?;
        let parts = split(&amount, "2000/s")?;
        let scale = scale_of(
            parts.unit,
            &COUNTS,
            text,
            "a count (none, k for thousand, M for million)",
        )?;
        let count = parts
            .times(scale, text, "requests")
            .map_err(|why| format!("{why} or a longer time, as 30/min for 0.5/s"))?;
        Ok(Self { count, per })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per.name())
    }
}

/// Bytes in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRate {
    bytes: u64,
    per: Per,
}

impl ByteRate {
    /// That many bytes in that time.
    pub const fn new(bytes: u64, per: Per) -> Self {
        Self { bytes, per }
    }

    /// The rate of that many bytes per second, if it can be written.
    pub fn of(per_s: f64) -> Option<Self> {
        let (bytes, per) = whole(per_s)?;
        Some(Self { bytes, per })
    }

    /// Bytes per second in words: as a rate is written, or with a fraction.
    pub fn words(per_s: f64) -> String {
        Self::of(per_s).map_or_else(|| format!("{per_s}/s"), |rate| rate.to_string())
    }

    /// Bytes per second.
    pub fn per_s(self) -> f64 {
        self.bytes as f64 / self.per.seconds()
    }
}

impl FromStr for ByteRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (amount, per) = Per::split(text, "1250MiB/s")?;
        let bytes: Bytes = amount
            .parse()
            .map_err(|why: String| format!("{why} (in {text:?})"))?;
        Ok(Self {
            bytes: bytes.get(),
            per,
        })
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = largest(self.bytes, &super::bytes::UNITS);
        write!(f, "{count}{unit}/{}", self.per.name())
    }
}
