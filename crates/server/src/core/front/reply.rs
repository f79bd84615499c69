//! From the stage to the engine, and from its replies to the connections that wait for them.

use std::sync::Arc;

use bytes::Bytes;
use commands::Flags;
use front::{Elsewhere, Shows};
use policy::{Cost, Nanos, PrincipalId};
use resp::{Output, Protocol};
use stage::{Next, Permit};

use super::claim::Claim;
use super::walk::part;
use super::{Forward, Front, Sent};
use crate::connection::{Connection, Early, Parked};
use crate::core::{Core, Used};
use crate::tenants::{ConnectionKey, Ending};

/// A reply of so many bytes weighs as much as one more request.
const WEIGHT_BYTES: usize = 4 << 10;

/// A command that may take more than constant time weighs so much more.
const SLOW_WEIGHT: u64 = 4;

/// A larger reply is passed on with the buffer that it came in.
const OWN_BUFFER_BYTES: usize = 64 << 10;

/// What is to be settled of a reply that came with others.
pub(super) struct Answered {
    permit: Permit,
    tenant: PrincipalId,
    weight: u64,
}

impl Core {
    /// Starts as many requests for nodes of a cluster as their stages allow, and sends what the
    /// links have gathered.
    pub(in crate::core) fn release_requests(&mut self, now: Nanos) {
        if self
            .front
            .as_ref()
            .is_some_and(|front| !front.later.is_empty())
        {
            self.try_again(now);
        }
        for place in 0..self.beyond.len() {
            loop {
                match self.beyond[place].next(now) {
                    Next::Admitted(admitted) => self.dispatch(admitted, now),
                    Next::At(at) => {
                        self.agenda.wake_by(at);
                        break;
                    }
                    Next::Idle => break,
                }
            }
        }
        self.flush_links(now);
    }

    /// Sends a request that the stage has let go.
    pub(in crate::core) fn send_to_engine(&mut self, forward: Forward, permit: Permit, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        let (place, keeps) = (forward.node, front.cluster);
        let (at, upstream) = (front.nodes.get(place).at, Arc::clone(&front.upstream));
        let link = front.nodes.link(place, forward.protocol);
        match link.ready(now, at, &upstream.options, self.poll.registry()) {
            Ok(()) => link.push(forward, keeps, permit, now),
            Err(why) => {
                let says = front.nodes.says(place);
                let text = format!("ERR {says}: it is away ({why}); nothing was done");
                self.stage_before(place).settle(now, permit, Cost([0]));
                self.fail_forward(forward, &text);
            }
        }
        self.front = Some(front);
    }

    /// Sends what the links have gathered.
    fn flush_links(&mut self, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        for place in 0..front.nodes.count() {
            for protocol in [Protocol::Resp2, Protocol::Resp3] {
                if let Err(error) = front.nodes.link(place, protocol).flush() {
                    self.lose(&mut front, place, protocol, &error.to_string(), now);
                }
            }
        }
        self.front = Some(front);
    }

    /// One reply has come.
    pub(super) fn hear_reply(
        &mut self,
        front: &mut Front,
        place: usize,
        protocol: Protocol,
        reply: &[u8],
        whole: Option<&Bytes>,
        answered: &mut Vec<Answered>,
    ) -> Result<(), String> {
        let link = front.nodes.link(place, protocol);
        if link.greets() {
            return link.greeted(reply);
        }
        self.may_hold(link, reply.len());
        let Some(first) = link.sent.front_mut() else {
            return Err("it has answered what nobody asked".into());
        };
        let (instead, let_go) = first.claim.refused().unzip();
        let (reply, whole) = match &instead {
            Some(text) => (text.as_bytes(), None),
            None => (reply, whole),
        };
        let elsewhere = match front.cluster {
            true => Elsewhere::read(reply),
            false => None,
        };
        if first.before > 0 {
            first.before -= 1;
            first.elsewhere = first.elsewhere.take().or(elsewhere);
            return Ok(());
        }
        let Some(sent) = link.sent.pop_front() else {
            unreachable!("it was there above")
        };
        let Sent {
            forward,
            permit,
            len,
            at,
            claim,
            ..
        } = sent;
        let slow = !forward.spec.flags.has(Flags::FAST);
        let bytes = len + reply.len() + let_go.unwrap_or_default();
        answered.push(Answered {
            permit,
            tenant: forward.tenant,
            weight: 1 + SLOW_WEIGHT * u64::from(slow) + (bytes / WEIGHT_BYTES) as u64,
        });
        // A transaction of which one command was refused was not done.
        let elsewhere = sent.elsewhere.or(elsewhere);
        match elsewhere.filter(|_| reply.first() == Some(&b'-')) {
            // A walk has another way.
            Some(Elsewhere::TryAgain) if forward.walk.is_some() => {
                self.deliver(forward, reply, whole, 0, claim);
            }
            Some(elsewhere) => self.redirect(front, forward, elsewhere, self.now),
            None => self.deliver(forward, reply, whole, self.now.saturating_sub(at), claim),
        }
        Ok(())
    }

    /// Gives a reply to the connection that waits for it.
    fn deliver(
        &mut self,
        forward: Forward,
        reply: &[u8],
        whole: Option<&Bytes>,
        service_ns: Nanos,
        claim: Claim,
    ) {
        let key = forward.key;
        let Some(mut connection) = self.places.lift(key) else {
            return;
        };
        // Until its turn, when it is seen what the connection holds.
        connection.memory.charged += claim.hand_over();
        self.reply_on(&mut connection, forward, reply, whole, service_ns);
        self.places.back(key, connection);
    }

