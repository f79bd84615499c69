//! What waits here, for the windows and the controller: counts of what was answered do not show a
//! stall while it lasts.

use policy::Nanos;
use telemetry::Class;

use super::Core;
use crate::connection::{Connection, Parked};

impl Core {
    /// Looks how long requests have waited that were promised something.
    pub(super) fn see_unanswered(&mut self, now: Nanos) {
        if !self.principals.promised_any() {
            return;
        }
        for key in self.places.keys() {
            let Some(connection) = self.places.get(key) else {
                continue;
            };
            if let Some(class) = waits_with(connection) {
                self.principals.unanswered(connection, class, now);
            }
        }
        self.principals.tell_unanswered();
    }
}

/// The class of the request that a connection waits for, unless it waits because its client or its
/// tenant will have it so. One that the core has not read has no class yet.
fn waits_with(connection: &Connection) -> Option<Class> {
    let waits = match &connection.parked {
        Some(Parked::Retry | Parked::Handler(_) | Parked::Apart(_) | Parked::Opening) => true,
        Some(Parked::Engine(_)) => !connection.waits_at_engine(),
        Some(_) => false,
        None => connection.uncommitted.awaits.is_some(),
    };
    let spec = connection.last.spec.filter(|_| waits)?;
    (connection.tally.since != 0).then_some(spec.class)
}
