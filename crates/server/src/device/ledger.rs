//! Who used how much of the device, and for what.

use engine::device::Activity;
use parking_lot::RwLock;
use policy::cost::device::Vop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

const ACTIVITIES: usize = Activity::ALL.len();

/// What a tenant used of the device, by activity, in the order of [`Activity::ALL`]. Totals only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// I/Os.
    pub ios: [u64; ACTIVITIES],
    /// What they cost.
    pub vops: [Vop; ACTIVITIES],
}

#[derive(Debug, Default)]
struct Account {
    ios: [AtomicU64; ACTIVITIES],
    vops: [AtomicU64; ACTIVITIES],
}

/// An account for each tenant. Adding takes a shared lock and two atomic additions.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    accounts: RwLock<Vec<Option<Arc<Account>>>>,
    /// Of everybody, strangers included.
    total: AtomicU64,
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

    pub(super) fn add(&self, tenant: u32, activity: Activity, price: Vop) {
        self.total.fetch_add(price.0, Ordering::Relaxed);
        if let Some(Some(account)) = self.accounts.read().get(tenant as usize) {
            account.ios[activity as usize].fetch_add(1, Ordering::Relaxed);
            account.vops[activity as usize].fetch_add(price.0, Ordering::Relaxed);
        }
    }

    pub(super) fn used(&self, tenant: u32) -> Option<Used> {
        let account = self.accounts.read().get(tenant as usize).cloned()??;
        let read = |counts: &[AtomicU64; ACTIVITIES]| {
            std::array::from_fn(|at| counts[at].load(Ordering::Relaxed))
        };
        Some(Used {
            ios: read(&account.ios),
            vops: read(&account.vops).map(Vop),
        })
    }

    pub(super) fn total(&self) -> Vop {
        Vop(self.total.load(Ordering::Relaxed))
    }
}
