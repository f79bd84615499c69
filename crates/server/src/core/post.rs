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
        let before: u64 = board.iter().map(|old| old.permits_missing).sum();
        let mut lists = board.drain(..).map(|old| old.seen).collect::<Vec<_>>();
        let mut list = || lists.pop().unwrap_or_default();
        let ids = || self.principals.ids();
        board.extend([
            posted(now, StageKind::Request, &self.lines.requests, ids(), list()),
            posted(
                now,
                StageKind::Handler,
                &self.handlers.stage(),
                ids(),
                list(),
            ),
        ]);
        // The nodes of a cluster are shown as one.
        for crew in &self.beyond {
            let stage = crew.stage();
            let node = posted(now, StageKind::Handler, &stage, ids(), Vec::new());
            if let Some(all) = board.last_mut() {
                all.permits += node.permits;
                all.permits_missing += node.permits_missing;
                for (principal, seen) in node.seen {
                    match all.seen.iter_mut().find(|(known, _)| *known == principal) {
                        Some((_, known)) => known.add(&seen),
                        None => all.seen.push((principal, seen)),
                    }
                }
            }
        }
        let missing: u64 = board.iter().map(|new| new.permits_missing).sum();
        if missing > before {
            let (core, permits) = (self.id, self.handlers.stage().permits());
            tracing::warn!(core, permits, missing, "more permits of handlers are reserved at this core than it can keep free: raise engine.handlers, or lower reserved_permits");
        }
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
        permits_missing: stage.permits_missing(),
        seen: list,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stage::{Allocation, DispatchOptions};

    #[test]
    fn permits_that_are_reserved_and_cannot_be_kept_free_are_told() {
        let mut stage: Stage<(), 1> = Stage::new(DispatchOptions::handlers(2));
        let missing = |stage: &Stage<(), 1>| {
            let nobody = std::iter::empty();
            posted(0, StageKind::Handler, stage, nobody, Vec::new()).permits_missing
        };
        for (reserved_permits, expected) in [(1, 0), (3, 2)] {
            let allocation = Allocation {
                reserved_permits,
                ..Allocation::share(1.0)
            };
            stage.configure(0, PrincipalId(0), &allocation);
            assert_eq!(missing(&stage), expected);
        }
    }
}
