//! `CLIENT UNBLOCK`: a request that waits at the engine is to wait no longer.
//!
//! Its answer is the engine's, which is told `CLIENT UNBLOCK` of the link by which the request
//! waits: so nothing is lost that is on its way to it just then. The engine may come to that before
//! it comes to the request, or when the request is over. In the first case it is told again, some
//! times at once and then once a second. The second must not meet who would wait by that link next,
//! so the link ends with its request.
//!
//! Redis 7.0 panics if it is told so of a request that it holds back because it pauses (`CLIENT
//! PAUSE`, a failover by hand). So this goes in a transaction with a script that does nothing:
//! scripts may write, and are held back until the pause is over.

use std::sync::Arc;

use front::Draft;
use policy::Nanos;

use super::links::LinkId;
use super::{Forward, Front};
use crate::connection::Parked;
use crate::core::Core;
use crate::tenants::{ConnectionKey, Unblocked};

/// What the engine answers when it has let nobody go: of the script, and of what matters.
const NOBODY_LET_GO: &[u8] = b"*2\r\n:0\r\n:0\r\n";

/// The engine is told so often at once.
const AT_ONCE: u32 = 4;

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
                outstanding.unblocked = Some((how, 0));
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
        let told = match self.places.get(key).map(|connection| &connection.parked) {
            Some(Some(Parked::Engine(outstanding))) => outstanding.unblocked,
            _ => None,
        };
        if reply == NOBODY_LET_GO && told.is_some_and(|(_, times)| times < AT_ONCE) {
            self.unblock_at_engine(front, key);
        }
    }

    /// Tells the engine to let a connection go, if that was asked for and it waits there by now.
    pub(super) fn unblock_at_engine(&mut self, front: &mut Front, key: ConnectionKey) {
        let Some(connection) = self.places.get(key) else {
            return;
        };
        let protocol = connection.session.state.protocol;
        let Some(Parked::Engine(outstanding)) = &mut connection.parked else {
            return;
        };
        let goes = outstanding.goes_alone();
        let (Some((how, times)), Some((place, index))) = (&mut outstanding.unblocked, goes) else {
            return;
        };
        let links = front.nodes.links(place, protocol);
        let Some(id) = links.let_go(index, key) else {
            return;
        };
        *times = times.saturating_add(1);
        let first = links.get(index).sent.front();
        let Some((space, spec)) =
            first.map(|one| (Arc::clone(&one.forward.space), one.forward.spec))
        else {
            return;
        };
        let mut draft = Draft::with_room(160);
        draft.begin(1);
        draft.text(b"MULTI");
        draft.begin(3);
        draft.text(b"EVAL");
        draft.text(b"return 0");
        draft.text(b"0");
        draft.begin(4);
        draft.text(b"CLIENT");
        draft.text(b"UNBLOCK");
        draft.text(id.to_string().as_bytes());
        draft.text(match how {
            Unblocked::TimesOut => b"TIMEOUT",
            Unblocked::Fails => b"ERROR",
        });
        draft.begin(1);
        draft.text(b"EXEC");
        // Nobody is answered.
        let nobody = ConnectionKey::NOBODY;
        let forward = Forward {
            unblocks: Some(key),
            before: 3,
            ..Forward::new(nobody, connection, space, spec, draft.pieces(), place)
        };
        self.send_by_shared(front, forward);
    }
}
