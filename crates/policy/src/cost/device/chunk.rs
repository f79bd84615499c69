//! How large the pieces are in which a device is given large I/Os.
//!
//! Whoever comes waits for a piece that is under way, so pieces should be short; each has a cost of
//! its own, so they should be long. Cake's authors chose 64 KiB by hand (5.1). Here the measured
//! rates decide. An I/O of `b` bytes takes `t(b)`, one over its rate, and has the bandwidth `b /
//! t(b)`.
//!
//! On flash a short piece is as good as a long one from some size on, and the smallest that is
//! nearly as good is taken. A disk with an arm comes near its bandwidth only with pieces of many
//! MiB, for which others wait a tenth of a second. There it is the piece with the most of both,
//!
//! ```text
//! b / t(b)  over  t(small) + t(b),
//! ```
//!
//! the bandwidth of what is read in pieces over what a small read takes beside it: the wait for a
//! piece, and its own time. That is Kleinrock's power (Power and Deterministic Rules of Thumb for
//! Probabilistic Problems in Computer Communications, ICC 1979) of the two together. Where the time
//! is `s + b / B`, it is highest at `b = sqrt(2) s B`: about half as long again under the head as
//! on the way there. It is flat there: a factor of 1.4 loses 3 % of it.

use super::Point;

/// A piece with this part of the bandwidth of ever larger ones is nearly as good as they.
const ENOUGH: f64 = 0.9;
/// No piece is larger.
pub const CHUNK_BYTES_MAX: u64 = 4 << 20;

/// What is read ahead of a range at most, by a server and by its RocksDB: no read of a range has
/// more bytes. Beyond this a device gives no more a second.
pub const AHEAD_BYTES_MAX: u64 = 256 << 10;

/// The size of pieces, in bytes, by the rates of I/Os of one kind: from the smallest size measured
/// to [`CHUNK_BYTES_MAX`] (or the largest size measured, if that is more). Sizes must grow and
/// rates be positive; beyond the largest size an I/O takes longer by its bytes alone. `None`:
/// nothing was measured.
#[must_use]
pub fn chunk_bytes(rates: &[Point]) -> Option<u64> {
    let (small, large) = (rates.first()?, rates.last()?);
    let [small_s, large_s] = [small, large].map(|point| 1.0 / point.per_s);
    let longer_s = large_s - small_s;
    let stream_per_s = match longer_s > 0.0 {
        true => (large.bytes - small.bytes) as f64 / longer_s,
        false => f64::INFINITY,
    };
    let bandwidth = |point: &Point| point.bytes as f64 * point.per_s;
    let most = rates.iter().map(bandwidth).fold(stream_per_s, f64::max);
    if let Some(enough) = rates.iter().find(|one| bandwidth(one) >= ENOUGH * most) {
        return Some(enough.bytes);
    }
    let beyond = std::iter::successors(Some(large.bytes.saturating_mul(2)), |bytes| {
        Some(bytes.saturating_mul(2))
    });
    let beyond = beyond
        .take_while(|bytes| *bytes <= CHUNK_BYTES_MAX)
        .map(|bytes| {
            let more_s = (bytes - large.bytes) as f64 / stream_per_s;
            (bytes, large_s + more_s)
        });
    let measured = rates.iter().map(|one| (one.bytes, 1.0 / one.per_s));
    let power = |(bytes, takes_s): (u64, f64)| bytes as f64 / takes_s / (small_s + takes_s);
    let best = measured
        .chain(beyond)
        .max_by(|one, other| power(*one).total_cmp(&power(*other)));
    best.map(|(bytes, _)| bytes)
}
