//! The list of tenants: from the configuration file, changed at run time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use policy::PrincipalId;

use super::store::{Change, Store, StoreError};
use super::{Tenant, TenantSpec, DEFAULT};

/// Why the list could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No such tenant.
    #[error("no such tenant '{0}'")]
    Unknown(String),
    /// The name breaks the rules.
    #[error("tenant name '{0}' must be 1 to 64 characters of [A-Za-z0-9_.-]")]
    Name(String),
    /// What is asked for does not go together with the rest.
    #[error("{0}")]
    Infeasible(String),
    /// The tenant of untagged connections cannot go.
    #[error("the tenant 'default' cannot be removed; give it a password to close it")]
    Default,
    /// The change could not be made to last.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Every tenant of this process.
pub struct Registry {
    tenants: RwLock<BTreeMap<String, Arc<Tenant>>>,
    /// Held through a whole change, so that file and memory change in the same order.
    store: Mutex<Store>,
    next_id: Mutex<u32>,
    cores: usize,
}

impl Registry {
    /// The tenants of the configuration, with what was changed at run time laid over them.
    ///
    /// # Errors
    /// The tenant file cannot be read.
    pub fn open(directory: &Path, specs: &[TenantSpec], cores: usize) -> Result<Self, StoreError> {
        let registry = Self {
            tenants: RwLock::new(BTreeMap::new()),
            store: Mutex::new(Store::open(directory)?),
            next_id: Mutex::new(0),
            cores,
        };
        registry.reload(specs);
        Ok(registry)
    }

    /// Brings the list in line with a configuration read anew; returns the tenants that are gone.
    pub fn reload(&self, specs: &[TenantSpec]) -> Vec<Arc<Tenant>> {
        let store = self.store.lock();
        let mut wanted: BTreeMap<String, TenantSpec> = specs
            .iter()
            .map(|spec| (spec.name.clone(), spec.clone()))
            .collect();
        // Untagged connections are served, best effort, unless the configuration says otherwise.
        wanted
            .entry(DEFAULT.to_string())
            .or_insert_with(|| TenantSpec::new(DEFAULT));
        for (name, change) in store.changes() {
            match change.spec(name) {
                Some(spec) => wanted.insert(name.clone(), spec),
                None => wanted.remove(name),
            };
        }
        let mut tenants = self.tenants.write();
        let gone: Vec<_> = tenants
            .iter()
            .filter(|(name, _)| !wanted.contains_key(*name))
            .map(|(_, tenant)| Arc::clone(tenant))
            .collect();
        for tenant in &gone {
            tenant.removed.store(true, Ordering::Release);
            tenants.remove(&tenant.name);
        }
        for spec in wanted.into_values() {
            self.install(&mut tenants, spec);
        }
        gone
    }

    /// The tenant of this name.
    pub fn get(&self, name: &str) -> Option<Arc<Tenant>> {
        self.tenants.read().get(name).cloned()
    }

    /// Every tenant, by name.
    pub fn list(&self) -> Vec<Arc<Tenant>> {
        self.tenants.read().values().cloned().collect()
    }

    /// The sum of all weights: a tenant's share is its weight over this.
    pub fn weight_total(&self) -> f64 {
        self.tenants
            .read()
            .values()
            .map(|tenant| tenant.settings.read().weight)
            .sum()
    }

    /// Adds or changes a tenant, for good. `edit` is given the tenant as it is, or a new one's defaults, and all
    /// tenants; no other change comes between what it sees and what it does.
    ///
    /// # Errors
    /// A bad name, `edit`'s, or the change could not be written down (nothing has changed then).
    pub fn change(
        &self,
        name: &str,
        edit: impl FnOnce(&mut TenantSpec, &[Arc<Tenant>]) -> Result<(), RegistryError>,
    ) -> Result<Arc<Tenant>, RegistryError> {
        if !valid_name(name) {
            return Err(RegistryError::Name(name.to_string()));
        }
        let mut store = self.store.lock();
        let mut spec = self
            .get(name)
            .map_or_else(|| TenantSpec::new(name), |tenant| tenant.spec());
        edit(&mut spec, &self.list())?;
        store.record(name, Some(Change::set(&spec)))?;
        Ok(self.install(&mut self.tenants.write(), spec))
    }

    /// Removes a tenant, for good. Its data stays on the disk until it is deleted by hand or the tenant
    /// comes back. `check` is given it and all tenants, and may refuse.
    ///
    /// # Errors
    /// No such tenant, the default tenant, `check`'s, or the change could not be written down.
    pub fn remove(
        &self,
        name: &str,
        check: impl FnOnce(&Tenant, &[Arc<Tenant>]) -> Result<(), RegistryError>,
    ) -> Result<Arc<Tenant>, RegistryError> {
        if name == DEFAULT {
            return Err(RegistryError::Default);
        }
        let mut store = self.store.lock();
        let unknown = || RegistryError::Unknown(name.to_string());
        let tenant = self.get(name).ok_or_else(unknown)?;
        check(&tenant, &self.list())?;
        store.record(name, Some(Change::Removed))?;
        tenant.removed.store(true, Ordering::Release);
        self.tenants.write().remove(name);
        Ok(tenant)
    }

    fn install(
        &self,
        tenants: &mut BTreeMap<String, Arc<Tenant>>,
        spec: TenantSpec,
    ) -> Arc<Tenant> {
        if let Some(tenant) = tenants.get(&spec.name) {
            tenant.gate.change(spec.password);
            *tenant.settings.write() = spec.settings;
            return Arc::clone(tenant);
        }
        let mut next_id = self.next_id.lock();
        let tenant = Arc::new(Tenant::new(PrincipalId(*next_id), spec, self.cores));
        *next_id += 1;
        tenants.insert(tenant.name.clone(), Arc::clone(&tenant));
        tenant
    }
}

/// 1 to 64 characters that are safe in a file name, a metric label and a command line.
pub fn valid_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}
