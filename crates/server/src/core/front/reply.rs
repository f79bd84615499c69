//! From the replies of the engine to the connections that wait for them.

use bytes::Bytes;
use commands::{Flags, Spec};
use front::Elsewhere;
use policy::cost::spans::Member;
use policy::{Nanos, PrincipalId};
use resp::Output;
use stage::Permit;

use super::claim::Claim;
use super::come::Come;
use super::links::LinkId;
use super::rewrite::Asks;
use super::{Forward, Front, Sent};
use crate::connection::{Connection, Early};
use crate::core::{Core, Used};
use crate::tenants::{ConnectionKey, Ending};

/// A reply of so many bytes weighs as much as one more request.
const WEIGHT_BYTES: usize = 4 << 10;

/// A command that may take more than constant time weighs so much more.
const SLOW_WEIGHT: u64 = 4;

/// So many pieces of a reply a core frees itself.
const PIECES_FREED: usize = 4;

/// What is to be settled of a reply that came with others.
pub(super) struct Answered {
    /// None: it was settled when it was sent.
    permit: Option<Permit>,
    tenant: PrincipalId,
    /// Its hash slot.
    slot: Option<u16>,
    /// Time of the engine before that in which the others came.
    took: Nanos,
    weight: u64,
}

impl Answered {
    fn member(&self) -> Member {
        Member {
            tenant: self.tenant,
            weight: self.weight,
        }
    }
}

/// What a reply weighs among those that came together, of so many bytes with its request.
fn weight_of(spec: &Spec, bytes: usize) -> u64 {
    let slow = u64::from(!spec.flags.has(Flags::FAST));
    1 + SLOW_WEIGHT * slow + (bytes / WEIGHT_BYTES) as u64
}

