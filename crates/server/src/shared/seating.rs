//! Who may have how many connections and open files, as tenants and settings change; and closing a
//! connection from elsewhere than its core.

use std::sync::atomic::Ordering;

use policy::seats::SeatsOptions;

use super::{News, Shared};
use crate::options::Plan;
use crate::tenants::{Client, Unblocked};

impl Shared {
    /// Who may have how many connections and open files, now.
    pub fn plan(&self) -> Plan {
        *self.plan.read()
    }

    /// The same with this many tenants.
    ///
    /// # Errors
    /// The system allows fewer open files than their databases need.
    pub(crate) fn plan_for(&self, tenants: usize) -> Result<Plan, String> {
        self.options.descriptors.plan(tenants, &self.tuning())
    }

    /// The number of tenants has changed, or what they and newcomers may have.
    pub(crate) fn seat(&self) {
        let Ok(plan) = self.plan_for(self.tenants.count()) else {
            // Such a change is refused; a reload that brings as many keeps the last plan.
            tracing::error!("more tenants than the system's limit on open files leaves room for");
            return;
        };
        let before = std::mem::replace(&mut *self.plan.write(), plan);
        if plan != before {
            self.carry_out(plan);
        }
        if plan.connections < before.connections {
            self.say_shortage(&plan);
        }
    }

    pub(super) fn carry_out(&self, plan: Plan) {
        let seats = SeatsOptions {
            tenants: plan.connections,
            operators: plan.operators,
        };
        self.house.set(plan.newcomers, seats);
    }

    pub(super) fn say_shortage(&self, plan: &Plan) {
        let descriptors = &self.options.descriptors;
        if let Some(short) = descriptors.shortage(self.tenants.count(), &self.tuning(), plan) {
            tracing::warn!("{short}");
        }
    }

    /// Has a connection wait at an engine no longer; false if it does not.
    pub(crate) fn unblock(&self, client: &Client, how: Unblocked) -> bool {
        let (core, key) = client.place();
        let unblocked = key.filter(|_| client.unblock());
        if let Some(key) = unblocked {
            self.tell(core, News::Unblock(key, how));
        }
        unblocked.is_some()
    }

    /// Has a connection closed by its core.
    pub(crate) fn kill(&self, client: &Client) {
        client.killed.store(true, Ordering::SeqCst);
        let (core, key) = client.place();
        if let Some(key) = key {
            self.tell(core, News::Kill(key));
        }
    }
}
