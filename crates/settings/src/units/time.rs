//! Lengths of time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::number::{largest, scale_of, split};

/// A length of time in whole nanoseconds, up to 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Time {
    /// A time of that many nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// In nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// In milliseconds, rounded down.
    pub const fn ms(self) -> u64 {
        self.0 / 1_000_000
    }

    /// As the standard library's type.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = split(text, "20ms")?;
        if parts.unit == "m" {
            return Err(format!(
                "\"m\" in {text:?} could mean minutes or months; write \"min\" for minutes"
            ));
        }
        let unit = if parts.unit == "µs" {
            "us"
        } else {
            parts.unit
        };
        let scale = scale_of(unit, &UNITS, text, "a unit of time")?;
        parts.times(scale, text, "nanoseconds").map(Self)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let (count, unit) = largest(self.0, &UNITS);
        write!(f, "{count}{unit}")
    }
}
