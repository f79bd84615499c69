//! Commands on the connection, the tenant or the server: those that need the core are here, the others
//! are handed to [`crate::session`].

use std::sync::Arc;

use engine::Keys;
use smallvec::SmallVec;

use super::command::{answered, fail, refuse, reply_of, Before, Flow};
use super::message::{ConnectionKey, Message};
use super::unit::{Ended, Step, Unit};
use super::{Core, Used};
use crate::commands::{Handler, SessionCommand, Spec};
use crate::connection::{Connection, Parked, Peer};
use crate::resp::{Args, Output, OwnedArgs};
use crate::session::{self, Leftover, Visit, Watched};
use crate::tenants::{Checked, Ending, Question, Tenant};

/// Bytes that commands on connection and server may be answered inside one transaction, before the next of them is not.
const KNOWN_BYTES_MAX: usize = 1 << 20;

impl Core {
    /// Runs a session command.
    pub(super) fn session(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        (spec, command): (&'static Spec, SessionCommand),
        args: Args<'_>,
        used: &mut Used,
    ) -> Flow {
        match command {
            SessionCommand::Exec => self.exec(key, connection, spec, used),
            SessionCommand::Watch => self.watch(key, connection, spec, args, used),
            _ => {
                let before = Before::of(connection);
                let left = session::run(
                    command,
                    Visit {
                        shared: &self.shared,
                        connection,
                        args,
                        now_ms: self.now_ms,
                        inside_transaction: false,
                    },
                );
                match left {
                    None => answered(connection, spec.class, 1, before, 0, used),
                    Some(Leftover::Speak(tenant)) => {
                        self.log_in(connection, &tenant);
                        answered(connection, spec.class, 1, before, 0, used);
                        // What follows is for the tenant's turns.
                        Flow::Stop
                    }
                    Some(Leftover::Leave) => {
                        self.log_out(connection);
                        answered(connection, spec.class, 1, before, 0, used);
                        Flow::Stop
                    }
                    Some(Leftover::First(job)) => {
                        let retry = self.retry(key);
                        self.submit(&connection.tenant, move || {
                            job();
                            retry();
                        });
                        connection.parked = Some(Parked::Retry);
                        Flow::Again
                    }
                    Some(Leftover::Errand(errand)) => self.send_errand(key, connection, errand),
                    Some(Leftover::Check(question)) => {
                        connection.output.rollback(before.mark);
                        self.check_password(key, connection, *question)
                    }
                }
            }
        }
    }

    /// The connection speaks for `tenant` from now on.
    fn log_in(&mut self, connection: &mut Connection, tenant: &Arc<Tenant>) {
        connection.session.authenticated = true;
        if Arc::ptr_eq(tenant, &connection.tenant) {
            return;
        }
        self.speaks_for(connection, tenant);
        connection.moves_to = Some(tenant.roomiest_core(self.id)).filter(|core| *core != self.id);
    }

    fn speaks_for(&mut self, connection: &mut Connection, tenant: &Arc<Tenant>) {
        connection.tenant.left(self.id);
        tenant.joined(self.id);
        connection.client.belongs_to(tenant);
        connection.tenant = Arc::clone(tenant);
        // What was watched was another tenant's.
        connection.session.watches.clear();
        let now = self.shared.options.clock.now();
        self.enroll(tenant, now);
    }

    /// The connection speaks for nobody from now on.
    fn log_out(&mut self, connection: &mut Connection) {
        if Arc::ptr_eq(&connection.tenant, self.shared.tenants.nobody()) {
            return;
        }
        let now = self.shared.options.clock.now();
        match connection.hold.back(now, &connection.client) {
            None => connection.closing = true,
            Some(gone) => self.displace(gone),
        }
        let nobody = Arc::clone(self.shared.tenants.nobody());
        self.speaks_for(connection, &nobody);
    }

    /// A command came from a connection that speaks for nobody, and is to be run for somebody.
    ///
    /// # Errors
    /// What it is told: it must log in, or there is no room for it.
    pub(super) fn join_default(&mut self, connection: &mut Connection) -> Result<(), &'static str> {
        let Some(tenant) = self.shared.tenants.open_default() else {
            return Err("NOAUTH Authentication required.");
        };
        if !session::seat(&self.shared, connection, &tenant) {
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
        let mailbox = self.mailbox.clone();
        let told = Box::new(move |checked| mailbox.send(Message::LoggedIn(key, checked)));
        let peer = Peer::of(connection.client.addr.ip());
        self.shared.doorkeeper.ask(question, peer, told);
        Flow::Again
    }

    /// The slow check has ended: the command that waits is run again and finds the result.
    pub(super) fn logged_in(&mut self, key: ConnectionKey, checked: Checked, now: policy::Nanos) {
        let Some(mut connection) = self.places.lift(key) else {
            return;
        };
        connection.parked = None;
        connection.session.checked = Some(checked);
        connection.hold.checked(false);
        self.put_back(key, connection, now);
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
        let watches = std::mem::take(&mut connection.session.watches);
        if transaction.spoiled {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return refuse(connection, spec.class, text, used);
        }
        let mut known_bytes = 0;
        let steps: Vec<Step> = transaction
            .calls
            .into_iter()
            .map(|call| self.step(connection, call, &mut known_bytes))
            .collect();
        let runs = steps.iter().any(|step| matches!(step, Step::Run(..)));
        if runs || !watches.is_empty() {
            return self.start(
                key,
                connection,
                Box::new(Unit::transaction(spec, steps, watches)),
                used,
            );
        }
        let before = Before::of(connection);
        reply_of(connection).array(steps.len());
        for step in steps {
            if let Step::Known(reply) = step {
                connection.output.append(reply);
            }
        }
        answered(connection, spec.class, 1, before, 0, used)
    }

    /// A queued command as a step: session commands are answered now, the others when the unit runs. `known_bytes` is
    /// how much those before it were answered.
    fn step(
        &mut self,
        connection: &mut Connection,
        (spec, args): (&'static Spec, OwnedArgs),
        known_bytes: &mut usize,
    ) -> Step {
        let Handler::Session(command) = spec.handler else {
            return Step::Run(spec, args);
        };
        let answers = std::mem::take(&mut connection.output);
        let (empty, begin) = (connection.output.mark(), self.shared.options.clock.now());
        // Nothing can be fetched first any more: it is answered from what is known.
        connection.session.prepared = true;
        if *known_bytes > KNOWN_BYTES_MAX {
            reply_of(connection).error(
                "ERR the commands on connection and server in this transaction were answered with more than a MiB",
            );
        } else {
            let visit = Visit {
                shared: &self.shared,
                connection,
                args: args.args(),
                now_ms: self.now_ms,
                inside_transaction: true,
            };
            if session::run(command, visit).is_some() {
                // Nobody waits inside a transaction: not for a password, not for an errand.
                connection.output = Output::new();
                reply_of(connection).error("ERR Command not allowed inside a transaction");
            }
        }
        let known = std::mem::replace(&mut connection.output, answers);
        *known_bytes += known.len();
        let ended = Ended {
            spec,
            ending: Ending::of(known.since(empty)),
            took: self.shared.options.clock.now() - begin,
        };
        self.count_steps(connection, vec![ended]);
        Step::Known(known)
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
            return fail(
                connection,
                spec.class,
                "ERR WATCH inside MULTI is not allowed",
                used,
            );
        }
        let Some(keyspace) = connection.tenant.keyspace() else {
            return self.open(key, connection, spec, used);
        };
        // Read first, so that an absent key is known to be absent and an expiry is seen; what is not in
        // memory is watched all the same.
        let names: SmallVec<[&[u8]; 8]> = args.from(1).iter().collect();
        let _ = keyspace.try_run(&Keys::Some(&names), self.now_ms, &mut |access| {
            names.iter().try_for_each(|name| access.get(name).map(drop))
        });
        for name in names {
            let known = connection
                .session
                .watches
                .iter()
                .any(|watched| watched.key == name);
            if !known {
                let key = bytes::Bytes::copy_from_slice(name);
                let watch = keyspace.watch(&key);
                connection.session.watches.push(Watched {
                    key,
                    watch,
                    since_ms: self.now_ms,
                });
            }
        }
        let before = Before::of(connection);
        reply_of(connection).ok();
        answered(connection, spec.class, 1, before, 0, used)
    }
}
