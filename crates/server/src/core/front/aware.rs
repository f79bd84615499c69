//! Clients that know of the cluster of fronts: those that came where the map of fronts leads
//! (`Client::aware`), by TLS or without.
//!
//! Everybody else is served wherever he asks. Who asks there for what has its home elsewhere is
//! sent on with `MOVED`, and what goes over all keys goes over those at home here. While fronts may
//! not agree yet where that is, everything is served where it is asked for: no client goes to and
//! fro.

use commands::{Flags, Spec};
use front::{Homes, Lies, Space, Walk};
use policy::Nanos;
use resp::Reply;

use super::Front;
use crate::connection::Connection;

impl Front {
    /// Which front is the home of what for a cluster-aware client, which is led to places of its
    /// own kind; none: for others, and where no fronts are known.
    fn homes_of(&self, connection: &Connection) -> Option<&Homes> {
        let client = &connection.client;
        let homes = self.homes.of(client.tls).as_deref();
        homes.filter(|_| client.aware)
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
        let home = self
            .homes_of(connection)
            .zip(part)
            .and_then(|(homes, part)| {
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
            Some(slot) => Err(format!("MOVED {slot} {}", home.at)),
            None => Ok(()),
        }
    }

    /// Places of the nodes over which a walk goes: for a cluster-aware client those of which this
    /// front is the home, since it asks the other fronts itself.
    pub(super) fn walked(&self, connection: &Connection) -> Vec<usize> {
        let serving = self.nodes.serving();
        match self.homes_of(connection) {
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

    /// Where the partitions lie over which a `SCAN` goes, in order; none: there is one engine.
    pub(super) fn lying(
        &self,
        connection: &Connection,
        space: &Space,
    ) -> Option<Vec<(u16, Lies<'_>)>> {
        let homes = self.homes_of(connection);
        let lies = |part: u16| {
            let place = self.nodes.of(space, part)?;
            Some((place, self.nodes.get(place).name()))
        };
        let mine = |(_, lies): &(u16, Lies<'_>)| match (homes, lies) {
            (Some(homes), Some((_, name))) => homes.mine(name),
            _ => true,
        };
        let all = (0..space.parts()).map(|part| (part, lies(part)));
        self.cluster.then(|| all.filter(mine).collect())
    }

    /// Whether a cluster-aware client asks a front that is the home of nothing of its tenant's.
    pub(super) fn has_no_part(&mut self, connection: &Connection) -> bool {
        let space = self.space(&connection.tenant);
        connection.client.aware
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
