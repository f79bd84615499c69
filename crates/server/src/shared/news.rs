//! What anybody may tell a core.

use std::sync::Arc;

use crate::tenants::{ConnectionKey, Tenant, Unblocked};

/// Something that a core takes note of.
pub enum News {
    /// Commits of this tenant have ended, well or badly.
    Committed(Arc<Tenant>),
    /// A tenant is new or its settings have changed.
    Configure(Arc<Tenant>),
    /// A tenant is gone: its connections are closed, its queues dropped.
    Forget(Arc<Tenant>),
    /// This connection is to be closed, if it is marked so.
    Kill(ConnectionKey),
    /// The request of this connection that waits at an engine is to wait no longer.
    Unblock(ConnectionKey, Unblocked),
    /// A tenant has ended its pause (`CLIENT UNPAUSE`).
    Unpaused,
    /// Settings that all cores share have changed.
    Tuned,
    /// A controller treats the handlers' work otherwise.
    Steered,
    /// How long requests have waited that were promised something is to be seen.
    Look,
    /// The engine behind this server may have other commands, or be elsewhere.
    Engine,
    /// Finish what is under way, take nothing new, and end.
    Drain,
    /// End now.
    Stop,
}

/// The cores, as those see them who are not one.
pub trait Cores: Send + Sync {
    /// Leaves news for a core, which comes to read it. Does not wait.
    fn tell(&self, core: usize, news: News);
}
