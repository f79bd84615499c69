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
    /// Times that a controller failed since the start.
    pub failures: u64,
    /// How the controller in force failed last.
    pub failure: Option<Failure>,
}

/// A controller that failed. What it had given stays in force.
#[derive(Clone, Debug)]
pub struct Failure {
    /// When, s since the Unix epoch.
    pub unix_s: u64,
    /// What happened, and where in the code.
    pub what: String,
    /// Whether one with no memory of it has decided since.
    pub begun_anew: bool,
}

impl Controlled {
    /// A controller has decided; it says why, if it changed something.
    pub fn decided(&mut self, policy: &'static str, why: Vec<String>, unix_s: u64) {
        if self.policy != policy {
            (self.policy, self.failure) = (policy, None);
        }
        if let Some(failure) = &mut self.failure {
            failure.begun_anew = true;
        }
        if !why.is_empty() && why != self.why {
            (self.unix_s, self.why) = (unix_s, why);
        }
    }

    /// It has failed.
    pub fn failed(&mut self, what: String, unix_s: u64) {
        self.failures += 1;
        self.failure = Some(Failure {
            unix_s,
            what,
            begun_anew: false,
        });
    }

    /// How the controller in force failed last, in words.
    pub fn failure_line(&self, unix_s: u64) -> Option<String> {
        let failure = self.failure.as_ref()?;
        let since = match failure.begun_anew {
            true => "what it had given stayed in force, and it has begun anew",
            false => "what it gave last stays in force until it begins anew",
        };
        let times = match self.failures {
            1 => "once".into(),
            times => format!("{times} times"),
        };
        Some(format!(
            "controller {} failed {} s ago, {times} since the start: {}; {since}",
            self.policy,
            unix_s.saturating_sub(failure.unix_s),
            failure.what,
        ))
    }
}
