//! The two lines before a core's turns: requests, and what came back.

use policy::{Cost, Nanos, PrincipalId};
use stage::{Allocation, Discipline, DispatchOptions, LaneAllocation, LaneId, Next, Permit, Stage};

use super::RESOURCES;
use crate::slo::lanes_beyond;
use crate::tenants::ConnectionKey;

/// What came back and new requests take turns in stretches of this long: replies that leave one
/// after the other find their client awake, and waking it costs more than a reply.
const STRETCH_NS: Nanos = 50_000;

/// Both lines, and which of them has its turns now.
pub struct Lines {
    /// The request stage: connections that have something to say.
    pub requests: Stage<ConnectionKey, RESOURCES>,
    /// Before the same resource, beside the request stage: connections that have got what they
    /// waited for. Their requests were let in before, so they need no tokens and come in turns with
    /// those; the request stage is told what they cost.
    pub returns: Stage<ConnectionKey, RESOURCES>,
    turn: Line,
    stretch_ends: Nanos,
}

/// One of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Requests,
    Returns,
}

impl Lines {
    /// Two empty lines before one resource.
    pub fn new(options: impl Fn() -> DispatchOptions<RESOURCES>, now: Nanos) -> Self {
        Self {
            requests: Stage::new(options()),
            returns: Stage::new(options()),
            turn: Line::Requests,
            stretch_ends: now,
        }
    }

    /// The line that has its turns now.
    pub fn turn(&self) -> Line {
        self.turn
    }

    /// Who has the next turn. If the line whose stretch it is has nobody, the other has its
    /// stretch.
    pub fn next(&mut self, now: Nanos) -> Next<ConnectionKey, RESOURCES> {
        if now >= self.stretch_ends {
            self.change(now);
        }
        let next = self.line().next(now);
        if matches!(next, Next::Admitted(_)) {
            return next;
        }
        self.change(now);
        let other = self.line().next(now);
        // Only requests can have to wait for a time.
        match (&next, &other) {
            (Next::At(_), Next::Idle) => next,
            _ => other,
        }
    }

    fn line(&mut self) -> &mut Stage<ConnectionKey, RESOURCES> {
        match self.turn {
            Line::Requests => &mut self.requests,
            Line::Returns => &mut self.returns,
        }
    }

    /// The other line has its turns from now on.
    fn change(&mut self, now: Nanos) {
        self.turn = match self.turn {
            Line::Requests => Line::Returns,
            Line::Returns => Line::Requests,
        };
        self.stretch_ends = now + STRETCH_NS;
    }

    /// A turn of the line that has its turns now is over.
    pub fn settle(
        &mut self,
        end: Nanos,
        permit: Permit,
        principal: PrincipalId,
        cost: Cost<RESOURCES>,
    ) {
        match self.turn {
            Line::Requests => self.requests.settle(end, permit, cost),
            Line::Returns => {
                self.returns.settle(end, permit, cost);
                self.requests.charge(end, principal, cost);
            }
        }
    }

    /// Gives a principal its allocation; of what came back it has its share, whatever its requests
    /// are held to.
    pub fn configure(
        &mut self,
        now: Nanos,
        principal: PrincipalId,
        requests: &Allocation,
        weight: f64,
    ) {
        self.requests.configure(now, principal, requests);
        self.returns
            .configure(now, principal, &Allocation::share(weight));
    }

    /// Gives a principal its lanes, from the first; none: it has no workloads.
    pub fn set_lanes(&mut self, now: Nanos, principal: PrincipalId, lanes: &[LaneAllocation]) {
        for line in [&mut self.requests, &mut self.returns] {
            set_lanes(line, now, principal, lanes);
        }
    }

    /// A principal is gone.
    pub fn remove(&mut self, now: Nanos, principal: PrincipalId) {
        self.requests.remove(now, principal);
        self.returns.remove(now, principal);
    }

    /// Both go by another discipline.
    pub fn set_discipline(&mut self, now: Nanos, discipline: Discipline) {
        self.requests.set_discipline(now, discipline);
        self.returns.set_discipline(now, discipline);
    }
}

/// Gives a principal its lanes at a stage, and takes those away that it has no more.
pub fn set_lanes<T, const R: usize>(
    stage: &mut Stage<T, R>,
    now: Nanos,
    principal: PrincipalId,
    lanes: &[LaneAllocation],
) {
    for (number, lane) in (0..).zip(lanes) {
        stage.configure_lane(now, principal, LaneId(number), lane);
    }
    for id in lanes_beyond(lanes.len()) {
        stage.remove_lane(now, principal, id);
    }
}
