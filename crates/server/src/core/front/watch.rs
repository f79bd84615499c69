//! `WATCH`: the engine watches for one of its own clients, so a link belongs to the connection from
//! `WATCH` to `EXEC`, `DISCARD` or `UNWATCH`.
//!
//! What the connection asks meanwhile goes as everything goes. Only the transaction itself comes by
//! that link. Where the link is lost, or the keys are at another node by then, nobody knows whether
//! they have changed, and the transaction is not done: as if they had.

use commands::{Action, SessionCommand, Spec};
use front::{Command, Draft, Shows, Written};
use resp::{Args, Output, Reply};
use smallvec::smallvec;

use super::claim::Claim;
use super::come::Come;
use super::links::LinkId;
use super::{Forward, Front};
use crate::connection::{Alone, Connection, Encoded, EncodedPart, WatchLink, WatchState, Watching};
use crate::core::answer::{answered, fail, reply_of, Before};
use crate::core::command::Flow;
use crate::core::{Core, Used};
use crate::tenants::ConnectionKey;

impl Core {
    /// `WATCH`. Nothing of the connection is out.
    pub(super) fn watch_at_engine(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        command: &'static Command,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let spec = command.spec;
        if connection.session.transaction.is_some() {
            return self.told(connection, spec, |connection| {
                let text = "ERR WATCH inside MULTI is not allowed";
                fail(connection, spec.class, text, used)
            });
        }
        if connection.has_lost_watch() {
            // Whatever else is watched, the transaction will not be done.
            return self.told(connection, spec, |connection| {
                let before = Before::of(connection);
                reply_of(connection).ok();
                answered(connection, spec.class, 1, before, 0, used)
            });
        }
        self.encode_request(front, key, connection, command, args, used)
    }

    /// `EXEC`, where nobody knows whether what was watched has changed.
    pub(super) fn has_changed(
        &mut self,
        front: &mut Front,
        connection: &mut Connection,
        spec: &'static Spec,
        used: &mut Used,
    ) -> Flow {
        self.end_transaction(connection);
        front.unwatch(connection);
        self.told(connection, spec, |connection| {
            let before = Before::of(connection);
            reply_of(connection).null_array();
            answered(connection, spec.class, 1, before, 0, used)
        })
    }

    /// `UNWATCH`, and `DISCARD` of a transaction for which something is watched: the engine is told
    /// by the link, which the next can have then.
    pub(super) fn unwatch_at_engine(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let watching = connection.watching.take();
        let watching = watching.filter(|watching| watching.link.is_some());
        let (Some(watching), Some(space)) = (watching, front.space(&connection.tenant)) else {
            return self.command(key, connection, args, used);
        };
        self.end_transaction(connection);
        let part = watching.part;
        connection.watching = Some(watching);
        let mut draft = Draft::default();
        draft.begin(1);
        draft.text(b"UNWATCH");
        let one = EncodedPart {
            part: Some(part),
            pieces: draft.pieces(),
            keys: None,
        };
        let encoded = Encoded {
            spec,
            space,
            parts: smallvec![one],
            gather: None,
            before: 0,
            shows: Shows::None,
            requests: 1,
            alone: Some(Alone::Settles),
            script: false,
            every_node: false,
            slot: None,
        };
        self.encoded(front, key, connection, spec, Ok(encoded), used)
    }

    /// The link by which something goes that is about what is watched; none: it was lost.
    pub(super) fn link_of_watch(&mut self, front: &mut Front, forward: &Forward) -> Option<LinkId> {
        let watching = self.watching(forward.key)?;
        let (place, protocol) = (forward.node, watching.protocol);
        let index = match watching.link {
            Some((at, index)) if at == place => index,
            _ if forward.alone == Some(Alone::Settles) => return None,
            before => {
                if before.is_some() {
                    // What it watched before is at another node than this.
                    front.end_watch(watching.lose(), protocol);
                }
                let index = front.nodes.links(place, protocol).for_one();
                watching.link = Some((place, index));
                index
            }
        };
        Some(LinkId {
            place,
            protocol,
            index,
        })
    }

