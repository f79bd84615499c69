//! Connections whose replies wait for a commit, by tenant, oldest commit first.

use std::collections::{BTreeMap, VecDeque};

use engine::Seq;
use policy::PrincipalId;

use super::message::ConnectionKey;

/// Who waits for which commit on this core.
#[derive(Default)]
pub struct Waiting {
    by_tenant: BTreeMap<PrincipalId, VecDeque<(Seq, ConnectionKey)>>,
}

impl Waiting {
    /// `key` waits for commit `seq` of `tenant`.
    ///
    /// A read under `sync = "always"` may wait for an older commit than the one queued before it; it
    /// is let go together with that one, which is at most one commit later.
    pub fn enter(&mut self, tenant: PrincipalId, seq: Seq, key: ConnectionKey) {
        self.by_tenant
            .entry(tenant)
            .or_default()
            .push_back((seq, key));
    }

    /// The longest waiting connection of `tenant` whose commit is done.
    pub fn next(&mut self, tenant: PrincipalId, committed: Seq) -> Option<ConnectionKey> {
        let queue = self.by_tenant.get_mut(&tenant)?;
        match queue.front() {
            Some((seq, _)) if *seq <= committed => queue.pop_front().map(|(_, key)| key),
            _ => None,
        }
    }

    /// The oldest commit that somebody of `tenant` waits for.
    pub fn first(&self, tenant: PrincipalId) -> Option<Seq> {
        self.by_tenant.get(&tenant)?.front().map(|(seq, _)| *seq)
    }

    /// Forgets a tenant; its connections are gone.
    pub fn forget(&mut self, tenant: PrincipalId) {
        self.by_tenant.remove(&tenant);
    }
}
