//! What is published: a client that subscribes has a connection to the engine there, too, a link by
//! which it is sent that.
//!
//! The link is read in turns of the connection's, in its tenant's line, as its socket is: who
//! publishes to a thousand subscribers uses his tenant's share for it. A client that does not take
//! what comes lets the engine's buffer for it grow, until the engine closes the link, as it would
//! close the client itself (`client-output-buffer-limit`).

use std::collections::HashMap;

use bytes::Bytes;
use front::{Push, Space};
use mio::event::Event;
use mio::Token;
use policy::{Nanos, PrincipalId};
use stage::Permit;
use telemetry::Class;

use super::link::{Heard, Link, BYTES_AT_ONCE};
use super::request::NO_SPACE;
use super::{Forward, Front};
use crate::connection::{Connection, Parked, Ready};
use crate::core::answer::reply_of;
use crate::core::turn::After;
use crate::core::Core;
use crate::tenants::ConnectionKey;

/// Tokens of these links: behind them is the place of their connection.
const PUSH_TOKENS: usize = 1 << 50;

/// What a byte of a request about channels is charged of the engine's time, some µs a channel: the
/// answers are read in turns of the connection's, so that when they come tells nothing.
const BYTE_NS: Nanos = 50;

/// The links of a core's connections that have subscribed, by their places.
#[derive(Default)]
pub(super) struct Subscribers {
    links: HashMap<u32, Subscriber>,
}

struct Subscriber {
    key: ConnectionKey,
    /// The place of its node.
    node: usize,
    link: Link,
    /// Why nothing more comes.
    over: Option<String>,
    /// The turn at the engine of the request that is out.
    turn: Option<Turn>,
}

/// A turn of a request about channels.
pub(super) struct Turn {
    node: usize,
    tenant: PrincipalId,
    permit: Permit,
    /// What it is charged.
    ns: Nanos,
}

impl Subscribers {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    /// The place of the node to which a connection's goes.
    pub(super) fn node(&self, key: ConnectionKey) -> Option<usize> {
        let subscriber = self.links.get(&key.index);
        subscriber.map(|subscriber| subscriber.node)
    }
}

impl Core {
    /// Sends a request about channels that the stage has let go, by its connection's link, which is
    /// made if need be. False: that cannot be, and its connection is to hear of it.
    pub(super) fn send_about_channels(
        &mut self,
        front: &mut Front,
        forward: Forward,
        permit: Permit,
    ) -> bool {
        let (key, node) = (forward.key, forward.node);
        let bytes: usize = forward.pieces.iter().map(Bytes::len).sum();
        let turn = Turn {
            node,
            tenant: forward.whose.0,
            permit,
            ns: BYTE_NS * bytes as Nanos,
        };
        let subscriber = front.subscribers.links.entry(key.index);
        let subscriber = subscriber.or_insert_with(|| {
            let token = Token(PUSH_TOKENS + key.index as usize);
            let link = Link::at(forward.protocol, false, token);
            let (over, turn) = (None, None);
            Subscriber {
                key,
                node,
                link,
                over,
                turn,
            }
        });
        let at = front.nodes.get(node).at;
        let (options, registry) = (&front.upstream.options, self.poll.registry());
        subscriber.turn = Some(turn);
        match subscriber.link.ready(self.now, at, options, registry) {
            Ok(()) => {
                subscriber.link.say(forward.pieces);
                subscriber.flush();
            }
            Err(why) => subscriber.over = Some(why),
        }
        subscriber.over.is_none()
    }

    /// A turn is over; `vain`: it came to nothing.
    pub(super) fn end_turn(&mut self, turn: Option<Turn>, vain: bool) {
        if let Some(turn) = turn {
            let took = if vain { 0 } else { turn.ns };
            self.settle_at(turn.node, turn.tenant, Some(turn.permit), took, self.now);
        }
    }

