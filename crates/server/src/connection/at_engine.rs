//! What a connection has at an engine behind this server.

use super::{Connection, Outstanding, Parked, WatchState, FREE_BYTES};

impl Connection {
    /// What it has out at an engine behind this server, if it waits for that.
    pub fn at_engine(&mut self) -> Option<&mut Outstanding> {
        match &mut self.parked {
            Some(Parked::Engine(outstanding)) => Some(outstanding),
            _ => None,
        }
    }

    /// Whether it waits at the engine until something comes.
    pub fn waits_at_engine(&self) -> bool {
        matches!(&self.parked, Some(Parked::Engine(outstanding)) if outstanding.waits.is_some())
    }

    /// Its requests that are with an engine behind this server.
    pub fn outstanding(&self) -> u32 {
        match &self.parked {
            Some(Parked::Engine(outstanding)) => outstanding.replies(),
            _ => 0,
        }
    }

    /// Whether something was watched for it, and nobody knows any more whether that has changed:
    /// also where it speaks otherwise by now than the link by which that was.
    pub fn has_lost_watch(&self) -> bool {
        self.watching.as_ref().is_some_and(|watching| {
            let speaks = watching.protocol == self.session.state.protocol;
            watching.state == WatchState::Lost || !speaks
        })
    }

    /// How many keys are watched for it, and channels.
    pub(super) fn watched(&self) -> usize {
        let keys = self.watching.as_ref().map_or(0, |watching| watching.keys);
        self.session.watches.len() + keys + self.subscriptions() as usize
    }

    /// How many channels, and patterns of channels, it has subscribed to.
    pub fn subscriptions(&self) -> u64 {
        let pushes = self.pushes.as_ref();
        pushes.map_or(0, |pushes| pushes.subscriptions())
    }

    /// Whether a turn would take something of what is published.
    pub fn takes_pushes(&self) -> bool {
        // What has come in part of a long message has its tenant's memory, or no more is read.
        let readable = self.pushes.as_ref().is_some_and(|pushes| {
            let held = pushes.held_bytes() as u64;
            pushes.readable().is_some() && held <= self.memory.charged + FREE_BYTES
        });
        let goes_on = matches!(self.parked, None | Some(Parked::Subscribing));
        readable && (goes_on || self.waits_at_engine()) && !self.closing && self.output.is_empty()
    }
}
