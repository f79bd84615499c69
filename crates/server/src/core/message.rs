//! What a core is told by others.

use std::sync::Arc;

use policy::slo::control::Turn;
use policy::{Nanos, PrincipalId};
use stage::{Admitted, Consumed};

use super::front::Rewritten;
use super::handler::Task;
use crate::connection::{Connection, Ready};
use crate::shared::News;
use crate::tenants::{ConnectionKey, Tenant};

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
    /// For whom.
    pub principal: PrincipalId,
    /// What it used.
    pub worked: Worked,
    /// Its turn in the handler stage, if a connection has not been told of it.
    pub turn: Option<Turn>,
    /// What came of it, for a connection.
    pub then: Option<(ConnectionKey, Ready)>,
}

/// A message to a core.
pub enum Message {
    /// A connection, new or from another core, lives here from now on.
    Adopt(Box<Connection>),
    /// A connection has got something that it waited for.
    Ready(ConnectionKey, Ready),
    /// A handler has made of a reply of the engine's what a connection is sent.
    Rewritten(Box<Rewritten>),
    /// A handler has done work, and given its permit back.
    Handled(Box<Handled>),
    /// A handler has found next what only the core can begin.
    Granted(Box<Admitted<Task, 1>>),
    /// What another core's tenants have used since it last told.
    Consumed(Arc<Vec<Consumed>>),
    /// Processor time was spent for a tenant, in ns, outside of any stage.
    Spent(PrincipalId, Nanos),
    /// More keys of this tenant are to be deleted because their time has come.
    Expire(Arc<Tenant>),
    /// What those say who are no core.
    News(News),
}
