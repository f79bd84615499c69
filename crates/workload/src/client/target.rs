//! The server that a scenario is played against, and how its tenants log in.

use super::{Goal, Identity};
use crate::error::WorkloadError;
use crate::scenario::Tenant;
use std::collections::BTreeMap;

/// Where a load goes, and the passwords of tenants there.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it goes.
    pub goal: Goal,
    /// Passwords by tenant; they go before the scenario's own.
    pub passwords: BTreeMap<String, String>,
    /// The password of tenants of which nobody says one.
    pub password: Option<String>,
    /// Nobody logs in: every tenant's load comes from the untagged default tenant, and only the
    /// report tells them apart.
    pub anonymous: bool,
}

impl Target {
    /// Tenants have the passwords there that the scenario says.
    pub fn new(goal: Goal) -> Self {
        Self {
            goal,
            passwords: BTreeMap::new(),
            password: None,
            anonymous: false,
        }
    }

    /// Who a tenant says that it is.
    ///
    /// # Errors
    /// [`WorkloadError::Usage`] if nobody says its password.
    pub fn identity(&self, tenant: &Tenant) -> Result<Identity, WorkloadError> {
        let tag = tenant.tag.clone();
        if self.anonymous {
            return Ok(Identity {
                credentials: None,
                tag,
                ..Identity::default()
            });
        }
        let known = self
            .passwords
            .get(&tenant.name)
            .or_else(|| self.passwords.get(&tenant.group))
            .or(tenant.password.as_ref())
            .or(self.password.as_ref());
        match known {
            Some(password) => Ok(Identity {
                credentials: Some((tenant.name.clone(), password.clone())),
                tag,
                ..Identity::default()
            }),
            None => Err(WorkloadError::Usage(format!(
                "tenant {} has no password: say one with --tenant {}:PASSWORD, with --password for all, or as `password` in the \
                 scenario; --provision makes the tenants, --anonymous does without",
                tenant.name, tenant.group
            ))),
        }
    }
}
