//! Connections whose tenants have paused (`CLIENT PAUSE`): each keeps its request, which is begun
//! anew at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use commands::{Action, ClientCommand, Flags, SessionCommand, Spec};
use policy::{Nanos, PrincipalId};

use super::command::Flow;
use super::{Core, Phase};
use crate::connection::{Connection, Parked};
use crate::tenants::{ConnectionKey, Tenant};

/// Connections that are let go before others get their turns.
const AT_ONCE: usize = 256;

/// Who waits on this core for the end of a pause.
#[derive(Default)]
pub struct Paused {
    by_tenant: BTreeMap<PrincipalId, (Arc<Tenant>, BTreeSet<u64>)>,
    /// Some pause may be over then.
    look_at: Option<Nanos>,
}

impl Paused {
    /// When somebody may have to be let go; `None`: nobody waits.
    pub fn look_at(&self) -> Option<Nanos> {
        self.look_at
    }

    /// Somebody has ended a pause before its time.
    pub fn look_soon(&mut self) {
        if !self.by_tenant.is_empty() {
            self.look_at = Some(0);
        }
    }

    fn enter(&mut self, until: Nanos, tenant: &Arc<Tenant>, key: ConnectionKey) {
        let (_, keys) = self
            .by_tenant
            .entry(tenant.id)
            .or_insert_with(|| (Arc::clone(tenant), BTreeSet::new()));
        keys.insert(key.packed());
        tenant.pause.waiting.fetch_add(1, Ordering::Relaxed);
        self.look_at = Some(self.look_at.map_or(until, |at| at.min(until)));
    }

    fn leave(&mut self, tenant: &Tenant, key: ConnectionKey) {
        let Some((_, keys)) = self.by_tenant.get_mut(&tenant.id) else {
            return;
        };
        if keys.remove(&key.packed()) {
            tenant.pause.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        if keys.is_empty() {
            self.by_tenant.remove(&tenant.id);
        }
    }

    /// Some of those whose pause is over, or of all.
    fn over(&mut self, now: Nanos, all: bool) -> Vec<ConnectionKey> {
        let mut over = Vec::new();
        self.look_at = None;
        for (tenant, keys) in self.by_tenant.values() {
            let until = tenant.pause.holds(now, true).filter(|_| !all);
            let look_at = match until {
                Some(until) => until,
                None => {
                    let left = AT_ONCE - over.len();
                    over.extend(
                        keys.iter()
                            .take(left)
                            .map(|key| ConnectionKey::unpacked(*key)),
                    );
                    now
                }
            };
            self.look_at = Some(self.look_at.map_or(look_at, |at| at.min(look_at)));
        }
        over
    }
}

impl Core {
    /// Parks a connection whose tenant has paused such commands, with its request. `None`: the
    /// command runs.
    pub(super) fn pause(
        &mut self,
        key: ConnectionKey,
        connection: &mut Connection,
        spec: &'static Spec,
    ) -> Option<Flow> {
        let until = connection
            .tenant
            .pause
            .holds(self.now, may_write(connection, spec))?;
        // Whoever has paused for too long can say so; and at the end of the server nobody is held
        // up.
        let ends_it = matches!(
            spec.action,
            Action::Session(SessionCommand::Client(ClientCommand::Unpause))
        );
        if ends_it || self.phase != Phase::Serves {
            return None;
        }
        connection.parked = Some(Parked::Paused);
        self.paused.enter(until, &connection.tenant, key);
        Some(Flow::Again)
    }

    /// The connection waits for the end of a pause no longer, if it did.
    pub(super) fn leave_pause(&mut self, key: ConnectionKey, connection: &mut Connection) {
        if matches!(connection.parked, Some(Parked::Paused)) {
            connection.parked = None;
            self.paused.leave(&connection.tenant, key);
        }
    }

    /// Lets connections go whose pause is over, some at a time.
    pub(super) fn end_pauses(&mut self) {
        let now = self.now;
        let all = self.phase != Phase::Serves;
        if self.paused.look_at().is_none_or(|at| at > now) {
            return;
        }
        for key in self.paused.over(now, all) {
            let Some(mut connection) = self.places.lift(key) else {
                continue;
            };
            self.leave_pause(key, &mut connection);
            self.put_back(key, connection, now);
        }
    }

    /// Clients that have left while they were paused are not waited for.
    pub(super) fn close_paused_and_gone(&mut self) {
        if self.paused.look_at().is_none() {
            return;
        }
        self.close_where(|connection| {
            matches!(connection.parked, Some(Parked::Paused)) && connection.inbound.is_last()
        });
    }
}

/// Whether a command may change data; of a transaction, any of its commands.
fn may_write(connection: &Connection, spec: &Spec) -> bool {
    let executes = matches!(spec.action, Action::Session(SessionCommand::Exec));
    let transaction = connection.session.transaction.as_ref();
    spec.flags.has(Flags::WRITE)
        || executes && transaction.is_some_and(|transaction| transaction.extent.writes)
}
