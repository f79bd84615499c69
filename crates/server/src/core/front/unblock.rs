//! `CLIENT UNBLOCK`: a request that waits at the engine is to wait no longer.
//!
//! Its answer is the engine's, which is told `CLIENT UNBLOCK` of the link by which the request
//! waits: so nothing is lost that is on its way to it just then. The engine may come to that before
//! it comes to the request, or when the request is over. In the first case it is told again; the
//! second must not meet who would wait by that link next, so the link ends with its request.

use std::sync::Arc;

use front::Draft;
use policy::Nanos;

use super::links::LinkId;
use super::{Forward, Front};
use crate::connection::Parked;
use crate::core::Core;
use crate::tenants::{ConnectionKey, Unblocked};

impl Core {
    /// Somebody of its tenant has this connection wait no longer.
    pub(in crate::core) fn unblock(&mut self, key: ConnectionKey, how: Unblocked, now: Nanos) {
        let Some(connection) = self.places.get(key) else {
            return;
        };
        // It may wait for something else by now.
        let again = connection.client.is_blocked();
        match &mut connection.parked {
            Some(Parked::Engine(outstanding)) if outstanding.waits.is_some() && !again => {
                outstanding.unblocked = Some(how);
            }
            _ => return,
        }
        let Some(mut front) = self.front.take() else {
            return;
        };
        self.unblock_at_engine(&mut front, key);
        self.front = Some(front);
        self.release_requests(now);
    }

    /// The engine has answered a word of a link's greeting. Behind the last it is told what is due.
    ///
    /// # Errors
    /// Why the link cannot be used.
    pub(super) fn greeted(
        &mut self,
        front: &mut Front,
        id: LinkId,
        reply: &[u8],
    ) -> Result<(), String> {
        let link = front.nodes.link(id);
        let greeted = link.greeted(reply);
        let first = link.sent.front().map(|first| first.forward.key);
        front.flush_later(id);
        if let Some(key) = first {
            self.unblock_at_engine(front, key);
        }
        greeted
    }

    /// The engine has answered whether it has let go who waits for this connection. If not, it has
    /// not come to what is to wait no longer.
    pub(super) fn has_unblocked(&mut self, front: &mut Front, key: ConnectionKey, reply: &[u8]) {
        if reply == b":0\r\n" {
            self.unblock_at_engine(front, key);
        }
    }

    /// Tells the engine to let a connection go, if that was asked for and it waits there by now.
    pub(super) fn unblock_at_engine(&mut self, front: &mut Front, key: ConnectionKey) {
        let Some(connection) = self.places.get(key) else {
            return;
        };
        let protocol = connection.session.state.protocol;
        let Some(Parked::Engine(outstanding)) = &connection.parked else {
            return;
        };
        let (Some(how), Some((place, index))) = (outstanding.unblocked, outstanding.goes_alone())
        else {
            return;
        };
        let links = front.nodes.links(place, protocol);
        let Some(id) = links.let_go(index, key) else {
            return;
        };
        let first = links.get(index).sent.front();
        let Some((space, spec)) =
            first.map(|one| (Arc::clone(&one.forward.space), one.forward.spec))
        else {
            return;
        };
        let mut draft = Draft::with_room(64);
        draft.begin(4);
        draft.text(b"CLIENT");
        draft.text(b"UNBLOCK");
        draft.text(id.to_string().as_bytes());
        draft.text(match how {
            Unblocked::TimesOut => b"TIMEOUT",
            Unblocked::Fails => b"ERROR",
        });
        // Nobody is answered.
        let nobody = ConnectionKey::NOBODY;
        let forward = Forward {
            unblocks: Some(key),
            ..Forward::new(nobody, connection, space, spec, draft.pieces(), place)
        };
        self.send_by_shared(front, forward);
    }
}
