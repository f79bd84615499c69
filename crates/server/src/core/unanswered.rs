//! What waits here, for the windows and the controller: counts of what was answered do not show a
//! stall while it lasts.

use policy::Nanos;
use telemetry::Class;

use super::places::Waits;
use super::Core;
use crate::connection::{Connection, Parked, Pending};

/// Connections that are looked at between two turns: each is a few cache lines that nobody has
/// touched lately, so this is about as long as a turn.
const PIECE: usize = 128;

impl Core {
    /// Begins to look how long requests have waited that were promised something.
    pub(super) fn see_unanswered(&mut self, now: Nanos) {
        if self.principals.promised_any() {
            self.places.begin_look();
            // Where nobody waits, that is said, too.
            self.see_more_unanswered(now);
        }
    }

    /// Goes on with that, if it is not over.
    pub(super) fn see_on(&mut self, now: Nanos) {
        if self.places.looks() {
            self.see_more_unanswered(now);
        }
    }

    fn see_more_unanswered(&mut self, now: Nanos) {
        let principals = &mut self.principals;
        self.places.look_on(PIECE, |connection| {
            if let Some(class) = waits_with(connection) {
                principals.unanswered(connection, class, now);
            }
        });
        self.agenda.more_to_see = self.places.looks();
        if !self.agenda.more_to_see {
            principals.tell_unanswered();
        }
    }
}

impl Waits for Connection {
    fn waits(&self) -> bool {
        self.parked.is_some() || self.uncommitted.awaits.is_some() || self.in_line.requests
    }
}

/// The class of the request that a connection waits for, unless it waits because its client or its
/// tenant will have it so. What the core has not read is taken for what its client asked for last,
/// as it is where it waits for its turn.
fn waits_with(connection: &Connection) -> Option<Class> {
    let tally = &connection.tally;
    if tally.since == 0 {
        return None;
    }
    let last = connection.last.spec.map(|spec| spec.class);
    let begun = tally.begun.as_ref().map(|begun| begun.class);
    match &connection.parked {
        Some(Parked::Retry | Parked::Handler(_) | Parked::Apart(_) | Parked::Opening) => {
            pending(connection).or(begun).or(last)
        }
        Some(Parked::Engine(_)) if !connection.waits_at_engine() => begun.or(last),
        Some(_) => None,
        None if connection.uncommitted.awaits.is_some() => {
            tally.answered.last().map(|answered| answered.class)
        }
        None => last.filter(|_| connection.in_line.requests),
    }
}

/// Of what it is to begin again. A transaction is counted as what it does, and not as an `EXEC`.
fn pending(connection: &Connection) -> Option<Class> {
    match &connection.pending {
        Some(Pending::Unit(unit)) => Some(unit.class),
        _ => None,
    }
}
