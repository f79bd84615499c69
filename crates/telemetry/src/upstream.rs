//! What is shown of the engine behind this server.

use serde::{Deserialize, Serialize};

/// Connections to the engine behind this server, of all cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineLinks {
    /// Open ones.
    pub open: u64,
    /// Those of them that one tenant has for itself at present, because it moves large values.
    pub apart: u64,
    /// Large replies so far that nobody foresaw. The connection on which one begins is its tenant's
    /// own from then on, and the others use another.
    pub turned: u64,
    /// Requests that wait at the engine at present until something comes for them.
    pub waiting: u64,
}

/// Replicas of the cluster behind this server, while some tenant reads from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineReplicas {
    /// Those of which it is known how far behind they are at most.
    pub known: u64,
    /// Those of which it is not: nothing is read there.
    pub unknown: u64,
    /// By how much the furthest of the known ones is behind at most, ms.
    pub lag_ms: u64,
    /// Requests that were sent to replicas since the start.
    pub reads: u64,
}
