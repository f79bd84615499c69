//! Loads that send so many requests in all, and the end of the run, which comes with their last
//! reply.

use crate::spec::{Quota, Spec};
use policy::Nanos;
use std::collections::BTreeMap;

/// What is left of such loads, and when the run ends.
#[derive(Debug)]
pub(super) struct Quotas {
    /// By tenant and load.
    left: BTreeMap<(u32, u32), Left>,
    /// Nothing is sent or measured after this.
    pub(super) ends_ns: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Left {
    unsent: u64,
    unanswered: u64,
}

impl Quotas {
    /// Nothing was sent yet.
    pub(super) fn new(spec: &Spec) -> Self {
        let tenants = (0..).zip(&spec.tenants);
        let streams = tenants.flat_map(|(tenant, of)| of.streams.iter().map(move |s| (tenant, s)));
        let left = streams.filter_map(|(tenant, stream)| {
            let Quota { load, requests } = stream.quota?;
            let left = Left {
                unsent: requests,
                unanswered: requests,
            };
            Some(((tenant, load), left))
        });
        Quotas {
            left: left.collect(),
            ends_ns: spec.duration_ns,
        }
    }

    /// Whether a tenant's stream has a request to send; takes it.
    pub(super) fn take(&mut self, tenant: u32, quota: Option<Quota>) -> bool {
        let left = quota.and_then(|quota| self.left.get_mut(&(tenant, quota.load)));
        let Some(left) = left else {
            return true;
        };
        let taken = left.unsent.checked_sub(1);
        left.unsent = taken.unwrap_or(0);
        taken.is_some()
    }

    /// A request has its last reply at `now`; the run ends with that of all loads, and not before
    /// the warm-up does.
    pub(super) fn ended(&mut self, tenant: u32, quota: Option<Quota>, now: Nanos, warm_up: Nanos) {
        let left = quota.and_then(|quota| self.left.get_mut(&(tenant, quota.load)));
        let Some(left) = left else {
            return;
        };
        left.unanswered -= 1;
        if self.unanswered() == Some(0) {
            self.ends_ns = self.ends_ns.min(now.max(warm_up));
        }
    }

    /// Requests without their last reply; `None`: there are no such loads.
    pub(super) fn unanswered(&self) -> Option<u64> {
        let unanswered = self.left.values().map(|left| left.unanswered);
        (!self.left.is_empty()).then(|| unanswered.sum())
    }
}
