//! What is published: a client that subscribes has a connection to the engine there, too, a link by
//! which it is sent that; to each node of a cluster that has some of its channels, one.
//!
//! The link is read in turns of the connection's, in its tenant's line, as its socket is: who
//! publishes to a thousand subscribers uses his tenant's share for it. A client that does not take
//! what comes lets the engine's buffer for it grow, until the engine closes the link, as it would
//! close the client itself (`client-output-buffer-limit`).

use bytes::Bytes;
use front::Push;
use mio::event::Event;
use policy::Nanos;
use stage::Permit;
use telemetry::Class;

use super::link::{Heard, BYTES_AT_ONCE};
use super::request::NO_SPACE;
use super::subscriber::{PushLinkOf, Turn};
use super::{Forward, Front};
use crate::connection::{Connection, Parked, Ready};
use crate::core::answer::reply_of;
use crate::core::turn::After;
use crate::core::Core;
use crate::tenants::ConnectionKey;

/// What a byte of a request about channels is charged of the engine's time, some µs a channel: the
/// answers are read in turns of the connection's, so that when they come tells nothing.
const BYTE_NS: Nanos = 50;

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
        if let Some(pushes) = (self.places.get(key)).and_then(|its| its.pushes.as_mut()) {
            pushes.open(node);
        }
        let subscriber = front.subscribers.enter((key, node), forward.protocol);
        let its = front.nodes.get(node);
        let (options, registry) = (&front.upstream.options, self.poll.registry());
        subscriber.turn = Some(turn);
        match (subscriber.link).ready(self.now, its.name(), its.at, options, registry) {
            Ok(()) => {
                subscriber.link.say(forward.pieces.clone());
                subscriber.flush();
            }
            Err(why) => subscriber.over = Some(why),
        }
        subscriber.asked = Some(forward);
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
    ) -> Option<Option<(PushLinkOf, bool)>> {
        let Some(subscriber) = front.subscribers.at(event.token())? else {
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
        let (of, turn) = (subscriber.of, subscriber.turn.take());
        self.end_turn(turn, false);
        Some(Some((of, ends)))
    }

    /// Something may have come by a link, perhaps the `last`: its connection takes a turn for that.
    /// Who does not take what came before is closed then.
    pub(super) fn may_take_pushes(&mut self, (key, node): PushLinkOf, last: bool) {
        let Some(mut connection) = self.places.lift(key) else {
            return;
        };
        if let Some(pushes) = &mut connection.pushes {
            pushes.set_readable(node, true);
        }
        let stuck = last && !connection.output.is_empty();
        self.put_back(key, connection, self.now);
        if stuck {
            self.ready(key, Ready::Killed, self.now);
        }
    }

    /// Once a second: an engine that does not answer is not waited for for ever. Returns who is to
    /// hear of it.
    pub(super) fn look_at_subscribers(&mut self, front: &mut Front, now: Nanos) -> Vec<PushLinkOf> {
        let patience = front.upstream.options.patience;
        let mut silent = Vec::new();
        let all = front.subscribers.all();
        for subscriber in all.filter(|subscriber| subscriber.asked.is_some()) {
            let connection = self.places.get(subscriber.of.0);
            let pushes = connection.and_then(|connection| connection.pushes.as_ref());
            let asked_at = pushes.and_then(|pushes| pushes.asked_at());
            let waited_ns = asked_at.map_or(0, |at| now.saturating_sub(at));
            if waited_ns > patience.as_nanos() as Nanos {
                subscriber.over = Some(subscriber.link.silent(patience));
                silent.push(subscriber.of);
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
            Err((node, why)) => self.subscriptions_lost(&mut front, (key, node), connection, &why),
        };
        self.front = Some(front);
        after
    }

    /// A link of a connection is gone. Who has subscribed to something there is closed, as by an
    /// engine that goes: it connects and subscribes again.
    fn subscriptions_lost(
        &mut self,
        front: &mut Front,
        (key, node): PushLinkOf,
        connection: &mut Connection,
        why: &str,
    ) -> After {
        let pushes = connection.pushes.as_ref();
        let new = pushes.is_none_or(|pushes| !pushes.uses(node));
        if new {
            let asked = front
                .subscribers
                .find((key, node))
                .is_some_and(|its| its.asked.is_some());
            let turn = front.end_link((key, node), connection);
            self.end_turn(turn, true);
            if asked {
                answered(connection);
                reply_of(connection).error(&away(&front.nodes.says(node), why));
            }
            front.end_if_over(key, connection);
            return After::Keep;
        }
        let turns = front.end_pushes(key, connection);
        turns
            .into_iter()
            .for_each(|turn| self.end_turn(Some(turn), true));
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
    /// Why nothing more comes by which link.
    fn take_some(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        scratch: &mut [u8],
    ) -> Result<(), (usize, String)> {
        let mut left = BYTES_AT_ONCE;
        while left > 0 {
            let Some(node) = (connection.pushes.as_ref()).and_then(|pushes| pushes.readable())
            else {
                return Ok(());
            };
            let most = left.min(scratch.len());
            let read = self.take_from(front, (key, node), connection, &mut scratch[..most]);
            left -= read.map_err(|why| (node, why))?;
        }
        if let Some(pushes) = &mut connection.pushes {
            pushes.take_turns();
        }
        Ok(())
    }

    /// Takes what has come by one link, as much as fits. Returns how many bytes.
    ///
    /// # Errors
    /// Why nothing more comes.
    fn take_from(
        &mut self,
        front: &mut Front,
        of: PushLinkOf,
        connection: &mut Connection,
        scratch: &mut [u8],
    ) -> Result<usize, String> {
        let space = front.space(&connection.tenant).ok_or(NO_SPACE)?;
        let subscriber = front.subscribers.find(of);
        let (Some(subscriber), Some(pushes)) = (subscriber, &mut connection.pushes) else {
            return Err("it is gone".into());
        };
        if let Some(why) = subscriber.over.take() {
            return Err(why);
        }
        let count = match subscriber.link.read(scratch) {
            Heard::Bytes { count, .. } => count,
            Heard::Nothing => {
                pushes.set_readable(of.1, false);
                return Ok(0);
            }
            Heard::Lost(why) => return Err(why),
        };
        let came = subscriber.hear(&scratch[..count], &space)?;
        pushes.hold(of.1, subscriber.link.needs());
        for one in came {
            match one.push {
                Push::Pong => self.is_answered(front, of, connection),
                _ => one.take(of.1, connection),
            }
        }
        let uses = (connection.pushes.as_ref()).is_some_and(|pushes| pushes.uses(of.1));
        let asked = front
            .subscribers
            .find(of)
            .is_some_and(|its| its.asked.is_some());
        if !uses && !asked {
            front.end_link(of, connection);
        }
        front.end_if_over(of.0, connection);
        Ok(count)
    }

    /// All answers to a request about channels have come.
    fn is_answered(&mut self, front: &mut Front, of: PushLinkOf, connection: &mut Connection) {
        let Some(subscriber) = front.subscribers.find(of) else {
            return;
        };
        let (turn, elsewhere) = (subscriber.turn.take(), subscriber.elsewhere.take());
        let forward = subscriber.asked.take();
        self.end_turn(turn, false);
        let uses = (connection.pushes.as_ref()).is_some_and(|pushes| pushes.uses(of.1));
        if !uses {
            front.end_link(of, connection);
        }
        let goes_on = forward.map_or(Ok(false), |forward| {
            self.goes_on_elsewhere(front, connection, forward, elsewhere)
        });
        match goes_on {
            Ok(true) => {}
            Ok(false) => answered(connection),
            Err(text) => {
                answered(connection);
                reply_of(connection).error(&text);
            }
        }
    }
}

/// What a connection has asked about channels is answered.
fn answered(connection: &mut Connection) {
    if let Some(pushes) = &mut connection.pushes {
        pushes.answered();
    }
    if matches!(connection.parked, Some(Parked::Subscribing)) {
        connection.parked = None;
        connection.tally.count(Class::Other);
    }
}

impl Front {
    /// A connection is sent nothing any more. Returns the turns of what it has asked.
    pub(super) fn end_pushes(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
    ) -> Vec<Turn> {
        let nodes = connection.pushes.as_ref().map(|pushes| pushes.nodes());
        let nodes = nodes.unwrap_or_default().into_iter();
        let turns = nodes.filter_map(|node| self.end_link((key, node), connection));
        let turns = turns.collect();
        if connection.pushes.take().is_some() {
            connection.client.subscribes([0; 3]);
        }
        turns
    }

    /// A connection is sent nothing any more by a link. Returns the turn of what it has asked.
    fn end_link(&mut self, (key, node): PushLinkOf, connection: &mut Connection) -> Option<Turn> {
        if let Some(pushes) = &mut connection.pushes {
            pushes.close(node);
        }
        self.subscribers.remove((key, node))?.turn
    }

    /// Where a connection has subscribed to nothing, and has asked nothing, it is like others.
    fn end_if_over(&mut self, key: ConnectionKey, connection: &mut Connection) {
        if (connection.pushes.as_ref()).is_some_and(|pushes| pushes.are_over()) {
            self.end_pushes(key, connection);
        }
    }
}

fn away(says: &str, why: &str) -> String {
    format!("ERR {says}: it is away ({why}); nothing was done")
}
