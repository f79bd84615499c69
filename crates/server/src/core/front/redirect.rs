//! Requests that a node of a cluster did not do, because their keys are elsewhere: they are sent
//! on, and no client hears of it.

use std::sync::Arc;

use front::{halve, Elsewhere, Gather};
use policy::Nanos;

use super::later::pause_ns;
use super::scripts::script_to;
use super::{Forward, Front};
use crate::connection::Alone;
use crate::core::Core;

/// A request that was sent on so often is tried again only after a while: two nodes may each take
/// the other for the owner while a slot moves.
const HOPS_AT_ONCE: u32 = 4;

/// The text of an error: nodes go on sending a request to each other, at last one to `elsewhere`.
fn disagree(node: &str, elsewhere: &Elsewhere) -> String {
    let says = match elsewhere {
        Elsewhere::Moved { slot, node } => format!("has slot {slot} at {node}"),
        Elsewhere::Ask { node } => format!("has its slot on the way to {node}"),
        Elsewhere::TryAgain => {
            return format!("ERR {node} has not all keys of the request, whose slot is on the way to another node, and nobody is moving it; nothing was done; see `entremet cluster check`");
        }
        Elsewhere::Down(why) => why.clone(),
    };
    format!("ERR {node} {says}, and others say otherwise all the time; nothing was done; see `entremet cluster check`")
}

impl Front {
    /// Whether somebody is moving a slot.
    fn is_moving(&self, slot: Option<u16>, now: Nanos) -> bool {
        let look_soon = || self.upstream.look_soon();
        slot.is_some_and(|slot| self.upstream.moves.goes_on(slot, now, look_soon))
    }
}

impl Core {
    /// Sends a request on to where it belongs, as the node `from` says.
    pub(super) fn redirect(
        &mut self,
        front: &mut Front,
        mut forward: Forward,
        elsewhere: Elsewhere,
        now: Nanos,
    ) {
        if forward.alone == Some(Alone::Settles) && !matches!(elsewhere, Elsewhere::Down(_)) {
            // What was watched is there no more.
            return self.changed(forward);
        }
        if elsewhere == Elsewhere::TryAgain {
            match self.in_halves(front, forward) {
                Ok(()) => return,
                Err(whole) => forward = *whole,
            }
        }
        match self.goes_to(front, &mut forward, elsewhere, now) {
            Err(text) => self.fail_forward(forward, &text),
            Ok(Some(place)) => {
                forward.node = place;
                self.line_up_again(forward);
            }
            Ok(None) => self.try_later(front, forward, now),
        }
    }

    /// Does in halves what may be done so and whose keys are at two nodes.
    ///
    /// # Errors
    /// It is done as a whole.
    fn in_halves(&mut self, front: &Front, forward: Forward) -> Result<(), Box<Forward>> {
        let halves = match (forward.alone, forward.script, forward.before) {
            (None, false, 0) => halve(forward.spec, &forward.pieces, forward.keys.as_deref()),
            _ => None,
        };
        let node = forward.slot.and_then(|slot| front.nodes.at_slot(slot));
        let (Some(halves), Some(node)) = (halves, node) else {
            return Err(Box::new(forward));
        };
        let Some(mut connection) = self.places.lift(forward.key) else {
            return Ok(());
        };
        let forwards = halves.map(|half| Forward {
            number: forward.number,
            own: forward.own,
            keys: Some(half.keys),
            slot: forward.slot,
            ..Forward::new(
                forward.key,
                &connection,
                Arc::clone(&forward.space),
                forward.spec,
                half.pieces,
                node,
            )
        });
        let keys = forwards.iter().flat_map(|half| &half.keys);
        let count = keys.map(|keys| keys.len()).sum();
        if let Some(outstanding) = connection.at_engine() {
            outstanding.halve(forward.number, || Gather::of_one(forward.spec, count));
        }
        self.places.back(forward.key, connection);
        forwards
            .into_iter()
            .for_each(|half| self.line_up_again(half));
        Ok(())
    }

    /// Where a request is sent on to; none: it is tried again after a while.
    ///
    /// # Errors
    /// The text of an error: it cannot be done.
    pub(super) fn goes_to(
        &mut self,
        front: &mut Front,
        forward: &mut Forward,
        elsewhere: Elsewhere,
        now: Nanos,
    ) -> Result<Option<usize>, String> {
        let from = forward.node;
        forward.hops += 1;
        if forward.hops == 1 {
            forward.sent_on_at = now;
        }
        let waited = now.saturating_sub(forward.sent_on_at);
        // Its keys come together as long as somebody brings them.
        let comes = forward.tries > 0 && front.is_moving(forward.slot, now);
        if !comes && waited > front.upstream.options.patience.as_nanos() as Nanos {
            return Err(disagree(&front.nodes.says(from), &elsewhere));
        }
        let to = match elsewhere {
            Elsewhere::Down(why) => {
                front.upstream.look_soon();
                return Err(format!(
                    "ERR engine: its cluster is down ({why}); nothing was done"
                ));
            }
            Elsewhere::TryAgain => None,
            said if forward.script => script_to(front, forward, said),
            Elsewhere::Moved { slot, node } if !front.nodes.follows(slot, &node, from) => {
                front.upstream.look_soon();
                None
            }
            Elsewhere::Moved { slot, node } => {
                front.upstream.look_soon();
                forward.asking = false;
                let to = front.nodes.named(&node, from, now);
                if let Some(place) = to {
                    front.nodes.moved(slot, place, self.clock_now());
                }
                to
            }
            Elsewhere::Ask { node } => {
                let to = front.nodes.named(&node, from, now);
                forward.asking = to.is_some();
                for place in [Some(from), to].into_iter().flatten() {
                    front.nodes.get_mut(place).unsettled_at = self.clock_now();
                }
                to
            }
        };
        self.make_stages(front, now);
        Ok(to.filter(|_| forward.hops % HOPS_AT_ONCE != 0))
    }

    /// A request is tried again after a while.
    pub(super) fn try_later(&mut self, front: &mut Front, mut forward: Forward, now: Nanos) {
        let at = now + pause_ns(forward.tries);
        forward.tries += 1;
        front.later.push(at, forward);
        self.agenda.wake_by(at);
    }

    /// Tries again what was to be tried again by now, from the node that has the slot.
    pub(super) fn try_again(&mut self, now: Nanos) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        while let Some(mut forward) = front.later.due(now) {
            forward.asking = false;
            if let Some(place) = forward.slot.and_then(|slot| front.nodes.at_slot(slot)) {
                forward.node = place;
            }
            self.line_up_again(forward);
        }
        if let Some(at) = front.later.next_at() {
            self.agenda.wake_by(at);
        }
        self.front = Some(front);
    }

    /// Queues a request once more.
    pub(super) fn line_up_again(&mut self, forward: Forward) {
        let key = forward.key;
        let Some(connection) = self.places.lift(key) else {
            return;
        };
        let full = self.line_up(&connection, forward);
        self.places.back(key, connection);
        if let Some(forward) = full {
            self.fail_forward(
                forward,
                "ERR engine: too many requests wait for it; nothing was done",
            );
        }
    }
}
