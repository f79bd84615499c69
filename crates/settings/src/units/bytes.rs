//! Amounts of data.

use std::fmt;
use std::str::FromStr;

use super::number::{largest, scale_of, split};

/// An amount of data in whole bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(u64);

/// Binary units first: a value that both kinds divide is written in them.
pub(super) const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

impl Bytes {
    /// That many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// In bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = split(text, "64MiB")?;
        let unit = if parts.unit == "KB" { "kB" } else { parts.unit };
        let scale = scale_of(unit, &UNITS, text, "a unit of data")?;
        parts.times(scale, text, "bytes").map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = largest(self.0, &UNITS);
        write!(f, "{count}{unit}")
    }
}
