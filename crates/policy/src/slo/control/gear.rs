//! How much other work may be out beside requests with due times, in steps.

use super::auto::{AutoOptions, CHUNK_BYTES_MIN, PIECE_PART};
use crate::cost::Nanos;
use std::fmt;

/// More than this gains an arm nothing: the drive has then two to choose from while one is moved.
const ARM_OUT_MAX: u32 = 3;

/// One step: each lets others have more, and lets a request wait longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gear {
    /// The size of pieces.
    pub(super) chunk_bytes: u64,
    /// Requests also go where a scan ends, due or not.
    pub(super) between: bool,
    /// Permits.
    pub(super) out: u32,
}

impl Gear {
    /// Where nothing is known but the tightest promise.
    pub(super) fn first(options: &AutoOptions, tightest_ns: Option<Nanos>) -> Self {
        let (least, most) = (CHUNK_BYTES_MIN, options.most_bytes());
        let bytes = tightest_ns.map_or(most as f64, |ns| {
            options.stream_bytes_per_s * ns as f64 / 1e9 * PIECE_PART
        });
        Gear {
            chunk_bytes: 1 << (bytes as u64).clamp(least, most).ilog2(),
            between: options.seeks,
            out: match options.seeks {
                true => 1,
                false => (options.depth * 3 / 4).max(1),
            },
        }
    }

    /// The next one, for as long as there is one.
    pub(super) fn higher(&self, options: &AutoOptions) -> Option<Self> {
        if self.chunk_bytes < options.most_bytes() {
            let chunk_bytes = self.chunk_bytes * 2;
            return Some(Gear {
                chunk_bytes,
                ..*self
            });
        }
        if self.between {
            return Some(Gear {
                between: false,
                ..*self
            });
        }
        let most = match options.seeks {
            true => ARM_OUT_MAX,
            false => options.depth,
        };
        let out = match options.seeks {
            true => self.out + 1,
            // In steps as large as those down: of dozens, one more is next to nothing.
            false => (self.out + (self.out / 3).max(1)).min(most),
        };
        (self.out < out && out <= most).then_some(Gear { out, ..*self })
    }

    /// The one before, for as long as there is one.
    pub(super) fn lower(&self, options: &AutoOptions) -> Option<Self> {
        let out = match options.seeks {
            true => self.out - 1,
            false => (self.out * 3 / 4).min(self.out - 1),
        };
        if out > 0 {
            return Some(Gear { out, ..*self });
        }
        if options.seeks && !self.between {
            return Some(Gear {
                between: true,
                ..*self
            });
        }
        let chunk_bytes = self.chunk_bytes / 2;
        (chunk_bytes >= CHUNK_BYTES_MIN).then_some(Gear {
            chunk_bytes,
            ..*self
        })
    }

    /// By how much longer a request can wait for what is out, at most, in ns, if a piece takes
    /// `piece_ns` now, those beside it included.
    pub(super) fn longer_ns(&self, other: &Gear, piece_ns: Nanos) -> f64 {
        let more = other.bytes_out() - self.bytes_out();
        (more * piece_ns as f64 / self.bytes_out()).max(0.0)
    }

    /// What others may have out, bytes.
    pub(super) fn bytes_out(&self) -> f64 {
        f64::from(self.out) * self.chunk_bytes as f64
    }
}

impl fmt::Display for Gear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = self.chunk_bytes >> 10;
        write!(f, "{} permits and pieces of {kib} KiB", self.out)?;
        match self.between {
            true => f.write_str(", and requests go where a scan ends"),
            false => Ok(()),
        }
    }
}
