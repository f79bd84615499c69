//! What connections hold of their tenants' memory, and what becomes of those that hold it when
//! there is none left.
//!
//! A connection whose request does not fit any more waits. Whoever holds some meanwhile and moves
//! nothing is closed, and if that does not help either, the one that waits is refused.

use engine::Allowance;
use policy::Nanos;

use super::message::Message;
use super::Core;
use crate::connection::{Connection, Parked, Ready};
use crate::tenants::ConnectionKey;

/// A connection that holds memory which its tenant is short of, and has moved nothing for this
/// long, is closed: enough for a packet that was lost to be sent again.
const STALLED_NS: Nanos = 1_000_000_000;

/// A connection waits for memory for this long: those that stall are closed before.
const PATIENCE_NS: Nanos = 3_000_000_000;

impl Core {
    /// Tells its tenant's budget what a connection holds now. If that is too much, it waits, unless
    /// it waits already, or holds what its client only has to take.
    pub(super) fn account(&mut self, key: ConnectionKey, connection: &mut Connection) {
        let held = connection.held_bytes();
        if held <= connection.memory.charged {
            connection
                .tenant
                .budget
                .give(connection.memory.charged - held);
            connection.memory.holds(held);
            return;
        }
        let more = held - connection.memory.charged;
        if connection.tenant.budget.take(more) {
            connection.memory.holds(held);
            return;
        }
        let subscribes = matches!(connection.parked, Some(Parked::Subscribing));
        if (connection.parked.is_none() || subscribes) && connection.output.is_empty() {
            // Who waits for an answer takes nothing else meanwhile.
            if !subscribes {
                connection.parked = Some(Parked::Memory);
                connection.memory.falls_short(self.now);
            }
            let budget = std::sync::Arc::clone(&connection.tenant.budget);
            if !budget.wait(more, self.look_again(key)) {
                let look = Message::Ready(key, Ready::Look);
                self.mailbox().send(look);
            }
        }
    }

    /// A connection holds nothing of its tenant's memory any more.
    pub(super) fn give_back_memory(connection: &mut Connection) {
        let bytes = std::mem::take(&mut connection.memory.charged);
        connection.tenant.budget.give(bytes);
    }

    /// Where tenants are short of memory, or were since the last look: closes connections that hold
    /// some and move nothing, and refuses those that have waited for long.
    pub(super) fn relieve(&mut self) {
        let now = self.now;
        for key in self.places.keys() {
            let Some(mut connection) = self.places.lift(key) else {
                continue;
            };
            let budget = &connection.tenant.budget;
            let short = connection.memory.news(budget.refusals()) || budget.short();
            let ready = short.then(|| relief(&connection, now)).flatten();
            self.places.back(key, connection);
            if let Some(ready) = ready {
                self.ready(key, ready, now);
            }
        }
    }
}

/// What is done with a connection of a tenant that is short of memory.
fn relief(connection: &Connection, now: Nanos) -> Option<Ready> {
    let held = connection.held_bytes();
    if matches!(connection.parked, Some(Parked::Memory)) {
        let text = || {
            format!(
                "ERR tenant '{}' holds as much memory in requests and replies as it may ({} bytes, request_memory): \
                 send or read on, or try again later",
                connection.tenant.name,
                connection.tenant.budget.bytes_max()
            )
        };
        if connection.memory.waited_ns(now) <= PATIENCE_NS {
            return None;
        }
        // Its client may still send, and lose the reply with the connection.
        tracing::info!(
            tenant = connection.tenant.name,
            client = connection.client.id,
            "refused: its tenant has no memory left for requests, and it has waited for some for 3 s"
        );
        return Some(Ready::Refused(text()));
    }
    let works = matches!(
        connection.parked,
        Some(Parked::Handler(_) | Parked::Engine(_) | Parked::Growing)
    );
    let stalled = now.saturating_sub(connection.moved_at) > STALLED_NS;
    if held == 0 || works || !stalled {
        return None;
    }
    tracing::info!(
        tenant = connection.tenant.name,
        client = connection.client.id,
        held_bytes = held,
        "closed: its tenant has no memory left for requests, and it holds some and has sent and received nothing for 1 s"
    );
    Some(Ready::Killed)
}
