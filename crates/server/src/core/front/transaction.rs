//! Transactions: queued here, and sent to the engine as a whole.

use std::borrow::Cow;

use commands::Spec;
use front::{Command, Draft, Way};
use resp::Args;

use super::request::NO_SPACE;
use super::Front;
use crate::connection::Connection;
use crate::core::answer::reject;
use crate::core::command::{queue, Flow};
use crate::core::{Core, Used};
use crate::tenants::ConnectionKey;
use crate::unit::TURN_WORDS_MAX;

impl Core {
    /// Queues a command between `MULTI` and `EXEC`, if the engine can be sent it.
    pub(super) fn queue_for_engine(
        &mut self,
        front: &mut Front,
        connection: &mut Connection,
        command: &Command,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let spec = command.spec;
        if matches!(command.way, Way::Walk(_) | Way::EveryNode | Way::EveryShard) {
            return self.turned_down(connection, spec, "it cannot be part of a transaction", used);
        }
        let space = front.space(&connection.tenant);
        let stays = space.ok_or(Cow::from(NO_SPACE)).and_then(|space| {
            if args.len() > TURN_WORDS_MAX {
                // A handler looks at so many, when they are sent.
                return Ok(());
            }
            let part = command.write(&args, &space, &mut Draft::default())?.part;
            let slot = || command.slot(&args);
            Ok(front.stays(connection, spec, slot, (&space, part), self.now)?)
        });
        self.told(connection, spec, |connection| match stays {
            Ok(()) => queue(connection, spec, args, used),
            Err(text) => reject(connection, spec.class, &text, used),
        })
    }

    /// `EXEC`: the engine is sent the transaction as a whole, so that nothing of others comes
    /// between.
    pub(super) fn exec_at_engine(
        &mut self,
        front: &mut Front,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let watches = connection.watching.is_some();
        let whole = |transaction: &crate::session::Transaction| {
            !transaction.spoiled && (watches || !transaction.calls.is_empty())
        };
        if !connection.session.transaction.as_deref().is_some_and(whole) {
            return self.command(key, connection, args, used);
        }
        if connection.has_lost_watch() {
            return self.has_changed(front, connection, spec, used);
        }
        let Some(transaction) = connection.session.transaction.take() else {
            unreachable!("it was there above")
        };
        connection.client.queued(None);
        self.encode_transaction(front, key, connection, spec, *transaction, used)
    }
}