    fn reply_on(
        &mut self,
        connection: &mut Connection,
        forward: Forward,
        reply: &[u8],
        whole: Option<&Bytes>,
        service_ns: Nanos,
    ) {
        let Some(Parked::Engine(outstanding)) = &mut connection.parked else {
            return;
        };
        let gathered = match &forward.keys {
            Some(keys) => match outstanding.gather(forward.number, keys, reply) {
                None => return,
                whole => whole,
            },
            None => None,
        };
        let next = outstanding.is_next(forward.number);
        // What comes before its turn is kept apart until then.
        let mut output = match next {
            true => std::mem::take(&mut connection.output),
            false => Output::new(),
        };
        output.borrow(&mut self.wire.rooms);
        let mark = output.mark();
        let forward = match (&forward.walk, gathered) {
            (Some(_), _) => self.walk_on(connection, forward, reply, &mut output),
            (_, Some(gathered)) => {
                gathered.write(&forward.space, &mut output);
                Some(forward)
            }
            _ => {
                let plain = forward.shows == Shows::None;
                match whole.filter(|whole| plain && whole.len() >= OWN_BUFFER_BYTES) {
                    Some(whole) => output.write_bytes(whole.clone()),
                    None => forward.shows.write(reply, &forward.space, &mut output),
                }
                Some(forward)
            }
        };
        let ending = Ending::of(output.since(mark));
        if let Some(forward) = &forward {
            let tally = &mut connection.tally;
            tally.disk_ns = tally.disk_ns.max(service_ns);
            tally.count(forward.spec.class);
            tally.failed += u32::from(ending.is_error());
        }
        match (next, forward) {
            (true, forward) => {
                connection.output = output;
                if let Some(forward) = forward {
                    connection.ending = Some(ending);
                    self.count_call(connection, Some(forward.spec), service_ns);
                    self.replied_to(connection, forward.key, mark);
                }
            }
            (false, Some(forward)) => {
                connection.ending = Some(ending.clone());
                self.count_call(connection, Some(forward.spec), service_ns);
                if let Some(Parked::Engine(outstanding)) = &mut connection.parked {
                    outstanding.keep(forward.number, Early { output, ending });
                }
            }
            (false, None) => {}
        }
    }

    /// The next reply lies in its connection's output, from `mark` on. What came before its turn
    /// follows.
    fn replied_to(
        &mut self,
        connection: &mut Connection,
        key: ConnectionKey,
        mut mark: resp::Mark,
    ) {
        loop {
            if connection.session.state.reply_mode.suppresses() {
                connection.output.rollback(mark);
            }
            let Some(Parked::Engine(outstanding)) = &mut connection.parked else {
                return;
            };
            match outstanding.advance() {
                Some(early) => {
                    mark = connection.output.mark();
                    connection.output.append(early.output);
                    connection.ending = Some(early.ending);
                }
                None if outstanding.replies() > 0 => return,
                None => break,
            }
        }
        connection.parked = None;
        self.returns_later(key, connection, self.now);
    }

    /// Answers a request with an error of the front's.
    pub(super) fn fail_forward(&mut self, forward: Forward, text: &str) {
        let text = format!("-{text}\r\n");
        self.deliver(forward, text.as_bytes(), None, 0, Claim::default());
    }

    /// Ends the turns of requests at the engine whose replies came between `since` and `now`.
    pub(super) fn settle_answered(
        &mut self,
        front: &mut Front,
        place: usize,
        answered: Vec<Answered>,
        since: Nanos,
        now: Nanos,
    ) {
        let (span, count) = (now.saturating_sub(since), answered.len() as u32);
        let all = answered.iter().map(|one| one.weight).sum();
        for one in answered {
            let took = part(span, one.weight, all);
            self.stage_before(place)
                .settle(now, one.permit, Cost([took]));
            self.trails.handlers.note(one.tenant.0, since, now);
            // Other cores hear of it where requests come in.
            let cost = Used::default().cost(took);
            self.lines.requests.charge(now, one.tenant, cost);
        }
        if count > 0 {
            self.replied(front, place, count, now);
        }
    }

    /// A link is gone: whoever waits for it is told.
    pub(super) fn lose(
        &mut self,
        front: &mut Front,
        place: usize,
        protocol: Protocol,
        why: &str,
        now: Nanos,
    ) {
        let says = front.nodes.says(place);
        if front.cluster {
            front.upstream.look_soon();
        }
        let link = front.nodes.link(place, protocol);
        let (opened, out) = (!link.greets(), link.sent.len());
        tracing::warn!(core = self.id, out, "{says}: the connection is gone: {why}");
        let sent = link.lost(now, why.to_owned());
        for sent in sent {
            let walks = sent.forward.walk.is_some();
            let link = front.nodes.link(place, protocol);
            let left = opened && (walks || link.has_left(&sent));
            let text = match left {
                false => format!("ERR {says}: it is away ({why}); nothing was done"),
                true => format!(
                    "ERR {says}: the connection broke ({why}); whether the request was done is not known"
                ),
            };
            self.stage_before(place).settle(now, sent.permit, Cost([0]));
            self.fail_forward(sent.forward, &text);
        }
    }
}