    /// A node has answered what went by a link to itself: whose is that from now on?
    pub(super) fn answered_alone(
        &mut self,
        front: &mut Front,
        id: LinkId,
        forward: &Forward,
        error: bool,
        elsewhere: bool,
    ) {
        let links = front.nodes.links(id.place, id.protocol);
        match forward.alone {
            None | Some(Alone::Subscribes) => {}
            Some(Alone::Waits) => links.give_back(id.index),
            Some(Alone::Settles) => {
                match error {
                    true => links.end(id.index),
                    false => links.give_back(id.index),
                }
                if let Some(connection) = self.places.get(forward.key) {
                    connection.watching = None;
                }
            }
            Some(Alone::Watches) => {
                let Some(watching) = self.watching(forward.key) else {
                    return links.end(id.index);
                };
                match watching.state {
                    WatchState::Asked if !error => {
                        watching.state = WatchState::Watches;
                        links.get(id.index).watches_for = Some(forward.key);
                    }
                    WatchState::Watches if !elsewhere => {}
                    WatchState::Watches => front.end_watch(watching.lose(), id.protocol),
                    _ => {
                        let link = watching.link.take();
                        front.end_watch(link, id.protocol);
                    }
                }
                if error && !elsewhere {
                    self.failed_alone(forward);
                }
            }
        }
    }

    /// What went by a link to itself failed. A first `WATCH` that fails watches nothing.
    pub(super) fn failed_alone(&mut self, forward: &Forward) {
        let Some(connection) = self.places.get(forward.key) else {
            return;
        };
        let asked = |watching: &Watching| watching.state == WatchState::Asked;
        let over = match forward.alone {
            Some(Alone::Settles) => true,
            Some(Alone::Watches) => connection.watching.as_deref().is_some_and(asked),
            Some(Alone::Waits | Alone::Subscribes) | None => false,
        };
        if over {
            connection.watching = None;
        }
    }

    /// The link is gone by which keys were watched for this connection.
    pub(super) fn lose_watch(&mut self, key: Option<ConnectionKey>) {
        if let Some(watching) = key.and_then(|key| self.watching(key)) {
            watching.lose();
        }
    }

    /// Answers a request about what was watched, of which nobody knows whether it has changed.
    pub(super) fn changed(&mut self, mut forward: Forward) {
        self.failed_alone(&forward);
        let mut out = Output::new();
        let mut reply = Reply::new(&mut out, forward.protocol);
        match forward.spec.action {
            Action::Session(SessionCommand::Exec) => reply.null_array(),
            _ => reply.ok(),
        }
        forward.shows = Shows::None;
        self.deliver(forward, Come::short(&out.to_vec()), 0, Claim::default());
    }

    fn watching(&mut self, key: ConnectionKey) -> Option<&mut Watching> {
        self.places.get(key)?.watching.as_deref_mut()
    }
}

impl Front {
    /// A connection watches so many more keys of a partition, once the engine has said so.
    ///
    /// # Errors
    /// The text of an error: it cannot.
    pub(super) fn begin_watch(
        &self,
        connection: &mut Connection,
        part: Option<u16>,
        keys: usize,
    ) -> Result<(), &'static str> {
        let part = part.unwrap_or_default();
        if connection.watching.is_none() {
            let place = self.place_for(connection)?;
            let protocol = connection.session.state.protocol;
            connection.watching = Some(Watching::asked(part, protocol, place));
        }
        if let Some(watching) = connection.watching.as_deref_mut() {
            let before = Written {
                keys: watching.keys,
                part: Some(watching.part),
            };
            let part = Some(part);
            watching.keys = before.and(Written { keys, part })?.keys;
        }
        Ok(())
    }

    /// Nothing is watched for a connection any more, and the engine is to know nothing of it.
    pub(super) fn unwatch(&mut self, connection: &mut Connection) {
        if let Some(mut watching) = connection.watching.take() {
            self.end_watch(watching.link.take(), watching.protocol);
        }
    }

    /// The same, where what the front has just answered has ended it.
    pub(super) fn unwatch_if_over(&mut self, connection: &mut Connection) {
        let over = |watching: &Watching| watching.state == WatchState::Over;
        if connection.watching.as_deref().is_some_and(over) {
            self.unwatch(connection);
        }
    }

    fn end_watch(&mut self, link: Option<WatchLink>, protocol: resp::Protocol) {
        if let Some((place, index)) = link {
            self.nodes.links(place, protocol).end(index);
        }
    }
}
