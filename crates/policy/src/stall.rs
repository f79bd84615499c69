//! How long a tenant's writes pause so that its database never stalls them.
//!
//! RocksDB delays writers when level 0 has too many files, when compaction is too far behind or
//! when too many memtables wait for their flush, and then it does so hard: nothing is written for
//! whole seconds. Those triggers are known, and so is how near a database is to each. From
//! [`PAUSED_FROM`] of the way on, a tenant that wrote for `t` pauses so long that it writes for no
//! more than
//!
//! ```text
//! (1 - u)^4      u = (pressure - 1/2) / (1/2)
//! ```
//!
//! of the time: all of it at first, smoothly less towards the brink. The power is the least that
//! holds a writer a hundred times as fast as its flushes under the brink (`tests/stall.rs`): they
//! take eight memtables at once. There is no estimate of how fast the debt is worked off, which is
//! lumpy (a compaction takes many files at once) and of which no smoothing is both quick and calm:
//! the pressure settles where as much is written as is worked off. Cockroach's admission control,
//! which paces by such an estimate, has one number for a node; here each database has its own debt,
//! and so has each tenant.

use crate::cost::Nanos;

/// Writes pause from this part of the way to the brink on.
pub const PAUSED_FROM: f64 = 0.5;
/// Beyond this part of the rest nothing gets worse: a tenant keeps a ten-thousandth of its time,
/// and RocksDB does what is left.
const RAMP_END: f64 = 0.9;
/// A pause is no longer than this: by then the debt may be another.
pub const PAUSE_MAX_NS: Nanos = 1_000_000_000;

/// What a database owes; or at what debt it delays writers, then all > 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    /// Files of level 0.
    pub files: u64,
    /// Memtables that wait for their flush.
    pub memtables: u64,
    /// Bytes that compaction is behind.
    pub compaction_bytes: u64,
}

/// How near a database is to delaying its writers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    /// Part of the way: 0 owes nothing, at 1 it delays.
    pub part: f64,
    /// By what.
    pub cause: Cause,
}

/// What presses most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Files of level 0.
    Files,
    /// Memtables.
    Memtables,
    /// Compaction.
    Compaction,
}

/// The pressure of a debt: the worst of the three. `brink` is where the database delays writers.
#[must_use]
pub fn pressure(debt: &Debt, brink: &Debt) -> Pressure {
    let part = |owed: u64, brink: u64| owed as f64 / brink.max(1) as f64;
    let parts = [
        (part(debt.memtables, brink.memtables), Cause::Memtables),
        (
            part(debt.compaction_bytes, brink.compaction_bytes),
            Cause::Compaction,
        ),
    ];
    let files = (part(debt.files, brink.files), Cause::Files);
    let worse =
        |worst: (f64, Cause), next: (f64, Cause)| if next.0 > worst.0 { next } else { worst };
    let (part, cause) = parts.into_iter().fold(files, worse);
    Pressure { part, cause }
}

impl Pressure {
    /// How long to pause after a write that took so long, at most [`PAUSE_MAX_NS`].
    #[must_use]
    pub fn pause_ns(self, wrote_ns: Nanos) -> Nanos {
        let ramp = (self.part - PAUSED_FROM) / (1.0 - PAUSED_FROM);
        let left = 1.0 - ramp.clamp(0.0, RAMP_END);
        let pause = wrote_ns as f64 * (left.powi(-4) - 1.0);
        (pause as Nanos).min(PAUSE_MAX_NS)
    }
}

/// The longest pause after a write of this many bytes, this long after it was due, that leaves a
/// writer what it was promised, bytes per second; 0: nothing. Flushing and compacting that much was
/// promised with it, so that a debt may grow while a compaction lasts and not beyond.
#[must_use]
pub fn promised_pause_ns(since_due_ns: Nanos, bytes: u64, promised_per_s: u64) -> Nanos {
    let due_ns = u128::from(bytes) * 1_000_000_000;
    let due_ns = due_ns.checked_div(u128::from(promised_per_s));
    let due_ns = due_ns.map_or(Nanos::MAX, |ns| Nanos::try_from(ns).unwrap_or(Nanos::MAX));
    due_ns.saturating_sub(since_due_ns)
}
