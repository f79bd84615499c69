//! From the stage to the engine, and from its replies to the connections that wait for them.

use std::sync::Arc;

use bytes::Bytes;
use commands::Flags;
use front::Shows;
use mio::event::Event;
use policy::{Cost, Nanos, PrincipalId};
use resp::{Protocol, Reply};
use stage::Permit;

use super::link::Heard;
use super::walk::part;
use super::{Forward, Front, Sent, LINK_TOKENS};
use crate::connection::{Connection, Parked};
use crate::core::{Core, Used};
use crate::tenants::Ending;

/// Reads of one link between two looks at the others: a MiB.
const READS_MAX: usize = 16;

/// A reply of so many bytes weighs as much as one more request.
const WEIGHT_BYTES: usize = 4 << 10;

/// A command that may take more than constant time weighs so much more.
const SLOW_WEIGHT: u64 = 4;

/// A larger reply is passed on with the buffer that it came in.
const OWN_BUFFER_BYTES: usize = 64 << 10;

/// Room that is made ahead for a large reply.
const AHEAD_BYTES_MAX: usize = 1 << 30;

/// What is to be settled of a reply that came with others.
struct Answered {
    permit: Permit,
    tenant: PrincipalId,
    weight: u64,
}

impl Core {
    /// Sends a request that the stage has let go.
    pub(in crate::core) fn send_to_engine(&mut self, forward: Forward, permit: Permit, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        let (at, upstream) = (front.at, Arc::clone(&front.upstream));
        let link = front.link(forward.protocol);
        match link.ready(now, at, &upstream.options, self.poll.registry()) {
            Ok(()) => link.push(forward, permit, now),
            Err(why) => {
                let text = format!("ERR engine: it is away ({why}); nothing was done");
                self.handlers.settle(now, permit, Cost([0]));
                self.fail_forward(forward, &text);
            }
        }
        self.front = Some(front);
    }

