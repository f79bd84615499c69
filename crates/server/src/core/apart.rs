//! Commands that take longer than a handler may, or whose replies are too large to be made as a
//! whole.
//!
//! Such a command runs on a thread of its own, in pieces. After a stretch of work, and after each
//! piece of its reply, the thread gives its permit back and waits in the handler stage like any
//! other work of the tenant; the permit that it gets there lets it go on. A piece of a reply must
//! have been taken by the client first. So a reply of any size holds about a MiB, or one value, and
//! a client that does not read holds a thread that sleeps.
//!
//! What only reads, reads a snapshot. What writes runs under the latch of its keys, and waits for
//! nobody's taking as long as it holds that. If its replies are too large to be kept until it is
//! done (a transaction's may be), it runs twice: for its effect, with its replies dropped, and,
//! once that is committed, over the snapshot from before it, for its replies.
//!
//! ```text
//!  thread ── piece ──▶ output ─▶ turns of a chunk ─▶ client
//!    ▲                                │ all taken
//!    └──────── permit ◀── [ handler stage ] ◀┘
//! ```

mod maker;

use policy::Nanos;
use stage::{Permit, Terms};

pub use maker::begin;

use super::handler::Task;
use super::message::Message;
use super::Core;
use crate::connection::{Apart, Connection, Parked, Pending, Piece, Ready, Then, Until};
use crate::session::ReplyMode;
use crate::slo::in_lane;
use crate::tenants::{ConnectionKey, Pass};
use crate::unit::Unit;

/// Patience with a client that takes nothing while somebody waits for its pass, of its tenant's or
/// of all: enough for a packet that was lost to be sent again.
const PATIENCE_WANTED_NS: Nanos = 1_000_000_000;

impl Core {
    /// A piece of a command is there. `false`: its connection is to be closed.
    pub(super) fn piece(&mut self, connection: &mut Connection, piece: Piece) -> bool {
        let now = self.now;
        match piece.then {
            Then::GoOn(until) => {
                let apart = match (connection.parked.take(), piece.go) {
                    (Some(Parked::Apart(apart)), _) => Apart {
                        asked: false,
                        until,
                        taken_at: now,
                        ..*apart
                    },
                    (Some(Parked::Handler(away)), Some(go)) => Apart {
                        away,
                        go,
                        class: piece.class,
                        level: piece.level,
                        reads: piece.reads,
                        asked: false,
                        until,
                        taken_at: now,
                    },
                    // The connection has let go of it.
                    _ => return false,
                };
                connection.parked = Some(Parked::Apart(Box::new(apart)));
                if connection.session.state.reply_mode == ReplyMode::On {
                    connection.output.append(piece.output);
                }
            }
            Then::Finish(finished) => self.finish(connection, *finished),
            Then::Tear => return false,
        }
        true
    }

    /// What the command waits for, if it does, is the case: it goes on, behind what else its tenant
    /// has in line, and behind all that is smaller.
    pub(super) fn ask_on(&mut self, key: ConnectionKey, connection: &mut Connection) {
        let lane = in_lane(connection.lane);
        let awaits = &mut connection.uncommitted.awaits;
        let (settled, taken) = (awaits.is_none(), connection.output.is_empty());
        let apart = match &mut connection.parked {
            Some(Parked::Apart(apart)) if !apart.asked => apart,
            _ => return,
        };
        let due = match apart.until {
            Until::Now => true,
            Until::Taken => settled && taken,
            Until::Committed(seq) => {
                let keyspace = connection.tenant.keyspace();
                let committed = keyspace.is_none_or(|k| k.await_commit(self.id, seq));
                if settled && !committed {
                    *awaits = Some(seq);
                    self.waiting.enter(connection.tenant.id, seq, key);
                }
                committed
            }
        };
        if !due {
            return;
        }
        apart.asked = true;
        let (tenant, class) = (connection.tenant.id, apart.class);
        let level = apart.level;
        let (terms, task) = (Terms { level, ..lane }, Task::GoOn(key));
        if !self.handlers.enqueue(tenant, class, terms, task) {
            tracing::error!(tenant = connection.tenant.name, "handler queue is full");
            connection.parked = None;
            connection.closing = true;
        }
    }

    /// Lets the thread go on.
    pub(super) fn go_on(&mut self, key: ConnectionKey, permit: Permit) {
        let connection = self.places.lift(key);
        let apart = connection.as_ref().and_then(|c| c.apart());
        let refused = match apart {
            Some(apart) => apart.go.send(permit).err().map(|unsent| unsent.0),
            None => Some(permit),
        };
        if let Some(permit) = refused {
            self.handlers.settle(permit, 0);
        }
        if let Some(connection) = connection {
            self.places.back(key, connection);
        }
    }

    /// As many commands run apart as may, of the tenant or of all: the unit begins again once it
    /// has a pass.
    pub(super) fn crowded(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        unit: Box<Unit>,
    ) {
        connection.pending = Some(Pending::Unit(unit));
        connection.parked = Some(Parked::Retry);
        self.await_pass(key, connection);
    }

    fn await_pass(&self, key: ConnectionKey, connection: &Connection) {
        let Some(Pending::Unit(unit)) = &connection.pending else {
            return;
        };
        let reads = unit.only_reads();
        let (own, common) = (
            connection.tenant.apart.of(reads),
            self.shared.apart.of(reads),
        );
        let mailbox = self.mailbox().clone();
        let taker = move |pass| mailbox.send(Message::Ready(key, Ready::Passed(pass)));
        unit.passes.queue(own, common, Box::new(taker));
    }

    /// A pass has come to a unit that waits for it. `true`: it can begin.
    pub(super) fn take_pass(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        pass: Pass,
    ) -> bool {
        let Some(Pending::Unit(unit)) = &mut connection.pending else {
            return false;
        };
        let whole = unit.passes.add(pass);
        if !whole {
            self.await_pass(key, connection);
        }
        whole
    }

    /// Closes connections that take nothing of a reply which is made as they take it.
    pub(super) fn close_stalled(&mut self) {
        let now = self.now;
        let limit_ns = self.shared.tuning().stalled_timeout_ms * 1_000_000;
        let all_wanted = [false, true].map(|reads| self.shared.apart.of(reads).wanted());
        self.close_where(|connection| {
            let Some(apart) = connection.apart() else {
                return false;
            };
            let wanted = all_wanted[usize::from(apart.reads)]
                || connection.tenant.apart.of(apart.reads).wanted();
            let patience_ns = if wanted { PATIENCE_WANTED_NS } else { u64::MAX };
            let stalled = apart.stalled(now, limit_ns.min(patience_ns));
            if stalled {
                tracing::info!(
                    tenant = connection.tenant.name,
                    client = connection.client.id,
                    "closed: it read nothing of a large reply for stalled_timeout, or for 1 s while others wait to run apart"
                );
            }
            stalled
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Away;
    use std::sync::mpsc::channel;

    #[test]
    fn who_takes_nothing_for_long_has_stalled_unless_nothing_is_there_to_take() {
        let (go, _gone_on) = channel();
        let away = Away {
            bytes: 0,
            told: false,
        };
        let mut apart = Apart {
            away,
            go,
            class: 0,
            level: 0,
            reads: true,
            asked: false,
            until: Until::Taken,
            taken_at: 7,
        };
        assert!(!apart.stalled(107, 100));
        assert!(apart.stalled(108, 100));
        apart.asked = true;
        assert!(!apart.stalled(108, 100), "the server is at it");
        (apart.asked, apart.until) = (false, Until::Committed(9));
        assert!(!apart.stalled(108, 100), "it waits for a commit");
    }
}
