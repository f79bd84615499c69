//! Who used how much of the device, and for what: by tenant, class of request and activity of
//! RocksDB.

use engine::device::{Activity, DeviceIo, Op, Tag, TAGS};
use parking_lot::RwLock;
use policy::cost::device::Vop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use telemetry::Class;

const ACTIVITIES: usize = Activity::ALL.len();

/// The tag of threads that work for a request of this class; no tag means that no request waits for
/// it.
#[must_use]
pub fn tag_of(class: Class) -> Tag {
    Tag(class.index() as u8 + 1)
}

/// I/Os and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// I/Os.
    pub ios: u64,
    /// What they cost.
    pub vops: Vop,
}

impl Sum {
    fn plus(self, other: Sum) -> Sum {
        Sum {
            ios: self.ios + other.ios,
            vops: self.vops.plus(other.vops),
        }
    }
}

/// What a tenant used of the device. Totals only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used([[Sum; ACTIVITIES]; TAGS]);

impl Used {
    /// What one activity used, for whatever class.
    #[must_use]
    pub fn activity(&self, activity: Activity) -> Sum {
        let all = self.0.iter().map(|of| of[activity as usize]);
        all.fold(Sum::default(), Sum::plus)
    }

    /// What requests of a class did themselves; `None`: what no request waited for (flush,
    /// compaction, opening).
    #[must_use]
    pub fn class(&self, class: Option<Class>) -> Sum {
        let of = &self.0[class.map_or(Tag::default(), tag_of).index()];
        of.iter().copied().fold(Sum::default(), Sum::plus)
    }

    /// One activity for one class.
    #[must_use]
    pub fn cell(&self, class: Option<Class>, activity: Activity) -> Sum {
        self.0[class.map_or(Tag::default(), tag_of).index()][activity as usize]
    }

    /// Everything.
    #[must_use]
    pub fn total(&self) -> Sum {
        self.0
            .iter()
            .flatten()
            .copied()
            .fold(Sum::default(), Sum::plus)
    }
}

/// I/Os of one operation, of everybody, strangers included. Totals only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// I/Os.
    pub ios: u64,
    /// What they cost.
    pub vops: Vop,
    /// From the turn to the end, summed.
    pub ns: u64,
}

/// The counters of a [`Done`].
#[derive(Debug, Default)]
struct Operation {
    ios: AtomicU64,
    vops: AtomicU64,
    ns: AtomicU64,
}

/// The counters of a [`Sum`].
#[derive(Debug, Default)]
struct Cell {
    ios: AtomicU64,
    vops: AtomicU64,
}

#[derive(Debug, Default)]
struct Account([[Cell; ACTIVITIES]; TAGS]);

/// An account for each tenant, and one for the device. Adding takes a shared lock and five atomic
/// additions.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    accounts: RwLock<Vec<Option<Arc<Account>>>>,
    operations: [Operation; Op::ALL.len()],
}

impl Ledger {
    /// A new account; one that is there stays as it is.
    pub(super) fn open(&self, tenant: u32) {
        let mut accounts = self.accounts.write();
        let needed = tenant as usize + 1;
        if accounts.len() < needed {
            accounts.resize(needed, None);
        }
        accounts[tenant as usize].get_or_insert_default();
    }

    pub(super) fn close(&self, tenant: u32) {
        if let Some(account) = self.accounts.write().get_mut(tenant as usize) {
            *account = None;
        }
    }

    /// An I/O that took `ns` from its turn to its end.
    pub(super) fn add(&self, io: &DeviceIo, price: Vop, ns: u64) {
        let operation = &self.operations[io.op as usize];
        operation.ios.fetch_add(1, Ordering::Relaxed);
        operation.vops.fetch_add(price.0, Ordering::Relaxed);
        operation.ns.fetch_add(ns, Ordering::Relaxed);
        if let Some(Some(account)) = self.accounts.read().get(io.principal as usize) {
            let cell = &account.0[io.tag.index()][io.activity as usize];
            cell.ios.fetch_add(1, Ordering::Relaxed);
            cell.vops.fetch_add(price.0, Ordering::Relaxed);
        }
    }

    pub(super) fn used(&self, tenant: u32) -> Option<Used> {
        let account = self.accounts.read().get(tenant as usize).cloned()??;
        let read = |cell: &Cell| Sum {
            ios: cell.ios.load(Ordering::Relaxed),
            vops: Vop(cell.vops.load(Ordering::Relaxed)),
        };
        Some(Used(std::array::from_fn(|tag| {
            std::array::from_fn(|activity| read(&account.0[tag][activity]))
        })))
    }

    pub(super) fn done(&self) -> [Done; Op::ALL.len()] {
        let read = |operation: &Operation| Done {
            ios: operation.ios.load(Ordering::Relaxed),
            vops: Vop(operation.vops.load(Ordering::Relaxed)),
            ns: operation.ns.load(Ordering::Relaxed),
        };
        std::array::from_fn(|op| read(&self.operations[op]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_place_of_its_own() {
        let mut places: Vec<usize> = Class::ALL.map(|class| tag_of(class).index()).to_vec();
        places.push(Tag::default().index());
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), Class::ALL.len() + 1);
    }
}
