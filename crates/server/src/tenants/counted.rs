//! What a tenant was counted, for `INFO`.

use std::sync::atomic::Ordering;

use super::Tenant;

/// What a tenant has had since the start, or since its `CONFIG RESETSTAT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests, bytes, CPU time.
    pub usage: telemetry::Usage,
    /// Requests answered with an error.
    pub errors: u64,
    /// Requests answered `-THROTTLED`.
    pub throttled: u64,
    /// Keys deleted because their time had come.
    pub expired: u64,
    /// Connections that came to speak for it.
    pub received: u64,
    /// Connections that it was refused.
    pub refused: u64,
}

impl Counted {
    /// What was counted of a tenant since the start.
    pub fn of(metrics: &telemetry::Registry, tenant: &Tenant) -> Self {
        let Some(totals) = metrics.totals(&tenant.name) else {
            return Self::default();
        };
        Self {
            usage: totals.usage,
            errors: totals.classes.iter().map(|class| class.errors).sum(),
            throttled: totals
                .classes
                .iter()
                .flat_map(|class| class.throttled)
                .sum(),
            expired: tenant.expiry.deleted(),
            received: tenant.received.load(Ordering::Relaxed),
            refused: tenant.refused.load(Ordering::Relaxed),
        }
    }

    /// What was counted since then.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            usage: self.usage.since(&earlier.usage),
            errors: self.errors.saturating_sub(earlier.errors),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            expired: self.expired.saturating_sub(earlier.expired),
            received: self.received.saturating_sub(earlier.received),
            refused: self.refused.saturating_sub(earlier.refused),
        }
    }
}
