//! Reads that may be stale: they go to replicas that are near enough.
//!
//! A replica is a node of its own here, with a stage and links of its own, also where the same
//! process is a master by now: by links of a replica nothing but such reads ever goes, and by those
//! of a master nothing is read that would be stale.

use commands::Flags;
use policy::replica::{reader, Load};
use policy::Nanos;
use smallvec::SmallVec;
use stage::Clock;

use super::request::NO_NODE;
use super::{Forward, Front};
use crate::connection::{Connection, Parked};
use crate::core::Core;

impl Core {
    /// What the clock says now, not at the beginning of this turn.
    pub(super) fn clock_now(&self) -> Nanos {
        self.shared.options.clock.now()
    }

    /// Has replicas do what a connection reads of masters, if its tenant allows that, and if it
    /// sees there what it has written itself.
    pub(super) fn let_replicas_read(
        &mut self,
        front: &mut Front,
        connection: &Connection,
        forwards: &mut [Forward],
    ) {
        let Some(lag_ns_max) = self.principals.may_lag_ns(connection.tenant.id) else {
            return;
        };
        let wrote = match &connection.parked {
            Some(Parked::Engine(outstanding)) => outstanding.wrote,
            _ => false,
        };
        for forward in forwards {
            let reads = forward.spec.flags.has(Flags::READONLY) && forward.slot.is_some();
            if reads && !wrote && !forward.script {
                let since = connection.wrote_at;
                forward.node = self.reader(front, forward.node, lag_ns_max, since);
            }
        }
    }

    /// Which node reads for the master at this place.
    fn reader(
        &mut self,
        front: &mut Front,
        master: usize,
        lag_ns_max: Nanos,
        since: Nanos,
    ) -> usize {
        let node = front.nodes.get(master);
        let since = since.max(node.unsettled_at);
        let near = node.replicas.iter().filter(|replica| {
            let standing = replica.known.standing();
            standing.may_be_read(self.now, lag_ns_max, since)
        });
        let near: SmallVec<[usize; 4]> = near.map(|replica| replica.place).collect();
        if near.is_empty() {
            return master;
        }
        let loads: SmallVec<[Load; 4]> = near.iter().map(|place| self.load(*place)).collect();
        front.turn = front.turn.wrapping_add(1);
        match reader(self.load(master), &loads, front.turn) {
            Some(place) => {
                front.stale_reads += 1;
                near[place]
            }
            None => master,
        }
    }

    /// What the node at this place has to do for this core.
    fn load(&mut self, place: usize) -> Load {
        let stage = self.stage_before(place);
        Load {
            requests: stage.queued() + u64::from(stage.in_flight()),
            permits: stage.permits().into(),
        }
    }

    /// A replica did not do what it was asked: its master does.
    pub(super) fn ask_master(&mut self, front: &mut Front, mut forward: Forward) {
        let master = forward.slot.and_then(|slot| front.nodes.at_slot(slot));
        match master {
            Some(master) => {
                forward.node = master;
                self.line_up_again(forward);
            }
            None => self.fail_forward(forward, NO_NODE),
        }
    }
}