    /// The poll says something of a link. Returns for whom something may have come by it, and
    /// whether that is the last; none of either: it is another link than these.
    pub(super) fn subscriber_noticed(
        &mut self,
        front: &mut Front,
        event: &Event,
    ) -> Option<Option<(ConnectionKey, bool)>> {
        let place = event.token().0.checked_sub(PUSH_TOKENS)?;
        let place = u32::try_from(place).ok()?;
        let Some(subscriber) = front.subscribers.links.get_mut(&place) else {
            return Some(None);
        };
        if event.is_writable() {
            subscriber.link.takes();
            subscriber.flush();
        }
        let ends = event.is_read_closed() || event.is_error() || subscriber.over.is_some();
        if !event.is_readable() && !ends {
            return Some(None);
        }
        // When its connection reads the answer is that one's affair: others wait for the permit.
        let (key, turn) = (subscriber.key, subscriber.turn.take());
        self.end_turn(turn, false);
        Some(Some((key, ends)))
    }

    /// Something may have come for a connection, perhaps the `last`: it takes a turn for that. Who
    /// does not take what came before is closed then.
    pub(super) fn may_take_pushes(&mut self, key: ConnectionKey, last: bool) {
        let Some(mut connection) = self.places.lift(key) else {
            return;
        };
        if let Some(pushes) = &mut connection.pushes {
            pushes.readable = true;
        }
        let stuck = last && !connection.output.is_empty();
        self.put_back(key, connection, self.now);
        if stuck {
            self.ready(key, Ready::Killed, self.now);
        }
    }

    /// Once a second: an engine that does not answer is not waited for for ever. Returns who is to
    /// hear of it.
    pub(super) fn look_at_subscribers(
        &mut self,
        front: &mut Front,
        now: Nanos,
    ) -> Vec<ConnectionKey> {
        let patience = front.upstream.options.patience;
        let mut silent = Vec::new();
        for subscriber in front.subscribers.links.values_mut() {
            let connection = self.places.get(subscriber.key);
            let pushes = connection.and_then(|connection| connection.pushes.as_ref());
            let asked_at = pushes.and_then(|pushes| pushes.asked_at);
            let waited_ns = asked_at.map_or(0, |at| now.saturating_sub(at));
            if waited_ns > patience.as_nanos() as Nanos {
                let why = format!("it has said nothing for {} s", patience.as_secs());
                subscriber.over = Some(why);
                silent.push(subscriber.key);
                self.end_turn(subscriber.turn.take(), true);
            }
        }
        silent
    }

    /// Takes what has come for a connection, as much as a turn may move.
    pub(in crate::core) fn take_pushes(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
    ) -> After {
        let Some(mut front) = self.front.take() else {
            return After::Keep;
        };
        let mut scratch = std::mem::take(&mut self.wire.scratch);
        let taken = self.take_some(&mut front, key, connection, &mut scratch);
        self.wire.scratch = scratch;
        let after = match taken {
            Ok(()) => After::Keep,
            Err(why) => self.subscriptions_lost(&mut front, key, connection, &why),
        };
        self.front = Some(front);
        after
    }

    /// The link of a connection is gone. Who has subscribed to something is closed, as by an engine
    /// that goes: it connects and subscribes again.
    fn subscriptions_lost(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        why: &str,
    ) -> After {
        let new = connection.subscriptions() == 0;
        self.end_turn(front.end_pushes(key, connection), true);
        if new && matches!(connection.parked, Some(Parked::Subscribing)) {
            connection.parked = None;
            reply_of(connection).error(&away("engine", why));
            return After::Keep;
        }
        tracing::info!(
            tenant = connection.tenant.name,
            client = connection.client.id,
            "closed: the engine has closed the connection by which it is sent what is published: {why}"
        );
        After::Close
    }

