//! Clients that know of the cluster of fronts: those that came to the address that the map of
//! fronts names.
//!
//! Everybody else is served wherever he asks. Who asks there for what has its home elsewhere is
//! sent on with `MOVED`, and what goes over all keys goes over those at home here. While fronts may
//! not agree yet where that is, everything is served where it is asked for: no client goes to and
//! fro.

use std::net::SocketAddr;

use commands::{Flags, Spec};
use front::{Space, Walk};
use policy::Nanos;
use resp::Reply;

use super::Front;
use crate::connection::Connection;

/// Whether a connection that reached `local` came to where cluster-aware clients come, `listen`.
fn is_aware(local: SocketAddr, listen: SocketAddr) -> bool {
    local.port() == listen.port() && (listen.ip().is_unspecified() || listen.ip() == local.ip())
}

impl Front {
    pub(super) fn knows(&self, connection: &Connection) -> bool {
        let listen = self.aware_at;
        listen.is_some_and(|listen| is_aware(connection.client.local_addr, listen))
    }

    /// Whether a request, whose keys are of the partition `part`, is served here; its client takes
    /// it to be for `slot`.
    ///
    /// # Errors
    /// The text of the error that sends its client on to their home.
    pub(super) fn stays(
        &self,
        connection: &Connection,
        spec: &Spec,
        slot: impl FnOnce() -> Option<u16>,
        (space, part): (&Space, Option<u16>),
        now: Nanos,
    ) -> Result<(), String> {
        let homes = self.homes.as_ref().filter(|_| self.knows(connection));
        let home = homes.zip(part).and_then(|(homes, part)| {
            let slot = space.slot(part);
            let agreed = homes.agreed(slot, self.upstream.fronts_read_at(), now);
            homes.elsewhere(slot).filter(|_| agreed)
        });
        let Some(home) = home else {
            return Ok(());
        };
        let only_reads = spec.flags.has(Flags::READONLY);
        if connection.session.state.reads_anywhere && only_reads {
            return Ok(());
        }
        match slot() {
            Some(slot) => Err(format!("MOVED {slot} {}:{}", home.host, home.port)),
            None => Ok(()),
        }
    }

    /// Places of the nodes over which a walk goes: for a cluster-aware client those of which this
    /// front is the home, since it asks the other fronts itself.
    pub(super) fn walked(&self, connection: &Connection) -> Vec<usize> {
        let serving = self.nodes.serving();
        match self.homes.as_ref().filter(|_| self.knows(connection)) {
            None => serving.to_vec(),
            Some(homes) => {
                let mine = |place: &&usize| homes.mine(self.nodes.get(**place).name());
                serving.iter().filter(mine).copied().collect()
            }
        }
    }

    /// Those of them that have a partition of the connection's tenant.
    pub(super) fn with_parts(&self, connection: &Connection, space: &Space) -> Vec<usize> {
        let parts = (0..space.parts()).filter_map(|part| self.nodes.of(space, part));
        let parts: Vec<usize> = parts.collect();
        let mut nodes = self.walked(connection);
        nodes.retain(|place| parts.contains(place));
        nodes
    }

    /// Whether a cluster-aware client asks a front that is the home of nothing of its tenant's.
    pub(super) fn has_no_part(&mut self, connection: &Connection) -> bool {
        let space = self.space(&connection.tenant);
        self.knows(connection)
            && !self.nodes.serving().is_empty()
            && space.is_some_and(|space| self.with_parts(connection, &space).is_empty())
    }
}

/// The answer of a walk over nothing.
pub(super) fn nothing(walk: Walk, mut reply: Reply<'_>) {
    match walk {
        Walk::Scan => {
            reply.array(2);
            reply.bulk(b"0");
            reply.array(0);
        }
        Walk::Keys => reply.array(0),
        Walk::Count => reply.int(0),
        Walk::Delete => reply.ok(),
        Walk::Random => reply.null(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_to_the_address_of_the_map_is_known_by_that() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        assert!(is_aware(at("10.0.0.1:7"), at("10.0.0.1:7")));
        assert!(is_aware(at("10.0.0.1:7"), at("0.0.0.0:7")));
        assert!(!is_aware(at("10.0.0.1:7"), at("10.0.0.2:7")));
        assert!(!is_aware(at("10.0.0.1:8"), at("0.0.0.0:7")));
    }
}
