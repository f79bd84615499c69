//! What a core is told by others.

use std::sync::Arc;

use policy::{Nanos, PrincipalId};
use stage::{Consumed, Permit};

use super::handler::Finished;
use super::stream::Piece;
use super::unit::Unit;
use crate::connection::Connection;
use crate::shared::OpenError;
use crate::tenants::{Checked, Place, Tenant};

/// Which connection of a core, safe against the place being used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionKey {
    /// Its place in the core's slab.
    pub index: u32,
    /// How often that place had been used before.
    pub generation: u32,
}

impl ConnectionKey {
    /// The key as one number.
    pub fn packed(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The key that [`ConnectionKey::packed`] made this number of.
    pub fn unpacked(packed: u64) -> Self {
        Self {
            index: packed as u32,
            generation: (packed >> 32) as u32,
        }
    }
}

/// A message to a core.
pub enum Message {
    /// A connection, new or from another core, lives here from now on.
    Adopt(Box<Connection>),
    /// What this connection waited for (a latched key, room in the commit log) may be over.
    Retry(ConnectionKey),
    /// A handler has ended this connection's work.
    Finished(ConnectionKey, Box<Finished>),
    /// A piece of this connection's reply, which is too large to be made as a whole.
    Piece(ConnectionKey, Box<Piece>),
    /// This connection's reply is too large to be made as a whole, and as many of those as may be are under way; with the
    /// handler's permit and time, ns.
    Crowded(ConnectionKey, Box<Unit>, Permit, Nanos),
    /// A place for this connection's large reply; nobody's if the connection has gone.
    Placed(ConnectionKey, Place),
    /// Commits of this tenant have ended, well or badly.
    Committed(Arc<Tenant>),
    /// The database that this connection waits for is open, or cannot be opened.
    Opened(ConnectionKey, Option<OpenError>),
    /// The slow password check of this connection has ended.
    LoggedIn(ConnectionKey, Checked),
    /// A tenant is new or its settings have changed.
    Configure(Arc<Tenant>),
    /// A tenant is gone: its connections are closed, its queues dropped.
    Forget(Arc<Tenant>),
    /// What another core's tenants have used since it last told.
    Consumed(Arc<Vec<Consumed>>),
    /// A handler has done this connection's errand, well or with this error.
    Errand(ConnectionKey, Result<(), String>),
    /// A handler has worked so long, in ns, for this principal, outside the handler stage.
    Worked(PrincipalId, Nanos),
    /// This connection is to be closed, if it is marked so.
    Kill(ConnectionKey),
    /// Settings that all cores share have changed.
    Tuned,
    /// Finish what is under way, take nothing new, and end.
    Drain,
    /// End now.
    Stop,
}
