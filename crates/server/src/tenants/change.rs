//! Changes of tenants while the server runs: the one place from which cores and databases learn of them,
//! whether an operator's command or a configuration read anew brought them.
//!
//! Everything here may wait for the disk: it is run on handlers and on the binary's main thread, not on cores.

use std::sync::Arc;

use super::registry::RegistryError;
use super::{Durability, Settings, Tenant, TenantSpec};
use crate::core::Message;
use crate::shared::Shared;

impl Shared {
    /// Adds or changes a tenant, for good. `edit` is given the tenant as it is, or a new one's defaults.
    ///
    /// # Errors
    /// A bad name, a promise that cannot be kept, or the change could not be written down; nothing has changed then.
    pub fn change_tenant(
        &self,
        name: &str,
        edit: impl FnOnce(&mut TenantSpec),
    ) -> Result<(), RegistryError> {
        let tenant = self.tenants.change(name, |spec, all| {
            let was_operator = spec.settings.admin;
            edit(spec);
            let others: Vec<&Arc<Tenant>> =
                all.iter().filter(|other| other.name != spec.name).collect();
            if was_operator && !spec.settings.admin {
                keep_an_operator(&others)?;
            }
            self.feasible(&spec.settings, &others)
        })?;
        self.take_over(&tenant);
        self.allot_caches();
        Ok(())
    }

    /// Removes a tenant, for good; its connections are closed, its data stays on the disk.
    ///
    /// # Errors
    /// No such tenant, one that cannot go, or the change could not be written down.
    pub fn remove_tenant(&self, name: &str) -> Result<(), RegistryError> {
        let tenant = self.tenants.remove(name, |tenant, all| {
            if tenant.settings().admin {
                keep_an_operator(
                    &all.iter()
                        .filter(|other| other.name != tenant.name)
                        .collect::<Vec<_>>(),
                )?;
            }
            Ok(())
        })?;
        self.dismiss(&tenant);
        self.allot_caches();
        Ok(())
    }

