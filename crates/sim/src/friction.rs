//! What a cluster does to whoever plans for it, and a model leaves out unless it is asked for.

use policy::Nanos;

/// Late messages and counters, clocks that differ, deaths that nobody was told of, moves that cost.
/// Nothing of it by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Friction {
    /// Mean of what a message takes beyond [`crate::Cluster::one_way_ns`]; exponential, so that
    /// messages overtake one another.
    pub jitter_ns: Nanos,
    /// Standard deviation of the senders' clocks, which tags compare.
    pub skew_ns: Nanos,
    /// After this long a sender gives up an operation, and all are told that a node is dead. 0:
    /// connections break at once.
    pub notice_ns: Nanos,
    /// What a probe takes of a node's processors. It waits to be looked at, like all that comes.
    pub probe_ns: Nanos,
    /// How old a node's report may be when the controller decides, and how long a decision is on
    /// its way. At most half a [`crate::Control::interval_ns`].
    pub late_ns: Nanos,
    /// Moves of partitions; `None`: they take no time and cost nothing.
    pub copy: Option<Copying>,
}

/// How partitions are copied to where they move. A node takes part in one copy at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copying {
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// The part of either node's speed that it takes, 0 to below 1.
    pub load: f64,
}
