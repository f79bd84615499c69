//! Commands on the connection: those that need the core are here, the others are handed to
//! [`crate::session`].

use std::sync::atomic::Ordering;
use std::sync::Arc;

use commands::{SessionCommand, Spec};
use resp::Args;

use super::answer::{answered, fail, refuse, reply_of, Before};
use super::command::Flow;
use super::message::Message;
use super::{Core, Used};
use crate::connection::{Connection, Parked, Ready, WatchState};
use crate::session::{self, Leftover, Transaction, Visit, Watches};
use crate::tenants::{ConnectionKey, Peer, Question, Tenant};
use crate::unit::Unit;

impl Core {
    /// Runs a session command.
    pub(super) fn session(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        command: SessionCommand,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        use SessionCommand as Is;
        match command {
            Is::Exec => self.exec(key, connection, spec, used),
            Is::Watch => self.watch(key, connection, spec, args, used),
            Is::Multi => multi(connection, spec, used),
            Is::Discard => self.discard(connection, spec, used),
            Is::Unwatch => {
                self.forget_watches(connection);
                succeeded(connection, spec, used)
            }
            // What was written for one tenant is settled before the connection speaks for another;
            // and it stands in no line of the one that it leaves, which is dropped if that one is
            // removed.
            Is::Auth | Is::Hello | Is::Reset
                if !connection.uncommitted.written.is_empty() || connection.in_line.returns =>
            {
                Flow::Again
            }
            _ => self.visit(key, connection, spec, command, args, used),
        }
    }

    fn visit(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        command: SessionCommand,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        let before = Before::of(connection);
        let left = session::run(
            command,
            &mut Visit {
                shared: &self.shared,
                tenant: &connection.tenant,
                client: &connection.client,
                hold: Some(&mut connection.hold),
                state: &mut connection.session.state,
                output: &mut connection.output,
                args,
                now_ms: self.now_ms,
            },
        );
        match left {
            Some(Leftover::Check(question)) => {
                connection.output.rollback(before.mark);
                return self.check_password(key, connection, *question);
            }
            Some(Leftover::Speak(ref tenant)) => self.log_in(connection, tenant),
            Some(Leftover::Leave) => self.log_out(connection),
            None => {}
        }
        connection.publish();
        let flow = answered(connection, spec.class, 1, before, 0, used);
        // What follows a login is for the tenant's turns.
        match left {
            Some(_) => Flow::Stop,
            None => flow,
        }
    }

    /// The connection speaks for `tenant` from now on.
    fn log_in(&mut self, connection: &mut Connection, tenant: &Arc<Tenant>) {
        connection.session.state.authenticated = true;
        if Arc::ptr_eq(tenant, &connection.tenant) {
            return;
        }
        self.speaks_for(connection, tenant);
        connection.moves_to = Some(tenant.roomiest_core(self.id)).filter(|core| *core != self.id);
    }

    /// The connection speaks for nobody from now on.
    fn log_out(&mut self, connection: &mut Connection) {
        self.end_transaction(connection);
        self.forget_watches(connection);
        if Arc::ptr_eq(&connection.tenant, self.shared.tenants.nobody()) {
            return;
        }
        match connection.hold.back(self.now, &connection.client) {
            None => connection.closing = true,
            Some(gone) => self.displace(gone),
        }
        let nobody = Arc::clone(self.shared.tenants.nobody());
        self.speaks_for(connection, &nobody);
    }

    fn speaks_for(&mut self, connection: &mut Connection, tenant: &Arc<Tenant>) {
        // What was watched was another tenant's.
        self.forget_watches(connection);
        // It is charged to the other one at the end of the turn.
        Self::give_back_memory(connection);
        connection.tenant.left(self.id);
        tenant.joined(self.id);
        tenant.received.fetch_add(1, Ordering::Relaxed);
        connection.client.belongs_to(tenant);
        connection.tenant = Arc::clone(tenant);
        connection.find_lane();
        let now = self.shared.options.clock.now();
        self.enroll(tenant, now);
    }

