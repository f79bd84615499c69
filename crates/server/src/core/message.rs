//! What a core is told by others.

use std::sync::Arc;

use bytes::BytesMut;
use policy::{Nanos, PrincipalId};
use stage::{Consumed, Permit};

use super::apart::Piece;
use super::unit::Unit;
use super::work::Finished;
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

/// What a connection has got of what it waited for. It sees to it in a turn of its tenant's.
pub enum Ready {
    /// Something may be over: a latch, a full log, a commit, the opening of its tenant's database.
    Look,
    /// A handler has ended its work.
    Finished(Box<Finished>),
    /// A piece of its reply, which is too large to be made as a whole.
    Piece(Box<Piece>),
    /// A handler could not begin its work; the connection is told when it can.
    Waits(Box<Unit>),
    /// Its reply is too large to be made as a whole, and as many of those as may be are under way.
    Crowded(Box<Unit>),
    /// A place for its large reply.
    Placed(Place),
    /// Its tenant's database is open, or cannot be opened.
    Opened(Option<OpenError>),
    /// The slow check of its password has ended.
    LoggedIn(Checked),
    /// There is room for more of its request.
    Grown(BytesMut),
    /// It is to be answered with this error, and closed.
    Refused(String),
    /// It is to be closed.
    Killed,
}

/// What a handler has used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worked {
    /// Time, waits for the device included, ns.
    pub service_ns: Nanos,
    /// Processor time, ns.
    pub cpu_ns: Nanos,
}

/// What a handler has done.
pub struct Handled {
    /// What it had.
    pub permit: Permit,
    /// For whom.
    pub principal: PrincipalId,
    /// What it used.
    pub worked: Worked,
    /// What came of it, for a connection.
    pub then: Option<(ConnectionKey, Ready)>,
}

/// A message to a core.
pub enum Message {
    /// A connection, new or from another core, lives here from now on.
    Adopt(Box<Connection>),
    /// A connection has got something that it waited for.
    Ready(ConnectionKey, Ready),
    /// A handler has done work and gives its permit back.
    Handled(Box<Handled>),
    /// Commits of this tenant have ended, well or badly.
    Committed(Arc<Tenant>),
    /// A tenant is new or its settings have changed.
    Configure(Arc<Tenant>),
    /// A tenant is gone: its connections are closed, its queues dropped.
    Forget(Arc<Tenant>),
    /// What another core's tenants have used since it last told.
    Consumed(Arc<Vec<Consumed>>),
    /// Processor time was spent for a tenant, in ns, outside of any stage.
    Spent(PrincipalId, Nanos),
    /// More keys of this tenant are to be deleted because their time has come.
    Expire(Arc<Tenant>),
    /// This connection is to be closed, if it is marked so.
    Kill(ConnectionKey),
    /// Settings that all cores share have changed.
    Tuned,
    /// Finish what is under way, take nothing new, and end.
    Drain,
    /// End now.
    Stop,
}