    /// Sends what the links have gathered.
    pub(in crate::core) fn flush_links(&mut self, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            if let Err(error) = front.link(protocol).flush() {
                self.lose(&mut front, protocol, &error.to_string(), now);
            }
        }
        self.front = Some(front);
    }

    /// The poll says something of what is no connection.
    pub(in crate::core) fn link_noticed(&mut self, event: &Event) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        let protocol = match event.token().0.checked_sub(LINK_TOKENS) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            _ => {
                self.front = Some(front);
                return;
            }
        };
        let now = self.now;
        let link = front.link(protocol);
        if event.is_writable() {
            link.takes();
        }
        let ends = event.is_read_closed() || event.is_error();
        if event.is_readable() || ends {
            self.listen(&mut front, protocol, ends, now);
        }
        self.front = Some(front);
    }

    /// Reads on where there was more than was read.
    pub(in crate::core) fn listen_on(&mut self, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            if front.link(protocol).unread {
                self.listen(&mut front, protocol, true, now);
            }
        }
        self.front = Some(front);
    }

    /// Reads what has come; `to_end`, until there is nothing more.
    fn listen(&mut self, front: &mut Front, protocol: Protocol, to_end: bool, now: Nanos) {
        let mut scratch = std::mem::take(&mut self.wire.scratch);
        let mut answered = Vec::new();
        let link = front.link(protocol);
        let since = link
            .sent
            .front()
            .map_or(now, |first| first.at.max(link.heard));
        link.unread = false;
        let mut lost = None;
        for read in 0.. {
            let link = front.link(protocol);
            if read == READS_MAX {
                link.unread = true;
                self.agenda.mail_waits = true;
                break;
            }
            match link.read(&mut scratch) {
                Heard::Bytes(count) => {
                    link.heard = now;
                    let heard =
                        self.hear_replies(front, protocol, &scratch[..count], &mut answered);
                    if let Err(why) = heard {
                        lost = Some(why);
                        break;
                    }
                    if count < scratch.len() && !to_end {
                        break;
                    }
                }
                Heard::Nothing => break,
                Heard::Lost(why) => {
                    lost = Some(why);
                    break;
                }
            }
        }
        self.wire.scratch = scratch;
        self.settle_answered(front, answered, since, now);
        if let Some(why) = lost {
            self.lose(front, protocol, &why, now);
        }
    }

    /// Takes the replies out of what has come.
    fn hear_replies(
        &mut self,
        front: &mut Front,
        protocol: Protocol,
        mut bytes: &[u8],
        answered: &mut Vec<Answered>,
    ) -> Result<(), String> {
        let gathered = !front.link(protocol).input.is_empty();
        if gathered {
            front.link(protocol).input.extend_from_slice(bytes);
        }
        loop {
            let link = front.link(protocol);
            let there = if gathered { &link.input[..] } else { bytes };
            if there.is_empty() {
                return Ok(());
            }
            let Some(end) = link.scanner.end(there).map_err(|why| why.to_string())? else {
                if !gathered {
                    link.input.extend_from_slice(bytes);
                }
                let more = link.scanner.needs().saturating_sub(link.input.len());
                link.input.reserve(more.min(AHEAD_BYTES_MAX));
                return Ok(());
            };
            if gathered {
                let reply = link.input.split_to(end).freeze();
                self.hear_reply(front, protocol, &reply, Some(&reply), answered)?;
            } else {
                let (reply, rest) = bytes.split_at(end);
                self.hear_reply(front, protocol, reply, None, answered)?;
                bytes = rest;
            }
        }
    }

    fn hear_reply(
        &mut self,
        front: &mut Front,
        protocol: Protocol,
        reply: &[u8],
        whole: Option<&Bytes>,
        answered: &mut Vec<Answered>,
    ) -> Result<(), String> {
        let link = front.link(protocol);
        if link.greets() {
            return link.greeted(reply);
        }
        let Some(first) = link.sent.front_mut() else {
            return Err("it has answered what nobody asked".into());
        };
        if first.forward.before > 0 {
            first.forward.before -= 1;
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
            ..
        } = sent;
        let slow = !forward.spec.flags.has(Flags::FAST);
        answered.push(Answered {
            permit,
            tenant: forward.tenant,
            weight: 1 + SLOW_WEIGHT * u64::from(slow) + ((len + reply.len()) / WEIGHT_BYTES) as u64,
        });
        self.deliver(forward, reply, whole, self.now.saturating_sub(at));
        Ok(())
    }

    /// Gives a reply to the connection that waits for it.
    fn deliver(
        &mut self,
        forward: Forward,
        reply: &[u8],
        whole: Option<&Bytes>,
        service_ns: Nanos,
    ) {
        let key = forward.key;
        let Some(mut connection) = self.places.lift(key) else {
            return;
        };
        let mut output = std::mem::take(&mut connection.output);
        output.borrow(&mut self.wire.rooms);
        let mark = output.mark();
        let forward = match forward.walk {
            Some(_) => self.walk_on(&mut connection, forward, reply, &mut output),
            None => {
                let plain = forward.shows == Shows::None;
                match whole.filter(|whole| plain && whole.len() >= OWN_BUFFER_BYTES) {
                    Some(whole) => output.write_bytes(whole.clone()),
                    None => forward.shows.write(reply, &forward.space, &mut output),
                }
                Some(forward)
            }
        };
        let ending = Ending::of(output.since(mark));
        connection.output = output;
        if let Some(forward) = forward {
            self.replied_to(&mut connection, &forward, mark, ending, service_ns);
        }
        self.places.back(key, connection);
    }

    /// A reply lies in its connection's output.
    fn replied_to(
        &mut self,
        connection: &mut Connection,
        forward: &Forward,
        mark: resp::Mark,
        ending: Ending,
        service_ns: Nanos,
    ) {
        let tally = &mut connection.tally;
        tally.disk_ns = tally.disk_ns.max(service_ns);
        tally.count(forward.spec.class);
        tally.failed += u32::from(ending.is_error());
        connection.ending = Some(ending);
        self.count_call(connection, Some(forward.spec), service_ns);
        if connection.session.state.reply_mode.suppresses() {
            connection.output.rollback(mark);
        }
        let Some(Parked::Engine(outstanding)) = &mut connection.parked else {
            return;
        };
        outstanding.replies -= 1;
        if outstanding.replies == 0 {
            connection.parked = None;
            self.returns_later(forward.key, connection, self.now);
        }
    }

    /// Answers a request with an error of the front's.
    fn fail_forward(&mut self, forward: Forward, text: &str) {
        let Some(mut connection) = self.places.lift(forward.key) else {
            return;
        };
        let mark = connection.output.mark();
        Reply::new(&mut connection.output, forward.protocol).error(text);
        let ending = Ending::of(connection.output.since(mark));
        self.replied_to(&mut connection, &forward, mark, ending, 0);
        self.places.back(forward.key, connection);
    }

    /// Ends the turns of requests at the engine whose replies came between `since` and `now`.
    fn settle_answered(
        &mut self,
        front: &mut Front,
        answered: Vec<Answered>,
        since: Nanos,
        now: Nanos,
    ) {
        let (span, count) = (now.saturating_sub(since), answered.len() as u32);
        let all = answered.iter().map(|one| one.weight).sum();
        for one in answered {
            let took = part(span, one.weight, all);
            self.handlers.settle(now, one.permit, Cost([took]));
            self.trails.handlers.note(one.tenant.0, since, now);
            // Other cores hear of it where requests come in.
            let cost = Used::default().cost(took);
            self.lines.requests.charge(now, one.tenant, cost);
        }
        if count > 0 {
            self.replied(front, count, now);
        }
    }

    /// A link is gone: whoever waits for it is told.
    pub(super) fn lose(&mut self, front: &mut Front, protocol: Protocol, why: &str, now: Nanos) {
        let link = front.link(protocol);
        let (opened, out) = (!link.greets(), link.sent.len());
        tracing::warn!(
            core = self.id,
            out,
            "the connection to the engine is gone: {why}"
        );
        let sent = link.lost(now, why.to_owned());
        for sent in sent {
            let walks = sent.forward.walk.is_some();
            let left = opened && (walks || front.link(protocol).has_left(&sent));
            let text = match left {
                false => format!("ERR engine: it is away ({why}); nothing was done"),
                true => format!(
                    "ERR engine: the connection broke ({why}); whether the request was done is not known"
                ),
            };
            self.handlers.settle(now, sent.permit, Cost([0]));
            self.fail_forward(sent.forward, &text);
        }
    }
}