    /// Takes what has come for a connection.
    ///
    /// # Errors
    /// Why nothing more comes.
    fn take_some(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        scratch: &mut [u8],
    ) -> Result<(), String> {
        let space = front.space(&connection.tenant).ok_or(NO_SPACE)?;
        let mut left = BYTES_AT_ONCE;
        while left > 0 {
            let subscriber = front.subscribers.links.get_mut(&key.index);
            let (Some(subscriber), Some(pushes)) = (subscriber, &mut connection.pushes) else {
                return Ok(());
            };
            if let Some(why) = subscriber.over.take() {
                return Err(why);
            }
            let most = left.min(scratch.len());
            let count = match subscriber.link.read(&mut scratch[..most]) {
                Heard::Bytes(count) => count,
                Heard::Nothing => {
                    pushes.readable = false;
                    return Ok(());
                }
                Heard::Lost(why) => return Err(why),
            };
            left -= count;
            let came = subscriber.hear(&scratch[..count], &space)?;
            pushes.held_bytes = subscriber.link.needs();
            if came.iter().any(|one| one.push == Push::Pong) {
                self.end_turn(subscriber.turn.take(), false);
            }
            came.into_iter().for_each(|one| one.take(connection));
            if (connection.pushes.as_ref()).is_some_and(|pushes| pushes.are_over()) {
                front.end_pushes(key, connection);
            }
        }
        Ok(())
    }
}

impl Subscriber {
    /// Sends what there is to send.
    fn flush(&mut self) {
        loop {
            match self.link.flush() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.over = Some(error.to_string());
                    return;
                }
            }
        }
    }

    /// What there is with these bytes more.
    ///
    /// # Errors
    /// Why nothing more comes.
    fn hear(&mut self, bytes: &[u8], space: &Space) -> Result<Vec<Came>, String> {
        let (link, mut came) = (&mut self.link, Vec::new());
        link.input.extend_from_slice(bytes);
        while !link.input.is_empty() {
            let end = link.scanner.end(&link.input);
            let Some(end) = end.map_err(|why| why.to_string())? else {
                link.keep();
                break;
            };
            let (pieces, _) = link.take_pieces();
            let rest = link.input.split_to(end).freeze();
            if link.greets() {
                link.greeted(&rest)?;
                continue;
            }
            let push = Push::read(pieces.first().unwrap_or(&rest), space);
            came.push(Came { push, pieces, rest });
        }
        self.flush();
        Ok(came)
    }
}

/// Something that has come as a whole.
struct Came {
    push: Push,
    /// Its beginning, if it is long.
    pieces: Vec<Bytes>,
    rest: Bytes,
}

impl Came {
    /// Gives it to its connection.
    fn take(self, connection: &mut Connection) {
        let Some(pushes) = &mut connection.pushes else {
            return;
        };
        match self.push {
            Push::Foreign => {}
            Push::Pong => {
                pushes.answered();
                if matches!(connection.parked, Some(Parked::Subscribing)) {
                    connection.parked = None;
                    connection.tally.count(Class::Other);
                }
            }
            Push::Pass {
                begin,
                from,
                subscriptions,
            } => {
                if let Some((count, of_pattern)) = subscriptions {
                    pushes.count(count, of_pattern);
                    connection.client.subscribes(pushes.counts());
                }
                let out = &mut connection.output;
                out.write(&begin);
                let mut from = from;
                for piece in self.pieces {
                    out.write_bytes(piece.slice(std::mem::take(&mut from)..));
                }
                out.write(&self.rest[from..]);
            }
        }
    }
}

impl Front {
    /// A connection is sent nothing any more. Returns the turn of what it has asked.
    pub(super) fn end_pushes(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
    ) -> Option<Turn> {
        connection.pushes.take()?;
        connection.client.subscribes([0; 2]);
        self.subscribers.links.remove(&key.index)?.turn
    }
}

fn away(says: &str, why: &str) -> String {
    format!("ERR {says}: it is away ({why}); nothing was done")
}
