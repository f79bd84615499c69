//! What an engine behind this server watches for a connection.

use resp::Protocol;

use crate::upstream::WaitingPlace;

/// Keys under `WATCH` there. The engine watches for one of its own clients, so a link belongs to
/// the connection from `WATCH` to `EXEC`.
pub struct Watching {
    /// The partition of them all.
    pub part: u16,
    /// How many were named.
    pub keys: usize,
    /// What its link speaks.
    pub protocol: Protocol,
    /// That link; none: there is none yet, or none any more.
    pub link: Option<WatchLink>,
    /// How far it is.
    pub state: State,
    _place: WaitingPlace,
}

/// A node's place, and which link there.
pub type WatchLink = (usize, usize);

/// How far that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The first `WATCH` is out.
    Asked,
    /// The engine watches.
    Watches,
    /// Its link was lost, or the keys are elsewhere by now: nobody knows whether they have changed.
    Lost,
    /// Nothing is to be watched any more.
    Over,
}

impl Watching {
    /// The first `WATCH` of a connection that has such a place.
    pub fn asked(part: u16, protocol: Protocol, place: WaitingPlace) -> Box<Self> {
        Box::new(Self {
            part,
            keys: 0,
            protocol,
            link: None,
            state: State::Asked,
            _place: place,
        })
    }

    /// Nobody knows any more whether the keys have changed. Returns the link that it had.
    pub fn lose(&mut self) -> Option<WatchLink> {
        self.state = State::Lost;
        self.link.take()
    }
}
