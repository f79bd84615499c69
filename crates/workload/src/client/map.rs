//! Which front of a cluster is the home of which hash slot, as one tenant hears it.

use std::net::SocketAddr;
use std::time::Duration;

use front::{Topology, Value, SLOTS};

use super::control::Control;
use super::{resolve, Identity};
use crate::error::WorkloadError;

/// One tenant's map of the fronts.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    /// What the fronts are called, `host:port`, …
    names: Vec<String>,
    /// … and where they are. One at least.
    fronts: Vec<SocketAddr>,
    /// By hash slot, the place of its front.
    homes: Vec<u16>,
}

impl Map {
    /// Asks the front at `target`. Each step waits at most `timeout`.
    ///
    /// # Errors
    /// [`WorkloadError::Unreachable`] if it is away, or a front that it names has no address;
    /// [`WorkloadError::Refused`] if it refuses the tenant, or knows of no cluster.
    pub(crate) fn ask(
        target: SocketAddr,
        identity: &Identity,
        timeout: Duration,
    ) -> Result<Self, WorkloadError> {
        let identity = Identity {
            resp2: true,
            ..identity.clone()
        };
        let mut control = Control::connect(target, &identity, timeout)?;
        let answer = control.ask(&[b"CLUSTER", b"SLOTS"])?;
        let refused = |reply: &str| WorkloadError::Refused {
            tenant: identity.tenant().into(),
            command: "CLUSTER SLOTS".into(),
            reply: reply.into(),
        };
        if let Value::Error(text) = &answer {
            return Err(refused(text));
        }
        let topology = Topology::read(&answer, &target.ip().to_string());
        match topology.filter(|topology| !topology.nodes.is_empty()) {
            Some(topology) => Self::of(&topology),
            None => Err(refused("its answer names no front")),
        }
    }

    fn of(topology: &Topology) -> Result<Self, WorkloadError> {
        let mut map = Self {
            names: Vec::new(),
            fronts: Vec::new(),
            homes: vec![0; SLOTS.into()],
        };
        for slot in 0..SLOTS {
            // Any front can say that nobody serves a slot.
            map.mend(slot, topology.owner(slot).unwrap_or(&topology.nodes[0]))?;
        }
        Ok(map)
    }

    /// Where the fronts are, in the order of their places.
    pub(crate) fn fronts(&self) -> &[SocketAddr] {
        &self.fronts
    }

    /// The place of the front that is the home of a hash slot.
    pub(crate) fn home(&self, slot: u16) -> usize {
        usize::from(self.homes[usize::from(slot)])
    }

    /// The home of a hash slot is the front of this name, which may be new. Returns its place.
    ///
    /// # Errors
    /// [`WorkloadError::Unreachable`] if it has no address.
    pub(crate) fn mend(&mut self, slot: u16, name: &str) -> Result<usize, WorkloadError> {
        let known = self.names.iter().position(|known| known == name);
        let place = match known {
            Some(place) => place,
            None => {
                let address = resolve(name)?;
                let known = self.fronts.iter().position(|known| *known == address);
                known.unwrap_or_else(|| {
                    self.names.push(name.into());
                    self.fronts.push(address);
                    self.fronts.len() - 1
                })
            }
        };
        self.homes[usize::from(slot)] = place as u16;
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_moves_is_mended() {
        let mut map = Map::of(&Topology::one("127.0.0.1:1".into())).expect("a map");
        assert_eq!((map.home(0), map.home(SLOTS - 1)), (0, 0));
        assert_eq!(map.mend(7, "127.0.0.1:1").ok(), Some(0));
        assert_eq!(map.mend(7, "[::1]:2").ok(), Some(1));
        assert_eq!((map.home(7), map.home(8), map.fronts().len()), (1, 0, 2));
        // The same front by another name.
        assert_eq!(map.mend(8, "::1:2").ok(), Some(1));
        assert!(map.mend(8, "nowhere").is_err());
        assert_eq!((map.home(8), map.fronts().len()), (1, 2));
    }
}
