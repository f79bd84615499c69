//! What the turns of a request at the stages say of the margins that its promise needs.

use super::{DEVICE, HANDLERS, STAGES};
use crate::cost::Nanos;

/// A turn at a stage: when one stood in line for it, and when one had it, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// In line from then on.
    pub queued: Nanos,
    /// Granted.
    pub granted: Nanos,
}

/// What a late request waited for while the first half of its time went by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateBy {
    /// What is before the handlers: its database was opened, or its key was in use.
    Entry,
    /// A handler.
    Handler,
    /// What is after that, or nothing in particular.
    Rest,
}

impl LateBy {
    /// Of a request that came at `came`, had this turn at the handlers and was promised an end
    /// within `at_most_ns`.
    #[must_use]
    pub fn of(turn: Turn, came: Nanos, at_most_ns: Nanos) -> Self {
        let half_over = came.saturating_add(at_most_ns / 2);
        if turn.queued > half_over {
            LateBy::Entry
        } else if turn.granted > half_over {
            LateBy::Handler
        } else {
            LateBy::Rest
        }
    }
}

/// By stage, what a margin must allow for ([`super::PromiseSeen::after`]), of a request that ended
/// at `end`. `turns` are its first at each stage, if it came there; `due_at` says when it was due
/// there, if it was.
#[must_use]
pub fn after(
    turns: &[Option<Turn>; STAGES],
    due_at: &[Option<Nanos>; STAGES],
    end: Nanos,
) -> [Option<Nanos>; STAGES] {
    // Its time at a stage counts from its turn, or from when it was due if that was before.
    let counts_from = |stage: usize, turn: Turn| {
        let due_at = due_at[stage].unwrap_or(Nanos::MAX);
        turn.granted.min(due_at).max(turn.queued)
    };
    // What it waited at the device before it was due there was its own doing.
    let deferred_ns = turns[DEVICE].map_or(0, |turn| counts_from(DEVICE, turn) - turn.queued);
    let mut after = [None; STAGES];
    after[HANDLERS] = turns[HANDLERS].map(|turn| {
        let since = counts_from(HANDLERS, turn);
        end.saturating_sub(since).saturating_sub(deferred_ns)
    });
    after[DEVICE] = turns[DEVICE].and(due_at[DEVICE].map(|due_at| end.saturating_sub(due_at)));
    after
}
