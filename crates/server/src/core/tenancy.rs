//! A core's view of the tenants: their allocations, their databases, what they used.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use engine::{EngineError, Keyspace};
use policy::Nanos;
use telemetry::Class;

use super::command::{refuse, Flow};
use super::message::{ConnectionKey, Message};
use super::{Core, Used};
use crate::commands::Spec;
use crate::connection::{Connection, Parked};
use crate::shared::OpenError;
use crate::tenants::Tenant;

/// Unread consumption a core may be left with: beyond, it is told more at once later.
const CONSUMPTION_MAIL_MAX: usize = 64;

/// Keys deleted in one go by the expiry of one tenant.
const EXPIRE_AT_ONCE: usize = 1_000;

impl Core {
    /// The tenant has a queue, counters and its allocation here.
    pub(super) fn enroll(&mut self, tenant: &Tenant, now: Nanos) {
        if self.principals.of(tenant).is_none() {
            self.principals.enter(tenant, &self.shared.metrics);
            self.configure(tenant, now);
        }
    }

    /// Takes over a tenant's settings.
    pub(super) fn configure(&mut self, tenant: &Tenant, now: Nanos) {
        let settings = tenant.settings();
        let cores = self.shared.options.cores;
        // Tenants begin at different cores, or the first would hold all that are reserved singly.
        let seat = (self.id + tenant.id.0 as usize) % cores;
        self.stage
            .configure(now, tenant.id, &settings.request_allocation());
        self.handlers
            .configure(now, tenant.id, &settings.handler_allocation(seat, cores));
    }

    /// A tenant is gone.
    pub(super) fn forget(&mut self, tenant: &Tenant) {
        self.close_where(|connection| connection.tenant.removed());
        let now = self.shared.options.clock.now();
        self.stage.remove(now, tenant.id);
        self.handlers.remove(now, tenant.id);
        self.waiting.forget(tenant.id);
        self.principals.leave(tenant);
    }

    /// Begins to open the keyspace of a connection's tenant and parks the connection. If it could not
    /// be opened before, the connection has its error.
    pub(super) fn open(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
        used: &mut Used,
    ) -> Flow {
        if let Some(error) = connection.open_error.take() {
            return self.failed(connection, spec.class, &error, used);
        }
        connection.parked = Some(Parked::Opening);
        let mailbox = self.mailbox.clone();
        let tenant = Arc::clone(&connection.tenant);
        self.shared.open_keyspace(
            &tenant,
            Box::new(move |error| mailbox.send(Message::Opened(key, error))),
        );
        Flow::Again
    }

    /// Answers that the storage of the connection's tenant failed.
    pub(super) fn failed(
        &self,
        connection: &mut Connection,
        class: Class,
        error: &EngineError,
        used: &mut Used,
    ) -> Flow {
        let text = self.shared.told(&connection.tenant, error);
        refuse(connection, class, &text, used)
    }

    /// The database that a connection waited for is open, or cannot be opened.
    pub(super) fn opened(&mut self, key: ConnectionKey, error: Option<OpenError>, now: Nanos) {
        let Some(mut connection) = self.places.lift(key) else {
            return;
        };
        if connection.parked == Some(Parked::Opening) {
            connection.open_error = error;
            connection.parked = Some(Parked::Retry);
        }
        self.places.back(key, connection);
        self.resume(key, now);
    }

    /// Tells the other cores what tenants used here since the last round.
    pub(super) fn tell_consumption(&mut self) {
        let cores = self.shared.options.cores;
        if cores == 1 {
            return;
        }
        self.consumed.clear();
        self.stage.report(&mut self.consumed);
        if self.consumed.is_empty() {
            return;
        }
        let consumed = Arc::new(self.consumed.clone());
        for core in (0..cores).filter(|core| *core != self.id) {
            // A core that has not read so many is asleep: it competes with nobody, so that it would
            // have nothing to be fair about.
            let message = Message::Consumed(Arc::clone(&consumed));
            let _ = self
                .shared
                .mailbox(core)
                .send_lazily(message, CONSUMPTION_MAIL_MAX);
        }
    }

    /// Once a second: connections that were silent too long, keys whose time has come.
    pub(super) fn tick(&mut self) {
        let now = self.shared.options.clock.now();
        self.post(now);
        self.close_late(now);
        self.close_silent();
        self.close_stalled();
        for tenant in self.shared.tenants.list() {
            let mine = tenant.id.0 as usize % self.shared.options.cores == self.id;
            let Some(keyspace) = tenant.keyspace().filter(|_| mine) else {
                continue;
            };
            if tenant.expiry.due(keyspace.committed(), self.now_ms) {
                let keyspace = Arc::clone(keyspace);
                self.expire(tenant, keyspace);
            }
        }
    }

    fn expire(&self, tenant: Arc<Tenant>, keyspace: Arc<Keyspace>) {
        let now_ms = self.now_ms;
        let shared = Arc::clone(&self.shared);
        let owner = Arc::clone(&tenant);
        self.submit(&owner, move || {
            let seen = keyspace.committed();
            match keyspace.expire_some(now_ms, EXPIRE_AT_ONCE) {
                Ok(expired) => {
                    shared.counters.expired.fetch_add(expired.deleted, Ordering::Relaxed);
                    tenant.expiry.looked(seen, &expired);
                }
                Err(error) => {
                    tracing::warn!(tenant = tenant.name, %error, "expired keys could not be deleted");
                }
            }
        });
    }

    fn close_silent(&mut self) {
        let limit_ms = self.shared.tuning().idle_timeout_ms;
        if limit_ms == 0 {
            return;
        }
        let now_ms = self.shared.steady_ms();
        self.close_where(|connection| {
            connection.parked.is_none() && connection.client.is_silent(now_ms, limit_ms)
        });
    }
}
