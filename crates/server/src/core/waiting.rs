//! Connections whose replies wait for a commit, by tenant, in the order of the commits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use engine::Seq;
use policy::PrincipalId;

use crate::tenants::{ConnectionKey, Tenant};

/// Who waits for which commit on this core.
#[derive(Default)]
pub struct Waiting {
    by_tenant: BTreeMap<PrincipalId, BTreeSet<(Seq, u64)>>,
    /// Tenants with commits that those who wait for them have not all been told of.
    pub decided: VecDeque<Arc<Tenant>>,
}

impl Waiting {
    /// `key` waits for commit `seq` of `tenant`.
    pub fn enter(&mut self, tenant: PrincipalId, seq: Seq, key: ConnectionKey) {
        let queue = self.by_tenant.entry(tenant).or_default();
        queue.insert((seq, key.packed()));
    }

    /// A connection of `tenant` whose commit is done. Whoever waits for an earlier one is let go
    /// first, and nobody who waits for a later one is in the way.
    pub fn next(&mut self, tenant: PrincipalId, committed: Seq) -> Option<ConnectionKey> {
        let queue = self.by_tenant.get_mut(&tenant)?;
        let first = queue
            .first()
            .filter(|(seq, _)| *seq <= committed)
            .copied()?;
        queue.remove(&first);
        Some(ConnectionKey::unpacked(first.1))
    }

    /// The oldest commit that somebody of `tenant` waits for.
    pub fn first(&self, tenant: PrincipalId) -> Option<Seq> {
        self.by_tenant.get(&tenant)?.first().map(|(seq, _)| *seq)
    }

    /// Forgets a tenant; its connections are gone.
    pub fn forget(&mut self, tenant: PrincipalId) {
        self.by_tenant.remove(&tenant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u32) -> ConnectionKey {
        let generation = 7;
        ConnectionKey { index, generation }
    }

    #[test]
    fn who_waits_for_a_later_commit_stands_in_nobody_s_way() {
        let (mut waiting, [one, other]) = (Waiting::default(), [0, 1].map(PrincipalId));
        // A wait for a commit far ahead comes first, as a read of what another core has just
        // written may.
        waiting.enter(one, 1_000, key(1));
        for index in 2..5 {
            waiting.enter(one, u64::from(index), key(index));
        }
        waiting.enter(other, 1, key(9));
        assert_eq!(waiting.first(one), Some(2));
        let gone: Vec<_> = std::iter::from_fn(|| waiting.next(one, 3)).collect();
        assert_eq!(gone, [key(2), key(3)]);
        assert_eq!(
            (waiting.first(one), waiting.first(other)),
            (Some(4), Some(1))
        );
        waiting.forget(one);
        assert_eq!(waiting.next(one, 2_000), None);
        assert_eq!(waiting.next(other, 1), Some(key(9)));
    }
}
