//! How much other work may be out beside requests with due times, in steps.

use super::auto::{AutoOptions, CHUNK_BYTES_MIN, NEEDS_MAX, PIECE_PART};
use super::Piece;
use crate::cost::Nanos;
use std::fmt;

/// More than this gains an arm nothing: the drive has then two to choose from while one is moved.
const ARM_OUT_MAX: u32 = 3;
/// An arm seeks for each piece if one takes so many times as long as its bytes would.
const SEEKS: f64 = 3.0;
/// Among so many I/Os in a drive that takes the nearest first, one in a hundred is there for this
/// many times as long, a piece, as one takes alone (docs/theory/latency.md, 5).
const REST: f64 = 3.2;
/// Of fewer to choose from an arm does no more than with groups, and requests wait longer.
const AMONG_MIN: u32 = 4;

/// When requests go to an arm beside other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// By themselves when they are due, and also where a scan ends.
    Between,
    /// By themselves when they are due. Where no arm seeks, with what else is out.
    Due,
    /// Among other work as they come, and `out` counts them, too: where an arm seeks for each piece
    /// anyway, it does most with many to choose from.
    Among,
}

/// One step: each lets others have more, and lets a request wait longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gear {
    /// The size of pieces.
    pub(super) chunk_bytes: u64,
    pub(super) order: Order,
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
            order: match options.seeks {
                true => Order::Between,
                false => Order::Due,
            },
            out: match options.seeks {
                true => 1,
                false => (options.depth * 3 / 4).max(1),
            },
        }
    }

    /// Whether requests go among other work.
    pub(super) fn is_among(&self) -> bool {
        self.order == Order::Among
    }

    /// The next one, for as long as there is one.
    pub(super) fn higher(&self, options: &AutoOptions) -> Option<Self> {
        if self.is_among() {
            let out = self.out + (self.out / 3).max(1);
            return (out <= options.depth).then_some(Gear { out, ..*self });
        }
        if self.chunk_bytes < options.most_bytes() {
            let chunk_bytes = self.chunk_bytes * 2;
            return Some(Gear {
                chunk_bytes,
                ..*self
            });
        }
        if self.order == Order::Between {
            return Some(Gear {
                order: Order::Due,
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
        if self.is_among() {
            let out = self.out * 3 / 4;
            let (order, out) = match out >= AMONG_MIN {
                true => (Order::Among, out),
                false => (Order::Between, 1),
            };
            return Some(Gear {
                order,
                out,
                ..*self
            });
        }
        let out = match options.seeks {
            true => self.out - 1,
            false => (self.out * 3 / 4).min(self.out - 1),
        };
        if out > 0 {
            return Some(Gear { out, ..*self });
        }
        if options.seeks && self.order == Order::Due {
            return Some(Gear {
                order: Order::Between,
                ..*self
            });
        }
        let chunk_bytes = self.chunk_bytes / 2;
        (chunk_bytes >= CHUNK_BYTES_MIN).then_some(Gear {
            chunk_bytes,
            ..*self
        })
    }

    /// With requests among as many pieces as one of the tightest promise has time for, if the arm
    /// seeks for each of them: such a `piece` was out now, those beside it included. REQUIRES:
    /// requests go apart.
    pub(super) fn among(
        &self,
        options: &AutoOptions,
        tightest_ns: Nanos,
        piece: Piece,
    ) -> Option<Self> {
        let alone_ns = piece.ns as f64 / f64::from(self.out);
        let bytes_ns = piece.bytes as f64 / options.stream_bytes_per_s * 1e9;
        let seeks = options.seeks && alone_ns > SEEKS * bytes_ns;
        let most = NEEDS_MAX * tightest_ns as f64 / (REST * alone_ns);
        let out = (most as u32).min(options.depth);
        // Smaller ones would be more seeks.
        let bytes = (alone_ns / 1e9 * options.stream_bytes_per_s) as u64;
        let bytes = bytes.clamp(self.chunk_bytes, options.most_bytes());
        (seeks && out >= AMONG_MIN).then_some(Gear {
            chunk_bytes: 1 << bytes.ilog2(),
            order: Order::Among,
            out,
        })
    }

    /// How many times as long requests take in another gear, where they go among others in both.
    pub(super) fn slower_in(&self, other: &Gear) -> f64 {
        f64::from(other.out) / f64::from(self.out)
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
        f.write_str(match self.order {
            Order::Between => ", and requests go where a scan ends",
            Order::Due => "",
            Order::Among => ", and requests go among them",
        })
    }
}