    /// Brings the tenants in line with a configuration read anew.
    pub fn reload(&self, specs: &[TenantSpec]) {
        for gone in self.tenants.reload(specs) {
            self.dismiss(&gone);
        }
        for tenant in self.tenants.list() {
            self.take_over(&tenant);
        }
        self.allot_caches();
        self.counters
            .reloads
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    /// Changes when a tenant's writes count as done, until the configuration is read anew. Does not wait.
    pub fn set_durability(&self, tenant: &Tenant, durability: Durability) {
        tenant.adjust(|settings| settings.durability = durability);
        if let Some(keyspace) = tenant.keyspace() {
            keyspace.set_sync(durability.into());
        }
    }

    /// The cores and the open database take over a tenant's settings.
    fn take_over(&self, tenant: &Arc<Tenant>) {
        if let Some(keyspace) = tenant.keyspace() {
            keyspace.set_sync(tenant.settings().durability.into());
        }
        // Its database may be open since before it was removed and came back.
        let _ = self.device_hook(tenant);
        self.broadcast(|| Message::Configure(Arc::clone(tenant)));
    }

    fn dismiss(&self, tenant: &Arc<Tenant>) {
        // The database is closed when it has been idle; what it holds in memory others may use now.
        if let Some(keyspace) = tenant.keyspace() {
            keyspace.set_cache_bytes(0);
        }
        if let Some(device) = &self.options.device {
            device.remove(device.number(&tenant.name));
        }
        // Before a tenant of the same name can be added: it is to start from zero.
        self.metrics.remove(&tenant.name);
        self.broadcast(|| Message::Forget(Arc::clone(tenant)));
    }

    /// The allotment of the object cache for one tenant, in bytes: what was set, or by weight of what those with
    /// an allotment of their own leave.
    pub fn cache_bytes(&self, tenant: &Tenant) -> u64 {
        let settings = tenant.settings();
        settings
            .cache_bytes
            .unwrap_or_else(|| self.unallotted().of(settings.weight))
    }

    fn allot_caches(&self) {
        let unallotted = self.unallotted();
        for tenant in self.tenants.list() {
            if let Some(keyspace) = tenant.keyspace() {
                let settings = tenant.settings();
                keyspace.set_cache_bytes(
                    settings
                        .cache_bytes
                        .unwrap_or_else(|| unallotted.of(settings.weight)),
                );
            }
        }
    }

    fn unallotted(&self) -> Unallotted {
        let mut rest = Unallotted {
            bytes: self.options.object_cache_bytes,
            weights: 0.0,
        };
        for tenant in self.tenants.list() {
            let settings = tenant.settings();
            match settings.cache_bytes {
                Some(bytes) => rest.bytes = rest.bytes.saturating_sub(bytes),
                None => rest.weights += settings.weight,
            }
        }
        rest
    }

    /// Refuses promises that the server could not keep together with those it has made.
    fn feasible(&self, settings: &Settings, others: &[&Arc<Tenant>]) -> Result<(), RegistryError> {
        let others: Vec<Settings> = others.iter().map(|tenant| tenant.settings()).collect();
        let refused = |text: String| Err(RegistryError::Infeasible(text));
        if let Some(limit) = settings
            .limit
            .requests_per_s
            .filter(|limit| settings.reserved_per_s() > *limit)
        {
            let reserved = settings.reserved_per_s();
            return refused(format!(
                "reservations come to {reserved}/s, more than the limit of {limit}/s lets through"
            ));
        }
        let reserved: f64 = others
            .iter()
            .chain([settings])
            .map(Settings::reserved_per_s)
            .sum();
        let capacity = self.options.capacity.requests_per_s * self.options.cores as u64;
        if settings.reserved_per_s() > 0.0 && reserved > capacity as f64 {
            let text = format!("reservations of all tenants would come to {reserved}/s, but the cores serve {capacity}/s");
            return refused(text);
        }
        let permits: u64 = others
            .iter()
            .chain([settings])
            .map(|other| u64::from(other.reserved_permits))
            .sum();
        let handlers = self.options.engine.handlers as u64;
        if settings.reserved_permits > 0 && permits >= handlers {
            return refused(format!(
                "reserved permits of all tenants would come to {permits}, and with {handlers} handlers nobody else \
                 could read from the disk"
            ));
        }
        let cache: u64 = others
            .iter()
            .chain([settings])
            .filter_map(|other| other.cache_bytes)
            .sum();
        let bytes = self.options.object_cache_bytes;
        if settings.cache_bytes.is_some() && cache > bytes {
            return refused(format!(
                "cache allotments would come to {cache} bytes, but the object cache has {bytes}"
            ));
        }
        Ok(())
    }
}

/// What of the object cache goes by weight.
struct Unallotted {
    bytes: u64,
    weights: f64,
}

impl Unallotted {
    fn of(&self, weight: f64) -> u64 {
        if self.weights > 0.0 {
            (self.bytes as f64 * weight / self.weights) as u64
        } else {
            0
        }
    }
}

/// Run-time changes win over the configuration file, so without an operator nobody could undo them.
fn keep_an_operator(others: &[&Arc<Tenant>]) -> Result<(), RegistryError> {
    if others.iter().any(|other| other.settings().admin) {
        return Ok(());
    }
    Err(RegistryError::Infeasible(
        "nobody could administer the server any more; let another tenant first".into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_the_cache_goes_by_weight() {
        let rest = Unallotted {
            bytes: 900,
            weights: 3.0,
        };
        assert_eq!((rest.of(1.0), rest.of(2.0)), (300, 600));
        assert_eq!(
            Unallotted {
                bytes: 900,
                weights: 0.0
            }
            .of(1.0),
            0
        );
    }

    #[test]
    fn the_last_operator_stays() {
        let [web, boss] = ["web", "boss"].map(crate::tenants::tests::tenant);
        assert!(keep_an_operator(&[&web, &boss]).is_err());
        boss.adjust(|settings| settings.admin = true);
        assert!(keep_an_operator(&[&web, &boss]).is_ok());
    }

    #[test]
    fn changes_last_and_impossible_ones_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let shared = crate::shared::tests::shared(directory.path(), &["web"]);
        shared
            .change_tenant("new", |spec| spec.settings.weight = 4.0)
            .unwrap();
        assert_eq!(shared.tenants.weight_total(), 6.0);
        let too_much =
            shared.change_tenant("new", |spec| spec.settings.cache_bytes = Some(1 << 40));
        assert!(matches!(too_much, Err(RegistryError::Infeasible(_))));
        let permits = shared.change_tenant("new", |spec| spec.settings.reserved_permits = 16);
        assert!(matches!(permits, Err(RegistryError::Infeasible(_))));
        assert_eq!(
            shared
                .tenants
                .get("new")
                .unwrap()
                .settings()
                .reserved_permits,
            0
        );
        shared.remove_tenant("web").unwrap();
        shared.reload(&[TenantSpec::new("web")]);
        let names: Vec<String> = shared
            .tenants
            .list()
            .iter()
            .map(|tenant| tenant.name.clone())
            .collect();
        assert_eq!(
            names,
            ["default", "new"],
            "run-time changes win over the configuration"
        );
        shared.engine.shutdown();
    }
}
