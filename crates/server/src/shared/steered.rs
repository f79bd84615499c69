//! What a controller has given the stages.

use std::collections::BTreeMap;

use policy::dispatch::Others;
use policy::slo::control::ShareGiven;
use policy::PrincipalId;

/// What is in force until the controller says something else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steered {
    /// Permits of the handler stages, all cores together; `None`: as configured.
    pub handlers: Option<u32>,
    /// Work without due times at the handler stages.
    pub others: Others,
    /// Tenants whose shares and reserved permits are the controller's.
    pub shares: BTreeMap<PrincipalId, ShareGiven>,
    /// Parts of the device's time that are tenants' before anybody's share.
    pub parts: BTreeMap<PrincipalId, f64>,
}

impl Steered {
    /// What a tenant is given.
    pub fn of(&self, tenant: PrincipalId) -> (Option<ShareGiven>, f64) {
        let part = self.parts.get(&tenant).copied().unwrap_or_default();
        (self.shares.get(&tenant).copied(), part)
    }
}

/// What a controller did last, for people.
#[derive(Clone, Debug, Default)]
pub struct Controlled {
    /// Its word.
    pub policy: &'static str,
    /// When it last changed something, s since the Unix epoch; 0: never.
    pub unix_s: u64,
    /// What it did then, and why.
    pub why: Vec<String>,
}
