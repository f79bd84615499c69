//! A core's view of the tenants: their allocations, their databases, what they used.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use commands::Spec;
use engine::device::on_terms;
use engine::EngineError;
use policy::dispatch::Others;
use policy::lend::Need;
use policy::slo::control::{DEVICE, HANDLERS};
use policy::{Nanos, Promise};
use stage::{Allocation, Terms};
use telemetry::Class;

use super::answer::refuse;
use super::command::Flow;
use super::handler::Job;
use super::lines::set_lanes;
use super::message::Message;
use super::{Core, Used};
use crate::connection::{Connection, Parked, Ready};
use crate::shared::Shared;
use crate::slo::in_lane;
use crate::tenants::{ConnectionKey, Tenant};

/// Unread consumption a core may be left with: beyond, it is told more at once later.
const CONSUMPTION_MAIL_MAX: usize = 64;

/// Keys deleted in one go by the expiry of one tenant: a millisecond of a handler, if they are in
/// memory. If there are more, they are deleted in further goes, behind what waits for handlers by
/// then.
const EXPIRE_AT_ONCE: usize = 256;

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
        if self.principals.promised(tenant) {
            self.find_lanes(tenant);
        }
        let portions = tenant.portions();
        let promise = tenant.settings().promise().portions(&portions);
        let (cores, total) = (
            self.shared.options.cores,
            self.shared.tenants.totals().weight,
        );
        // At the handlers a controller may have given it something else.
        let at_handlers = match self.shared.steered().of(tenant.id).0 {
            None => promise,
            Some(given) => Promise {
                weight: given.share[HANDLERS] * total * portions.weight,
                // Nor does it say what may be out at an engine.
                reserved_permits: match self.shared.upstream {
                    Some(_) => promise.reserved_permits,
                    None => given.reserved[HANDLERS],
                },
                ..promise
            },
        };
        // Tenants begin at different cores, or the first would hold all that are reserved singly.
        let seat = (self.id + tenant.id.0 as usize) % cores;
        self.lines
            .configure(now, tenant.id, &promise.at_requests(), promise.weight);
        let at_handlers = at_handlers.at_handlers(seat as u32, cores as u32);
        let [requests, work] = self.principals.lanes(tenant);
        self.lines.set_lanes(now, tenant.id, &requests);
        let crews = [&self.handlers].into_iter().chain(&self.beyond);
        for (place, crew) in crews.enumerate() {
            let stage = &mut *crew.stage();
            let at_node = Allocation {
                weight: at_handlers.weight * self.node_weights.times(tenant.id, place),
                ..at_handlers
            };
            stage.configure(now, tenant.id, &at_node);
            set_lanes(stage, now, tenant.id, &work);
        }
    }

    /// Its connections here belong to its workloads as they are now.
    fn find_lanes(&mut self, tenant: &Tenant) {
        for key in self.places.keys() {
            let connection = self.places.get(key);
            if let Some(connection) = connection.filter(|one| one.tenant.id == tenant.id) {
                connection.find_lane();
            }
        }
    }

    /// Work for handlers is treated as a controller says.
    pub(super) fn steered(&mut self, now: Nanos) {
        let steered = self.shared.steered();
        let cores = self.shared.options.cores as u32;
        // Those of all cores.
        let others = Others {
            kept: steered.others.kept.div_ceil(cores),
            ..steered.others
        };
        for crew in [&self.handlers].into_iter().chain(&self.beyond) {
            crew.stage().set_others(now, others);
        }
        if self.shared.upstream.is_some() {
            return; // What may be out at the engine follows from its replies.
        }
        let own = self.shared.options.handlers_each();
        let permits = steered.handlers.map(|all| all.div_ceil(cores).min(own));
        (self.handlers.stage()).set_permits(permits.unwrap_or(own));
        // What is lent and borrowed is asked for anew.
        self.permits = (Need::default(), 0);
    }

    /// A tenant is gone: its connections are closed, each in a turn, and then it is forgotten.
    pub(super) fn forget(&mut self, tenant: Arc<Tenant>, now: Nanos) {
        self.close_where(|connection| connection.tenant.removed());
        self.leaving.push(tenant);
        self.forget_left(now);
    }

    /// Forgets tenants that are gone and have no connection here any more.
    pub(super) fn forget_left(&mut self, now: Nanos) {
        if self.leaving.is_empty() {
            return;
        }
        let (stay, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.leaving)
            .into_iter()
            .partition(|tenant| tenant.connections_on(self.id) > 0);
        self.leaving = stay;
        for tenant in gone {
            self.lines.remove(now, tenant.id);
            for crew in [&self.handlers].into_iter().chain(&self.beyond) {
                let left = crew.stage().remove(now, tenant.id);
                drop(left);
            }
            self.node_weights.forget(tenant.id);
            self.waiting.forget(tenant.id);
            if let Some(front) = &mut self.front {
                front.forget(tenant.id);
            }
            self.principals.leave(&tenant);
        }
    }

    /// Begins to open the keyspace of a connection's tenant and parks the connection. If it could
    /// not be opened before, the connection has its error.
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
        let mailbox = self.mailbox().clone();
        let tenant = Arc::clone(&connection.tenant);
        let due_at = self.principals.begin(connection, spec.class)[DEVICE];
        let _on_terms = on_terms(Terms {
            due_at,
            ..in_lane(connection.lane)
        });
        self.shared.open_keyspace(
            &tenant,
            Box::new(move |error| mailbox.send(Message::Ready(key, Ready::Opened(error)))),
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

    /// Tells the other cores what tenants used here since the last round.
    pub(super) fn tell_consumption(&mut self) {
        let cores = self.shared.options.cores;
        if cores == 1 {
            return;
        }
        self.consumed.clear();
        self.lines.requests.report(&mut self.consumed);
        if self.consumed.is_empty() {
            return;
        }
        let consumed = Arc::new(self.consumed.clone());
        for core in (0..cores).filter(|core| *core != self.id) {
            // A core that has not read so many is asleep: it competes with nobody, so that it would
            // have nothing to be fair about.
            let message = Message::Consumed(Arc::clone(&consumed));
            let _ = self.mailboxes[core].send_lazily(message, CONSUMPTION_MAIL_MAX);
        }
    }

    /// Once a second: connections that were silent too long, keys whose time has come.
    pub(super) fn tick(&mut self) {
        self.shared.beats.beat(self.id);
        let now = self.shared.options.clock.now();
        self.post(now);
        self.weigh_nodes(now);
        self.look_at_links(now);
        self.close_late(now);
        self.close_silent();
        self.close_stalled();
        self.close_paused_and_gone();
        self.relieve();
        for tenant in self.shared.tenants.list() {
            let mine = tenant.id.0 as usize % self.shared.options.cores == self.id;
            let Some(keyspace) = tenant.keyspace().filter(|_| mine) else {
                continue;
            };
            if tenant.expiry.begins(keyspace.committed(), self.now_ms) {
                self.expire(Arc::clone(&tenant));
            }
        }
    }

    /// Has a handler delete keys whose time has come: as many as it can in a go, and then more, in
    /// the line of the tenant.
    pub(super) fn expire(&mut self, tenant: Arc<Tenant>) {
        let (owner, mailbox) = (Arc::clone(&tenant), self.mailbox().clone());
        let job: Job = Box::new(move |shared| {
            match expire_some(&tenant, shared) {
                true => mailbox.send(Message::Expire(tenant)),
                false => tenant.expiry.rests(),
            }
            None
        });
        if !self.submit(&owner, job) {
            owner.expiry.rests();
        }
    }

    fn close_silent(&mut self) {
        let limit_ms = self.shared.tuning().idle_timeout_ms;
        if limit_ms == 0 {
            return;
        }
        let now_ms = self.shared.steady_ms();
        self.close_where(|connection| {
            // Who has subscribed need say nothing, as in Redis.
            let silent = connection.parked.is_none() && connection.subscriptions() == 0;
            silent && connection.client.is_silent(now_ms, limit_ms)
        });
    }
}

/// Deletes some keys whose time has come. `true`: there are more.
fn expire_some(tenant: &Tenant, shared: &Shared) -> bool {
    let Some(keyspace) = tenant.keyspace() else {
        return false;
    };
    let seen = keyspace.committed();
    match keyspace.expire_some((shared.options.wall_ms)(), EXPIRE_AT_ONCE) {
        Ok(expired) => {
            let counter = &shared.counters.expired;
            counter.fetch_add(expired.deleted, Ordering::Relaxed);
            tenant.expiry.looked(seen, &expired);
            expired.more
        }
        Err(error) => {
            tracing::warn!(tenant = tenant.name, %error, "expired keys could not be deleted");
            false
        }
    }
}