    /// A command came from a connection that speaks for nobody, and is to be run for somebody.
    ///
    /// # Errors
    /// What it is told: it must log in, or there is no room for it.
    pub(super) fn join_default(&mut self, connection: &mut Connection) -> Result<(), &'static str> {
        let Some(tenant) = self.shared.tenants.open_default() else {
            return Err("NOAUTH Authentication required.");
        };
        let state = &mut connection.session.state;
        let hold = &mut connection.hold;
        let seated = session::seat(&self.shared, hold, &connection.tenant, state, &tenant);
        connection.closing |= state.closing;
        if !seated {
            return Err(session::FULL);
        }
        self.log_in(connection, &tenant);
        Ok(())
    }

    /// Parks a connection until its password has been checked.
    fn check_password(
        &self,
        key: ConnectionKey,
        connection: &mut Connection,
        question: Question,
    ) -> Flow {
        connection.parked = Some(Parked::Login);
        connection.hold.checked(true);
        let mailbox = self.mailbox().clone();
        let told = Box::new(move |checked| {
            mailbox.send(Message::Ready(key, Ready::LoggedIn(checked)));
        });
        let peer = Peer::of(connection.client.addr.ip());
        self.shared.doorkeeper.ask(question, peer, told);
        Flow::Again
    }

    fn exec(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        used: &mut Used,
    ) -> Flow {
        let Some(transaction) = connection.session.transaction.take() else {
            return refuse(connection, spec.class, "ERR EXEC without MULTI", used);
        };
        connection.client.queued(None);
        if transaction.spoiled {
            connection.session.transaction = Some(transaction);
            self.end_transaction(connection);
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return refuse(connection, spec.class, text, used);
        }
        let watches = std::mem::take(&mut connection.session.watches);
        if transaction.calls.is_empty() && watches.is_empty() {
            let before = Before::of(connection);
            reply_of(connection).array(0);
            return answered(connection, spec.class, 1, before, 0, used);
        }
        let state = &connection.session.state;
        let unit = Unit::transaction(spec, *transaction, watches, state);
        self.start(key, connection, Box::new(unit), used)
    }

    fn discard(
        &mut self,
        connection: &mut Connection,
        spec: &'static Spec,
        used: &mut Used,
    ) -> Flow {
        if !self.end_transaction(connection) {
            return fail(connection, spec.class, "ERR DISCARD without MULTI", used);
        }
        succeeded(connection, spec, used)
    }

    fn watch(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        if connection.session.transaction.is_some() {
            let text = "ERR WATCH inside MULTI is not allowed";
            return fail(connection, spec.class, text, used);
        }
        let database = connection.session.state.database;
        let unit = Box::new(Unit::one(spec, args.to_owned(), database, None));
        self.start(key, connection, unit, used)
    }

    /// Forgets the transaction and what was watched for it; `false`: there was no transaction.
    pub(super) fn end_transaction(&mut self, connection: &mut Connection) -> bool {
        let Some(transaction) = connection.session.transaction.take() else {
            return false;
        };
        connection.client.queued(None);
        self.forget_watches(connection);
        let (tenant, parts) = (Arc::clone(&connection.tenant), transaction.calls.len());
        self.drop_later(&tenant, parts, transaction);
        true
    }

    pub(super) fn forget_watches(&mut self, connection: &mut Connection) {
        if let Some(watching) = &mut connection.watching {
            watching.state = WatchState::Over;
        }
        let watches: Watches = std::mem::take(&mut connection.session.watches);
        let tenant = Arc::clone(&connection.tenant);
        self.drop_later(&tenant, watches.len(), watches);
    }
}

fn multi(connection: &mut Connection, spec: &'static Spec, used: &mut Used) -> Flow {
    if connection.session.transaction.is_some() {
        let text = "ERR MULTI calls can not be nested";
        return fail(connection, spec.class, text, used);
    }
    connection.session.transaction = Some(Box::new(Transaction::default()));
    connection.client.queued(Some(0));
    succeeded(connection, spec, used)
}

/// Answers `OK`.
fn succeeded(connection: &mut Connection, spec: &'static Spec, used: &mut Used) -> Flow {
    let before = Before::of(connection);
    reply_of(connection).ok();
    answered(connection, spec.class, 1, before, 0, used)
}
