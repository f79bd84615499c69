//! From the stage to the engine.

use policy::{Cost, Nanos, PrincipalId};
use stage::{Next, Permit};

use super::links::LinkId;
use super::scripts::SCRIPTS_CROWDED;
use super::{Forward, Front};
use crate::connection::{Alone, Connection, Parked};
use crate::core::Core;
use crate::tenants::ConnectionKey;

impl Core {
    /// Starts as many requests for nodes of a cluster as their stages allow, and sends what the
    /// links have gathered.
    pub(in crate::core) fn release_requests(&mut self, now: Nanos) {
        self.try_again(now);
        for place in 0..self.beyond.len() {
            loop {
                let next = self.beyond[place].stage().next(now);
                match next {
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
        if forward.alone.is_some() && self.places.get(forward.key).is_none() {
            // Its client has gone: nobody would have the link.
            self.stage_before(place).settle(now, permit, Cost([0]));
            self.front = Some(front);
            return;
        }
        if forward.alone == Some(Alone::Subscribes) {
            let whose = (forward.key, place);
            let sent = self.send_about_channels(&mut front, forward, permit);
            self.front = Some(front);
            if !sent {
                self.may_take_pushes(whose, true);
            }
            return;
        }
        let Some(id) = self.link_for(&mut front, &forward) else {
            self.stage_before(place).settle(now, permit, Cost([0]));
            match forward.script {
                true => self.fail_forward(forward, SCRIPTS_CROWDED),
                false => self.changed(forward),
            }
            self.front = Some(front);
            return;
        };
        let (options, registry) = (&front.upstream.options, self.poll.registry());
        match front.nodes.ready(id, now, options, registry) {
            Ok(()) => {
                let (mut permit, waits) = (Some(permit), forward.waits().then_some(forward.key));
                if waits.is_some() {
                    // It keeps nobody else from the engine meanwhile.
                    self.settle_at(place, forward.whose.0, permit.take(), 0, now);
                }
                front.nodes.link(id).push(forward, keeps, permit, now);
                front.flush_later(id);
                if let Some(key) = waits {
                    self.unblock_at_engine(&mut front, key);
                }
            }
            Err(why) => {
                front.nodes.links(place, id.protocol).give_back(id.index);
                let says = front.nodes.says(place);
                let away = front.nodes.link(id).away();
                let text = format!("ERR {says}: {away} ({why}); nothing was done");
                self.stage_before(place).settle(now, permit, Cost([0]));
                match front.nodes.get(place).reads {
                    true => self.ask_master(&mut front, forward),
                    false => self.fail_forward(forward, &text),
                }
            }
        }
        self.front = Some(front);
    }

    /// Sends a request of the front's own, which no stage has to let go.
    pub(super) fn send_by_shared(&mut self, front: &mut Front, forward: Forward) {
        let (now, place, protocol) = (self.now, forward.node, forward.protocol);
        let index = front.nodes.links(place, protocol).choose(None, now);
        let id = LinkId {
            place,
            protocol,
            index,
        };
        let (options, registry) = (&front.upstream.options, self.poll.registry());
        if front.nodes.ready(id, now, options, registry).is_ok() {
            let keeps = front.cluster;
            front.nodes.link(id).push(forward, keeps, None, now);
            front.flush_later(id);
        }
    }

    /// The link by which a request goes: that by which its connection's others go that are out.
    /// None: it is about what was watched by one that is gone, or none may be opened for a script.
    fn link_for(&mut self, front: &mut Front, forward: &Forward) -> Option<LinkId> {
        let (place, protocol) = (forward.node, forward.protocol);
        if forward.script {
            return self.link_for_script(front, forward);
        }
        if matches!(forward.alone, Some(Alone::Watches | Alone::Settles)) {
            return self.link_of_watch(front, forward);
        }
        let links = front.nodes.links(place, protocol);
        let own = forward.own.then_some(forward.whose);
        let connection = self.places.get(forward.key);
        let parked = connection.and_then(|connection| connection.parked.as_mut());
        let index = match parked {
            Some(Parked::Engine(outstanding)) if forward.waits() => {
                let index = links.for_one();
                outstanding.goes_alone_by(place, index);
                index
            }
            Some(Parked::Engine(outstanding)) => {
                outstanding.goes_by(place, || links.choose(own, self.now))
            }
            // Its client has gone.
            _ => match links.with(forward.key) {
                Some(index) => index,
                None => links.choose(own, self.now),
            },
        };
        Some(LinkId {
            place,
            protocol,
            index,
        })
    }

    /// Sends what the links have gathered.
    fn flush_links(&mut self, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        let stale_reads = std::mem::take(&mut front.stale_reads);
        if stale_reads > 0 {
            front.upstream.reading.count(stale_reads);
        }
        for id in std::mem::take(&mut front.flushes) {
            let link = front.nodes.link(id);
            link.noted.flush = false;
            let (before, flushed) = (link.gone, link.flush());
            let written = link.gone - before;
            self.shared.turns[self.id].note([0, written, 0, 0]);
            match flushed {
                Ok(false) => {}
                Ok(true) => {
                    front.flush_later(id);
                    self.agenda.mail_waits = true;
                }
                Err(why) => self.lose(&mut front, id, &why, now),
            }
        }
        self.front = Some(front);
    }

    /// A tenant's request has used so much of a node's time.
    pub(super) fn settle_at(
        &mut self,
        place: usize,
        tenant: PrincipalId,
        permit: Option<Permit>,
        took: Nanos,
        now: Nanos,
    ) {
        let mut stage = self.stage_before(place);
        match permit {
            Some(permit) => stage.settle(now, permit, Cost([took])),
            None => stage.charge(now, tenant, Cost([took])),
        }
    }

    /// A client has gone that had a link to itself, or will be given one.
    pub(in crate::core) fn wait_no_more(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
    ) {
        let Some(front) = &mut self.front else {
            return;
        };
        front.unwatch(connection);
        let turns = front.end_pushes(key, connection);
        if let Some(Parked::Engine(outstanding)) = &connection.parked {
            if let Some((place, index)) = outstanding.goes_alone() {
                let protocol = connection.session.state.protocol;
                front.nodes.links(place, protocol).wait_no_more(index, key);
            }
        }
        turns
            .into_iter()
            .for_each(|turn| self.end_turn(Some(turn), true));
    }
}
