//! Commands of an operator that wait for the disk or hash a password: they run on a handler thread while their
//! connection is parked, so that no core stands still for them.
//!
//! They do not wait in the handler stage, since they are rare and a connection has one at a time; it is told what they
//! cost.

use std::sync::Arc;

use policy::Nanos;
use telemetry::Class;

use super::command::{answered, reply_of, Before, Flow};
use super::message::{ConnectionKey, Message};
use super::{Core, Used};
use crate::connection::{Connection, Parked};
use crate::shared::Shared;

/// What is to be done; the reply is `OK`, or the error with its code.
pub type Errand = Box<dyn FnOnce(&Shared) -> Result<(), String> + Send>;

impl Core {
    /// Sends an errand to a handler; the connection takes no turn until it is back.
    pub(super) fn send_errand(
        &self,
        key: ConnectionKey,
        connection: &mut Connection,
        errand: Errand,
    ) -> Flow {
        connection.parked = Some(Parked::Errand);
        let (shared, mailbox) = (Arc::clone(&self.shared), self.mailbox.clone());
        self.submit(&connection.tenant, move || {
            let result = errand(&shared);
            mailbox.send(Message::Errand(key, result));
        });
        Flow::Stop
    }

    /// An errand is back: its connection is answered and goes on.
    pub(super) fn errand_done(
        &mut self,
        key: ConnectionKey,
        result: Result<(), String>,
        now: Nanos,
    ) {
        let Some(mut connection) = self.places.lift(key) else {
            return;
        };
        connection.parked = None;
        let (before, mut used) = (Before::of(&connection), Used::default());
        match result {
            Ok(()) => reply_of(&mut connection).ok(),
            Err(text) => reply_of(&mut connection).error(&text),
        }
        answered(&mut connection, Class::Admin, 1, before, 0, &mut used);
        let (spec, took) = (connection.last, 0);
        self.count_call(&mut connection, spec, took);
        self.after_work(key, connection, used, now);
    }
}
