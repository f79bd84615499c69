//! What a core writes down for those who ask from elsewhere.

use policy::{Nanos, PrincipalId};
use stage::Stage;
use telemetry::StageKind;

use super::Core;
use crate::shared::{Posted, Seen};

impl Core {
    /// Writes down what the stages of this core observe of everybody who was ever let through here.
    pub(super) fn post(&mut self, now: Nanos) {
        let Some(mut board) = self.shared.board.of(self.id) else {
            return;
        };
        let mut lists = board.drain(..).map(|old| old.seen).collect::<Vec<_>>();
        let mut list = || lists.pop().unwrap_or_default();
        let ids = || self.principals.ids();
        board.extend([
            posted(now, StageKind::Request, &self.lines.requests, ids(), list()),
            posted(now, StageKind::Handler, &self.handlers, ids(), list()),
        ]);
        for (principal, seen) in &mut board[0].seen {
            self.principals.occupied(*principal, seen.occupied_ns);
            // Turns for what came back are turns of the same core.
            let returns = self.lines.returns.observe(now, *principal);
            seen.busy_ns += returns.map_or(0, |returns| returns.busy_ns);
        }
    }
}

/// One stage, written over an old `list`.
fn posted<T, const R: usize>(
    now: Nanos,
    kind: StageKind,
    stage: &Stage<T, R>,
    principals: impl Iterator<Item = PrincipalId>,
    mut list: Vec<(PrincipalId, Seen)>,
) -> Posted {
    list.clear();
    list.extend(principals.filter_map(|principal| {
        let seen = Seen::from(stage.observe(now, principal)?);
        (seen.admitted + seen.waiting > 0).then_some((principal, seen))
    }));
    Posted {
        kind,
        at_ns: now,
        discipline: stage.discipline(),
        permits: stage.permits(),
        seen: list,
    }
}
