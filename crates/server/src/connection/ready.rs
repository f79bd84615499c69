//! What a connection waits for, when it has come.

use std::borrow::Cow;

use bytes::BytesMut;
use commands::Spec;
use engine::{EngineError, Seq};
use policy::Nanos;
use resp::Output;
use telemetry::Class;

use super::{Encoded, Piece};
use crate::device::Waits;
use crate::tenants::{Checked, Ending, Pass};
use crate::unit::{Told, Unit};

/// What a connection has got of what it waited for. It sees to it in a turn of its tenant's.
pub enum Ready {
    /// Something may be over: a latch, a full log, a commit, the opening of its tenant's database.
    Look,
    /// A handler has ended its work.
    Finished(Box<Finished>),
    /// A handler has written its request for the engine, or found that it cannot be sent.
    Encoded(Box<(&'static Spec, Result<Encoded, Cow<'static, str>>)>),
    /// A piece of its reply, which is too large to be made as a whole.
    Piece(Box<Piece>),
    /// A handler could not begin its work; the connection is told when it can.
    Waits(Box<Unit>),
    /// Its reply is too large to be made as a whole, and as many of those as may be are under way.
    Crowded(Box<Unit>),
    /// A pass to run apart.
    Passed(Pass),
    /// Its tenant's database is open, or cannot be opened.
    Opened(Option<EngineError>),
    /// The slow check of its password has ended.
    LoggedIn(Checked),
    /// There is room for more of its request.
    Grown(BytesMut),
    /// It is to be answered with this error, and closed.
    Refused(String),
    /// It is to be closed.
    Killed,
}

/// A unit that has come to its end.
pub struct Finished {
    /// Its reply.
    pub output: Output,
    /// The commit that its reply waits for; 0: none.
    pub seq: Seq,
    /// Its class.
    pub class: Class,
    /// Time on a handler, ns.
    pub service_ns: Nanos,
    /// What of that it waited for its turns at the device.
    pub waits: Waits,
    /// How it ended.
    pub ending: Ending,
    /// Commands of a transaction that ended with an error.
    pub failed: u32,
    /// What it leaves behind.
    pub told: Told,
}
