//! Where a load goes.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Identity, Map};
use crate::error::WorkloadError;

/// Where a load goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// To servers that each serve all keys, one at least: clients are dealt out to them in turn.
    Servers(Vec<SocketAddr>),
    /// To a cluster, of which this is one front: each client has a connection to every front, and
    /// sends each request to the home of its key.
    Cluster(SocketAddr),
}

impl From<SocketAddr> for Goal {
    fn from(server: SocketAddr) -> Self {
        Self::Servers(vec![server])
    }
}

impl Goal {
    /// The one that is named where one is.
    pub fn first(&self) -> SocketAddr {
        self.of_client(0)
    }

    /// Where a client goes that has no map.
    pub(crate) fn of_client(&self, client: usize) -> SocketAddr {
        match self {
            Self::Servers(servers) => servers[client % servers.len()],
            Self::Cluster(front) => *front,
        }
    }

    /// Whether clients know of a cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// What clients that say they are this know of their cluster; none: there is none. Each step
    /// waits at most `timeout`.
    ///
    /// # Errors
    /// Those of [`Map::ask`].
    pub(crate) fn map(
        &self,
        identity: &Identity,
        timeout: Duration,
    ) -> Result<Option<Map>, WorkloadError> {
        match self {
            Self::Servers(_) => Ok(None),
            Self::Cluster(front) => Map::ask(*front, identity, timeout).map(Some),
        }
    }

    /// All places to which clients go that say they are this.
    ///
    /// # Errors
    /// Those of [`Map::ask`].
    pub(crate) fn places(
        &self,
        identity: &Identity,
        timeout: Duration,
    ) -> Result<Vec<SocketAddr>, WorkloadError> {
        let map = self.map(identity, timeout)?;
        Ok(match (map, self) {
            (Some(map), _) => map.fronts().to_vec(),
            (None, Self::Servers(servers)) => servers.clone(),
            (None, Self::Cluster(front)) => vec![*front],
        })
    }
}