impl Core {
    /// One reply has come.
    pub(super) fn hear_reply(
        &mut self,
        front: &mut Front,
        id: LinkId,
        come: Come<'_>,
        answered: &mut Vec<Answered>,
    ) -> Result<(), String> {
        self.hear_of_scripts(front, id, come.rest);
        let link = front.nodes.link(id);
        if link.greets() {
            return self.greeted(front, id, come.rest);
        }
        let len = come.len();
        self.may_hold(link, len);
        let Some(first) = link.sent.front_mut() else {
            return Err("it has answered what nobody asked".into());
        };
        let (instead, let_go) = first.claim.refused().unzip();
        let come = match &instead {
            Some(text) => Come::short(text.as_bytes()),
            None => come,
        };
        let elsewhere = (front.cluster.then(|| Elsewhere::read(come.rest))).flatten();
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
            len: asked,
            at,
            took,
            claim,
            ..
        } = sent;
        front.sizes.replied(forward.whose, len);
        answered.push(Answered {
            permit,
            tenant: forward.whose.0,
            slot: forward.slot,
            took,
            weight: weight_of(forward.spec, asked + len + let_go.unwrap_or_default()),
        });
        if let Some(key) = forward.unblocks {
            self.has_unblocked(front, key, come.rest);
            return Ok(());
        }
        // A transaction of which one command was refused was not done.
        let error = come.rest.first() == Some(&b'-');
        let elsewhere = sent.elsewhere.or(elsewhere).filter(|_| error);
        self.answered_alone(front, id, &forward, error, elsewhere.is_some());
        match elsewhere {
            // That may be about itself: it loads, or has another master by now.
            _ if error && instead.is_none() && front.nodes.get(id.place).reads => {
                self.ask_master(front, forward);
            }
            // A walk has another way.
            Some(Elsewhere::TryAgain) if forward.walk.is_some() => {
                self.deliver(forward, come, 0, claim);
            }
            Some(elsewhere) => self.redirect(front, forward, elsewhere, self.now),
            None => self.deliver(forward, come, self.now.saturating_sub(at), claim),
        }
        Ok(())
    }

    /// Gives a reply to the connection that waits for it.
    pub(super) fn deliver(
        &mut self,
        forward: Forward,
        come: Come<'_>,
        service_ns: Nanos,
        claim: Claim,
    ) {
        let key = forward.key;
        let Some(mut connection) = self.places.lift(key) else {
            if let Some(walk) = forward.walk {
                // All that it has found may take long to free.
                let handlers = self.shared.engine.handlers();
                handlers.submit(Box::new(move || drop(walk)));
            }
            return;
        };
        self.reply_on(&mut connection, forward, come, service_ns, claim);
        self.places.back(key, connection);
    }

    /// Has `write` append a reply to what its connection is sent; before its turn it is kept. Where
    /// it was a step of a walk, that may go on.
    pub(super) fn answer(
        &mut self,
        connection: &mut Connection,
        mut forward: Forward,
        service_ns: Nanos,
        write: impl FnOnce(&mut Forward, &mut Output) -> Option<Asks>,
    ) {
        let Some(outstanding) = connection.at_engine() else {
            return;
        };
        let next = outstanding.is_next(forward.number);
        // What comes before its turn is kept apart until then.
        let mut output = match next {
            true => std::mem::take(&mut connection.output),
            false => Output::new(),
        };
        output.borrow(&mut self.wire.rooms);
        let mark = output.mark();
        let forward = match write(&mut forward, &mut output) {
            Some(asks) => self.walk_on(connection, forward, asks, &mut output),
            None => Some(forward),
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
                if let Some(outstanding) = connection.at_engine() {
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
        let (wrote, waited) = loop {
            if connection.session.state.reply_mode.suppresses() {
                connection.output.rollback(mark);
            }
            let Some(outstanding) = connection.at_engine() else {
                return;
            };
            match outstanding.advance() {
                Some(early) => {
                    mark = connection.output.mark();
                    connection.output.append(early.output);
                    connection.ending = Some(early.ending);
                }
                None if outstanding.replies() > 0 => return,
                None => break (outstanding.wrote, outstanding.waits.is_some()),
            }
        };
        if waited {
            connection.client.blocks(false);
        }
        if wrote {
            connection.wrote_at = self.clock_now();
        }
        connection.parked = None;
        self.returns_later(key, connection, self.now);
    }

    /// Answers a request with an error of the front's.
    pub(super) fn fail_forward(&mut self, forward: Forward, text: &str) {
        self.failed_alone(&forward);
        let text = format!("-{text}\r\n");
        let come = Come::short(text.as_bytes());
        self.deliver(forward, come, 0, Claim::default());
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
        let spans = &mut front.nodes.get_mut(place).spans;
        spans.see(span, answered.iter().map(Answered::member));
        // What replicas take is no reason to move anything.
        let reads = front.nodes.get(place).reads;
        for one in answered {
            let took = one.took + front.nodes.charge(place, one.member());
            self.settle_at(place, one.tenant, one.permit, took, now);
            let slot = one.slot.filter(|_| !reads);
            if let (Some(all), Some(slot)) = (&mut front.took, slot) {
                *all.entry((one.tenant, slot)).or_default() += took;
            }
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
    pub(super) fn lose(&mut self, front: &mut Front, id: LinkId, why: &str, now: Nanos) {
        let place = id.place;
        let says = front.nodes.says(place);
        if front.cluster {
            front.upstream.look_soon();
        }
        let link = front.nodes.link(id);
        let (opened, out) = (!link.greets(), link.sent.len());
        if !link.in_vain || opened {
            tracing::warn!(core = self.id, out, "{says}: the connection is gone: {why}");
        }
        let (pieces, _) = link.take_pieces();
        self.free_pieces(pieces);
        let link = front.nodes.link(id);
        let watches_for = link.watches_for;
        let sent = link.lost(now, why.to_owned());
        let links = front.nodes.links(place, id.protocol);
        if !sent.is_empty() || watches_for.is_some() {
            links.give_back(id.index);
        }
        if !opened {
            links.refused(id.index, now);
        }
        self.lose_watch(watches_for);
        if front.nodes.get(place).reads {
            for sent in sent {
                self.settle_at(place, sent.forward.whose.0, sent.permit, 0, now);
                self.ask_master(front, sent.forward);
            }
            return;
        }
        for sent in sent {
            let walks = sent.forward.walk.is_some();
            let link = front.nodes.link(id);
            let left = opened && (walks || link.has_left(&sent));
            let text = match left {
                false => format!("ERR {says}: {} ({why}); nothing was done", link.away()),
                true => format!(
                    "ERR {says}: the connection broke ({why}); whether the request was done is not known"
                ),
            };
            self.settle_at(place, sent.forward.whose.0, sent.permit, 0, now);
            self.fail_forward(sent.forward, &text);
        }
    }

    /// Frees the beginning of a reply; elsewhere if that takes long.
    pub(super) fn free_pieces(&self, pieces: Vec<Bytes>) {
        if pieces.len() > PIECES_FREED {
            let handlers = self.shared.engine.handlers();
            handlers.submit(Box::new(move || drop(pieces)));
        }
    }
}
