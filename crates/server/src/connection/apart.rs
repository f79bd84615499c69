//! A command that runs apart, as its connection knows it.

use std::sync::mpsc::Sender;

use engine::Seq;
use policy::Nanos;
use resp::Output;
use stage::Permit;

use super::{Away, Finished};

/// What must be before a command goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Nothing but its turn.
    Now,
    /// This is committed.
    Committed(Seq),
    /// The client has taken what there is of the reply.
    Taken,
}

/// A command that runs apart, as its connection knows it. Dropped, it ends the thread.
pub struct Apart {
    /// Its request.
    pub away: Away,
    /// Has its thread go on.
    pub go: Sender<Permit>,
    /// Of its work in the handler stage.
    pub class: u8,
    /// By its size.
    pub level: u8,
    /// It only reads.
    pub reads: bool,
    /// It waits in the stage, or runs.
    pub asked: bool,
    /// It goes on when this is so.
    pub until: Until,
    /// When the client last took some of the reply: by the clock that does not jump.
    pub taken_at: Nanos,
}

impl Apart {
    /// Whether its client has taken nothing for longer than `limit_ns`, though something is there.
    pub fn stalled(&self, now: Nanos, limit_ns: Nanos) -> bool {
        !self.asked && self.until == Until::Taken && now.saturating_sub(self.taken_at) > limit_ns
    }
}

/// What a command that runs apart has come to.
pub struct Piece {
    /// More of its reply.
    pub output: Output,
    /// With the first one: how the thread is told to go on.
    pub go: Option<Sender<Permit>>,
    /// Of its work in the handler stage.
    pub class: u8,
    /// By its size.
    pub level: u8,
    /// It only reads.
    pub reads: bool,
    /// How it goes on.
    pub then: Then,
}

/// How a command goes on behind a piece.
pub enum Then {
    /// So, when this is the case.
    GoOn(Until),
    /// It has ended.
    Finish(Box<Finished>),
    /// It cannot be completed: the client must not take what it has for a reply.
    Tear,
}
